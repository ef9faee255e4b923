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
	byteTileMove
	byteTileFlip
	byteTilePanels
	byteTileXNext
	byteTileOutNext
)

func (a *assembler) byteConvKernels() {
	a.filterTable("Filters", "byteFilter", 2)
	a.set("MaxFilters", a.rows)
	if a.masks {
		a.filterTable("HalfFilters", "byteFilterHalf", 1)
		a.narrowly(func() { a.filterTable("QuarterFilters", "byteFilterQuarter", 1) })
	}
	for stride := 1; stride <= 2; stride++ {
		name := fmt.Sprintf("interleave%dx", stride)
		a.interleave(name, stride)
		fmt.Fprintf(&a.stubs, "\nfunc interleave%[1]dOf%[2]s(call kernel.ByteImage) { %[3]s%[2]s(&call) }\n", stride, a.suffix, name)
		a.set(fmt.Sprint("Interleave", stride), fmt.Sprintf("interleave%dOf%s", stride, a.suffix))
	}
	a.copyRows()
	a.set("CopyRows", "copyRows"+a.suffix)
}

// filterTable writes the tiles of all numbers of filters, of so many vectors of
// positions, and what chooses among them.
func (a *assembler) filterTable(field, name string, vectors int) {
	fmt.Fprintf(&a.stubs, "\nfunc %ss%s(call kernel.ByteConvTile, filters int) {\n\tswitch filters {\n", name, a.suffix)
	for n := 1; n <= a.rows; n++ {
		fmt.Fprintf(&a.stubs, "\tcase %d:\n\t\t%s%dx%s(&call)\n", n, name, n, a.suffix)
	}
	a.stubs.WriteString("\t}\n}\n")
	for n := 1; n <= a.rows; n++ {
		a.byteFilter(fmt.Sprintf("%s%dx", name, n), n, vectors)
	}
	a.set(field, name+"s"+a.suffix)
}

// byteFilter sums for n filters and so many vectors of positions, panel by
// panel.
func (a *assembler) byteFilter(name string, n, vectors int) {
	call := param{"call", "*kernel.ByteConvTile"}
	a.function(name, fmt.Sprintf("is tiles of %d filters and %d positions each.", n, vectors*a.lanes), []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{byteTileX, "R10"}, {byteTileOut, "R13"}, {byteTilePanels, "R11"}, {byteTileOutStep, "R12"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	a.label("panels")
	for _, f := range []struct {
		at  int
		reg string
	}{{byteTileOffsets, "R8"}, {byteTileDepth, "R9"}, {byteTileWeights, "SI"}, {byteTileAdd, "DX"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	for i := range n {
		for v := range vectors {
			a.op("VPBROADCASTD %d(DX), %s", 4*i, a.v(vectors*i+v))
		}
	}
	a.label("next")
	a.op("MOVLQSX (R8), BX")
	a.filterStep(n, vectors)
	a.op("ADDQ $4, R8")
	a.op("ADDQ $%d, SI", 4*n)
	a.op("DECQ R9")
	a.op("JNZ next")
	a.leaveBytes(n, vectors)
	a.op("ADDQ %d(AX), R10", byteTileXNext)
	a.op("ADDQ %d(AX), R13", byteTileOutNext)
	a.op("DECQ R11")
	a.op("JNZ panels")
	a.ret()
}

// filterStep adds the products of one group of inputs.
func (a *assembler) filterStep(n, vectors int) {
	first := 2 * a.rows
	for half := range vectors {
		if a.masks {
			a.op("VMOVUPS %d(R10)(BX*1), %s", half*a.bytes(), a.v(first+half))
		} else {
			a.op("VPMOVZXBW %d(R10)(BX*1), %s", half*a.bytes()/2, a.v(first+half))
		}
	}
	w, product := first+2, first+3
	for i := range n {
		if vectors == 1 {
			a.op("VPDPBUSD.BCST %d(SI), %s, %s", 4*i, a.v(first), a.v(i))
			continue
		}
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
}

// leaveBytes stores the sums of n filters or, with scales, the bytes that they
// become.
func (a *assembler) leaveBytes(n, vectors int) {
	a.op("MOVQ %d(AX), SI", byteTileFrom)
	a.op("TESTQ SI, SI")
	a.op("JZ leave")
	for i := range n {
		for half := range vectors {
			x := a.v(vectors*i + half)
			a.op("VPADDD %d(SI), %s, %s", half*a.bytes(), x, x)
		}
		a.op("ADDQ %d(AX), SI", byteTileFromStep)
	}
	a.label("leave")
	a.op("MOVQ R13, DI")
	a.op("MOVQ %d(AX), SI", byteTileScale)
	a.op("TESTQ SI, SI")
	a.op("JZ sums")
	a.leaveNarrow(n, vectors)
	a.op("JMP left")
	a.label("sums")
	for i := range n {
		for half := range vectors {
			a.op("VMOVUPS %s, %d(DI)", a.v(vectors*i+half), half*a.bytes())
		}
		a.op("ADDQ R12, DI")
	}
	a.label("left")
}

// leaveNarrow packs four vectors of sums at a time.
func (a *assembler) leaveNarrow(n, vectors int) {
	move, flip, order, spare := 2*a.rows, 2*a.rows+1, 2*a.rows+2, 2*a.rows+3
	a.op("VPBROADCASTQ %d(AX), %s", byteTileMove, a.v(move))
	a.op("VPBROADCASTQ %d(AX), %s", byteTileFlip, a.v(flip))
	a.op("VMOVDQU%s %s, %s", map[bool]string{true: "64"}[a.masks], a.transposedLanes(), a.v(order))
	if a.masks {
		a.constantTo(1<<20, spare)
	}
	together := 4 / vectors
	for i := 0; i < n; i += together {
		some := min(together, n-i)
		for j := range some {
			if !a.masks {
				a.op("VBROADCASTSS %d(SI), %s", 4*(i+j), a.v(spare))
			}
			for half := range vectors {
				x := vectors*(i+j) + half
				a.op("VCVTDQ2PS %s, %s", a.v(x), a.v(x))
				if a.masks {
					a.op("VMULPS.BCST %d(SI), %s, %s", 4*(i+j), a.v(x), a.v(x))
					a.ps("VMINPS", spare, x, x)
				} else {
					a.ps("VMULPS", spare, x, x)
					a.op("VMINPS %s, %s, %s", a.f32(1<<20), a.v(x), a.v(x))
				}
				a.op("VCVTPS2DQ %s, %s", a.v(x), a.v(x))
			}
		}
		x := vectors * i
		a.packBytesOf(x, move, flip)
		a.op("VPERMD %s, %s, %s", a.v(x), a.v(order), a.v(x))
		for j := range some {
			a.storePart(x, j, vectors)
		}
	}
}

// storePart stores the bytes of a filter: so many lanes' parts of a vector.
func (a *assembler) storePart(x, part, vectors int) {
	switch {
	case a.lanes*vectors == 8:
		from := x
		if part >= 2 {
			if from = 20; part == 2 {
				a.op("VEXTRACTI32X4 $1, Y%d, X%d", x, from)
			}
		}
		a.op("%s X%d, (DI)", [2]string{"VMOVQ", "VMOVHPS"}[part%2], from)
	case part == 0 && a.lanes*vectors == 16:
		a.op("VMOVUPS X%d, (DI)", x)
	case part == 0:
		a.op("VMOVUPS Y%d, (DI)", x)
	case !a.masks:
		a.op("VEXTRACTI128 $%d, Y%d, (DI)", part, x)
	case vectors == 1:
		a.op("VEXTRACTI32X4 $%d, Z%d, (DI)", part, x)
	default:
		a.op("VEXTRACTI64X4 $%d, Z%d, (DI)", part, x)
	}
	a.op("ADDQ R12, DI")
}
