package compute

import (
	"math"
	"testing"
)

func TestCompress(t *testing.T) {
	x := arg([]int16{1, 2, 3, 4, 5, 6}, 3, 2)
	expect(t, "rows", eval(t, "compress", attrs("axis", 0), x, arg([]bool{false, true, true}, 3)), []int{2, 2}, []float64{3, 4, 5, 6}, 0)
	expect(t, "columns", eval(t, "compress", attrs("axis", -1), x, arg([]bool{false, true}, 2)), []int{3, 1}, []float64{2, 4, 6}, 0)
	expect(t, "elements", eval(t, "compress", nil, x, arg([]bool{false, true, false, false, true}, 5)), []int{2}, []float64{2, 5}, 0)
	expect(t, "none", eval(t, "compress", attrs("axis", 0), x, arg([]bool{false}, 1)), []int{0, 2}, nil, 0)
}

func TestUnique(t *testing.T) {
	x := arg([]float32{2, 1, 1, 3, 4, 3}, 6)
	check := func(what string, c []float64, k []int, y, first, which, counts []float64) {
		t.Helper()
		sorted, n := 1, []int{len(first)}
		if what == "unsorted" {
			sorted = 0
		}
		r := run(t, call(t, "unique", attrs("sorted", sorted), 4, fromFloats(x.DType, c, len(c))))
		expect(t, what, r[0], k, y, 0)
		expect(t, what+": first", r[1], n, first, 0)
		expect(t, what+": which", r[2], []int{len(c)}, which, 0)
		expect(t, what+": counts", r[3], n, counts, 0)
	}
	check("unsorted", floats(x), []int{4}, []float64{2, 1, 3, 4}, []float64{0, 1, 3, 4}, []float64{0, 1, 1, 2, 3, 2}, []float64{1, 2, 2, 1})
	check("sorted", floats(x), []int{4}, []float64{1, 2, 3, 4}, []float64{1, 0, 3, 4}, []float64{1, 0, 0, 2, 3, 2}, []float64{2, 1, 2, 1})
	nan := math.NaN()
	check("nan", []float64{nan, 1, nan}, []int{2}, []float64{1, nan}, []float64{1, 0}, []float64{1, 0, 1}, []float64{1, 2})
	rows := arg([]int8{1, 0, 0, 1, 0, 0, 2, 3, 4}, 3, 3)
	expect(t, "rows", eval(t, "unique", attrs("axis", 0), rows), []int{2, 3}, []float64{1, 0, 0, 2, 3, 4}, 0)
	expect(t, "columns", eval(t, "unique", attrs("axis", 1), rows), []int{3, 3}, []float64{0, 0, 1, 0, 0, 1, 3, 4, 2}, 0)
	counts := call(t, "unique", nil, 4, rows)
	counts.Out[0], counts.Results[0] = absent, absent.Type
	expect(t, "without the first result", run(t, counts)[3], []int{5}, []float64{4, 2, 1, 1, 1}, 0)
}

func TestNonMaxSuppression(t *testing.T) {
	boxes := arg([]float32{0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101}, 1, 6, 4)
	scores := arg([]float32{0.9, 0.75, 0.6, 0.95, 0.5, 0.3}, 1, 1, 6)
	half := scalar[float32](0.5)
	expect(t, "all", eval(t, "non_max_suppression", nil, boxes, scores, ints(3), half), []int{3, 3}, []float64{0, 0, 3, 0, 0, 0, 0, 0, 5}, 0)
	expect(t, "score", eval(t, "non_max_suppression", nil, boxes, scores, ints(3), half, scalar[float32](0.4)), []int{2, 3}, []float64{0, 0, 3, 0, 0, 0}, 0)
	expect(t, "most", eval(t, "non_max_suppression", nil, boxes, scores, ints(1), half), []int{1, 3}, []float64{0, 0, 3}, 0)
	expect(t, "none", eval(t, "non_max_suppression", nil, boxes, scores), []int{0, 3}, nil, 0)
}
