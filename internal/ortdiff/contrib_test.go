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
	for _, name := range []string{"FusedMatMul", "TransposeMatMul"} {
		ms(name, sums, func(d *drawer) {
			a, b := d.product()
			turn := func(dims []int, name string) {
				if n := len(dims); n > 1 && d.chance(0.4) {
					dims[n-1], dims[n-2] = dims[n-2], dims[n-1]
					d.attr(name, 1)
				}
			}
			turn(a, "transA")
			turn(b, "transB")
			// The first axis goes behind the others of the batch; ONNX Runtime
			// wants as many axes in both.
			first := func(dims []int, attribute string) {
				if n := len(dims); name == "FusedMatMul" && n > 2 && len(a) == len(b) && d.chance(0.3) {
					rows := dims[n-2]
					copy(dims[1:], slices.Clone(dims[:n-2]))
					dims[0] = rows
					d.attr(attribute, 1)
				}
			}
			first(a, "transBatchA")
			first(b, "transBatchB")
			d.in(dtype.F32, a...)
			d.in(dtype.F32, b...)
			d.maybe("alpha", pick(d, 1, 0.5, -2))
		})
	}
	ms("BiasSoftmax", sums, func(d *drawer) {
		dims := full(d.dims(2, 4))
		d.in(dtype.F32, dims...)
		d.in(dtype.F32, dims...)
		d.maybe("axis", d.between(1, len(dims)-1))
		d.attr("is_inner_broadcast", d.IntN(2))
	})
	ms("GemmFastGelu", sums, func(d *drawer) {
		m, k, n := d.between(1, 4), d.between(1, 6), d.between(1, 5)
		d.in(dtype.F32, m, k)
		d.in(dtype.F32, k, n)
		d.optional(0.6, dtype.F32, n)
	})
	ms("CDist", tolerance{64, 4000, 0, "a root of a difference that is near zero"}, func(d *drawer) {
		m, k, n, dt := d.between(1, 4), d.between(1, 6), d.between(1, 5), pick(d, dtype.F32, dtype.F64)
		d.in(dt, m, k)
		d.in(dt, n, k)
		d.maybe("metric", pick(d, "euclidean", "sqeuclidean"))
	})
	ms("ExpandDims", tolerance{}, func(d *drawer) {
		dims := d.dims(0, 3)
		d.in(pick(d, dtype.F32, dtype.I64), dims...)
		d.operand(d.value(dtype.I32, []int{}, encodeInts(dtype.I32, int64(d.between(-len(dims)-1, len(dims)))), true))
	})
	ms("Range", tolerance{}, func(d *drawer) {
		dt := pick(d, dtype.F32, dtype.I32, dtype.I64, dtype.I16, dtype.F64)
		number := func(v int) { d.with(dt, []int{}, numberOf(dt, v)) }
		number(d.between(-3, 3))
		number(d.between(0, 9))
		if d.chance(0.6) {
			number(d.between(1, 3))
		}
	})
	generators[contribDomain+"::GatherND"] = func(d *drawer) {
		d.m.opset = 11 // without batches
		generators["GatherND"](d)
	}
	ms("Pad", tolerance{}, func(d *drawer) {
		dims := full(d.dims(1, 3))
		d.in(dtype.F32, dims...)
		pads := make([]int64, 2*len(dims))
		for i := range pads {
			pads[i] = int64(d.between(0, dims[i%len(dims)]-1))
		}
		d.ints(pads...)
		mode := pick(d, "constant", "reflect", "edge")
		if mode == "constant" && d.chance(0.5) {
			d.in(dtype.F32, 1)
		}
		d.maybe("mode", mode)
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
	ms("NhwcConv", sums, func(d *drawer) {
		d.conv(dtype.F32, dtype.Invalid)
		d.channelsLast(0, 1)
	})
	ms("NhwcFusedConv", sums, func(d *drawer) {
		d.conv(dtype.F32, dtype.Invalid)
		if d.chance(0.3) {
			d.sumOfConv()
		}
		d.channelsLast(0, 3)
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
		d.attr("activation", pick(d, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softplus", "Softsign", "ThresholdedRelu"))
		switch d.n.get("activation") {
		case "LeakyRelu", "Elu", "ThresholdedRelu":
			d.attr("activation_alpha", pick(d, 0.1, 0.5))
		case "HardSigmoid":
			d.attr("activation_alpha", pick(d, 0.3, 0.2))
			d.attr("activation_beta", pick(d, 0.4, 0.5))
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
	contribLanguage(ms, sums)
	contribTensors(ms, sums)
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

// channelsLast makes the channels of operands their last axis.
func (d *drawer) channelsLast(operands ...int) {
	for _, i := range operands {
		if x := d.m.operand(i); x != nil {
			x.dims = append(append([]int{x.dims[0]}, x.dims[2:]...), x.dims[1])
		}
	}
}
