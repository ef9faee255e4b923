package ortdiff_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tenure-go/tenure/dtype"
)

// network is a random network under way: layers that exporters write, over
// values of floats, of which each has been looked at once at least when it
// ends.
type network struct {
	*encoder
	dt    dtype.DType // of the floats
	share float64     // the chance that a weight is one that there is
	live  []shaped    // all values so far
	used  map[string]bool
	made  int
}

// shaped is a value of floats with its sizes.
type shaped struct {
	name string
	dims []int
}

func newNetwork(d *drawer, dt dtype.DType) *network {
	return &network{encoder: &encoder{&decoder{d}}, dt: dt, used: map[string]bool{}}
}

// drawNetwork draws a network of about so many layers, with its inputs.
func drawNetwork(r *rand.Rand, layers int) *model {
	d := &drawer{Rand: r, m: &model{opset: 11 + r.IntN(10)}, size: 4}
	w := newNetwork(d, dtype.F32)
	switch d.IntN(3) {
	case 0:
		w.add(w.source(d.between(1, 2), d.between(1, 6), d.between(4, 9), d.between(4, 9)))
	case 1:
		w.add(w.source(d.between(1, 3), d.between(2, 6), 4*d.between(1, 4)))
	default:
		w.add(w.words())
	}
	for range layers {
		w.layer(w.newest())
	}
	for _, x := range w.live {
		if !w.used[x.name] {
			w.m.graph.outputs = append(w.m.graph.outputs, typed{name: x.name, dt: w.dt, dims: x.dims})
		}
	}
	return w.m
}

// name returns a new name of a value.
func (w *network) name() string {
	w.made++
	return fmt.Sprint("v", w.made)
}

// op adds a node with one result of those sizes.
func (w *network) op(op string, dims []int, in []string, attrs ...attr) shaped {
	for _, name := range in {
		w.used[name] = true
	}
	return shaped{w.one(op, w.name(), in, attrs...), slices.Clone(dims)}
}

func (w *network) add(x shaped) shaped {
	w.live = append(w.live, x)
	return x
}

// source adds an input of floats.
func (w *network) source(dims ...int) shaped {
	return shaped{w.value(w.dt, dims, w.numbers(1, elements(dims)), false).name, dims}
}

// weight is a constant of numbers of about that size.
func (w *network) weight(size float64, dims ...int) string {
	if w.share > 0 && w.chance(w.share) {
		for _, v := range w.m.values {
			if v.constant && v.dt == w.dt && slices.Equal(v.dims, dims) {
				return v.name
			}
		}
	}
	return w.value(w.dt, dims, w.numbers(size, elements(dims)), true).name
}

func (w *network) number(f float64) string {
	return w.value(w.dt, []int{}, encodeFloats(w.dt, f), true).name
}

// numbers draws n floats of about that size.
func (w *network) numbers(size float64, n int) []byte {
	list := make([]float64, n)
	for i := range list {
		list[i] = size * w.NormFloat64()
	}
	return encodeFloats(w.dt, list...)
}

// words are rows of a table that an input of integers names.
func (w *network) words() shaped {
	words, width := w.between(3, 20), 4*w.between(1, 4)
	dims := []int{w.between(1, 3), w.between(2, 6)}
	list := make([]int64, elements(dims))
	for i := range list {
		list[i] = int64(w.IntN(words))
	}
	ids := w.value(dtype.I64, dims, encodeInts(dtype.I64, list...), false).name
	return w.op("Gather", append(slices.Clone(dims), width), []string{w.weight(1, words, width), ids})
}

// newest returns a value, mostly the last one.
func (w *network) newest() shaped {
	if w.chance(0.75) {
		return w.live[len(w.live)-1]
	}
	return w.live[w.IntN(len(w.live))]
}

// like returns another value of the same sizes, or that value again.
func (w *network) like(x shaped) shaped {
	var same []shaped
	for _, y := range w.live {
		if slices.Equal(x.dims, y.dims) && x.name != y.name {
			same = append(same, y)
		}
	}
	if len(same) == 0 {
		return x
	}
	return pick(w.drawer, same...)
}

// layer adds a layer over a value.
func (w *network) layer(x shaped) {
	any := []func(shaped) shaped{w.activation, w.activation, w.residual, w.scaled, w.joined, w.turned, w.pieces}
	switch len(x.dims) {
	case 4:
		w.add(pick(w.drawer, append(any, w.convolution, w.convolution, w.convolution, w.convolution, w.pooling, w.pooling, w.globalPool, w.padded, w.resized, w.squeezed)...)(x))
	case 3:
		w.add(pick(w.drawer, append(any, w.linear, w.linear, w.linear, w.normed, w.normed, w.attended, w.softmax, w.averaged, w.recurrent)...)(x))
	default:
		w.add(pick(w.drawer, append(any, w.gemm, w.gemm, w.gemm, w.linear, w.softmax)...)(x))
	}
}

// activation is one of the functions, or a composition that is fused.
func (w *network) activation(x shaped) shaped {
	in := []string{x.name}
	switch w.IntN(9) {
	case 0:
		return w.op("LeakyRelu", x.dims, in, attr{"alpha", float32(0.1)})
	case 1:
		return w.op("Sigmoid", x.dims, in)
	case 2:
		return w.op("Tanh", x.dims, in)
	case 3:
		return w.op("HardSigmoid", x.dims, in)
	case 4:
		return w.op("Clip", x.dims, []string{x.name, w.number(-1), w.number(2)})
	case 5: // by the error function
		e := w.op("Erf", x.dims, []string{w.op("Div", x.dims, []string{x.name, w.number(1.4142135)}).name})
		y := w.op("Mul", x.dims, []string{x.name, w.op("Add", x.dims, []string{e.name, w.number(1)}).name})
		return w.op("Mul", x.dims, []string{y.name, w.number(0.5)})
	case 6: // x times its sigmoid
		return w.op("Mul", x.dims, []string{x.name, w.op("Sigmoid", x.dims, in).name})
	case 7: // by the hyperbolic tangent
		cube := w.op("Pow", x.dims, []string{x.name, w.number(3)})
		inner := w.op("Add", x.dims, []string{x.name, w.op("Mul", x.dims, []string{cube.name, w.number(0.044715)}).name})
		t := w.op("Tanh", x.dims, []string{w.op("Mul", x.dims, []string{inner.name, w.number(0.7978846)}).name})
		y := w.op("Mul", x.dims, []string{x.name, w.op("Add", x.dims, []string{t.name, w.number(1)}).name})
		return w.op("Mul", x.dims, []string{y.name, w.number(0.5)})
	}
	return w.op("Relu", x.dims, in)
}

// residual combines two values of the same sizes.
func (w *network) residual(x shaped) shaped {
	y := w.like(x)
	return w.op(pick(w.drawer, "Add", "Add", "Add", "Mul", "Sub"), x.dims, []string{x.name, y.name})
}

// scaled multiplies or adds a number, or one for each place of the last axis.
func (w *network) scaled(x shaped) shaped {
	by := w.number(pick(w.drawer, 0.5, 2, 0.125))
	if w.chance(0.5) && len(x.dims) > 0 {
		by = w.weight(1, x.dims[len(x.dims)-1])
	}
	return w.op(pick(w.drawer, "Mul", "Add"), x.dims, []string{x.name, by})
}

// joined puts two values side by side.
func (w *network) joined(x shaped) shaped {
	y, at := w.like(x), w.IntN(len(x.dims))
	dims := slices.Clone(x.dims)
	dims[at] *= 2
	if elements(dims) > 4000 {
		return w.activation(x)
	}
	return w.op("Concat", dims, []string{x.name, y.name}, attr{"axis", int64(at)})
}

// turned exchanges two axes.
func (w *network) turned(x shaped) shaped {
	perm := make([]int64, len(x.dims))
	for i := range perm {
		perm[i] = int64(i)
	}
	a, b := w.IntN(len(perm)), w.IntN(len(perm))
	perm[a], perm[b] = perm[b], perm[a]
	dims := make([]int, len(perm))
	for i, p := range perm {
		dims[i] = x.dims[p]
	}
	return w.op("Transpose", dims, []string{x.name}, attr{"perm", perm})
}

// pieces adds the two halves of a value.
func (w *network) pieces(x shaped) shaped {
	at := w.IntN(len(x.dims))
	if x.dims[at]%2 == 1 {
		return w.activation(x)
	}
	dims := slices.Clone(x.dims)
	dims[at] /= 2
	w.used[x.name] = true
	half := []int64{int64(dims[at]), int64(dims[at])}
	in, attrs := []string{x.name}, []attr{{"axis", int64(at)}}
	if w.m.opset >= 13 {
		in = append(in, w.list([]int{2}, half...))
	} else {
		attrs = append(attrs, attr{"split", half})
	}
	left, right := w.name(), w.name()
	w.put("", "Split", in, []string{left, right}, attrs...)
	return w.op(pick(w.drawer, "Add", "Mul"), dims, []string{left, right})
}

// convolution is perhaps followed by a norm, a residual and an activation.
func (w *network) convolution(x shaped) shaped {
	n, c, h, v := x.dims[0], x.dims[1], x.dims[2], x.dims[3]
	kernel, stride, group := pick(w.drawer, 1, 3, 3), 1, 1
	out := pick(w.drawer, c, w.between(1, 8))
	if min(h, v) >= 4 && w.chance(0.3) {
		stride = 2
	}
	if w.chance(0.2) {
		group, out = c, c
	}
	pad := kernel / 2
	size := func(n int) int { return (n+2*pad-kernel)/stride + 1 }
	dims := []int{n, out, size(h), size(v)}
	in := []string{x.name, w.weight(1/float64(kernel*2), out, c/group, kernel, kernel)}
	if w.chance(0.6) {
		in = append(in, w.weight(0.3, out))
	}
	p, s := int64(pad), int64(stride)
	y := w.op("Conv", dims, in, attr{"kernel_shape", []int64{int64(kernel), int64(kernel)}}, attr{"pads", []int64{p, p, p, p}},
		attr{"strides", []int64{s, s}}, attr{"group", int64(group)})
	if w.chance(0.4) {
		variance := make([]float64, out)
		for i := range variance {
			variance[i] = 0.5 + w.Float64()
		}
		y = w.op("BatchNormalization", dims, []string{y.name, w.weight(1, out), w.weight(0.3, out), w.weight(0.3, out),
			w.value(w.dt, []int{out}, encodeFloats(w.dt, variance...), true).name})
	}
	if w.chance(0.3) {
		y = w.residual(y)
	}
	if w.chance(0.6) {
		y = w.activation(y)
	}
	return y
}

func (w *network) pooling(x shaped) shaped {
	if min(x.dims[2], x.dims[3]) < 3 {
		return w.activation(x)
	}
	kernel, stride := pick(w.drawer, 2, 3), w.between(1, 2)
	dims := []int{x.dims[0], x.dims[1], (x.dims[2]-kernel)/stride + 1, (x.dims[3]-kernel)/stride + 1}
	k, s := int64(kernel), int64(stride)
	return w.op(pick(w.drawer, "MaxPool", "AveragePool"), dims, []string{x.name}, attr{"kernel_shape", []int64{k, k}}, attr{"strides", []int64{s, s}})
}

func (w *network) globalPool(x shaped) shaped {
	return w.op("GlobalAveragePool", []int{x.dims[0], x.dims[1], 1, 1}, []string{x.name})
}

func (w *network) padded(x shaped) shaped {
	dims := []int{x.dims[0], x.dims[1], x.dims[2] + 1, x.dims[3] + 2}
	return w.op("Pad", dims, []string{x.name, w.list([]int{8}, 0, 0, 1, 1, 0, 0, 0, 1)}, attr{"mode", "constant"})
}

func (w *network) resized(x shaped) shaped {
	dims := []int{x.dims[0], x.dims[1], 2 * x.dims[2], 2 * x.dims[3]}
	if elements(dims) > 4000 {
		return w.activation(x)
	}
	scales := w.value(dtype.F32, []int{4}, encodeFloats(dtype.F32, 1, 1, 2, 2), true).name
	none := w.value(dtype.F32, []int{0}, nil, true).name
	return w.op("Resize", dims, []string{x.name, none, scales}, attr{"mode", pick(w.drawer, "nearest", "linear")},
		attr{"coordinate_transformation_mode", "asymmetric"}, attr{"nearest_mode", "floor"})
}

// squeezed makes three axes of four, or two.
func (w *network) squeezed(x shaped) shaped {
	if w.chance(0.5) {
		return w.op("Flatten", []int{x.dims[0], elements(x.dims[1:])}, []string{x.name})
	}
	dims := []int{x.dims[0], x.dims[1], x.dims[2] * x.dims[3]}
	return w.op("Reshape", dims, []string{x.name, w.list([]int{3}, 0, 0, -1)})
}

// linear is a product with a weight, perhaps with a bias.
func (w *network) linear(x shaped) shaped {
	dims := slices.Clone(x.dims)
	last := len(dims) - 1
	width := dims[last]
	dims[last] = pick(w.drawer, width, 4*w.between(1, 4))
	y := w.op("MatMul", dims, []string{x.name, w.weight(0.5, width, dims[last])})
	if w.chance(0.7) {
		y = w.op("Add", dims, []string{y.name, w.weight(0.3, dims[last])})
	}
	if w.chance(0.4) {
		y = w.activation(y)
	}
	return y
}

func (w *network) gemm(x shaped) shaped {
	if len(x.dims) != 2 {
		return w.linear(x)
	}
	k, n := x.dims[1], w.between(1, 12)
	turned := w.IntN(2)
	weight := []int{k, n}
	if turned == 1 {
		weight = []int{n, k}
	}
	in := []string{x.name, w.weight(0.5, weight...)}
	if w.chance(0.7) {
		in = append(in, w.weight(0.3, n))
	}
	y := w.op("Gemm", []int{x.dims[0], n}, in, attr{"transB", int64(turned)})
	if w.chance(0.4) {
		y = w.activation(y)
	}
	return y
}

// mean reduces the last axis.
func (w *network) mean(x shaped, axis int, keep bool) shaped {
	dims := slices.Clone(x.dims)
	dims[axis] = 1
	flag := int64(1)
	if !keep {
		dims, flag = slices.Delete(dims, axis, axis+1), 0
	}
	keepdims := attr{"keepdims", flag}
	if w.m.opset >= 18 {
		return w.op("ReduceMean", dims, []string{x.name, w.list([]int{1}, int64(axis))}, keepdims)
	}
	return w.op("ReduceMean", dims, []string{x.name}, attr{"axes", []int64{int64(axis)}}, keepdims)
}

func (w *network) averaged(x shaped) shaped { return w.mean(x, 1, false) }

// normed is a norm over the last axis, as an operator or put together.
func (w *network) normed(x shaped) shaped {
	last := len(x.dims) - 1
	if w.chance(0.4) {
		x = w.residual(x)
	}
	scale, bias := w.weight(1, x.dims[last]), w.weight(0.3, x.dims[last])
	if w.m.opset >= 17 && w.chance(0.5) {
		return w.op("LayerNormalization", x.dims, []string{x.name, scale, bias}, attr{"axis", int64(-1)}, attr{"epsilon", float32(1e-3)})
	}
	centred := w.op("Sub", x.dims, []string{x.name, w.mean(x, last, true).name})
	variance := w.mean(w.op("Pow", x.dims, []string{centred.name, w.number(2)}), last, true)
	root := w.op("Sqrt", variance.dims, []string{w.op("Add", variance.dims, []string{variance.name, w.number(1e-3)}).name})
	y := w.op("Div", x.dims, []string{centred.name, root.name})
	return w.op("Add", x.dims, []string{w.op("Mul", x.dims, []string{y.name, scale}).name, bias})
}

// attended is an attention of two heads over the tokens.
func (w *network) attended(x shaped) shaped {
	batch, length, width := x.dims[0], x.dims[1], x.dims[2]
	if width%2 == 1 {
		return w.linear(x)
	}
	size := width / 2
	head := func(perm ...int64) shaped {
		y := w.op("MatMul", x.dims, []string{x.name, w.weight(0.5, width, width)})
		y = w.op("Add", x.dims, []string{y.name, w.weight(0.3, width)})
		y = w.op("Reshape", []int{batch, length, 2, size}, []string{y.name, w.list([]int{4}, 0, 0, 2, int64(size))})
		dims := make([]int, 4)
		for i, p := range perm {
			dims[i] = y.dims[p]
		}
		return w.op("Transpose", dims, []string{y.name}, attr{"perm", perm})
	}
	q, k, v := head(0, 2, 1, 3), head(0, 2, 3, 1), head(0, 2, 1, 3)
	scores := w.op("MatMul", []int{batch, 2, length, length}, []string{q.name, k.name})
	scores = w.op("Div", scores.dims, []string{scores.name, w.number(1.5)})
	scores = w.op("Softmax", scores.dims, []string{scores.name}, attr{"axis", int64(3)})
	y := w.op("MatMul", []int{batch, 2, length, size}, []string{scores.name, v.name})
	y = w.op("Transpose", []int{batch, length, 2, size}, []string{y.name}, attr{"perm", []int64{0, 2, 1, 3}})
	y = w.op("Reshape", x.dims, []string{y.name, w.list([]int{3}, 0, 0, int64(width))})
	y = w.op("MatMul", x.dims, []string{y.name, w.weight(0.5, width, width)})
	y = w.op("Add", x.dims, []string{y.name, w.weight(0.3, width)})
	return w.op("Add", x.dims, []string{x.name, y.name})
}

func (w *network) softmax(x shaped) shaped {
	return w.op("Softmax", x.dims, []string{x.name}, attr{"axis", int64(len(x.dims) - 1)})
}

// recurrent runs over the first axis.
func (w *network) recurrent(x shaped) shaped {
	hidden, width := w.between(1, 6), x.dims[2]
	y := w.op("LSTM", []int{x.dims[0], 1, x.dims[1], hidden}, []string{x.name, w.weight(0.5, 1, 4*hidden, width), w.weight(0.5, 1, 4*hidden, hidden),
		w.weight(0.3, 1, 8*hidden)}, attr{"hidden_size", int64(hidden)})
	dims := []int{x.dims[0], x.dims[1], hidden}
	return w.op("Reshape", dims, []string{y.name, w.list([]int{3}, 0, -1, int64(hidden))})
}
