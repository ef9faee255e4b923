package states

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
)

// A stacked state is the caches of several layers, or of keys and values, in
// one tensor. The program selects its parts, appends rows to each, and joins
// them again. Selections of the buffer are views of it and stay as they are, so
// rows are written into each part, and the join finds every part in its place.

// part is a value that the program selects of a state.
type part struct {
	state int
	axis  int // along which rows are appended, in the part
}

// isStacked reports whether an output joins the parts of the input of state i,
// to each of which rows are appended, and notes the calls.
func (r *rewriter) isStacked(i int, in, out *ir.Value) bool {
	if in.Type.Shape == nil || out.Type.Shape == nil || out.Type.Shape.Rank() != in.Type.Shape.Rank() || r.uses[out] != 1 {
		return false
	}
	appends, joins, ok := r.partsOf(out, nil, nil)
	if !ok || len(joins) == 0 {
		return false
	}
	axis, found := -1, map[*ir.Value]part{}
	for _, c := range appends {
		at := axisOf(c, c.Results[0].Type.Shape.Rank())
		whole, ok := r.selected(in, c.Args[0].Value, at, part{i, at}, found)
		if !ok || axis >= 0 && whole != axis {
			return false
		}
		axis = whole
	}
	for k, d := range in.Type.Shape.Dims() {
		if k != axis && dimOf(out, k) != d {
			return false
		}
	}
	r.states[i].Kind, r.states[i].Axis = Appended, axis
	for _, c := range appends {
		r.at[c] = append(r.at[c], i)
	}
	for v, p := range found {
		r.buffers[v] = p
		if v.Def != nil {
			r.selections[v.Def] = true
		}
	}
	for _, c := range joins {
		r.joinsOf[c] = true
	}
	r.appends[i] = appends
	return true
}

// partsOf lists the calls that append rows to parts of what v joins, and those
// that join them.
func (r *rewriter) partsOf(v *ir.Value, appends, joins []*ir.Call) (_, _ []*ir.Call, ok bool) {
	c := v.Def
	if c == nil || v.Type.Shape == nil || !slices.Contains(r.program.Body.Calls, c) {
		return nil, nil, false
	}
	rank := v.Type.Shape.Rank()
	switch {
	case r.joins(c, rank) && c.Args[0].Value != c.Args[1].Value && r.isPart(c.Args[0].Value):
		return append(appends, c), joins, true
	case c.Op.Name == "unsqueeze", c.Op.Name == "concat":
		if r.uses[v] != 1 {
			return nil, nil, false
		}
		operands := c.Args
		if c.Op.Name == "unsqueeze" {
			operands = c.Args[:1]
		}
		for _, a := range operands {
			if appends, joins, ok = r.partsOf(a.Value, appends, joins); !ok {
				return nil, nil, false
			}
		}
		return appends, append(joins, c), true
	}
	return nil, nil, false
}

// isPart reports whether a value is selected of an input.
func (r *rewriter) isPart(v *ir.Value) bool {
	for v.Def != nil && isSelection(v.Def) {
		v = v.Def.Args[0].Value
	}
	return slices.Contains(r.program.Body.Params, v)
}

func isSelection(c *ir.Call) bool {
	return slices.Contains([]string{"gather", "slice", "split", "squeeze"}, c.Op.Name)
}

// selected finds out whether v is a part of an input: rows at the axis in v are
// rows of the input along the axis that it returns. It notes the parts between.
func (r *rewriter) selected(in, v *ir.Value, axis int, p part, found map[*ir.Value]part) (whole int, ok bool) {
	if v == in {
		found[v] = p
		return axis, true
	}
	c := v.Def
	if c == nil || !isSelection(c) || c.Args[0].Value.Type.Shape == nil {
		return 0, false
	}
	from := c.Args[0].Value
	rank := from.Type.Shape.Rank()
	up := axis
	switch c.Op.Name {
	case "gather":
		at, index := axisOf(c, rank), c.Args[1].Value
		if index.Type.Shape == nil || index.Type.Shape.Rank() != 0 {
			return 0, false
		}
		if _, known := r.numbers(index); !known {
			return 0, false
		}
		if up >= at {
			up++
		}
	case "split":
		if axisOf(c, rank) == axis {
			return 0, false
		}
	case "slice":
		if !r.leaves(c, axis, rank) {
			return 0, false
		}
	case "squeeze":
		if up, ok = r.unsqueezed(c, axis, rank); !ok {
			return 0, false
		}
	}
	found[v] = p
	return r.selected(in, from, up, part{p.state, up}, found)
}

// leaves reports whether a slice takes all of an axis.
func (r *rewriter) leaves(c *ir.Call, axis, rank int) bool {
	if len(c.Args) < 4 || c.Args[3].Value == nil {
		return false
	}
	axes, ok := r.numbers(c.Args[3].Value)
	for _, a := range axes {
		if a == int64(axis) || a+int64(rank) == int64(axis) {
			return false
		}
	}
	return ok
}

// unsqueezed returns the axis that an axis of the result of squeeze has in the
// operand.
func (r *rewriter) unsqueezed(c *ir.Call, axis, rank int) (int, bool) {
	if len(c.Args) < 2 || c.Args[1].Value == nil {
		return 0, false
	}
	axes, ok := r.numbers(c.Args[1].Value)
	for i := range axes {
		if axes[i] < 0 {
			axes[i] += int64(rank)
		}
	}
	slices.Sort(axes)
	for _, a := range axes {
		if int64(axis) >= a {
			axis++
		}
	}
	return axis, ok
}

// joinPart writes the rows that a call of concat appends to a part of state i
// into the part. The call that joins the parts takes it.
func (r *rewriter) joinPart(c *ir.Call, i int) {
	out, buffer, rows := c.Results[0], c.Args[0].Value, c.Args[1].Value
	axis := r.buffers[buffer].axis
	r.joined[out] = r.appendTo(i, out.Name, buffer, axis, rows, dimOf(rows, axis))
	r.view(i, axis, out, r.joined[out], rows)
}
