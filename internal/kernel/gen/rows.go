package main

import "fmt"

// Vectors of an elementwise kernel: the operand, which becomes the result, the
// second operand, the scalars, and the free ones.
const (
	vecX = iota
	vecY
	vecS
	vecT
	vecFree
)

// elementwise is a loop dst[i] = f(x[i], y[i]; s, t).
func (a *assembler) elementwise(name, doc string, in []param, f func(x, y, s, t, free string)) {
	in = append([]param{argN, argDst}, in...)
	a.function(name, doc, in, nil)
	pointers := []string{"DI"}
	two := false
	for _, p := range in {
		at := a.arg(p)
		switch p {
		case argN:
			a.op("MOVQ %s, CX", at)
		case argDst:
			a.op("MOVQ %s, DI", at)
		case argX:
			a.op("MOVQ %s, SI", at)
			pointers = append(pointers, "SI")
		case argY:
			a.op("MOVQ %s, DX", at)
			pointers = append(pointers, "DX")
			two = true
		case argS:
			a.op("VBROADCASTSS %s, %s", at, a.v(vecS))
		case argT:
			a.op("VBROADCASTSS %s, %s", at, a.v(vecT))
		}
	}
	ahead, iteration := "", 0
	if !a.masks && !two { // with masks this is the code for short rows; two rows at once keep memory busy
		ahead = a.twoPages()
	}
	a.rowLoop(pointers, 4, func(at func(string) string, tail bool) {
		a.fetchAhead(at("SI"), ahead, iteration, tail)
		iteration++
		a.load(at("SI"), vecX, false, tail)
		if two {
			a.load(at("DX"), vecY, false, tail)
		}
		f(a.v(vecX), a.v(vecY), a.v(vecS), a.v(vecT), a.v(vecFree))
		a.store(vecX, at("DI"), false, tail)
	})
	a.ret()
}

func (a *assembler) rowKernels() {
	a.binaryKernels()
	a.powerKernels()
	a.normKernels()
	a.rowSums()
	a.rowMax()
	a.rowFunctions()
	a.softmaxKernels()
	a.momentKernels()
	a.stream()
	a.halfKernels()
	a.set("Bytes", a.bytes())
	a.rowTable()
}

// rowTable puts the functions of this part into the table.
func (a *assembler) rowTable() {
	for op, text := range map[string]string{"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Min": "minimum", "Max": "maximum"} {
		a.put("BinaryVV", "BinaryRows", a.shortAndLong(text), "kernel."+op)
	}
	for op, text := range map[string]string{"Add": "addScalar", "Sub": "subScalar", "Mul": "mulScalar", "Div": "divScalar", "Prelu": "leakyRelu"} {
		a.put("BinaryVS", "BinaryRowsS", a.shortAndLong(text), "kernel."+op)
	}
	for op, text := range map[string]string{"Add": "addScalar", "Sub": "subFrom", "Mul": "mulScalar", "Div": "divInto"} {
		a.put("BinarySV", "BinaryRowsS", a.shortAndLong(text), "kernel."+op)
	}
	for _, name := range []string{
		"cube", "threeQuarters", "sum", "squares", "max", "min", "softmaxRow", "softmaxNext", "softmaxNextStream", "expSum", "expOnlySum",
		"expScale", "expSumColumns", "deviations", "deviationsAhead", "normScale", "normBias", "normBiasStream", "normNext",
	} {
		a.set(capital(name), name+a.suffix)
	}
	if !a.masks {
		for _, name := range []string{"stream", "fence", "widenF16", "widenBF16", "narrowF16", "narrowBF16"} {
			a.set(capital(name), name+a.suffix)
		}
	}
}

// short names the one form of a function.
func (a *assembler) short(name string) string {
	return fmt.Sprintf("{Short: %[1]s%[2]s, Long: %[1]s%[2]s}", name, a.suffix)
}

// shortAndLong names both forms of a function of a few instructions: long rows
// are read with the vectors of AVX2, by all machines.
func (a *assembler) shortAndLong(name string) string {
	return fmt.Sprintf("{Short: %[1]s%[2]s, Long: %[1]s%[3]s}", name, a.suffix, avx2.suffix)
}

func (a *assembler) binaryKernels() {
	for _, k := range []struct{ name, instruction, text string }{
		{"add", "VADDPS", "+"}, {"sub", "VSUBPS", "-"}, {"mul", "VMULPS", "*"}, {"div", "VDIVPS", "/"},
	} {
		a.elementwise(k.name, "is x[i] "+k.text+" y[i].", []param{argX, argY}, func(x, y, _, _, _ string) {
			a.op("%s %s, %s, %s", k.instruction, y, x, x)
		})
		a.elementwise(k.name+"Scalar", "is x[i] "+k.text+" s.", []param{argX, argS}, func(x, _, s, _, _ string) {
			a.op("%s %s, %s, %s", k.instruction, s, x, x)
		})
	}
	for _, k := range []struct{ name, instruction, text string }{{"minimum", "VMINPS", "smaller"}, {"maximum", "VMAXPS", "larger"}} {
		a.elementwise(k.name, "is the "+k.text+" of x[i] and y[i], or NaN if either is.", []param{argX, argY}, func(x, y, _, _, free string) {
			a.op("VMOVAPS %s, %s", x, free)
			a.op("%s %s, %s, %s", k.instruction, y, x, free)
			a.choose("PS", unordered, x, x, x, free)
			a.op("VMOVAPS %s, %s", free, x)
		})
	}
	a.elementwise("subFrom", "is s - x[i].", []param{argX, argS}, func(x, _, s, _, _ string) { a.op("VSUBPS %s, %s, %s", x, s, x) })
	a.elementwise("divInto", "is s / x[i].", []param{argX, argS}, func(x, _, s, _, _ string) { a.op("VDIVPS %s, %s, %s", x, s, x) })
}

// powerKernels has the powers that models use.
func (a *assembler) powerKernels() {
	a.elementwise("cube", "is x[i]^3.", []param{argX}, func(x, _, _, _, free string) {
		a.op("VMULPS %s, %s, %s", x, x, free)
		a.op("VMULPS %s, %s, %s", free, x, x)
	})
	a.elementwise("threeQuarters", "is x[i]^(3/4), for positive numbers.", []param{argX}, func(x, _, _, _, free string) {
		a.op("VSQRTPS %s, %s", x, x)
		a.op("VSQRTPS %s, %s", x, free)
		a.op("VMULPS %s, %s, %s", free, x, x)
	})
}

func (a *assembler) normKernels() {
	in := []param{argX, argY, argS, argT}
	a.elementwise("normScale", "is (x[i] - s) * t * y[i].", in, func(x, y, s, t, _ string) {
		a.op("VSUBPS %s, %s, %s", s, x, x)
		a.op("VMULPS %s, %s, %s", t, x, x)
		a.op("VMULPS %s, %s, %s", y, x, x)
	})
	a.normBias("normBias", false)
	a.normBias("normBiasStream", true)
	a.normNext()
}

// normBias normalises a row that the caches hold.
func (a *assembler) normBias(name string, stream bool) {
	a.function(name, "is (x[i] - s) * t * y[i] + z[i].", []param{argN, argDst, argX, argY, {"z", "*float32"}, argS, argT}, nil)
	for _, p := range []struct {
		param
		reg string
	}{{argN, "CX"}, {argDst, "DI"}, {argX, "SI"}, {argY, "DX"}, {param{"z", "*float32"}, "R8"}} {
		a.op("MOVQ %s, %s", a.arg(p.param), p.reg)
	}
	x, y, s, t, z := a.v(vecX), a.v(vecY), a.v(vecS), a.v(vecT), a.v(vecFree)
	a.op("VBROADCASTSS %s, %s", a.arg(argS), s)
	a.op("VBROADCASTSS %s, %s", a.arg(argT), t)
	a.rowLoop([]string{"DI", "SI", "DX", "R8"}, 4, func(at func(string) string, tail bool) {
		a.load(at("SI"), vecX, false, tail)
		a.load(at("DX"), vecY, false, tail)
		a.load(at("R8"), vecFree, false, tail)
		a.op("VSUBPS %s, %s, %s", s, x, x)
		a.op("VMULPS %s, %s, %s", t, x, x)
		a.op("VFMADD213PS %s, %s, %s", z, y, x)
		a.storeTo(stream, vecX, at("DI"), tail)
	})
	a.ret()
}

// normNext normalises a row while it takes the moments of the next, for rows
// that the caches hold: one pass instead of two.
func (a *assembler) normNext() {
	const next, about, sums, squares = vecFree + 1, vecFree + 2, vecFree + 3, vecFree + 7
	sum, square := param{"sum", "float32"}, param{"squares", "float32"}
	in := []param{argN, argDst, argX, argY, {"z", "*float32"}, {"next", "*float32"}, argS, argT, {"about", "float32"}}
	a.function("normNext", "is (x[i] - s) * t * y[i] + z[i]; the sums are those of next[i]-about and of its square.", in, []param{sum, square})
	for i, reg := range []string{"CX", "DI", "SI", "DX", "R8", "R9"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	for i, v := range []int{vecS, vecT, about} {
		a.op("VBROADCASTSS %s, %s", a.arg(in[6+i]), a.v(v))
	}
	a.clear(sums, 8)
	x, y, z, s, t := a.v(vecX), a.v(vecY), a.v(vecFree), a.v(vecS), a.v(vecT)
	iteration := 0
	a.rowLoop([]string{"DI", "SI", "DX", "R8", "R9"}, 4, func(at func(string) string, tail bool) {
		a.load(at("R9"), next, false, tail)
		a.load(at("SI"), vecX, false, tail)
		a.load(at("DX"), vecY, false, tail)
		a.load(at("R8"), vecFree, false, tail)
		a.ps("VSUBPS", about, next, next)
		if tail {
			a.dropTail(next)
		}
		a.op("VSUBPS %s, %s, %s", s, x, x)
		a.op("VMULPS %s, %s, %s", t, x, x)
		a.op("VFMADD213PS %s, %s, %s", z, y, x)
		a.store(vecX, at("DI"), false, tail)
		a.ps("VADDPS", next, sums+iteration%4, sums+iteration%4)
		a.ps("VFMADD231PS", next, next, squares+iteration%4)
		iteration++
	})
	a.foldFour(sums, vecX)
	a.foldFour(squares, vecX)
	a.op("VMOVSS X%d, %s", sums, a.result(sum))
	a.op("VMOVSS X%d, %s", squares, a.arg(square))
	a.ret()
}

// rowSums adds up in float64, half a vector of float32 at a time, with four
// sums so that additions do not wait for each other.
func (a *assembler) rowSums() {
	sum := param{"sum", "float64"}
	const sums, x, about = 4, 4, 5
	start := func() {
		for i := range sums {
			a.op("VXORPD %s, %s, %s", a.v(i), a.v(i), a.v(i))
		}
	}
	finish := func() {
		a.op("VADDPD %s, %s, %s", a.v(1), a.v(0), a.v(0))
		a.op("VADDPD %s, %s, %s", a.v(3), a.v(2), a.v(2))
		a.op("VADDPD %s, %s, %s", a.v(2), a.v(0), a.v(0))
		a.addDoubles(0, x)
		a.op("VMOVSD X0, %s", a.result(sum))
		a.ret()
	}
	a.function("sum", "is the sum of x[i].", []param{argN, argX}, []param{sum})
	a.op("MOVQ %s, CX", a.arg(argN))
	a.op("MOVQ %s, SI", a.arg(argX))
	start()
	iteration := 0
	a.loop([]string{"SI"}, sums, a.lanes/2, func(at func(string) string, tail bool) {
		a.loadDoubles(at("SI"), x, tail)
		a.op("VADDPD %s, %s, %s", a.v(x), a.v(iteration%sums), a.v(iteration%sums))
		iteration++
	})
	finish()

	a.function("squares", "is the sum of (x[i]-s)^2.", []param{argN, argX, argS}, []param{sum})
	a.op("MOVQ %s, CX", a.arg(argN))
	a.op("MOVQ %s, SI", a.arg(argX))
	a.op("VBROADCASTSS %s, %s", a.arg(argS), a.h(about))
	a.op("VCVTPS2PD %s, %s", a.h(about), a.v(about))
	start()
	iteration = 0
	a.loop([]string{"SI"}, sums, a.lanes/2, func(at func(string) string, tail bool) {
		a.loadDoubles(at("SI"), x, tail)
		a.op("VSUBPD %s, %s, %s", a.v(about), a.v(x), a.v(x))
		if tail { // the lanes that are not there would add the square of s
			a.keepTail(x)
		}
		a.op("VFMADD231PD %s, %s, %s", a.v(x), a.v(x), a.v(iteration%sums))
		iteration++
	})
	finish()
}

// loadDoubles loads half a vector of float32 as a vector of float64.
func (a *assembler) loadDoubles(from string, to int, tail bool) {
	if !tail {
		a.op("VCVTPS2PD %s, %s", from, a.v(to))
		return
	}
	a.load(from, to, true, true)
	a.op("VCVTPS2PD %s, %s", a.h(to), a.v(to))
}

// keepTail clears the lanes of a vector of float64 that lie beyond the tail. It
// spoils the vector after it but one.
func (a *assembler) keepTail(v int) {
	if a.masks {
		a.op("VMOVAPD.Z %s, %s, %s", a.v(v), tailMask, a.v(v))
		return
	}
	a.op("VPMOVSXDQ %s, %s", a.h(tailVector), a.v(v+2))
	a.op("VANDPD %s, %s, %s", a.v(v+2), a.v(v), a.v(v))
}

// addDoubles adds up a vector of float64 into its first lane.
func (a *assembler) addDoubles(v, spare int) {
	if a.masks {
		a.op("VEXTRACTF64X4 $1, Z%d, Y%d", v, spare)
		a.op("VADDPD Y%d, Y%d, Y%d", spare, v, v)
	}
	a.op("VEXTRACTF128 $1, Y%d, X%d", v, spare)
	a.op("VADDPD X%d, X%d, X%d", spare, v, v)
	a.op("VPERMILPD $1, X%d, X%d", v, spare)
	a.op("VADDSD X%d, X%d, X%d", spare, v, v)
}

// rowMax returns the largest number, and a number that is NaN if any is: the
// sum of x[i] - x[i] would be NaN for infinities, too, so it keeps unordered
// elements.
func (a *assembler) rowMax() {
	peak := param{"peak", "float32"}
	for _, k := range []struct{ name, instruction, doc string }{{"max", "VMAXPS", "largest"}, {"min", "VMINPS", "smallest"}} {
		a.function(k.name, "is the "+k.doc+" of s and x[i], or NaN if one of x[i] is.", []param{argN, argX, argS}, []param{peak})
		a.op("MOVQ %s, CX", a.arg(argN))
		a.op("MOVQ %s, SI", a.arg(argX))
		const peaks, x, nan, start = 4, 4, 5, 6
		a.op("VBROADCASTSS %s, %s", a.arg(argS), a.v(start))
		for i := range peaks {
			a.op("VMOVAPS %s, %s", a.v(start), a.v(i))
		}
		a.op("VMOVAPS %s, %s", a.v(start), a.v(nan))
		iteration := 0
		a.rowLoop([]string{"SI"}, peaks, func(at func(string) string, tail bool) {
			a.load(at("SI"), x, false, tail)
			if tail { // the lanes that are not there hold zeros
				a.fillTail(start, x)
			}
			a.op("%s %s, %s, %s", k.instruction, a.v(x), a.v(iteration%peaks), a.v(iteration%peaks))
			a.choose("PS", unordered, a.v(x), a.v(x), a.v(x), a.v(nan))
			iteration++
		})
		for _, p := range [][2]int{{1, 0}, {3, 2}, {2, 0}} {
			a.pickLanes(k.instruction, p[0], p[1])
		}
		a.foldLanes(k.instruction, 0, x)
		a.foldLanes("VADDPS", nan, x) // start, infinite, or NaN
		a.op("VUCOMISS X%d, X%d", nan, nan)
		a.op("JPC number")
		a.op("VMOVAPS X%d, X0", nan)
		a.label("number")
		a.op("VMOVSS X0, %s", a.result(peak))
		a.ret()
	}
}

func (a *assembler) pickLanes(instruction string, from, to int) {
	a.op("%s %s, %s, %s", instruction, a.v(from), a.v(to), a.v(to))
}

// fillTail sets the lanes of a vector beyond the tail.
func (a *assembler) fillTail(from, to int) {
	if a.masks {
		a.op("KNOTW %s, %s", tailMask, testMask)
		a.op("VMOVAPS %s, %s, %s", a.v(from), testMask, a.v(to))
		return
	}
	a.op("VBLENDVPS %s, %s, %s, %s", a.v(tailVector), a.v(to), a.v(from), a.v(to))
}

// foldLanes joins the lanes of a vector into its first.
func (a *assembler) foldLanes(instruction string, v, spare int) {
	if a.masks {
		a.op("VEXTRACTF64X4 $1, Z%d, Y%d", v, spare)
		a.op("%s Y%d, Y%d, Y%d", instruction, spare, v, v)
	}
	a.op("VEXTRACTF128 $1, Y%d, X%d", v, spare)
	a.op("%s X%d, X%d, X%d", instruction, spare, v, v)
	for _, swap := range []string{"$0x4e", "$0xb1"} {
		a.op("VPERMILPS %s, X%d, X%d", swap, v, spare)
		a.op("%s X%d, X%d, X%d", instruction, spare, v, v)
	}
}
