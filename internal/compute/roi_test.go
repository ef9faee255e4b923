package compute

import "testing"

func TestRoiAlign(t *testing.T) {
	image := arg([]float32{1, 2, 3, 4}, 1, 1, 2, 2)
	whole := arg([]float32{0, 0, 2, 2}, 1, 4)
	expect(t, "mean", eval(t, "roi_align", nil, image, whole, ints(0)), []int{1, 1, 1, 1}, []float64{2.5}, 1e-6)
	expect(t, "grid", eval(t, "roi_align", attrs("output_height", 2, "output_width", 2), image, whole, ints(0)), []int{1, 1, 2, 2}, []float64{1, 2, 3, 4}, 1e-6)
	refused(t, call(t, "roi_align", nil, 1, image, whole, ints(1)), "got image 1, want 0 to 0")
}

func TestMaxRoiPool(t *testing.T) {
	for _, dt := range floatTypes {
		image := fromFloats(dt, []float64{1, 2, 3, 4}, 1, 1, 2, 2)
		expect(t, "grid", eval(t, "max_roi_pool", attrs("pooled_shape", []int64{1, 2}), image, fromFloats(dt, []float64{0, 0, 0, 1, 1}, 1, 5)), []int{1, 1, 1, 2}, []float64{3, 4}, 0)
	}
	image := arg([]float32{1, 2, 3, 4}, 1, 1, 2, 2)
	refused(t, call(t, "max_roi_pool", attrs("pooled_shape", []int64{1, 2}), 1, image, arg([]float32{0.5, 0, 0, 1, 1}, 1, 5)), "got image 0.5")
}

func TestDeformConv(t *testing.T) {
	for _, dt := range floatTypes {
		x, w := fromFloats(dt, []float64{1, 2, 4, 8}, 1, 1, 4), fromFloats(dt, []float64{1, 10}, 1, 1, 2)
		offsets := fromFloats(dt, []float64{0, 0.5, -1, 1, 0, -0.5}, 1, 2, 3) // of the first tap, then of the second
		bias, factors := fromFloats(dt, []float64{1}, 1), fromFloats(dt, []float64{1, 1, 1, 1, 2, 0}, 1, 2, 3)
		expect(t, "offsets", eval(t, "deform_conv", nil, x, w, offsets), []int{1, 1, 3}, []float64{41, 43, 62}, 0)
		expect(t, "factors", eval(t, "deform_conv", nil, x, w, offsets, bias, factors), []int{1, 1, 3}, []float64{42, 84, 3}, 0)
	}
}

func TestLinearAttention(t *testing.T) {
	a := attrs("q_num_heads", 2, "kv_num_heads", 1, "scale", 1.0, "update_rule", "linear")
	for _, dt := range floatTypes {
		q, k := fromFloats(dt, []float64{1, 2, 1, 3}, 1, 2, 2), fromFloats(dt, []float64{1, 2}, 1, 2, 1)
		v, past := fromFloats(dt, []float64{1, 2, 3, 4}, 1, 2, 2), fromFloats(dt, []float64{1, 1}, 1, 1, 1, 2)
		r := run(t, call(t, "linear_attention", a, 2, q, k, v, past))
		expect(t, "output", r[0], []int{1, 2, 4}, []float64{2, 3, 4, 6, 8, 11, 24, 33}, 0)
		expect(t, "state", r[1], []int{1, 1, 1, 2}, []float64{8, 11}, 0)
	}
}
