package ortdiff_test

import (
	"fmt"
	"math/rand/v2"
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

var foreigners = map[string]foreign{
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
			return in, attrs
		},
		func(w *network, in []string, attrs []attr) string { return w.groupNorm(in[0], in[1], in[2], attrs) },
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
	"GatedRelativePositionBias": {
		func(w *network) ([]string, []attr) {
			heads, size, half, n := w.between(1, 3), w.between(1, 4), w.between(1, 4), w.between(1, 4)
			return []string{w.source(2, n, heads*size).name, w.weight(1, heads*size), w.source(1, heads, n, n).name, w.weight(0.5, size, 2*half),
				w.weight(1, 2*half), w.weight(1, 1, heads, 1, 1)}, []attr{{"num_heads", int64(heads)}}
		},
		func(w *network, in []string, attrs []attr) string {
			q := w.node1("Reshape", []string{w.node1("Add", in[:2]), w.list([]int{4}, 0, 0, get[int64](attrs, "num_heads"), -1)})
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
}

// TestForeignDevices compares operators that ONNX Runtime does not run here
// with the nodes that they stand for, which it does run.
func TestForeignDevices(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	for name, f := range foreigners {
		for i := range uint64(10) {
			var file [2][]byte
			var m *model
			for k := range file {
				d := &drawer{Rand: rand.New(rand.NewPCG(3, i)), m: &model{opset: 21}, size: 4}
				w := &network{encoder: &encoder{&decoder{d}}, used: map[string]bool{}}
				in, attrs := f.draw(w)
				out := ""
				if k == 0 {
					out = f.same(w, in, attrs)
				} else {
					out = w.put(contribDomain, name, in, []string{"y"}, attrs...)
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
			w := &network{encoder: &encoder{&decoder{d}}, used: map[string]bool{}}
			in, attrs := f.draw(w)
			d.node(name[len(contribDomain)+2:])
			d.n.in, d.n.attrs = in, attrs
			d.outs(1)
		}
		tolerances[name] = tolerance{64, 64, 0, "sums in another order"}
	}
}
