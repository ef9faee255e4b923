package main

import "fmt"

// byteKernels has the tiles of products of bytes: those of A unsigned, those of a panel signed.
func (a *assembler) byteKernels() {
	a.tiles("byteTiles", "byteTileFunc", a.rows, a.byteTile)
}

// byteTile is a tile of a product of bytes, which are taken in groups: four in one instruction that adds their products to a sum, or two
// that were widened, those of A before, so that no sum of products is cut off.
func (a *assembler) byteTile(rows int) string {
	t := &tile{assembler: a, rows: rows, sets: 1, pointers: rowPointers[:(rows+2)/3], ints: true}
	for t.sets < 4 && 2*t.sets*rows <= a.rows {
		t.sets *= 2
	}
	name := fmt.Sprintf("byteTile%dx", rows)
	in := []param{{"depth", "int"}, {"a", "*byte"}, {"lda", "int"}, {"b", "*byte"}, {"c", "*int32"}, {"ldc", "int"}, {"nr", "int"}}
	last := []param{{"from", "*int32"}, {"ldfrom", "int"}}
	a.function(name, fmt.Sprintf("is a tile of %d rows and %d columns, of which nr are stored, with what lies at from added; depth counts groups, distances bytes.", rows, 2*a.lanes), append(in, last...), nil)
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

// byteStep adds the products of one group of columns of A and one of rows of the panel.
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
