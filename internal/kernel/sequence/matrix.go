package sequence

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// matrix is a part of the weights of a direction: some rows, depth elements
// long, that become columns of a product. Of float32 they are read in panels,
// width columns wide.
type matrix struct{ from, cols, depth, width int }

// panels is the size of the panels, in elements.
func (m *matrix) panels() int {
	if m.cols == 0 {
		return 0
	}
	return kernel.CeilDiv(m.cols, m.width) * m.width * m.depth
}

// packMatrices writes the panels of matrices one after the other.
func packMatrices(v *kernel.Variant, list *[2]matrix, dst, w []float32) {
	for i := range list {
		m := &list[i]
		for j := 0; j < m.cols && m.depth > 0; j += m.width {
			panel := dst[:m.width*m.depth]
			gemm.PackTransposed(v, panel, w[(m.from+j)*m.depth:], m.depth, m.depth, min(m.width, m.cols-j))
			dst = dst[len(panel):]
		}
	}
}

// addProduct sets rows of c, ldc apart, to those of from, ldfrom apart, plus
// the products of rows of a with the matrix. from may be c. w are the panels of
// the matrix, or of float64 the rows of all matrices.
func addProduct[T kernel.Float](v *kernel.Variant, m *matrix, w []T, rows int, a []T, lda int, c []T, ldc int, from []T, ldfrom int) {
	if m.depth == 0 {
		for i := range rows {
			copy(c[i*ldc:][:m.cols], from[i*ldfrom:])
		}
		return
	}
	if panels, ok := any(w).([]float32); ok {
		m.multiply(v, panels, rows, any(a).([]float32), lda, any(c).([]float32), ldc, any(from).([]float32), ldfrom)
		return
	}
	for i := range rows {
		x := a[i*lda:][:m.depth]
		for j := range m.cols {
			sum := from[i*ldfrom+j]
			for k, y := range w[(m.from+j)*m.depth:][:m.depth] {
				sum += x[k] * y
			}
			c[i*ldc+j] = sum
		}
	}
}

func (m *matrix) multiply(v *kernel.Variant, panels []float32, rows int, a []float32, lda int, c []float32, ldc int, from []float32, ldfrom int) {
	for j := 0; j < m.cols; j += m.width {
		panel, cols := panels[j*m.depth:][:m.width*m.depth], min(m.width, m.cols-j)
		add, ldadd := from[j:], ldfrom
		for k := 0; k < m.depth; k += gemm.BlockDepth {
			depth := min(gemm.BlockDepth, m.depth-k)
			gemm.MultiplyPanel(v, rows, depth, a[k:], lda, panel[k*m.width:], cols, c[j:], ldc, add, ldadd)
			add, ldadd = c[j:], ldc
		}
	}
}
