package ortdiff_test

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
)

func init() {
	ms := func(name string, tol tolerance, draw func(d *drawer)) {
		generators[contribDomain+"::"+name] = func(d *drawer) {
			d.calm, d.mild = true, true
			d.node(name)
			draw(d)
			if len(d.n.out) == 0 {
				d.outs(1)
			}
		}
		if tol.why != "" {
			tolerances[contribDomain+"::"+name] = tol
		}
	}
	functions := tolerance{8, 8, 0, "functions of their own on both sides"}
	sums := tolerance{64, 4000, 0, "sums in another order; a norm multiplies by large numbers where the variance is no more than epsilon"}
	steps := tolerance{0, 0, 1, "the scales are multiplied in another order: what lies next to a tie may go either way"}
	real := func(d *drawer) dtype.DType { return pick(d, dtype.F32, dtype.F32, dtype.F16) }

	ms("Gelu", functions, func(d *drawer) { d.in(dtype.F32, d.dims(0, 4)...) })
	for _, name := range []string{"BiasGelu", "FastGelu"} {
		ms(name, functions, func(d *drawer) {
			dims := d.dims(1, 3)
			d.in(dtype.F32, dims...)
			if name == "BiasGelu" || d.chance(0.5) {
				d.in(dtype.F32, dims[len(dims)-1])
			}
		})
	}
	ms("QuickGelu", functions, func(d *drawer) {
		d.in(real(d), d.dims(0, 4)...)
		d.maybe("alpha", pick(d, 1.702, 0.5, -1))
	})
	ms("BiasAdd", tolerance{}, func(d *drawer) {
		dims := full(d.dims(3, 3))
		dims[2] = pick(d, 320, 640)
		d.in(dtype.F32, dims...)
		d.in(dtype.F32, dims[2])
		d.in(dtype.F32, dims...)
	})
	ms("FusedMatMul", sums, func(d *drawer) {
		a, b := d.product()
		turn := func(dims []int, name string) {
			if n := len(dims); n > 1 && d.chance(0.4) {
				dims[n-1], dims[n-2] = dims[n-2], dims[n-1]
				d.attr(name, 1)
			}
		}
		turn(a, "transA")
		turn(b, "transB")
		// The first axis goes behind the others of the batch. ONNX Runtime
		// wants as many axes in both.
		first := func(dims []int, name string) {
			if n := len(dims); n > 2 && len(a) == len(b) && d.chance(0.3) {
				rows := dims[n-2]
				copy(dims[1:], slices.Clone(dims[:n-2]))
				dims[0] = rows
				d.attr(name, 1)
			}
		}
		first(a, "transBatchA")
		first(b, "transBatchB")
		d.in(dtype.F32, a...)
		d.in(dtype.F32, b...)
		d.maybe("alpha", pick(d, 1, 0.5, -2))
	})
	activation := func(d *drawer) {
		name := pick(d, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid")
		d.attr("activation", name)
		switch name {
		case "LeakyRelu":
			d.attr("activation_params", []float32{0.1})
		case "Clip":
			d.attr("activation_params", []float32{-1, 2})
		case "HardSigmoid":
			d.attr("activation_params", []float32{0.2, 0.5})
		}
	}
	ms("FusedConv", sums, func(d *drawer) {
		d.conv(dtype.F32, dtype.Invalid)
		if d.chance(0.3) {
			d.sumOfConv()
		}
		activation(d)
	})
	ms("FusedGemm", sums, func(d *drawer) {
		m, k, n := max(1, d.dim()), max(1, d.dim()), max(1, d.dim())
		a, b := []int{m, k}, []int{k, n}
		if d.chance(0.3) {
			a = []int{k, m}
			d.attr("transA", 1)
		}
		if d.chance(0.3) {
			b = []int{n, k}
			d.attr("transB", 1)
		}
		d.in(dtype.F32, a...)
		d.in(dtype.F32, b...)
		d.optional(0.7, dtype.F32, d.broadcast([]int{m, n})...)
		d.maybe("alpha", pick(d, 1, 0.5))
		d.maybe("beta", pick(d, 1, 0.5))
		d.attr("activation", pick(d, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"))
		switch d.n.get("activation") {
		case "LeakyRelu":
			d.maybe("activation_alpha", 0.1)
		case "HardSigmoid":
			d.maybe("activation_alpha", 0.3)
			d.maybe("activation_beta", 0.4)
		}
	})
	ms("Trilu", tolerance{}, func(d *drawer) {
		d.in(pick(d, dtype.F32, dtype.I64), d.dims(2, 4)...)
		if d.chance(0.6) {
			d.with(dtype.I64, []int{}, encodeInts(dtype.I64, int64(d.between(-5, 5))))
		}
		d.maybe("upper", d.chance(0.5))
	})
	for name, beta := range map[string]bool{"SkipLayerNormalization": true, "SkipSimplifiedLayerNormalization": false} {
		ms(name, sums, func(d *drawer) {
			dims := full(d.dims(3, 3))
			d.in(dtype.F32, dims...)
			d.in(dtype.F32, dims...)
			d.in(dtype.F32, dims[2])
			if beta {
				d.optional(0.6, dtype.F32, dims[2])
			}
			d.optional(0.5, dtype.F32, dims[2])
			d.maybe("epsilon", pick(d, 1e-5, 1e-3))
			if d.chance(0.3) {
				d.outs(4)
				d.drop(1)
				d.drop(2)
			}
		})
	}
	ms("SimplifiedLayerNormalization", sums, func(d *drawer) {
		dims := full(d.dims(1, 3))
		d.in(dtype.F32, dims...)
		d.in(dtype.F32, dims[len(dims)-1])
		d.maybe("epsilon", 1e-3)
	})
	ms("EmbedLayerNormalization", sums, func(d *drawer) {
		batch, time, hidden, words := d.between(1, 3), d.between(1, 4), d.between(2, 5), d.between(1, 6)
		ids := func(n int) {
			list := make([]int64, batch*time)
			for i := range list {
				list[i] = int64(d.IntN(n))
			}
			d.with(dtype.I32, []int{batch, time}, encodeInts(dtype.I32, list...))
		}
		segments := d.chance(0.6)
		ids(words)
		if segments {
			ids(2)
		} else {
			d.skip()
		}
		d.in(dtype.F32, words, hidden)
		d.in(dtype.F32, time+d.IntN(2), hidden)
		if segments {
			d.in(dtype.F32, 2, hidden)
		} else {
			d.skip()
		}
		d.in(dtype.F32, hidden)
		d.in(dtype.F32, hidden)
		if d.chance(0.5) {
			d.with(dtype.I32, []int{batch, time}, d.flags(batch*time))
		}
		d.maybe("epsilon", pick(d, 1e-3, 0.1))
		if d.chance(0.3) {
			d.attr("mask_index_type", pick(d, 0, 1))
		}
		d.outs(2)
		if d.chance(0.5) {
			d.drop(1)
		} else if d.chance(0.5) {
			d.drop(1)
			d.n.out[1] = "unread"
		}
	})
	contribQuantized(ms, sums, steps)
	contribAttention(ms, sums)
}

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
		ms(name, steps, func(d *drawer) {
			dt, dims := byte8(d), full(d.dims(1, 4))
			for range 2 {
				d.in(dt, d.broadcast(dims)...)
				quantized(d, dt)
			}
			quantized(d, dt)
		})
	}
	for _, name := range []string{"QLinearLeakyRelu", "QLinearSigmoid", "QLinearGlobalAveragePool"} {
		ms(name, steps, func(d *drawer) {
			dt := byte8(d)
			d.in(dt, full(d.dims(4, 4))...)
			quantized(d, dt)
			quantized(d, dt)
			if name == "QLinearLeakyRelu" {
				d.maybe("alpha", pick(d, 0.1, 0.5))
			}
			if name == "QLinearGlobalAveragePool" {
				d.attr("channels_last", d.IntN(2))
			}
		})
	}
	ms("QLinearConcat", steps, func(d *drawer) {
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
		block, n, bits := pick(d, 16, 32), d.between(1, 5), pick(d, 2, 4, 4, 8, 8)
		k := block*d.between(1, 3) - pick(d, 0, 0, 5, 6, 8)
		blocks := (k + block - 1) / block
		packed := func(n int) []byte {
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(d.IntN(256))
			}
			return data
		}
		d.in(dtype.F32, append(d.dims(1, 2), k)...)
		d.operand(d.value(dtype.U8, []int{n, blocks, block * bits / 8}, packed(n*blocks*block*bits/8), true))
		each := pick(d, []int{n * blocks}, []int{n, blocks})
		d.operand(d.value(dtype.F32, each, d.data(dtype.F32, n*blocks), true))
		switch row := (blocks*bits + 7) / 8; {
		case d.chance(0.3):
			d.skip()
		case bits < 8 && d.chance(0.4):
			d.operand(d.value(dtype.F32, each, d.data(dtype.F32, n*blocks), d.chance(0.5)))
		default:
			d.operand(d.value(dtype.U8, pick(d, []int{n * row}, []int{n, row}), packed(n*row), true))
		}
		d.skip()
		d.optional(0.3, dtype.F32, n)
		d.maybe("accuracy_level", pick(d, 0, 1))
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

// sumOfConv adds the operand that is added to a convolution: it has the sizes
// of the result.
func (d *drawer) sumOfConv() {
	x, w := d.m.operand(0).dims, d.m.operand(1).dims
	for len(d.n.in) < 3 {
		d.skip()
	}
	n := len(x) - 2
	at := func(name string, i, usual int) int {
		if list, ok := d.n.get(name).([]int64); ok {
			return int(list[i])
		}
		return usual
	}
	out := []int{x[0], w[0]}
	for i := range n {
		stride := at("strides", i, 1)
		window := (w[i+2]-1)*at("dilations", i, 1) + 1
		size := (x[i+2]+at("pads", i, 0)+at("pads", i+n, 0)-window)/stride + 1
		switch auto, _ := d.n.get("auto_pad").(string); auto {
		case "SAME_UPPER", "SAME_LOWER":
			size = (x[i+2] + stride - 1) / stride
		}
		out = append(out, max(size, 0))
	}
	d.in(dtype.F32, out...)
}
