package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators["ConstantOfShape"] = func(d *drawer) {
		d.node("ConstantOfShape")
		d.ints(int64s(d.dims(0, 4))...)
		if d.chance(0.8) {
			dt := pick(d, append([]dtype.DType{dtype.Bool}, numbers...)...)
			d.attr("value", &value{dt: dt, dims: []int{1}, data: d.data(dt, 1)})
		}
		d.outs(1)
	}
	generators["Constant"] = func(d *drawer) {
		d.node("Constant")
		kind := d.IntN(7)
		if d.m.opset < 12 {
			kind = 0
		}
		switch kind {
		case 0:
			dt, dims := pick(d, all...), d.dims(0, 3)
			d.attr("value", &value{dt: dt, dims: dims, data: d.data(dt, elements(dims))})
		case 1:
			d.attr("value_float", d.float())
		case 2:
			d.attr("value_floats", []float32{float32(d.float()), 2})
		case 3:
			d.attr("value_int", d.between(-9, 9))
		case 4:
			d.attr("value_ints", []int{d.between(-9, 9), 4, 5})
		case 5:
			d.attr("value_string", d.text())
		case 6:
			d.attr("value_strings", d.texts(d.between(1, 3)))
		}
		d.outs(1)
	}
	generators["EyeLike"] = func(d *drawer) {
		d.node("EyeLike")
		d.in(pick(d, append([]dtype.DType{dtype.Bool}, numbers...)...), d.dim(), d.dim())
		d.maybe("k", d.between(-5, 5))
		if d.chance(0.5) {
			d.attr("dtype", int(pick(d, numbers...).ONNX()))
		}
		d.outs(1)
	}
	generators["Range"] = func(d *drawer) {
		d.node("Range")
		dt := pick(d, dtype.F32, dtype.F64, dtype.I16, dtype.I32, dtype.I64)
		list := []float64{float64(d.between(-9, 9)), float64(d.between(-9, 9)), float64(pick(d, 1, 2, 3, -1, -2, -3))}
		if dt.IsFloat() && d.chance(0.5) {
			list = []float64{d.float(), d.float(), pick(d, 0.1, 0.3, -0.1, -0.7, 1.1)}
		}
		if d.m.opset >= 27 && d.chance(0.4) {
			if d.chance(0.5) {
				dt = pick(d, dtype.F16, dtype.BF16)
			}
			d.attr("stash_type", int(pick(d, dtype.F32, dtype.F32, dtype.BF16).ONNX()))
		}
		for _, f := range list {
			data := encodeInts(dt, int64(f))
			if dt.IsFloat() {
				data = encodeFloats(dt, f)
			}
			d.operand(d.value(dt, []int{}, data, d.fixed))
		}
		d.outs(1)
	}
	tolerances["Range"] = tolerance{4, 64, 0, "ONNX Runtime adds the step up, the specification multiplies"}
	for _, name := range []string{"BlackmanWindow", "HammingWindow", "HannWindow"} {
		generators[name] = func(d *drawer) {
			d.node(name)
			dt := pick(d, dtype.I64, dtype.I32)
			d.operand(d.value(dt, []int{}, encodeInts(dt, int64(d.between(1, 12))), d.fixed))
			d.maybe("periodic", d.chance(0.5))
			if d.chance(0.4) {
				d.attr("output_datatype", int(pick(d, dtype.F32, dtype.F64, dtype.F16, dtype.I32).ONNX()))
			}
			d.outs(1)
		}
		tolerances[name] = tolerance{8, 8, 0, "single precision on the way, and a cosine of its own on both sides"}
	}
}
