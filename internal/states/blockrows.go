package states

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Calls other than attention read the rows of pools as the program has them:
// gathered out of the blocks, where all sequences of a run have as many. They
// stand at the end of the result of block_gather, so that those of the run
// follow them without a gap.

// partsOfRow returns the sizes of the axes before and behind the axis of rows,
// multiplied: those of heads and of a row in a pool.
func partsOfRow(s *shape.Shape, axis int) (heads, size int) {
	heads, size = 1, 1
	for i, d := range s.Dims() {
		switch n, _ := d.Size(); {
		case i > 0 && i < axis:
			heads *= n
		case i > axis:
			size *= n
		}
	}
	return heads, size
}

// isPoolLike reports whether state i has the axes of its pool, [batch, heads,
// rows, size].
func (b *blocks) isPoolLike(i int) bool {
	s := &b.states[i]
	return s.Axis == 2 && b.program.Body.Params[s.Input].Type.Shape.Rank() == 4
}

// inPool returns rows of state i with the axes of its pool.
func (b *blocks) inPool(i int, rows *ir.Value) *ir.Value {
	if b.isPoolLike(i) {
		return rows
	}
	axis := b.states[i].Axis
	heads, size := partsOfRow(b.program.Body.Params[b.states[i].Input].Type.Shape, axis)
	list := b.list(&b.calls, rows.Name+".sizes", b.emit(&b.calls, rows.Name+".batch", "shape", span(0), rows), b.ints(&b.calls, int64(heads)),
		b.emit(&b.calls, rows.Name+".count", "shape", span(axis), rows), b.ints(&b.calls, int64(size)))
	return b.emit(&b.calls, rows.Name+".rows", "reshape", op.Attrs{{Name: "allowzero", Value: int64(1)}}, rows, list)
}

// list joins lists of sizes.
func (b *blocks) list(to *[]*ir.Call, name string, lists ...*ir.Value) *ir.Value {
	return b.emit(to, name, "concat", op.Attrs{{Name: "axis", Value: int64(0)}}, lists...)
}

// sizesWith lists the sizes that state i has with a number of rows, which is a
// list of one size.
func (b *blocks) sizesWith(to *[]*ir.Call, i int, rows *ir.Value) *ir.Value {
	v := b.program.Body.Params[b.states[i].Input]
	lists := []*ir.Value{b.emit(to, v.Name+".batch", "shape", span(0), b.table)}
	for axis := 1; axis < v.Type.Shape.Rank(); axis++ {
		if axis == b.states[i].Axis {
			lists = append(lists, rows)
			continue
		}
		n, _ := dimOf(v, axis).Size()
		lists = append(lists, b.ints(to, int64(n)))
	}
	return b.list(to, v.Name+".sizes", lists...)
}

// isJoined reports whether a value is the rows of an appended state before or
// after the run, which its calls read.
func (b *blocks) isJoined(v *ir.Value) bool {
	i, after := b.present[v]
	if !after {
		i = b.stateOf(v)
	}
	return i >= 0 && b.states[i].Kind == Appended
}

// readRows makes a call, and those in its regions, read rows that are gathered.
// They are gathered before call outer of the program.
func (b *blocks) readRows(c, outer *ir.Call) {
	for i, a := range c.Args {
		if a.Value != nil && b.isJoined(a.Value) {
			c.Args[i].Value = b.rows(a.Value, outer)
		}
	}
	for _, region := range c.Regions {
		for _, inner := range region.Calls {
			b.readRows(inner, outer)
		}
		for i, v := range region.Results {
			if b.isJoined(v) {
				region.Results[i] = b.rows(v, outer)
			}
		}
	}
}

// rows gathers the rows that a state has before or after the run, for a call
// that reads them all.
func (b *blocks) rows(v *ir.Value, reader *ir.Call) *ir.Value {
	if known := b.gathered[v]; known != nil {
		return known
	}
	b.sayEven(reader, "reads all rows of the past")
	i, after := b.present[v]
	if !after {
		i = b.stateOf(v)
	}
	s, name := &b.states[i], v.Name+".all"
	pool, length, rows := b.program.Body.Params[s.Input], b.group.length, b.rowsOf(b.group)
	like := b.program.Body.Params[b.group.Sizes]
	if next := b.program.Body.Results[s.Output]; after || b.isEmitted(next) {
		pool = next // no call reads the pool of before behind the one that writes into it
	}
	if after {
		length = b.emit(&b.calls, name+".length", "add", nil, length, b.added)
		rows = b.emit(&b.calls, name+".rows", "add", nil, rows, b.added)
		like = b.likeAfter(name)
	}
	all := b.emit(&b.calls, name, "block_gather", op.Attrs{{Name: "align_end", Value: int64(1)}}, pool, b.table, length, like)
	if !b.isPoolLike(i) {
		all = b.emit(&b.calls, name+".rows", "reshape", op.Attrs{{Name: "allowzero", Value: int64(1)}}, all, b.sizesWith(&b.calls, i, rows))
	}
	b.gathered[v] = all
	return all
}

// likeAfter returns a value whose first size is how many rows the longest
// sequence has after the run, without elements.
func (b *blocks) likeAfter(name string) *ir.Value {
	rows := b.emit(&b.calls, name+".end", "add", nil, b.rowsOf(b.group), b.added)
	return b.emit(&b.calls, name+".like", "constant_of_shape", op.Attrs{{Name: "dtype", Value: dtype.U8}}, b.list(&b.calls, name+".sizes", rows, b.ints(&b.calls, 0)))
}

// isEmitted reports whether the call that computes a value is among those of
// the new body.
func (b *blocks) isEmitted(v *ir.Value) bool {
	for _, c := range b.calls {
		if c == v.Def {
			return true
		}
	}
	return false
}
