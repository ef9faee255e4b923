package ortdiff_test

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators["SwiGLU"] = func(d *drawer) {
		d.node("SwiGLU")
		dt, dims := pick(d, floats...), d.dims(0, 4)
		d.in(dt, dims...)
		d.in(dt, dims...)
		d.maybe("alpha", pick(d, 1, 1.702, 0.5, -1))
		d.outs(1)
	}
	tolerances["SwiGLU"] = tolerance{4, 4, 0, "exponentials of their own on both sides"}
	generators["CausalConvWithState"] = func(d *drawer) {
		d.node("CausalConvWithState")
		d.calm, d.mild = true, true
		dt := pick(d, dtype.F32, dtype.F32, dtype.F16)
		batch, channels, length, k := d.between(1, 3), d.between(1, 4), d.between(1, 6), d.between(1, 5)
		d.in(dt, batch, channels, length)
		d.in(dt, channels, 1, k)
		d.optional(0.5, dt, channels)
		if k > 1 {
			d.optional(0.5, dt, batch, channels, k-1)
		}
		d.maybe("activation", pick(d, "none", "silu", "swish"))
		d.outs(d.between(1, 2))
	}
	tolerances["CausalConvWithState"] = tolerance{16, 64, 0, "sums in another order"}
	generators["LinearAttention"] = drawLinearAttention
	tolerances["LinearAttention"] = tolerance{64, 256, 0, "sums in another order, fed back in each step"}
}

func drawLinearAttention(d *drawer) {
	d.node("LinearAttention")
	d.calm, d.mild = true, true
	dt := pick(d, dtype.F32, dtype.F32, dtype.F16)
	batch, length, groups, size, values := d.between(1, 2), d.between(1, 5), d.between(1, 3), d.between(1, 4), d.between(1, 4)
	heads := groups * d.between(1, 3)
	rule := pick(d, "linear", "gated", "delta", "gated_delta")
	d.in(dt, batch, length, heads*size)
	keys := make([]float64, batch*length*groups*size)
	for i := range keys { // a delta grows where keys are longer than 1
		keys[i] = d.NormFloat64() / math.Sqrt(float64(2*size))
	}
	d.with(dt, []int{batch, length, groups * size}, encodeFloats(dt, keys...))
	d.in(dt, batch, length, groups*values)
	d.optional(0.5, dt, batch, groups, size, values)
	some := func(of bool, least, most float64, dims ...int) {
		if !of {
			d.skip()
			return
		}
		list := make([]float64, elements(dims))
		for i := range list {
			list[i] = least + d.Float64()*(most-least)
		}
		d.with(dt, dims, encodeFloats(dt, list...))
	}
	some(rule == "gated" || rule == "gated_delta", -2, 0, batch, length, pick(d, groups, groups*size))
	some(rule == "delta" || rule == "gated_delta", 0, 1, batch, length, pick(d, 1, groups))
	d.attr("q_num_heads", heads)
	d.attr("kv_num_heads", groups)
	if rule != "gated_delta" || d.chance(0.5) {
		d.attr("update_rule", rule)
	}
	d.maybe("scale", pick(d, 0, 0.5, 1))
	if d.chance(0.3) {
		d.attr("chunk_size", pick(d, 1, 64))
	}
	d.outs(d.between(1, 2))
}
