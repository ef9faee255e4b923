package onnx

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Sequences and optionals exist while a model is imported, and not in
// programs: a sequence is the list of the values that nodes put into it. Its
// length and the positions that nodes name must therefore be known at load,
// and none can be an input or output of the model.

var sequenceTable = map[string]operator{
	"SequenceConstruct":  lifted(11, liftSequenceConstruct),
	"SequenceEmpty":      lifted(11, liftSequenceEmpty),
	"SequenceAt":         lifted(11, liftSequenceAt),
	"SequenceInsert":     lifted(11, liftSequenceInsert),
	"SequenceErase":      lifted(11, liftSequenceErase),
	"SequenceLength":     lifted(11, liftSequenceLength),
	"SplitToSequence":    lifted(11, liftSplitToSequence),
	"ConcatFromSequence": lifted(11, liftConcatFromSequence),
	"SequenceMap":        lifted(17, liftSequenceMap),
	"Optional":           lifted(15, liftOptional),
	"OptionalHasElement": lifted(15, liftOptionalHas),
	"OptionalGetElement": lifted(15, liftOptionalGet),
}

// takesLists says which operators read sequences and optionals. Every other
// one refuses them.
var takesLists = map[string]bool{"Identity": true}

func init() {
	for name := range sequenceTable {
		takesLists[name] = true
	}
}

// maxItems bounds sequences: a file of a few bytes must not make a program of
// any size.
const maxItems = 1 << 12

// list is what is known of a sequence or of an optional that holds nothing.
type list struct {
	items  []*ir.Value
	absent bool // an optional without an element
}

// listAt returns operand i, which must be a sequence. The node has ended where
// it is none.
func (n *node) listAt(i int) *list {
	if n.err != nil {
		return nil
	}
	switch {
	case i < len(n.lists) && n.lists[i] != nil && !n.lists[i].absent:
		return n.lists[i]
	case i < len(n.lists) && n.lists[i] != nil:
		n.fail("operand %d: got an optional without an element, want a sequence", i)
	case n.arg(i) != nil && n.arg(i).Type.IsZero():
		n.giveUp()
	case n.arg(i) != nil:
		n.fail("operand %d: got %s, want a sequence", i, n.arg(i).Type)
	default:
		n.fail("operand %d is absent, want a sequence", i)
	}
	return nil
}

// grow counts what a list of so many values adds to the program that is being
// made.
func (n *node) grow(values int) {
	if n.inlined += 64 * values; n.inlined > n.maxInlined && n.err == nil {
		n.err = wire.Corruptf("the sequences and functions of the model expand to more than %d bytes", n.maxInlined)
	}
}

// give binds output 0 to a list.
func (n *node) give(l *list) {
	n.noMoreAttrs()
	n.grow(len(l.items))
	switch {
	case n.err != nil:
	case len(n.proto.Outputs) != 1:
		n.fail("got %d outputs, want 1", len(n.proto.Outputs))
	case len(l.items) > maxItems:
		n.unsupported("a sequence of more than %d values", maxItems)
	case n.proto.Outputs[0] != "":
		n.values[n.proto.Outputs[0]] = &binding{list: l}
	}
}

// giveValue binds output 0 to a value that is there already.
func (n *node) giveValue(v *ir.Value) {
	n.noMoreAttrs()
	switch {
	case n.err != nil:
	case len(n.proto.Outputs) != 1:
		n.fail("got %d outputs, want 1", len(n.proto.Outputs))
	case n.proto.Outputs[0] != "":
		n.values[n.proto.Outputs[0]] = &binding{value: v}
	}
}

// knownInts returns the value of an integer operand, false where it is not
// known at load.
func (n *node) knownInts(i int) ([]int64, bool) {
	v := n.arg(i)
	if v == nil || v.Kind != ir.Weight || !v.Type.IsStatic() {
		return nil, false
	}
	data, ok := n.model.Weights.Bytes(v)
	size := v.Type.DType.Size()
	if !ok || size == 0 {
		return nil, false
	}
	out := make([]int64, 0, len(data)/size)
	for ; len(data) >= size; data = data[size:] {
		number, ok := decodeInt(v.Type.DType, data)
		if !ok {
			return nil, false
		}
		out = append(out, number)
	}
	return out, true
}

// position returns the place in a list of length that operand i names; an
// absent operand names the given one.
func (n *node) position(i, length, absent, last int) int {
	v := n.arg(i)
	if v == nil || n.err != nil {
		return absent
	}
	if v.Type.IsZero() {
		n.giveUp()
		return -1
	}
	number, known := n.knownInts(i)
	if !known || len(number) != 1 {
		n.unsupported("a position in a sequence that is not known at load")
		return -1
	}
	at := number[0]
	if at < int64(-length) || at > int64(last) {
		n.fail("position: got %d, want %d to %d", at, -length, last)
		return -1
	}
	if at < 0 {
		at += int64(length)
	}
	return int(at)
}

func liftSequenceConstruct(n *node) {
	if len(n.args) == 0 {
		n.fail("got no operands, want one or more")
		return
	}
	for i, v := range n.args {
		if v == nil {
			n.fail("operand %d: got no tensor, want one", i)
			return
		}
	}
	n.give(&list{items: n.args})
}

func liftSequenceEmpty(n *node) {
	n.ignore("dtype")
	n.give(&list{})
}

func liftSequenceAt(n *node) {
	l := n.listAt(0)
	if l == nil {
		return
	}
	if n.arg(1) == nil {
		n.fail("operand 1 is absent, want a position")
		return
	}
	if at := n.position(1, len(l.items), 0, len(l.items)-1); n.err == nil && at >= 0 {
		n.giveValue(l.items[at])
	}
}

func liftSequenceInsert(n *node) {
	l := n.listAt(0)
	if l == nil {
		return
	}
	if n.arg(1) == nil {
		n.fail("operand 1: got no tensor, want one")
		return
	}
	at := n.position(2, len(l.items), len(l.items), len(l.items))
	if n.err != nil || at < 0 {
		return
	}
	n.give(&list{items: slices.Insert(slices.Clone(l.items), at, n.args[1])})
}

func liftSequenceErase(n *node) {
	l := n.listAt(0)
	if l == nil {
		return
	}
	if len(l.items) == 0 {
		n.fail("got an empty sequence, want one value or more")
		return
	}
	last := len(l.items) - 1
	at := n.position(1, len(l.items), last, last)
	if n.err != nil || at < 0 {
		return
	}
	n.give(&list{items: slices.Delete(slices.Clone(l.items), at, at+1)})
}

func liftSequenceLength(n *node) {
	if l := n.listAt(0); l != nil {
		n.giveValue(n.scalar(dtype.I64, float64(len(l.items))))
	}
}

// liftSplitToSequence is a split into as many parts as the types tell.
func liftSplitToSequence(n *node) {
	axis, keep := takeOr(n, "axis", int64(0)), takeOr(n, "keepdims", int64(1)) != 0
	n.noMoreAttrs()
	x := n.arg(0)
	if x == nil || len(n.args) > 2 {
		n.fail("got %d operands, want 1 or 2", len(n.args))
		return
	}
	if x.Type.IsZero() || n.arg(1) != nil && n.args[1].Type.IsZero() {
		n.giveUp()
		return
	}
	sizes, parts := n.partsOf(x, axis)
	if n.err != nil {
		return
	}
	n.grow(8 * parts) // calls and values
	names := make([]string, parts)
	for i := range names {
		names[i] = n.fresh(n.path + n.proto.Outputs[0] + ".split")
	}
	items := slices.Clone(n.emit("split", []*ir.Value{x, sizes}, []op.Attr{intAttr("axis", axis)}, names))
	if n.arg(1) == nil && !keep {
		for i := range items {
			items[i] = n.call("squeeze", []*ir.Value{items[i], n.ints([]int64{axis})})
		}
	}
	n.give(&list{items: items})
}

// partsOf returns the sizes of the parts as an operand, and how many there are.
func (n *node) partsOf(x *ir.Value, axis int64) (*ir.Value, int) {
	each := int64(1)
	if sizes := n.arg(1); sizes != nil {
		if sizes.Type.Shape != nil && sizes.Type.Shape.Rank() == 1 {
			parts, known := sizes.Type.Shape.Dim(0).Size()
			switch {
			case !known:
				n.unsupported("a split into a number of parts that is not known at load")
			case parts < 1 || parts > maxItems:
				n.unsupported("a split into %d parts", parts)
			case sizes.Type.DType != dtype.I64:
				sizes = n.call("cast", []*ir.Value{sizes}, op.Attr{Name: "to", Value: dtype.I64})
			}
			return sizes, parts
		}
		number, known := n.knownInts(1)
		if !known || len(number) != 1 {
			n.unsupported("a split into parts of a size that is not known at load")
			return nil, 0
		}
		if each = number[0]; each < 1 {
			n.fail("split: got %d, want 1 or more", each)
			return nil, 0
		}
	}
	size, known := -1, false
	if rank, ok := n.rank(0); ok && axis >= int64(-rank) && axis < int64(rank) {
		size, known = x.Type.Shape.Dim(int((axis + int64(rank)) % int64(rank))).Size()
	}
	if !known {
		n.unsupported("a split of %s along axis %d, whose size is not known at load", x.Type, axis)
		return nil, 0
	}
	if int64(size) > each*maxItems || size == 0 {
		n.unsupported("a split of %d elements into parts of %d", size, each)
		return nil, 0
	}
	var sizes []int64
	for rest := int64(size); rest > 0; rest -= each {
		sizes = append(sizes, min(each, rest))
	}
	return n.ints(sizes), len(sizes)
}

func liftConcatFromSequence(n *node) {
	axis, given := take[int64](n, "axis")
	stack := takeOr(n, "new_axis", int64(0)) != 0
	n.noMoreAttrs()
	l := n.listAt(0)
	if l == nil {
		return
	}
	if !given || len(l.items) == 0 {
		n.fail("got %d values and no axis, want an axis and one value or more", len(l.items))
		return
	}
	args := slices.Clone(l.items)
	for i := range args {
		if stack {
			args[i] = n.call("unsqueeze", []*ir.Value{args[i], n.ints([]int64{axis})})
		}
	}
	n.finish("concat", args, intAttr("axis", axis))
}

// liftSequenceMap imports the body once per value.
func liftSequenceMap(n *node) {
	body, _ := take[*wire.Graph](n, "body")
	n.noMoreAttrs()
	first := n.listAt(0)
	if first == nil {
		return
	}
	if body == nil || len(body.Inputs) != len(n.args) || len(body.Outputs) < len(n.proto.Outputs) {
		n.fail("got a body that does not fit, want one of %d inputs and %d outputs", len(n.args), len(n.proto.Outputs))
		return
	}
	results := make([]*list, len(n.proto.Outputs))
	for j := range results {
		results[j] = &list{}
	}
	for i := range first.items {
		n.grow(sizeOf(body.Nodes)/64 + len(n.proto.Outputs))
		values := n.mapped(body, i, len(first.items))
		if n.err != nil {
			return
		}
		for j := range results {
			results[j].items = append(results[j].items, values[j])
		}
	}
	for j, out := range n.proto.Outputs {
		if out != "" {
			n.values[out] = &binding{list: results[j]}
		}
	}
}

// mapped imports the body of a SequenceMap for the values at position i.
func (n *node) mapped(body *wire.Graph, i, length int) []*ir.Value {
	s := n.nestedScope(body, "body", n.block)
	for j := range body.Inputs {
		v := n.arg(j)
		if j < len(n.lists) && n.lists[j] != nil {
			if len(n.lists[j].items) != length {
				n.fail("operand %d: got a sequence of %d values, want %d", j, len(n.lists[j].items), length)
				return nil
			}
			v = n.lists[j].items[i]
		}
		s.values[body.Inputs[j].Name] = &binding{value: v}
	}
	values, err := s.nested(body, len(n.proto.Outputs))
	if err != nil {
		n.fail("body: %w", err)
	}
	return values
}

// liftOptional is its operand, or nothing.
func liftOptional(n *node) {
	n.ignore("type")
	switch {
	case len(n.lists) > 0 && n.lists[0] != nil:
		n.give(n.lists[0])
	case n.arg(0) != nil:
		n.giveValue(n.args[0])
	default:
		n.give(&list{absent: true})
	}
}

func liftOptionalHas(n *node) {
	if v := n.arg(0); v != nil && v.Type.IsZero() {
		n.giveUp()
		return
	}
	has := byte(0)
	if n.arg(0) != nil || len(n.lists) > 0 && n.lists[0] != nil && !n.lists[0].absent {
		has = 1
	}
	names := map[byte]string{0: "bool false", 1: "bool true"}
	n.giveValue(n.constant(names[has], op.Type{DType: dtype.Bool, Shape: shape.Scalar()}, []byte{has}))
}

func liftOptionalGet(n *node) {
	switch {
	case n.arg(0) != nil:
		n.giveValue(n.args[0])
	case len(n.lists) > 0 && n.lists[0] != nil && !n.lists[0].absent:
		n.give(n.lists[0])
	default:
		n.fail("got an optional without an element, want one with it")
	}
}
