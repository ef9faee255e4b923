package standard

import (
	"math"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// gatedTable holds what language models put together around their products.
var gatedTable = map[string]lift.Operator{
	"SwiGLU":                       lift.Lifted(28, liftSwiGLU),
	"SimplifiedLayerNormalization": lift.Lifted(0, LiftLayerNorm), // ONNX has none: exporters write it so
	"CausalConvWithState":          lift.Lifted(27, func(n *lift.Node) { LiftCausalConv(n, 1) }),
}

// liftSwiGLU is swish(a) * b.
func liftSwiGLU(n *lift.Node) {
	alpha := lift.TakeOr(n, "alpha", float32(1))
	n.NoMoreAttrs()
	a := n.Operand(2)
	if a == nil {
		return
	}
	gate := n.Call("swish", []*ir.Value{a}, op.Attr{Name: "alpha", Value: float64(alpha)})
	n.Finish("mul", []*ir.Value{gate, n.Args[1]})
}

// LiftCausalConv is a depthwise convolution over what came before and x; the
// state is the end of that. The places that a window reads are dilation apart.
func LiftCausalConv(n *lift.Node, dilation int64) {
	activation := lift.TakeOr(n, "activation", "none")
	n.NoMoreAttrs()
	if len(n.Args) < 2 || len(n.Args) > 4 || len(n.Proto.Outputs) > 2 {
		n.Fail("got %d operands and %d outputs, want 2 to 4 and 1 or 2", len(n.Args), len(n.Proto.Outputs))
		return
	}
	x, w, bias, past := n.Args[0], n.Args[1], n.Arg(2), n.Arg(3)
	for _, v := range n.Args {
		if v != nil && v.Type.IsZero() {
			n.GiveUp()
			return
		}
	}
	if x == nil || w == nil {
		n.Fail("operand 0 or 1 is absent, want a value")
		return
	}
	if activation != "none" && activation != "silu" && activation != "swish" {
		n.Unsupported("activation %q", activation)
		return
	}
	channels, width, ok := depthwise(n, w)
	if !ok {
		return
	}
	if dilation < 1 || dilation > 1<<20 {
		n.Fail("dilation: got %d, want 1 or more", dilation)
	}
	before := (width - 1) * dilation
	if past != nil {
		x = n.Call("concat", []*ir.Value{past, x}, lift.IntAttr("axis", 2))
	} else {
		x = n.Call("pad", []*ir.Value{x, n.Ints([]int64{0, 0, before, 0, 0, 0})})
	}
	attrs := []op.Attr{lift.IntAttr("group", channels)}
	if dilation != 1 {
		attrs = append(attrs, lift.IntsAttr("dilations", []int64{dilation}))
	}
	y := n.Call("conv", []*ir.Value{x, w, bias}, attrs...)
	if activation != "none" {
		y = n.Call("swish", []*ir.Value{y})
	}
	n.Bind(n.Proto.Outputs[:1], func(names []string) []*ir.Value { return n.Emit("identity", []*ir.Value{y}, nil, names) })
	if n.Wanted(1) {
		from, to := -before, int64(math.MaxInt64)
		if width == 1 {
			from, to = 0, 0
		}
		args := []*ir.Value{x, n.Ints([]int64{from}), n.Ints([]int64{to}), n.Ints([]int64{2})}
		n.Bind(n.Proto.Outputs[1:], func(names []string) []*ir.Value { return n.Emit("slice", args, nil, names) })
	}
}

// depthwise returns the channels and the width of weights [channels, 1, width].
func depthwise(n *lift.Node, w *ir.Value) (channels, width int64, ok bool) {
	if !w.Type.IsStatic() {
		n.Unsupported("weights of %s, whose sizes are not known at load", w.Type)
		return 0, 0, false
	}
	sizes := w.Type.Shape.Sizes()
	if len(sizes) != 3 || sizes[0] < 1 || sizes[1] != 1 || sizes[2] < 1 {
		n.Fail("weights: got %s, want [channels,1,width]: %w", w.Type, shape.ErrShape)
		return 0, 0, false
	}
	return int64(sizes[0]), int64(sizes[2]), true
}
