package main

// momentKernels are the sums that a normalisation takes, in float32: rows are handed over in pieces, and the pieces' sums added up in
// float64. Four sums run side by side.
func (a *assembler) momentKernels() {
	const sums, x, about = 4, 8, 9 // the sums of squares behind the sums
	sum, squares := param{"sum", "float32"}, param{"squares", "float32"}
	a.function("deviations", "are the sums of x[i]-s and of its square.", []param{argN, argX, argS}, []param{sum, squares})
	a.op("MOVQ %s, CX", a.arg(argN))
	a.op("MOVQ %s, SI", a.arg(argX))
	a.op("VBROADCASTSS %s, %s", a.arg(argS), a.v(about))
	a.clear(0, 2*sums)
	turn := 0
	a.rowLoop([]string{"SI"}, sums, func(at func(string) string, tail bool) {
		a.load(at("SI"), x, false, tail)
		a.ps("VSUBPS", about, x, x)
		if tail {
			a.dropTail(x)
		}
		a.ps("VADDPS", x, turn%sums, turn%sums)
		a.ps("VFMADD231PS", x, x, sums+turn%sums)
		turn++
	})
	a.foldFour(0, x)
	a.foldFour(sums, x)
	a.op("VMOVSS X0, %s", a.result(sum))
	a.op("VMOVSS X%d, %s", sums, a.arg(squares))
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

// stream copies past the caches: what is much larger than they are would only push other things out of them, and without reading the
// lines first that are then overwritten. Four vectors at a time keep a line together.
func (a *assembler) stream() {
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

	a.function("fence", "puts what was streamed before what is written next.", nil, nil)
	a.op("SFENCE")
	a.op("RET")
}
