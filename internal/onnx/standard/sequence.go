package standard

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var sequenceTable = map[string]lift.Operator{
	"SequenceConstruct":  lift.Lifted(11, liftSequenceConstruct),
	"SequenceEmpty":      lift.Lifted(11, liftSequenceEmpty),
	"SequenceAt":         lift.Lifted(11, liftSequenceAt),
	"SequenceInsert":     lift.Lifted(11, liftSequenceInsert),
	"SequenceErase":      lift.Lifted(11, liftSequenceErase),
	"SequenceLength":     lift.Lifted(11, liftSequenceLength),
	"SplitToSequence":    lift.Lifted(11, liftSplitToSequence),
	"ConcatFromSequence": lift.Lifted(11, liftConcatFromSequence),
	"SequenceMap":        lift.Lifted(17, liftSequenceMap),
	"Optional":           lift.Lifted(15, liftOptional),
	"OptionalHasElement": lift.Lifted(15, liftOptionalHas),
	"OptionalGetElement": lift.Lifted(15, liftOptionalGet),
}

// position returns the place in a list of length that operand i names; an
// absent operand names the given one.
func position(n *lift.Node, i, length, absent, last int) int {
	v := n.Arg(i)
	if v == nil || n.Err != nil {
		return absent
	}
	if v.Type.IsZero() {
		n.GiveUp()
		return -1
	}
	number, known := n.KnownInts(i)
	if !known || len(number) != 1 {
		n.Unsupported("a position in a sequence that is not known at load")
		return -1
	}
	at := number[0]
	if at < int64(-length) || at > int64(last) {
		n.Fail("position: got %d, want %d to %d", at, -length, last)
		return -1
	}
	if at < 0 {
		at += int64(length)
	}
	return int(at)
}

func liftSequenceConstruct(n *lift.Node) {
	if len(n.Args) == 0 {
		n.Fail("got no operands, want one or more")
		return
	}
	for i, v := range n.Args {
		if v == nil {
			n.Fail("operand %d: got no tensor, want one", i)
			return
		}
	}
	n.BindList(&lift.List{Items: n.Args})
}

func liftSequenceEmpty(n *lift.Node) {
	n.Ignore("dtype")
	n.BindList(&lift.List{})
}

func liftSequenceAt(n *lift.Node) {
	l := n.ListAt(0)
	if l == nil {
		return
	}
	if n.Arg(1) == nil {
		n.Fail("operand 1 is absent, want a position")
		return
	}
	if at := position(n, 1, len(l.Items), 0, len(l.Items)-1); n.Err == nil && at >= 0 {
		n.BindValue(l.Items[at])
	}
}

func liftSequenceInsert(n *lift.Node) {
	l := n.ListAt(0)
	if l == nil {
		return
	}
	if n.Arg(1) == nil {
		n.Fail("operand 1: got no tensor, want one")
		return
	}
	at := position(n, 2, len(l.Items), len(l.Items), len(l.Items))
	if n.Err != nil || at < 0 {
		return
	}
	n.BindList(&lift.List{Items: slices.Insert(slices.Clone(l.Items), at, n.Args[1])})
}

func liftSequenceErase(n *lift.Node) {
	l := n.ListAt(0)
	if l == nil {
		return
	}
	if len(l.Items) == 0 {
		n.Fail("got an empty sequence, want one value or more")
		return
	}
	last := len(l.Items) - 1
	at := position(n, 1, len(l.Items), last, last)
	if n.Err != nil || at < 0 {
		return
	}
	n.BindList(&lift.List{Items: slices.Delete(slices.Clone(l.Items), at, at+1)})
}

func liftSequenceLength(n *lift.Node) {
	if l := n.ListAt(0); l != nil {
		n.BindValue(n.Scalar(dtype.I64, float64(len(l.Items))))
	}
}

// liftSplitToSequence is a split into as many parts as the types tell.
func liftSplitToSequence(n *lift.Node) {
	axis, keep := lift.TakeOr(n, "axis", int64(0)), lift.TakeOr(n, "keepdims", int64(1)) != 0
	n.NoMoreAttrs()
	x := n.Arg(0)
	if x == nil || len(n.Args) > 2 {
		n.Fail("got %d operands, want 1 or 2", len(n.Args))
		return
	}
	if x.Type.IsZero() || n.Arg(1) != nil && n.Args[1].Type.IsZero() {
		n.GiveUp()
		return
	}
	sizes, parts := partsOf(n, x, axis)
	if n.Err != nil {
		return
	}
	n.Grow(8 * parts) // calls and values
	names := make([]string, parts)
	for i := range names {
		names[i] = n.Fresh(n.Path + n.Proto.Outputs[0] + ".split")
	}
	items := slices.Clone(n.Emit("split", []*ir.Value{x, sizes}, []op.Attr{lift.IntAttr("axis", axis)}, names))
	if n.Arg(1) == nil && !keep {
		for i := range items {
			items[i] = n.Call("squeeze", []*ir.Value{items[i], n.Ints([]int64{axis})})
		}
	}
	n.BindList(&lift.List{Items: items})
}

// partsOf returns the sizes of the parts as an operand, and how many there are.
func partsOf(n *lift.Node, x *ir.Value, axis int64) (*ir.Value, int) {
	each := int64(1)
	if sizes := n.Arg(1); sizes != nil {
		if sizes.Type.Shape != nil && sizes.Type.Shape.Rank() == 1 {
			parts, known := sizes.Type.Shape.Dim(0).Size()
			switch {
			case !known:
				n.Unsupported("a split into a number of parts that is not known at load")
			case parts < 1 || parts > lift.MaxItems:
				n.Unsupported("a split into %d parts", parts)
			case sizes.Type.DType != dtype.I64:
				sizes = n.Call("cast", []*ir.Value{sizes}, op.Attr{Name: "to", Value: dtype.I64})
			}
			return sizes, parts
		}
		number, known := n.KnownInts(1)
		if !known || len(number) != 1 {
			n.Unsupported("a split into parts of a size that is not known at load")
			return nil, 0
		}
		if each = number[0]; each < 1 {
			n.Fail("split: got %d, want 1 or more", each)
			return nil, 0
		}
	}
	size, known := -1, false
	if rank, ok := n.Rank(0); ok && axis >= int64(-rank) && axis < int64(rank) {
		size, known = x.Type.Shape.Dim(int((axis + int64(rank)) % int64(rank))).Size()
	}
	if !known {
		n.Unsupported("a split of %s along axis %d, whose size is not known at load", x.Type, axis)
		return nil, 0
	}
	if int64(size) > each*lift.MaxItems || size == 0 {
		n.Unsupported("a split of %d elements into parts of %d", size, each)
		return nil, 0
	}
	var sizes []int64
	for rest := int64(size); rest > 0; rest -= each {
		sizes = append(sizes, min(each, rest))
	}
	return n.Ints(sizes), len(sizes)
}

func liftConcatFromSequence(n *lift.Node) {
	axis, given := lift.Take[int64](n, "axis")
	stack := lift.TakeOr(n, "new_axis", int64(0)) != 0
	n.NoMoreAttrs()
	l := n.ListAt(0)
	if l == nil {
		return
	}
	if !given || len(l.Items) == 0 {
		n.Fail("got %d values and no axis, want an axis and one value or more", len(l.Items))
		return
	}
	args := slices.Clone(l.Items)
	for i := range args {
		if stack {
			args[i] = n.Call("unsqueeze", []*ir.Value{args[i], n.Ints([]int64{axis})})
		}
	}
	n.Finish("concat", args, lift.IntAttr("axis", axis))
}

// liftSequenceMap imports the body once per value.
func liftSequenceMap(n *lift.Node) {
	body, _ := lift.Take[*wire.Graph](n, "body")
	n.NoMoreAttrs()
	first := n.ListAt(0)
	if first == nil {
		return
	}
	if body == nil || len(body.Inputs) != len(n.Args) || len(body.Outputs) < len(n.Proto.Outputs) {
		n.Fail("got a body that does not fit, want one of %d inputs and %d outputs", len(n.Args), len(n.Proto.Outputs))
		return
	}
	results := make([]*lift.List, len(n.Proto.Outputs))
	for j := range results {
		results[j] = &lift.List{}
	}
	for i := range first.Items {
		n.Grow(lift.ExpandedSize(body.Nodes)/64 + len(n.Proto.Outputs))
		values := mapped(n, body, i, len(first.Items))
		if n.Err != nil {
			return
		}
		for j := range results {
			results[j].Items = append(results[j].Items, values[j])
		}
	}
	for j, out := range n.Proto.Outputs {
		if out != "" {
			n.Values[out] = &lift.Binding{List: results[j]}
		}
	}
}

// mapped imports the body of a SequenceMap for the values at position i.
func mapped(n *lift.Node, body *wire.Graph, i, length int) []*ir.Value {
	s := n.NestedScope(body, "body", n.Block)
	for j := range body.Inputs {
		v := n.Arg(j)
		if j < len(n.Lists) && n.Lists[j] != nil {
			if len(n.Lists[j].Items) != length {
				n.Fail("operand %d: got a sequence of %d values, want %d", j, len(n.Lists[j].Items), length)
				return nil
			}
			v = n.Lists[j].Items[i]
		}
		s.Values[body.Inputs[j].Name] = &lift.Binding{Value: v}
	}
	values, err := s.Nested(body, len(n.Proto.Outputs))
	if err != nil {
		n.Fail("body: %w", err)
	}
	return values
}

// liftOptional is its operand, or nothing.
func liftOptional(n *lift.Node) {
	n.Ignore("type")
	switch {
	case len(n.Lists) > 0 && n.Lists[0] != nil:
		n.BindList(n.Lists[0])
	case n.Arg(0) != nil:
		n.BindValue(n.Args[0])
	default:
		n.BindList(&lift.List{Absent: true})
	}
}

func liftOptionalHas(n *lift.Node) {
	if v := n.Arg(0); v != nil && v.Type.IsZero() {
		n.GiveUp()
		return
	}
	has := byte(0)
	if n.Arg(0) != nil || len(n.Lists) > 0 && n.Lists[0] != nil && !n.Lists[0].Absent {
		has = 1
	}
	names := map[byte]string{0: "bool false", 1: "bool true"}
	n.BindValue(n.Constant(names[has], op.Type{DType: dtype.Bool, Shape: shape.Scalar()}, []byte{has}))
}

func liftOptionalGet(n *lift.Node) {
	switch {
	case n.Arg(0) != nil:
		n.BindValue(n.Args[0])
	case len(n.Lists) > 0 && n.Lists[0] != nil && !n.Lists[0].Absent:
		n.BindList(n.Lists[0])
	default:
		n.Fail("got an optional without an element, want one with it")
	}
}
