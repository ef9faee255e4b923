package main

// momentKernels are the sums that a normalisation takes, in float32: rows are
// handed over in pieces, and the pieces' sums added up in float64. Four sums
// run side by side.
func (a *assembler) momentKernels() {
	const doc = "are the sums of x[i]-s and of its square"
	a.deviations("deviations", doc+".", false)
	far := a.deviations
	if a.masks {
		far = a.deviationsByHalves
	}
	far("deviationsAhead", doc+"; it prefetches the row after the next one.", true)
}

// Vectors of the sums: those of squares lie behind those of distances.
const (
	devSums  = 4
	devX     = 2 * devSums
	devAbout = devX + 2
)

func (a *assembler) deviations(name, doc string, ahead bool) {
	distance := a.beginDeviations(name, doc, ahead)
	a.clear(0, 2*devSums)
	iteration := 0
	a.rowLoop([]string{"SI"}, devSums, func(at func(string) string, tail bool) {
		a.fetchAhead(at("SI"), distance, iteration, tail)
		a.load(at("SI"), devX, false, tail)
		a.ps("VSUBPS", devAbout, devX, devX)
		if tail {
			a.dropTail(devX)
		}
		a.ps("VADDPS", devX, iteration%devSums, iteration%devSums)
		a.ps("VFMADD231PS", devX, devX, devSums+iteration%devSums)
		iteration++
	})
	a.endDeviations()
}

// deviationsByHalves reads half a vector at a time, which is faster from
// memory; the sums have the lanes that they have in deviations.
func (a *assembler) deviationsByHalves(name, doc string, ahead bool) {
	const high = 16 // the upper halves of the sums
	distance := a.beginDeviations(name, doc, ahead)
	a.op("LEAQ %d(SI), DX", a.bytes()/2)
	a.clear(0, 2*devSums)
	a.clear(high, 2*devSums)
	iteration := 0
	a.rowLoop([]string{"SI", "DX"}, devSums, func(at func(string) string, tail bool) {
		if tail {
			a.load(at("SI"), devX, false, true)
			a.ps("VSUBPS", devAbout, devX, devX)
			a.dropTail(devX)
			a.op("VEXTRACTF64X4 $1, %s, %s", a.v(devX), a.h(devX+1))
		} else {
			a.fetchAhead(at("SI"), distance, iteration, tail)
			a.load(at("SI"), devX, true, false)
			a.load(at("DX"), devX+1, true, false)
			for half := range 2 {
				a.op("VSUBPS %s, %s, %s", a.h(devAbout), a.h(devX+half), a.h(devX+half))
			}
		}
		for half := range 2 {
			x, sum, squares := a.h(devX+half), a.h(half*high+iteration%devSums), a.h(half*high+devSums+iteration%devSums)
			a.op("VADDPS %s, %s, %s", x, sum, sum)
			a.op("VFMADD231PS %s, %s, %s", x, x, squares)
		}
		iteration++
	})
	for i := range 2 * devSums {
		a.op("VINSERTF64X4 $1, %s, %s, %s", a.h(high+i), a.v(i), a.v(i))
	}
	a.endDeviations()
}

func (a *assembler) beginDeviations(name, doc string, ahead bool) (distance string) {
	a.function(name, doc, []param{argN, argX, argS}, []param{{"sum", "float32"}, {"squares", "float32"}})
	a.op("MOVQ %s, CX", a.arg(argN))
	a.op("MOVQ %s, SI", a.arg(argX))
	a.op("VBROADCASTSS %s, %s", a.arg(argS), a.v(devAbout))
	if !ahead {
		return ""
	}
	a.op("LEAQ 4096(CX*4), R11") // a row and a page: with less, prefetched lines arrive too late for short rows
	return "R11"
}

func (a *assembler) endDeviations() {
	a.foldFour(0, devX)
	a.foldFour(devSums, devX)
	a.op("VMOVSS X0, %s", a.result(param{"sum", "float32"}))
	a.op("VMOVSS X%d, %s", devSums, a.arg(param{"squares", "float32"}))
	a.ret()
}

// clear sets n vectors to zero.
func (a *assembler) clear(first, n int) {
	for i := first; i < first+n; i++ {
		a.op("VXORPS %s, %s, %s", a.v(i), a.v(i), a.v(i))
	}
}

// foldFour adds up four vectors into the first lane of the first.
func (a *assembler) foldFour(first, spare int) {
	for _, p := range [][2]int{{1, 0}, {3, 2}, {2, 0}} {
		a.ps("VADDPS", first+p[0], first+p[1], first+p[1])
	}
	a.foldLanes("VADDPS", first, spare)
}

// stream copies past the caches, from which data much larger than they are
// would only evict other lines, and without first reading the lines that are
// then overwritten. Four vectors at a time keep a line together. Vectors of 32
// bytes reach the memory's bandwidth on every machine.
func (a *assembler) stream() {
	if a.masks {
		return
	}
	a.function("stream", "copies n times four vectors to dst, which begins at a multiple of a vector's size; fence must follow.", []param{argN, argDst, argX}, nil)
	a.op("MOVQ %s, CX", a.arg(argN))
	a.op("MOVQ %s, DI", a.arg(argDst))
	a.op("MOVQ %s, SI", a.arg(argX))
	a.label("vectors")
	for i := range 4 {
		a.op("VMOVUPS %d(SI), %s", i*a.bytes(), a.v(i))
	}
	for i := range 4 {
		a.op("VMOVNTPS %s, %d(DI)", a.v(i), i*a.bytes())
	}
	a.op("ADDQ $%d, SI", 4*a.bytes())
	a.op("ADDQ $%d, DI", 4*a.bytes())
	a.op("DECQ CX")
	a.op("JNZ vectors")
	a.ret()

	a.function("fence", "orders streamed stores before later ones.", nil, nil)
	a.op("SFENCE")
	a.op("RET")
}
