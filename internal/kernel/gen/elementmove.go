package main

import "fmt"

// moves have whole vectors of elements that lie two apart, or the other way
// round. What AVX2 does with shuffles by constants keeps up with memory
// already.
func (a *elementWriter) moves() {
	if a.masks {
		return
	}
	for _, size := range []int{1, 2, 4, 8} {
		n := 32 / size
		// The operand of a group ends where it begins: the loop goes down.
		a.emit(fmt.Sprint("backwards ", size), n, 2, []int{32, -32}, func() {}, func(at func(operand, offset int) string) {
			a.op("VMOVUPS %s, Y0", at(1, size-32))
			a.reverse(size)
			a.op("VMOVUPS Y0, %s", at(0, 0))
		})
		a.emit(fmt.Sprint("every second ", size), n, 2, []int{32, 64}, func() {}, func(at func(operand, offset int) string) {
			a.op("VMOVUPS %s, Y0", at(1, 0))
			a.op("VMOVUPS %s, Y1", at(1, 32))
			switch size {
			case 1, 2:
				mask := map[int]uint64{1: 0x00ff00ff00ff00ff, 2: 0x0000ffff0000ffff}[size]
				a.op("VPAND %s, Y0, Y0", a.constant(mask))
				a.op("VPAND %s, Y1, Y1", a.constant(mask))
				a.op("VPACKUS%s Y1, Y0, Y0", map[int]string{1: "WB", 2: "DW"}[size])
			case 4:
				a.op("VSHUFPS $0x88, Y1, Y0, Y0")
			case 8:
				a.op("VUNPCKLPD Y1, Y0, Y0")
			}
			a.op("VPERMQ $0xd8, Y0, Y0")
			a.op("VMOVUPS Y0, %s", at(0, 0))
		})
	}
	a.transposeHalves()
	a.set("TransposeHalves", "transposeHalves"+a.suffix)
	a.transposeBytes()
	a.set("TransposeBytes", "transposeBytes"+a.suffix)
}

// reverse puts the elements of vector 0 in the opposite order.
func (a *elementWriter) reverse(size int) {
	if size == 8 {
		a.op("VPERMQ $0x1b, Y0, Y0")
		return
	}
	if size < 4 { // words within halves of 64 bits
		if size == 1 {
			a.op("VPSRLW $8, Y0, Y1")
			a.op("VPSLLW $8, Y0, Y0")
			a.op("VPOR Y1, Y0, Y0")
		}
		a.op("VPSHUFLW $0x1b, Y0, Y0")
		a.op("VPSHUFHW $0x1b, Y0, Y0")
		a.op("VPERMQ $0x1b, Y0, Y0")
		return
	}
	a.op("VPSHUFD $0xb1, Y0, Y0")
	a.op("VPERMQ $0x1b, Y0, Y0")
}

// square starts a function that transposes n squares of side elements of some
// bytes, which lie one below the other in src and side by side in dst. load and
// store are of row i.
func (a *elementWriter) square(name, typ string, side, size int, body func(load, store func(i int) string)) {
	in := []param{{"n", "int"}, {"dst", "*" + typ}, {"src", "*" + typ}, {"dstStep", "int"}, {"srcStep", "int"}}
	a.function(name, fmt.Sprintf("transposes n squares of %d rows, which lie one below the other in src and side by side in dst; steps count bytes.", side), in, nil)
	for i, reg := range []string{"R9", "DI", "SI", "DX", "AX"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.op("LEAQ (AX)(AX*2), BX")
	a.op("LEAQ (DX)(DX*2), CX")
	a.op("LEAQ (DI)(DX*4), R8")
	rows := func(low, high, step, step3 string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf("(%s)%s", map[bool]string{true: low, false: high}[i < 4], []string{"", "(" + step + "*1)", "(" + step + "*2)", "(" + step3 + "*1)"}[i%4])
		}
	}
	a.label("square")
	a.op("LEAQ (SI)(AX*4), R10")
	body(rows("SI", "R10", "AX", "BX"), rows("DI", "R8", "DX", "CX"))
	a.op("LEAQ (R10)(AX*4), SI")
	a.op("ADDQ $%d, DI", side*size)
	a.op("ADDQ $%d, R8", side*size)
	a.op("DECQ R9")
	a.op("JNZ square")
	a.ret()
}

// transposeHalves transposes squares of eight elements of two bytes.
func (a *elementWriter) transposeHalves() {
	a.square("transposeHalves", "uint16", 8, 2, func(load, store func(i int) string) {
		for i := range 8 {
			a.op("VMOVUPS %s, X%d", load(i), i)
		}
		for i := range 4 { // pairs of rows
			a.op("VPUNPCKLWD X%d, X%d, X%d", 2*i+1, 2*i, 8+2*i)
			a.op("VPUNPCKHWD X%d, X%d, X%d", 2*i+1, 2*i, 9+2*i)
		}
		for i := range 2 { // fours
			for half := range 2 {
				low, high := 8+4*i+half, 8+4*i+2+half
				a.op("VPUNPCKLDQ X%d, X%d, X%d", high, low, 4*i+2*half)
				a.op("VPUNPCKHDQ X%d, X%d, X%d", high, low, 4*i+2*half+1)
			}
		}
		for i := range 4 {
			a.op("VPUNPCKLQDQ X%d, X%d, X8", 4+i, i)
			a.op("VPUNPCKHQDQ X%d, X%d, X9", 4+i, i)
			a.op("VMOVUPS X8, %s", store(2*i))
			a.op("VMOVUPS X9, %s", store(2*i+1))
		}
	})
}

// transposeBytes transposes squares of eight bytes.
func (a *elementWriter) transposeBytes() {
	a.square("transposeBytes", "uint8", 8, 1, func(load, store func(i int) string) {
		for i := range 8 {
			a.op("VMOVQ %s, X%d", load(i), i)
		}
		for i := range 4 {
			a.op("VPUNPCKLBW X%d, X%d, X%d", 2*i+1, 2*i, 8+i) // rows 2i and 2i+1
		}
		for i := range 2 {
			a.op("VPUNPCKLWD X%d, X%d, X%d", 9+2*i, 8+2*i, 2*i) // columns 0 to 3 of four rows
			a.op("VPUNPCKHWD X%d, X%d, X%d", 9+2*i, 8+2*i, 2*i+1)
		}
		for half := range 2 {
			a.op("VPUNPCKLDQ X%d, X%d, X4", 2+half, half)
			a.op("VPUNPCKHDQ X%d, X%d, X5", 2+half, half)
			for i := range 2 {
				a.op("VMOVQ X%d, %s", 4+i, store(4*half+2*i))
				a.op("VMOVHPS X%d, %s", 4+i, store(4*half+2*i+1))
			}
		}
	})
}
