package ortdiff_test

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators["QuantizeLinear"] = func(d *drawer) { drawQuantize(d, true) }
	generators["DequantizeLinear"] = func(d *drawer) { drawQuantize(d, false) }
	tolerances["DequantizeLinear"] = tolerance{1, 0, 0, "half precision is rounded once or twice"}
	generators["DynamicQuantizeLinear"] = func(d *drawer) {
		d.node("DynamicQuantizeLinear")
		d.in(dtype.F32, full(d.dims(0, 3))...)
		d.outs(3)
	}
	generators["Cast"] = func(d *drawer) {
		d.node("Cast")
		if d.m.opset >= 9 && d.chance(0.15) {
			d.attr("to", int(d.castText().ONNX()))
			d.outs(1)
			return
		}
		from, to := d.castTypes()
		d.castable(from, to)
		d.attr("to", int(to.ONNX()))
		d.castAttributes(to)
		d.outs(1)
	}
	generators["CastLike"] = func(d *drawer) {
		d.node("CastLike")
		if d.chance(0.15) {
			d.in(d.castText(), 1)
			d.outs(1)
			return
		}
		from, to := d.castTypes()
		d.castable(from, to)
		d.in(to, 1)
		d.castAttributes(to)
		d.outs(1)
	}
	generators["BitCast"] = func(d *drawer) {
		d.node("BitCast")
		same := pick(d, []dtype.DType{dtype.F32, dtype.I32, dtype.U32}, []dtype.DType{dtype.F64, dtype.I64, dtype.U64},
			[]dtype.DType{dtype.F16, dtype.BF16, dtype.I16, dtype.U16}, []dtype.DType{dtype.I8, dtype.U8, dtype.Bool})
		d.in(pick(d, same...), d.dims(0, 3)...)
		d.attr("to", int(pick(d, same...).ONNX()))
		d.outs(1)
	}
}

var floats8 = []dtype.DType{dtype.F8E4M3FN, dtype.F8E4M3FNUZ, dtype.F8E5M2, dtype.F8E5M2FNUZ}

// castTypes draws two element types that the opset casts.
func (d *drawer) castTypes() (from, to dtype.DType) {
	types := append([]dtype.DType{dtype.Bool, dtype.F16}, numbers...)
	if d.m.opset >= 19 {
		types = append(types, floats8...)
		types = append(types, floats8...)
	}
	if d.m.opset >= 21 {
		types = append(types, dtype.I4, dtype.U4, dtype.I4, dtype.U4)
	}
	if d.m.opset >= 23 {
		types = append(types, dtype.F4E2M1, dtype.F4E2M1)
	}
	if d.m.opset >= 24 && d.chance(0.2) { // nothing but floats become exponents, and those floats again
		real, scale := pick(d, dtype.F32, dtype.F16, dtype.BF16), dtype.F8E8M0
		if d.chance(0.3) {
			return scale, real
		}
		return real, scale
	}
	if d.m.opset >= 25 {
		types = append(types, dtype.I2, dtype.U2)
	}
	if d.m.opset < 13 {
		for {
			from, to = pick(d, types...), pick(d, types...)
			if from != dtype.BF16 && to != dtype.BF16 {
				return from, to
			}
		}
	}
	return pick(d, types...), pick(d, types...)
}

func (d *drawer) castAttributes(to dtype.DType) {
	if d.m.opset >= 19 && to.IsFloat() && to.Bits() == 8 && d.chance(0.6) {
		d.attr("saturate", d.IntN(2))
	}
	if to == dtype.F8E8M0 && d.chance(0.7) {
		d.attr("round_mode", pick(d, "up", "down", "nearest"))
	}
}

// castable adds an operand. Of floats that become integers all are in the range
// of those: what others become is left open.
func (d *drawer) castable(from, to dtype.DType) {
	dims := d.dims(0, 3)
	if !from.IsFloat() || to.IsFloat() || to == dtype.Bool {
		d.in(from, dims...)
		return
	}
	most, least := 100.0, -100.0
	switch to.Bits() {
	case 4:
		most, least = 7, -8
	case 2:
		most, least = 1, -2
	}
	if !to.IsSigned() {
		least = 0
	}
	list := make([]float64, elements(dims))
	for i := range list {
		list[i] = least + d.Float64()*(most-least)
		if d.chance(0.3) {
			list[i] = float64(int(list[i])) + pick(d, 0, 0.5) // ties, which are cut as all others
		}
		list[i] = min(list[i], most)
		if from.Bits() < 16 {
			list[i] = min(max(list[i], -6), 6)
		}
	}
	d.with(from, dims, encodeFloats(from, list...))
}

// drawQuantize draws a quantization or its inverse, by tensor, by axis or by
// block.
func drawQuantize(d *drawer, quantize bool) {
	op := "DequantizeLinear"
	if quantize {
		op = "QuantizeLinear"
	}
	d.node(op)
	types := []dtype.DType{dtype.U8, dtype.I8}
	if d.m.opset >= 19 {
		types = append(types, floats8...)
	}
	if d.m.opset >= 21 {
		types = append(types, dtype.I16, dtype.U16, dtype.I4, dtype.U4)
	}
	if d.m.opset >= 23 {
		types = append(types, dtype.F4E2M1)
	}
	if d.m.opset >= 25 {
		types = append(types, dtype.I2, dtype.U2)
	}
	q, real := pick(d, types...), dtype.F32
	if d.m.opset >= 19 {
		real = pick(d, dtype.F32, dtype.F32, dtype.F16)
	}
	dims := full(d.dims(1, 4))
	at := d.IntN(len(dims))
	block, scales := 0, []int{}
	switch kind := d.IntN(3); {
	case kind == 1 && d.m.opset >= 13:
		scales = []int{dims[at]}
	case kind == 2 && d.m.opset >= 21:
		block = d.between(1, 3)
		dims[at] = block * d.between(1, 3)
		scales = clone(dims)
		scales[at] /= block
	}
	if quantize {
		list := make([]float64, elements(dims))
		for i := range list {
			list[i] = d.float() * pick[float64](d, 1, 1, 1, 30)
			if d.chance(0.4) {
				list[i] = float64(d.between(-40, 40)) / 4 // ties for scales that are powers of 2
			}
		}
		if d.special {
			list[d.IntN(len(list))] = math.NaN()
		}
		d.with(real, dims, encodeFloats(real, list...))
	} else {
		if d.chance(0.1) {
			q = dtype.I32
		}
		d.in(q, dims...)
	}
	d.scale(real, scales...)
	if d.chance(0.7) || q != dtype.U8 && (!quantize || d.m.opset < 21) {
		zero := d.data(q, elements(scales))
		if q.IsFloat() || q == dtype.I32 { // nothing but 0 is allowed
			zero = make([]byte, len(zero))
		}
		d.with(q, scales, zero)
	} else if quantize && d.m.opset >= 21 {
		d.attr("output_dtype", int(q.ONNX()))
	}
	if !quantize && d.m.opset >= 23 && d.chance(0.3) {
		d.attr("output_dtype", int(pick(d, dtype.F32, dtype.F16).ONNX()))
	}
	if len(scales) > 0 && (at != 1 || d.chance(0.5)) {
		d.attr("axis", d.signed(at, len(dims)))
	}
	if block > 0 {
		d.attr("block_size", block)
	}
	if quantize && d.m.opset >= 23 && d.chance(0.3) {
		d.attr("precision", int(pick(d, dtype.Invalid, dtype.F32).ONNX()))
	}
	if quantize && q.IsFloat() && q.Bits() == 8 && d.chance(0.5) {
		d.attr("saturate", d.IntN(2))
	}
	d.outs(1)
}
