package states

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// rewriter is a program under way.
type rewriter struct {
	program             *ir.Program
	states              []State
	groups              []*group
	byKey               map[groupKey]int
	at                  map[*ir.Call][]int      // the states to which a call appends
	returned            []slot                  // of each state: where its next value is returned
	branch              *branch                 // nil for none
	buffers             map[*ir.Value]part      // the inputs of Appended states, and what is selected of them
	selections, joinsOf map[*ir.Call]bool       // the calls that select parts of stacked states, and that join them
	appends             map[int][]*ir.Call      // of a stacked state, the calls that append to its parts
	joined              map[*ir.Value]*ir.Value // the buffers of parts, by what they are in the program
	next                map[*ir.Value]*ir.Value // the buffer of an input or part with the rows of the run, once they are written
	windows             map[*ir.Value]window    // by the output
	uses                map[*ir.Value]int
	known               func(*ir.Value) ([]byte, bool)
	names               map[string]bool
	capacity            string // the name of the dimension of buffers

	first, calls []*ir.Call // of the new body: those of parameters alone, and the others
	node         string     // of the calls that are emitted
	err          error
}

// groupKey is what states of one group have in common.
type groupKey struct {
	rows    shape.Dim // the dimension of the input along the axis
	added   shape.Dim // the rows of a run, where rows is not known
	written bool
}

// group is a Group under way.
type group struct {
	Group
	length *ir.Value // the input
	rows   *ir.Value // the rows as a list of one size, nil before it is needed
	dim    shape.Dim

	// What a run adds, as lists of one size: all must be the same in a run.
	// dims has them as far as they are known.
	added []*ir.Value
	dims  []shape.Dim

	columns []*ir.Value // of masks, as lists of one size
	masks   []*ir.Value
}

// rewrite makes the new body.
func (r *rewriter) rewrite() error {
	r.capacity = r.freeSymbol("capacity")
	for i := range r.states {
		s := &r.states[i]
		if s.Kind != Appended && s.Kind != Written {
			continue
		}
		in := r.program.Body.Params[s.Input]
		key := groupKey{rows: in.Type.Shape.Dim(s.Axis), written: s.Kind == Written}
		if key.rows == shape.Unknown {
			key.added = r.addedTo(i)
		}
		at, ok := r.byKey[key]
		if !ok {
			at = len(r.groups)
			r.byKey[key] = at
			r.groups = append(r.groups, r.newGroup(key))
		}
		s.Group = at
		if s.Kind == Appended {
			r.buffers[in] = part{i, s.Axis}
			r.setCapacity(in, s.Axis)
		}
	}
	for _, c := range r.program.Body.Calls {
		r.rewriteCall(c)
	}
	for i, v := range r.program.Body.Results {
		if _, ok := r.buffers[v]; ok && v.Def != nil {
			r.program.Body.Results[i] = r.past(v)
		} else if ok {
			return fmt.Errorf("state %s is returned as it came", v)
		}
	}
	for _, g := range r.groups {
		r.sayRows(g)
	}
	r.program.Body.Calls = slices.Concat(r.first, r.calls)
	return r.err
}

// rewriteCall adds to the calls what a call of the program becomes.
func (r *rewriter) rewriteCall(c *ir.Call) {
	list, ours := r.at[c]
	r.node = c.Node
	switch {
	case r.branch != nil && r.branch.calls[c] != nil:
		r.choose(c)
	case r.selections[c]:
		r.calls = append(r.calls, c)
	case r.joinsOf[c]:
		for i, a := range c.Args {
			if v := r.joined[a.Value]; v != nil {
				c.Args[i].Value = v
			}
		}
		r.calls = append(r.calls, c)
	case !ours:
		r.readPast(c, -1)
		r.calls = append(r.calls, c)
	case r.states[list[0]].Kind == Same:
		r.roll(c.Results[0], list[0])
	case r.appends[list[0]] != nil:
		r.readPast(c, 0)
		r.joinPart(c, list[0])
	case c.Op.Name == "concat":
		r.readPast(c, 0)
		r.join(c, list[0])
	case c.Op.Name == "attention":
		r.readPast(c, 4, 5)
		r.attend(c, list)
	default:
		r.write(c, list[0])
	}
}

// slot is a result of a block: of the program, or of a region of a branch.
type slot struct {
	block *ir.Block
	index int
}

func (s slot) value() *ir.Value { return s.block.Results[s.index] }

// set makes a value the result.
func (s slot) set(v *ir.Value) { s.block.Results[s.index] = v }

// addedTo is the dimension of the rows that are added to a state.
func (r *rewriter) addedTo(i int) shape.Dim {
	if list := r.appends[i]; list != nil {
		rows := list[0].Args[1].Value
		return dimOf(rows, r.buffers[list[0].Args[0].Value].axis)
	}
	out := r.returned[i].value()
	from, axis := out.Def.Args[1].Value, r.states[i].Axis
	if out.Def.Op.Name == "attention" {
		if from = out.Def.Args[out.Index].Value; from.Type.Shape != nil && from.Type.Shape.Rank() == 3 {
			axis = 1
		}
	}
	return dimOf(from, axis)
}

// dimOf is a dimension of a value, as far as it is known.
func dimOf(v *ir.Value, axis int) shape.Dim {
	if v.Type.Shape == nil || axis >= v.Type.Shape.Rank() {
		return shape.Unknown
	}
	return v.Type.Shape.Dim(axis)
}

// newGroup makes the inputs of a group.
func (r *rewriter) newGroup(key groupKey) *group {
	g := &group{Group: Group{Length: -1, Sizes: -1, Rows: -1}, dim: key.rows}
	if !key.written {
		g.length, g.Length = r.param("states.length", dtype.I64, shape.N(1))
	}
	return g
}

// param adds an input.
func (r *rewriter) param(name string, dt dtype.DType, dims ...shape.Dim) (*ir.Value, int) {
	s, err := shape.FromDims(dims...)
	if err != nil {
		r.fail(err)
	}
	v := r.program.NewValue(ir.Param, r.free(name), op.Type{DType: dt, Shape: s})
	v.Index = len(r.program.Body.Params)
	r.program.Body.Params = append(r.program.Body.Params, v)
	return v, v.Index
}

// rowsOf returns the rows of a group as a list of one size, which is known when
// the program is bound to types.
func (r *rewriter) rowsOf(g *group) *ir.Value {
	if g.rows == nil {
		var carrier *ir.Value
		carrier, g.Sizes = r.param("states.sizes", dtype.U8, g.dim, shape.N(0))
		g.rows = r.emit(&r.first, "states.sizes.rows", "shape", span(0), carrier)
	}
	return g.rows
}

// readPast makes a call, whose operands of the given numbers are left, read
// the rows of buffers in place of states.
func (r *rewriter) readPast(c *ir.Call, but ...int) {
	for i := range c.Args {
		if !slices.Contains(but, i) {
			c.Args[i].Value = r.past(c.Args[i].Value)
		}
	}
	for _, region := range c.Regions {
		for _, inner := range region.Calls {
			r.readPast(inner, -1)
		}
		for i, v := range region.Results {
			region.Results[i] = r.past(v)
		}
	}
}

// past returns the rows that a state has before the run, for the input of an
// Appended state; any other value is itself. Where the run's rows are already
// written, the buffer with them is read: then no call reads the input behind
// the one that writes, which can do so in place.
func (r *rewriter) past(v *ir.Value) *ir.Value {
	p, ok := r.buffers[v]
	if !ok || v == nil {
		return v
	}
	end, to := r.rowsOf(r.groups[r.states[p.state].Group]), &r.first
	if v.Def != nil {
		to = &r.calls
	}
	name := v.Name + ".past"
	if next := r.next[v]; next != nil {
		v, to = next, &r.calls
	}
	return r.emit(to, name, "slice", nil, v, r.ints(to, 0), end, r.ints(to, int64(p.axis)))
}

// join writes the rows that a call of concat appends into the buffer. The
// result of the call becomes the rows of the buffer that there are then.
func (r *rewriter) join(c *ir.Call, i int) {
	out := c.Results[0]
	next := r.appended(i, c.Args[1].Value, r.addedTo(i))
	r.returned[i].set(next)
	r.view(i, r.states[i].Axis, out, next, c.Args[1].Value)
}

// appended writes rows, of which n are added, into the buffer of state i, and
// returns it.
func (r *rewriter) appended(i int, rows *ir.Value, n shape.Dim) *ir.Value {
	s := &r.states[i]
	return r.appendTo(i, r.program.Body.Results[s.Output].Name, r.program.Body.Params[s.Input], s.Axis, rows, n)
}

// appendTo writes rows, of which n are added, into a buffer, which is that of
// state i or a part of it, and returns it, named after out.
func (r *rewriter) appendTo(i int, out string, buffer *ir.Value, axis int, rows *ir.Value, n shape.Dim) *ir.Value {
	length, name := r.groups[r.states[i].Group].length, out+".buffer"
	r.addRows(i, rows, axis, n)
	if axis > 0 {
		at := r.emit(&r.calls, buffer.Name+".at", "expand", nil, length, r.emit(&r.calls, buffer.Name+".batch", "shape", span(0), buffer))
		r.next[buffer] = r.scatter(name, axis, buffer, rows, at)
		return r.next[buffer]
	}
	// tensor_scatter has an index per element of the first axis.
	front := r.ints(&r.calls, 0)
	all := r.scatter(name+".sample", 1, r.emit(&r.calls, buffer.Name+".sample", "unsqueeze", nil, buffer, front),
		r.emit(&r.calls, rows.Name+".sample", "unsqueeze", nil, rows, front), length)
	r.next[buffer] = r.emit(&r.calls, name, "squeeze", nil, all, front)
	return r.next[buffer]
}

// scatter writes rows into a buffer along an axis but the first.
func (r *rewriter) scatter(name string, axis int, buffer, rows, at *ir.Value) *ir.Value {
	return r.emit(&r.calls, name, "tensor_scatter", op.Attrs{{Name: "axis", Value: int64(axis)}}, buffer, rows, at)
}

// view makes out the rows of the buffer that there are after the run, if a call
// or another output reads it.
func (r *rewriter) view(i, axis int, out, buffer, rows *ir.Value) {
	if r.uses[out] < 2 { // one is that of the output
		return
	}
	s := &r.states[i]
	added := r.emit(&r.calls, out.Name+".added", "shape", span(axis), rows)
	end := r.emit(&r.calls, out.Name+".end", "add", nil, r.rowsOf(r.groups[s.Group]), added)
	r.define(out, "slice", nil, buffer, r.ints(&r.calls, 0), end, r.ints(&r.calls, int64(axis)))
}

// setCapacity makes the buffer's size along the axis one of its own.
func (r *rewriter) setCapacity(buffer *ir.Value, axis int) {
	dims := buffer.Type.Shape.Dims()
	dims[axis] = shape.Sym(r.capacity)
	s, err := shape.FromDims(dims...)
	r.fail(err)
	buffer.Type.Shape = s
}

// addRows notes that a run adds as many rows to the group of state i as a value
// has along the axis, which is n as far as it is known.
func (r *rewriter) addRows(i int, rows *ir.Value, axis int, n shape.Dim) {
	if r.branch != nil && r.branch.inside {
		r.branch.added = append(r.branch.added, rowsAdded{i, rows, axis, n})
		return
	}
	g := r.groups[r.states[i].Group]
	if n != shape.Unknown && slices.Contains(g.dims, n) {
		return
	}
	g.dims = append(g.dims, n)
	g.added = append(g.added, r.emit(&r.calls, "states.added", "shape", span(axis), rows))
}

// sayRows makes the output of the group that says how many rows a run adds.
func (r *rewriter) sayRows(g *group) {
	sizes := slices.Concat(slices.Insert(slices.Clone(g.added), 1, r.ints(&r.calls, 0)), g.columns)
	list := r.emit(&r.calls, "states.added.list", "concat", op.Attrs{{Name: "axis", Value: int64(0)}}, sizes...)
	v := r.emit(&r.calls, "states.rows", "constant_of_shape", op.Attrs{{Name: "dtype", Value: dtype.U8}}, list)
	g.Rows = len(r.program.Body.Results)
	r.program.Body.Results = append(r.program.Body.Results, v)
}

// addColumns notes that a mask of a call has a column for each row that the
// group has after the run, or fewer, or as many as the buffer has rows.
func (r *rewriter) addColumns(g *group, c *ir.Call, mask *ir.Value) {
	if mask == nil || slices.Contains(g.masks, mask) || r.branch != nil && r.branch.inside {
		return
	}
	g.masks, g.Masks = append(g.masks, mask), append(g.Masks, c.Where())
	last := op.Attrs{{Name: "start", Value: int64(-1)}}
	g.columns = append(g.columns, r.emit(&r.calls, "states.columns", "shape", last, mask))
}

// attend makes a call of attention with past keys and values one that reads
// buffers, into which the new ones are written before.
func (r *rewriter) attend(c *ir.Call, list []int) {
	packed := c.Args[0].Value.Type.Shape.Rank() == 3
	args := []*ir.Value{r.heads(c.Args[0].Value, packed, c.Attrs.Int("q_num_heads", 0)), nil, nil, c.Args[3].Value, nil, nil, nil}
	var fresh *ir.Value // keys or values of the run
	for _, i := range list {
		result := r.returned[i].value().Index // 1 for keys, 2 for values: also the operand
		out, rows := c.Results[result], r.heads(c.Args[result].Value, packed, c.Attrs.Int("kv_num_heads", 0))
		fresh = rows
		args[result] = r.appended(i, rows, r.addedTo(i))
		r.returned[i].set(args[result])
		r.view(i, 2, out, args[result], rows)
	}
	g := r.groups[r.states[list[0]].Group]
	if looksAtPlaces(c) { // which are counted from the last key
		q := c.Args[0].Value
		r.addRows(list[0], args[0], 2, dimOf(q, q.Type.Shape.Rank()-2))
	}
	r.addColumns(g, c, args[3])
	added := r.emit(&r.calls, c.Results[0].Name+".added", "shape", span(2), fresh)
	batch := r.emit(&r.calls, c.Results[0].Name+".batch", "shape", span(0), args[0])
	args[6] = r.emit(&r.calls, c.Results[0].Name+".keys", "expand", nil, r.emit(&r.calls, c.Results[0].Name+".length", "add", nil, g.length, added), batch)
	if !packed {
		r.define(c.Results[0], "attention", c.Attrs, args...)
		return
	}
	y := r.emit(&r.calls, c.Results[0].Name+".heads", "attention", c.Attrs, args...)
	r.define(c.Results[0], "reshape", nil, r.packRows(c, y)...)
}

// packRows returns the operands of a reshape that makes [batch, length, heads *
// size], as result 0 of a call is, of y, [batch, heads, length, size].
func (r *rewriter) packRows(c *ir.Call, y *ir.Value) []*ir.Value {
	y = r.emit(&r.calls, c.Results[0].Name+".rows", "transpose", op.Attrs{{Name: "perm", Value: []int64{0, 2, 1, 3}}}, y)
	last := int64(-1)
	if n, ok := dimOf(c.Results[0], 2).Size(); ok {
		last = int64(n)
	}
	return []*ir.Value{y, r.ints(&r.calls, 0, 0, last)}
}

// looksAtPlaces reports whether the keys that a query sees depend on its place.
func looksAtPlaces(c *ir.Call) bool {
	return c.Attrs.Int("is_causal", 0) != 0 || c.Attrs.Int("left_window_size", -1) >= 0 || c.Attrs.Int("right_window_size", -1) >= 0
}

// heads makes [batch, heads, length, size] of [batch, length, heads * size].
func (r *rewriter) heads(x *ir.Value, packed bool, n int64) *ir.Value {
	if !packed {
		return x
	}
	size := int64(-1) // which cannot be told of a run without rows
	if last, ok := dimOf(x, 2).Size(); ok && n > 0 {
		size = int64(last) / n
	}
	x = r.emit(&r.calls, x.Name+".apart", "reshape", nil, x, r.ints(&r.calls, 0, 0, n, size))
	return r.emit(&r.calls, x.Name+".heads", "transpose", op.Attrs{{Name: "perm", Value: []int64{0, 2, 1, 3}}}, x)
}

// write makes a call of tensor_scatter write into the input itself, which has
// room for the rows.
func (r *rewriter) write(c *ir.Call, i int) {
	s := &r.states[i]
	c.Args[0].Value = r.program.Body.Params[s.Input]
	r.calls = append(r.calls, c)
	r.addRows(i, c.Args[1].Value, s.Axis, r.addedTo(i))
}

// span are the attributes of a call of shape that returns one size.
func span(axis int) op.Attrs {
	return op.Attrs{{Name: "end", Value: int64(axis + 1)}, {Name: "start", Value: int64(axis)}}
}

// ints adds a list of whole numbers to the calls.
func (r *rewriter) ints(to *[]*ir.Call, list ...int64) *ir.Value {
	attrs := op.Attrs{{Name: "dims", Value: []int64{int64(len(list))}}, {Name: "dtype", Value: dtype.I64}, {Name: "ints", Value: list}}
	return r.emit(to, "states.number", "constant", attrs)
}

// emit adds a call of one result, whose type is inferred with the others.
func (r *rewriter) emit(to *[]*ir.Call, name, operator string, attrs op.Attrs, args ...*ir.Value) *ir.Value {
	v := r.program.NewValue(ir.Result, r.free(name), op.Type{})
	*to = append(*to, r.call(v, operator, attrs, args))
	return v
}

// define adds a call whose result is a value that there is.
func (r *rewriter) define(v *ir.Value, operator string, attrs op.Attrs, args ...*ir.Value) {
	r.calls = append(r.calls, r.call(v, operator, attrs, args))
}

func (r *rewriter) call(v *ir.Value, operator string, attrs op.Attrs, args []*ir.Value) *ir.Call {
	c := &ir.Call{Op: op.Builtin().Lookup(operator), Attrs: attrs, Node: r.node, Results: []*ir.Value{v}, Args: make([]ir.Operand, len(args))}
	for i, a := range args {
		c.Args[i].Value = a
	}
	v.Def, v.Index = c, 0
	return c
}

// free returns a name that no value of the program has.
func (r *rewriter) free(name string) string {
	unused := name
	for i := 1; r.names[unused]; i++ {
		unused = fmt.Sprintf("%s.%d", name, i)
	}
	r.names[unused] = true
	return unused
}

func (r *rewriter) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// namesOf are the names of all values of a program.
func namesOf(p *ir.Program) map[string]bool {
	names := map[string]bool{}
	for _, list := range [][]*ir.Value{p.Body.Params, p.Weights} {
		for _, v := range list {
			names[v.Name] = true
		}
	}
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		for v := range c.Defs() {
			names[v.Name] = true
		}
	})
	return names
}

// usesOf counts the uses of all values of a program.
func usesOf(p *ir.Program) map[*ir.Value]int {
	uses := map[*ir.Value]int{}
	for v := range p.Body.Uses() {
		uses[v]++
	}
	return uses
}

// freeSymbol returns the name of a dimension, or another one like it that no
// dimension of an input has.
func (r *rewriter) freeSymbol(wanted string) string {
	known := map[string]bool{}
	for _, v := range r.program.Body.Params {
		if v.Type.Shape == nil {
			continue
		}
		for _, d := range v.Type.Shape.Dims() {
			if symbol, ok := d.Symbol(); ok {
				known[symbol] = true
			}
		}
	}
	name := wanted
	for i := 1; known[name]; i++ {
		name = fmt.Sprintf("%s.%d", wanted, i)
	}
	return name
}
