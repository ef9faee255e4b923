package main

import "fmt"

// Registers of the products with weights of few bits. Rows of A are read in
// threes, as those of other products are.
const (
	nbitsScale  = "R15"
	nbitsZero   = "AX"
	nbitsBlocks = "CX"
	nbitsSteps  = "R11" // of a block
	nbitsLeft   = "R10" // of the block under way
)

// nbitsStep is how many neighbours of K a step takes: as many as a vector of
// elements of two bits has for each of its columns.
const nbitsStep = 16

// nbits is a loop over one panel of weights under way. Four neighbours of K of
// a column lie in the four bytes of a lane, and more of them in the other bits
// of these bytes.
type nbits struct {
	*assembler
	bits, rows int
	sets       int  // of sums that take turns
	looked     bool // weights are looked up in a table
	pointers   []string
}

func (a *assembler) nbitsKernels() {
	a.set("Lanes", a.lanes)
	rows := []int{1, 2, 4, 8}
	if !a.masks {
		rows = rows[:3]
	}
	for _, bits := range []int{2, 4, 8} {
		index := fmt.Sprint(bits)
		for _, n := range rows {
			t := &nbits{assembler: a, bits: bits, rows: n, sets: 1, pointers: rowPointers[:(n+2)/3]}
			a.put("Ints", "NbitsIntLoops", t.ints(), index, fmt.Sprint(n))
			if n > 4 {
				continue // as much arithmetic as takes some ten microseconds
			}
			t.sets = 4 / n
			a.put("Floats", "NbitsFloatLoops", t.floats(), index, fmt.Sprint(n))
			if a.masks && bits < 8 {
				t.looked = true
				a.put("Tables", "NbitsFloatLoops", t.floats(), index, fmt.Sprint(n))
			}
		}
		t := &nbits{assembler: a, bits: bits}
		a.put("Expand", "NbitsExpandLoops", t.expand(), index)
	}
	a.nbitsQuantize()
	a.set("Quantize", "nbitsQuantize"+a.suffix)
}

// loads loads the arguments that all loops begin with, and sets the pointers of
// the other rows.
func (t *nbits) loads(in []param, regs ...string) {
	for i, reg := range regs {
		if at := t.arg(in[i]); reg != "" {
			t.op("MOVQ %s, %s", at, reg)
		}
	}
	for i := 1; i < len(t.pointers); i++ {
		t.op("LEAQ (%s)(%s*2), %s", t.pointers[i-1], regLDA, t.pointers[i])
		t.op("ADDQ %s, %s", regLDA, t.pointers[i])
	}
}

// row is the place of a row of A, some bytes on.
func (t *nbits) row(i, at int) string {
	p := t.pointers[i/3]
	return [3]string{fmt.Sprintf("%d(%s)", at, p), fmt.Sprintf("%d(%s)(%s*1)", at, p, regLDA), fmt.Sprintf("%d(%s)(%s*2)", at, p, regLDA)}[i%3]
}

func (t *nbits) advance(bytes int) {
	for _, p := range t.pointers {
		t.op("ADDQ $%d, %s", bytes, p)
	}
}

// totals loads the sums of the blocks before, or makes them zero. It needs DX
// and R12.
func (t *nbits) totals(c, ldc, add string) {
	for i := range t.rows {
		t.op("VXORPS %s, %s, %s", t.v(i), t.v(i), t.v(i))
	}
	t.op("MOVQ %s, DX", c)
	t.op("MOVQ %s, R12", ldc)
	t.op("CMPQ %s, $0", add)
	t.op("JEQ block")
	for i := range t.rows {
		t.op("VMOVUPS (DX), %s", t.v(i))
		t.op("ADDQ R12, DX")
	}
	t.label("block")
}

func (t *nbits) leave(c string) {
	t.op("MOVQ %s, DX", c)
	for i := range t.rows {
		t.op("VMOVUPS %s, (DX)", t.v(i))
		t.op("ADDQ R12, DX")
	}
	t.ret()
}

// zeros sets z to the zeros of a block, unless there is one for all, which z
// keeps.
func (t *nbits) zeros(z int) {
	t.op("TESTQ %s, %s", nbitsZero, nbitsZero)
	t.op("JZ same")
	t.op("VPMOVZXBD (%s), %s", nbitsZero, t.v(z))
	t.op("ADDQ $%d, %s", t.lanes, nbitsZero)
	t.label("same")
}

// prefetch fetches the line that comes into use after some pages of weights.
func (t *nbits) prefetch(at int) {
	const ahead, line = 8192, 64
	if at%line == 0 {
		t.op("PREFETCHT0 %d(%s)", ahead+at, regPanel)
	}
}

// ints is a loop of products with bytes: the sums of a block are whole numbers,
// which two scales make numbers that are added to the totals.
func (t *nbits) ints() string {
	name := fmt.Sprintf("nbitsInts%dx%dx", t.bits, t.rows)
	in := []param{{"blocks", "int"}, {"steps", "int"}, {"a", "*byte"}, {"lda", "int"}, {"b", "*byte"}, {"scale", "*float32"}, {"zero", "*byte"}, {"middle", "int32"}, {"c", "*float32"}, {"ldc", "int"}, {"add", "int"}}
	t.function(name, fmt.Sprintf("is %d rows of a product with a panel of %d bits; distances count bytes.", t.rows, t.bits), in, nil)
	sum, raw := t.rows, 2*t.rows
	w, z, tmp, mask, ones := raw+1, raw+2, raw+3, raw+4, raw+5
	t.loads(in, nbitsBlocks, nbitsSteps, t.pointers[0], regLDA, regPanel, nbitsScale, nbitsZero)
	t.op("VBROADCASTSS %s, %s", t.arg(in[7]), t.v(z))
	if t.bits < 8 || !t.masks {
		t.op("VMOVUPS %s, %s", t.constant(uint64(1<<min(t.bits, 4)-1)*0x0101010101010101), t.v(mask))
	}
	if !t.masks {
		t.op("VMOVUPS %s, %s", t.constant(0x0001000100010001), t.v(ones))
	}
	c := t.arg(in[8])
	t.totals(c, t.arg(in[9]), t.arg(in[10]))
	t.zeros(z)
	for i := range t.rows {
		if t.masks {
			t.op("VPMULLD.BCST %s, %s, %s", t.row(i, 0), t.v(z), t.v(sum+i))
			continue
		}
		t.op("VPBROADCASTD %s, %s", t.row(i, 0), t.v(tmp))
		t.op("VPMULLD %s, %s, %s", t.v(tmp), t.v(z), t.v(sum+i))
	}
	t.advance(4)
	t.op("MOVQ %s, %s", nbitsSteps, nbitsLeft)
	t.label("step")
	fields := 8 / t.bits
	for h := range nbitsStep / 4 / fields {
		t.op("VMOVDQU%s %d(%s), %s", map[bool]string{true: "8"}[t.masks], h*t.bytes(), regPanel, t.v(raw))
		t.prefetch(h * t.bytes())
		for j := range fields {
			at := 4 * (h*fields + j)
			if t.bits == 8 {
				t.bytesOf(sum, raw, w, tmp, mask, ones, at)
				continue
			}
			from := raw
			if j > 0 {
				t.op("VPSRLW $%d, %s, %s", j*t.bits, t.v(raw), t.v(w))
				from = w
			}
			t.and(mask, from, w)
			for i := range t.rows {
				t.dot(i, at, w, sum+i, tmp, ones, 0)
			}
		}
	}
	t.op("ADDQ $%d, %s", nbitsStep*t.bits/8*t.lanes, regPanel)
	t.advance(nbitsStep)
	t.op("DECQ %s", nbitsLeft)
	t.op("JNZ step")
	t.op("VMOVUPS (%s), %s", nbitsScale, t.v(w))
	t.op("ADDQ $%d, %s", t.bytes(), nbitsScale)
	for i := range t.rows {
		t.op("VCVTDQ2PS %s, %s", t.v(sum+i), t.v(sum+i))
		if t.masks {
			t.op("VMULPS.BCST %s, %s, %s", t.row(i, 0), t.v(w), t.v(tmp))
		} else {
			t.op("VBROADCASTSS %s, %s", t.row(i, 0), t.v(tmp))
			t.op("VMULPS %s, %s, %s", t.v(tmp), t.v(w), t.v(tmp))
		}
		t.op("VMULPS %s, %s, %s", t.v(tmp), t.v(sum+i), t.v(tmp))
		t.op("VADDPS %s, %s, %s", t.v(tmp), t.v(i), t.v(i))
	}
	t.advance(4)
	t.op("DECQ %s", nbitsBlocks)
	t.op("JNZ block")
	t.leave(c)
	return name + t.suffix
}

func (t *nbits) and(mask, from, to int) {
	t.op("VPAND%s %s, %s, %s", map[bool]string{true: "D"}[t.masks], t.v(mask), t.v(from), t.v(to))
}

// bytesOf adds the products of weights of eight bits. Sums of two of their
// products do not fit into 16 bits, where those are all there is: then they
// are taken in halves.
func (t *nbits) bytesOf(sum, raw, w, tmp, mask, ones, at int) {
	if t.masks {
		for i := range t.rows {
			t.dot(i, at, raw, sum+i, tmp, ones, 0)
		}
		return
	}
	t.and(mask, raw, w)
	for i := range t.rows {
		t.dot(i, at, w, sum+i, tmp, ones, 0)
	}
	t.op("VPSRLW $4, %s, %s", t.v(raw), t.v(w))
	t.and(mask, w, w)
	for i := range t.rows {
		t.dot(i, at, w, sum+i, tmp, ones, 4)
	}
}

// dot adds the products of unsigned bytes w and four signed ones of a row,
// times a power of two.
func (t *nbits) dot(row, at, w, sum, tmp, ones, shift int) {
	if t.masks {
		t.op("VPDPBUSD.BCST %s, %s, %s", t.row(row, at), t.v(w), t.v(sum))
		return
	}
	t.op("VPBROADCASTD %s, %s", t.row(row, at), t.v(tmp))
	t.op("VPMADDUBSW %s, %s, %s", t.v(tmp), t.v(w), t.v(tmp))
	t.op("VPMADDWD %s, %s, %s", t.v(ones), t.v(tmp), t.v(tmp))
	if shift > 0 {
		t.op("VPSLLD $%d, %s, %s", shift, t.v(tmp), t.v(tmp))
	}
	t.op("VPADDD %s, %s, %s", t.v(tmp), t.v(sum), t.v(sum))
}

// element sets w to the weights of neighbour k of a step as float32, less their
// zeros. raw has the vector in which they lie.
func (t *nbits) element(raw, w, mask, z, k int) {
	group := k / 4
	shift := 8*(k%4) + t.bits*(group%(8/t.bits))
	from := raw
	if shift > 0 {
		t.op("VPSRLD $%d, %s, %s", shift, t.v(raw), t.v(w))
		from = w
	}
	if t.looked {
		t.op("VPERMPS %s, %s, %s", t.v(mask), t.v(from), t.v(w))
		return
	}
	if shift+t.bits < 32 {
		t.and(mask, from, w)
		from = w
	}
	t.op("VCVTDQ2PS %s, %s", t.v(from), t.v(w))
	t.op("VSUBPS %s, %s, %s", t.v(z), t.v(w), t.v(w))
}

// floatZeros sets z to the zeros of a block as float32, unless there is one for
// all. kind is 0, 1 for bytes, or 2 for float32.
func (t *nbits) floatZeros(z int, kind string) {
	t.op("TESTQ %s, %s", nbitsZero, nbitsZero)
	t.op("JZ same")
	t.op("CMPQ %s, $2", kind)
	t.op("JEQ floats")
	t.op("VPMOVZXBD (%s), %s", nbitsZero, t.v(z))
	t.op("VCVTDQ2PS %s, %s", t.v(z), t.v(z))
	t.op("ADDQ $%d, %s", t.lanes, nbitsZero)
	t.op("JMP same")
	t.label("floats")
	t.op("VMOVUPS (%s), %s", nbitsZero, t.v(z))
	t.op("ADDQ $%d, %s", t.bytes(), nbitsZero)
	t.label("same")
}

// table loads the table or the mask of elements, and the zero of all.
func (t *nbits) table(place string, mask, z int) {
	if t.looked {
		t.op("MOVQ %s, DX", place)
		t.op("VMOVUPS (DX), %s", t.v(mask))
		return
	}
	t.op("VMOVUPS %s, %s", t.word(uint64(1<<t.bits-1)), t.v(mask))
	t.op("MOVQ %s, DX", place)
	t.op("VBROADCASTSS (DX), %s", t.v(z))
}

// floats is a loop of products with float32.
func (t *nbits) floats() string {
	name, first := fmt.Sprintf("nbitsFloats%dx%dx", t.bits, t.rows), "less"
	doc := "is %d rows of a product with a panel of %d bits, whose zeros are of a kind: 0 for one at less, 1 for bytes, 2 for float32; distances count bytes."
	if t.looked {
		name, first = fmt.Sprintf("nbitsTables%dx%dx", t.bits, t.rows), "table"
		doc = "is %d rows of a product with a panel of %d bits, each of which stands for a number of a table; distances count bytes."
	}
	in := []param{{"blocks", "int"}, {"steps", "int"}, {"a", "*float32"}, {"lda", "int"}, {"b", "*byte"}, {"scale", "*float32"}, {"zero", "*byte"}, {"kind", "int"}, {first, "*float32"}, {"c", "*float32"}, {"ldc", "int"}, {"add", "int"}}
	t.function(name, fmt.Sprintf(doc, t.rows, t.bits), in, nil)
	sum, raw := t.rows, t.rows+t.sets*t.rows
	w, z, mask, tmp := raw+1, raw+2, raw+3, raw+4
	t.loads(in, nbitsBlocks, nbitsSteps, t.pointers[0], regLDA, regPanel, nbitsScale, nbitsZero)
	kind := t.arg(in[7])
	t.table(t.arg(in[8]), mask, z)
	c := t.arg(in[9])
	t.totals(c, t.arg(in[10]), t.arg(in[11]))
	if !t.looked {
		t.floatZeros(z, kind)
	}
	for i := range t.sets * t.rows {
		t.op("VXORPS %s, %s, %s", t.v(sum+i), t.v(sum+i), t.v(sum+i))
	}
	t.op("MOVQ %s, %s", nbitsSteps, nbitsLeft)
	t.label("step")
	fields := 8 / t.bits
	for k := range nbitsStep {
		if k%(4*fields) == 0 {
			at := k / 4 / fields * t.bytes()
			t.op("VMOVUPS %d(%s), %s", at, regPanel, t.v(raw))
			t.prefetch(at)
		}
		t.element(raw, w, mask, z, k)
		for i := range t.rows {
			to := sum + k%t.sets*t.rows + i
			if t.masks {
				t.op("VFMADD231PS.BCST %s, %s, %s", t.row(i, 4*k), t.v(w), t.v(to))
				continue
			}
			t.op("VBROADCASTSS %s, %s", t.row(i, 4*k), t.v(tmp))
			t.op("VFMADD231PS %s, %s, %s", t.v(tmp), t.v(w), t.v(to))
		}
	}
	t.op("ADDQ $%d, %s", nbitsStep*t.bits/8*t.lanes, regPanel)
	t.advance(4 * nbitsStep)
	t.op("DECQ %s", nbitsLeft)
	t.op("JNZ step")
	t.op("VMOVUPS (%s), %s", nbitsScale, t.v(w))
	t.op("ADDQ $%d, %s", t.bytes(), nbitsScale)
	for n := t.sets; n > 1; n /= 2 {
		for i := range n / 2 * t.rows {
			t.op("VADDPS %s, %s, %s", t.v(sum+n/2*t.rows+i), t.v(sum+i), t.v(sum+i))
		}
	}
	for i := range t.rows {
		t.op("VFMADD231PS %s, %s, %s", t.v(sum+i), t.v(w), t.v(i))
	}
	t.op("DECQ %s", nbitsBlocks)
	t.op("JNZ block")
	t.leave(c)
	return name + t.suffix
}

// expand is a loop that makes float32 of a panel: rows of a vector.
func (t *nbits) expand() string {
	name := fmt.Sprintf("nbitsExpand%dx", t.bits)
	in := []param{{"blocks", "int"}, {"steps", "int"}, {"dst", "*float32"}, {"ld", "int"}, {"b", "*byte"}, {"scale", "*float32"}, {"zero", "*byte"}, {"kind", "int"}, {"less", "*float32"}}
	t.function(name, fmt.Sprintf("makes float32 of a panel of %d bits, in rows that are ld bytes apart, with zeros as in the products.", t.bits), in, nil)
	const raw, w, z, mask, scale = 0, 1, 2, 3, 4
	t.loads(in, nbitsBlocks, nbitsSteps, "DI", regLDA, regPanel, nbitsScale, nbitsZero)
	kind := t.arg(in[7])
	t.table(t.arg(in[8]), mask, z)
	t.label("block")
	t.floatZeros(z, kind)
	t.op("VMOVUPS (%s), %s", nbitsScale, t.v(scale))
	t.op("ADDQ $%d, %s", t.bytes(), nbitsScale)
	t.op("MOVQ %s, %s", nbitsSteps, nbitsLeft)
	t.label("step")
	fields := 8 / t.bits
	for k := range nbitsStep {
		if k%(4*fields) == 0 {
			t.op("VMOVUPS %d(%s), %s", k/4/fields*t.bytes(), regPanel, t.v(raw))
		}
		t.element(raw, w, mask, z, k)
		t.op("VMULPS %s, %s, %s", t.v(scale), t.v(w), t.v(w))
		t.op("VMOVUPS %s, (DI)", t.v(w))
		t.op("ADDQ %s, DI", regLDA)
	}
	t.op("ADDQ $%d, %s", nbitsStep*t.bits/8*t.lanes, regPanel)
	t.op("DECQ %s", nbitsLeft)
	t.op("JNZ step")
	t.op("DECQ %s", nbitsBlocks)
	t.op("JNZ block")
	t.ret()
	return name + t.suffix
}

// nbitsQuantize writes the loop that makes bytes of a row of A, block by block.
func (a *assembler) nbitsQuantize() {
	in := []param{{"blocks", "int"}, {"steps", "int"}, {"dst", "*byte"}, {"x", "*float32"}}
	a.function("nbitsQuantize", "makes blocks of signed bytes: before each block its sum, negative, and after it its scale.", in, nil)
	for i, reg := range []string{"CX", "R11", "DI", "SI"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	const x, peak, odd, sign, scale, sum, most, spare, none = 0, 1, 2, 3, 4, 5, 6, 7, 8
	a.op("VMOVUPS %s, %s", a.word(0x7fffffff), a.v(sign))
	a.clear(none, 1)
	a.label("block")
	a.clear(peak, 1)
	a.clear(odd, 1)
	a.op("MOVQ SI, DX")
	a.op("MOVQ R11, R10")
	a.label("peak")
	for i := range nbitsStep / a.lanes {
		a.op("VMOVUPS %d(DX), %s", i*a.bytes(), a.v(x))
		a.op("VMULPS %s, %s, %s", a.v(none), a.v(x), a.v(spare))
		a.op("VADDPS %s, %s, %s", a.v(spare), a.v(odd), a.v(odd)) // NaN if x is not finite
		a.op("VANDPS %s, %s, %s", a.v(sign), a.v(x), a.v(x))
		a.op("VMAXPS %s, %s, %s", a.v(x), a.v(peak), a.v(peak))
	}
	a.op("ADDQ $%d, DX", 4*nbitsStep)
	a.op("DECQ R10")
	a.op("JNZ peak")
	a.acrossLanes("VMAXPS", peak, spare)
	a.acrossLanes("VADDPS", odd, spare)
	a.op("VMOVSS %s, X%d", a.f32(127), most)
	a.op("VDIVSS X%d, X%d, X%d", most, peak, scale)
	a.op("VADDSS X%d, X%d, X%d", odd, scale, scale)
	a.op("VDIVSS X%d, X%d, X%d", peak, most, most)
	a.op("VMINSS %s, X%d, X%d", a.word(0x7f7fffff), most, most)
	a.op("VBROADCASTSS X%d, %s", most, a.v(most))
	a.clear(sum, 1)
	a.op("LEAQ 4(DI), DX")
	a.op("MOVQ R11, R10")
	a.label("bytes")
	for i := range nbitsStep / a.lanes {
		a.op("VMULPS %d(SI), %s, %s", i*a.bytes(), a.v(most), a.v(x))
		a.op("VCVTPS2DQ %s, %s", a.v(x), a.v(x))
		a.op("VPADDD %s, %s, %s", a.v(x), a.v(sum), a.v(sum))
		if a.masks {
			a.op("VPMOVDB %s, (DX)", a.v(x))
			continue
		}
		const lowBytes = 0x808080800c080400 // of four words
		a.op("VPSHUFB %s, Y%d, Y%d", a.constant(lowBytes), x, x)
		a.op("VEXTRACTI128 $1, Y%d, X%d", x, spare)
		a.op("VPUNPCKLDQ X%d, X%d, X%d", spare, x, x)
		a.op("VMOVQ X%d, %d(DX)", x, i*a.lanes)
	}
	a.op("ADDQ $%d, SI", 4*nbitsStep)
	a.op("ADDQ $%d, DX", nbitsStep)
	a.op("DECQ R10")
	a.op("JNZ bytes")
	a.acrossLanes("VPADDD", sum, spare)
	a.op("VPSUBD X%d, X%d, X%d", sum, none, sum)
	a.op("VMOVSS X%d, (DI)", sum)
	a.op("VMOVSS X%d, (DX)", scale)
	a.op("LEAQ 4(DX), DI")
	a.op("DECQ CX")
	a.op("JNZ block")
	a.ret()
}

// acrossLanes takes the lanes of a vector together into its first one.
func (a *assembler) acrossLanes(op string, v, spare int) {
	if a.masks {
		a.op("VEXTRACTF64X4 $1, Z%d, Y%d", v, spare)
		a.op("%s Y%d, Y%d, Y%d", op, spare, v, v)
	}
	a.op("VEXTRACTF128 $1, Y%d, X%d", v, spare)
	a.op("%s X%d, X%d, X%d", op, spare, v, v)
	a.op("VPERMILPS $0x4e, X%d, X%d", v, spare)
	a.op("%s X%d, X%d, X%d", op, spare, v, v)
	a.op("VPERMILPS $0xb1, X%d, X%d", v, spare)
	a.op("%s X%d, X%d, X%d", op, spare, v, v)
}
