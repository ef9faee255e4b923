package main

import "fmt"

// Sums and products of quantised numbers, on machines with wide vectors of
// bytes: a vector of 64 bytes becomes four of floats, whose results are packed
// in the same order.
//
// Arguments come in a kernel.ByteArithmetic, whose fields are read at these
// offsets.
const (
	arithmeticOut = 8 * iota
	arithmeticA
	arithmeticB
	arithmeticN
	arithmeticOne
	arithmeticFlipA
	arithmeticFlipB
	arithmeticFlipOut
	arithmeticRatioA
	arithmeticRest
	arithmeticZeroB
	arithmeticRatioB = arithmeticRatioA + 4
	arithmeticZeroA  = arithmeticRest + 4
	arithmeticOffset = arithmeticZeroB + 4
)

// Vectors of byteArithmetic that no iteration changes.
const (
	arithmeticFlips  = 16 + iota // of a, b and the result
	_                            //
	_                            //
	arithmeticRatios             // of a and b
	_                            //
	arithmeticAdd
	arithmeticZeros // of a and b
	_               //
	arithmeticMove  // words
	arithmeticMost
	arithmeticNothing
	arithmeticAlone // the only number of b
)

func (a *assembler) byteArithmetics() {
	for _, k := range []struct {
		field, name string
		product     bool
	}{{"Add", "addBytes", false}, {"Multiply", "multiplyBytes", true}} {
		a.byteArithmetic(k.name, k.product)
		fmt.Fprintf(&a.stubs, "\nfunc %[1]sOf%[2]s(call kernel.ByteArithmetic) { %[1]s%[2]s(&call) }\n", k.name, a.suffix)
		a.set(k.field, k.name+"Of"+a.suffix)
	}
}

func (a *assembler) byteArithmetic(name string, product bool) {
	call := param{"call", "*kernel.ByteArithmetic"}
	a.function(name, "computes a row of sums or of products.", []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{arithmeticOut, "DI"}, {arithmeticA, "SI"}, {arithmeticB, "R8"}, {arithmeticN, "CX"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	for i, at := range []int{arithmeticFlipA, arithmeticFlipB, arithmeticFlipOut} {
		a.op("VPBROADCASTQ %d(AX), %s", at, a.v(arithmeticFlips+i))
	}
	for _, f := range []struct{ at, to int }{{arithmeticRatioA, arithmeticRatios}, {arithmeticRatioB, arithmeticRatios + 1}, {arithmeticRest, arithmeticAdd},
		{arithmeticZeroA, arithmeticZeros}, {arithmeticZeroB, arithmeticZeros + 1}, {arithmeticOffset, arithmeticMove}} {
		a.op("VPBROADCASTD %d(AX), %s", f.at, a.v(f.to))
	}
	a.constantTo(1<<20, arithmeticMost)
	a.op("VPXORD %[1]s, %[1]s, %[1]s", a.v(arithmeticNothing))
	a.op("CMPQ %d(AX), $0", arithmeticOne)
	a.op("JNE one")
	a.arithmeticLoop("", product, false)
	a.label("one")
	a.op("VPBROADCASTB (R8), %s", a.v(4))
	a.widenQuantised(4, 1, 1, product)
	a.op("VMOVUPS %s, %s", a.v(4), a.v(arithmeticAlone))
	a.arithmeticLoop("one", product, true)
}

// arithmeticLoop goes over whole vectors, and the rest of the row.
func (a *assembler) arithmeticLoop(name string, product, one bool) {
	a.op("SUBQ $64, CX")
	a.op("JLT %srest", name)
	a.label(name + "vectors")
	a.op("VMOVDQU64 (SI), %s", a.v(0))
	if !one {
		a.op("VMOVDQU64 (R8), %s", a.v(4))
		a.op("ADDQ $64, R8")
	}
	a.arithmeticVectors(product, one)
	a.op("VMOVDQU64 %s, (DI)", a.v(0))
	a.op("ADDQ $64, SI")
	a.op("ADDQ $64, DI")
	a.op("SUBQ $64, CX")
	a.op("JGE %svectors", name)
	a.label(name + "rest")
	a.op("ADDQ $64, CX")
	a.op("JZ %sdone", name)
	a.lastBytes()
	a.op("VMOVDQU8.Z (SI), K1, %s", a.v(0))
	if !one {
		a.op("VMOVDQU8.Z (R8), K1, %s", a.v(4))
	}
	a.arithmeticVectors(product, one)
	a.op("VMOVDQU8 %s, K1, (DI)", a.v(0))
	a.label(name + "done")
	a.ret()
}

// lastBytes sets K1 to the first CX bytes of a vector, fewer than all.
func (a *assembler) lastBytes() {
	a.op("MOVQ $-1, BX")
	a.op("BZHIQ CX, BX, BX")
	a.op("KMOVQ BX, K1")
}

// arithmeticVectors computes a vector of bytes from those in 0 and, unless b is
// one, 4.
func (a *assembler) arithmeticVectors(product, one bool) {
	a.widenQuantised(0, 0, 4, product)
	if !one {
		a.widenQuantised(4, 1, 4, product)
	}
	for i := range 4 {
		b := 4 + i
		if one {
			b = arithmeticAlone
		}
		if product {
			a.ps("VMULPS", b, i, i)
			a.ps("VMULPS", arithmeticRatios, i, i)
		} else {
			a.ps("VADDPS", b, i, i)
		}
		a.ps("VADDPS", arithmeticAdd, i, i)
		a.ps("VMINPS", arithmeticMost, i, i)
		a.op("VCVTPS2DQ %s, %s", a.v(i), a.v(i))
	}
	a.packBytesOf(0, arithmeticMove, arithmeticFlips+2)
}

// packBytesOf makes four vectors of integers bytes, which saturate, in the
// first one: the lanes of 16 bytes have four of each. Words are added before,
// and flips taken afterwards.
func (a *assembler) packBytesOf(first, add, flip int) {
	for i := 0; i < 4; i += 2 {
		a.ps("VPACKSSDW", first+i+1, first+i, first+i)
		a.ps("VPADDSW", add, first+i, first+i)
	}
	a.ps("VPACKUSWB", first+2, first, first)
	a.ps(map[bool]string{true: "VPXORD", false: "VPXOR"}[a.masks], flip, first, first)
}

// transposedLanes returns the order in which the words follow each other that
// are the first of the lanes of 16 bytes, then the second ones, and so on: all
// bytes of one of the vectors that packBytesOf has packed, then those of the
// next.
func (a *assembler) transposedLanes() string {
	var o []uint32
	for word := range 4 {
		for lane := range a.lanes / 4 {
			o = append(o, uint32(4*lane+word))
		}
	}
	return a.order(o)
}

// widenQuantised makes floats, factors of a product or terms of a sum, of the
// bytes in a vector: the first n of the four vectors that it becomes.
func (a *assembler) widenQuantised(first, operand, n int, product bool) {
	const low, high = 8, 9
	a.ps("VPXORD", arithmeticFlips+operand, first, first)
	a.ps("VPUNPCKLBW", arithmeticNothing, first, low)
	a.ps("VPUNPCKHBW", arithmeticNothing, first, high)
	for i := range n {
		a.ps([]string{"VPUNPCKLWD", "VPUNPCKHWD"}[i%2], arithmeticNothing, low+i/2, first+i)
		a.ps("VPSUBD", arithmeticZeros+operand, first+i, first+i)
		a.op("VCVTDQ2PS %s, %s", a.v(first+i), a.v(first+i))
		if !product {
			a.ps("VMULPS", arithmeticRatios+operand, first+i, first+i)
		}
	}
}

// lookupBytes takes bytes from a table of 256, which lies in four vectors.
func (a *assembler) lookupBytes() {
	in := []param{{"n", "int"}, {"dst", "*byte"}, {"x", "*byte"}, {"table", "*byte"}}
	a.function("lookupBytes", "is table[x[i]] for n bytes.", in, nil)
	for i, reg := range []string{"CX", "DI", "SI", "R8"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	const x, upper, table = 0, 1, 16
	for i := range 4 {
		a.op("VMOVDQU64 %d(R8), %s", 64*i, a.v(table+i))
	}
	look := func() {
		a.op("VPMOVB2M %s, K2", a.v(x))
		a.op("VMOVDQA64 %s, %s", a.v(x), a.v(upper))
		a.ps("VPERMI2B", table+1, table, x)
		a.ps("VPERMI2B", table+3, table+2, upper)
		a.op("VPBLENDMB %s, %s, K2, %s", a.v(upper), a.v(x), a.v(x))
	}
	a.op("SUBQ $64, CX")
	a.op("JLT rest")
	a.label("vectors")
	a.op("VMOVDQU64 (SI), %s", a.v(x))
	look()
	a.op("VMOVDQU64 %s, (DI)", a.v(x))
	a.op("ADDQ $64, SI")
	a.op("ADDQ $64, DI")
	a.op("SUBQ $64, CX")
	a.op("JGE vectors")
	a.label("rest")
	a.op("ADDQ $64, CX")
	a.op("JZ done")
	a.lastBytes()
	a.op("VMOVDQU8.Z (SI), K1, %s", a.v(x))
	look()
	a.op("VMOVDQU8 %s, K1, (DI)", a.v(x))
	a.label("done")
	a.ret()
}
