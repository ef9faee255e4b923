package onnx

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Operators that move strings move rows of bytes: axes, permutations and
// shapes are said anew, for a value with one dimension more.

// textMoves are the operators that move strings as they move numbers.
var textMoves = map[string]func(*node){
	"Identity":  liftSameText,
	"Reshape":   liftReshapeText,
	"Expand":    liftExpandText,
	"Tile":      liftExpandText,
	"Squeeze":   liftSqueezeText,
	"Unsqueeze": liftSqueezeText,
	"Transpose": liftTransposeText,
	"Concat":    liftConcatText,
	"Split":     liftAlongText,
	"Gather":    liftAlongText,
	"Slice":     liftSliceText,
	"Where":     liftWhereText,
	"Shape":     liftShapeText,
	"Size":      liftSizeText,

	// Sequences are lists of values, whatever these hold.
	"SequenceConstruct": liftSequenceConstruct, "SequenceAt": liftSequenceAt, "SequenceInsert": liftSequenceInsert,
	"SequenceErase": liftSequenceErase, "SequenceLength": liftSequenceLength,
}

// liftSameText lifts what is the same for text as for any other bytes.
func liftSameText(n *node) {
	operators[n.proto.OpType].lift(n)
	n.markText()
}

// textRank returns how many dimensions the strings of operand i have. The node
// has ended where that is not known.
func (n *node) textRank(i int) int {
	if !n.wantText(i) {
		return 0
	}
	rank, known := n.rank(i)
	if !known {
		n.unsupported("strings of a rank that is not known at load")
	}
	return rank - 1
}

// textAxis counts an axis of strings from the front: what is counted from the
// end would begin with their bytes.
func (n *node) textAxis(axis int64, rank int) int64 {
	if axis < int64(-rank) || axis >= int64(rank) {
		n.fail("axis: got %d, want %d to %d: %w", axis, -rank, rank-1, tensor.ErrShape)
		return 0
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return axis
}

// width is how many bytes each string of a value takes, as a list of one.
func (n *node) width(v *ir.Value) *ir.Value {
	return n.call("shape", []*ir.Value{v}, intAttr("start", -1))
}

// liftReshapeText gives strings another shape, and none to their bytes.
func liftReshapeText(n *node) {
	if !n.wantText(0) || n.arg(1) == nil {
		n.fail("got %d operands, want 2", len(n.args))
		return
	}
	sizes := n.call("concat", []*ir.Value{n.args[1], n.width(n.args[0])}, intAttr("axis", 0))
	n.finishNewest([]*ir.Value{n.args[0], sizes})
	n.markText()
}

// liftExpandText repeats strings, and not their bytes.
func liftExpandText(n *node) {
	if !n.wantText(0) || n.arg(1) == nil {
		n.fail("got %d operands, want 2", len(n.args))
		return
	}
	sizes := n.call("concat", []*ir.Value{n.args[1], n.ints([]int64{1})}, intAttr("axis", 0))
	n.finishNewest([]*ir.Value{n.args[0], sizes})
	n.markText()
}

// liftSqueezeText counts the axes that are dropped or added from the front.
func liftSqueezeText(n *node) {
	rank := n.textRank(0)
	if n.err == nil && n.opset < 13 {
		n.axesOperand()
	}
	if n.err != nil {
		return
	}
	axes, known := n.knownInts(1)
	switch {
	case n.arg(1) == nil && n.proto.OpType == "Squeeze":
		axes = n.ones(rank)
	case n.arg(1) == nil:
		n.fail("operand 1 is absent, want axes")
	case !known:
		n.unsupported("axes of strings that are not known at load")
	case n.proto.OpType == "Unsqueeze":
		rank += len(axes)
	}
	for i := range axes {
		axes[i] = n.textAxis(axes[i], rank)
	}
	if n.err == nil {
		n.finishNewest([]*ir.Value{n.args[0], n.ints(axes)})
		n.markText()
	}
}

// ones lists the dimensions of operand 0's strings that have size 1.
func (n *node) ones(rank int) []int64 {
	axes := []int64{}
	for i := range rank {
		size, known := n.args[0].Type.Shape.Dim(i).Size()
		if !known {
			n.unsupported("a squeeze of %s, whose sizes are not known at load", n.args[0].Type.AsText())
		} else if size == 1 {
			axes = append(axes, int64(i))
		}
	}
	return axes
}

// liftTransposeText leaves the bytes of each string together.
func liftTransposeText(n *node) {
	rank := n.textRank(0)
	perm, given := take[[]int64](n, "perm")
	if n.noMoreAttrs(); n.err != nil {
		return
	}
	if !given {
		for i := rank - 1; i >= 0; i-- {
			perm = append(perm, int64(i))
		}
	}
	if len(perm) != rank {
		n.fail("perm: got %v for %s, want %d axes: %w", perm, n.args[0].Type.AsText(), rank, tensor.ErrShape)
		return
	}
	n.finish("transpose", n.args, op.Attr{Name: "perm", Value: append(perm[:rank:rank], int64(rank))})
	n.markText()
}

// axisOfText counts the attribute axis from the front.
func (n *node) axisOfText() {
	rank := n.textRank(0)
	axis := takeOr(n, "axis", int64(0))
	n.attrs = append(n.attrs, wire.Attribute{Name: "axis", Value: n.textAxis(axis, rank)})
}

// liftAlongText lifts what works along one axis of operand 0.
func liftAlongText(n *node) {
	if n.axisOfText(); n.err == nil {
		liftSameText(n)
	}
}

// liftConcatText makes all strings as wide as the widest.
func liftConcatText(n *node) {
	if !n.wantText() {
		return
	}
	if n.axisOfText(); n.err == nil {
		n.finishNewest(n.widen(n.args))
		n.markText()
	}
}

// widen fills strings up with more zeros where those of others are wider.
func (n *node) widen(values []*ir.Value) []*ir.Value {
	same := true
	for _, v := range values {
		same = same && textWidth(v) != shape.Unknown && textWidth(v) == textWidth(values[0])
	}
	if same || n.err != nil {
		return values
	}
	widths := make([]*ir.Value, len(values))
	for i, v := range values {
		widths[i] = n.width(v)
	}
	widest := n.call("max", widths)
	wide := make([]*ir.Value, len(values))
	for i, v := range values {
		more := n.call("concat", []*ir.Value{n.ints([]int64{0}), n.call("sub", []*ir.Value{widest, widths[i]})}, intAttr("axis", 0))
		wide[i] = n.call("pad", []*ir.Value{v, more, nil, n.ints([]int64{-1})})
	}
	return wide
}

// textWidth is what is known of how many bytes each string of a value takes.
func textWidth(v *ir.Value) shape.Dim {
	if v.Type.Shape == nil {
		return shape.Unknown
	}
	return v.Type.Shape.Dim(v.Type.Shape.Rank() - 1)
}

// liftSliceText names the axes of the bounds, which are the first ones unless
// the node says others.
func liftSliceText(n *node) {
	rank := n.textRank(0)
	if n.err != nil {
		return
	}
	if n.opset < 10 {
		n.boundsOperands()
	}
	axes, known := n.knownInts(3)
	if n.arg(3) == nil && n.arg(1) != nil && n.arg(1).Type.Shape != nil && n.arg(1).Type.Shape.Rank() == 1 {
		count, sized := n.args[1].Type.Shape.Dim(0).Size()
		known = sized && count <= rank
		for i := 0; known && i < count; i++ {
			axes = append(axes, int64(i))
		}
	}
	if !known {
		n.unsupported("a slice of strings along axes that are not known at load")
		return
	}
	for i := range axes {
		axes[i] = n.textAxis(axes[i], rank)
	}
	args := []*ir.Value{n.arg(0), n.arg(1), n.arg(2), n.ints(axes), n.arg(4)}
	n.finishNewest(args)
	n.markText()
}

// liftWhereText takes strings whole.
func liftWhereText(n *node) {
	if len(n.args) != 3 || n.args[0] == nil || !n.wantText(1, 2) {
		n.fail("got %d operands, want a condition and two of strings", len(n.args))
		return
	}
	condition := n.call("unsqueeze", []*ir.Value{n.args[0], n.ints([]int64{-1})})
	n.finishNewest(append([]*ir.Value{condition}, n.widen(n.args[1:])...))
	n.markText()
}

// shapeAttrs say which dimensions of strings a node asks for, from the front.
func (n *node) shapeAttrs() []op.Attr {
	rank := int64(n.textRank(0))
	place := func(name string, absent int64) op.Attr {
		at := takeOr(n, name, absent)
		if at < 0 {
			at = max(at+rank, 0)
		}
		return intAttr(name, min(at, rank))
	}
	return []op.Attr{place("start", 0), place("end", rank)}
}

func liftShapeText(n *node) {
	if attrs := n.shapeAttrs(); n.err == nil {
		n.finishNewest(n.args, attrs...)
	}
}

// liftSizeText counts strings, and not their bytes.
func liftSizeText(n *node) {
	attrs := n.shapeAttrs()
	if n.noMoreAttrs(); n.err == nil {
		n.finish("reduce_prod", []*ir.Value{n.call("shape", n.args, attrs...)}, intAttr("keepdims", 0))
	}
}
