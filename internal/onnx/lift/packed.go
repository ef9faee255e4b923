package lift

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// MaxElementRank bounds the rank of the elements of a packed sequence.
const MaxElementRank = 8

// TableWidth is how many numbers the table of a packed sequence has for each
// element: the rank, the sizes, and ones up to MaxElementRank sizes.
const TableWidth = 1 + MaxElementRank

// Packed is a sequence whose length is not known at load, as values of the
// program. Elements may differ in shape and rank. An optional tensor is a
// sequence of at most one element; an optional sequence has a flag beside it.
type Packed struct {
	Data  *ir.Value // T[n]: all elements, each in row-major order
	Table *ir.Value // i64[length, TableWidth]: a row for each element
	Has   *ir.Value // bool[]: an optional sequence has its sequence; nil if the type is no optional sequence
	One   bool      // an optional tensor

	rank         *rank
	scope        *Scope    // whose block has Data and Table
	counts, ends *ir.Value // i64[length]: how many numbers of Data an element takes, and where it ends; nil before they are needed
}

// Parts returns the values that the sequence consists of.
func (p *Packed) Parts() []*ir.Value {
	if p.Has != nil {
		return []*ir.Value{p.Data, p.Table, p.Has}
	}
	return []*ir.Value{p.Data, p.Table}
}

// NewPacked returns a sequence of values that the node has emitted, whose
// elements have the given rank.
func (n *Node) NewPacked(data, table *ir.Value, elements int) *Packed {
	return &Packed{Data: data, Table: table, rank: &rank{n: elements, known: true}, scope: n.Scope}
}

// Rank returns the rank of the elements, false if it is not known at load.
func (p *Packed) Rank() (int, bool) { return p.rank.value() }

// with returns a sequence of other parts, as an operator or a nested graph
// returns it, whose elements have the same rank.
func (p *Packed) with(s *Scope, parts []*ir.Value) *Packed {
	q := &Packed{Data: parts[0], Table: parts[1], One: p.One, rank: p.rank, scope: s}
	if len(parts) > 2 {
		q.Has = parts[2]
	}
	return q
}

// Required returns the sequence of an optional one, with another table.
func (n *Node) Required(p *Packed, table *ir.Value) *Packed {
	return &Packed{Data: p.Data, Table: table, rank: p.rank, scope: n.Scope}
}

// rank is the rank of the elements of all sequences that may be the same one:
// the states of a loop, or the results of both branches of an If. Import finds
// it while elements are inserted.
type rank struct {
	same  *rank // set: this one was joined with another
	n     int
	known bool
	mixed bool // elements differ in rank, or have one that is not known at load
	read  bool // calls were emitted for the known rank
}

func (r *rank) root() *rank {
	for r.same != nil {
		r = r.same
	}
	return r
}

// add says that sequences have elements of this type.
func (r *rank) add(n *Node, t op.Type) {
	r = r.root()
	switch {
	case t.Shape == nil, r.known && r.n != t.Shape.Rank():
		r.mixed = true
	default:
		r.n, r.known = t.Shape.Rank(), true
	}
	r.check(n)
}

// join says that both are the rank of the same sequences.
func (r *rank) join(n *Node, o *rank) {
	if r, o = r.root(), o.root(); r == o {
		return
	}
	r.mixed = r.mixed || o.mixed || r.known && o.known && r.n != o.n
	r.read = r.read || o.read
	if o.known {
		r.n, r.known = o.n, true
	}
	o.same = r
	r.check(n)
}

func (r *rank) check(n *Node) {
	if r.mixed && r.read {
		n.Unsupported("a sequence of tensors whose ranks differ, after one of them was read")
	}
}

// value returns the rank, false if it is not known at load.
func (r *rank) value() (int, bool) {
	r = r.root()
	if !r.known || r.mixed {
		return 0, false
	}
	r.read = true
	return r.n, true
}

// in returns a node that emits calls into the block of another scope, which is
// that of n or one around it.
func (n *Node) in(s *Scope) *Node {
	if s == nil || s == n.Scope {
		return n
	}
	return &Node{Scope: s, Name: n.Name, Proto: n.Proto, Err: n.Err}
}

// Pack returns the values of the program that a list consists of. If its
// elements are of unknown type because something is not supported, the node has
// ended.
func (n *Node) Pack(l *List) *Packed {
	if l.Packed != nil {
		return l.Packed
	}
	m := n.in(l.scope)
	p := m.pack(l)
	if n.Err = m.Err; n.Err != nil || p == nil {
		n.GiveUp()
		return nil
	}
	if l.scope != nil && !l.Absent {
		l.Packed = p // elements stay in Items too
	}
	return p
}

func (n *Node) pack(l *List) *Packed {
	p := &Packed{rank: &rank{}, scope: n.Scope}
	var data, rows []*ir.Value
	text := l.Text
	for i, x := range l.Items {
		switch {
		case x.Type.IsZero():
			return nil
		case x.Type.DType != l.Items[0].Type.DType || n.IsText[x] != n.IsText[l.Items[0]]:
			n.Fail("sequence: got elements of %s and %s, want one element type: %w", l.Items[0].Type, l.Items[i].Type, dtype.ErrDType)
		}
		text = n.IsText[x]
		data, rows = append(data, n.flat(x)), append(rows, n.row(x))
		p.rank.add(n, x.Type)
	}
	if len(l.Items) == 0 {
		if l.DType == dtype.Invalid {
			n.Unsupported("an optional or sequence without an element, of a type that is not known at load")
			return nil
		}
		t := op.Type{DType: l.DType, Shape: shape.MustOf(0)}
		data = append(data, n.Constant("empty "+t.String(), t, nil))
		t = op.Type{DType: dtype.I64, Shape: shape.MustOf(0, TableWidth)}
		rows = append(rows, n.Constant("empty "+t.String(), t, nil))
	}
	p.Data, p.Table = n.joined(data), n.joined(rows)
	if text && p.Data != nil {
		n.IsText[p.Data] = true
	}
	return p
}

// joined concatenates values along their first axis.
func (n *Node) joined(list []*ir.Value) *ir.Value {
	if len(list) == 1 || n.Err != nil {
		return list[0]
	}
	return n.Call("concat", list, IntAttr("axis", 0))
}

// flat returns the elements of x as a list.
func (n *Node) flat(x *ir.Value) *ir.Value {
	return n.Call("reshape", []*ir.Value{x, n.Ints([]int64{-1})})
}

// row returns the row of the table for x.
func (n *Node) row(x *ir.Value) *ir.Value {
	if sh := x.Type.Shape; sh != nil && sh.Rank() > MaxElementRank {
		n.Unsupported("an element of rank %d in a sequence, want at most %d", sh.Rank(), MaxElementRank)
	}
	if n.Err != nil {
		return nil
	}
	ones := make([]int64, MaxElementRank)
	for i := range ones {
		ones[i] = 1
	}
	sizes := n.ShapeOf(x)
	var length *ir.Value
	if x.Type.Shape != nil {
		rank := x.Type.Shape.Rank()
		length, ones = n.Ints([]int64{int64(rank)}), ones[rank:]
	} else {
		length = n.Call("shape", []*ir.Value{sizes})
	}
	all := []*ir.Value{length, sizes}
	if len(ones) > 0 {
		all = append(all, n.Ints(ones))
	}
	row := n.Call("concat", all, IntAttr("axis", 0))
	if x.Type.Shape == nil {
		row = n.slice(row, n.Ints([]int64{0}), n.Ints([]int64{TableWidth}), 0)
	}
	return n.Call("unsqueeze", []*ir.Value{row, n.Ints([]int64{0})})
}

// slice returns the part of x from one position to another, i64[1], along an
// axis.
func (n *Node) slice(x, from, to *ir.Value, axis int64) *ir.Value {
	return n.Call("slice", []*ir.Value{x, from, to, n.Ints([]int64{axis})})
}

// rest returns the part of x along its first axis from a position, i64[1], on.
func (n *Node) rest(x, from *ir.Value) *ir.Value {
	return n.slice(x, from, n.Ints([]int64{math.MaxInt64}), 0)
}

// measure emits the counts and ends of a sequence, once.
func (n *Node) measure(p *Packed) {
	if p.ends != nil || n.Err != nil {
		return
	}
	m := n.in(p.scope)
	sizes := m.slice(p.Table, m.Ints([]int64{1}), m.Ints([]int64{TableWidth}), 1)
	p.counts = m.Call("reduce_prod", []*ir.Value{sizes, m.Ints([]int64{1})}, IntAttr("keepdims", 0))
	p.ends = m.Call("cum_sum", []*ir.Value{p.counts, m.Scalar(dtype.I64, 0)})
	n.Err = m.Err
}

// number returns an integer operand of one element as i64 of the given shape.
func (n *Node) number(v *ir.Value, dims ...int64) *ir.Value {
	if v.Type.DType != dtype.I64 {
		v = n.Call("cast", []*ir.Value{v}, op.Attr{Name: "to", Value: dtype.I64})
	}
	if n.Err == nil && (v.Type.Shape == nil || v.Type.Shape.Rank() != len(dims)) {
		v = n.Call("reshape", []*ir.Value{v, n.Ints(append([]int64{}, dims...))})
	}
	return v
}

// Length returns how many elements a sequence has, as i64[].
func (n *Node) Length(p *Packed) *ir.Value {
	return n.Call("gather", []*ir.Value{n.Call("shape", []*ir.Value{p.Table}), n.Scalar(dtype.I64, 0)})
}

// ElementAt returns the element at a position, which counts from the end where
// it is negative. A run in which there is none fails.
func (n *Node) ElementAt(p *Packed, at *ir.Value) *ir.Value {
	n.measure(p)
	at = n.number(at)
	row := n.Call("gather", []*ir.Value{p.Table, at})
	one := n.number(at, 1)
	end := n.Call("gather", []*ir.Value{p.ends, one})
	start := n.Call("sub", []*ir.Value{end, n.Call("gather", []*ir.Value{p.counts, one})})
	x := n.Call("reshape", []*ir.Value{n.slice(p.Data, start, end, 0), n.sizesOf(p, row)}, IntAttr("allowzero", 1))
	if n.Err == nil && n.IsText[p.Data] {
		n.IsText[x] = true
	}
	return x
}

// sizesOf returns the sizes that a row of the table has.
func (n *Node) sizesOf(p *Packed, row *ir.Value) *ir.Value {
	first := n.Ints([]int64{1})
	if rank, known := p.rank.value(); known {
		return n.slice(row, first, n.Ints([]int64{int64(1 + rank)}), 0)
	}
	rank := n.slice(row, n.Ints([]int64{0}), first, 0)
	return n.slice(row, first, n.Call("add", []*ir.Value{rank, first}), 0)
}

// fromStart returns a position, which counts from the end where it is negative,
// counted from the start, as i64[1]. One that is before the start becomes one
// behind the end, which gather refuses.
func (n *Node) fromStart(p *Packed, at *ir.Value) *ir.Value {
	zero := n.Ints([]int64{0})
	at = n.number(at, 1)
	length := n.number(n.Length(p), 1)
	back := n.Call("add", []*ir.Value{at, length})
	none := n.Call("add", []*ir.Value{length, n.Ints([]int64{1})})
	back = n.Call("where", []*ir.Value{n.Call("less", []*ir.Value{back, zero}), none, back})
	return n.Call("where", []*ir.Value{n.Call("less", []*ir.Value{at, zero}), back, at})
}

// Inserted returns a sequence with x inserted at a position, nil for the end.
func (n *Node) Inserted(p *Packed, x, at *ir.Value) *Packed {
	if x.Type.DType != p.Data.Type.DType || n.IsText[x] != n.IsText[p.Data] {
		n.Fail("got %s for a sequence of %s, want one element type: %w", TypeText(x.Type, n.IsText[x]), p.Data.Type.DType, dtype.ErrDType)
		return nil
	}
	p.rank.root().add(n, x.Type)
	data, table := n.flat(x), n.row(x)
	if at == nil {
		data, table = n.joined([]*ir.Value{p.Data, data}), n.joined([]*ir.Value{p.Table, table})
	} else {
		n.measure(p)
		at = n.fromStart(p, at)
		zero := n.Ints([]int64{0})
		starts := n.Call("concat", []*ir.Value{zero, p.ends}, IntAttr("axis", 0))
		offset := n.Call("gather", []*ir.Value{starts, at})
		data = n.joined([]*ir.Value{n.slice(p.Data, zero, offset, 0), data, n.rest(p.Data, offset)})
		table = n.joined([]*ir.Value{n.slice(p.Table, zero, at, 0), table, n.rest(p.Table, at)})
	}
	return n.changed(p, data, table)
}

// Erased returns a sequence without the element at a position.
func (n *Node) Erased(p *Packed, at *ir.Value) *Packed {
	n.measure(p)
	at = n.fromStart(p, at)
	zero := n.Ints([]int64{0})
	end := n.Call("gather", []*ir.Value{p.ends, at})
	start := n.Call("sub", []*ir.Value{end, n.Call("gather", []*ir.Value{p.counts, at})})
	next := n.Call("add", []*ir.Value{at, n.Ints([]int64{1})})
	data := n.joined([]*ir.Value{n.slice(p.Data, zero, start, 0), n.rest(p.Data, end)})
	table := n.joined([]*ir.Value{n.slice(p.Table, zero, at, 0), n.rest(p.Table, next)})
	return n.changed(p, data, table)
}

func (n *Node) changed(p *Packed, data, table *ir.Value) *Packed {
	if n.Err != nil {
		return nil
	}
	if n.IsText[p.Data] {
		n.IsText[data] = true
	}
	return &Packed{Data: data, Table: table, rank: p.rank, scope: n.Scope}
}
