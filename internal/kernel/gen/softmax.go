package main

import "math"

// Vectors of the softmax kernels beyond those of exp.
const (
	smPeak = fnW + 1 + iota
	smScale
	smSum
	smPeaks = smSum + smSums // of a later row
	smFrom  = fnP
	smLater = fnU
	smSums  = 2
)

// softmaxKernels are whole rows for short ones, and the parts of long ones.
func (a *assembler) softmaxKernels() {
	a.softmaxRow()
	a.softmaxNext("softmaxNext", false)
	a.softmaxNext("softmaxNextStream", true)
	sum := param{"sum", "float32"}
	for _, k := range []struct {
		name, doc string
		keep      bool
	}{{"expSum", "is the sum of exp(x[i]-s), which it keeps in dst[i].", true}, {"expOnlySum", "is the sum of exp(x[i]-s).", false}} {
		in := []param{argN, argDst, argX, argS}
		if !k.keep {
			in = []param{argN, argX, argS}
		}
		a.function(k.name, k.doc, in, []param{sum})
		a.op("MOVQ %s, CX", a.arg(argN))
		if k.keep {
			a.op("MOVQ %s, DI", a.arg(argDst))
		}
		a.op("MOVQ %s, SI", a.arg(argX))
		a.op("VBROADCASTSS %s, %s", a.arg(argS), a.v(smPeak))
		a.expSumLoop(k.keep, "")
		a.op("VMOVSS X%d, %s", smSum, a.result(sum))
		a.ret()
	}
	in := []param{argN, argDst, argX, argS, argT}
	a.function("expScale", "is exp(x[i]-s) * t.", in, nil)
	a.op("MOVQ %s, CX", a.arg(argN))
	a.op("MOVQ %s, DI", a.arg(argDst))
	a.op("MOVQ %s, SI", a.arg(argX))
	a.op("VBROADCASTSS %s, %s", a.arg(argS), a.v(smPeak))
	a.op("VBROADCASTSS %s, %s", a.arg(argT), a.v(smScale))
	a.pin(a.expFromPeak)
	a.rowLoop([]string{"DI", "SI"}, 2, func(at func(string) string, tail bool) {
		a.load(at("SI"), fnX, false, tail)
		a.expFromPeak()
		a.ps("VMULPS", smScale, fnE, fnE)
		a.store(fnE, at("DI"), false, tail)
	})
	a.ret()
	a.expSumColumns()
}

// expFromPeak sets fnE to exp(fnX-peak), which is 1 at most, and at the peak
// itself: no logarithm of a probability is above 0. With instructions for table
// look-ups it is 2^(i/32) * 2^r, the first by its last bits from a table and by
// the others from the exponent, the second, of a number no larger than 1/64, as
// 1 + r*p. Its error is 2 units in the last place and the roundings of the
// difference and of log2(e), and it is 0 where it is no normal number.
func (a *assembler) expFromPeak() {
	a.ps("VSUBPS", smPeak, fnX, fnX)
	if !a.masks {
		a.bound("VMAXPS", expLeast, fnX, fnX)
		a.exp(fnX, fnR, fnN, fnE)
		return
	}
	const (
		leastNormal = -87.33
		roundBias   = 0x1.8p18 // adding it rounds to a multiple of 1/32, and leaves that in the last bits
	)
	a.op("VCMPPS $%d, %s, %s, %s", notLess, a.f32(leastNormal), a.v(fnX), testMask)
	a.constantTo(roundBias, fnN)
	a.op("VFMADD231PS %s, %s, %s", a.f32(math.Log2E), a.v(fnX), a.v(fnN))
	a.op("VSUBPS %s, %s, %s", a.f32(roundBias), a.v(fnN), a.v(fnR))
	a.op("VFMSUB231PS %s, %s, %s", a.f32(math.Log2E), a.v(fnX), a.v(fnR))
	a.op("VPSLLD $%d, %s, %s", partsShift, a.v(fnN), a.v(fnE))
	a.lookup(partTable, fnN, fnN)
	a.op("VPADDD %s, %s, %s", a.v(fnE), a.v(fnN), a.v(fnN))
	a.horner(fnE, fnR, 0.24022866785526276, 0.6931573748588562)
	a.ps("VMULPS", fnN, fnR, fnR)
	a.op("VFMADD213PS.Z %s, %s, %s, %s", a.v(fnN), a.v(fnR), testMask, a.v(fnE))
}

// partsShift moves the integer of a number of 32nds to the exponent.
const partsShift = 23 - 5

// partTable has 2^(i/32), less the amount that the last bits of i add when they
// are shifted with the others.
var partTable = func() (t lookup) {
	for i := range t {
		part := math.Float32bits(float32(math.Exp2(float64(i) / float64(len(t)))))
		t[i] = math.Float32frombits(part - uint32(i)<<partsShift)
	}
	return t
}()

// expSumLoop leaves the sum in the first lane of smSum. It prefetches at the
// distance in the register ahead.
func (a *assembler) expSumLoop(keep bool, ahead string) {
	pointers := []string{"SI", "DI"}
	if !keep {
		pointers = pointers[:1]
	}
	for i := range smSums {
		a.op("VXORPS %s, %s, %s", a.v(smSum+i), a.v(smSum+i), a.v(smSum+i))
	}
	a.pin(a.expFromPeak)
	iteration := 0
	a.rowLoop(pointers, smSums, func(at func(string) string, tail bool) {
		a.fetchAhead(at("SI"), ahead, iteration, tail)
		a.load(at("SI"), fnX, false, tail)
		a.expFromPeak()
		if keep {
			a.store(fnE, at("DI"), false, tail)
		}
		if tail {
			a.dropTail(fnE)
		}
		a.ps("VADDPS", fnE, smSum+iteration%smSums, smSum+iteration%smSums)
		iteration++
	})
	a.ps("VADDPS", smSum+1, smSum, smSum)
	a.foldLanes("VADDPS", smSum, fnX)
}

// dropTail clears the lanes of a vector beyond the tail.
func (a *assembler) dropTail(v int) {
	if a.masks {
		a.op("VMOVAPS.Z %s, %s, %s", a.v(v), tailMask, a.v(v))
		return
	}
	a.op("VANDPS %s, %s, %s", a.v(tailVector), a.v(v), a.v(v))
}

// softmaxRow takes three passes over a row that lies in the first cache: the
// largest element, exponentials and their sum, the quotient. A NaN is not the
// largest element, but its exponential spoils the sum.
func (a *assembler) softmaxRow() {
	const peaks = 4
	a.function("softmaxRow", "is exp(x[i]) / sum(exp(x[j])); n is not 0.", []param{argN, argDst, argX}, nil)
	a.op("MOVQ %s, R8", a.arg(argN))
	a.op("MOVQ %s, R9", a.arg(argDst))
	a.op("MOVQ %s, R10", a.arg(argX))
	a.op("MOVQ R8, CX")
	a.op("MOVQ R10, SI")
	for i := range peaks {
		a.op("VBROADCASTSS (SI), %s", a.v(i))
	}
	iteration := 0
	a.rowLoop([]string{"SI"}, peaks, func(at func(string) string, tail bool) {
		if tail {
			a.load(at("SI"), peaks, false, true)
			a.fillTail(0, peaks)
			a.op("VMAXPS %s, %s, %s", a.v(0), a.v(peaks), a.v(0))
			return
		}
		a.load(at("SI"), peaks, false, false)
		a.op("VMAXPS %s, %s, %s", a.v(iteration%peaks), a.v(peaks), a.v(iteration%peaks))
		iteration++
	})
	for _, p := range [][2]int{{1, 0}, {3, 2}, {2, 0}} {
		a.pickLanes("VMAXPS", p[0], p[1])
	}
	a.foldLanes("VMAXPS", 0, peaks)
	a.op("VBROADCASTSS X0, %s", a.v(smPeak))
	a.op("LEAQ (R8*4), R11")
	a.op("MOVQ R8, CX")
	a.op("MOVQ R10, SI")
	a.op("MOVQ R9, DI")
	a.expSumLoop(true, "R11")
	a.constantTo(1, smScale)
	a.op("VDIVSS X%d, X%d, X%d", smSum, smScale, smScale)
	a.op("VBROADCASTSS X%d, %s", smScale, a.v(smScale))
	a.op("MOVQ R8, CX")
	a.op("MOVQ R9, DI")
	a.rowLoop([]string{"DI"}, 4, func(at func(string) string, tail bool) {
		a.load(at("DI"), fnX, false, tail)
		a.ps("VMULPS", smScale, fnX, fnX)
		a.store(fnX, at("DI"), false, tail)
	})
	a.ret()
}

// softmaxNext works on three rows at once, so that the memory and all parts of
// the processor are busy all the time: it writes the quotients of one, takes
// the exponentials of the next, and looks for the largest element of the one
// two behind that. It prefetches two pages behind that one: with less, lines
// arrive too late for short rows. Before that it prefetches much further,
// without filling the last cache, which two threads fill with their results.
func (a *assembler) softmaxNext(name string, stream bool) {
	top, sum := param{"top", "float32"}, param{"sum", "float32"}
	in := []param{argN, argDst, {"from", "*float32"}, {"to", "*float32"}, argX, {"later", "*float32"}, argS, argT}
	a.function(name, "is dst[i] = from[i]*t and to[i] = exp(x[i]-s), whose sum is sum; top is the largest of later[i]. n is not 0, and to may be from.",
		in, []param{top, sum})
	for i, reg := range []string{"CX", "R9", "R10", "DI", "SI", "R12"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.op("VBROADCASTSS %s, %s", a.arg(in[6]), a.v(smPeak))
	a.op("VBROADCASTSS %s, %s", a.arg(in[7]), a.v(smScale))
	a.op("LEAQ 8192(CX*8), R11")
	a.op("LEAQ 49152(CX*8), R13")
	for i := range smSums {
		a.op("VXORPS %s, %s, %s", a.v(smSum+i), a.v(smSum+i), a.v(smSum+i))
		a.op("VBROADCASTSS (R12), %s", a.v(smPeaks+i))
	}
	a.pin(a.expFromPeak)
	iteration := 0
	a.rowLoop([]string{"SI", "R10", "R9", "DI", "R12"}, smSums, func(at func(string) string, tail bool) {
		a.fetchAhead(at("SI"), "R11", iteration, tail)
		a.fetchFar(at("SI"), "R13", iteration, tail)
		a.load(at("SI"), fnX, false, tail)
		a.expFromPeak()
		a.load(at("R10"), smFrom, false, tail)
		a.ps("VMULPS", smScale, smFrom, smFrom)
		a.storeTo(stream, smFrom, at("R9"), tail)
		a.store(fnE, at("DI"), false, tail)
		a.load(at("R12"), smLater, false, tail)
		if tail {
			a.dropTail(fnE)
			a.fillTail(smPeaks, smLater)
		}
		a.ps("VADDPS", fnE, smSum+iteration%smSums, smSum+iteration%smSums)
		a.ps("VMAXPS", smPeaks+iteration%smSums, smLater, smPeaks+iteration%smSums)
		iteration++
	})
	a.ps("VADDPS", smSum+1, smSum, smSum)
	a.pickLanes("VMAXPS", smPeaks+1, smPeaks)
	a.foldLanes("VADDPS", smSum, fnX)
	a.foldLanes("VMAXPS", smPeaks, fnX)
	a.op("VMOVSS X%d, %s", smPeaks, a.result(top))
	a.op("VMOVSS X%d, %s", smSum, a.arg(sum))
	a.ret()
}

// expSumColumns is expSum for neighbours that belong to rows of their own.
func (a *assembler) expSumColumns() {
	in := []param{argN, argDst, argX, {"peak", "*float32"}, {"sum", "*float32"}}
	a.function("expSumColumns", "is exp(x[i]-peak[i]), which it adds to sum[i].", in, nil)
	for i, reg := range []string{"CX", "DI", "SI", "DX", "R8"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.pin(a.expFromPeak)
	a.rowLoop([]string{"DI", "SI", "DX", "R8"}, 2, func(at func(string) string, tail bool) {
		a.load(at("SI"), fnX, false, tail)
		a.load(at("DX"), smPeak, false, tail)
		a.expFromPeak()
		a.store(fnE, at("DI"), false, tail)
		a.load(at("R8"), smSum, false, tail)
		a.ps("VADDPS", fnE, smSum, smSum)
		a.store(smSum, at("R8"), false, tail)
	})
	a.ret()
}
