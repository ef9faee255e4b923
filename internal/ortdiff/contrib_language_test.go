package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

// someBytes draws n bytes of any value.
func (d *drawer) someBytes(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(d.IntN(256))
	}
	return data
}

// drawn adds numbers of about that size, of which no two are equal.
func (d *drawer) drawn(dt dtype.DType, size float64, dims ...int) *value {
	list := make([]float64, elements(dims))
	for i := range list {
		list[i] = size * d.NormFloat64()
	}
	return d.with(dt, dims, encodeFloats(dt, list...))
}

// fixedFloats adds a constant of numbers from lo to hi.
func (d *drawer) fixedFloats(dt dtype.DType, lo, hi float64, dims ...int) {
	list := make([]float64, elements(dims))
	for i := range list {
		list[i] = lo + d.Float64()*(hi-lo)
	}
	d.operand(d.value(dt, dims, encodeFloats(dt, list...), true))
}

func contribLanguage(ms func(string, tolerance, func(*drawer)), sums tolerance) {
	real := func(d *drawer) dtype.DType { return pick(d, dtype.F32, dtype.F32, dtype.F16) }
	functions := tolerance{8, 8, 0, "functions of their own on both sides"}
	ms("ScaledSiLU", functions, func(d *drawer) {
		dt := real(d)
		d.in(dt, d.dims(1, 3)...)
		if d.chance(0.5) {
			d.in(dt)
		}
		d.maybe("alpha", pick(d, 1, 0.5, -2))
	})
	ms("GatedAdd", functions, func(d *drawer) {
		dt, dims := real(d), full(d.dims(2, 4))
		d.in(dt, dims...)
		d.in(dt, dims...)
		gate := clone(dims)
		gate[len(gate)-1] = 1
		d.in(dt, gate...)
	})
	ms("GatedRMSNorm", sums, func(d *drawer) {
		dt, dims, size := real(d), full(d.dims(1, 3)), d.between(1, 5)
		dims[len(dims)-1] = size * d.between(1, 3)
		d.smaller(d.in(dt, dims...))
		d.in(dt, size)
		d.in(dt, dims...)
		d.maybe("activation", pick(d, "silu", "swish", "sigmoid"))
		d.maybe("epsilon", pick(d, 1e-5, 0.1))
	})
	ms("BranchwiseRMSNorm", sums, func(d *drawer) {
		dt, dims, branches, size := real(d), full(d.dims(0, 2)), d.between(1, 3), d.between(1, 5)
		flat := d.chance(0.5)
		if flat {
			dims = append(dims, branches*size)
			d.attr("num_branches", branches)
		} else {
			dims = append(dims, branches, size)
		}
		d.smaller(d.in(dt, dims...))
		if d.chance(0.7) {
			d.in(pick(d, dt, dtype.F32), pick(d, []int{branches * size}, []int{branches, size}, []int{size})...)
		}
		d.maybe("epsilon", pick(d, 1e-5, 0.1))
	})
	ms("LinearAttentionGate", functions, func(d *drawer) {
		dt, dims := real(d), full(d.dims(3, 3))
		d.in(dt, dims...)
		d.in(dtype.F32, dims[2])
		d.in(dtype.F32, dims[2])
		if d.chance(0.6) {
			d.in(dt, dims...)
			d.outs(2)
		}
	})
	ms("CausalConvWithState", tolerance{16, 64, 0, "sums in another order"}, func(d *drawer) {
		batch, channels, length, k, dilation := d.between(1, 3), d.between(1, 4), d.between(1, 6), d.between(1, 4), 1
		if d.chance(0.4) {
			dilation = d.between(1, 3)
			d.attr("dilation", dilation)
		}
		d.in(dtype.F32, batch, channels, length)
		d.in(dtype.F32, channels, 1, k)
		d.optional(0.5, dtype.F32, channels)
		if k > 1 {
			d.optional(0.5, dtype.F32, batch, channels, (k-1)*dilation)
		}
		d.maybe("activation", pick(d, "none", "silu", "swish"))
		d.outs(2)
	})
	generators[contribDomain+"::LinearAttention"] = drawLinearAttention
	tolerances[contribDomain+"::LinearAttention"] = tolerance{64, 256, 0, "sums in another order, fed back in each step"}
	ms("NGramRepeatBlock", tolerance{}, func(d *drawer) {
		batch, length, words := d.between(1, 3), d.between(1, 8), d.between(2, 4)
		list := make([]int64, batch*length)
		for i := range list {
			list[i] = int64(d.IntN(words))
		}
		d.with(dtype.I64, []int{batch, length}, encodeInts(dtype.I64, list...))
		d.in(dtype.F32, batch, words)
		d.attr("ngram_size", d.between(1, 5))
	})
	ms("MRotaryEmbedding", tolerance{4, 4, 0, "products are added with one rounding or two"}, func(d *drawer) {
		batch, heads, time, most := d.between(1, 2), d.between(1, 3), d.between(1, 4), 8
		sections := []int{d.between(0, 2), d.between(0, 2), d.between(1, 2)}
		angles := sections[0] + sections[1] + sections[2]
		size := 2*angles + 2*pick(d, 0, 0, 1)
		if d.chance(0.5) {
			d.in(dtype.F32, batch, heads, time, size)
		} else {
			d.in(dtype.F32, batch, time, heads*size)
		}
		list := make([]int64, 3*batch*time)
		for i := range list {
			list[i] = int64(d.IntN(most))
		}
		d.with(dtype.I64, []int{3, batch, time}, encodeInts(dtype.I64, list...))
		d.in(dtype.F32, most, angles)
		d.in(dtype.F32, most, angles)
		if size != 2*angles {
			d.attr("rotary_embedding_dim", 2*angles)
		}
		if size != 2*angles || d.chance(0.5) {
			d.attr("num_heads", heads)
		}
		d.attr("mrope_section", sections)
		d.maybe("mrope_layout", d.IntN(2))
		d.maybe("interleaved", d.chance(0.5))
		if d.chance(0.2) {
			d.attr("scale", pick(d, 1.0, 2))
			d.attr("is_packed_batching", d.IntN(2))
		}
	})
	ms("MoE", tolerance{64, 4000, 0, "sums in another order, functions of their own on both sides"}, drawMoE)
	ms("QMoE", tolerance{64, 4000, 0, "sums in another order, functions of their own on both sides"}, drawQMoE)
}

// routing draws what MoE and QMoE share: tokens, how likely each expert is, and
// the attributes.
func (d *drawer) routing(dt dtype.DType, hidden, experts int) {
	tokens := d.between(1, 4)
	if d.chance(0.4) {
		batch := d.between(1, 2)
		d.drawn(dt, 1, batch, tokens, hidden)
		tokens *= batch
	} else {
		d.drawn(dt, 1, tokens, hidden)
	}
	d.drawn(dt, 1, tokens, experts)
	d.maybe("k", d.between(1, min(experts, 3)))
	d.maybe("normalize_routing_weights", d.IntN(2))
	name := pick(d, "relu", "gelu", "silu", "identity", "swiglu", "swiglu")
	if name != "relu" || d.chance(0.5) {
		d.attr("activation_type", name)
	}
	if name == "swiglu" {
		d.attr("swiglu_fusion", 1)
		d.maybe("activation_alpha", pick(d, 1, 1.702))
		d.maybe("activation_beta", pick(d, 0, 1))
		if d.chance(0.5) {
			d.attr("swiglu_limit", pick(d, 0.5, 7.0))
		}
	}
}

// gated reports whether the node's activation has two halves.
func (d *drawer) gated() bool { return d.n.get("activation_type") == "swiglu" }

func drawMoE(d *drawer) {
	dt, hidden, inner, experts := pick(d, dtype.F32, dtype.F32, dtype.F16), d.between(1, 6), d.between(1, 6), d.between(1, 5)
	d.routing(dt, hidden, experts)
	rows := inner
	if d.gated() {
		rows = 2 * inner
	}
	d.drawn(dt, 0.5, experts, rows, hidden)
	d.optional(0.6, dt, experts, rows)
	d.drawn(dt, 0.5, experts, hidden, inner)
	d.optional(0.6, dt, experts, hidden)
	if dt == dtype.F32 && experts > 3 && d.chance(0.5) {
		d.overflow(experts)
	}
}

// overflow makes the results of expert 0 infinite, and its scores so low that
// it is never chosen.
func (d *drawer) overflow(experts int) {
	for i, v := range []*value{d.m.operand(1), d.m.operand(2), d.m.operand(4)} {
		list := decode(v.dt, v.data)
		floats := make([]float64, len(list))
		for at, x := range list {
			floats[at] = x.f
			switch {
			case i == 0 && at%experts == 0:
				floats[at] = -50
			case i > 0 && at < len(list)/experts:
				floats[at] = 1e30
			}
		}
		v.data = encodeFloats(v.dt, floats...)
	}
}

func drawQMoE(d *drawer) {
	dt, hidden, inner, experts := pick(d, dtype.F32, dtype.F32, dtype.F16), 32*d.between(1, 2), 32*d.between(1, 2), d.between(1, 4)
	bits, block := pick(d, 2, 4, 4, 8), pick(d, 0, 16, 32)
	d.routing(dt, hidden, experts)
	rows := inner
	if d.gated() {
		rows = 2 * inner
	}
	d.attr("expert_weight_bits", bits)
	if block > 0 {
		d.attr("block_size", block)
	}
	d.maybe("weights_prepacked", 0)
	if d.chance(0.2) {
		d.attr("accuracy_level", d.IntN(2))
	}
	hasZeros := d.chance(0.4)
	zeros := [2]*value{}
	for i, w := range [][2]int{{rows, hidden}, {hidden, inner}} {
		n, k := w[0], w[1]
		d.operand(d.value(dtype.U8, []int{experts, n, k * bits / 8}, d.someBytes(experts*n*k*bits/8), true))
		most := 0.4 / float64(int(1)<<bits)
		dims := []int{experts, n, (n*bits + 7) / 8}
		if block > 0 {
			dims[2] = (k/block*bits + 7) / 8
			d.fixedFloats(dtype.F32, most/4, most, experts, n, k/block)
		} else {
			dims = []int{experts, dims[2]}
			d.fixedFloats(dtype.F32, most/4, most, experts, n)
		}
		d.optional(0.6, dt, experts, n)
		if hasZeros {
			zeros[i] = d.value(dtype.U8, dims, d.someBytes(elements(dims)), true)
		}
	}
	tokens := elements(d.m.operand(1).dims[:1])
	for range 3 {
		d.skip()
	}
	for _, z := range zeros {
		if z == nil {
			d.skip()
		} else {
			d.operand(z)
		}
	}
	d.skip()
	if d.chance(0.4) {
		weights := make([]float64, tokens*experts)
		for i := range weights {
			weights[i] = 0.1 + d.Float64()
		}
		d.with(dt, []int{tokens, experts}, encodeFloats(dt, weights...))
	}
}

// experts lists the nodes that a mixture of experts stands for, for forms that
// ONNX Runtime runs on other devices only: every expert computes all tokens.
func (w *network) experts(in []string, k int64, hidden func(x string, slice func(operand string) string) string, second string) string {
	scores := w.node1("Softmax", []string{in[1]}, attr{"axis", int64(-1)})
	top, at := w.name(), w.name()
	w.put("", "TopK", []string{scores, w.list([]int{1}, k)}, []string{top, at})
	none := w.node1("Mul", []string{scores, w.number(0)})
	share := w.node1("ScatterElements", []string{none, at, top}, attr{"axis", int64(1)})
	x := w.node1("Unsqueeze", []string{in[0], w.list([]int{1}, 0)})
	turned := func(operand string) string { return w.transposed(operand, 0, 2, 1) }
	y := w.node1("MatMul", []string{hidden(x, turned), turned(second)})
	share = w.node1("Unsqueeze", []string{w.transposed(share, 1, 0), w.list([]int{1}, 2)})
	return w.node1("ReduceSum", []string{w.node1("Mul", []string{y, share}), w.list([]int{1}, 0)}, attr{"keepdims", int64(0)})
}

// foreignExperts are forms of MoE that ONNX Runtime has on other devices.
func foreignExperts(activation string, fusion int64) foreign {
	third := fusion == 0
	return foreign{
		func(w *network) ([]string, []attr) {
			tokens, hidden, inner, experts := w.between(1, 4), w.between(1, 4), w.between(1, 4), w.between(2, 4)
			rows := inner
			if !third {
				rows = 2 * inner
			}
			in := []string{w.source(tokens, hidden).name, w.source(tokens, experts).name, w.weight(0.5, experts, rows, hidden), "",
				w.weight(0.5, experts, hidden, inner), ""}
			if third {
				in = append(in, w.weight(0.5, experts, inner, hidden))
			}
			return in, []attr{{"k", int64(2)}, {"activation_type", activation}, {"swiglu_fusion", fusion}}
		},
		func(w *network, in []string, _ []attr) string {
			return w.experts(in, 2, func(x string, turned func(string) string) string {
				y := w.node1("MatMul", []string{x, turned(in[2])})
				var gate, up string
				switch fusion {
				case 0:
					gate, up = y, w.node1("MatMul", []string{x, turned(in[6])})
				case 1:
					pairs := w.node1("Reshape", []string{y, w.list([]int{4}, 0, 0, -1, 2)})
					gate = w.node1("Gather", []string{pairs, w.list([]int{}, 0)}, attr{"axis", int64(-1)})
					up = w.node1("Gather", []string{pairs, w.list([]int{}, 1)}, attr{"axis", int64(-1)})
				case 2:
					gate, up = w.name(), w.name()
					w.put("", "Split", []string{y}, []string{gate, up}, attr{"axis", int64(-1)}, attr{"num_outputs", int64(2)})
				}
				if activation == "geglu" {
					gate = w.gelu(gate, "tanh")
				} else {
					gate = w.node1("Mul", []string{gate, w.node1("Sigmoid", []string{gate})})
				}
				return w.node1("Mul", []string{gate, up})
			}, in[4])
		},
	}
}
