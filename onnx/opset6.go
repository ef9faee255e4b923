package onnx

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/shape"
)

// Before opset 7 operands did not broadcast by numpy's rule: a node said with
// an attribute that the second operand is to be repeated, and from which axis
// of the first one it starts. The lift functions here give the second operand
// the axes of size 1 that make numpy's rule say the same.

// liftBinary lifts an operator of two operands.
func liftBinary(n *node) {
	if n.opset < 7 {
		rank, known := n.rank(0)
		axis := takeOr(n, "axis", int64(-1))
		if broadcast := takeOr(n, "broadcast", int64(0)); broadcast != 0 && axis >= 0 {
			if !known {
				n.unsupported("broadcast from an axis of an operand of unknown rank")
				return
			}
			n.alignFrom(axis, rank)
		}
	}
	plain(n)
}

// liftPRelu lifts slopes per channel, and gives x the axes of a slope that has
// more of them: a slope [1] of a scalar makes [1] of it, as ONNX Runtime does.
func liftPRelu(n *node) {
	rank, known := n.rank(0)
	if n.opset < 7 && known && rank > 1 {
		n.alignFrom(1, rank)
	}
	if own, sloped := n.rank(1); n.opset >= 7 && known && sloped && own > rank {
		axes := make([]int64, own-rank)
		for i := range axes {
			axes[i] = int64(i)
		}
		n.args = []*ir.Value{n.call("unsqueeze", []*ir.Value{n.args[0], n.ints(axes)}), n.args[1]}
	}
	plain(n)
}

// liftGemm drops what the newer form always does.
func liftGemm(n *node) {
	if n.opset < 7 {
		n.ignore("broadcast")
	}
	plain(n)
}

// alignFrom appends axes of size 1 to operand 1, so that its first axis meets
// the given one of operand 0. One element fits everywhere.
func (n *node) alignFrom(axis int64, rank int) {
	own, known := n.rank(1)
	if !known || n.err != nil {
		return
	}
	if t := n.args[1].Type; t.IsStatic() && t.Shape.NumElements() == 1 {
		return
	}
	trailing := int64(rank) - axis - int64(own)
	if trailing < 0 || axis > int64(rank) {
		n.fail("got operand 1 of %s from axis %d of %s, want its axes inside: %w", n.args[1].Type, axis, n.args[0].Type, shape.ErrShape)
		return
	}
	if trailing == 0 {
		return
	}
	axes := make([]int64, trailing)
	for i := range axes {
		axes[i] = int64(own + i)
	}
	n.args = []*ir.Value{n.args[0], n.call("unsqueeze", []*ir.Value{n.args[1], n.ints(axes)})}
}
