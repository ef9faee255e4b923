package compute

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// The expected numbers are those of the examples in the definition of Resize.
func TestResize(t *testing.T) {
	ramp := func(dims ...int) op.Arg {
		src := make([]float64, product(dims))
		for i := range src {
			src[i] = float64(i + 1)
		}
		return fromFloats(dtype.F32, src, dims...)
	}
	four := ramp(1, 1, 2, 2)
	scales := func(v ...float32) op.Arg { return arg(v, len(v)) }
	for i, c := range []struct {
		in   []op.Arg
		a    op.Attrs
		dims []int
		want []float64
	}{
		{[]op.Arg{four, absent, scales(1, 1, 2, 3)}, nil, []int{1, 1, 4, 6},
			[]float64{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}},
		{[]op.Arg{four, absent, scales(1, 1, 2, 2)}, attrs("mode", "linear"), []int{1, 1, 4, 4},
			[]float64{1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4}},
		{[]op.Arg{four, absent, scales(1, 1, 2, 2)}, attrs("mode", "linear", "coordinate_transformation_mode", "align_corners"), []int{1, 1, 4, 4},
			[]float64{1, 4. / 3, 5. / 3, 2, 5. / 3, 2, 7. / 3, 8. / 3, 7. / 3, 8. / 3, 3, 10. / 3, 3, 10. / 3, 11. / 3, 4}},
		{[]op.Arg{ramp(1, 1, 2, 4), absent, scales(1, 1, 0.6, 0.6)}, attrs("mode", "linear"), []int{1, 1, 1, 2}, []float64{2.6666665, 4.3333331}},
		{[]op.Arg{ramp(1, 1, 2, 4), absent, scales(1, 1, 0.6, 0.6)}, nil, []int{1, 1, 1, 2}, []float64{1, 3}},
		{[]op.Arg{four, absent, absent, ints(1, 1, 3, 3)}, attrs("mode", "nearest", "coordinate_transformation_mode", "asymmetric", "nearest_mode", "floor"),
			[]int{1, 1, 3, 3}, []float64{1, 1, 2, 1, 1, 2, 3, 3, 4}},
		{[]op.Arg{four, absent, absent, ints(3, 3)}, attrs("mode", "nearest", "axes", []int64{3, 2}, "coordinate_transformation_mode", "asymmetric", "nearest_mode", "floor"),
			[]int{1, 1, 3, 3}, []float64{1, 1, 2, 1, 1, 2, 3, 3, 4}},
		{[]op.Arg{ramp(4), absent, scales(0.5)}, attrs("mode", "linear", "antialias", 1), []int{2}, []float64{1.625, 3.375}},
		{[]op.Arg{ramp(4), absent, scales(0.5)}, attrs("mode", "linear", "antialias", 1, "exclude_outside", 1), []int{2}, []float64{3. / 1.75, 5.75 / 1.75}},
		{[]op.Arg{ramp(4), scales(0.4, 0.6), absent, ints(3)}, attrs("mode", "linear", "coordinate_transformation_mode", "tf_crop_and_resize"),
			[]int{3}, []float64{2.2, 2.5, 2.8}},
		{[]op.Arg{ramp(4), scales(0.5, 1.5), absent, ints(3)}, attrs("mode", "linear", "coordinate_transformation_mode", "tf_crop_and_resize", "extrapolation_value", 10.0),
			[]int{3}, []float64{2.5, 4, 10}},
		{[]op.Arg{ramp(5), absent, absent, ints(5)}, attrs("mode", "cubic"), []int{5}, []float64{1, 2, 3, 4, 5}},
	} {
		expect(t, fmt.Sprintf("resize %d", i), eval(t, "resize", c.a, c.in...), c.dims, c.want, 1e-6)
	}
}

// A cubic resize holds on polynomials of degree one away from the ends, for
// every element type.
func TestResizeTypes(t *testing.T) {
	for _, dt := range append(append([]dtype.DType{}, floatTypes...), dtype.I8, dtype.U8, dtype.I32, dtype.I64) {
		src := []float64{0, 8, 16, 24, 32, 40, 48, 56}
		got := eval(t, "resize", attrs("mode", "cubic", "coordinate_transformation_mode", "asymmetric"), fromFloats(dt, src, 8), absent, arg([]float32{2}, 1))
		for i, v := range floats(got)[4:11] {
			if want := float64(16 + 4*i); math.Abs(v-want) > 0.01*want {
				t.Errorf("resize of %v: element %d: got %v, want %v", dt, i+4, v, want)
			}
		}
	}
	b := eval(t, "resize", nil, arg([]bool{true, false}, 2), absent, arg([]float32{2}, 1))
	expect(t, "resize of bools", b, []int{4}, []float64{1, 1, 0, 0}, 0)
	big := random(dtype.F32, 1, -1, 1, 1, 4, 40, 50)
	eval(t, "resize", attrs("mode", "linear"), big, absent, arg([]float32{1, 1, 2, 2}, 4))
	eval(t, "resize", nil, big, absent, arg([]float32{1, 1, 2, 2}, 4))
}
