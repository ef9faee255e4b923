package standard

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Operators that move strings move rows of bytes: axes, permutations and
// shapes are said anew, for a value with one dimension more.

// textMoves are the operators that move strings as they move numbers.
var textMoves = map[string]func(*lift.Node){
	"Identity":  liftIdentityText,
	"Flatten":   liftFlattenText,
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

	// Sequences are lists of values of any type.
	"SequenceConstruct": liftSequenceConstruct, "SequenceAt": liftSequenceAt, "SequenceInsert": liftSequenceInsert,
	"SequenceErase": liftSequenceErase, "SequenceLength": liftSequenceLength,
}

// liftSameText lifts operators that treat text as any other bytes.
func liftSameText(n *lift.Node) {
	n.LiftNumbers()
	n.MarkText()
}

func liftIdentityText(n *lift.Node) {
	liftSameText(n)
	n.LookUpMoved(n.Arg(0), func(_ *lift.Node, index *ir.Value) *ir.Value { return index })
}

// textRank returns how many dimensions the strings of operand i have. The node
// has ended where that is not known.
func textRank(n *lift.Node, i int) int {
	if !n.WantText(i) {
		return 0
	}
	rank, known := n.Rank(i)
	if !known {
		n.Unsupported("strings of a rank that is not known at load")
	}
	return rank - 1
}

// textAxis counts an axis of strings from the front: an axis counted from the
// end would begin with their bytes.
func textAxis(n *lift.Node, axis int64, rank int) int64 {
	if axis < int64(-rank) || axis >= int64(rank) {
		n.Fail("axis: got %d, want %d to %d: %w", axis, -rank, rank-1, tensor.ErrShape)
		return 0
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return axis
}

// width is how many bytes each string of a value takes, as a list of one.
func width(n *lift.Node, v *ir.Value) *ir.Value {
	return n.Call("shape", []*ir.Value{v}, lift.IntAttr("start", -1))
}

// liftReshapeText reshapes strings, and keeps the axis of their bytes.
func liftReshapeText(n *lift.Node) {
	if !n.WantText(0) || n.Arg(1) == nil {
		n.Fail("got %d operands, want 2", len(n.Args))
		return
	}
	sizes := n.Call("concat", []*ir.Value{n.Args[1], width(n, n.Args[0])}, lift.IntAttr("axis", 0))
	shaped := n.Args[1]
	var attrs []op.Attr
	if lift.TakeOr(n, "allowzero", int64(0)) != 0 {
		attrs = append(attrs, lift.IntAttr("allowzero", 1))
	}
	n.FinishNewest([]*ir.Value{n.Args[0], sizes}, attrs...)
	n.MarkText()
	n.LookUpMoved(n.Args[0], func(n *lift.Node, index *ir.Value) *ir.Value {
		return n.Call("reshape", []*ir.Value{index, shaped}, attrs...)
	})
}

// liftFlattenText makes a matrix of strings.
func liftFlattenText(n *lift.Node) {
	rank := textRank(n, 0)
	axis := lift.TakeOr(n, "axis", int64(1))
	if axis < int64(-rank) || axis > int64(rank) {
		n.Fail("axis: got %d, want %d to %d: %w", axis, -rank, rank, tensor.ErrShape)
	}
	if n.NoMoreAttrs(); n.Err != nil {
		return
	}
	if axis < 0 {
		axis += int64(rank)
	}
	count := func(start, end int64) *ir.Value { // of the strings along some dimensions
		dims := n.Call("shape", n.Args, lift.IntAttr("start", start), lift.IntAttr("end", end))
		return n.Call("reduce_prod", []*ir.Value{dims})
	}
	sizes := []*ir.Value{count(0, axis), count(axis, int64(rank)), width(n, n.Args[0])}
	n.Finish("reshape", []*ir.Value{n.Args[0], n.Call("concat", sizes, lift.IntAttr("axis", 0))})
	n.MarkText()
	n.LookUpMoved(n.Args[0], func(n *lift.Node, index *ir.Value) *ir.Value {
		return n.Call("flatten", []*ir.Value{index}, lift.IntAttr("axis", axis))
	})
}

// liftExpandText repeats strings, and not their bytes.
func liftExpandText(n *lift.Node) {
	if !n.WantText(0) || n.Arg(1) == nil {
		n.Fail("got %d operands, want 2", len(n.Args))
		return
	}
	sizes := n.Call("concat", []*ir.Value{n.Args[1], n.Ints([]int64{1})}, lift.IntAttr("axis", 0))
	n.FinishNewest([]*ir.Value{n.Args[0], sizes})
	n.MarkText()
}

// liftSqueezeText counts the axes that are dropped or added from the front.
func liftSqueezeText(n *lift.Node) {
	rank := textRank(n, 0)
	if n.Err == nil && n.Opset < 13 {
		axesOperand(n)
	}
	if n.Err != nil {
		return
	}
	axes, known := n.KnownInts(1)
	switch {
	case n.Arg(1) == nil && n.Proto.OpType == "Squeeze":
		axes = ones(n, rank)
	case n.Arg(1) == nil:
		n.Fail("operand 1 is absent, want axes")
	case !known:
		n.Unsupported("axes of strings that are not known at load")
	case n.Proto.OpType == "Unsqueeze":
		rank += len(axes)
	}
	for i := range axes {
		axes[i] = textAxis(n, axes[i], rank)
	}
	if n.Err != nil {
		return
	}
	n.FinishNewest([]*ir.Value{n.Args[0], n.Ints(axes)})
	n.MarkText()
	name := "squeeze"
	if n.Proto.OpType == "Unsqueeze" {
		name = "unsqueeze"
	}
	n.LookUpMoved(n.Args[0], func(n *lift.Node, index *ir.Value) *ir.Value {
		return n.Call(name, []*ir.Value{index, n.Ints(axes)})
	})
}

// ones lists the dimensions of operand 0's strings that have size 1.
func ones(n *lift.Node, rank int) []int64 {
	axes := []int64{}
	for i := range rank {
		size, known := n.Args[0].Type.Shape.Dim(i).Size()
		if !known {
			n.Unsupported("a squeeze of %s, whose sizes are not known at load", n.Args[0].Type.AsText())
		} else if size == 1 {
			axes = append(axes, int64(i))
		}
	}
	return axes
}

// liftTransposeText leaves the bytes of each string together.
func liftTransposeText(n *lift.Node) {
	rank := textRank(n, 0)
	perm, given := lift.Take[[]int64](n, "perm")
	if n.NoMoreAttrs(); n.Err != nil {
		return
	}
	if !given {
		for i := rank - 1; i >= 0; i-- {
			perm = append(perm, int64(i))
		}
	}
	if len(perm) != rank {
		n.Fail("perm: got %v for %s, want %d axes: %w", perm, n.Args[0].Type.AsText(), rank, tensor.ErrShape)
		return
	}
	n.Finish("transpose", n.Args, op.Attr{Name: "perm", Value: append(perm[:rank:rank], int64(rank))})
	n.MarkText()
}

// axisOfText counts the attribute axis from the front.
func axisOfText(n *lift.Node) {
	rank := textRank(n, 0)
	axis := lift.TakeOr(n, "axis", int64(0))
	n.Attrs = append(n.Attrs, wire.Attribute{Name: "axis", Value: textAxis(n, axis, rank)})
}

// liftAlongText lifts what works along one axis of operand 0.
func liftAlongText(n *lift.Node) {
	if axisOfText(n); n.Err == nil {
		liftSameText(n)
	}
}

// liftConcatText makes all strings as wide as the widest.
func liftConcatText(n *lift.Node) {
	if !n.WantText() {
		return
	}
	if axisOfText(n); n.Err == nil {
		n.FinishNewest(widen(n, n.Args))
		n.MarkText()
	}
}

// widen fills strings up with more zeros where those of others are wider.
func widen(n *lift.Node, values []*ir.Value) []*ir.Value {
	same := true
	for _, v := range values {
		same = same && textWidth(v) != shape.Unknown && textWidth(v) == textWidth(values[0])
	}
	if same || n.Err != nil {
		return values
	}
	widths := make([]*ir.Value, len(values))
	for i, v := range values {
		widths[i] = width(n, v)
	}
	widest := n.Call("max", widths)
	wide := make([]*ir.Value, len(values))
	for i, v := range values {
		more := n.Call("concat", []*ir.Value{n.Ints([]int64{0}), n.Call("sub", []*ir.Value{widest, widths[i]})}, lift.IntAttr("axis", 0))
		wide[i] = n.Call("pad", []*ir.Value{v, more, nil, n.Ints([]int64{-1})})
	}
	return wide
}

// textWidth returns the bytes of each string of a value, as far as they are
// known.
func textWidth(v *ir.Value) shape.Dim {
	if v.Type.Shape == nil {
		return shape.Unknown
	}
	return v.Type.Shape.Dim(v.Type.Shape.Rank() - 1)
}

// liftSliceText names the axes of the bounds, which are the first ones unless
// the node says others.
func liftSliceText(n *lift.Node) {
	rank := textRank(n, 0)
	if n.Err != nil {
		return
	}
	if n.Opset < 10 {
		boundsOperands(n)
	}
	axes, known := n.KnownInts(3)
	if n.Arg(3) == nil && n.Arg(1) != nil && n.Arg(1).Type.Shape != nil && n.Arg(1).Type.Shape.Rank() == 1 {
		count, sized := n.Args[1].Type.Shape.Dim(0).Size()
		known = sized && count <= rank
		for i := 0; known && i < count; i++ {
			axes = append(axes, int64(i))
		}
	}
	if !known {
		n.Unsupported("a slice of strings along axes that are not known at load")
		return
	}
	for i := range axes {
		axes[i] = textAxis(n, axes[i], rank)
	}
	args := []*ir.Value{n.Arg(0), n.Arg(1), n.Arg(2), n.Ints(axes), n.Arg(4)}
	n.FinishNewest(args)
	n.MarkText()
}

// liftWhereText takes strings whole.
func liftWhereText(n *lift.Node) {
	if len(n.Args) != 3 || n.Args[0] == nil || !n.WantText(1, 2) {
		n.Fail("got %d operands, want a condition and two of strings", len(n.Args))
		return
	}
	condition := n.Call("unsqueeze", []*ir.Value{n.Args[0], n.Ints([]int64{-1})})
	n.FinishNewest(append([]*ir.Value{condition}, widen(n, n.Args[1:])...))
	n.MarkText()
}

// shapeAttrs returns which dimensions of strings a Shape node selects, counted
// from the front.
func shapeAttrs(n *lift.Node) []op.Attr {
	rank := int64(textRank(n, 0))
	place := func(name string, absent int64) op.Attr {
		at := lift.TakeOr(n, name, absent)
		if at < 0 {
			at = max(at+rank, 0)
		}
		return lift.IntAttr(name, min(at, rank))
	}
	return []op.Attr{place("start", 0), place("end", rank)}
}

func liftShapeText(n *lift.Node) {
	if attrs := shapeAttrs(n); n.Err == nil {
		n.FinishNewest(n.Args, attrs...)
	}
}

// liftSizeText counts strings, and not their bytes.
func liftSizeText(n *lift.Node) {
	attrs := shapeAttrs(n)
	if n.NoMoreAttrs(); n.Err == nil {
		n.Finish("reduce_prod", []*ir.Value{n.Call("shape", n.Args, attrs...)}, lift.IntAttr("keepdims", 0))
	}
}
