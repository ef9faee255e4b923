package compute

import (
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
)

func TestNLLLoss(t *testing.T) {
	x := arg([]float32{-1, -2, -3, -4, -5, -6}, 2, 3)
	targets, weights := ints(2, 0), arg([]float32{1, 1, 3}, 3)
	expect(t, "mean", eval(t, "nll_loss", nil, x, targets), nil, []float64{3.5}, 1e-6)
	expect(t, "none", eval(t, "nll_loss", attrs("reduction", "none"), x, targets, weights), []int{2}, []float64{9, 4}, 0)
	expect(t, "sum", eval(t, "nll_loss", attrs("reduction", "sum"), x, targets, weights), nil, []float64{13}, 0)
	expect(t, "weighted mean", eval(t, "nll_loss", nil, x, targets, weights), nil, []float64{13.0 / 4}, 1e-6)
	expect(t, "ignored", eval(t, "nll_loss", attrs("ignore_index", 9), x, ints(2, 9), weights), nil, []float64{3}, 0)
	planes := arg([]float64{-1, -2, -3, -4}, 1, 2, 2)
	expect(t, "area", eval(t, "nll_loss", attrs("reduction", "none"), planes, arg([]int32{1, 0}, 1, 2)), []int{1, 2}, []float64{3, 2}, 0)
	for _, bad := range []int64{3, -1} {
		c := call(t, "nll_loss", nil, 1, x, ints(0, bad))
		freshResults(c)
		if err := Eval(c); err == nil || !strings.Contains(err.Error(), "at position 1, want 0 to 2") {
			t.Errorf("class %d: got error %v", bad, err)
		}
	}
}

func TestTopK(t *testing.T) {
	for _, dt := range append(floatTypes, intTypes...) {
		x := fromFloats(dt, []float64{1, 7, 7, 3, 9, 2, 5, 5}, 2, 4)
		out := run(t, call(t, "top_k", nil, 2, x, ints(3)))
		expect(t, "values", out[0], []int{2, 3}, []float64{7, 7, 3, 9, 5, 5}, 0)
		expect(t, "indices", out[1], []int{2, 3}, []float64{1, 2, 3, 0, 2, 3}, 0)
		out = run(t, call(t, "top_k", attrs("axis", 0, "largest", 0), 2, x, ints(1)))
		expect(t, "values", out[0], []int{1, 4}, []float64{1, 2, 5, 3}, 0)
		expect(t, "indices", out[1], []int{1, 4}, []float64{0, 1, 1, 0}, 0)
	}
}

func TestHardmaxAndBitCast(t *testing.T) {
	x := arg([]float32{1, 3, 3, 5, 2, 4}, 2, 3)
	expect(t, "rows", eval(t, "hardmax", nil, x), []int{2, 3}, []float64{0, 1, 0, 1, 0, 0}, 0)
	expect(t, "columns", eval(t, "hardmax", attrs("axis", 0), x), []int{2, 3}, []float64{0, 1, 0, 1, 0, 1}, 0)
	expect(t, "bits", eval(t, "bit_cast", attrs("to", dtype.I32), arg([]float32{1}, 1)), []int{1}, []float64{float64(math.Float32bits(1))}, 0)
}
