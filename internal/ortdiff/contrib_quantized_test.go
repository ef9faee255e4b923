package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

func contribQuantized(ms func(string, tolerance, func(*drawer)), sums, steps tolerance) {
	byte8 := func(d *drawer) dtype.DType { return pick(d, dtype.U8, dtype.I8) }
	quantized := func(d *drawer, dt dtype.DType) {
		d.scale(dtype.F32)
		d.in(dt)
	}
	ms("QuantizeLinear", tolerance{}, func(d *drawer) {
		dims := d.dims(1, 3)
		d.in(dtype.F32, dims...)
		d.quantizedBy(pick(d, dtype.U8, dtype.I8, dtype.I16, dtype.U16), dims)
	})
	ms("DequantizeLinear", tolerance{}, func(d *drawer) {
		dt := pick(d, dtype.U8, dtype.I8, dtype.I16, dtype.U16)
		dims := d.dims(1, 3)
		d.in(dt, dims...)
		d.quantizedBy(dt, dims)
	})
	for _, name := range []string{"QLinearAdd", "QLinearMul"} {
		tol := tolerance{}
		if name == "QLinearAdd" {
			tol = steps
		}
		ms(name, tol, func(d *drawer) {
			dt, dims := byte8(d), full(d.dims(1, 4))
			for range 2 {
				d.in(dt, d.broadcast(dims)...)
				quantized(d, dt)
			}
			quantized(d, dt)
		})
	}
	for _, name := range []string{"QLinearLeakyRelu", "QLinearSigmoid", "QLinearGlobalAveragePool", "QLinearSoftmax", "QLinearReduceMean"} {
		tol := tolerance{}
		if name == "QLinearSigmoid" || name == "QLinearSoftmax" {
			tol = tolerance{0, 0, 1, "functions of their own on both sides, next to a tie"}
		}
		ms(name, tol, func(d *drawer) {
			dt, dims := byte8(d), full(d.dims(4, 4))
			d.in(dt, dims...)
			quantized(d, dt)
			quantized(d, dt)
			switch name {
			case "QLinearSoftmax":
				d.maybe("axis", d.between(-4, 3))
				d.attr("opset", pick(d, 11, 13))
			case "QLinearReduceMean":
				d.maybe("axes", d.some(4, 0.5))
				d.maybe("keepdims", d.IntN(2))
			}
			if name == "QLinearLeakyRelu" {
				d.maybe("alpha", pick(d, 0.1, 0.5))
			}
			if name == "QLinearGlobalAveragePool" {
				d.attr("channels_last", d.IntN(2))
			}
		})
	}
	ms("QLinearConcat", tolerance{}, func(d *drawer) {
		dt, dims := byte8(d), full(d.dims(1, 3))
		at, axis := d.axis(len(dims))
		quantized(d, dt)
		for range d.between(1, 3) {
			dims = clone(dims)
			dims[at] = d.between(1, 4)
			d.in(dt, dims...)
			quantized(d, dt)
		}
		d.attr("axis", axis)
	})
	ms("QLinearAveragePool", tolerance{}, func(d *drawer) {
		dt, last := byte8(d), d.chance(0.4)
		dims := []int{d.between(1, 2), d.between(1, 4), d.between(2, 6), d.between(2, 6)}
		kernel := []int{d.between(1, 2), d.between(1, 2)}
		if last {
			d.in(dt, dims[0], dims[2], dims[3], dims[1])
		} else {
			d.in(dt, dims...)
		}
		quantized(d, dt)
		quantized(d, dt)
		d.attr("kernel_shape", kernel)
		d.maybe("strides", []int{d.between(1, kernel[0]), d.between(1, kernel[1])})
		if d.chance(0.4) {
			d.attr("pads", []int{d.IntN(kernel[0]), d.IntN(kernel[1]), d.IntN(kernel[0]), d.IntN(kernel[1])})
			d.maybe("count_include_pad", d.IntN(2))
		} else {
			d.maybe("auto_pad", pick(d, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
		}
		d.maybe("ceil_mode", d.IntN(2))
		d.attr("channels_last", last)
	})
	ms("QLinearWhere", tolerance{}, func(d *drawer) {
		dt, dims := byte8(d), full(d.dims(1, 3))
		d.in(dtype.Bool, d.broadcast(dims)...)
		for range 2 {
			d.in(dt, d.broadcast(dims)...)
			quantized(d, dt)
		}
		quantized(d, dt)
	})
	ms("QGemm", tolerance{8, 8, 1, steps.why}, func(d *drawer) {
		m, k, n, ta, tb := d.between(1, 4), d.between(1, 6), d.between(1, 5), byte8(d), byte8(d)
		a, b := []int{m, k}, []int{k, n}
		if d.chance(0.4) {
			a = []int{k, m}
			d.attr("transA", 1)
		}
		if d.chance(0.4) {
			b = []int{n, k}
			d.attr("transB", 1)
		}
		each := pick(d, []int{}, []int{n})
		d.in(ta, a...)
		quantized(d, ta)
		d.in(tb, b...)
		d.scale(dtype.F32, each...)
		d.in(tb, each...)
		d.optional(0.5, dtype.I32, pick(d, []int{n}, []int{m, n}, []int{m, 1}, []int{})...)
		d.maybe("alpha", pick(d, 1, 0.5, 2))
		if d.chance(0.6) {
			quantized(d, ta)
		}
	})
	generators[contribDomain+"::QLinearConv"] = func(d *drawer) {
		generators["QLinearConv"](d)
		last := d.chance(0.5)
		d.attr("channels_last", last)
		if last {
			d.channelsLast(0)
		}
	}
	tolerances[contribDomain+"::QLinearConv"] = steps
	ms("NhwcMaxPool", tolerance{}, func(d *drawer) {
		dims := []int{d.between(1, 2), d.between(2, 6), d.between(2, 6), d.between(1, 4)}
		kernel := []int{d.between(1, 2), d.between(1, 2)}
		d.in(byte8(d), dims...)
		d.attr("kernel_shape", kernel)
		d.maybe("strides", []int{d.between(1, 2), d.between(1, 2)})
		d.maybe("ceil_mode", d.IntN(2))
		if d.chance(0.4) {
			d.attr("pads", []int{d.IntN(kernel[0]), d.IntN(kernel[1]), d.IntN(kernel[0]), d.IntN(kernel[1])})
		} else {
			d.maybe("auto_pad", pick(d, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
		}
		d.maybe("dilations", []int{1, d.between(1, 2)})
	})
	ms("QAttention", tolerance{256, 256, 0, "sums in another order, after which exponentials"}, func(d *drawer) {
		batch, time, heads, size := d.between(1, 2), d.between(1, 4), d.between(1, 2), d.between(1, 3)
		width, hidden := d.between(1, 5), heads*size
		tx, tw := byte8(d), byte8(d)
		d.in(tx, batch, time, width)
		d.in(tw, width, 3*hidden)
		d.in(dtype.F32, 3*hidden)
		d.scale(dtype.F32)
		each := pick(d, []int{}, []int{3 * hidden})
		d.scale(dtype.F32, each...)
		past := 0
		if d.chance(0.4) {
			past = d.between(1, 3)
		}
		unidirectional := d.chance(0.4)
		d.keyMask(batch, time, past+time, true)
		d.optional(0.7, tx)
		d.optional(0.7, tw, each...)
		if past > 0 {
			d.in(dtype.F32, 2, batch, heads, past, size)
		} else {
			d.skip()
		}
		d.attr("num_heads", heads)
		d.maybe("unidirectional", unidirectional)
		d.maybe("scale", pick(d, 0.5, 1))
		d.maybe("mask_filter_value", pick(d, -10000.0, -1000))
		d.outs(1 + min(past, 1))
	})
	ms("QEmbedLayerNormalization", sums, func(d *drawer) {
		batch, time, hidden, words := d.between(1, 3), d.between(1, 4), d.between(2, 5), d.between(1, 6)
		ids := func(n int) {
			list := make([]int64, batch*time)
			for i := range list {
				list[i] = int64(d.IntN(n))
			}
			d.with(dtype.I32, []int{batch, time}, encodeInts(dtype.I32, list...))
		}
		dt, segments := byte8(d), d.chance(0.6)
		maybe := func(f func()) {
			if segments {
				f()
			} else {
				d.skip()
			}
		}
		ids(words)
		maybe(func() { ids(2) })
		d.in(dt, words, hidden)
		d.in(dt, time+d.IntN(2), hidden)
		maybe(func() { d.in(dt, 2, hidden) })
		d.in(dt, hidden)
		d.in(dt, hidden)
		if d.chance(0.5) {
			d.with(dtype.I32, []int{batch, time}, d.flags(batch*time))
		} else {
			d.skip()
		}
		for i := range 5 {
			if i == 2 {
				maybe(func() { d.scale(dtype.F32) })
			} else {
				d.scale(dtype.F32)
			}
		}
		for i := range 5 {
			if i == 2 {
				maybe(func() { d.in(dt) })
			} else {
				d.in(dt)
			}
		}
		d.maybe("epsilon", pick(d, 1e-3, 0.1))
		d.outs(2)
	})
	ms("GatherBlockQuantized", tolerance{}, func(d *drawer) {
		block, bits := pick(d, 16, 32), pick(d, 4, 8)
		dt, real := pick(d, dtype.U4, dtype.I4, dtype.U8), pick(d, dtype.F32, dtype.F16)
		rows, blocks := d.between(1, 5), d.between(1, 3)
		k := blocks*block - pick(d, 0, 0, 2, 4, 3)
		if dt == dtype.U8 {
			k = blocks * block
		} else {
			bits = 4
		}
		size := func(n int) int {
			if dt == dtype.U8 && bits == 4 {
				return (n + 1) / 2
			}
			return n
		}
		packed := func(dims ...int) {
			n, err := dt.ByteLen(elements(dims))
			if err != nil {
				panic(err)
			}
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(d.IntN(256))
			}
			if dt != dtype.U8 && elements(dims)%2 == 1 {
				data[n-1] &= 15
			}
			d.operand(d.value(dt, dims, data, true))
		}
		lead := d.dims(0, 1)
		if dt == dtype.U8 {
			lead = nil
		}
		with := func(n int) []int { return append(append([]int{rows}, full(lead)...), n) }
		packed(with(size(k))...)
		list := make([]int64, d.between(1, 4))
		for i := range list {
			list[i] = int64(d.between(0, rows-1))
		}
		d.with(dtype.I64, pick(d, []int{len(list)}, []int{1, len(list)}), encodeInts(dtype.I64, list...))
		d.operand(d.value(real, with(blocks), d.data(real, elements(with(blocks))), true))
		if d.chance(0.6) {
			packed(with(size(blocks))...)
		}
		d.attr("block_size", block)
		d.attr("quantize_axis", 1+len(lead))
		d.maybe("gather_axis", 0)
		if dt == dtype.U8 || d.chance(0.5) {
			d.attr("bits", bits)
		}
	})
	ms("DynamicQuantizeLSTM", tolerance{0, 1 << 15, 0, "ONNX Runtime quantises what the weights are multiplied by"}, func(d *drawer) {
		time, batch, inputs, hidden, dirs := d.between(1, 4), d.between(1, 3), d.between(1, 4), d.between(1, 4), d.between(1, 2)
		dt := byte8(d)
		d.in(dtype.F32, time, batch, inputs)
		d.operand(d.value(dt, []int{dirs, inputs, 4 * hidden}, d.data(dt, dirs*inputs*4*hidden), true))
		d.operand(d.value(dt, []int{dirs, hidden, 4 * hidden}, d.data(dt, dirs*hidden*4*hidden), true))
		d.optional(0.6, dtype.F32, dirs, 8*hidden)
		if d.chance(0.3) {
			list := make([]int64, batch)
			for i := range list {
				list[i] = int64(d.between(1, time))
			}
			d.with(dtype.I32, []int{batch}, encodeInts(dtype.I32, list...))
		} else {
			d.skip()
		}
		d.optional(0.4, dtype.F32, dirs, batch, hidden)
		d.optional(0.4, dtype.F32, dirs, batch, hidden)
		d.optional(0.3, dtype.F32, dirs, 3*hidden)
		each := pick(d, []int{dirs}, []int{dirs, 4 * hidden})
		for range 2 {
			scales := make([]float64, elements(each))
			for i := range scales {
				scales[i] = pick(d, 0.01, 0.02, 0.05)
			}
			d.operand(d.value(dtype.F32, each, encodeFloats(dtype.F32, scales...), true))
			d.operand(d.value(dt, each, make([]byte, elements(each)), true))
		}
		d.attr("hidden_size", hidden)
		d.attr("direction", pick(d, "forward", "reverse"))
		if dirs == 2 {
			d.n.attrs[len(d.n.attrs)-1] = attr{"direction", "bidirectional"}
		}
		d.maybe("input_forget", d.IntN(2))
		if d.chance(0.2) {
			d.attr("clip", pick(d, 2.0, 1.0))
		}
		if d.chance(0.3) {
			names := []string{"HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "Tanh", "Tanh"}[:3*dirs]
			d.attr("activations", names)
			d.attr("activation_alpha", pick(d, []float32{0.3, 0.1}, []float32{0.2, 0.2}))
			d.attr("activation_beta", pick(d, []float32{0.4}, []float32{0.5}))
		}
		d.outs(3)
	})
	ms("DynamicQuantizeMatMul", sums, func(d *drawer) {
		m, k, n, dt := d.between(1, 4), d.between(1, 6), d.between(1, 5), byte8(d)
		d.in(dtype.F32, m, k)
		d.in(dt, k, n)
		if d.chance(0.5) {
			d.scale(dtype.F32, n)
			d.optional(0.5, dt, n)
		} else {
			d.scale(dtype.F32)
			d.optional(0.5, dt)
		}
		d.optional(0.5, dtype.F32, n)
	})
	ms("MatMulIntegerToFloat", sums, func(d *drawer) {
		a, b := d.product()
		if len(a) == 1 || len(b) == 1 {
			a, b = []int{2, 3}, []int{3, 4}
		}
		ta, tb, n := byte8(d), byte8(d), b[len(b)-1]
		d.in(ta, a...)
		d.in(tb, b...)
		d.scale(dtype.F32)
		each := []int{}
		if len(b) == 2 && d.chance(0.4) {
			each = []int{n}
		}
		d.scale(dtype.F32, each...)
		d.optional(0.6, ta)
		d.optional(0.6, tb, each...)
		d.optional(0.5, dtype.F32, n)
	})
	ms("MatMulNBits", tolerance{64, 256, 0, "sums in another order"}, func(d *drawer) {
		dt, block, n, bits := pick(d, dtype.F32, dtype.F32, dtype.F32, dtype.F16), pick(d, 16, 32, 32, 64, 128, 256), d.between(1, 5), pick(d, 2, 4, 4, 8, 8)
		k := max(1, block*d.between(1, 3)-pick(d, 0, 0, 5, 6, 8, 15))
		blocks := (k + block - 1) / block
		packed := func(n int) []byte {
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(d.IntN(256))
			}
			return data
		}
		d.in(dt, append(d.dims(1, 2), k)...)
		d.operand(d.value(dtype.U8, []int{n, blocks, block * bits / 8}, packed(n*blocks*block*bits/8), true))
		each := pick(d, []int{n * blocks}, []int{n, blocks})
		d.operand(d.value(dt, each, d.data(dt, n*blocks), true))
		switch row := (blocks*bits + 7) / 8; {
		case d.chance(0.3):
			d.skip()
		case bits < 8 && d.chance(0.4):
			d.operand(d.value(dt, each, d.data(dt, n*blocks), d.chance(0.5)))
		default:
			d.operand(d.value(dtype.U8, pick(d, []int{n * row}, []int{n, row}), packed(n*row), true))
		}
		if bits == 4 && d.chance(0.3) {
			list := make([]int64, k)
			for i := range list {
				list[i] = int64(d.IntN(blocks))
			}
			d.operand(d.value(dtype.I32, []int{k}, encodeInts(dtype.I32, list...), true))
		} else {
			d.skip()
		}
		d.optional(0.3, dt, n)
		d.maybe("accuracy_level", pick(d, 0, 1, 1, 4))
		d.attr("K", k)
		d.attr("N", n)
		d.attr("bits", bits)
		d.attr("block_size", block)
	})
}

// quantizedBy adds a scale and a zero point, or one for each place on an axis.
func (d *drawer) quantizedBy(dt dtype.DType, dims []int) {
	each := []int{}
	if d.chance(0.5) {
		at, axis := d.axis(len(dims))
		each = []int{dims[at]}
		if axis != 1 || d.chance(0.5) {
			d.attr("axis", axis)
		}
	}
	d.scale(dtype.F32, each...)
	d.in(dt, each...)
}

// numberOf encodes one number.
func numberOf(dt dtype.DType, v int) []byte {
	if dt.IsInt() {
		return encodeInts(dt, int64(v))
	}
	return encodeFloats(dt, float64(v))
}
