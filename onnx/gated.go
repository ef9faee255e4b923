package onnx

import (
	"math"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// gatedTable holds what language models put together around their products.
var gatedTable = map[string]operator{
	"SwiGLU":                       lifted(28, liftSwiGLU),
	"SimplifiedLayerNormalization": lifted(0, liftSimplifiedNorm), // ONNX has none: exporters write it so
	"CausalConvWithState":          lifted(27, liftCausalConv),
}

// liftSwiGLU is swish(a) * b.
func liftSwiGLU(n *node) {
	alpha := takeOr(n, "alpha", float32(1))
	n.noMoreAttrs()
	a := n.operand(2)
	if a == nil {
		return
	}
	gate := n.call("swish", []*ir.Value{a}, op.Attr{Name: "alpha", Value: float64(alpha)})
	n.finish("mul", []*ir.Value{gate, n.args[1]})
}

// liftCausalConv is a depthwise convolution over what came before and x; the
// state is the end of that.
func liftCausalConv(n *node) {
	activation := takeOr(n, "activation", "none")
	n.noMoreAttrs()
	if len(n.args) < 2 || len(n.args) > 4 || len(n.proto.Outputs) > 2 {
		n.fail("got %d operands and %d outputs, want 2 to 4 and 1 or 2", len(n.args), len(n.proto.Outputs))
		return
	}
	x, w, bias, past := n.args[0], n.args[1], n.arg(2), n.arg(3)
	for _, v := range n.args {
		if v != nil && v.Type.IsZero() {
			n.giveUp()
			return
		}
	}
	if x == nil || w == nil {
		n.fail("operand 0 or 1 is absent, want a value")
		return
	}
	if activation != "none" && activation != "silu" && activation != "swish" {
		n.unsupported("activation %q", activation)
		return
	}
	channels, width, ok := n.depthwise(w)
	if !ok {
		return
	}
	if past != nil {
		x = n.call("concat", []*ir.Value{past, x}, intAttr("axis", 2))
	} else {
		x = n.call("pad", []*ir.Value{x, n.ints([]int64{0, 0, width - 1, 0, 0, 0})})
	}
	y := n.call("conv", []*ir.Value{x, w, bias}, intAttr("group", channels))
	if activation != "none" {
		y = n.call("swish", []*ir.Value{y})
	}
	n.bind(n.proto.Outputs[:1], func(names []string) []*ir.Value { return n.emit("identity", []*ir.Value{y}, nil, names) })
	if n.wanted(1) {
		from, to := -(width - 1), int64(math.MaxInt64)
		if width == 1 {
			from, to = 0, 0
		}
		args := []*ir.Value{x, n.ints([]int64{from}), n.ints([]int64{to}), n.ints([]int64{2})}
		n.bind(n.proto.Outputs[1:], func(names []string) []*ir.Value { return n.emit("slice", args, nil, names) })
	}
}

// depthwise returns the channels and the width of weights [channels, 1, width].
func (n *node) depthwise(w *ir.Value) (channels, width int64, ok bool) {
	if !w.Type.IsStatic() {
		n.unsupported("weights of %s, whose sizes are not known at load", w.Type)
		return 0, 0, false
	}
	sizes := w.Type.Shape.Sizes()
	if len(sizes) != 3 || sizes[0] < 1 || sizes[1] != 1 || sizes[2] < 1 {
		n.fail("weights: got %s, want [channels,1,width]: %w", w.Type, shape.ErrShape)
		return 0, 0, false
	}
	return int64(sizes[0]), int64(sizes[2]), true
}
