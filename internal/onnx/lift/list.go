package lift

import (
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
)

// Sequences and optionals exist while a model is imported, and not in
// programs: a sequence is the list of the values that nodes put into it. Its
// length and the positions that nodes name must therefore be known at load,
// and none can be an input or output of the model.

// MaxItems bounds sequences: a file of a few bytes must not make a program of
// any size.
const MaxItems = 1 << 12

// List describes a sequence, or an optional without a value.
type List struct {
	Items  []*ir.Value
	Absent bool // an optional without an element
}

// ListAt returns operand i, which must be a sequence. The node has ended where
// it is none.
func (n *Node) ListAt(i int) *List {
	if n.Err != nil {
		return nil
	}
	switch {
	case i < len(n.Lists) && n.Lists[i] != nil && !n.Lists[i].Absent:
		return n.Lists[i]
	case i < len(n.Lists) && n.Lists[i] != nil:
		n.Fail("operand %d: got an optional without an element, want a sequence", i)
	case n.Arg(i) != nil && n.Arg(i).Type.IsZero():
		n.GiveUp()
	case n.Arg(i) != nil:
		n.Fail("operand %d: got %s, want a sequence", i, n.Arg(i).Type)
	default:
		n.Fail("operand %d is absent, want a sequence", i)
	}
	return nil
}

// Grow adds the size of a list of so many values to the size of the program
// that is being made.
func (n *Node) Grow(values int) {
	if n.inlined += 64 * values; n.inlined > n.maxInlined && n.Err == nil {
		n.Err = wire.Corruptf("the sequences and functions of the model expand to more than %d bytes", n.maxInlined)
	}
}

// BindList binds output 0 to a list.
func (n *Node) BindList(l *List) {
	n.NoMoreAttrs()
	n.Grow(len(l.Items))
	switch {
	case n.Err != nil:
	case len(n.Proto.Outputs) != 1:
		n.Fail("got %d outputs, want 1", len(n.Proto.Outputs))
	case len(l.Items) > MaxItems:
		n.Unsupported("a sequence of more than %d values", MaxItems)
	case n.Proto.Outputs[0] != "":
		n.Values[n.Proto.Outputs[0]] = &Binding{List: l}
	}
}

// BindValue binds output 0 to a value that is there already.
func (n *Node) BindValue(v *ir.Value) {
	n.NoMoreAttrs()
	switch {
	case n.Err != nil:
	case len(n.Proto.Outputs) != 1:
		n.Fail("got %d outputs, want 1", len(n.Proto.Outputs))
	case n.Proto.Outputs[0] != "":
		n.Values[n.Proto.Outputs[0]] = &Binding{Value: v}
	}
}

// KnownInts returns the value of an integer operand, false where it is not
// known at load.
func (n *Node) KnownInts(i int) ([]int64, bool) {
	v := n.Arg(i)
	if v == nil || v.Kind != ir.Weight || !v.Type.IsStatic() {
		return nil, false
	}
	data, ok := n.Store.Bytes(v)
	size := v.Type.DType.Size()
	if !ok || size == 0 {
		return nil, false
	}
	out := make([]int64, 0, len(data)/size)
	for ; len(data) >= size; data = data[size:] {
		number, ok := DecodeInt(v.Type.DType, data)
		if !ok {
			return nil, false
		}
		out = append(out, number)
	}
	return out, true
}
