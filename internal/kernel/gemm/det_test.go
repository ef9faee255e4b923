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
