package gemm

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Det is the determinant of the square matrix x of n rows, by elimination in
// scratch of n*n numbers.
func Det[T kernel.Float](n int, x []T, scratch []float64) T {
	m := scratch[:n*n]
	for i, v := range x[:n*n] {
		m[i] = float64(v)
	}
	det := 1.0
	for k := range n {
		pivot := k
		for i := k + 1; i < n; i++ {
			if math.Abs(m[i*n+k]) > math.Abs(m[pivot*n+k]) {
				pivot = i
			}
		}
		if pivot != k {
			det = -det
			for j := k; j < n; j++ {
				m[k*n+j], m[pivot*n+j] = m[pivot*n+j], m[k*n+j]
			}
		}
		first := m[k*n+k]
		det *= first
		if first == 0 {
			return T(det)
		}
		for i := k + 1; i < n; i++ {
			f := m[i*n+k] / first
			for j := k + 1; j < n; j++ {
				m[i*n+j] -= f * m[k*n+j]
			}
		}
	}
	return T(det)
}
