package pass

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Unstack takes values apart where they lie. Queries, keys and values of one
// product are a stack: an axis of three, which exporters move to the front by a
// transpose of all three, or read by a gather for each.
//
//   - Elements of a transpose along an axis, by gathers of constant indices or
//     a split and squeezes, become elements of its operand, with a transpose of
//     each where the order of the other axes needs one: attention reads through
//     it. A squeeze between the two comes first.
//   - Gathers of the indices 0, 1, ... along an axis but the first one, which
//     are all that reads a value, become slices, which are boxes of it.
//   - A reshape that splits axes of a transpose, as samples and heads are, or
//     puts axes of size 1 beside them, comes before it, so that attention reads
//     through this, too.
//
// Requires: fold (indices and axes are constants). Guarantees: no transpose
// remains of which all readers are such elements; no more elements move.
//
// Left to other passes: gathers along the first axis (rows), transposes of
// nothing (views).
var Unstack = Pass{Name: "unstack", Doc: "take stacks of values apart where they lie", Run: unstack}

func unstack(ctx *Context) error {
	u := &unstacker{idiomFinder: newIdiomFinder(ctx), blocks: map[*ir.Call]*ir.Block{}}
	var calls []*ir.Call
	ctx.Program.Walk(func(b *ir.Block, c *ir.Call) {
		u.blocks[c] = b
		calls = append(calls, c)
	})
	for _, c := range calls {
		if err := u.lift(c); err != nil {
			return err
		}
		if err := u.exchange(c); err != nil {
			return err
		}
	}
	var stacks []*ir.Value
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		if c.Op.Name == "gather" && c.Args[0].Value.Kind != ir.Weight && !slices.Contains(stacks, c.Args[0].Value) {
			stacks = append(stacks, c.Args[0].Value)
		}
	})
	for _, v := range stacks {
		if err := u.slice(v); err != nil {
			return err
		}
	}
	return nil
}

type unstacker struct {
	*idiomFinder
	blocks map[*ir.Call]*ir.Block
}

// element is an element of a value along an axis, without this axis.
type element struct {
	takes *ir.Call // a gather of one index, or a split
	drops *ir.Call // the call whose result it is: the gather, or a squeeze
}

// elements returns the elements of v along one axis that are all that reads it:
// two or more.
func (u *unstacker) elements(v *ir.Value) (list []element, axis int) {
	readers := u.readers[v]
	if len(readers) != u.uses[v] || rank(v) < 2 {
		return nil, 0
	}
	for i, c := range readers {
		if c.Op.Name != "gather" && c.Op.Name != "split" {
			return nil, 0
		}
		at := int(attrsOf(c).Int("axis"))
		if at < 0 {
			at += rank(v)
		}
		if i > 0 && at != axis || c.Args[0].Value != v || c.Args[0].Donate || u.blocks[c] != u.blocks[readers[0]] {
			return nil, 0
		}
		axis = at
		if c.Op.Name == "gather" {
			if _, ok := u.ctx.oneIndex(c.Args[1].Value); !ok || rank(c.Args[1].Value) != 0 {
				return nil, 0
			}
			list = append(list, element{c, c})
			continue
		}
		for _, r := range c.Results {
			if r == nil {
				continue
			}
			drops := u.only(r, "squeeze")
			if drops == nil || !u.drops(drops, axis) || u.blocks[drops] != u.blocks[c] {
				return nil, 0
			}
			list = append(list, element{c, drops})
		}
	}
	if len(list) < 2 {
		return nil, 0
	}
	return list, axis
}

// drops reports whether a squeeze drops one axis alone, the given one.
func (u *unstacker) drops(c *ir.Call, axis int) bool {
	if len(c.Args) < 2 || c.Args[1].Value == nil {
		return false
	}
	n, ok := u.ctx.oneIndex(c.Args[1].Value)
	return ok && (n == int64(axis) || n == int64(axis-rank(c.Args[0].Value)))
}

// exchange makes elements of a transpose elements of its operand.
func (u *unstacker) exchange(c *ir.Call) error {
	if def(c.Results[0], "transpose") == nil || rank(c.Args[0].Value) < 3 {
		return nil
	}
	x, perm := c.Args[0].Value, permOf(c)
	t := c.Results[0]
	squeezed := u.only(t, "squeeze")
	dropped := -1
	if squeezed != nil {
		for axis := range perm {
			if u.drops(squeezed, axis) {
				dropped = axis
			}
		}
		if dropped < 0 || u.blocks[squeezed] != u.blocks[c] {
			return nil
		}
		t = squeezed.Results[0]
	}
	list, axis := u.elements(t)
	if list == nil || u.blocks[list[0].drops] != u.blocks[c] || len(perm) != rank(x) {
		return nil
	}
	if squeezed != nil {
		u.forget(squeezed)
		y, err := u.squeeze(squeezed, x, perm[dropped])
		if err != nil {
			return err
		}
		x, perm = y, without(perm, dropped)
	}
	for _, e := range list {
		if err := u.exchangeOne(e, x, perm, axis); err != nil {
			return err
		}
	}
	u.forget(c)
	return nil
}

// permOf returns the order of the axes of a transpose, nil if it is not valid.
func permOf(c *ir.Call) []int {
	perm, err := c.Sig(nil).Perm(rank(c.Args[0].Value))
	if err != nil {
		return nil
	}
	return perm
}

// without returns an order of axes without the one at a place of the result.
func without(perm []int, at int) []int {
	out := slices.Delete(slices.Clone(perm), at, at+1)
	for i, axis := range out {
		if axis > perm[at] {
			out[i]--
		}
	}
	return out
}

// squeeze makes a call that drops an axis of x, in front of another one.
func (u *unstacker) squeeze(before *ir.Call, x *ir.Value, axis int) (*ir.Value, error) {
	at, err := u.ctx.addInt(int64(axis))
	if err != nil {
		return nil, err
	}
	dims := x.Type.Shape.Dims()
	return u.insert(before, "squeeze", nil, before.Results[0], x, slices.Delete(dims, axis, axis+1), ir.Operand{Value: at})
}

// insert puts a call in front of another one, with a result that is named after
// like.
func (u *unstacker) insert(before *ir.Call, name string, attrs op.Attrs, like, x *ir.Value, dims []shape.Dim, more ...ir.Operand) (*ir.Value, error) {
	s, err := shape.FromDims(dims...)
	if err != nil {
		return nil, err
	}
	c := &ir.Call{Op: op.Builtin().Lookup(name), Node: before.Node, Attrs: attrs, Args: append([]ir.Operand{{Value: x}}, more...)}
	v := u.ctx.Program.NewValue(ir.Result, "", op.Type{DType: x.Type.DType, Shape: s})
	v.Name, v.Def, c.Results = fmt.Sprintf("%s.part%d", like.Name, v.ID), c, []*ir.Value{v}
	b := u.blocks[before]
	b.Calls = slices.Insert(b.Calls, slices.Index(b.Calls, before), c)
	u.blocks[c] = b
	u.uses[x]++
	u.readers[x] = append(u.readers[x], c)
	u.uses[v] = 0
	return v, nil
}

// exchangeOne makes an element along an axis of a transpose of x, in the given
// order, one of x.
func (u *unstacker) exchangeOne(e element, x *ir.Value, perm []int, axis int) error {
	from := perm[axis]
	order := without(perm, axis)
	if e.takes != e.drops {
		if err := u.exchangeSplit(e, x, perm, from); err != nil {
			return err
		}
	} else {
		u.read(e.takes, x)
		e.takes.Attrs = e.takes.Attrs.With("axis", int64(from))
	}
	if slices.IsSorted(order) {
		return nil
	}
	// The result of the element is that of a transpose behind it.
	y, c := e.drops.Results[0], e.drops
	dims := make([]shape.Dim, len(order))
	perm64 := make([]int64, len(order))
	for i, a := range order {
		dims[a], perm64[i] = y.Type.Shape.Dims()[i], int64(a)
	}
	s, err := shape.FromDims(dims...)
	if err != nil {
		return err
	}
	v := u.ctx.Program.NewValue(ir.Result, "", op.Type{DType: y.Type.DType, Shape: s})
	v.Name, v.Def, c.Results = fmt.Sprintf("%s.part%d", y.Name, v.ID), c, []*ir.Value{v}
	last := &ir.Call{Op: op.Builtin().Lookup("transpose"), Node: c.Node, Attrs: op.Attrs{{Name: "perm", Value: perm64}},
		Args: []ir.Operand{{Value: v}}, Results: []*ir.Value{y}}
	y.Def = last
	b := u.blocks[c]
	b.Calls = slices.Insert(b.Calls, slices.Index(b.Calls, c)+1, last)
	u.blocks[last], u.uses[v], u.readers[v] = b, 1, []*ir.Call{last}
	return nil
}

// exchangeSplit makes a split of a transpose of x one of x, and the squeeze of
// an element drop the same axis.
func (u *unstacker) exchangeSplit(e element, x *ir.Value, perm []int, axis int) error {
	if e.takes.Args[0].Value != x {
		u.read(e.takes, x)
		e.takes.Attrs = e.takes.Attrs.With("axis", int64(axis))
		for _, r := range e.takes.Results {
			if r == nil {
				continue
			}
			dims := make([]shape.Dim, len(perm))
			for i, a := range perm {
				dims[a] = r.Type.Shape.Dims()[i]
			}
			s, err := shape.FromDims(dims...)
			if err != nil {
				return err
			}
			r.Type.Shape = s
		}
	}
	at, err := u.ctx.addInt(int64(axis))
	if err != nil {
		return err
	}
	e.drops.Args[1].Value = at
	return nil
}

// forget notes that nothing needs a call any more.
func (u *unstacker) forget(c *ir.Call) {
	x := c.Args[0].Value
	u.uses[x]--
	u.readers[x] = slices.DeleteFunc(u.readers[x], func(r *ir.Call) bool { return r == c })
}

// read makes a call read x as its first operand.
func (u *unstacker) read(c *ir.Call, x *ir.Value) {
	u.forget(c)
	c.Args[0].Value = x
	u.uses[x]++
	u.readers[x] = append(u.readers[x], c)
}

// slice makes slices of gathers that read the elements 0, 1, ... of a value
// along an axis but the first one.
func (u *unstacker) slice(v *ir.Value) error {
	list, axis := u.elements(v)
	if list == nil || axis == 0 || axis >= rank(v) || list[0].takes != list[0].drops {
		return nil
	}
	var indices []int64
	for _, e := range list {
		n, _ := u.ctx.oneIndex(e.takes.Args[1].Value)
		indices = append(indices, n)
	}
	slices.Sort(indices)
	indices = slices.Compact(indices)
	if indices[0] != 0 || indices[len(indices)-1] != int64(len(indices)-1) || len(indices) < 2 {
		return nil
	}
	for _, e := range list {
		n, _ := u.ctx.oneIndex(e.takes.Args[1].Value)
		var args [3]*ir.Value
		for k, n := range []int64{n, n + 1, int64(axis)} {
			var err error
			if args[k], err = u.ctx.addInt(n); err != nil {
				return err
			}
		}
		dims := v.Type.Shape.Dims()
		dims[axis] = shape.N(1)
		part, err := u.insert(e.takes, "slice", nil, e.takes.Results[0], v, dims, ir.Operand{Value: args[0]}, ir.Operand{Value: args[1]}, ir.Operand{Value: args[2]})
		if err != nil {
			return err
		}
		e.takes.Op, e.takes.Attrs, e.takes.Args = op.Builtin().Lookup("squeeze"), nil, []ir.Operand{{Value: part}, {Value: args[2]}}
	}
	return nil
}
