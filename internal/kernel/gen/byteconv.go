package main

import "fmt"

// The tiles of a direct convolution of bytes: vectors are positions of the
// output, and rows filters, whose weights are signed. The input is unsigned;
// channels lie side by side, as many as one instruction adds up.
//
// Arguments come in a kernel.ByteConvTile, whose fields are read at these
// offsets.
const (
	byteTileOffsets = 8 * iota
	byteTileDepth
	byteTileX
	byteTileWeights
	byteTileOut
	byteTileOutStep
	byteTileFrom
	byteTileFromStep
	byteTileAdd
	byteTileScale
	byteTileLow
	byteTileZero
	byteTileHigh = byteTileLow + 4
)

func (a *assembler) byteConvKernels() {
	fmt.Fprintf(&a.stubs, "\nfunc byteFilters%s(call kernel.ByteConvTile, filters int) {\n\tswitch filters {\n", a.suffix)
	for n := 1; n <= a.rows; n++ {
		fmt.Fprintf(&a.stubs, "\tcase %d:\n\t\tbyteFilter%dx%s(&call)\n", n, n, a.suffix)
	}
	a.stubs.WriteString("\t}\n}\n")
	for n := 1; n <= a.rows; n++ {
		a.byteFilter(n)
	}
	a.set("Filters", "byteFilters"+a.suffix)
	a.set("MaxFilters", a.rows)
	for stride := 1; stride <= 2; stride++ {
		name := fmt.Sprintf("interleave%dx", stride)
		a.interleave(name, stride)
		a.set(fmt.Sprint("Interleave", stride), name+a.suffix)
	}
}

// byteFilter sums for n filters and two vectors of positions.
func (a *assembler) byteFilter(n int) {
	call := param{"call", "*kernel.ByteConvTile"}
	a.function(fmt.Sprintf("byteFilter%dx", n), fmt.Sprintf("is a tile of %d filters and %d positions.", n, 2*a.lanes), []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{byteTileOffsets, "R8"}, {byteTileDepth, "R9"}, {byteTileX, "R10"}, {byteTileWeights, "SI"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	for i := range 2 * n {
		a.op("VPXOR%s %s, %s, %s", map[bool]string{true: "D"}[a.masks], a.v(i), a.v(i), a.v(i))
	}
	first := 2 * a.rows
	a.label("next")
	a.op("MOVLQSX (R8), BX")
	for half := range 2 {
		if a.masks {
			a.op("VMOVUPS %d(R10)(BX*1), %s", half*a.bytes(), a.v(first+half))
		} else {
			a.op("VPMOVZXBW %d(R10)(BX*1), %s", half*a.bytes()/2, a.v(first+half))
		}
	}
	w, product := first+2, first+3
	for i := range n {
		if a.masks {
			w = first + 2 + i%2
		}
		a.op("VPBROADCASTD %d(SI), %s", 4*i, a.v(w))
		for half := range 2 {
			x, sum := a.v(first+half), a.v(2*i+half)
			if a.masks {
				a.op("VPDPBUSD %s, %s, %s", a.v(w), x, sum)
				continue
			}
			a.op("VPMADDWD %s, %s, %s", x, a.v(w), a.v(product))
			a.op("VPADDD %s, %s, %s", a.v(product), sum, sum)
		}
	}
	a.op("ADDQ $4, R8")
	a.op("ADDQ $%d, SI", 4*n)
	a.op("DECQ R9")
	a.op("JNZ next")
	a.leaveBytes(n)
}

// leaveBytes adds the addends of the sums of n filters, and stores them or,
// with scales, the bytes that they become.
func (a *assembler) leaveBytes(n int) {
	low, high, zero, spare := 2*a.rows, 2*a.rows+1, 2*a.rows+2, 2*a.rows+3
	a.op("MOVQ %d(AX), SI", byteTileFrom)
	a.op("TESTQ SI, SI")
	a.op("JZ add")
	a.op("MOVQ %d(AX), R9", byteTileFromStep)
	for i := range n {
		for half := range 2 {
			a.op("VPADDD %d(SI), %s, %s", half*a.bytes(), a.v(2*i+half), a.v(2*i+half))
		}
		a.op("ADDQ R9, SI")
	}
	a.label("add")
	a.op("MOVQ %d(AX), SI", byteTileAdd)
	for i := range n {
		a.op("VPBROADCASTD %d(SI), %s", 4*i, a.v(spare))
		for half := range 2 {
			a.op("VPADDD %s, %s, %s", a.v(spare), a.v(2*i+half), a.v(2*i+half))
		}
	}
	a.op("MOVQ %d(AX), DI", byteTileOut)
	a.op("MOVQ %d(AX), R9", byteTileOutStep)
	a.op("MOVQ %d(AX), SI", byteTileScale)
	a.op("TESTQ SI, SI")
	a.op("JZ sums")
	a.op("VBROADCASTSS %d(AX), %s", byteTileLow, a.v(low))
	a.op("VBROADCASTSS %d(AX), %s", byteTileHigh, a.v(high))
	a.op("VPBROADCASTD %d(AX), %s", byteTileZero, a.v(zero))
	for i := range n {
		a.op("VBROADCASTSS %d(SI), %s", 4*i, a.v(spare))
		for half := range 2 {
			x := 2*i + half
			a.op("VCVTDQ2PS %s, %s", a.v(x), a.v(x))
			a.ps("VMULPS", spare, x, x)
			a.ps("VMAXPS", low, x, x)
			a.ps("VMINPS", high, x, x)
		}
		for half := range 2 {
			a.storeBytes(2*i+half, zero, spare, half*a.lanes)
		}
		a.op("ADDQ R9, DI")
	}
	a.ret()
	a.label("sums")
	for i := range n {
		for half := range 2 {
			a.op("VMOVUPS %s, %d(DI)", a.v(2*i+half), half*a.bytes())
		}
		a.op("ADDQ R9, DI")
	}
	a.ret()
}

// interleave lays the bytes of rows side by side: of four rows, or of two where
// bytes are widened. It takes each byte or every second one.
func (a *assembler) interleave(name string, stride int) {
	in := []param{{"n", "int"}, {"dst", "*byte"}, {"x0", "*byte"}, {"x1", "*byte"}, {"x2", "*byte"}, {"x3", "*byte"}, {"flip", "uint64"}}
	rows := 4
	if !a.masks {
		rows = 2
	}
	a.function(name, fmt.Sprintf("lays n times 16 bytes of %d rows side by side, each %d bytes after the one before, with flip, eight of a kind, taken; n is not 0.", rows, stride), in, nil)
	pointers := []string{"SI", "R8", "R9", "R10"}
	for i, reg := range append([]string{"CX", "DI"}, pointers...) {
		if at := a.arg(in[i]); i < 2+rows {
			a.op("MOVQ %s, %s", at, reg)
		}
	}
	a.op("VPBROADCASTQ %s, X8", a.arg(in[6]))
	if stride == 2 {
		a.op("VMOVUPS %s, X9", a.constant(0x00ff00ff00ff00ff))
	}
	a.label("vectors")
	for i, p := range pointers[:rows] {
		if stride == 1 {
			a.op("VPXOR (%s), X8, X%d", p, i)
		} else {
			a.op("VPAND (%s), X9, X%d", p, i)
			a.op("VPAND 16(%s), X9, X10", p)
			a.op("VPACKUSWB X10, X%d, X%d", i, i)
			a.op("VPXOR X%d, X8, X%d", i, i)
		}
		a.op("ADDQ $%d, %s", 16*stride, p)
	}
	for i := 0; i < rows; i += 2 {
		a.op("VPUNPCKLBW X%d, X%d, X%d", i+1, i, 4+i)
		a.op("VPUNPCKHBW X%d, X%d, X%d", i+1, i, 5+i)
	}
	if rows == 4 {
		for half := range 2 {
			a.op("VPUNPCKLWD X%d, X%d, X%d", 6+half, 4+half, 2*half)
			a.op("VPUNPCKHWD X%d, X%d, X%d", 6+half, 4+half, 2*half+1)
		}
	}
	for i := range rows {
		from := i
		if rows == 2 {
			from = 4 + i
		}
		a.op("VMOVUPS X%d, %d(DI)", from, 16*i)
	}
	a.op("ADDQ $%d, DI", 16*rows)
	a.op("DECQ CX")
	a.op("JNZ vectors")
	a.ret()
}
