package main

import "fmt"

// byteKernels has the tiles of products of bytes: those of A unsigned, those of
// a panel signed.
func (a *assembler) byteKernels() {
	a.set("Width", 2*a.lanes)
	a.set("Step", map[bool]int{false: 2, true: 4}[a.masks])
	a.tiles("Tiles", "ByteTile", a.rows, a.byteTile)
	a.packBytes()
	a.set("Pack", "packBytes"+a.suffix)
	a.set("Lanes", a.lanes)
	a.requantRows()
	a.set("RequantRows", "requantRows"+a.suffix)
	a.byteConvKernels()
	a.byteDepthwise()
	fmt.Fprintf(&a.stubs, "\nfunc byteDepthwises%[1]s(call kernel.ByteDepthwise) { byteDepthwise%[1]s(&call) }\n", a.suffix)
	a.set("Depthwise", "byteDepthwises"+a.suffix)
	a.byteRows()
	if a.masks {
		a.byteArithmetics()
		a.lookupBytes()
		a.set("Lookup", "lookupBytes"+a.suffix)
		a.byteTaps()
		fmt.Fprintf(&a.stubs, "\nfunc tapsOf%[1]s(call kernel.ByteTaps) { byteTaps%[1]s(&call) }\n", a.suffix)
		a.set("Taps", "tapsOf"+a.suffix)
	}
	if !a.masks { // as fast as memory already
		a.quantize()
		a.set("Quantize", "quantizeBytes"+a.suffix)
		for _, k := range []struct{ name, widen string }{{"U8", "VPMOVZXBD"}, {"I8", "VPMOVSXBD"}} {
			a.dequantize(k.name, k.widen)
			a.set("Dequantize"+k.name, "dequantize"+k.name+"x"+a.suffix)
		}
	}
}

// packBytes lays rows of a panel's width side by side, as many as a group has,
// and adds up the columns. The bytes are signed once flip, eight of a kind, is
// taken.
func (a *assembler) packBytes() {
	in := []param{{"depth", "int"}, {"dst", "*byte"}, {"b", "*byte"}, {"ldb", "int"}, {"flip", "uint64"}, {"sums", "*int32"}}
	a.function("packBytes", "packs depth groups of rows of b, ldb bytes apart, and sets the sums of their columns; depth is not 0.", in, nil)
	for i, reg := range []string{"CX", "DI", "SI", "R9", "", "R8"} {
		if at := a.arg(in[i]); reg == "" {
			a.op("VPBROADCASTQ %s, Y8", at)
		} else {
			a.op("MOVQ %s, %s", at, reg)
		}
	}
	if a.masks {
		a.packFours()
	} else {
		a.packPairs()
	}
	a.ret()
}

// packFours takes 32 columns of four rows, and adds up by products with ones.
func (a *assembler) packFours() {
	a.op("VMOVUPS %s, Y9", a.constant(0x0101010101010101))
	for i := 10; i < 14; i++ {
		a.op("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	a.op("LEAQ (R9)(R9*2), R10")
	a.label("groups")
	for i, at := range []string{"(SI)", "(SI)(R9*1)", "(SI)(R9*2)", "(SI)(R10*1)"} {
		a.op("VPXOR %s, Y8, Y%d", at, i)
	}
	for _, in := range []int{0, 2} { // pairs of rows, in halves of a vector each
		a.op("VPUNPCKLBW Y%d, Y%d, Y%d", in+1, in, 4+in)
		a.op("VPUNPCKHBW Y%d, Y%d, Y%d", in+1, in, 5+in)
	}
	for half := range 2 {
		a.op("VPUNPCKLWD Y%d, Y%d, Y%d", 6+half, 4+half, 2*half)
		a.op("VPUNPCKHWD Y%d, Y%d, Y%d", 6+half, 4+half, 2*half+1)
	}
	for i, p := range []struct{ pick, pair int }{{0x20, 0}, {0x20, 2}, {0x31, 0}, {0x31, 2}} {
		a.op("VPERM2I128 $%d, Y%d, Y%d, Y%d", p.pick, p.pair+1, p.pair, 4+i)
	}
	for i := range 4 {
		a.op("VMOVUPS Y%d, %d(DI)", 4+i, 32*i)
		a.op("VPDPBUSD Y%d, Y9, Y%d", 4+i, 10+i)
	}
	a.op("ADDQ $128, DI")
	a.op("LEAQ (SI)(R9*4), SI")
	a.op("DECQ CX")
	a.op("JNZ groups")
	for i := range 4 {
		a.op("VMOVUPS Y%d, %d(R8)", 10+i, 32*i)
	}
}

// packPairs takes 16 columns of two rows.
func (a *assembler) packPairs() {
	a.op("VMOVUPS %s, Y9", a.constant(0x0001000100010001))
	a.op("VPXOR Y10, Y10, Y10")
	a.op("VPXOR Y11, Y11, Y11")
	a.label("groups")
	a.op("VPXOR (SI), X8, X0")
	a.op("VPXOR (SI)(R9*1), X8, X1")
	a.op("VPUNPCKLBW X1, X0, X2")
	a.op("VPUNPCKHBW X1, X0, X3")
	for i := range 2 {
		a.op("VMOVUPS X%d, %d(DI)", 2+i, 16*i)
		a.op("VPMOVSXBW X%d, Y%d", 2+i, 2+i)
		a.op("VPMADDWD Y9, Y%d, Y%d", 2+i, 2+i)
		a.op("VPADDD Y%d, Y%d, Y%d", 2+i, 10+i, 10+i)
	}
	a.op("ADDQ $32, DI")
	a.op("LEAQ (SI)(R9*2), SI")
	a.op("DECQ CX")
	a.op("JNZ groups")
	for i := range 2 {
		a.op("VMOVUPS Y%d, %d(R8)", 10+i, 32*i)
	}
}

// requantRows narrows rows of sums to bytes by a scale per column. Limits are
// whole numbers, so that it is no matter what comes first, they or rounding.
func (a *assembler) requantRows() {
	in := []param{{"rows", "int"}, {"n", "int"}, {"dst", "*byte"}, {"ldd", "int"}, {"x", "*int32"}, {"ldx", "int"}, {"scale", "*float32"}, {"lo", "float32"}, {"hi", "float32"}, {"zero", "int32"}}
	a.function("requantRows", "is min(max(x[i]*scale[i], lo), hi) rounded to the nearest integer, plus zero, for the n vectors of each row; distances count bytes, and neither rows nor n are 0.", in, nil)
	for i, reg := range []string{"R8", "R9", "R10", "R11", "R12", "R13", "BX"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	const x, lo, hi, zero = 0, 1, 2, 3
	for i := range 3 {
		a.op("VBROADCASTSS %s, %s", a.arg(in[7+i]), a.v(lo+i))
	}
	a.label("rows")
	a.op("MOVQ R9, CX")
	a.op("MOVQ R10, DI")
	a.op("MOVQ R12, SI")
	a.op("MOVQ BX, DX")
	a.label("vectors")
	a.op("VCVTDQ2PS (SI), %s", a.v(x))
	a.op("VMULPS (DX), %s, %s", a.v(x), a.v(x))
	a.ps("VMAXPS", lo, x, x)
	a.ps("VMINPS", hi, x, x)
	a.storeBytes(x, zero, zero+1, 0)
	for _, reg := range []string{"SI", "DX"} {
		a.op("ADDQ $%d, %s", a.bytes(), reg)
	}
	a.op("ADDQ $%d, DI", a.lanes)
	a.op("DECQ CX")
	a.op("JNZ vectors")
	a.op("ADDQ R11, R10")
	a.op("ADDQ R13, R12")
	a.op("DECQ R8")
	a.op("JNZ rows")
	a.ret()
}

// byteTile is a tile of a product of bytes, which are taken in groups: four in
// one instruction that adds their products to a sum, or two that were widened,
// those of A before, so that no sum of products is cut off.
func (a *assembler) byteTile(rows int) string {
	t := &tile{assembler: a, rows: rows, sets: 1, pointers: rowPointers[:(rows+2)/3], ints: true}
	for t.sets < 4 && 2*t.sets*rows <= a.rows {
		t.sets *= 2
	}
	name := fmt.Sprintf("byteTile%dx", rows)
	in := []param{{"depth", "int"}, {"a", "*byte"}, {"lda", "int"}, {"b", "*byte"}, {"c", "*int32"}, {"ldc", "int"}, {"nr", "int"}}
	last := []param{{"from", "*int32"}, {"ldfrom", "int"}}
	a.function(name, fmt.Sprintf("is a tile of %d rows and %d columns, of which nr are stored, with the numbers at from added; depth counts groups, distances bytes.", rows, 2*a.lanes), append(in, last...), nil)
	for i, reg := range []string{regDepth, t.pointers[0], regLDA, regPanel, regC, regLDC, regColumn} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	places := []string{a.arg(last[0]), a.arg(last[1])}
	t.start("")
	t.loop()
	t.join()
	t.finish(places)
	return name + a.suffix
}

// byteStep adds the products of one group of columns of A and one of rows of
// the panel.
func (t *tile) byteStep(u int) {
	first := 2 * t.assembler.rows
	b, x, product := [2]string{t.v(first), t.v(first + 1)}, t.v(first+2), t.v(first+3)
	for half := range 2 {
		if t.assembler.masks {
			t.op("VMOVUPS %d(%s), %s", (2*u+half)*t.bytes(), regPanel, b[half])
		} else {
			t.op("VPMOVSXBW %d(%s), %s", (2*u+half)*t.bytes()/2, regPanel, b[half])
		}
	}
	for i := range t.rows {
		t.op("VPBROADCASTD %s, %s", t.elementOfA(u, i), x)
		for half := range 2 {
			sum := t.sum(u%t.sets, i, half)
			if t.assembler.masks {
				t.op("VPDPBUSD %s, %s, %s", b[half], x, sum)
				continue
			}
			t.op("VPMADDWD %s, %s, %s", b[half], x, product)
			t.op("VPADDD %s, %s, %s", product, sum, sum)
		}
	}
}

// storeBytes rounds a vector of numbers that fit into bytes, adds zero and
// stores it so many bytes behind DI.
func (a *assembler) storeBytes(x, zero, spare, at int) {
	a.op("VCVTPS2DQ %s, %s", a.v(x), a.v(x))
	a.op("VPADDD %s, %s, %s", a.v(zero), a.v(x), a.v(x))
	if a.masks {
		a.op("VPMOVDB %s, %d(DI)", a.v(x), at)
		return
	}
	const lowBytes = 0x808080800c080400 // of four words
	a.op("VPSHUFB %s, Y%d, Y%d", a.constant(lowBytes), x, x)
	a.op("VEXTRACTI128 $1, Y%d, X%d", x, spare)
	a.op("VPUNPCKLDQ X%d, X%d, X%d", spare, x, x)
	a.op("VMOVQ X%d, %d(DI)", x, at)
}

// quantize writes the function quantizeBytes, in which NaN becomes zero.
func (a *assembler) quantize() {
	in := []param{{"n", "int"}, {"dst", "*byte"}, {"x", "*float32"}, {"scale", "float32"}, {"lo", "float32"}, {"hi", "float32"}, {"zero", "int32"}}
	a.function("quantizeBytes", "is min(max(x[i]/scale, lo), hi) rounded to the nearest integer, plus zero, for n times eight numbers; n is not 0.", in, nil)
	for i, reg := range []string{"CX", "DI", "SI"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	const x, scale, lo, hi, zero, nothing = 0, 1, 2, 3, 4, 5
	for i := range 4 {
		a.op("VBROADCASTSS %s, %s", a.arg(in[3+i]), a.v(scale+i))
	}
	a.clear(nothing, 1)
	a.label("eight")
	a.op("VMOVUPS (SI), %s", a.v(x))
	a.ps("VDIVPS", scale, x, x)
	a.choose("PS", unordered, a.v(x), a.v(x), a.v(nothing), a.v(x))
	a.ps("VMAXPS", lo, x, x)
	a.ps("VMINPS", hi, x, x)
	a.storeBytes(x, zero, nothing+1, 0)
	a.op("ADDQ $32, SI")
	a.op("ADDQ $8, DI")
	a.op("DECQ CX")
	a.op("JNZ eight")
	a.ret()
}

func (a *assembler) dequantize(name, widen string) {
	in := []param{{"n", "int"}, {"dst", "*float32"}, {"x", "*byte"}, {"scale", "float32"}, {"zero", "int32"}}
	a.function("dequantize"+name+"x", "is (x[i] - zero) * scale for n times eight bytes; n is not 0.", in, nil)
	for i, reg := range []string{"CX", "DI", "SI"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	const x, scale, zero = 0, 1, 2
	a.op("VBROADCASTSS %s, %s", a.arg(in[3]), a.v(scale))
	a.op("VBROADCASTSS %s, %s", a.arg(in[4]), a.v(zero))
	a.label("eight")
	a.op("%s (SI), %s", widen, a.v(x))
	a.op("VPSUBD %s, %s, %s", a.v(zero), a.v(x), a.v(x))
	a.op("VCVTDQ2PS %s, %s", a.v(x), a.v(x))
	a.ps("VMULPS", scale, x, x)
	a.op("VMOVUPS %s, (DI)", a.v(x))
	a.op("ADDQ $8, SI")
	a.op("ADDQ $32, DI")
	a.op("DECQ CX")
	a.op("JNZ eight")
	a.ret()
}
