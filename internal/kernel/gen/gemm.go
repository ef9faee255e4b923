package main

import "fmt"

// Registers of the matrix kernels. Rows of A are read in threes: a pointer, and the distance of rows once and twice.
var rowPointers = []string{"SI", "DI", "R9", "R10", "R11"}

const (
	regDepth  = "CX"
	regLDA    = "R8"
	regPanel  = "BX"
	regC      = "DX"
	regLDC    = "R12"
	regColumn = "R13"
)

func (a *assembler) gemmKernels() {
	for rows := 1; rows <= a.rows; rows++ {
		a.gemmTile(rows)
	}
	fmt.Fprintf(&a.stubs, "\n// gemmTiles%s are the functions by their number of rows.\nvar gemmTiles%s = [...]gemmTileFunc{\n", a.suffix, a.suffix)
	for rows := 1; rows <= a.rows; rows++ {
		fmt.Fprintf(&a.stubs, "\t%d: gemmTile%dx%s,\n", rows, rows, a.suffix)
	}
	a.stubs.WriteString("}\n")
	a.axpy(8)
	a.axpy(1)
	a.dots(4)
	a.dots(1)
}

// gemmTile multiplies rows of A with a packed panel of two vectors' width. All sums stay in registers.
func (a *assembler) gemmTile(rows int) {
	in := []param{{"depth", "int"}, {"a", "*float32"}, {"lda", "int"}, {"b", "*float32"}, {"c", "*float32"}, {"ldc", "int"}, {"nr", "int"}, {"acc", "bool"}}
	a.function(fmt.Sprintf("gemmTile%dx", rows), fmt.Sprintf("is a tile of %d rows and %d columns, of which nr are stored; lda and ldc count bytes.", rows, 2*a.lanes), in, nil)
	pointers := rowPointers[:(rows+2)/3]
	for i, reg := range []string{regDepth, pointers[0], regLDA, regPanel, regC, regLDC, regColumn} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	for i := 1; i < len(pointers); i++ {
		a.op("LEAQ (%s)(%s*2), %s", pointers[i-1], regLDA, pointers[i])
		a.op("ADDQ %s, %s", regLDA, pointers[i])
	}
	// The tile of C is needed at the end: ask for it now.
	a.op("MOVQ %s, AX", regC)
	for range rows {
		a.op("PREFETCHT0 (AX)")
		a.op("PREFETCHT0 %d(AX)", 2*a.bytes()-4)
		a.op("ADDQ %s, AX", regLDC)
	}
	for i := range 2 * rows {
		a.op("VXORPS %s, %s, %s", a.v(i), a.v(i), a.v(i))
	}
	const unroll = 4
	a.op("MOVQ %s, AX", regDepth)
	a.op("SHRQ $2, AX")
	a.op("JZ rest")
	a.label("block")
	for u := range unroll {
		a.gemmStep(rows, u)
	}
	a.advance(pointers, unroll)
	a.op("DECQ AX")
	a.op("JNZ block")
	a.label("rest")
	a.op("ANDQ $3, %s", regDepth)
	a.op("JZ store")
	a.label("one")
	a.gemmStep(rows, 0)
	a.advance(pointers, 1)
	a.op("DECQ %s", regDepth)
	a.op("JNZ one")
	a.label("store")
	a.gemmStore(rows, a.arg(in[7]))
}

func (a *assembler) advance(pointers []string, steps int) {
	a.op("ADDQ $%d, %s", steps*2*a.bytes(), regPanel)
	for _, p := range pointers {
		a.op("ADDQ $%d, %s", 4*steps, p)
	}
}

// gemmStep adds the products of one column of A and one row of the panel.
func (a *assembler) gemmStep(rows, u int) {
	b0, b1 := a.v(2*a.rows), a.v(2*a.rows+1)
	a.op("VMOVUPS %d(%s), %s", u*2*a.bytes(), regPanel, b0)
	a.op("VMOVUPS %d(%s), %s", u*2*a.bytes()+a.bytes(), regPanel, b1)
	for i := range rows {
		t := a.v(2*a.rows + 2 + i%2)
		at := fmt.Sprintf("%d(%s)", 4*u, rowPointers[i/3])
		if i%3 > 0 {
			at += fmt.Sprintf("(%s*%d)", regLDA, i%3)
		}
		a.op("VBROADCASTSS %s, %s", at, t)
		a.op("VFMADD231PS %s, %s, %s", b0, t, a.v(2*i))
		a.op("VFMADD231PS %s, %s, %s", b1, t, a.v(2*i+1))
	}
}

// gemmStore writes whole rows of the tile, or through masks what nr leaves of them.
func (a *assembler) gemmStore(rows int, acc string) {
	a.op("MOVBLZX %s, BX", acc)
	a.op("CMPQ %s, $%d", regColumn, 2*a.lanes)
	a.op("JNE narrow")
	a.op("TESTL BX, BX")
	a.op("JZ overwrite")
	a.op("MOVQ %s, AX", regC)
	for i := range rows {
		a.op("VADDPS (AX), %s, %s", a.v(2*i), a.v(2*i))
		a.op("VADDPS %d(AX), %s, %s", a.bytes(), a.v(2*i+1), a.v(2*i+1))
		a.op("ADDQ %s, AX", regLDC)
	}
	a.label("overwrite")
	for i := range rows {
		a.op("VMOVUPS %s, (%s)", a.v(2*i), regC)
		a.op("VMOVUPS %s, %d(%s)", a.v(2*i+1), a.bytes(), regC)
		a.op("ADDQ %s, %s", regLDC, regC)
	}
	a.ret()

	a.label("narrow")
	masks, spare := a.columnMasks()
	read, write := "VMASKMOVPS %s, %s, %s", "VMASKMOVPS %s, %s, %s"
	if a.masks {
		read, write = "VMOVUPS.Z %s, %s, %s", "VMOVUPS %s, %s, %s"
	}
	a.op("TESTL BX, BX")
	a.op("JZ masked")
	a.op("MOVQ %s, AX", regC)
	for i := range rows {
		for half, at := range []string{"(AX)", fmt.Sprintf("%d(AX)", a.bytes())} {
			a.op(read, at, masks[half], spare)
			a.op("VADDPS %s, %s, %s", spare, a.v(2*i+half), a.v(2*i+half))
		}
		a.op("ADDQ %s, AX", regLDC)
	}
	a.label("masked")
	for i := range rows {
		a.op(write, a.v(2*i), masks[0], fmt.Sprintf("(%s)", regC))
		a.op(write, a.v(2*i+1), masks[1], fmt.Sprintf("%d(%s)", a.bytes(), regC))
		a.op("ADDQ %s, %s", regLDC, regC)
	}
	a.ret()
}

// columnMasks makes the masks of the first nr columns of a tile's two vectors, and names a vector that is free.
func (a *assembler) columnMasks() (masks [2]string, spare string) {
	first := 2 * a.rows
	if !a.masks {
		a.cutMask(regColumn, 0, first)
		a.cutMask(regColumn, a.lanes, first+1)
		return [2]string{a.v(first), a.v(first + 1)}, a.v(first + 2)
	}
	a.op("MOVQ %s, CX", regColumn)
	a.op("MOVQ $1, AX")
	a.op("SHLQ CX, AX")
	a.op("DECQ AX")
	a.op("KMOVW AX, K1")
	a.op("SHRQ $16, AX")
	a.op("KMOVW AX, K2")
	return [2]string{"K1", "K2"}, a.v(first)
}

// axpy adds the products of some numbers and rows of B to a row.
func (a *assembler) axpy(rows int) {
	in := []param{{"n", "int"}, {"out", "*float32"}, {"x", "*float32"}, {"b", "*float32"}, {"ldb", "int"}}
	a.function(fmt.Sprintf("axpy%dx", rows), fmt.Sprintf("adds to out the sum of x[i] times row i of b, for %d rows that are ldb bytes apart.", rows), in, nil)
	regs := []string{"CX", "DI", "AX", "SI", "R8"}
	for i, reg := range regs {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	pointers := []string{"SI", "R9", "R10", "R11", "R12", "R13", "BX", "DX"}[:rows]
	for i := range rows {
		a.op("VBROADCASTSS %d(AX), %s", 4*i, a.v(i))
		if i > 0 {
			a.op("LEAQ (%s)(R8*1), %s", pointers[i-1], pointers[i])
		}
	}
	sum := rows
	a.rowLoop(append([]string{"DI"}, pointers...), 2, func(at func(string) string, tail bool) {
		a.load(at("DI"), sum, false, tail)
		for i, p := range pointers {
			if tail {
				a.load(at(p), sum+1, false, true)
				a.op("VFMADD231PS %s, %s, %s", a.v(sum+1), a.v(i), a.v(sum))
				continue
			}
			a.op("VFMADD231PS %s, %s, %s", at(p), a.v(i), a.v(sum))
		}
		a.store(sum, at("DI"), false, tail)
	})
	a.ret()
}

// dots multiplies a row with some rows of B. Two sums per row keep the processor busy.
func (a *assembler) dots(rows int) {
	in := []param{{"n", "int"}, {"out", "*float32"}, {"x", "*float32"}, {"b", "*float32"}, {"ldb", "int"}}
	a.function(fmt.Sprintf("dot%dx", rows), fmt.Sprintf("adds to out[i] the product of x and row i of b, for %d rows that are ldb bytes apart.", rows), in, nil)
	for i, reg := range []string{"CX", "DI", "DX", "SI", "R8"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	pointers := []string{"SI", "R9", "R10", "R11"}[:rows]
	for i := range rows {
		if i > 0 {
			a.op("LEAQ (%s)(R8*1), %s", pointers[i-1], pointers[i])
		}
	}
	for i := range 2 * rows {
		a.op("VXORPS %s, %s, %s", a.v(i), a.v(i), a.v(i))
	}
	x, turn := 2*rows, 0
	a.rowLoop(append([]string{"DX"}, pointers...), 2, func(at func(string) string, tail bool) {
		a.load(at("DX"), x, false, tail)
		for i, p := range pointers {
			from := at(p)
			if tail {
				a.load(from, x+1, false, true)
				from = a.v(x + 1)
			}
			a.op("VFMADD231PS %s, %s, %s", from, a.v(x), a.v(2*i+turn))
		}
		turn ^= 1
	})
	for i := range rows {
		a.op("VADDPS %s, %s, %s", a.v(2*i+1), a.v(2*i), a.v(2*i))
		a.addLanes(2*i, x)
		a.op("VADDSS %d(DI), X%d, X%d", 4*i, 2*i, 2*i)
		a.op("VMOVSS X%d, %d(DI)", 2*i, 4*i)
	}
	a.ret()
}

// addLanes adds up a vector of float32 into its first lane.
func (a *assembler) addLanes(v, spare int) {
	if a.masks {
		a.op("VEXTRACTF64X4 $1, Z%d, Y%d", v, spare)
		a.op("VADDPS Y%d, Y%d, Y%d", spare, v, v)
	}
	a.op("VEXTRACTF128 $1, Y%d, X%d", v, spare)
	a.op("VADDPS X%d, X%d, X%d", spare, v, v)
	a.op("VPERMILPS $0x4e, X%d, X%d", v, spare)
	a.op("VADDPS X%d, X%d, X%d", spare, v, v)
	a.op("VPERMILPS $0xb1, X%d, X%d", v, spare)
	a.op("VADDPS X%d, X%d, X%d", spare, v, v)
}
