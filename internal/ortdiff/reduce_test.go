package ortdiff_test

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
)

func init() {
	types := append([]dtype.DType{dtype.I32, dtype.I64}, floats...)
	for _, name := range []string{"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
		"ReduceProd", "ReduceSum", "ReduceSumSquare"} {
		of := types
		if name == "ReduceMax" || name == "ReduceMin" {
			of = append([]dtype.DType{dtype.I8, dtype.U8, dtype.Bool}, of...)
		}
		generators[name] = func(d *drawer) {
			d.reduce(name, pick(d, of...))
		}
		tolerances[name] = tolerance{16, 16, 0, "sums in another order"}
	}
	tolerances["ReduceProd"] = tolerance{32, 0, 0, "products in another order"}
	for _, name := range []string{"ReduceMax", "ReduceMin"} {
		delete(tolerances, name)
	}
	for _, name := range []string{"ArgMax", "ArgMin"} {
		generators[name] = func(d *drawer) {
			d.node(name)
			dims := full(d.dims(1, 4))
			dt := pick(d, numbers...)
			at, axis := d.axis(len(dims))
			if d.m.opset < 11 {
				axis = int64(at)
			}
			d.in(dt, dims...)
			if axis != 0 || d.chance(0.5) {
				d.attr("axis", axis)
			}
			d.maybe("keepdims", d.chance(0.5))
			if d.m.opset >= 12 {
				d.maybe("select_last_index", d.chance(0.5))
			}
			d.outs(1)
		}
	}
	for _, name := range []string{"Softmax", "LogSoftmax", "Hardmax"} {
		generators[name] = func(d *drawer) {
			d.node(name)
			dims := d.dims(1, 4)
			at, axis := d.axis(len(dims))
			if d.m.opset < 11 {
				axis = int64(at)
			}
			d.in(pick(d, floats...), dims...)
			if len(dims) == 1 && d.m.opset < 13 || d.chance(0.7) {
				d.attr("axis", axis)
			}
			d.outs(1)
		}
		tolerances[name] = tolerance{32, 8, 0, "exponentials of their own on both sides, sums in another order"}
	}
	delete(tolerances, "Hardmax")
	for _, name := range []string{"CumSum", "CumProd"} {
		generators[name] = func(d *drawer) {
			d.node(name)
			dims := d.dims(1, 4)
			at, axis := d.axis(len(dims))
			d.in(pick(d, types...), dims...)
			dt := pick(d, dtype.I64, dtype.I32)
			_ = at
			d.operand(d.value(dt, pick(d, []int{}, []int{}, []int{1}), encodeInts(dt, axis), d.fixed))
			d.maybe("exclusive", d.chance(0.5))
			d.maybe("reverse", d.chance(0.5))
			d.outs(1)
		}
		tolerances[name] = tolerance{8, 8, 0, "half precision is rounded after each term by ONNX Runtime"}
	}
	generators["TopK"] = func(d *drawer) {
		d.node("TopK")
		dims, dt := full(d.dims(1, 4)), pick(d, floats...)
		if d.m.opset >= 11 {
			dt = pick(d, numbers...)
		}
		at, axis := d.axis(len(dims))
		if d.m.opset < 11 {
			axis = int64(at)
		}
		d.in(dt, dims...)
		k := int64(d.between(1, dims[at]))
		if d.m.opset < 10 {
			d.attr("k", k)
		} else {
			if d.chance(0.05) {
				k = 0
			}
			d.ints(k)
		}
		if at != len(dims)-1 || d.chance(0.5) {
			d.attr("axis", axis)
		}
		if d.m.opset >= 11 {
			d.maybe("largest", d.chance(0.5))
			// The order of unsorted results is undefined.
			if d.chance(0.5) {
				d.attr("sorted", 1)
			}
		}
		d.outs(2)
	}
	generators["LpNormalization"] = func(d *drawer) {
		d.node("LpNormalization")
		dims := d.dims(1, 4)
		_, axis := d.axis(len(dims))
		d.in(pick(d, floats...), dims...)
		d.maybe("axis", axis)
		d.maybe("p", d.between(1, 2))
		d.outs(1)
	}
	tolerances["LpNormalization"] = tolerance{16, 16, 0, "sums in another order"}
	generators["MeanVarianceNormalization"] = func(d *drawer) {
		d.node("MeanVarianceNormalization")
		dims := full(d.dims(4, 4))
		if d.chance(0.6) {
			dims = full(d.dims(2, 5))
			var axes []int64
			for _, i := range d.some(len(dims), 0.6) {
				axes = append(axes, d.signed(i, len(dims)))
			}
			if len(axes) == 0 {
				axes = []int64{1}
			}
			d.attr("axes", axes)
		}
		d.in(pick(d, floats...), dims...)
		d.outs(1)
	}
	tolerances["MeanVarianceNormalization"] = tolerance{64, 64, 0, "the function of the specification takes the mean of squares less the square of the mean; roundings cancel"}
}

func (d *drawer) reduce(name string, dt dtype.DType) {
	d.node(name)
	dims := d.dims(0, 4)
	d.in(dt, dims...)
	operand := 18
	if name == "ReduceSum" {
		operand = 13
	}
	var axes []int64
	for _, i := range d.some(len(dims), 0.5) {
		axes = append(axes, d.signed(i, len(dims)))
	}
	slices.Reverse(axes)
	given := d.chance(0.8)
	if d.m.opset < operand && len(axes) == 0 {
		given = false
	}
	d.axes(axes, given, operand, 11, max(1, len(dims)))
	if d.m.opset >= operand {
		if d.chance(0.4) {
			d.attr("noop_with_empty_axes", d.IntN(2))
		}
	}
	d.maybe("keepdims", d.chance(0.5))
	d.outs(1)
}
