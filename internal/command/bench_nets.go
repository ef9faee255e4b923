package command

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// network is a straight program that runs eagerly and from a plan: the same
// operators on the same values.
type network struct {
	name   string
	input  op.Type
	values []weight // by number; value 0 is the input, results have no type
	steps  []step
}

// weight is a constant of a network: zeros, or the given whole numbers.
type weight struct {
	op.Type
	ints []int64
}

func (w *weight) isWeight() bool { return !w.IsZero() }

type step struct {
	op     string
	args   []int // numbers of values
	attrs  op.Attrs
	result int
}

func newNetwork(name string, dims ...int) *network {
	t := op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)}
	return &network{name: name, input: t, values: []weight{{}}}
}

func (n *network) weight(dims ...int) int {
	n.values = append(n.values, weight{Type: op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)}})
	return len(n.values) - 1
}

func (n *network) numbers(values ...int64) int {
	n.values = append(n.values, weight{Type: op.Type{DType: dtype.I64, Shape: shape.MustOf(len(values))}, ints: values})
	return len(n.values) - 1
}

func (n *network) call(name string, attrs op.Attrs, args ...int) int {
	n.values = append(n.values, weight{})
	result := len(n.values) - 1
	n.steps = append(n.steps, step{name, args, attrs, result})
	return result
}

func ints(name string, values ...int64) op.Attr { return op.Attr{Name: name, Value: values} }

// lastUses returns, by value, the last step that reads it; results of the last
// step are read after it.
func (n *network) lastUses() []int {
	last := make([]int, len(n.values))
	for i := range last {
		last[i] = -1
	}
	for k, s := range n.steps {
		for _, a := range s.args {
			last[a] = k
		}
	}
	last[n.steps[len(n.steps)-1].result] = len(n.steps)
	return last
}

// String is the network as a program.
func (n *network) String() string {
	var sb strings.Builder
	name := func(v int) string {
		if n.values[v].isWeight() {
			return fmt.Sprintf("@w%d", v)
		}
		return fmt.Sprintf("%%v%d", v)
	}
	fmt.Fprintf(&sb, "func @bench(donate %%v0: %s) {\n", n.input)
	for v, w := range n.values {
		if w.isWeight() {
			fmt.Fprintf(&sb, "weight @w%d: %s\n", v, w.Type)
		}
	}
	for _, s := range n.steps {
		args := make([]string, len(s.args))
		for i, a := range s.args {
			args[i] = name(a)
		}
		fmt.Fprintf(&sb, "%s = %s(%s)", name(s.result), s.op, strings.Join(args, ", "))
		for i, a := range s.attrs {
			open := ", "
			if i == 0 {
				open = " {"
			}
			fmt.Fprintf(&sb, "%s%s = %s", open, a.Name, strings.ReplaceAll(fmt.Sprint(a.Value), " ", ", "))
		}
		if len(s.attrs) > 0 {
			sb.WriteString("}")
		}
		sb.WriteString("\n")
	}
	fmt.Fprintf(&sb, "return %s\n}\n", name(n.steps[len(n.steps)-1].result))
	return sb.String()
}

// reluChain is the first row of the seed: ten of them on four megabytes.
func reluChain() *network {
	n := newNetwork("relu chain of 10, 1000x1000", 1000, 1000)
	x := 0
	for range 10 {
		x = n.call("relu", nil, x)
	}
	return n
}

// convolve is a convolution without bias and a normalisation, as a framework
// runs them one by one.
func (n *network) convolve(x, in, out, size, stride int) int {
	pad := int64(size / 2)
	attrs := op.Attrs{ints("pads", pad, pad, pad, pad), ints("strides", int64(stride), int64(stride))}
	x = n.call("conv", attrs, x, n.weight(out, in, size, size))
	return n.call("batch_normalization", nil, x, n.weight(out), n.weight(out), n.weight(out), n.weight(out))
}

func (n *network) bottleneck(x, in, mid, stride int) int {
	out := 4 * mid
	y := n.call("relu", nil, n.convolve(x, in, mid, 1, 1))
	y = n.call("relu", nil, n.convolve(y, mid, mid, 3, stride))
	y = n.convolve(y, mid, out, 1, 1)
	if in != out || stride != 1 {
		x = n.convolve(x, in, out, 1, stride)
	}
	return n.call("relu", nil, n.call("add", nil, y, x))
}

func resnetBlock() *network {
	n := newNetwork("ResNet bottleneck, 1x256x56x56", 1, 256, 56, 56)
	n.bottleneck(0, 256, 64, 1)
	return n
}

func resnet50() *network {
	n := newNetwork("ResNet-50, 1x3x224x224", 1, 3, 224, 224)
	x := n.call("relu", nil, n.convolve(0, 3, 64, 7, 2))
	pool := op.Attrs{ints("kernel_shape", 3, 3), ints("pads", 1, 1, 1, 1), ints("strides", 2, 2)}
	x = n.call("max_pool", pool, x)
	in := 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		mid := 64 << stage
		for b := range blocks {
			stride := 1
			if b == 0 && stage > 0 {
				stride = 2
			}
			x = n.bottleneck(x, in, mid, stride)
			in = 4 * mid
		}
	}
	x = n.call("global_average_pool", nil, x)
	x = n.call("reshape", nil, x, n.numbers(1, int64(in)))
	n.call("add", nil, n.call("matmul", nil, x, n.weight(in, 1000)), n.weight(1000))
	return n
}

const (
	encoderTokens = 128
	encoderWidth  = 768
	encoderHeads  = 12
)

// dense is a product with a matrix and a bias.
func (n *network) dense(x, in, out int) int {
	return n.call("add", nil, n.call("matmul", nil, x, n.weight(in, out)), n.weight(out))
}

// heads turns [1,tokens,width] into [1,heads,tokens,size], or with keys into
// [1,heads,size,tokens].
func (n *network) heads(x int, keys bool) int {
	x = n.call("reshape", nil, x, n.numbers(1, encoderTokens, encoderHeads, encoderWidth/encoderHeads))
	perm := ints("perm", 0, 2, 1, 3)
	if keys {
		perm = ints("perm", 0, 2, 3, 1)
	}
	return n.call("transpose", op.Attrs{perm}, x)
}

func (n *network) layer(x int) int {
	const d = encoderWidth
	y := n.call("layer_normalization", nil, x, n.weight(d), n.weight(d))
	q, k, v := n.heads(n.dense(y, d, d), false), n.heads(n.dense(y, d, d), true), n.heads(n.dense(y, d, d), false)
	y = n.call("mul", nil, n.call("matmul", nil, q, k), n.weight(1))
	y = n.call("matmul", nil, n.call("softmax", nil, y), v)
	y = n.call("transpose", op.Attrs{ints("perm", 0, 2, 1, 3)}, y)
	y = n.call("reshape", nil, y, n.numbers(1, encoderTokens, d))
	x = n.call("add", nil, n.dense(y, d, d), x)
	y = n.call("layer_normalization", nil, x, n.weight(d), n.weight(d))
	y = n.dense(n.call("gelu", nil, n.dense(y, d, 4*d)), 4*d, d)
	return n.call("add", nil, y, x)
}

func transformerLayer() *network {
	n := newNetwork("transformer layer, 1x128x768", 1, encoderTokens, encoderWidth)
	n.layer(0)
	return n
}

func encoder() *network {
	n := newNetwork("12-layer encoder, 1x128x768", 1, encoderTokens, encoderWidth)
	x := 0
	for range 12 {
		x = n.layer(x)
	}
	return n
}
