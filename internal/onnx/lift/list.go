package lift

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
)

// Programs have tensors only. A sequence whose length is known at load is the
// list of the values that nodes put into it, and programs do not know of it.
// Any other sequence is packed into values of the program, see [Packed]: such
// are inputs of the model, results of Loop, and those of If whose branches
// differ in length. A list of known length is packed where it is joined with
// such a sequence, or where a node names a position that is not known at load.

// MaxItems bounds sequences: a file of a few bytes must not make a program of
// any size.
const MaxItems = 1 << 12

// List describes a sequence, an optional without a value, or maps.
type List struct {
	Items  []*ir.Value // the elements, if their number is known at load
	Open   bool        // their number is not known at load: Packed is the sequence
	Absent bool        // an optional without an element
	Packed *Packed     // nil before the list is packed
	Maps   *Maps       // maps, and nothing else

	DType dtype.DType // of the elements of a list without Items; Invalid if the file does not say
	Text  bool        // these are strings

	scope *Scope // in which the list was made; nil if it is not to be packed there
}

// Maps are maps of the same keys, or one map.
type Maps struct {
	Keys   *ir.Value // K[n]
	Values *ir.Value // V[rows,n], or V[n] of one map
	One    bool      // one map
}

// OpenList returns the list of a packed sequence.
func OpenList(p *Packed) *List { return &List{Open: true, Packed: p} }

// ListAt returns operand i, which must be a sequence. The node has ended where
// it is none.
func (n *Node) ListAt(i int) *List {
	if n.Err != nil {
		return nil
	}
	switch l := n.List(i); {
	case l != nil && l.Maps != nil:
		n.Fail("operand %d: got maps, want a sequence", i)
	case l != nil && l.Open && (l.Packed.Has != nil || l.Packed.One):
		n.Fail("operand %d: got an optional, want a sequence", i)
	case l != nil && !l.Absent:
		return l
	case l != nil:
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

// List returns operand i if it is a sequence, an optional or maps, nil
// otherwise.
func (n *Node) List(i int) *List {
	if i < len(n.Lists) {
		return n.Lists[i]
	}
	return nil
}

// BindPacked binds output 0 to a packed sequence, unless the node has ended.
func (n *Node) BindPacked(p *Packed) {
	if n.Err == nil && p != nil {
		n.BindList(OpenList(p))
	}
}

// Grow adds the size of a list of so many values to the size of the program
// that is being made.
func (n *Node) Grow(values int) {
	if n.inlined += 64 * values; n.inlined > n.maxInlined && n.Err == nil {
		n.Err = tooMuchf("the sequences and functions of the model expand to more than %d bytes", n.maxInlined)
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
		if l.scope == nil {
			l.scope = n.Scope
		}
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
