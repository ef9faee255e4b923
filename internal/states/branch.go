package states

import (
	"maps"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Decoders that exporters merge are a branch of two regions: one that takes the
// states, for all runs but the first, and one without a past. Rows are appended
// in the first region, and computed in the second, where they become the first
// rows of the buffer. The keys and values of an encoder are computed in the
// second region and stay in the first.

// branch is all calls that choose between regions with a past and without.
type branch struct {
	cond   *ir.Value          // the input that chooses
	past   int                // the region with a past
	calls  map[*ir.Call][]int // the states that come out of each
	inside bool               // the calls of a region are rewritten
	added  []rowsAdded        // to states, in that region
}

// rowsAdded notes that a value of a region has rows of a state along an axis,
// n as far as it is known.
type rowsAdded struct {
	state int
	rows  *ir.Value
	axis  int
	n     shape.Dim
}

// isChosen reports whether state i comes out of a branch, where one region has
// a past, and notes what becomes of it.
func (r *rewriter) isChosen(i int, in, out *ir.Value) bool {
	c, s := out.Def, &r.states[i]
	cond := c.Args[0].Value
	switch {
	case !slices.Contains(r.program.Body.Params, cond) || cond.Type.DType != dtype.Bool:
		s.Why = "the condition of " + c.Where() + " is no input"
		return false
	case r.branch != nil && r.branch.cond != cond:
		s.Why = "the condition of " + c.Where() + " is not that of other states"
		return false
	case r.uses[out] != 1:
		s.Why = "the result of " + c.Where() + " is read by others"
		return false
	}
	for past, region := range c.Regions {
		if r.branch != nil && r.branch.past != past {
			continue
		}
		a, b := region.Results[out.Index], c.Regions[1-past].Results[out.Index]
		switch {
		case b == in || isEmpty(b):
			continue
		case a == in || isEmpty(a):
			s.Kind = Held
		case !slices.Contains(region.Calls, a.Def) || !r.isAppended(i, in, a):
			continue
		}
		if r.branch == nil {
			r.branch = &branch{cond: cond, past: past, calls: map[*ir.Call][]int{}}
		}
		r.branch.calls[c] = append(r.branch.calls[c], i)
		r.returned[i] = slot{region, out.Index}
		return true
	}
	return false
}

// isEmpty reports whether a value is known to have no elements.
func isEmpty(v *ir.Value) bool {
	if v.Type.Shape == nil {
		return false
	}
	for _, d := range v.Type.Shape.Dims() {
		if n, ok := d.Size(); ok && n == 0 {
			return true
		}
	}
	return false
}

// settleBranch drops the branch if rows are appended to no state in it: then
// there is no length that chooses.
func (r *rewriter) settleBranch() {
	if r.branch == nil {
		return
	}
	appends := false
	for c, list := range r.branch.calls {
		r.branch.calls[c] = slices.DeleteFunc(list, func(i int) bool { return r.states[i].Kind == Replaced })
		for _, i := range r.branch.calls[c] {
			appends = appends || r.states[i].Kind == Appended
		}
	}
	if appends {
		return
	}
	r.branch = nil
	for i := range r.states {
		if s := &r.states[i]; s.Kind == Held {
			if s.Kind = Replaced; r.isSame(r.program.Body.Params[s.Input], r.program.Body.Results[s.Output]) {
				s.Kind = Same
				continue
			}
			s.Why = "a branch returns it, to which no rows are appended"
		}
	}
}

// choose rewrites the regions of a call of the branch.
func (r *rewriter) choose(c *ir.Call) {
	b := r.branch
	var added [2][]rowsAdded
	for k, region := range c.Regions {
		calls, next := r.calls, maps.Clone(r.next)
		r.calls, b.added, b.inside = nil, nil, true
		for _, inner := range region.Calls {
			r.rewriteCall(inner)
		}
		for at, v := range region.Results {
			region.Results[at] = r.past(v)
		}
		r.node = c.Node
		for _, i := range b.calls[c] {
			r.returnState(i, region, k == b.past)
		}
		region.Calls, added[k] = r.calls, b.added
		r.calls, r.next, b.inside = calls, next, false
	}
	r.calls = append(r.calls, c)
	for _, x := range added[b.past] {
		r.returnRows(c, x, added[1-b.past])
	}
}

// returnState makes a region return the next value of a state.
func (r *rewriter) returnState(i int, region *ir.Block, past bool) {
	s := &r.states[i]
	in, at := r.program.Body.Params[s.Input], slot{region, r.returned[i].index}
	switch {
	case s.Kind == Appended && !past:
		rows := at.value()
		at.set(r.appended(i, rows, dimOf(rows, s.Axis)))
	case s.Kind == Held && at.value() == in:
		none := r.ints(&r.calls, 0)
		at.set(r.emit(&r.calls, in.Name+".none", "slice", nil, in, none, none, none))
	}
}

// returnRows makes a branch return how many rows are added in its region with a
// past, and in the other one, as the size of a result without elements.
func (r *rewriter) returnRows(c *ir.Call, x rowsAdded, others []rowsAdded) {
	k := slices.IndexFunc(others, func(y rowsAdded) bool { return y.state == x.state })
	if k < 0 {
		return // no row of the state is read there
	}
	n := x.n
	if others[k].n != n {
		n = shape.Unknown
	}
	if n != shape.Unknown && slices.Contains(r.groups[r.states[x.state].Group].dims, n) {
		return
	}
	var each [2]rowsAdded
	each[r.branch.past], each[1-r.branch.past] = x, others[k]
	for k, y := range each {
		region := c.Regions[k]
		to := &region.Calls
		size := r.emit(to, "states.added.size", "shape", span(y.axis), y.rows)
		list := r.emit(to, "states.added.list", "concat", op.Attrs{{Name: "axis", Value: int64(0)}}, size, r.ints(to, 0))
		rows := r.emit(to, "states.added.rows", "constant_of_shape", op.Attrs{{Name: "dtype", Value: dtype.U8}}, list)
		region.Results = append(region.Results, rows)
	}
	v := r.program.NewValue(ir.Result, r.free("states.added.rows"), op.Type{})
	v.Def, v.Index = c, len(c.Results)
	c.Results = append(c.Results, v)
	if c.Writes != nil {
		c.Writes = append(c.Writes, nil)
	}
	r.addRows(x.state, v, 0, n)
}
