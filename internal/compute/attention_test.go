package compute

import (
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
)

func TestAttention(t *testing.T) {
	// Two keys, of which the second scores higher by log 3: weights 1/4 and
	// 3/4.
	q, k, v := arg([]float32{1, 0}, 1, 1, 1, 2), arg([]float32{0, 5, float32(math.Log(3)), 7}, 1, 1, 2, 2), arg([]float32{4, 8}, 1, 1, 2, 1)
	scale := attrs("scale", 1.0)
	expect(t, "y", eval(t, "attention", scale, q, k, v), []int{1, 1, 1, 1}, []float64{7}, 1e-6)
	expect(t, "causal", eval(t, "attention", attrs("scale", 1.0, "is_causal", 1), q, k, v), []int{1, 1, 1, 1}, []float64{4}, 1e-6)
	expect(t, "mask", eval(t, "attention", scale, q, k, v, arg([]bool{false, true}, 2)), []int{1, 1, 1, 1}, []float64{8}, 1e-6)
	expect(t, "all masked", eval(t, "attention", scale, q, k, v, arg([]bool{false, false}, 2)), []int{1, 1, 1, 1}, []float64{0}, 0)
	expect(t, "short mask", eval(t, "attention", scale, q, k, v, arg([]float32{0}, 1)), []int{1, 1, 1, 1}, []float64{4}, 1e-6)
	expect(t, "lengths", eval(t, "attention", scale, q, k, v, absent, absent, absent, ints(1)), []int{1, 1, 1, 1}, []float64{4}, 1e-6)
	// With the first key as past the result is the same, and present holds
	// both.
	first, second := arg([]float32{0, 5}, 1, 1, 1, 2), arg([]float32{float32(math.Log(3)), 7}, 1, 1, 1, 2)
	c := call(t, "attention", attrs("scale", 1.0, "qk_matmul_output_mode", 3), 4, q, second, arg([]float32{8}, 1, 1, 1, 1), absent, first, arg([]float32{4}, 1, 1, 1, 1))
	out := run(t, c)
	expect(t, "y", out[0], []int{1, 1, 1, 1}, []float64{7}, 1e-6)
	expect(t, "present k", out[1], []int{1, 1, 2, 2}, floats(k), 0)
	expect(t, "present v", out[2], []int{1, 1, 2, 1}, floats(v), 0)
	expect(t, "weights", out[3], []int{1, 1, 1, 2}, []float64{0.25, 0.75}, 1e-6)

	bad := call(t, "attention", nil, 1, q, k, v, absent, absent, absent, ints(3))
	freshResults(bad)
	if err := Eval(bad); err == nil || !strings.Contains(err.Error(), "got 3 keys for sample 0, want 0 to 2") {
		t.Errorf("got error %v", err)
	}
}

func TestRotaryEmbedding(t *testing.T) {
	x := arg([]float32{1, 2, 3, 4}, 1, 1, 1, 4)
	quarter := arg([]float32{0, 0}, 1, 1, 2) // cosines of a right angle
	ones := arg([]float32{1, 1}, 1, 1, 2)
	expect(t, "halves", eval(t, "rotary_embedding", nil, x, quarter, ones), []int{1, 1, 1, 4}, []float64{-3, -4, 1, 2}, 0)
	expect(t, "neighbours", eval(t, "rotary_embedding", attrs("interleaved", 1), x, quarter, ones), []int{1, 1, 1, 4}, []float64{-2, 1, -4, 3}, 0)
	table, sines := arg([]float32{1, 0}, 2, 1), arg([]float32{0, 1}, 2, 1)
	expect(t, "positions", eval(t, "rotary_embedding", attrs("rotary_embedding_dim", 2), x, table, sines, arg([]int64{1}, 1, 1)), []int{1, 1, 1, 4}, []float64{-2, 1, 3, 4}, 0)
	bad := call(t, "rotary_embedding", attrs("rotary_embedding_dim", 2), 1, x, table, sines, arg([]int64{2}, 1, 1))
	freshResults(bad)
	if err := Eval(bad); err == nil || !strings.Contains(err.Error(), "positions: got 2 at position 0, want 0 to 1") {
		t.Errorf("got error %v", err)
	}
}

func TestRMSNorm(t *testing.T) {
	for _, dt := range floatTypes {
		x, scale := fromFloats(dt, []float64{3, 4, 0, 5}, 2, 2), fromFloats(dt, []float64{1, 2}, 2)
		r, s := 1/math.Sqrt(12.5), 1/math.Sqrt(12.5)
		expect(t, "rms", eval(t, "rms_normalization", attrs("epsilon", 0.0), x, scale), []int{2, 2}, []float64{3 * r, 8 * r, 0, 10 * s}, max(2e-6, tolerance(dt)))
	}
	one := arg([]float32{2}, 1)
	expect(t, "axis 0", eval(t, "rms_normalization", attrs("axis", 0, "epsilon", 1.0), random(dtype.F32, 1, 0, 0, 2, 2), one), []int{2, 2}, []float64{0, 0, 0, 0}, 0)
}
