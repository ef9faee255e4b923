package lift

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Operand returns operand 0 of a node that has count operands. It returns nil
// where the type of one is not known, or where there are not so many: then the
// node has ended.
func (n *Node) Operand(count int) *ir.Value {
	if len(n.Args) != count {
		n.Fail("got %d operands, want %d", len(n.Args), count)
		return nil
	}
	for i, v := range n.Args {
		if v == nil {
			n.Fail("operand %d is absent, want a value", i)
			return nil
		}
		if v.Type.IsZero() {
			n.GiveUp()
			return nil
		}
	}
	return n.Args[0]
}

// InSingle lifts a node of half precision in single precision: powers and sums
// on the way may be larger than the result.
func InSingle(lift func(*Node)) func(*Node) {
	return func(n *Node) {
		if x := n.Arg(0); x != nil && (x.Type.DType == dtype.F16 || x.Type.DType == dtype.BF16) {
			n.narrow = x.Type.DType
			n.Args = slices.Clone(n.Args)
			n.Args[0] = n.Call("cast", []*ir.Value{x}, op.Attr{Name: "to", Value: dtype.F32})
		}
		lift(n)
	}
}

// IntAttr returns an attribute of one integer.
func IntAttr(name string, v int64) op.Attr { return op.Attr{Name: name, Value: v} }

// IntsAttr returns an attribute of a list of integers.
func IntsAttr(name string, v []int64) op.Attr { return op.Attr{Name: name, Value: v} }

// WithNumber calls an operator of x and a number of type dt.
func (n *Node) WithNumber(name string, x *ir.Value, number float64, dt dtype.DType) *ir.Value {
	return n.Call(name, []*ir.Value{x, n.Scalar(dt, number)})
}

// Operands checks that the node has lo to hi operands, of which the first lo
// are there, and that the types of all are known. It reports false where not:
// then the node has ended.
func (n *Node) Operands(lo, hi int) bool {
	if n.Err != nil {
		return false
	}
	if len(n.Args) < lo || len(n.Args) > hi {
		n.Fail("got %d operands, want %d to %d", len(n.Args), lo, hi)
		return false
	}
	for i, v := range n.Args {
		switch {
		case v == nil && i < lo:
			n.Fail("operand %d is absent, want a value", i)
			return false
		case v != nil && v.Type.IsZero():
			n.GiveUp()
			return false
		}
	}
	return true
}

// Output binds output i to the result of a call, unless it is absent or not
// read.
func (n *Node) Output(i int, name string, args []*ir.Value, attrs ...op.Attr) {
	if i < len(n.Proto.Outputs) && n.Proto.Outputs[i] != "" && (i == 0 || n.Wanted(i)) {
		n.Bind(n.Proto.Outputs[i:i+1], func(names []string) []*ir.Value { return n.Emit(name, args, attrs, names) })
	}
}

// NoOutputs refuses outputs that training reads, from the given one on.
func (n *Node) NoOutputs(from int) {
	for i := from; i < len(n.Proto.Outputs); i++ {
		if n.Wanted(i) {
			n.Unsupported("output %d", i)
		}
	}
}

// ListOf makes a list of operand i, which is one, where the file has one number
// without dimensions.
func (n *Node) ListOf(i int) {
	if rank, known := n.Rank(i); known && rank == 0 {
		n.Remark(fmt.Sprintf("operand %d is one number, taken as a list of one", i))
		n.Args = slices.Clone(n.Args)
		n.Args[i] = n.Call("reshape", []*ir.Value{n.Args[i], n.Ints([]int64{1})})
	}
}

// Add returns x + y, x if y is nil.
func (n *Node) Add(x, y *ir.Value) *ir.Value {
	if y == nil {
		return x
	}
	return n.Call("add", []*ir.Value{x, y})
}

// LastSize returns the size of the last axis of a value, which must be known.
func (n *Node) LastSize(v *ir.Value) (int64, bool) {
	if sh := v.Type.Shape; sh != nil && sh.Rank() > 0 {
		if size, ok := sh.Dim(sh.Rank() - 1).Size(); ok {
			return int64(size), true
		}
	}
	n.Unsupported("an operand of %s, whose last size is not known at load", v.Type)
	return 0, false
}

// WantDivides ends the node unless size is made of so many equal parts.
func (n *Node) WantDivides(what string, size, parts int64) bool {
	if parts < 1 || size%parts != 0 {
		n.Fail("%s: got %d, want a multiple of %d: %w", what, size, parts, shape.ErrShape)
		return false
	}
	return true
}

// ShapeOf returns the shape of a value as an operand: a constant if it is
// known, and a call otherwise.
func (n *Node) ShapeOf(v *ir.Value) *ir.Value {
	if v == nil || !v.Type.IsStatic() {
		return n.Call("shape", []*ir.Value{v})
	}
	sizes := make([]int64, v.Type.Shape.Rank())
	for i, size := range v.Type.Shape.Sizes() {
		sizes[i] = int64(size)
	}
	return n.Ints(sizes)
}
