package gemm_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestDet(t *testing.T) {
	r := kerneltest.NewRand(122)
	for n := range 7 {
		for range 20 {
			x := kerneltest.Small(r, n*n) // often singular
			s := kerneltest.NewSpace(t)
			src, scratch := kerneltest.In(s, "x", x), kerneltest.Out[float64](s, "scratch", n*n)
			got := gemm.Det(n, src, scratch)
			s.Check()
			kerneltest.WantClose(t, []float32{got}, []float64{ref.Det(n, kerneltest.F64s(x))}, 1e-2)
		}
	}
}

func TestInverse(t *testing.T) {
	r := kerneltest.NewRand(123)
	for n := range 9 {
		for range 20 {
			x := kerneltest.Small(r, n*n)
			for i := range n {
				x[i*n+i] += float32(8 * n) // far from singular
			}
			want := ref.Inverse(n, kerneltest.F64s(x))
			s := kerneltest.NewSpace(t)
			src, dst, scratch := kerneltest.In(s, "x", x), kerneltest.Out[float32](s, "dst", n*n), kerneltest.Out[float64](s, "scratch", 2*n*n)
			gemm.Inverse(n, dst, src, scratch)
			s.Check()
			kerneltest.WantClose(t, dst, want, 1e-5)
			gemm.Inverse(n, x, x, scratch)
			kerneltest.WantClose(t, x, want, 1e-5)
		}
	}
	singular := []float32{1, 2, 2, 4}
	gemm.Inverse(2, singular, singular, make([]float64, 8))
	for i, v := range singular {
		if v-v == 0 { // neither infinite nor NaN
			t.Errorf("element %d of the inverse of a singular matrix: got %g, want none that is finite", i, v)
		}
	}
}
