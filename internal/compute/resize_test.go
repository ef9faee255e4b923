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

// The expected numbers are those of ONNX Runtime 1.32. Where size times scale
// has a fraction, ONNX's reference implementation has others for align_corners
// and tf_crop_and_resize: it puts the corners where the fraction ends.
func TestResizeByFractions(t *testing.T) {
	squares := func(n int, dims ...int) op.Arg {
		src := make([]float64, n)
		for i := range src {
			src[i] = float64((i + 1) * (i + 1))
		}
		return fromFloats(dtype.F32, src, dims...)
	}
	scales := func(v ...float32) op.Arg { return arg(v, len(v)) }
	ramp := fromFloats(dtype.F32, []float64{1, 2, 3, 4, 5, 6, 7, 8}, 1, 1, 2, 4)
	three := fromFloats(dtype.F32, []float64{1, 2, 4}, 1, 3)
	corners, crop := []any{"coordinate_transformation_mode", "align_corners"}, []any{"coordinate_transformation_mode", "tf_crop_and_resize"}
	for _, c := range []struct {
		name string
		in   []op.Arg
		with []any
		mode string
		dims []int
		want []float64
	}{
		{"corners", []op.Arg{squares(5, 1, 5), absent, scales(1, 1.5)}, corners, "nearest", []int{1, 7}, []float64{1, 4, 4, 9, 16, 16, 25}},
		{"corners", []op.Arg{squares(5, 1, 5), absent, scales(1, 1.5)}, corners, "linear", []int{1, 7}, []float64{1, 3, 5.6666670, 9, 13.6666670, 19, 25}},
		{"corners", []op.Arg{squares(5, 1, 5), absent, scales(1, 1.5)}, corners, "cubic", []int{1, 7}, []float64{1, 2.5, 5.5185146, 9, 13.0740757, 19.6111202, 25}},
		{"corners that come closer", []op.Arg{ramp, absent, scales(1, 1, 0.6, 0.6)}, corners, "linear", []int{1, 1, 1, 2}, []float64{1, 4}},
		{"corners that come closer", []op.Arg{ramp, absent, scales(1, 1, 0.6, 0.6)}, corners, "cubic", []int{1, 1, 1, 2}, []float64{1, 4}},
		{"filtered corners", []op.Arg{squares(7, 1, 7), absent, scales(1, 0.5)}, append([]any{"antialias", 1}, corners...), "linear", []int{1, 3}, []float64{1.75, 16.5, 45.75}},
		{"filtered corners", []op.Arg{squares(7, 1, 7), absent, scales(1, 0.5)}, append([]any{"antialias", 1}, corners...), "cubic", []int{1, 3}, []float64{1.1875, 15.75, 46.6875}},
		{"corners of one aspect", []op.Arg{squares(12, 3, 4), absent, absent, ints(7, 7)}, append([]any{"keep_aspect_ratio_policy", "not_larger"}, corners...), "linear", []int{5, 7},
			[]float64{1, 2.5, 4, 6.5, 9, 12.5, 16, 13, 16.5, 20, 24.5, 29, 34.5, 40, 25, 30.5, 36, 42.5, 49, 56.5, 64, 53, 60.5, 68, 76.5, 85, 94.5, 104, 81, 90.5, 100, 110.5, 121, 132.5, 144}},
		{"a region", []op.Arg{squares(5, 1, 5), scales(0, 0.25, 1, 0.75), scales(1, 1.3)}, crop, "nearest", []int{1, 6}, []float64{4, 4, 9, 9, 16, 16}},
		{"a region", []op.Arg{squares(5, 1, 5), scales(0, 0.25, 1, 0.75), scales(1, 1.3)}, crop, "linear", []int{1, 6}, []float64{4, 6, 8, 10.4, 13.2, 16}},
		{"a region", []op.Arg{squares(5, 1, 5), scales(0, 0.25, 1, 0.75), scales(1, 1.3)}, crop, "cubic", []int{1, 6}, []float64{4, 5.76, 7.52, 10.496, 12.672, 16}},
		{"sizes that stay", []op.Arg{three, absent, scales(1, 1.3)}, nil, "nearest", []int{1, 3}, []float64{1, 2, 4}},
		{"sizes that stay", []op.Arg{three, absent, scales(1, 1.3)}, nil, "linear", []int{1, 3}, []float64{1, 2, 4}},
		{"sizes that stay", []op.Arg{three, absent, scales(1, 1.3)}, nil, "cubic", []int{1, 3}, []float64{1, 2, 4}},
		{"a filtered axis that stays", []op.Arg{fromFloats(dtype.F32, []float64{1, 2, 4, 9, 16, 25}, 2, 3), absent, scales(1.3, 0.7)}, []any{"antialias", 1}, "linear", []int{2, 2},
			[]float64{1.3103448, 3.1851850, 11.1724138, 21.3333323}},
		{"ties of a scale that is rounded", []op.Arg{squares(8, 1, 8), absent, scales(1, 1.3)}, nil, "nearest", []int{1, 10}, []float64{1, 4, 4, 9, 16, 25, 25, 36, 49, 64}},
		{"growing and shrinking", []op.Arg{fromFloats(dtype.F32, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 3, 4), absent, scales(1.5, 0.6)},
			[]any{"coordinate_transformation_mode", "asymmetric", "nearest_mode", "inward"}, "nearest", []int{4, 2}, []float64{1, 3, 1, 3, 5, 7, 9, 11}},
	} {
		expect(t, c.mode+": "+c.name, eval(t, "resize", attrs(append([]any{"mode", c.mode}, c.with...)...), c.in...), c.dims, c.want, 1e-5)
	}
	// ONNX Runtime copies an axis whose size stays; the definition, its
	// reference implementation and TensorFlow take the region.
	got := eval(t, "resize", attrs(append([]any{"mode", "linear"}, crop...)...), squares(5, 1, 5), scales(0, 0.25, 1, 0.75), absent, ints(1, 5))
	expect(t, "a region of the same size", got, []int{1, 5}, []float64{4, 6.5, 9, 12.5, 16}, 1e-5)
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
