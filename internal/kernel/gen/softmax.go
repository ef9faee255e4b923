package main

import "math"

// Vectors of the softmax kernels beyond those of exp.
const (
	smPeak = fnW + 1 + iota
	smScale
	smSum
	smSums = 2
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

// expFromPeak sets fnE to exp(fnX-peak), which is 1 at most, and at the peak itself: no logarithm of a probability is above 0. With
// instructions that take a power of two apart and put it together it is 2^(d*log2(e)): the exponent is off by its last place, as the
// difference d is already.
func (a *assembler) expFromPeak() {
	a.ps("VSUBPS", smPeak, fnX, fnX)
	if !a.masks {
		a.bound("VMAXPS", expLeast, fnX, fnX)
		a.exp(fnX)
		return
	}
	const fraction = 0x01 // what is above the next integer down
	a.with("VMULPS", math.Log2E, fnX)
	a.op("VREDUCEPS $%d, %s, %s", fraction, a.v(fnX), a.v(fnR))
	a.horner(fnE, fnR, 0.0018669525161385536, 0.009017480537295341, 0.055799514055252075, 0.2401645928621292, 0.6931512951850891, 1)
	a.op("VSCALEFPS %s, %s, %s", a.v(fnX), a.v(fnE), a.v(fnE))
}

// expSumLoop leaves the sum in the first lane of smSum. It asks memory for what lies as far ahead as the register ahead says.
func (a *assembler) expSumLoop(keep bool, ahead string) {
	pointers := []string{"SI", "DI"}
	if !keep {
		pointers = pointers[:1]
	}
	for i := range smSums {
		a.op("VXORPS %s, %s, %s", a.v(smSum+i), a.v(smSum+i), a.v(smSum+i))
	}
	a.pin(a.expFromPeak)
	turn := 0
	a.rowLoop(pointers, smSums, func(at func(string) string, tail bool) {
		a.fetchAhead(at("SI"), ahead, turn, tail)
		a.load(at("SI"), fnX, false, tail)
		a.expFromPeak()
		if keep {
			a.store(fnE, at("DI"), false, tail)
		}
		if tail {
			a.dropTail(fnE)
		}
		a.ps("VADDPS", fnE, smSum+turn%smSums, smSum+turn%smSums)
		turn++
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

// softmaxRow takes three passes over a row that lies in the first cache: the largest element, exponentials and their sum, the quotient. A
// NaN is not the largest element, but its exponential spoils the sum.
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
	turn := 0
	a.rowLoop([]string{"SI"}, peaks, func(at func(string) string, tail bool) {
		if tail {
			a.load(at("SI"), peaks, false, true)
			a.fillTail(0, peaks)
			a.op("VMAXPS %s, %s, %s", a.v(0), a.v(peaks), a.v(0))
			return
		}
		a.load(at("SI"), peaks, false, false)
		a.op("VMAXPS %s, %s, %s", a.v(turn%peaks), a.v(peaks), a.v(turn%peaks))
		turn++
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

// softmaxNext is the last two passes over a row whose largest element is known. What it is still to write passes by while it looks for the
// largest element of the next row but one. The pass before computes, and leaves memory alone: so it asks memory for what lies two pages
// behind that row. At less it has not arrived when short rows come to it.
func (a *assembler) softmaxNext(name string, stream bool) {
	const peaks, x = 4, 4
	top := param{"top", "float32"}
	in := []param{argN, argDst, {"temp", "*float32"}, argX, {"next", "*float32"}, argS}
	a.function(name, "is exp(x[i]-s) / sum(exp(x[j]-s)), by way of temp, which may be dst; top is the largest of next[i]. n is not 0.", in, []param{top})
	for i, reg := range []string{"R8", "R9", "R10", "SI", "R12"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.op("VBROADCASTSS %s, %s", a.arg(in[5]), a.v(smPeak))
	a.op("LEAQ 8192(R8*8), R11")
	a.op("MOVQ R8, CX")
	a.op("MOVQ R10, DI")
	a.expSumLoop(true, "R11")
	a.constantTo(1, smScale)
	a.op("VDIVSS X%d, X%d, X%d", smSum, smScale, smScale)
	a.op("VBROADCASTSS X%d, %s", smScale, a.v(smScale))
	for i := range peaks {
		a.op("VBROADCASTSS (R12), %s", a.v(i))
	}
	a.op("MOVQ R8, CX")
	turn := 0
	a.rowLoop([]string{"R9", "R10", "R12"}, peaks, func(at func(string) string, tail bool) {
		a.load(at("R12"), x, false, tail)
		if tail {
			a.fillTail(0, x)
		}
		a.op("VMAXPS %s, %s, %s", a.v(turn%peaks), a.v(x), a.v(turn%peaks))
		a.load(at("R10"), x+1, false, tail)
		a.ps("VMULPS", smScale, x+1, x+1)
		a.storeTo(stream, x+1, at("R9"), tail)
		if !tail {
			turn++
		}
	})
	for _, p := range [][2]int{{1, 0}, {3, 2}, {2, 0}} {
		a.pickLanes("VMAXPS", p[0], p[1])
	}
	a.foldLanes("VMAXPS", 0, x)
	a.op("VMOVSS X0, %s", a.result(top))
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
