package gemm

import (
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

// These are the parts of a product for kernels that pack and multiply panel by
// panel. A panel has v.Gemm.Width columns; nr of them, at most all, are used.

// PackTransposed packs nr columns of depth elements that are stored as rows, ld
// apart, with zeros in the other columns.
func PackTransposed(v *kernel.Variant, panel, src []float32, ld, depth, nr int) {
	width, side := v.Gemm.Width, v.Rows.Bytes/4
	turn := v.Elements.TransposeWords
	if turn == nil || nr < side || depth < side {
		PackPanelRows(panel, src, ld, depth, nr, width)
		return
	}
	_, _ = panel[depth*width-1], src[(nr-1)*ld+depth-1]
	word := func(x []float32, at int) *uint32 { return (*uint32)(unsafe.Pointer(&x[at])) }
	// The last squares overlap those before them.
	for k := 0; k < depth; k += side {
		k = min(k, depth-side)
		turn(nr/side, word(panel, k*width), word(src, k), 4*width, 4*ld)
		if rest := nr - side; nr%side != 0 {
			turn(1, word(panel, k*width+rest), word(src, k+rest*ld), 4*width, 4*ld)
		}
	}
	if nr < width {
		for k := range depth {
			clear(panel[k*width+nr : (k+1)*width])
		}
	}
}

// MultiplyPanel computes m rows and nr columns of c, whose rows are ldc apart:
// the product of m rows of a, depth elements long and lda apart, and a panel,
// added to the rows of from, ldfrom apart, unless that is nil. from may be c.
func MultiplyPanel(v *kernel.Variant, m, depth int, a []float32, lda int, panel []float32, nr int, c []float32, ldc int, from []float32, ldfrom int) {
	gemmPanel(v, m, depth, a, lda, panel, nr, sums{c: c, ldc: ldc, from: from, ldfrom: ldfrom})
}

// MultiplyRows is MultiplyPanel with depth rows of B, nr elements long and ldb
// apart, which it packs into panel meanwhile.
func MultiplyRows(v *kernel.Variant, m, depth int, a []float32, lda int, b []float32, ldb int, panel []float32, nr int, c []float32, ldc int, from []float32, ldfrom int) {
	gemmPackPanel(v, m, depth, a, lda, b, ldb, panel, nr, sums{c: c, ldc: ldc, from: from, ldfrom: ldfrom}, ahead{})
}
