package main

import "fmt"

// Depthwise convolutions of bytes on machines that take bytes from any place of
// a vector: the taps of 16 places that one instruction adds up are picked from
// 64 bytes of the input, pads from a vector of them. What is picked from where
// is a program, which all channels share.
//
// Arguments come in a kernel.ByteTaps, and its parts in kernel.ByteSegment,
// whose fields are read at these offsets.
const (
	tapsX = 8 * iota
	tapsXStep
	tapsOut
	tapsOutStep
	tapsPlanes
	tapsSegments
	tapsProgram
	tapsPatterns
	tapsWeights
	tapsDepth
	tapsPad
	tapsFlip
	tapsFlipOut
	tapsMove
)

const (
	segmentRows = 8 * iota
	segmentFours
	segmentOnes
	segmentX
	segmentOut
	segmentXStep
	segmentOutStep
	segmentProgram
	segmentSize
)

// Vectors of byteTaps: those above are sums and what was picked.
const (
	tapsWeight = 8 + iota
	tapsScale
	tapsAdd
	tapsPads
	tapsFlips
	tapsMoves
	tapsOrder
	tapsFlipsOut
	tapsMost
)

func (a *assembler) byteTaps() {
	call := param{"call", "*kernel.ByteTaps"}
	a.function("byteTaps", "computes planes of one channel each, and changes the call's number of planes.", []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{tapsX, "SI"}, {tapsOut, "R8"}, {tapsWeights, "R9"}, {tapsPatterns, "R14"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	for _, f := range []struct{ at, to int }{{tapsPad, tapsPads}, {tapsFlip, tapsFlips}, {tapsFlipOut, tapsFlipsOut}, {tapsMove, tapsMoves}} {
		a.op("VPBROADCASTQ %d(AX), %s", f.at, a.v(f.to))
	}
	a.op("VMOVDQU64 %s, %s", a.transposedLanes(), a.v(tapsOrder))
	a.constantTo(1<<20, tapsMost)
	a.label("planes")
	a.op("MOVQ %d(AX), R11", tapsSegments)
	a.op("MOVQ %d(AX), BX", tapsDepth)
	a.op("VPBROADCASTD (R9)(BX*4), %s", a.v(tapsAdd))
	a.op("VPBROADCASTD 4(R9)(BX*4), %s", a.v(tapsScale))
	a.label("segments")
	a.op("MOVQ %d(R11), CX", segmentRows)
	a.op("MOVQ %d(R11), DX", segmentX)
	a.op("ADDQ SI, DX")
	a.op("MOVQ %d(R11), DI", segmentOut)
	a.op("ADDQ R8, DI")
	a.label("rows")
	a.op("MOVQ %d(R11), R12", segmentProgram)
	a.op("SHLQ $2, R12")
	a.op("ADDQ %d(AX), R12", tapsProgram)
	for _, n := range []int{4, 1} {
		a.op("MOVQ %d(R11), R13", map[int]int{4: segmentFours, 1: segmentOnes}[n])
		a.op("TESTQ R13, R13")
		a.op("JZ none%d", n)
		a.label(fmt.Sprint("vectors", n))
		a.pickedTaps(n)
		a.op("DECQ R13")
		a.op("JNZ vectors%d", n)
		a.label(fmt.Sprint("none", n))
	}
	a.op("ADDQ %d(R11), DX", segmentXStep)
	a.op("ADDQ %d(R11), DI", segmentOutStep)
	a.op("DECQ CX")
	a.op("JNZ rows")
	a.op("ADDQ $%d, R11", segmentSize)
	a.op("CMPQ (R11), $0")
	a.op("JNE segments")
	a.op("ADDQ %d(AX), SI", tapsXStep)
	a.op("ADDQ %d(AX), R8", tapsOutStep)
	a.op("MOVQ %d(AX), BX", tapsDepth)
	a.op("LEAQ 8(R9)(BX*4), R9")
	a.op("DECQ %d(AX)", tapsPlanes)
	a.op("JNZ planes")
	a.ret()
}

// pickedTaps computes n vectors of places, and stores their bytes.
func (a *assembler) pickedTaps(n int) {
	for i := range n {
		a.op("VMOVDQA64 %s, %s", a.v(tapsAdd), a.v(i))
	}
	a.op("XORQ BX, BX")
	a.label(fmt.Sprint("taps", n))
	a.op("VPBROADCASTD (R9)(BX*4), %s", a.v(tapsWeight))
	for i := range n {
		picked := 4 + i
		a.op("MOVLQSX %d(R12), R15", 8*i)
		a.op("MOVLQSX %d(R12), R10", 8*i+4)
		a.op("VMOVDQU64 (R14)(R10*1), %s", a.v(picked))
		a.op("VPERMI2B (DX)(R15*1), %s, %s", a.v(tapsPads), a.v(picked))
		a.ps("VPXORD", tapsFlips, picked, picked)
		a.ps("VPDPBUSD", tapsWeight, picked, i)
	}
	a.op("ADDQ $%d, R12", 8*n)
	a.op("INCQ BX")
	a.op("CMPQ BX, %d(AX)", tapsDepth)
	a.op("JLT taps%d", n)
	for i := range n {
		a.narrowSums(i, tapsScale, tapsMost)
	}
	a.packBytesOf(0, tapsMoves, tapsFlipsOut)
	a.op("VPERMD %s, %s, %s", a.v(0), a.v(tapsOrder), a.v(0))
	for i := range n {
		a.op("MOVLQSX %d(R12), R15", 4*i)
		if i == 0 {
			a.op("VMOVDQU X0, (DI)(R15*1)")
			continue
		}
		a.op("VEXTRACTI32X4 $%d, %s, (DI)(R15*1)", i, a.v(0))
	}
	a.op("ADDQ $%d, R12", max(8, 4*n))
}

// narrowSums scales sums and rounds them, to at most a large number.
func (a *assembler) narrowSums(x, scale, most int) {
	a.op("VCVTDQ2PS %s, %s", a.v(x), a.v(x))
	a.ps("VMULPS", scale, x, x)
	a.ps("VMINPS", most, x, x)
	a.op("VCVTPS2DQ %s, %s", a.v(x), a.v(x))
}
