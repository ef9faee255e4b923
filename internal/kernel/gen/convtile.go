package main

import (
	"fmt"
	"strings"
)

// The tiles of a direct convolution: vectors are channels of the output, whose
// weights are packed, and the input is broadcast from where it lies, position
// by position. The sums leave as rows of channels; leave transposes them into
// planes.
//
// Arguments come in a struct, whose fields are read at these offsets.
const (
	tileOffsets = 8 * iota
	tileDepth
	tileX
	tileStep
	tileJump
	tileWeights
	tileWeightStep
	tileSums
	tileSumStep
	tileAdd
)

const (
	leaveSums = 8 * iota
	leaveSumStep
	leavePositions
	leaveOut
	leaveOutStep
	leaveChannels
	leaveResidual
	leaveResidualStep
	leaveBias
	leaveLow
	leaveHigh = leaveLow + 4
)

func (a *assembler) convTiles() {
	for vectors := 1; vectors <= 2; vectors++ {
		for n := 1; n <= a.rows; n++ {
			a.convTile(n, vectors)
		}
	}
	a.tilesByName("convTiles", "ConvTile", a.rows)
	a.set("Tiles", "convTiles"+a.suffix)
	a.set("Positions", a.rows)
	a.leave()
	fmt.Fprintf(&a.stubs, "\nfunc convLeaves%[1]s(call kernel.ConvLeave) { convLeave%[1]s(&call) }\n", a.suffix)
	a.set("Leave", "convLeaves"+a.suffix)
}

// tilesByName declares what calls the tile for a number of vectors and
// positions or channels. A call by name keeps its argument on the stack, one
// through a table would not.
func (a *assembler) tilesByName(name, typ string, most int) {
	tile := strings.TrimSuffix(name, "s")
	fmt.Fprintf(&a.stubs, "\nfunc %s%s(call kernel.%s, vectors, n int) {\n\tswitch 16*vectors + n {\n", name, a.suffix, typ)
	for vectors := 1; vectors <= 2; vectors++ {
		for n := 1; n <= most; n++ {
			fmt.Fprintf(&a.stubs, "\tcase %d:\n\t\t%s%dx%dx%s(&call)\n", 16*vectors+n, tile, n, vectors, a.suffix)
		}
	}
	a.stubs.WriteString("\t}\n}\n")
}

// prefetchedWeights is how far ahead weights are asked for, in bytes.
const prefetchedWeights = 2048

// convTile sums for n positions and one or two vectors of channels. The second
// half of the positions has a base of its own, so that a tile may be two short
// rows.
func (a *assembler) convTile(n, vectors int) {
	call := param{"call", "*kernel.ConvTile"}
	a.function(fmt.Sprintf("convTile%dx%dx", n, vectors), fmt.Sprintf("is a tile of %d positions and %d channels.", n, vectors*a.lanes), []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{tileOffsets, "R8"}, {tileDepth, "R9"}, {tileX, "R10"}, {tileStep, "CX"}, {tileJump, "R11"}, {tileWeights, "DI"}, {tileWeightStep, "R13"}, {tileSums, "R12"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	a.op("LEAQ (CX)(CX*2), DX")
	a.op("LEAQ (CX)(CX*4), SI")
	half := (n + 1) / 2
	for i := range n * vectors {
		a.op("VXORPS %s, %s, %s", a.v(i), a.v(i), a.v(i))
	}
	weights := a.rows * 2
	a.label("next")
	a.op("MOVLQSX (R8), BX")
	a.op("ADDQ R10, BX")
	if n > 1 {
		a.op("LEAQ (BX)(R11*1), R15")
	}
	for v := range vectors {
		a.op("VMOVUPS %d(DI), %s", v*a.bytes(), a.v(weights+v))
	}
	for i := range n {
		base, at := "BX", i
		if i >= half {
			base, at = "R15", i-half
		}
		x := a.v(weights + 2 + i%2)
		a.op("VBROADCASTSS %s, %s", stepped(base, at), x)
		for v := range vectors {
			a.op("VFMADD231PS %s, %s, %s", a.v(weights+v), x, a.v(i*vectors+v))
		}
	}
	for v := range vectors * a.bytes() / 64 {
		a.op("PREFETCHT0 %d(DI)", prefetchedWeights+64*v)
	}
	a.op("ADDQ $4, R8")
	a.op("ADDQ R13, DI")
	a.op("DECQ R9")
	a.op("JNZ next")
	a.op("MOVQ %d(AX), R13", tileSumStep)
	a.op("CMPQ %d(AX), $0", tileAdd)
	a.op("JE store")
	a.op("MOVQ R12, BX")
	for i := range n {
		for v := range vectors {
			a.op("VADDPS %d(BX), %s, %s", v*a.bytes(), a.v(i*vectors+v), a.v(i*vectors+v))
		}
		a.op("ADDQ R13, BX")
	}
	a.label("store")
	for i := range n {
		for v := range vectors {
			a.op("VMOVUPS %s, %d(R12)", a.v(i*vectors+v), v*a.bytes())
		}
		a.op("ADDQ R13, R12")
	}
	a.ret()
}

// stepped is the place of element i behind base; elements are CX bytes apart,
// DX is three of these steps, SI five.
func stepped(base string, i int) string {
	return "(" + base + ")" + [...]string{"", "(CX*1)", "(CX*2)", "(DX*1)", "(CX*4)", "(SI*1)", "(DX*2)"}[i]
}

// leave transposes sums, a row of channels for each position, into a row of
// positions for each channel, and adds what belongs to a channel and to an
// output on the way. It takes up to a vector of channels. Sums are read for
// whole vectors of positions.
func (a *assembler) leave() {
	call := param{"call", "*kernel.ConvLeave"}
	a.function("convLeave", "writes sums as planes: out = min(max(sum + bias + residual, low), high).", []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{leaveSums, "SI"}, {leaveSumStep, "R8"}, {leavePositions, "DX"}, {leaveOut, "DI"}, {leaveOutStep, "R9"}, {leaveResidual, "R10"}, {leaveResidualStep, "R11"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	low, high, free, mask := a.v(a.lanes), a.v(a.lanes+1), a.v(a.lanes+2), a.v(a.lanes+3)
	sum := func(i int) string { return a.v(i) }
	if !a.masks { // the transposition ends in the upper registers
		low, high, free, mask = a.v(0), a.v(1), a.v(2), a.v(3)
		sum = func(i int) string { return a.v(a.lanes + i) }
	}
	a.label("positions")
	a.op("MOVQ SI, BX")
	for i := range a.lanes {
		a.op("VMOVUPS (BX), %s", a.v(i))
		a.op("ADDQ R8, BX")
	}
	a.transpose()
	a.op("VBROADCASTSS %d(AX), %s", leaveLow, low)
	a.op("VBROADCASTSS %d(AX), %s", leaveHigh, high)
	a.op("MOVQ %d(AX), R12", leaveChannels)
	a.op("MOVQ %d(AX), R13", leaveBias)
	a.op("MOVQ DI, BX")
	a.op("MOVQ R10, R15")
	a.op("MOVQ DX, CX")
	a.op("CMPQ CX, $%d", a.lanes)
	a.op("JLT some")
	a.leaveChannels(sum, low, high, free, "", "whole")
	a.op("ADDQ $%d, DI", a.bytes())
	a.op("ADDQ $%d, R10", a.bytes())
	a.op("MOVQ $%d, BX", a.lanes)
	a.op("IMULQ R8, BX")
	a.op("ADDQ BX, SI")
	a.op("SUBQ $%d, DX", a.lanes)
	a.op("JNZ positions")
	a.ret()
	a.label("some")
	if a.masks {
		a.op("MOVL $1, R8")
		a.op("SHLL CX, R8")
		a.op("DECL R8")
		a.op("KMOVW R8, %s", tailMask)
		mask = tailMask
	} else {
		a.op("LEAQ lanes%s<>+%d(SB), R8", a.suffix, 8*a.lanes)
		a.op("NEGQ CX")
		a.op("VMOVUPS (R8)(CX*4), %s", mask)
	}
	a.leaveChannels(sum, low, high, free, mask, "part")
	a.ret()
}

// leaveChannels writes one row after the other, R12 of them, at BX; R15 is the
// residual's, R13 the bias.
func (a *assembler) leaveChannels(sum func(int) string, low, high, free, mask, name string) {
	read, write := "VMOVUPS %s, %s", "VMOVUPS %s, %s"
	if mask != "" {
		read, write = "VMASKMOVPS %s, "+mask+", %s", "VMASKMOVPS %s, "+mask+", %s"
		if a.masks {
			read, write = "VMOVUPS.Z %s, "+mask+", %s", "VMOVUPS %s, "+mask+", %s"
		}
	}
	for i := range a.lanes {
		s := sum(i)
		a.op("TESTQ R13, R13")
		a.op("JZ %s_unbiased%d", name, i)
		a.op("VBROADCASTSS %d(R13), %s", 4*i, free)
		a.op("VADDPS %s, %s, %s", free, s, s)
		a.label(fmt.Sprintf("%s_unbiased%d", name, i))
		a.op("CMPQ %d(AX), $0", leaveResidual)
		a.op("JZ %s_alone%d", name, i)
		a.op(read, "(R15)", free)
		a.op("VADDPS %s, %s, %s", free, s, s)
		a.op("ADDQ R11, R15")
		a.label(fmt.Sprintf("%s_alone%d", name, i))
		a.op("VMAXPS %s, %s, %s", s, low, s)
		a.op("VMINPS %s, %s, %s", s, high, s)
		a.op(write, s, "(BX)")
		a.op("ADDQ R9, BX")
		a.op("DECQ R12")
		a.op("JZ %s_done", name)
	}
	a.label(name + "_done")
}

// transpose transposes a square of vectors, in place on machines with masks,
// else into the upper half of the registers.
func (a *assembler) transpose() {
	n := a.lanes
	for i := 0; i < n; i += 2 { // pairs
		a.op("VUNPCKLPS %s, %s, %s", a.v(i+1), a.v(i), a.v(n+i))
		a.op("VUNPCKHPS %s, %s, %s", a.v(i+1), a.v(i), a.v(n+i+1))
	}
	for i := 0; i < n; i += 4 { // fours: lane k of register i+c is channel 4k+c
		for c := range 2 {
			a.op("VUNPCKLPD %s, %s, %s", a.v(n+i+c+2), a.v(n+i+c), a.v(i+2*c))
			a.op("VUNPCKHPD %s, %s, %s", a.v(n+i+c+2), a.v(n+i+c), a.v(i+2*c+1))
		}
	}
	if !a.masks {
		for c := range 4 {
			a.op("VPERM2F128 $0x20, %s, %s, %s", a.v(4+c), a.v(c), a.v(n+c))
			a.op("VPERM2F128 $0x31, %s, %s, %s", a.v(4+c), a.v(c), a.v(n+4+c))
		}
		return
	}
	const even, odd = "$0x88", "$0xdd"
	for c := range 4 {
		for half := range 2 {
			at := 8 * half
			a.op("VSHUFF32X4 %s, %s, %s, %s", even, a.v(at+4+c), a.v(at+c), a.v(n+4*c+2*half))
			a.op("VSHUFF32X4 %s, %s, %s, %s", odd, a.v(at+4+c), a.v(at+c), a.v(n+4*c+2*half+1))
		}
	}
	for c := range 4 {
		for k := range 2 { // register n+4c+k holds lanes k and k+2 of both
			lo, hi := a.v(n+4*c+k), a.v(n+4*c+2+k)
			a.op("VSHUFF32X4 %s, %s, %s, %s", even, hi, lo, a.v(4*k+c))
			a.op("VSHUFF32X4 %s, %s, %s, %s", odd, hi, lo, a.v(4*(k+2)+c))
		}
	}
}
