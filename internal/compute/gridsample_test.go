package compute

import "testing"

func TestGridSample(t *testing.T) {
	x := arg([]float32{1, 2, 3, 4}, 1, 1, 2, 2)
	corners := arg([]float32{-1, -1, 1, -1, 0, 0, 3, 1}, 1, 1, 4, 2)
	expect(t, "aligned", eval(t, "grid_sample", attrs("align_corners", 1), x, corners), []int{1, 1, 1, 4}, []float64{1, 2, 2.5, 0}, 1e-6)
	expect(t, "edges", eval(t, "grid_sample", nil, x, corners), []int{1, 1, 1, 4}, []float64{0.25, 0.5, 2.5, 0}, 1e-6)
	expect(t, "border", eval(t, "grid_sample", attrs("padding_mode", "border"), x, corners), []int{1, 1, 1, 4}, []float64{1, 2, 2.5, 4}, 1e-6)
	expect(t, "reflection", eval(t, "grid_sample", attrs("padding_mode", "reflection", "align_corners", 1), x, corners), []int{1, 1, 1, 4}, []float64{1, 2, 2.5, 3}, 1e-6)
	expect(t, "nearest", eval(t, "grid_sample", attrs("mode", "nearest", "align_corners", 1), x, corners), []int{1, 1, 1, 4}, []float64{1, 2, 1, 0}, 0)
	expect(t, "cubic", eval(t, "grid_sample", attrs("mode", "cubic", "align_corners", 1, "padding_mode", "border"), x, corners), []int{1, 1, 1, 4}, []float64{1, 2, 2.5, 4}, 1e-6)
	for _, dt := range floatTypes {
		line, places := fromFloats(dt, []float64{0, 8, 4}, 1, 1, 3), fromFloats(dt, []float64{-0.5, 0.5}, 1, 2, 1)
		expect(t, "line", eval(t, "grid_sample", attrs("align_corners", 1), line, places), []int{1, 1, 2}, []float64{4, 6}, 0)
	}
}
