package main

import "fmt"

// The images that convolutions of bytes read, and the rows of results that they
// copy to their places.

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

// interleavePairs writes 32 places at a time, as long as CX has them, and goes
// on behind the single vectors if there are no more.
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
