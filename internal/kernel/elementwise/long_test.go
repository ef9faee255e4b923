package elementwise_test

import (
	"testing"

	table "github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// TestLongRows computes rows that the kernels cut into pieces.
func TestLongRows(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		r := kerneltest.NewRand(70)
		x, y := kerneltest.Uniform(r, kerneltest.LongRow), kerneltest.Uniform(r, kerneltest.LongRow)
		t.Run("unary", func(t *testing.T) {
			ops := kernelsOf()
			for _, f := range table.Functions() {
				s := kerneltest.NewSpace(t)
				dst, p := kerneltest.Out[float32](s, "dst", kerneltest.LongRow), paramsOf(f)[0]
				elementwise.UnaryF32(v, ops[f.Name], dst, kerneltest.In(s, "x", x), p[0], p[1])
				s.Check()
				wide := make([]float64, kerneltest.LongRow)
				elementwise.UnaryF64(v, ops[f.Name], wide, kerneltest.F64s(x), float64(p[0]), float64(p[1]))
				if fault := functionFault(f, ref.UnaryOf(f.Name), p, x, dst, wide); fault != "" {
					t.Error(fault)
				}
			}
		})
		t.Run("stream", kerneltest.With(v, testStream))
		t.Run("binary", func(t *testing.T) {
			var even, left, right kernel.Nest
			even.Prepare([]int{kerneltest.LongRow}, []int{1}, []int{1}, []int{1})
			left.Prepare([]int{kerneltest.LongRow}, []int{1}, []int{0}, []int{1})
			right.Prepare([]int{kerneltest.LongRow}, []int{1}, []int{1}, []int{0})
			for _, c := range []struct {
				nest *kernel.Nest
				a, b int
			}{{&even, 1, 1}, {&left, 0, 1}, {&right, 1, 0}} {
				s := kerneltest.NewSpace(t)
				dst := kerneltest.Out[float32](s, "dst", kerneltest.LongRow)
				elementwise.BinaryF32(v, kernel.Sub, c.nest, 0, kerneltest.LongRow, dst, kerneltest.In(s, "x", x), kerneltest.In(s, "y", y))
				s.Check()
				for i := range dst {
					if want := x[i*c.a] - y[i*c.b]; dst[i] != want {
						t.Fatalf("strides %d, %d: element %d: got %v, want %v", c.a, c.b, i, dst[i], want)
					}
				}
			}
		})
	})
}
