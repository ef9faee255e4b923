package lift

import (
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Strings exist in files and not in programs: a tensor of strings [d1,...,dr]
// is one of bytes u8[d1,...,dr,width], in which each string is filled up with
// zeros. The importer knows which values are such text, and what to do with
// the dimension that the file does not know of.

// readsText reports whether an operand of the node, or a value of one that is
// a sequence, holds strings.
func (n *Node) readsText() bool {
	for _, v := range n.Args {
		if n.IsText[v] {
			return true
		}
	}
	return slices.ContainsFunc(n.Lists, func(l *List) bool { return l != nil && n.holdsText(l) })
}

// holdsText reports whether the elements of a list, or keys of maps, are
// strings.
func (n *Node) holdsText(l *List) bool {
	switch {
	case l.Maps != nil:
		return n.IsText[l.Maps.Keys] || n.IsText[l.Maps.Values]
	case l.Packed != nil:
		return n.IsText[l.Packed.Data]
	}
	return l.Text || slices.ContainsFunc(l.Items, func(v *ir.Value) bool { return n.IsText[v] })
}

// liftText lifts a node that reads strings, if its operator takes them.
func (n *Node) liftText(lift func(*Node)) {
	switch {
	case lift == nil:
		n.Unsupported("strings as an operand")
	case slices.ContainsFunc(n.Args, func(v *ir.Value) bool { return v != nil && v.Type.IsZero() }):
		n.GiveUp()
	default:
		lift(n)
	}
}

// WantText reports whether operands hold strings: the given ones, else all. The
// node has ended where one does not.
func (n *Node) WantText(operands ...int) bool {
	for i, v := range n.Args {
		switch {
		case n.Err != nil:
			return false
		case n.IsText[v] || len(operands) > 0 && !slices.Contains(operands, i):
		case v == nil:
			n.Fail("operand %d is absent, want strings", i)
		case v.Type.IsZero():
			n.GiveUp()
			return false
		default:
			n.Fail("operand %d: got %s, want strings: %w", i, v.Type, tensor.ErrDType)
		}
	}
	return n.Err == nil
}

// MarkText says that the outputs of the node hold strings: so many, or all.
func (n *Node) MarkText(first ...int) {
	outputs := n.Proto.Outputs
	if len(first) > 0 {
		outputs = outputs[:min(first[0], len(outputs))]
	}
	for _, out := range outputs {
		if b := n.Values[out]; b != nil && b.Value != nil && n.Err == nil {
			n.IsText[b.Value] = true
		}
	}
}

// Lookup makes the calls that return the index of each string of a value in a
// list of distinct strings, as [Node.Lookup] does.
type Lookup func(n *Node, keys []string) *ir.Value

// Lookup returns the index of each string of x in a list of distinct strings,
// and the length of the list for a string that is not in it.
func (n *Node) Lookup(x *ir.Value, keys []string) *ir.Value {
	if find := n.lookups[x]; find != nil && n.Err == nil {
		return find(n, keys)
	}
	return n.Call("string_index", []*ir.Value{x}, op.Attr{Name: "keys", Value: keys})
}

// LookUpBy says that the strings of output 0 can be looked up without making
// them. Tokens are: each takes as many bytes as the whole text from which it is
// cut, and its index in a list takes eight.
func (n *Node) LookUpBy(find Lookup) {
	if b := n.Values[n.Proto.Outputs[0]]; n.Err == nil && b != nil && b.Value != nil {
		n.lookups[b.Value] = find
	}
}

// LookUpMoved says that output 0 has the strings of x in another shape, in
// which move puts numbers.
func (n *Node) LookUpMoved(x *ir.Value, move func(n *Node, index *ir.Value) *ir.Value) {
	if n.lookups[x] != nil {
		n.LookUpBy(func(n *Node, keys []string) *ir.Value { return move(n, n.Lookup(x, keys)) })
	}
}

// textWidthOf names the width of an input's strings, by a symbol that no
// input declares.
func textWidthOf(name string, inputs []wire.Value) shape.Dim {
	symbol := name + ".width"
	for taken := true; taken; {
		taken = false
		for i := range inputs {
			for _, d := range inputs[i].Type.Dims {
				taken = taken || d.Symbol == symbol
			}
		}
		if taken {
			symbol += "#"
		}
	}
	return shape.Sym(symbol)
}

// TextWeight makes a weight of strings.
func (n *Node) TextWeight(name string, list []string, dims ...int) *ir.Value {
	width := 1
	for _, s := range list {
		width = max(width, len(s))
		if strings.IndexByte(s, 0) >= 0 {
			n.Unsupported("a string with a NUL, which ends strings here")
		}
	}
	if n.Grow(len(list) * width / 64); n.Err != nil {
		return nil
	}
	data := make([]byte, len(list)*width)
	for i, s := range list {
		copy(data[i*width:], s)
	}
	v := n.Weight(name, op.Type{DType: dtype.U8, Shape: shape.MustOf(append(dims, width)...)}, data)
	if v != nil {
		n.IsText[v] = true
	}
	return v
}
