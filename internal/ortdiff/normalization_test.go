package ortdiff_test

import "github.com/tenure-go/tenure/dtype"

func init() {
	loose := tolerance{64, 4000, 0, "x times a number and plus one, which are large where the variance is no more than epsilon"}
	epsilon := func(d *drawer) { d.maybe("epsilon", pick(d, 1e-5, 1e-3, 0.1)) }
	generators["BatchNormalization"] = func(d *drawer) {
		d.node("BatchNormalization")
		dt, dims, outs := pick(d, floats...), d.dims(2, 5), 1
		if d.m.opset >= 14 && d.chance(0.3) {
			dims, outs = full(dims), 3
			d.attr("training_mode", 1)
		}
		d.in(dt, dims...)
		for range 3 {
			d.in(dt, dims[1])
		}
		d.positive(dt, dims[1])
		epsilon(d)
		d.maybe("momentum", 0.5)
		if d.m.opset < 7 {
			d.attr("is_test", 1)
		}
		if d.m.opset < 9 && d.chance(0.3) {
			d.attr("spatial", 1)
		}
		d.outs(outs)
	}
	generators["InstanceNormalization"] = func(d *drawer) {
		d.node("InstanceNormalization")
		dt, dims := pick(d, floats...), full(d.dims(3, 5))
		d.in(dt, dims...)
		d.in(dt, dims[1])
		d.in(dt, dims[1])
		epsilon(d)
		d.outs(1)
	}
	generators["GroupNormalization"] = func(d *drawer) {
		d.node("GroupNormalization")
		dt, dims := pick(d, floats...), full(d.dims(3, 4))
		groups := d.between(1, 3)
		dims[1] = groups * d.between(1, 3)
		d.in(dt, dims...)
		d.in(dt, dims[1])
		d.in(dt, dims[1])
		epsilon(d)
		d.attr("num_groups", groups)
		if d.chance(0.3) {
			d.attr("stash_type", 1)
		}
		d.outs(1)
	}
	layer := func(name string, bias bool) func(d *drawer) {
		return func(d *drawer) {
			d.node(name)
			dt, dims := pick(d, floats...), full(d.dims(1, 4))
			at, axis := d.axis(len(dims))
			if name != "RMSNormalization" && d.chance(0.5) || d.chance(0.3) {
				at, axis = len(dims)-1, -1
			}
			d.in(dt, dims...)
			scale := dims[at:]
			if name != "SimplifiedLayerNormalization" && d.m.opset >= 17 && d.chance(0.2) {
				scale = d.broadcast(scale)
			}
			wide := name != "SimplifiedLayerNormalization" && d.m.opset >= 17 && d.chance(0.15)
			if wide { // it differs from row to row
				scale = d.broadcast(dims)
			}
			d.in(dt, scale...)
			if bias {
				d.optional(0.6, dt, scale...)
			}
			if axis != -1 || d.chance(0.5) {
				d.attr("axis", axis)
			}
			epsilon(d)
			if d.chance(0.3) {
				d.attr("stash_type", 1)
			}
			outs := 1
			if name == "LayerNormalization" && !wide && d.chance(0.3) {
				outs = d.between(2, 3)
			}
			d.outs(outs)
		}
	}
	generators["LayerNormalization"] = layer("LayerNormalization", true)
	generators["RMSNormalization"] = layer("RMSNormalization", false)
	generators["SimplifiedLayerNormalization"] = layer("SimplifiedLayerNormalization", false)
	generators["LRN"] = func(d *drawer) {
		d.node("LRN")
		d.in(pick(d, dtype.F32, dtype.F32, dtype.F16, dtype.F64), full(d.dims(4, 4))...)
		d.attr("size", d.between(1, 5))
		d.maybe("alpha", pick(d, 1e-4, 0.1, 1))
		d.maybe("beta", pick(d, 0.75, 0.5, 1))
		d.maybe("bias", pick(d, 1.0, 2))
		d.outs(1)
	}
	generators["Dropout"] = func(d *drawer) {
		d.node("Dropout")
		dt := pick(d, floats...)
		d.in(dt, d.dims(0, 4)...)
		if d.m.opset < 7 {
			d.attr("is_test", 1)
		}
		if d.m.opset < 12 {
			d.maybe("ratio", 0.3)
		} else {
			nothing := d.chance(0.3)
			switch {
			case nothing:
				d.operand(d.value(dtype.F32, []int{}, encodeFloats(dtype.F32, 0), true))
			case d.chance(0.5):
				d.with(dtype.F32, []int{}, encodeFloats(dtype.F32, 0.3))
			default:
				d.skip()
			}
			switch {
			case nothing && d.chance(0.5):
				d.with(dtype.Bool, []int{}, []byte{1})
			case d.chance(0.3):
				d.with(dtype.Bool, []int{}, []byte{0})
			}
			d.maybe("seed", 5)
		}
		outs := 1
		if d.m.opset >= 10 {
			outs = d.between(1, 2)
		}
		d.outs(outs)
	}
	for _, name := range []string{"BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization",
		"SimplifiedLayerNormalization", "LRN"} {
		tolerances[name] = loose
	}
}

// positive adds an operand of numbers above zero.
func (d *drawer) positive(dt dtype.DType, dims ...int) {
	list := make([]float64, elements(dims))
	for i := range list {
		list[i] = 0.1 + d.Float64()*3
	}
	d.with(dt, dims, encodeFloats(dt, list...))
}
