package main

import "fmt"

// Depthwise convolutions of bytes: a vector of places of one channel takes the
// taps that one instruction adds up from one load. Each lane of 16 bytes gets
// the bytes of its places, and a shuffle lays the taps of a place side by side.
//
// Arguments come in a kernel.ByteDepthwise, whose fields are read at these
// offsets.
const (
	depthwiseOffsets = 8 * iota
	depthwiseDepth
	depthwiseX
	depthwiseXStep
	depthwiseRowStep
	depthwiseRows
	depthwiseVectors
	depthwiseWeights
	depthwiseOut
	depthwiseOutStep
	depthwisePicks
	depthwiseFlip
	depthwiseNarrow
	depthwiseScale
	depthwiseHigh
	depthwiseZero
	depthwiseLow = depthwiseScale + 4
	depthwiseAdd = depthwiseHigh + 4
)

func (a *assembler) byteDepthwise() {
	if !a.masks {
		a.pairDepthwise()
		return
	}
	call := param{"call", "*kernel.ByteDepthwise"}
	a.function("byteDepthwise", "computes rows of places of one channel.", []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{depthwiseX, "R10"}, {depthwiseRows, "R11"}, {depthwiseOut, "DX"}, {depthwiseNarrow, "R13"}, {depthwisePicks, "BX"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	const sum, x, weight, shuffle, flip, low, high, zero, scale, add, lanes = 0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 13
	a.op("VMOVUPS %d(BX), %s", a.bytes(), a.v(shuffle))
	a.op("VMOVUPS (BX), %s", a.v(lanes))
	a.op("VPBROADCASTQ %d(AX), %s", depthwiseFlip, a.v(flip))
	for _, f := range []struct{ at, to int }{{depthwiseLow, low}, {depthwiseHigh, high}, {depthwiseZero, zero}, {depthwiseScale, scale}, {depthwiseAdd, add}} {
		a.op("VBROADCASTSS %d(AX), %s", f.at, a.v(f.to))
	}
	a.label("rows")
	a.op("MOVQ %d(AX), CX", depthwiseVectors)
	a.op("MOVQ R10, BX")
	a.op("MOVQ DX, DI")
	a.label("vectors")
	a.op("MOVQ %d(AX), R8", depthwiseOffsets)
	a.op("MOVQ %d(AX), SI", depthwiseWeights)
	a.op("MOVQ %d(AX), R9", depthwiseDepth)
	a.op("VMOVUPS %s, %s", a.v(add), a.v(sum))
	a.label("taps")
	a.op("MOVLQSX (R8), R12")
	a.op("VPBROADCASTD (SI), %s", a.v(weight))
	a.op("VPXORQ (BX)(R12*1), %s, %s", a.v(flip), a.v(x))
	a.op("VPERMD %s, %s, %s", a.v(x), a.v(lanes), a.v(x))
	a.op("VPSHUFB %s, %s, %s", a.v(shuffle), a.v(x), a.v(x))
	a.op("VPDPBUSD %s, %s, %s", a.v(weight), a.v(x), a.v(sum))
	a.op("ADDQ $4, R8")
	a.op("ADDQ $4, SI")
	a.op("DECQ R9")
	a.op("JNZ taps")
	a.op("TESTQ R13, R13")
	a.op("JZ sums")
	a.op("VCVTDQ2PS %s, %s", a.v(sum), a.v(sum))
	a.ps("VMULPS", scale, sum, sum)
	a.ps("VMAXPS", low, sum, sum)
	a.ps("VMINPS", high, sum, sum)
	a.storeBytes(sum, zero, x, 0)
	a.op("ADDQ $%d, DI", a.lanes)
	a.op("JMP next")
	a.label("sums")
	a.op("VMOVUPS %s, (DI)", a.v(sum))
	a.op("ADDQ $%d, DI", a.bytes())
	a.label("next")
	a.op("ADDQ %d(AX), BX", depthwiseXStep)
	a.op("DECQ CX")
	a.op("JNZ vectors")
	a.op("ADDQ %d(AX), R10", depthwiseRowStep)
	a.op("ADDQ %d(AX), DX", depthwiseOutStep)
	a.op("DECQ R11")
	a.op("JNZ rows")
	a.ret()
}

// pairDepthwise is byteDepthwise for pairs of taps of 16 bits: up to four
// vectors of places share the loop over the taps. The input is flipped when it
// is copied.
func (a *assembler) pairDepthwise() {
	call := param{"call", "*kernel.ByteDepthwise"}
	a.function("byteDepthwise", "computes rows of places of one channel.", []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{depthwiseX, "R10"}, {depthwiseRows, "R11"}, {depthwiseOut, "DX"}, {depthwiseXStep, "R13"}, {depthwisePicks, "BX"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	const low, high, zero, scale, add, shuffle = 8, 9, 10, 11, 12, 13
	a.op("VMOVUPS %d(BX), %s", a.bytes(), a.v(shuffle))
	for _, f := range []struct{ at, to int }{{depthwiseLow, low}, {depthwiseHigh, high}, {depthwiseZero, zero}, {depthwiseScale, scale}, {depthwiseAdd, add}} {
		a.op("VBROADCASTSS %d(AX), %s", f.at, a.v(f.to))
	}
	a.label("rows")
	a.op("MOVQ %d(AX), CX", depthwiseVectors)
	a.op("MOVQ R10, BX")
	a.op("MOVQ DX, DI")
	for n := 4; n > 0; n /= 2 {
		a.label(fmt.Sprint("vectors", n))
		a.op("CMPQ CX, $%d", n)
		a.op("JLT %s", map[int]string{4: "vectors2", 2: "vectors1", 1: "next"}[n])
		a.depthwiseVectors(n, add, shuffle)
		a.depthwiseLeave(n, low, high, zero, scale)
		a.op("SUBQ $%d, CX", n)
		a.op("JMP vectors%d", n)
	}
	a.label("next")
	a.op("ADDQ %d(AX), R10", depthwiseRowStep)
	a.op("ADDQ %d(AX), DX", depthwiseOutStep)
	a.op("DECQ R11")
	a.op("JNZ rows")
	a.ret()
}

// depthwiseVectors sums up n vectors of places, which begin at BX.
func (a *assembler) depthwiseVectors(n, add, shuffle int) {
	const x, weight = 4, 6
	a.op("MOVQ %d(AX), R8", depthwiseOffsets)
	a.op("MOVQ %d(AX), SI", depthwiseWeights)
	a.op("MOVQ %d(AX), R9", depthwiseDepth)
	for i := range n {
		a.op("VMOVUPS %s, %s", a.v(add), a.v(i))
	}
	a.label(fmt.Sprint("taps", n))
	a.op("MOVLQSX (R8), R12")
	a.op("ADDQ BX, R12")
	a.op("VPBROADCASTD (SI), %s", a.v(weight))
	for i := range n {
		if i == 2 {
			a.op("LEAQ (R12)(R13*2), R12")
		}
		v := x + i%2
		a.op("VBROADCASTI128 (R12)%s, %s", map[int]string{1: "(R13*1)"}[i%2], a.v(v))
		a.op("VPSHUFB %s, %s, %s", a.v(shuffle), a.v(v), a.v(v))
		a.op("VPMADDWD %s, %s, %s", a.v(weight), a.v(v), a.v(v))
		a.op("VPADDD %s, %s, %s", a.v(v), a.v(i), a.v(i))
	}
	a.op("ADDQ $4, R8")
	a.op("ADDQ $4, SI")
	a.op("DECQ R9")
	a.op("JNZ taps%d", n)
	for range n {
		a.op("ADDQ R13, BX")
	}
}

// depthwiseLeave stores n vectors of sums, or the bytes that they become.
func (a *assembler) depthwiseLeave(n, low, high, zero, scale int) {
	const spare = 4
	a.op("CMPQ %d(AX), $0", depthwiseNarrow)
	a.op("JE sums%d", n)
	for i := range n {
		a.op("VCVTDQ2PS %s, %s", a.v(i), a.v(i))
		a.ps("VMULPS", scale, i, i)
		a.ps("VMAXPS", low, i, i)
		a.ps("VMINPS", high, i, i)
		a.storeBytes(i, zero, spare, i*a.lanes)
	}
	a.op("ADDQ $%d, DI", n*a.lanes)
	a.op("JMP left%d", n)
	a.label(fmt.Sprint("sums", n))
	for i := range n {
		a.op("VMOVUPS %s, %d(DI)", a.v(i), i*a.bytes())
	}
	a.op("ADDQ $%d, DI", n*a.bytes())
	a.label(fmt.Sprint("left", n))
}
