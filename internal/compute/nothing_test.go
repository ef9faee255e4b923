package compute

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// Sizes beside a zero may be larger than any loop ends: such calls end at once,
// and take no scratch.
func TestNoElementsEndAtOnce(t *testing.T) {
	const huge = 1 << 40
	empty := func(dims ...int) op.Arg { return random(dtype.F32, 1, 0, 1, dims...) }
	same := func(name string, attrs op.Attrs, x op.Arg, more ...op.Arg) {
		t.Helper()
		expect(t, name, eval(t, name, attrs, append([]op.Arg{x}, more...)...), x.Shape.Sizes(), nil, 0)
	}
	same("trilu", nil, empty(huge, 0))
	same("cum_prod", nil, empty(huge, 0), scalar[int32](0))
	same("compress", attrs("axis", 1), empty(huge, 1, 0), arg([]bool{true}, 1))
	same("unique", attrs("axis", -2), empty(huge, 1, 0))
	expect(t, "top_k", run(t, call(t, "top_k", nil, 2, empty(0, 1<<58-1), ints(64)))[1], []int{0, 64}, nil, 0)
	expect(t, "unique", eval(t, "unique", attrs("axis", 0), empty(huge, 0)), []int{1, 0}, nil, 0)
	expect(t, "reduce_sum", eval(t, "reduce_sum", nil, empty(huge, 2, 0), ints(0, 2)), []int{1, 2, 1}, []float64{0, 0}, 0)
	expect(t, "non_max_suppression", eval(t, "non_max_suppression", nil, empty(huge, 0, 4), empty(huge, 1, 0), ints(5)), []int{0, 3}, nil, 0)
	r := run(t, call(t, "unique", attrs("axis", 0), 4, empty(3, 0)))
	expect(t, "first", r[1], []int{1}, []float64{0}, 0)
	expect(t, "which", r[2], []int{3}, []float64{0, 0, 0}, 0)
	expect(t, "counts", r[3], []int{1}, []float64{3}, 0)
}

// The rows of a normalisation may have no elements, and still have a mean,
// which is no number.
func TestNormOfNothing(t *testing.T) {
	x, row := random(dtype.F32, 1, 0, 1, 3, 0), random(dtype.F32, 1, 0, 1, 0)
	nan := math.NaN()
	for i, r := range run(t, call(t, "layer_normalization", nil, 3, x, row, row)) {
		if i > 0 {
			expect(t, "layer_normalization", r, []int{3, 1}, []float64{nan, nan, nan}, 0)
		}
	}
}

// A picture without columns has results where there are enough columns of
// padding.
func TestConvOfNothing(t *testing.T) {
	x, w := random(dtype.F32, 1, 0, 1, 1, 2, 3, 0), random(dtype.F32, 2, 0, 1, 3, 2, 1, 3)
	bias := arg([]float32{1, 2, 3}, 3)
	want := []float64{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3}
	expect(t, "conv", eval(t, "conv", attrs("pads", list(0, 2, 0, 2)), x, w, bias), []int{1, 3, 3, 2}, want, 0)
}
