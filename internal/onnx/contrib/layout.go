package contrib

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// layoutTable has convolutions and poolings whose channels are the last axis,
// or may be.
var layoutTable = map[string]lift.Operator{
	"QLinearConv":   lift.Lifted(1, liftQLinearConv),
	"NhwcMaxPool":   lift.Lifted(1, liftNhwcMaxPool),
	"NhwcConv":      lift.Lifted(1, liftNhwcConv),
	"NhwcFusedConv": lift.Lifted(1, liftNhwcFusedConv),
}

// channelsFirst is x [batch, ..., channels] as [batch, channels, ...].
func channelsFirst(n *lift.Node, x *ir.Value) *ir.Value {
	return permuted(n, x, func(rank int64) []int64 {
		perm := []int64{0, rank - 1}
		for i := int64(1); i < rank-1; i++ {
			perm = append(perm, i)
		}
		return perm
	})
}

// channelsLast is x [batch, channels, ...] as [batch, ..., channels].
func channelsLast(n *lift.Node, x *ir.Value) *ir.Value {
	return permuted(n, x, func(rank int64) []int64 {
		perm := []int64{0}
		for i := int64(2); i < rank; i++ {
			perm = append(perm, i)
		}
		return append(perm, 1)
	})
}

// permuted is x with its axes in the order that perm returns for their number.
func permuted(n *lift.Node, x *ir.Value, perm func(rank int64) []int64) *ir.Value {
	switch {
	case n.Err != nil || x == nil:
		return nil
	case x.Type.Shape == nil:
		n.Unsupported("an operand of unknown rank")
		return nil
	case x.Type.Shape.Rank() < 3:
		n.Fail("got %s, want a batch, channels and one axis or more", x.Type)
		return nil
	}
	return n.Call("transpose", []*ir.Value{x}, lift.IntsAttr("perm", perm(int64(x.Type.Shape.Rank()))))
}

// taken takes the attributes of these names that the node has.
func taken(n *lift.Node, names ...string) []op.Attr {
	var attrs []op.Attr
	for _, name := range names {
		if v, ok := n.TakeAny(name); ok {
			attrs = append(attrs, op.Attr{Name: name, Value: v})
		}
	}
	return attrs
}

// convAttrs are the attributes that say where the windows of a convolution lie.
var convAttrs = []string{"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}

// finishLast ends the node with y [batch, channels, ...] as [batch, ...,
// channels].
func finishLast(n *lift.Node, y *ir.Value) {
	if y = channelsLast(n, y); n.Err == nil {
		n.Finish("identity", []*ir.Value{y})
	}
}

// liftQLinearConv is that of ONNX, but for the axis of the channels. The
// weights are [M, C/group, ...] in both layouts.
func liftQLinearConv(n *lift.Node) {
	if lift.TakeOr(n, "channels_last", int64(0)) == 0 {
		liftAsStandard(n)
		return
	}
	attrs := taken(n, convAttrs...)
	n.NoMoreAttrs()
	if !n.Operands(8, 9) {
		return
	}
	args := append([]*ir.Value{channelsFirst(n, n.Args[0])}, n.Args[1:]...)
	finishLast(n, n.Call("qlinear_conv", args, attrs...))
}

func liftNhwcMaxPool(n *lift.Node) {
	attrs := taken(n, "auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
	n.NoMoreAttrs()
	if n.Operands(1, 1) {
		finishLast(n, n.Call("max_pool", []*ir.Value{channelsFirst(n, n.Args[0])}, attrs...))
	}
}

// liftNhwcConv has weights [M, ..., C/group].
func liftNhwcConv(n *lift.Node) {
	attrs := taken(n, convAttrs...)
	n.NoMoreAttrs()
	if n.Operands(2, 3) {
		finishLast(n, n.Call("conv", []*ir.Value{channelsFirst(n, n.Args[0]), channelsFirst(n, n.Args[1]), n.Arg(2)}, attrs...))
	}
}

// liftNhwcFusedConv has weights [M, C/group, ...], and perhaps a residual and
// an activation.
func liftNhwcFusedConv(n *lift.Node) {
	attrs := taken(n, convAttrs...)
	if !n.Operands(2, 4) {
		return
	}
	y := n.Call("conv", []*ir.Value{channelsFirst(n, n.Args[0]), n.Args[1], n.Arg(2)}, attrs...)
	if residual := n.Arg(3); residual != nil {
		y = n.Add(y, channelsFirst(n, residual))
	}
	y = activateByList(n, y)
	n.NoMoreAttrs()
	finishLast(n, y)
}
