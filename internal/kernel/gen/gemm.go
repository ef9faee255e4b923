package main

import "fmt"

// Registers of the matrix kernels. Rows of A are read in threes: a pointer, and
// the distance of rows once and twice.
var rowPointers = []string{"SI", "DI", "R9", "R10", "R11"}

const (
	regDepth  = "CX"
	regLDA    = "R8"
	regPanel  = "BX"
	regC      = "DX"
	regLDC    = "R12"
	regColumn = "R13"
)

// packedRows is the most rows of a tile that packs while it computes: the other
// registers have the addresses in B.
const packedRows = 12

// fewRows take all their time to read a panel. They prefetch nothing else,
// unless the panel is in a cache already.
const fewRows = 3

// halfRows is the most rows of a tile whose panel has 16-bit floats: with more
// it is widened first.
const halfRows = 4

// packAhead is how many rows of B before it packs one a tile prefetches it.
// They may all lie in one set of the first-level cache, which is too small for
// so many; the second level has.
const packAhead = 32

func (a *assembler) gemmKernels() {
	a.set("Width", 2*a.lanes)
	a.set("PacksParts", a.masks)
	a.tiles("Tiles", "GemmTile", a.rows, func(rows int) string { return a.gemmTile(rows, rows > fewRows, false) })
	a.tiles("Prefetching", "GemmTile", fewRows, func(rows int) string { return a.gemmTile(rows, true, false) })
	a.tiles("Packing", "GemmPacking", min(a.rows, packedRows), func(rows int) string { return a.gemmTile(rows, true, true) })
	for _, of := range []string{"F16", "BF16"} {
		a.tiles("Tiles"+of, "GemmHalfTile", halfRows, func(rows int) string { return a.gemmHalfTile(rows, of) })
	}
	for _, rows := range []int{8, 1} {
		a.axpy(rows)
		a.set(fmt.Sprint("Axpy", rows), fmt.Sprintf("axpy%dx%s", rows, a.suffix))
	}
	for _, rows := range []int{4, 1} {
		a.dots(rows)
		a.set(fmt.Sprint("Dot", rows), fmt.Sprintf("dot%dx%s", rows, a.suffix))
	}
}

// tiles emits functions by their number of rows.
func (a *assembler) tiles(field, typ string, most int, tile func(rows int) string) {
	table := fmt.Sprintf("[]kernel.%s{\n", typ)
	for rows := 1; rows <= most; rows++ {
		table += fmt.Sprintf("%d: %s,\n", rows, tile(rows))
	}
	a.set(field, table+"}")
}

// tile is a rows x two vectors part of a product under way. All sums stay in
// registers: vectors sum(set, row, half).
type tile struct {
	*assembler
	rows, sets int
	pointers   []string // of rows of A
	src, ldb   string   // where B lies while it is packed
	next, step string   // where a row lies that will be needed, and how far it is to another
	masks      [2]string
	ints       bool   // bytes are multiplied, and 32-bit integers summed
	half       string // the type of the panel's elements where they have 16 bits
}

func (t *tile) sum(set, row, half int) string { return t.v(2*(set*t.rows+row) + half) }

// newTile is a tile of so many rows. Few rows have few sums, and an addition
// waits for the one before it: several sets take turns.
func (a *assembler) newTile(rows int) *tile {
	t := &tile{assembler: a, rows: rows, sets: 1, pointers: rowPointers[:(rows+2)/3]}
	for t.sets < 4 && 2*t.sets*rows <= a.rows {
		t.sets *= 2
	}
	return t
}

// gemmHalfTile multiplies rows of A with a packed panel of 16-bit floats.
func (a *assembler) gemmHalfTile(rows int, of string) string {
	t := a.newTile(rows)
	t.half = of
	name := fmt.Sprintf("gemmTile%s%dx", of, rows)
	in := []param{{"depth", "int"}, {"a", "*float32"}, {"lda", "int"}, {"b", "*uint16"}, {"c", "*float32"}, {"ldc", "int"}, {"nr", "int"}}
	a.tile(t, name, fmt.Sprintf("is a tile of %d rows and %d columns of a panel of %s, of which nr are stored", rows, 2*a.lanes, of), in,
		[]string{regDepth, t.pointers[0], regLDA, regPanel, regC, regLDC, regColumn})
	return name + a.suffix
}

// gemmTile multiplies rows of A with a packed panel of two vectors' width, or
// with a part of B that it packs meanwhile. It may prefetch what will be
// needed.
func (a *assembler) gemmTile(rows int, prefetch, pack bool) string {
	t := a.newTile(rows)
	name, doc := "gemmTile%dx", "is a tile of %d rows and %d columns, of which nr are stored"
	in := []param{{"depth", "int"}, {"a", "*float32"}, {"lda", "int"}, {"b", "*float32"}, {"c", "*float32"}, {"ldc", "int"}, {"nr", "int"}}
	regs := []string{regDepth, t.pointers[0], regLDA, regPanel, regC, regLDC, regColumn}
	if pack {
		name, doc = "gemmPacking%dx", "packs the panel b from rows of src that are ldb apart and is a tile of %d rows and %d columns, of which nr are there"
		in, regs = append(in, param{"src", "*float32"}, param{"ldb", "int"}), append(regs, "R11", "R14")
		t.src, t.ldb, t.next, t.step = "R11", "R14", "R15", "R14"
	} else {
		in, regs = append(in, param{"next", "*float32"}, param{"step", "int"}), append(regs, "R14", "R15")
		if prefetch {
			t.next, t.step = "R14", "R15"
		}
		if prefetch && rows <= fewRows {
			name = "gemmPrefetching%dx"
		}
		doc += "; it may prefetch rows from next on, step bytes apart, of the same width"
	}
	name = fmt.Sprintf(name, rows)
	a.tile(t, name, fmt.Sprintf(doc, rows, 2*a.lanes), in, regs)
	return name + a.suffix
}

// tile emits the function of a tile, whose first arguments go into registers.
func (a *assembler) tile(t *tile, name, doc string, in []param, regs []string) {
	last := []param{{"from", "*float32"}, {"ldfrom", "int"}, {"relu", "bool"}}
	a.function(name, doc+", with the numbers at from added and then the greater of zero taken if relu; distances count bytes.", append(in, last...), nil)
	for i, reg := range regs {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	var places []string
	for _, p := range last {
		places = append(places, a.arg(p))
	}
	t.start(in[0].name + "+0(FP)")
	t.loop()
	t.join()
	t.finish(places)
}

// start makes the sums zero. The masks need the register of the depth, so that
// is loaded once more.
func (t *tile) start(depth string) {
	for i := 1; i < len(t.pointers); i++ {
		t.op("LEAQ (%s)(%s*2), %s", t.pointers[i-1], regLDA, t.pointers[i])
		t.op("ADDQ %s, %s", regLDA, t.pointers[i])
	}
	// The tile of C is needed at the end: prefetch it now.
	t.op("MOVQ %s, AX", regC)
	for range t.rows {
		t.op("PREFETCHT0 (AX)")
		t.op("PREFETCHT0 %d(AX)", 2*t.bytes()-4)
		t.op("ADDQ %s, AX", regLDC)
	}
	for i := range 2 * t.sets * t.rows {
		t.op("VXORPS %s, %s, %s", t.v(i), t.v(i), t.v(i))
	}
	if t.src != "" && t.assembler.masks {
		t.masks, _ = t.columnMasks()
		t.op("MOVQ %s, %s", depth, regDepth)
	}
}

func (t *tile) loop() {
	const unroll = 4
	if t.src != "" {
		t.op("MOVQ $%d, %s", packAhead, t.next)
		t.op("IMULQ %s, %s", t.step, t.next)
		t.op("ADDQ %s, %s", t.src, t.next)
	}
	t.op("MOVQ %s, AX", regDepth)
	t.op("SHRQ $2, AX")
	t.op("JZ rest")
	t.label("block")
	for u := range unroll {
		t.multiply(u)
	}
	t.advance(unroll)
	if t.src == "" {
		t.prefetch()
	}
	t.op("DECQ AX")
	t.op("JNZ block")
	t.label("rest")
	t.op("ANDQ $3, %s", regDepth)
	t.op("JZ store")
	t.label("one")
	t.multiply(0)
	t.advance(1)
	t.op("DECQ %s", regDepth)
	t.op("JNZ one")
	t.label("store")
}

func (t *tile) advance(steps int) {
	t.op("ADDQ $%d, %s", steps*t.panelStep(), regPanel)
	for _, p := range t.pointers {
		t.op("ADDQ $%d, %s", 4*steps, p)
	}
}

// panelStep is the size of a row of the panel.
func (t *tile) panelStep() int {
	if t.ints && !t.assembler.masks || t.half != "" {
		return t.bytes()
	}
	return 2 * t.bytes()
}

// prefetch brings a row that will be needed into the second-level cache. The
// first-level cache is full of data that is needed now.
func (t *tile) prefetch() {
	if t.next == "" {
		return
	}
	const line = 64
	for at := 0; at < 2*t.bytes(); at += line {
		t.op("PREFETCHT1 %d(%s)", at, t.next)
	}
	t.op("ADDQ %s, %s", t.step, t.next)
}

// multiply adds the products of one column of A and one row of the panel.
func (t *tile) multiply(u int) {
	if t.ints {
		t.byteStep(u)
		return
	}
	b := [2]string{t.v(2 * t.assembler.rows), t.v(2*t.assembler.rows + 1)}
	for half := range 2 {
		panel := fmt.Sprintf("%d(%s)", (2*u+half)*t.panelStep()/2, regPanel)
		switch {
		case t.half == "F16":
			t.op("VCVTPH2PS %s, %s", panel, b[half])
			continue
		case t.half == "BF16":
			t.op("VPMOVZXWD %s, %s", panel, b[half])
			t.op("VPSLLD $16, %s, %s", b[half], b[half])
			continue
		case t.src == "":
			t.op("VMOVUPS %s, %s", panel, b[half])
			continue
		case t.masks[0] != "":
			t.op("VMOVUPS.Z %d(%s), %s, %s", half*t.bytes(), t.src, t.masks[half], b[half])
		default:
			t.op("VMOVUPS %d(%s), %s", half*t.bytes(), t.src, b[half])
		}
		t.op("VMOVUPS %s, %s", b[half], panel)
	}
	if t.src != "" {
		t.op("ADDQ %s, %s", t.ldb, t.src)
		t.prefetch()
	}
	for i := range t.rows {
		x := t.v(2*t.assembler.rows + 2 + i%2)
		t.op("VBROADCASTSS %s, %s", t.elementOfA(u, i), x)
		for half := range 2 {
			t.op("VFMADD231PS %s, %s, %s", b[half], x, t.sum(u%t.sets, i, half))
		}
	}
}

func (t *tile) elementOfA(u, row int) string {
	at := fmt.Sprintf("%d(%s)", 4*u, t.pointers[row/3])
	if row%3 > 0 {
		at += fmt.Sprintf("(%s*%d)", regLDA, row%3)
	}
	return at
}

// plus is the addition of the tile's sums.
func (t *tile) plus() string {
	if t.ints {
		return "VPADDD"
	}
	return "VADDPS"
}

// join adds the sets of sums up.
func (t *tile) join() {
	for n := t.sets / 2; n > 0; n /= 2 {
		for i := range 2 * n * t.rows {
			t.op("%s %s, %s, %s", t.plus(), t.v(2*n*t.rows+i), t.v(i), t.v(i))
		}
	}
}

// finish adds the addends of the product, takes the greater of zero, and writes
// whole rows of the tile, or their first nr columns through masks. args are the
// places of the last arguments.
func (t *tile) finish(args []string) {
	t.op("MOVQ %s, SI", args[0])
	t.op("MOVQ %s, R8", args[1])
	if !t.ints {
		t.op("MOVBLZX %s, BX", args[2])
	}
	t.op("CMPQ %s, $%d", regColumn, 2*t.lanes)
	t.op("JNE narrow")
	t.masks = [2]string{}
	t.write("whole")
	t.label("narrow")
	t.masks, _ = t.columnMasks()
	t.write("part")
}

// write ends the tile. The name makes its labels.
func (t *tile) write(name string) {
	zero := t.v(2*t.assembler.rows + 2)
	t.op("TESTQ SI, SI")
	t.op("JZ %sProduct", name)
	t.eachHalf("SI", "R8", t.add)
	t.label(name + "Product")
	if !t.ints {
		t.op("TESTL BX, BX")
		t.op("JZ %sSum", name)
		t.op("VXORPS %s, %s, %s", zero, zero, zero)
		for i := range 2 * t.rows {
			t.op("VMAXPS %[1]s, %[2]s, %[1]s", t.v(i), zero) // NaN stays, and -0
			t.op("VADDPS %[1]s, %[2]s, %[2]s", zero, t.v(i))
		}
		t.label(name + "Sum")
	}
	t.eachHalf(regC, regLDC, t.put)
	t.ret()
}

// eachHalf goes through the rows at a pointer, which it moves on by their
// distance.
func (t *tile) eachHalf(pointer, distance string, f func(at, sum, mask string)) {
	for i := range t.rows {
		for half := range 2 {
			f(fmt.Sprintf("%d(%s)", half*t.bytes(), pointer), t.sum(0, i, half), t.masks[half])
		}
		t.op("ADDQ %s, %s", distance, pointer)
	}
}

func (t *tile) add(at, sum, mask string) {
	spare := t.v(2*t.assembler.rows + 3)
	switch {
	case mask == "":
		t.op("%[3]s %[1]s, %[2]s, %[2]s", at, sum, t.plus())
		return
	case t.assembler.masks:
		t.op("VMOVUPS.Z %s, %s, %s", at, mask, spare)
	default:
		t.op("VMASKMOVPS %s, %s, %s", at, mask, spare)
	}
	t.op("%[3]s %[1]s, %[2]s, %[2]s", spare, sum, t.plus())
}

func (t *tile) put(at, sum, mask string) {
	switch {
	case mask == "":
		t.op("VMOVUPS %s, %s", sum, at)
	case t.assembler.masks:
		t.op("VMOVUPS %s, %s, %s", sum, mask, at)
	default:
		t.op("VMASKMOVPS %s, %s, %s", sum, mask, at)
	}
}

// columnMasks makes the masks of the first nr columns of a tile's two vectors,
// and names a vector that is free.
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
