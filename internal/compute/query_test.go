package compute

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
)

func TestShapeAndSize(t *testing.T) {
	x := random(dtype.F32, 1, 0, 1, 2, 0, 5)
	expect(t, "shape", eval(t, "shape", nil, x), []int{3}, []float64{2, 0, 5}, 0)
	expect(t, "shape", eval(t, "shape", attrs("start", 1), x), []int{2}, []float64{0, 5}, 0)
	expect(t, "shape", eval(t, "shape", attrs("start", -1, "end", 3), x), []int{1}, []float64{5}, 0)
	expect(t, "shape", eval(t, "shape", attrs("start", 2, "end", 1), x), []int{0}, nil, 0)
	expect(t, "size", eval(t, "size", nil, x), nil, []float64{0}, 0)
	expect(t, "size", eval(t, "size", nil, ints(1, 2, 3)), nil, []float64{3}, 0)
}
