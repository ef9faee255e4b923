package main

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
	if a.masks {
		a.op("VMOVUPS (BX), %s", a.v(lanes))
	}
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
	if a.masks {
		a.op("VPXORQ (BX)(R12*1), %s, %s", a.v(flip), a.v(x))
		a.op("VPERMD %s, %s, %s", a.v(x), a.v(lanes), a.v(x))
		a.op("VPSHUFB %s, %s, %s", a.v(shuffle), a.v(x), a.v(x))
		a.op("VPDPBUSD %s, %s, %s", a.v(weight), a.v(x), a.v(sum))
	} else {
		a.op("VBROADCASTI128 (BX)(R12*1), %s", a.v(x))
		a.op("VPXOR %s, %s, %s", a.v(flip), a.v(x), a.v(x))
		a.op("VPSHUFB %s, %s, %s", a.v(shuffle), a.v(x), a.v(x))
		a.op("VPMADDWD %s, %s, %s", a.v(weight), a.v(x), a.v(x))
		a.op("VPADDD %s, %s, %s", a.v(x), a.v(sum), a.v(sum))
	}
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
