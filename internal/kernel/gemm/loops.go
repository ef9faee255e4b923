package gemm

import "github.com/tenure-go/tenure/internal/kernel"

// gemmPanel computes m rows of sums, nr <= v.Gemm.Width columns wide: the
// product of depth columns of A, whose rows are lda apart, and a packed panel
// of B. How an element is summed depends on depth and m alone. It cuts the rows
// into tiles of nearly equal height: five and five are faster than six and
// four.
func gemmPanel(v *kernel.Variant, m, depth int, a []float32, lda int, b []float32, nr int, s sums) {
	if v.Gemm.Tiles == nil {
		portableGemmPanel(m, depth, a, lda, b, nr, s)
		return
	}
	if m == 0 || depth == 0 {
		return
	}
	// The last elements that the tiles touch.
	_, _ = a[(m-1)*lda+depth-1], b[depth*v.Gemm.Width-1]
	s.check(m, nr)
	for tiles := kernel.CeilDiv(m, len(v.Gemm.Tiles)-1); tiles > 0; tiles-- {
		rows := kernel.CeilDiv(m, tiles)
		v.Gemm.Tiles[rows](depth, &a[0], 4*lda, &b[0], &s.c[0], 4*s.ldc, nr, &b[0], 0, s.start(), 4*s.ldfrom, s.relu)
		if m -= rows; m > 0 {
			a = a[rows*lda:]
			s.skip(rows)
		}
	}
}

// gemmPrefetchPanel is gemmPanel that prefetches what comes next meanwhile:
// each tile a row in four steps. It costs a few nanoseconds more to call.
func gemmPrefetchPanel(v *kernel.Variant, m, depth int, a []float32, lda int, b []float32, nr int, s sums, next ahead) {
	if v.Gemm.Tiles == nil {
		portableGemmPanel(m, depth, a, lda, b, nr, s)
		return
	}
	for tiles := kernel.CeilDiv(m, len(v.Gemm.Tiles)-1); tiles > 0 && next.rows > 0 && depth > 0; tiles-- {
		rows := kernel.CeilDiv(m, tiles)
		_, _ = a[(rows-1)*lda+depth-1], b[depth*v.Gemm.Width-1]
		s.check(rows, nr)
		tile := v.Gemm.Tiles[rows]
		if rows < len(v.Gemm.Prefetching) {
			tile = v.Gemm.Prefetching[rows]
		}
		tile(depth, &a[0], 4*lda, &b[0], &s.c[0], 4*s.ldc, nr, &next.from[0], 4*next.ld, s.start(), 4*s.ldfrom, s.relu)
		next.skip(depth / 4)
		if m -= rows; m > 0 {
			a = a[rows*lda:]
			s.skip(rows)
		}
	}
	gemmPanel(v, m, depth, a, lda, b, nr, s)
}

// gemmPackPanel is gemmPrefetchPanel with a part of B whose rows are ldb apart,
// which it packs into b while it computes the first tile.
func gemmPackPanel(v *kernel.Variant, m, depth int, a []float32, lda int, src []float32, ldb int, b []float32, nr int, s sums, next ahead) {
	if v.Gemm.Tiles == nil {
		PackPanel(b, src, ldb, depth, nr, kernel.PortableNR)
		portableGemmPanel(m, depth, a, lda, b, nr, s)
		return
	}
	if m == 0 || depth == 0 {
		return
	}
	if nr < v.Gemm.Width && !v.Gemm.PacksParts {
		PackPanel(b, src, ldb, depth, nr, v.Gemm.Width)
		gemmPrefetchPanel(v, m, depth, a, lda, b, nr, s, next)
		return
	}
	// The first tile is no higher than the others would be.
	rows := min(kernel.CeilDiv(m, kernel.CeilDiv(m, len(v.Gemm.Tiles)-1)), len(v.Gemm.Packing)-1)
	_, _, _ = a[(rows-1)*lda+depth-1], src[(depth-1)*ldb+nr-1], b[depth*v.Gemm.Width-1]
	s.check(rows, nr)
	v.Gemm.Packing[rows](depth, &a[0], 4*lda, &b[0], &s.c[0], 4*s.ldc, nr, &src[0], 4*ldb, s.start(), 4*s.ldfrom, s.relu)
	if m > rows {
		s.skip(rows)
		gemmPrefetchPanel(v, m-rows, depth, a[rows*lda:], lda, b, nr, s, next)
	}
}

// GemvAxpy adds a row vector times a matrix whose rows are ldb apart to out. It
// takes eight rows of B at a time, so that out is read and written once for
// eight products. out is short: gemvCols at most.
func GemvAxpy(v *kernel.Variant, out, a, b []float32, ldb int) {
	if v.Gemm.Axpy8 == nil {
		portableGemvAxpy(out, a, b, ldb)
		return
	}
	n, k := len(out), 0
	if n == 0 {
		return
	}
	for ; k+8 <= len(a); k += 8 {
		rows := b[k*ldb : (k+7)*ldb+n]
		v.Gemm.Axpy8(n, &out[0], &a[k], &rows[0], 4*ldb)
	}
	for ; k < len(a); k++ {
		row := b[k*ldb:][:n]
		v.Gemm.Axpy1(n, &out[0], &a[k], &row[0], 4*ldb)
	}
}

// GemvDot adds a row vector times a matrix that is stored as rows of columns,
// ldb apart, to out. It takes four rows at a time, so that a is read once for
// four products.
func GemvDot(v *kernel.Variant, out, a, b []float32, ldb int) {
	if v.Gemm.Dot4 == nil {
		portableGemvDot(out, a, b, ldb)
		return
	}
	for len(a) > 0 {
		n := min(len(a), kernel.AsmElements)
		j := 0
		for ; j+4 <= len(out); j += 4 {
			rows := b[j*ldb : (j+3)*ldb+n]
			v.Gemm.Dot4(n, &out[j], &a[0], &rows[0], 4*ldb)
		}
		for ; j < len(out); j++ {
			rows := b[j*ldb:][:n]
			v.Gemm.Dot1(n, &out[j], &a[0], &rows[0], 4*ldb)
		}
		if a = a[n:]; len(a) > 0 {
			b = b[n:]
		}
	}
}
