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

// Arguments of interleave come in a kernel.ByteImage, whose fields are read at
// these offsets.
const (
	byteImageDst = 8 * iota
	byteImageDstStep
	byteImageX
	_
	_
	_
	byteImageXStep
	byteImageRows
	byteImageVectors
	byteImageLeft
	byteImageRightAt
	byteImageRight
	byteImagePad
	byteImageFlip
	byteImageGroups
	byteImageDstGroup
	byteImageXGroup
)

// interleave writes rows of an image: pads, the bytes of rows of the input side
// by side, four or two where bytes are widened, and pads. It takes each byte or
// every second one.
func (a *assembler) interleave(name string, stride int) {
	call := param{"call", "*kernel.ByteImage"}
	rows := 4
	if !a.masks {
		rows = 2
	}
	a.function(name, fmt.Sprintf("lays the bytes of %d rows side by side, each %d bytes after the one before.", rows, stride), []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	pointers := []string{"SI", "R8", "R9", "R10"}[:rows]
	a.op("VPBROADCASTQ %d(AX), X8", byteImageFlip)
	a.op("VPBROADCASTQ %d(AX), Y11", byteImagePad)
	if a.masks && stride == 1 {
		a.op("VPBROADCASTQ %d(AX), Y12", byteImageFlip)
	}
	if stride == 2 {
		a.op("VMOVUPS %s, X9", a.constant(0x00ff00ff00ff00ff))
	}
	a.op("MOVQ %d(AX), DX", byteImageXGroup)
	a.label("groups")
	a.op("MOVQ %d(AX), R11", byteImageRows)
	a.op("MOVQ %d(AX), R12", byteImageDst)
	for i, p := range pointers { // the next group's are left in their place
		a.op("MOVQ %d(AX), %s", byteImageX+8*i, p)
		a.op("ADDQ DX, %d(AX)", byteImageX+8*i)
	}
	a.label("rows")
	a.op("MOVQ R12, DI")
	a.imagePads("left", byteImageLeft)
	a.op("MOVQ R12, DI")
	a.op("ADDQ %d(AX), DI", byteImageLeft)
	a.op("MOVQ %d(AX), CX", byteImageVectors)
	a.op("XORQ BX, BX")
	if a.masks && stride == 1 {
		a.interleavePairs(pointers)
	}
	a.label("vectors")
	a.interleaveVector(pointers, stride)
	a.op("ADDQ $%d, BX", 16*stride)
	a.op("ADDQ $%d, DI", 16*rows)
	a.op("DECQ CX")
	a.op("JNZ vectors")
	a.label("places")
	a.op("MOVQ R12, DI")
	a.op("ADDQ %d(AX), DI", byteImageRightAt)
	a.imagePads("right", byteImageRight)
	for _, p := range pointers {
		a.op("ADDQ %d(AX), %s", byteImageXStep, p)
	}
	a.op("ADDQ %d(AX), R12", byteImageDstStep)
	a.op("DECQ R11")
	a.op("JNZ rows")
	a.op("MOVQ %d(AX), R12", byteImageDstGroup)
	a.op("ADDQ R12, %d(AX)", byteImageDst)
	a.op("DECQ %d(AX)", byteImageGroups)
	a.op("JNZ groups")
	a.ret()
}

// imagePads writes pads from DI on, whole vectors.
func (a *assembler) imagePads(name string, bytes int) {
	a.op("MOVQ %d(AX), CX", bytes)
	a.op("TESTQ CX, CX")
	a.op("JLE %sdone", name)
	a.label(name)
	a.op("VMOVDQU Y11, (DI)")
	a.op("ADDQ $32, DI")
	a.op("SUBQ $32, CX")
	a.op("JGT %s", name)
	a.label(name + "done")
}

// interleavePairs writes 32 places at a time, as long as CX has them, and goes on
// behind the single vectors if there are no more.
func (a *assembler) interleavePairs(pointers []string) {
	a.op("SUBQ $2, CX")
	a.op("JLT single")
	a.label("pairs")
	for i, p := range pointers {
		a.op("VPXOR (%s)(BX*1), Y12, Y%d", p, i)
	}
	for i := 0; i < 4; i += 2 {
		a.op("VPUNPCKLBW Y%d, Y%d, Y%d", i+1, i, 4+i)
		a.op("VPUNPCKHBW Y%d, Y%d, Y%d", i+1, i, 5+i)
	}
	for half := range 2 {
		a.op("VPUNPCKLWD Y%d, Y%d, Y%d", 6+half, 4+half, 2*half)
		a.op("VPUNPCKHWD Y%d, Y%d, Y%d", 6+half, 4+half, 2*half+1)
	}
	for i := 0; i < 4; i += 2 {
		a.op("VINSERTI128 $1, X%d, Y%d, Y4", i+1, i)
		a.op("VPERM2I128 $0x31, Y%d, Y%d, Y5", i+1, i)
		a.op("VMOVDQU Y4, %d(DI)", 16*i)
		a.op("VMOVDQU Y5, %d(DI)", 64+16*i)
	}
	a.op("ADDQ $32, BX")
	a.op("ADDQ $128, DI")
	a.op("SUBQ $2, CX")
	a.op("JGE pairs")
	a.label("single")
	a.op("ADDQ $2, CX")
	a.op("JZ places")
}

// interleaveVector writes 16 places, whose bytes begin BX behind the pointers.
func (a *assembler) interleaveVector(pointers []string, stride int) {
	rows := len(pointers)
	for i, p := range pointers {
		if stride == 1 {
			a.op("VPXOR (%s)(BX*1), X8, X%d", p, i)
		} else {
			a.op("VPAND (%s)(BX*1), X9, X%d", p, i)
			a.op("VPAND 16(%s)(BX*1), X9, X10", p)
			a.op("VPACKUSWB X10, X%d, X%d", i, i)
			a.op("VPXOR X%d, X8, X%d", i, i)
		}
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
}

// copyRows copies rows of planes, each as the first and the last pieces of it,
// which may overlap.
func (a *assembler) copyRows() {
	in := []param{{"planes", "int"}, {"rows", "int"}, {"n", "int"}, {"dst", "*byte"}, {"dstPlane", "int"}, {"dstRow", "int"}, {"src", "*byte"}, {"srcPlane", "int"}, {"srcRow", "int"}}
	a.function("copyRows", "copies rows of n bytes of planes; none of these numbers is 0.", in, nil)
	var rows string
	for i, reg := range []string{"R8", "", "BX", "R9", "R10", "R11", "R12", "R13", "R15"} {
		if at := a.arg(in[i]); reg == "" {
			rows = at
		} else {
			a.op("MOVQ %s, %s", at, reg)
		}
	}
	a.label("planes")
	a.op("MOVQ %s, CX", rows)
	a.op("MOVQ R9, DI")
	a.op("MOVQ R12, SI")
	a.label("rows")
	for _, n := range []int{32, 16, 8, 4} {
		a.op("CMPQ BX, $%d", n)
		a.op("JGE row%d", n)
	}
	a.op("MOVBLZX (SI), AX") // up to three: the first, the middle and the last one
	a.op("MOVB AX, (DI)")
	a.op("MOVQ BX, DX")
	a.op("SHRQ $1, DX")
	a.op("MOVBLZX (SI)(DX*1), AX")
	a.op("MOVB AX, (DI)(DX*1)")
	a.op("MOVBLZX -1(SI)(BX*1), AX")
	a.op("MOVB AX, -1(DI)(BX*1)")
	a.op("JMP next")
	for _, k := range []struct {
		n         int
		move, reg string
	}{{4, "MOVL", "AX"}, {8, "MOVQ", "AX"}, {16, "VMOVDQU", "X0"}} {
		a.label(fmt.Sprint("row", k.n))
		a.op("%s (SI), %s", k.move, k.reg)
		a.op("%s %s, (DI)", k.move, k.reg)
		a.op("%s -%d(SI)(BX*1), %s", k.move, k.n, k.reg)
		a.op("%s %s, -%d(DI)(BX*1)", k.move, k.reg, k.n)
		a.op("JMP next")
	}
	a.label("row32")
	a.op("LEAQ -32(BX), AX")
	a.op("XORQ DX, DX")
	a.label("pieces")
	a.op("VMOVDQU (SI)(DX*1), Y0")
	a.op("VMOVDQU Y0, (DI)(DX*1)")
	a.op("ADDQ $32, DX")
	a.op("CMPQ DX, AX")
	a.op("JLT pieces")
	a.op("VMOVDQU (SI)(AX*1), Y0")
	a.op("VMOVDQU Y0, (DI)(AX*1)")
	a.label("next")
	a.op("ADDQ R11, DI")
	a.op("ADDQ R15, SI")
	a.op("DECQ CX")
	a.op("JNZ rows")
	a.op("ADDQ R10, R9")
	a.op("ADDQ R13, R12")
	a.op("DECQ R8")
	a.op("JNZ planes")
	a.ret()
}
