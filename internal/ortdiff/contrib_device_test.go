package ortdiff_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// foreign is an operator that ONNX Runtime has on other devices only, with the
// nodes of ONNX that its documentation says it stands for.
type foreign struct {
	draw func(w *network) (in []string, attrs []attr)
	same func(w *network, in []string, attrs []attr) string
}

// get returns an attribute of a list.
func get[T any](attrs []attr, name string) T {
	for _, a := range attrs {
		if a.name == name {
			return a.value.(T)
		}
	}
	var zero T
	return zero
}

func (w *network) node1(op string, in []string, attrs ...attr) string {
	return w.one(op, w.name(), in, attrs...)
}

// gelu is x times the normal distribution's share below x, or about that.
func (w *network) gelu(x, form string) string {
	return w.node1("Gelu", []string{x}, attr{"approximate", form})
}

func (w *network) transposed(x string, perm ...int64) string {
	return w.node1("Transpose", []string{x}, attr{"perm", perm})
}

// groupNorm is what a GroupNorm stands for; the channels of x are its last axis
// if so said.
func (w *network) groupNorm(x, scale, bias string, attrs []attr) string {
	last := get[int64](attrs, "channels_last") != 0
	if last {
		x = w.transposed(x, 0, 3, 1, 2)
	}
	y := w.node1("GroupNormalization", []string{x, scale, bias}, attr{"num_groups", get[int64](attrs, "groups")}, attr{"epsilon", get[float32](attrs, "epsilon")})
	if last {
		y = w.transposed(y, 0, 2, 3, 1)
	}
	if get[int64](attrs, "activation") == 1 {
		y = w.node1("Mul", []string{y, w.node1("Sigmoid", []string{y})})
	}
	return y
}

func (w *network) half(x string) string {
	return w.node1("Cast", []string{x}, attr{"to", int64(dtype.F16.ONNX())})
}

func (w *network) drawGroupNorm() (in []string, attrs []attr, dims []int) {
	groups := w.between(1, 3)
	c, last := groups*w.between(1, 3), int64(w.IntN(2))
	dims = []int{w.between(1, 2), c, w.between(2, 4), w.between(2, 4)}
	if last == 1 {
		dims = []int{dims[0], dims[2], dims[3], c}
	}
	return []string{w.source(dims...).name, w.weight(1, c), w.weight(1, c)}, []attr{{"groups", int64(groups)}, {"channels_last", last},
		{"activation", int64(w.IntN(2))}, {"epsilon", pick(w.drawer, float32(1e-3), 1e-5)}}, dims
}

// drawNhwc draws the operands of a convolution whose channels come last.
func (w *network) drawNhwc(weights func(out, in, h, v int) []int) (in []string, attrs []attr) {
	c, out, kernel := w.between(1, 3), w.between(1, 3), w.between(1, 3)
	x := w.source(w.between(1, 2), w.between(3, 5), w.between(3, 5), c)
	in = []string{x.name, w.weight(0.5, weights(out, c, kernel, kernel)...), w.weight(1, out)}
	return in, []attr{{"pads", []int64{1, 0, 1, 0}}, {"strides", []int64{1, 2}}}
}

// withoutDropping adds a ratio and a training_mode of false to the operands of
// a dropout, or neither, and a seed.
func (w *network) withoutDropping(in []string) ([]string, []attr) {
	if w.chance(0.5) {
		in = append(in, w.value(dtype.F32, []int{}, encodeFloats(dtype.F32, 0.25), true).name, w.value(dtype.Bool, []int{}, []byte{0}, true).name)
	}
	return in, []attr{{"seed", int64(w.IntN(9))}}
}

// droppedSum is a dropout of x + bias + residual in inference.
var droppedSum = foreign{
	func(w *network) ([]string, []attr) {
		in := []string{w.source(2, 3, 4).name, w.weight(1, 4), ""}
		if w.chance(0.5) {
			in[2] = w.source(2, 3, 4).name
		}
		return w.withoutDropping(in)
	},
	func(w *network, in []string, _ []attr) string {
		sum := w.node1("Add", in[:2])
		if in[2] != "" {
			sum = w.node1("Add", []string{sum, in[2]})
		}
		return w.node1("Identity", []string{sum})
	},
}

var foreigners = map[string]foreign{
	"BiasDropout":        droppedSum,
	"BitmaskBiasDropout": droppedSum,
	"BitmaskDropout": {
		func(w *network) ([]string, []attr) { return w.withoutDropping([]string{w.source(2, 3).name}) },
		func(w *network, in []string, _ []attr) string { return w.node1("Identity", in[:1]) },
	},
	"BiasSplitGelu": {
		func(w *network) ([]string, []attr) {
			d := w.between(1, 4)
			return []string{w.source(2, 3, 2*d).name, w.weight(1, 2*d)}, nil
		},
		func(w *network, in []string, _ []attr) string {
			left, right := w.name(), w.name()
			w.put("", "Split", []string{w.node1("Add", in)}, []string{left, right}, attr{"axis", int64(-1)}, attr{"num_outputs", int64(2)})
			return w.node1("Mul", []string{left, w.gelu(right, "none")})
		},
	},
	"GemmFastGelu": {
		func(w *network) ([]string, []attr) {
			return []string{w.source(2, 3, 4).name, w.weight(0.5, 4, 5), w.weight(1, 5)}, nil
		},
		func(w *network, in []string, _ []attr) string {
			return w.gelu(w.node1("Add", []string{w.node1("MatMul", in[:2]), in[2]}), "tanh")
		},
	},
	"BiasSoftmax": {
		func(w *network) ([]string, []attr) {
			return []string{w.source(2, 3, 4, 2).name, w.source(2, 1, 4, 2).name}, []attr{{"axis", int64(w.between(1, 3))}, {"is_inner_broadcast", int64(1)}}
		},
		func(w *network, in []string, attrs []attr) string {
			sum := w.node1("Add", in)
			y := w.node1("Softmax", []string{w.node1("Flatten", []string{sum}, attrs[0])}, attr{"axis", int64(-1)})
			return w.node1("Reshape", []string{y, w.node1("Shape", []string{sum})})
		},
	},
	"GroupNorm": {
		func(w *network) ([]string, []attr) {
			in, attrs, _ := w.drawGroupNorm()
			if w.chance(0.4) {
				in[0] = w.half(in[0])
			}
			return in, attrs
		},
		func(w *network, in []string, attrs []attr) string {
			scale, bias := in[1], in[2]
			if w.valueOf(in[0]) == nil { // a half
				scale, bias = w.half(scale), w.half(bias)
			}
			return w.groupNorm(in[0], scale, bias, attrs)
		},
	},
	"SkipGroupNorm": {
		func(w *network) ([]string, []attr) {
			in, attrs, dims := w.drawGroupNorm()
			in = append(in, w.source(dims...).name)
			if last := get[int64](attrs, "channels_last"); last == 1 {
				in = append(in, w.weight(1, dims[3]))
			}
			return in, attrs
		},
		func(w *network, in []string, attrs []attr) string {
			x := w.node1("Add", []string{in[0], in[3]})
			if len(in) == 5 {
				x = w.node1("Add", []string{x, in[4]})
			}
			return w.groupNorm(x, in[1], in[2], attrs)
		},
	},
	"NhwcConv": {
		func(w *network) ([]string, []attr) {
			return w.drawNhwc(func(out, in, h, v int) []int { return []int{out, h, v, in} })
		},
		func(w *network, in []string, attrs []attr) string {
			y := w.node1("Conv", []string{w.transposed(in[0], 0, 3, 1, 2), w.transposed(in[1], 0, 3, 1, 2), in[2]}, attrs...)
			return w.transposed(y, 0, 2, 3, 1)
		},
	},
	"NhwcFusedConv": {
		func(w *network) ([]string, []attr) {
			in, attrs := w.drawNhwc(func(out, in, h, v int) []int { return []int{out, in, h, v} })
			return in, append(attrs, attr{"activation", "Relu"})
		},
		func(w *network, in []string, attrs []attr) string {
			y := w.node1("Conv", []string{w.transposed(in[0], 0, 3, 1, 2), in[1], in[2]}, attrs[:2]...)
			return w.node1("Relu", []string{w.transposed(y, 0, 2, 3, 1)})
		},
	},
	"QLinearReduceMean": {
		func(w *network) ([]string, []attr) {
			byte1 := func(dt dtype.DType, v int) string { return w.value(dt, []int{}, numberOf(dt, v), true).name }
			x := w.value(dtype.U8, []int{2, 3, 4}, w.data(dtype.U8, 24), false).name
			return []string{x, w.number(0.5), byte1(dtype.U8, 3), w.number(0.25), byte1(dtype.U8, 7)}, []attr{{"axes", []int64{1}}, {"keepdims", int64(w.IntN(2))}}
		},
		func(w *network, in []string, attrs []attr) string {
			x := w.node1("DequantizeLinear", in[:3])
			mean := w.node1("ReduceMean", []string{x, w.list([]int{1}, 1)}, attrs[1])
			return w.node1("QuantizeLinear", []string{mean, in[3], in[4]})
		},
	},
	"RelativePositionBias": {
		func(w *network) ([]string, []attr) {
			length := int64(w.between(1, 40))
			return []string{w.weight(1, 4*w.between(2, 8), w.between(1, 3)), w.list([]int{1}, length), w.list([]int{1}, length)},
				[]attr{{"is_bidirectional", int64(w.IntN(2))}, {"max_distance", int64(pick(w.drawer, 20, 64, 128))}}
		},
		relativeBias,
	},
	"GatedRelativePositionBias": {
		func(w *network) ([]string, []attr) {
			heads, size, half := w.between(1, 3), w.between(1, 4), w.between(1, 4)
			in := []string{"", w.weight(1, heads*size), "", w.weight(0.5, size, 2*half), w.weight(1, 2*half), w.weight(1, 1, heads, 1, 1)}
			if w.chance(0.5) {
				n := w.between(1, 4)
				in[0], in[2] = w.source(2, n, heads*size).name, w.source(1, heads, n, n).name
			} else {
				batch, n, counts, offsets := w.sequences()
				in[0], in[2] = w.source(int(sumOf(counts)), heads*size).name, w.source(1, heads, n, n).name
				in = append(in, w.ints32([]int{batch, n}, offsets...))
			}
			return in, []attr{{"num_heads", int64(heads)}}
		},
		func(w *network, in []string, attrs []attr) string {
			q := w.node1("Add", in[:2])
			if len(in) == 7 {
				q = w.withPadding(q, in[6])
			}
			q = w.node1("Reshape", []string{q, w.list([]int{4}, 0, 0, get[int64](attrs, "num_heads"), -1)})
			y := w.node1("Add", []string{w.node1("MatMul", []string{w.transposed(q, 0, 2, 1, 3), in[3]}), in[4]})
			y = w.node1("Reshape", []string{y, w.list([]int{5}, 0, 0, 0, 2, -1)})
			y = w.node1("Sigmoid", []string{w.node1("ReduceSum", []string{y, w.list([]int{1}, -1)}, attr{"keepdims", int64(0)})})
			u, r := w.name(), w.name()
			w.put("", "Split", []string{y}, []string{u, r}, attr{"axis", int64(-1)}, attr{"num_outputs", int64(2)})
			inner := w.node1("Sub", []string{w.node1("Mul", []string{r, in[5]}), w.number(1)})
			times := w.node1("Add", []string{w.node1("Mul", []string{u, inner}), w.number(2)})
			return w.node1("Mul", []string{times, in[2]})
		},
	},
	"RemovePadding": {
		func(w *network) ([]string, []attr) {
			batch, time, counts, _ := w.sequences()
			return []string{w.source(batch, time, w.between(1, 3)).name, w.ints32([]int{batch}, counts...)}, nil
		},
		func(w *network, in []string, _ []attr) string {
			x := w.valueOf(in[0])
			var at []int64
			for b, count := range decode(dtype.I32, w.valueOf(in[1]).data) {
				for i := range count.i {
					at = append(at, int64(b*x.dims[1])+i)
				}
			}
			rows := w.node1("Reshape", []string{in[0], w.list([]int{2}, -1, int64(x.dims[2]))})
			return w.node1("Gather", []string{rows, w.list([]int{len(at)}, at...)})
		},
	},
	"RestorePadding": {
		func(w *network) ([]string, []attr) {
			batch, time, counts, offsets := w.sequences()
			return []string{w.source(int(sumOf(counts)), w.between(1, 3)).name, w.ints32([]int{batch, time}, offsets...)}, nil
		},
		func(w *network, in []string, _ []attr) string { return w.withPadding(in[0], in[1]) },
	},
	"PackedAttention": {
		func(w *network) ([]string, []attr) {
			batch, time, counts, offsets := w.sequences()
			heads, size, width := w.between(1, 3), w.between(1, 4), w.between(1, 4)
			all := 3 * heads * size
			in := []string{w.source(int(sumOf(counts)), width).name, w.weight(0.5, width, all), w.weight(1, all), w.ints32([]int{batch, time}, offsets...), w.sums(counts)}
			if w.chance(0.4) {
				in = append(in, w.source(pick(w.drawer, 1, batch), heads, time, time).name)
			}
			attrs := w.packedAttrs(heads)
			if w.chance(0.4) {
				each := int64(heads * size)
				attrs = append(attrs, attr{"qkv_hidden_sizes", []int64{each, each, each}})
			}
			return in, attrs
		},
		func(w *network, in []string, attrs []attr) string {
			args := []string{w.withPadding(in[0], in[3]), in[1], in[2], w.counts(in[4])}
			if len(in) > 5 {
				args = append(args, "", in[5])
			}
			return w.withoutPadding(w.put(contribDomain, "Attention", args, []string{w.name()}, attrs...), in[3], in[0])
		},
	},
	"PackedMultiHeadAttention": {
		func(w *network) ([]string, []attr) {
			batch, time, counts, offsets := w.sequences()
			heads, size, tokens := w.between(1, 3), w.between(1, 4), int(sumOf(counts))
			var in []string
			if w.chance(0.5) {
				for range 3 {
					in = append(in, w.source(tokens, heads*size).name)
				}
			} else {
				in = []string{w.source(tokens, heads, 3, size).name, "", ""}
			}
			bias := ""
			if w.chance(0.5) {
				bias = w.weight(1, 3*heads*size)
			}
			in = append(in, bias, w.ints32([]int{batch, time}, offsets...), w.sums(counts))
			if w.chance(0.4) {
				in = append(in, w.source(pick(w.drawer, 1, batch), heads, time, time).name)
			}
			return in, w.packedAttrs(heads)
		},
		func(w *network, in []string, attrs []attr) string {
			q, k, v := in[0], in[1], in[2]
			if k == "" {
				q, k, v = w.name(), w.name(), w.name()
				w.put("", "Split", []string{in[0]}, []string{q, k, v}, attr{"axis", int64(2)}, attr{"num_outputs", int64(3)})
				dims := w.valueOf(in[0]).dims
				for _, x := range []*string{&q, &k, &v} {
					*x = w.node1("Reshape", []string{*x, w.list([]int{2}, 0, int64(dims[1]*dims[3]))})
				}
			}
			args := []string{w.withPadding(q, in[4]), w.withPadding(k, in[4]), w.withPadding(v, in[4]), in[3], w.counts(in[5])}
			if len(in) > 6 {
				args = append(args, in[6])
			}
			return w.withoutPadding(w.put(contribDomain, "MultiHeadAttention", args, []string{w.name()}, attrs...), in[4], in[0])
		},
	},
	"SwiGLU": {
		func(w *network) ([]string, []attr) {
			d := w.between(1, 4)
			attrs := []attr{{"activation_alpha", pick(w.drawer, float32(1), 1.702)}, {"activation_beta", pick(w.drawer, float32(0), 1)}}
			if w.chance(0.5) {
				attrs = append(attrs, attr{"limit", float32(0.5)})
			}
			if w.chance(0.5) {
				return []string{w.source(2, 3, 2*d).name}, attrs
			}
			return []string{w.source(2, 3, d).name, w.source(2, 3, d).name}, append(attrs, attr{"round_activation", int64(w.IntN(2))})
		},
		func(w *network, in []string, attrs []attr) string {
			gate, up := in[0], ""
			if len(in) == 2 {
				up = in[1]
			} else {
				gate, up = w.name(), w.name()
				w.put("", "Split", in, []string{gate, up}, attr{"axis", int64(-1)}, attr{"num_outputs", int64(2)})
			}
			if limit := get[float32](attrs, "limit"); limit > 0 {
				gate = w.node1("Min", []string{gate, w.number(float64(limit))})
				up = w.node1("Clip", []string{up, w.number(-float64(limit)), w.number(float64(limit))})
			}
			inner := w.node1("Mul", []string{gate, w.number(float64(get[float32](attrs, "activation_alpha")))})
			gate = w.node1("Mul", []string{gate, w.node1("Sigmoid", []string{inner})})
			return w.node1("Mul", []string{gate, w.node1("Add", []string{up, w.number(float64(get[float32](attrs, "activation_beta")))})})
		},
	},
}

// foreignForms are forms of operators that ONNX Runtime runs here otherwise.
var foreignForms = map[string]foreign{
	"MoE swiglu of three products": foreignExperts("swiglu", 0),
	"MoE swiglu one after another": foreignExperts("swiglu", 2),
	"MoE silu of three products":   foreignExperts("silu", 0),
	"MoE geglu in turns":           foreignExperts("geglu", 1),
	"MoE geglu one after another":  foreignExperts("geglu", 2),
	"GroupQueryAttention with norms of queries and keys": {
		func(w *network) ([]string, []attr) {
			const size = 8
			batch, length, groups := w.between(1, 2), w.between(1, 4), w.between(1, 2)
			heads := groups * w.between(1, 2)
			var in []string
			for _, n := range []int{heads, groups, groups} {
				in = append(in, w.source(batch, length, n*size).name)
			}
			last := make([]int64, batch)
			for i := range last {
				last[i] = int64(length - 1)
			}
			in = append(in, "", "", w.ints32([]int{batch}, last...), w.ints32([]int{}, int64(length)), "", "", "", "", "", "", "", w.weight(1, size), w.weight(1, size))
			attrs := []attr{{"num_heads", int64(heads)}, {"kv_num_heads", int64(groups)}}
			if w.chance(0.5) {
				attrs = append(attrs, attr{"qk_norm_epsilon", float32(0.1)})
			}
			if w.chance(0.5) {
				attrs = append(attrs, attr{"q_norm_epsilon", float32(0.2)}, attr{"k_norm_epsilon", float32(0.3)})
			}
			return in, attrs
		},
		func(w *network, in []string, attrs []attr) string {
			args := slices.Clone(in[:7])
			for i, name := range []string{"q_norm_epsilon", "k_norm_epsilon"} {
				epsilon := cmp.Or(get[float32](attrs, name), get[float32](attrs, "qk_norm_epsilon"), 1e-6)
				y := w.node1("Reshape", []string{in[i], w.list([]int{4}, 0, 0, -1, 8)})
				y = w.node1("SimplifiedLayerNormalization", []string{y, in[14+i]}, attr{"axis", int64(-1)}, attr{"epsilon", epsilon})
				args[i] = w.node1("Reshape", []string{y, w.list([]int{3}, 0, 0, int64(w.valueOf(in[i]).dims[2]))})
			}
			return w.put(contribDomain, "GroupQueryAttention", args, []string{w.name()}, attrs[:2]...)
		},
	},
}

// TestForeignDevices compares operators that ONNX Runtime does not run here
// with the nodes that they stand for, which it does run.
func TestForeignDevices(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	all := maps.Clone(foreigners)
	maps.Copy(all, foreignForms)
	for name, f := range all {
		operator, _, _ := strings.Cut(name, " ")
		for i := range uint64(10) {
			var file [2][]byte
			var m *model
			for k := range file {
				d := &drawer{Rand: rand.New(rand.NewPCG(3, i)), m: &model{opset: 21}, size: 4}
				w := newNetwork(d, dtype.F32)
				in, attrs := f.draw(w)
				out := ""
				if k == 0 {
					out = f.same(w, in, attrs)
				} else {
					out = w.put(contribDomain, operator, in, []string{"y"}, attrs...)
				}
				w.m.graph.outputs = []typed{{name: out}}
				file[k], m = w.m.encode(), w.m
			}
			want, err := ref.run(file[0], m.values)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := m.run(file[1], tolerance{64, 64, 1, ""})
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, m)
			}
			for _, w := range want {
				if diff := (tolerance{64, 64, 0, ""}).apart(got["y"], w, scale(w)); diff != "" {
					t.Errorf("%s: %s\n%s", name, diff, fmt.Sprint(m))
				}
			}
		}
	}
}

func init() {
	for name, f := range foreigners {
		name = contribDomain + "::" + name
		if generators[name] != nil {
			continue // by contrib_test.go
		}
		generators[name] = func(d *drawer) {
			w := newNetwork(d, dtype.F32)
			in, attrs := f.draw(w)
			d.node(name[len(contribDomain)+2:])
			d.n.in, d.n.attrs = in, attrs
			d.outs(1)
		}
		tolerances[name] = tolerance{64, 64, 0, "sums in another order"}
	}
}

// valueOf is the value of that name.
func (w *network) valueOf(name string) *value {
	for _, v := range w.m.values {
		if v.name == name {
			return v
		}
	}
	return nil
}

func sumOf(list []int64) (sum int64) {
	for _, v := range list {
		sum += v
	}
	return sum
}

// relativeBias looks the buckets up that T5 has for distances.
func relativeBias(w *network, in []string, attrs []attr) string {
	dims, n := w.valueOf(in[0]).dims, int(decode(dtype.I64, w.valueOf(in[1]).data)[0].i)
	buckets, both, most := dims[0], get[int64](attrs, "is_bidirectional") != 0, float64(get[int64](attrs, "max_distance"))
	var list []int64
	for q := range n {
		for k := range n {
			count, first, far := buckets, 0, q-k
			if both {
				count /= 2
				if far < 0 {
					first, far = count, -far
				}
			}
			far = max(far, 0)
			exact := count / 2
			if far >= exact {
				large := float32(math.Log(float64(float32(far)/float32(exact)))) / float32(math.Log(most/float64(exact))) * float32(count-exact)
				far = min(exact+int(large), count-1)
			}
			list = append(list, int64(first+far))
		}
	}
	rows := w.node1("Reshape", []string{in[0], w.list([]int{2}, int64(dims[1]), int64(buckets))}) // by columns
	y := w.node1("Gather", []string{rows, w.list([]int{n, n}, list...)}, attr{"axis", int64(1)})
	return w.node1("Unsqueeze", []string{y, w.list([]int{1}, 0)})
}

// sequences draws how long the sequences of a batch are, and the offsets of
// their tokens and, after them, of the padding.
func (w *network) sequences() (batch, time int, counts, offsets []int64) {
	batch, time = w.between(1, 3), w.between(1, 4)
	var padding []int64
	for b := range batch {
		counts = append(counts, int64(w.between(1, time)))
		for i := range time {
			at := int64(b*time + i)
			if int64(i) < counts[b] {
				offsets = append(offsets, at)
			} else {
				padding = append(padding, at)
			}
		}
	}
	return batch, time, counts, slices.Concat(offsets, padding)
}

func (w *network) ints32(dims []int, list ...int64) string {
	return w.value(dtype.I32, dims, encodeInts(dtype.I32, list...), w.chance(0.5)).name
}

// sums are the sums of counts, from 0 on.
func (w *network) sums(counts []int64) string {
	list := []int64{0}
	for _, c := range counts {
		list = append(list, list[len(list)-1]+c)
	}
	return w.ints32([]int{len(list)}, list...)
}

// counts are the differences of sums.
func (w *network) counts(sums string) string {
	list := decode(dtype.I32, w.valueOf(sums).data)
	out := make([]int64, len(list)-1)
	for i := range out {
		out[i] = list[i+1].i - list[i].i
	}
	return w.value(dtype.I32, []int{len(out)}, encodeInts(dtype.I32, out...), true).name
}

func (w *network) packedAttrs(heads int) []attr {
	attrs := []attr{{"num_heads", int64(heads)}}
	if w.chance(0.4) {
		attrs = append(attrs, attr{"scale", float32(0.7)})
	}
	return attrs
}

// withPadding puts the rows of x where offsets say, and zeros between.
func (w *network) withPadding(x, offsets string) string {
	at := w.valueOf(offsets)
	all := decode(dtype.I32, at.data)
	where := make([]int64, len(all))
	for i, offset := range all {
		where[offset.i] = int64(i)
	}
	// Offsets of padding come after those of the rows: beyond them are rows of
	// zeros.
	zeros := w.node1("Expand", []string{w.number(0), w.node1("Concat", []string{w.list([]int{1}, int64(len(all))),
		w.node1("Slice", []string{w.node1("Shape", []string{x}), w.list([]int{1}, 1), w.list([]int{1}, 9)})}, attr{"axis", int64(0)})})
	rows := w.node1("Concat", []string{x, zeros}, attr{"axis", int64(0)})
	return w.node1("Gather", []string{rows, w.list(at.dims, where...)})
}

// withoutPadding takes the rows of x [batch, time, size] that offsets name, as
// many as like has.
func (w *network) withoutPadding(x, offsets, like string) string {
	count := w.valueOf(like).dims[0]
	where := make([]int64, count)
	for i, offset := range decode(dtype.I32, w.valueOf(offsets).data)[:count] {
		where[i] = offset.i
	}
	last := w.node1("Slice", []string{w.node1("Shape", []string{x}), w.list([]int{1}, 2), w.list([]int{1}, 3)})
	rows := w.node1("Reshape", []string{x, w.node1("Concat", []string{w.list([]int{1}, -1), last}, attr{"axis", int64(0)})})
	return w.node1("Gather", []string{rows, w.list([]int{count}, where...)})
}
