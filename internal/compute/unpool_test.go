package compute

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/op"
)

func TestMaxUnpool(t *testing.T) {
	x, at := arg([]float32{1, 2, 3, 4}, 1, 1, 2, 2), arg([]int64{5, 7, 13, 15}, 1, 1, 2, 2)
	a := attrs("kernel_shape", []int64{2, 2}, "strides", []int64{2, 2})
	want := []float64{0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4}
	expect(t, "plain", eval(t, "max_unpool", a, x, at), []int{1, 1, 4, 4}, want, 0)
	larger := []float64{0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0}
	expect(t, "larger", eval(t, "max_unpool", a, x, at, ints(1, 1, 4, 5)), []int{1, 1, 4, 5}, larger, 0)
	refused(t, call(t, "max_unpool", a, 1, x, arg([]int64{5, 7, 16, 15}, 1, 1, 2, 2)), "got 16 at position 2, want 0 to 15")
}

// refused runs a call that must fail.
func refused(t *testing.T, c *op.Call, want string) {
	t.Helper()
	freshResults(c)
	if err := Eval(c); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q", c.Def.Name, err, want)
	}
}

func TestCol2Im(t *testing.T) {
	// Two blocks of 2x2 beside each other overlap in the middle column.
	x := arg([]float32{1, 5, 2, 6, 3, 7, 4, 8}, 1, 4, 2)
	expect(t, "overlap", eval(t, "col2im", nil, x, ints(2, 3), ints(2, 2)), []int{1, 1, 2, 3}, []float64{1, 7, 6, 3, 11, 8}, 0)
	for _, dt := range floatTypes {
		x := fromFloats(dt, []float64{1, 2, 3, 4}, 1, 2, 2)
		expect(t, "strides and pads", eval(t, "col2im", attrs("strides", []int64{2}, "pads", []int64{1, 1}), x, ints(2), ints(2)), []int{1, 1, 2}, []float64{3, 2}, 0)
	}
}

func TestInverse(t *testing.T) {
	for _, dt := range floatTypes {
		x := fromFloats(dt, []float64{0, 2, 4, 0, 1, 1, 0, 2}, 2, 2, 2)
		expect(t, "batch", eval(t, "inverse", nil, x), []int{2, 2, 2}, []float64{0, 0.25, 0.5, 0, 1, -0.5, 0, 0.5}, 0)
	}
	expect(t, "empty", eval(t, "inverse", nil, arg([]float32{}, 3, 0, 0)), []int{3, 0, 0}, []float64{}, 0)
}

func TestDet(t *testing.T) {
	for _, dt := range floatTypes {
		x := fromFloats(dt, []float64{0, 2, 1, 3, 1, 2, 2, 4}, 2, 2, 2)
		expect(t, "batch", eval(t, "det", nil, x), []int{2}, []float64{-2, 0}, 0)
	}
	expect(t, "empty", eval(t, "det", nil, arg([]float32{}, 0, 0)), []int{}, []float64{1}, 0)
}

func TestReverseSequence(t *testing.T) {
	x := arg([]int16{1, 2, 3, 4, 5, 6}, 3, 2)
	expect(t, "time first", eval(t, "reverse_sequence", nil, x, ints(3, 2)), []int{3, 2}, []float64{5, 4, 3, 2, 1, 6}, 0)
	y := arg([]int16{1, 2, 3, 4, 5, 6}, 2, 3)
	expect(t, "batch first", eval(t, "reverse_sequence", attrs("batch_axis", 0, "time_axis", 1), y, ints(1, 3)), []int{2, 3}, []float64{1, 2, 3, 6, 5, 4}, 0)
	refused(t, call(t, "reverse_sequence", nil, 1, x, ints(4, 1)), "got 4 for sequence 0, want 0 to 3")
}

func TestCumProd(t *testing.T) {
	x := arg([]int32{1, 2, 3, 4}, 4)
	expect(t, "plain", eval(t, "cum_prod", nil, x, scalar[int64](0)), []int{4}, []float64{1, 2, 6, 24}, 0)
	expect(t, "both", eval(t, "cum_prod", attrs("exclusive", 1, "reverse", 1), x, scalar[int32](-1)), []int{4}, []float64{24, 12, 4, 1}, 0)
}

func TestAffineGrid(t *testing.T) {
	same := arg([]float32{1, 0, 0, 0, 1, 0}, 1, 2, 3)
	expect(t, "middles", eval(t, "affine_grid", attrs("align_corners", 1), same, ints(1, 1, 2, 2)), []int{1, 2, 2, 2}, []float64{-1, -1, 1, -1, -1, 1, 1, 1}, 0)
	expect(t, "edges", eval(t, "affine_grid", nil, same, ints(1, 9, 1, 2)), []int{1, 1, 2, 2}, []float64{-0.5, 0, 0.5, 0}, 0)
	for _, dt := range floatTypes {
		move := fromFloats(dt, []float64{0, 0, 1, 2, 1, 0, 0, 3, 0, 1, 0, 4}, 1, 3, 4)
		expect(t, "volume", eval(t, "affine_grid", attrs("align_corners", 1), move, ints(1, 1, 1, 2, 1)), []int{1, 1, 2, 1, 3}, []float64{2, 3, 3, 2, 3, 5}, 0)
	}
}
