package contrib

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// diffusionTable has what optimisers write into networks that draw pictures.
var diffusionTable = map[string]lift.Operator{
	"BiasAdd":       lift.Lifted(1, liftBiasAdd),
	"BiasSplitGelu": lift.Lifted(1, liftBiasSplitGelu),
	"GroupNorm":     lift.Lifted(1, liftGroupNorm),
	"SkipGroupNorm": lift.Lifted(1, liftSkipGroupNorm),
}

// liftBiasAdd is x + bias + skip.
func liftBiasAdd(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(3, 3) {
		n.Finish("add", []*ir.Value{n.Add(n.Args[0], n.Args[1]), n.Args[2]})
	}
}

// liftBiasSplitGelu is a * gelu(b), where a and b are the halves of x + bias
// along the last axis.
func liftBiasSplitGelu(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(2, 2) {
		return
	}
	size, ok := n.LastSize(n.Args[0])
	if !ok || !n.WantDivides("last size of x", size, 2) {
		return
	}
	halves := split(n, n.Add(n.Args[0], n.Args[1]), -1, size/2, size/2)
	n.Finish("mul", []*ir.Value{halves[0], n.Call("gelu", halves[1:])})
}

// groupNorm are the attributes of a GroupNorm.
type groupNorm struct {
	attrs []op.Attr
	last  bool // the channels are the last axis
	swish bool
}

func readGroupNorm(n *lift.Node) groupNorm {
	g := groupNorm{last: lift.TakeOr(n, "channels_last", int64(1)) != 0}
	groups, ok := lift.Take[int64](n, "groups")
	activation := lift.TakeOr(n, "activation", int64(0))
	if !ok || activation != 0 && activation != 1 {
		n.Fail("got groups %d and activation %d, want groups, and no activation (0) or SiLU (1)", groups, activation)
	}
	g.attrs = []op.Attr{lift.IntAttr("num_groups", groups), {Name: "epsilon", Value: float64(lift.TakeOr(n, "epsilon", float32(1e-5)))}}
	g.swish = activation == 1
	n.NoMoreAttrs()
	return g
}

// finish ends the node with the norm of x.
func (g groupNorm) finish(n *lift.Node, x *ir.Value) {
	if g.last {
		x = channelsFirst(n, x)
	}
	dt := n.Args[0].Type.DType // scale and bias are in single precision, whatever x is
	y := n.Call("group_normalization", []*ir.Value{x, as(n, n.Args[1], dt), as(n, n.Args[2], dt)}, g.attrs...)
	if g.last {
		y = channelsLast(n, y)
	}
	name := "identity"
	if g.swish {
		name = "swish"
	}
	n.Output(0, name, []*ir.Value{y})
}

func liftGroupNorm(n *lift.Node) {
	g := readGroupNorm(n)
	if n.Operands(3, 3) {
		g.finish(n, n.Args[0])
	}
}

// liftSkipGroupNorm normalises x + skip + bias, whose output 1 is that sum.
// skip is [batch, channels] or as x is, or has sizes of 1.
func liftSkipGroupNorm(n *lift.Node) {
	g := readGroupNorm(n)
	if !n.Operands(4, 5) {
		return
	}
	if rank, known := n.Rank(0); !known || rank != 4 {
		n.Unsupported("operand 0 of %s, want 4 dimensions", n.Args[0].Type)
		return
	}
	spatial := []int64{2, 3}
	if g.last {
		spatial = []int64{1, 2}
	}
	skip, bias := n.Args[3], n.Arg(4)
	if rank, known := n.Rank(3); known && rank == 2 {
		skip = n.Call("unsqueeze", []*ir.Value{skip, n.Ints(spatial)})
	}
	if bias != nil && !g.last {
		bias = n.Call("unsqueeze", []*ir.Value{bias, n.Ints([]int64{1, 2})})
	}
	sum := n.Add(n.Add(n.Args[0], skip), bias)
	n.Output(1, "identity", []*ir.Value{sum})
	g.finish(n, sum)
}
