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

// Inverse writes the inverse of the square matrix x of n rows to dst, which may
// be x, by elimination in scratch of 2*n*n numbers. If x has none, elements are
// infinite or NaN.
func Inverse[T kernel.Float](n int, dst, x []T, scratch []float64) {
	width := 2 * n
	m := scratch[:n*width] // rows of x, with those of the identity beside them
	clear(m)
	for i := range n {
		for j, v := range x[i*n : i*n+n] {
			m[i*width+j] = float64(v)
		}
		m[i*width+n+i] = 1
	}
	for k := range n {
		pivot := k
		for i := k + 1; i < n; i++ {
			if math.Abs(m[i*width+k]) > math.Abs(m[pivot*width+k]) {
				pivot = i
			}
		}
		row := m[k*width : k*width+width]
		if pivot != k {
			other := m[pivot*width : pivot*width+width]
			for j := range row {
				row[j], other[j] = other[j], row[j]
			}
		}
		first := row[k]
		for j := k; j < width; j++ {
			row[j] /= first
		}
		for i := range n {
			f := m[i*width+k]
			if i == k || f == 0 {
				continue
			}
			other := m[i*width : i*width+width]
			for j := k; j < width; j++ {
				other[j] -= f * row[j]
			}
		}
	}
	for i := range n {
		for j, v := range m[i*width+n : i*width+width] {
			dst[i*n+j] = T(v)
		}
	}
}
