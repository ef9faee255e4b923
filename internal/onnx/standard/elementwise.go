package standard

import (
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// elementwiseTable has the elementwise operators that do not follow from a row
// of package elementwise.
var elementwiseTable = map[string]lift.Operator{
	"Pow": lift.Lifted(0, liftBinary), "Mod": lift.Since(10), "Max": lift.Since(0), "Min": lift.Since(0), "Sum": lift.Since(0), "Mean": lift.Since(0),
	"Not": lift.Since(0), "Where": lift.Since(9), "BitwiseNot": lift.Since(18), "BitShift": lift.Since(11), "IsNaN": lift.Since(9), "IsInf": lift.Since(10),
	"Gelu": lift.Since(20), "PRelu": lift.Lifted(0, liftPRelu), "Clip": lift.Lifted(0, liftClip),
	"Cast": {Lift: liftCast, Text: liftCastText}, "CastLike": {From: 15, Lift: liftCastLike, Text: liftCastLikeText}, "Dropout": lift.Lifted(0, liftDropout),
}

// Functions returns the operators that follow from rows of package elementwise,
// by their names in models.
func Functions(functions []*elementwise.Function, binaries []*elementwise.Binary) map[string]lift.Operator {
	table := map[string]lift.Operator{}
	for _, f := range functions {
		if f.ONNX != "" {
			table[f.ONNX] = lift.Since(int64(f.Since))
		}
	}
	for _, f := range binaries {
		if f.ONNX != "" {
			table[f.ONNX] = lift.Lifted(int64(f.Since), liftBinary)
		}
	}
	return table
}

// liftClip makes operands of the bounds that are attributes before opset 11.
func liftClip(n *lift.Node) {
	if n.Opset >= 11 {
		lift.Plain(n)
		return
	}
	low, hasLow := lift.Take[float32](n, "min")
	high, hasHigh := lift.Take[float32](n, "max")
	x := n.Arg(0)
	args := []*ir.Value{x, nil, nil}
	if x != nil && !x.Type.IsZero() {
		if hasLow {
			args[1] = n.Scalar(x.Type.DType, float64(low))
		}
		if hasHigh {
			args[2] = n.Scalar(x.Type.DType, float64(high))
		}
	}
	n.FinishNewest(args)
}

// liftCastLike casts to the element type of an operand, which is known.
func liftCastLike(n *lift.Node) {
	like := n.Arg(1)
	if like == nil {
		n.Err = wire.Corruptf("operand 1 is absent, want a value")
		return
	}
	if like.Type.IsZero() {
		n.GiveUp()
		return
	}
	n.FinishAs("Cast", n.Args[:1], op.Attr{Name: "to", Value: like.Type.DType})
}

// liftBinary lifts an operator of two operands. Before opset 7 these did not
// broadcast by numpy's rule: a node says with an attribute that the second one
// is to be repeated, and from which axis of the first one it starts. It gets
// the axes of size 1 that make numpy's rule say the same.
func liftBinary(n *lift.Node) {
	if n.Opset < 7 {
		rank, known := n.Rank(0)
		axis := lift.TakeOr(n, "axis", int64(-1))
		if broadcast := lift.TakeOr(n, "broadcast", int64(0)); broadcast != 0 && axis >= 0 {
			if !known {
				n.Unsupported("broadcast from an axis of an operand of unknown rank")
				return
			}
			alignFrom(n, axis, rank)
		}
	}
	lift.Plain(n)
}

// liftPRelu lifts slopes per channel, and adds to x the axes of a slope that
// has more of them: a slope [1] of a scalar makes [1] of it, as ONNX Runtime
// does.
func liftPRelu(n *lift.Node) {
	rank, known := n.Rank(0)
	if n.Opset < 7 && known && rank > 1 {
		alignFrom(n, 1, rank)
	}
	if own, sloped := n.Rank(1); n.Opset >= 7 && known && sloped && own > rank {
		axes := make([]int64, own-rank)
		for i := range axes {
			axes[i] = int64(i)
		}
		n.Args = []*ir.Value{n.Call("unsqueeze", []*ir.Value{n.Args[0], n.Ints(axes)}), n.Args[1]}
	}
	lift.Plain(n)
}

// alignFrom appends axes of size 1 to operand 1, so that its first axis meets
// the given one of operand 0. One element fits everywhere.
func alignFrom(n *lift.Node, axis int64, rank int) {
	own, known := n.Rank(1)
	if !known || n.Err != nil {
		return
	}
	if t := n.Args[1].Type; t.IsStatic() && t.Shape.NumElements() == 1 {
		return
	}
	trailing := int64(rank) - axis - int64(own)
	if trailing < 0 || axis > int64(rank) {
		n.Fail("got operand 1 of %s from axis %d of %s, want its axes inside: %w", n.Args[1].Type, axis, n.Args[0].Type, shape.ErrShape)
		return
	}
	if trailing == 0 {
		return
	}
	axes := make([]int64, trailing)
	for i := range axes {
		axes[i] = int64(own + i)
	}
	n.Args = []*ir.Value{n.Args[0], n.Call("unsqueeze", []*ir.Value{n.Args[1], n.Ints(axes)})}
}
