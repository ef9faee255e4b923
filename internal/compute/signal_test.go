package compute

import "testing"

func TestDFT(t *testing.T) {
	for _, dt := range floatTypes {
		x := fromFloats(dt, []float64{1, 2, 3, 4}, 1, 4, 1)
		expect(t, "forward", eval(t, "dft", nil, x), []int{1, 4, 2}, []float64{10, 0, -2, 2, -2, 0, -2, -2}, 1e-6)
		expect(t, "one side", eval(t, "dft", attrs("onesided", 1), x), []int{1, 3, 2}, []float64{10, 0, -2, 2, -2, 0}, 1e-6)
		half := fromFloats(dt, []float64{10, 0, -2, 2, -2, 0}, 1, 3, 2)
		expect(t, "back from one side", eval(t, "dft", attrs("onesided", 1, "inverse", 1), half), []int{1, 4, 1}, []float64{1, 2, 3, 4}, 1e-2)
	}
	x := arg([]float32{1, 2, 3, 4, 5, 6}, 3, 2, 1)
	expect(t, "axis 0", eval(t, "dft", nil, x, absent, scalar[int64](0)), []int{3, 2, 2}, []float64{9, 0, 12, 0, -3, 1.7320508, -3, 1.7320508, -3, -1.7320508, -3, -1.7320508}, 1e-5)
	expect(t, "longer", eval(t, "dft", nil, x, scalar[int64](4)), []int{3, 4, 2}, []float64{3, 0, 1, -2, -1, 0, 1, 2}, 1e-5)
	expect(t, "shorter", eval(t, "dft", nil, x, scalar[int32](1)), []int{3, 1, 2}, []float64{1, 0, 3, 0, 5, 0}, 1e-5)
}

func TestSTFT(t *testing.T) {
	x := arg([]float32{1, 2, 3, 4, 5}, 1, 5, 1)
	expect(t, "frames", eval(t, "stft", nil, x, scalar[int64](2), absent, scalar[int64](2)), []int{1, 2, 2, 2}, []float64{3, 0, -1, 0, 7, 0, -1, 0}, 1e-6)
	window := arg([]float32{1, 0, 2}, 3)
	expect(t, "window", eval(t, "stft", attrs("onesided", 0), x, scalar[int64](1), window), []int{1, 3, 3, 2},
		[]float64{7, 0, -2, 5.196152, -2, -5.196152, 10, 0, -2, 6.928203, -2, -6.928203}, 1e-5)
}

func TestMelWeightMatrix(t *testing.T) {
	w := eval(t, "mel_weight_matrix", nil, scalar[int64](4), scalar[int64](16), scalar[int64](8192), scalar[float32](0), scalar[float32](4096))
	want := []float64{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}
	expect(t, "first rows", w, []int{9, 4}, want, 0)
	refused(t, call(t, "mel_weight_matrix", nil, 1, scalar[int64](4), scalar[int64](16), scalar[int64](8192), scalar[float32](0), scalar[float32](9000)), "want frequencies")
}
