package kernel

// asmElements is how much of a row one call of assembly takes. Assembly cannot be preempted, and a collection waits for it: a call must not
// last longer than some ten microseconds.
const asmElements = 16 << 10

type gemmCode struct {
	nr                       int // two vectors
	tiles                    []gemmTileFunc
	asking                   []gemmTileFunc // of a few rows, which ask too
	packing                  []gemmPackingFunc
	masks                    bool // parts of a panel can be packed while they are multiplied
	axpy8, axpy1, dot4, dot1 gemvFunc
}

type (
	gemmTileFunc    func(depth int, a *float32, lda int, b *float32, c *float32, ldc int, nr int, next *float32, step int, from *float32, ldfrom int, relu bool)
	gemmPackingFunc func(depth int, a *float32, lda int, b *float32, c *float32, ldc int, nr int, src *float32, ldb int, from *float32, ldfrom int, relu bool)
	gemvFunc        func(n int, out, x, b *float32, ldb int)
)

var (
	gemm256 = gemmCode{nr: 16, tiles: gemmTiles256[:], asking: gemmAsking256[:], packing: gemmPacking256[:], axpy8: axpy8x256, axpy1: axpy1x256, dot4: dot4x256, dot1: dot1x256}
	gemm512 = gemmCode{nr: 32, tiles: gemmTiles512[:], asking: gemmAsking512[:], packing: gemmPacking512[:], masks: true, axpy8: axpy8x512, axpy1: axpy1x512, dot4: dot4x512, dot1: dot1x512}
)

func (v *gemmCode) install() {
	gemmNR = v.nr
	gemmPanel = v.gemmPanel
	gemmAskPanel = v.gemmAskPanel
	gemmPackPanel = v.gemmPackPanel
	gemvAxpy = v.gemvAxpy
	gemvDot = v.gemvDot
}

// gemmPanel cuts the rows into tiles of nearly equal height: five and five are faster than six and four.
func (v *gemmCode) gemmPanel(m, depth int, a []float32, lda int, b []float32, nr int, s sums) {
	if m == 0 || depth == 0 {
		return
	}
	// The last elements that the tiles touch.
	_, _ = a[(m-1)*lda+depth-1], b[depth*v.nr-1]
	s.check(m, nr)
	for tiles := ceilDiv(m, len(v.tiles)-1); tiles > 0; tiles-- {
		rows := ceilDiv(m, tiles)
		v.tiles[rows](depth, &a[0], 4*lda, &b[0], &s.c[0], 4*s.ldc, nr, &b[0], 0, s.start(), 4*s.ldfrom, s.relu)
		if m -= rows; m > 0 {
			a = a[rows*lda:]
			s.skip(rows)
		}
	}
}

// gemmAskPanel lets each tile ask for a row in four steps.
func (v *gemmCode) gemmAskPanel(m, depth int, a []float32, lda int, b []float32, nr int, s sums, next ahead) {
	for tiles := ceilDiv(m, len(v.tiles)-1); tiles > 0 && next.rows > 0 && depth > 0; tiles-- {
		rows := ceilDiv(m, tiles)
		_, _ = a[(rows-1)*lda+depth-1], b[depth*v.nr-1]
		s.check(rows, nr)
		tile := v.tiles[rows]
		if rows < len(v.asking) {
			tile = v.asking[rows]
		}
		tile(depth, &a[0], 4*lda, &b[0], &s.c[0], 4*s.ldc, nr, &next.from[0], 4*next.ld, s.start(), 4*s.ldfrom, s.relu)
		next.skip(depth / 4)
		if m -= rows; m > 0 {
			a = a[rows*lda:]
			s.skip(rows)
		}
	}
	v.gemmPanel(m, depth, a, lda, b, nr, s)
}

// gemmPackPanel packs while it computes the first tile.
func (v *gemmCode) gemmPackPanel(m, depth int, a []float32, lda int, src []float32, ldb int, b []float32, nr int, s sums, next ahead) {
	if m == 0 || depth == 0 {
		return
	}
	if nr < v.nr && !v.masks {
		packPanel(b, src, ldb, depth, nr, v.nr)
		v.gemmAskPanel(m, depth, a, lda, b, nr, s, next)
		return
	}
	// The first tile is no higher than the others would be.
	rows := min(ceilDiv(m, ceilDiv(m, len(v.tiles)-1)), len(v.packing)-1)
	_, _, _ = a[(rows-1)*lda+depth-1], src[(depth-1)*ldb+nr-1], b[depth*v.nr-1]
	s.check(rows, nr)
	v.packing[rows](depth, &a[0], 4*lda, &b[0], &s.c[0], 4*s.ldc, nr, &src[0], 4*ldb, s.start(), 4*s.ldfrom, s.relu)
	if m > rows {
		s.skip(rows)
		v.gemmAskPanel(m-rows, depth, a[rows*lda:], lda, b, nr, s, next)
	}
}

// gemvAxpy takes eight rows of B at a time, so that out is read and written once for eight products. out is short: gemvCols at most.
func (v *gemmCode) gemvAxpy(out, a, b []float32, ldb int) {
	n, k := len(out), 0
	if n == 0 {
		return
	}
	for ; k+8 <= len(a); k += 8 {
		rows := b[k*ldb : (k+7)*ldb+n]
		v.axpy8(n, &out[0], &a[k], &rows[0], 4*ldb)
	}
	for ; k < len(a); k++ {
		row := b[k*ldb:][:n]
		v.axpy1(n, &out[0], &a[k], &row[0], 4*ldb)
	}
}

// gemvDot takes four rows at a time, so that a is read once for four products.
func (v *gemmCode) gemvDot(out, a, b []float32, ldb int) {
	for len(a) > 0 {
		n := min(len(a), asmElements)
		j := 0
		for ; j+4 <= len(out); j += 4 {
			rows := b[j*ldb : (j+3)*ldb+n]
			v.dot4(n, &out[j], &a[0], &rows[0], 4*ldb)
		}
		for ; j < len(out); j++ {
			rows := b[j*ldb:][:n]
			v.dot1(n, &out[j], &a[0], &rows[0], 4*ldb)
		}
		if a = a[n:]; len(a) > 0 {
			b = b[n:]
		}
	}
}
