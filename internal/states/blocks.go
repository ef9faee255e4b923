package states

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// RewriteBlocks is [Rewrite] into a program of many sequences, whose lengths
// may differ: every state is a pool of blocks [blocks,heads,rows,size], which
// all sequences share. One input more, i64[batch,table], has the numbers of
// each sequence's blocks, and the length is i64[batch].
//
//	present = concat(past, new) in attention
//	next    = block_scatter(pool, new, table, length);  y = block_attention(q, next k, next v, table, length + new)
//
//	present = concat(past, new)
//	next    = block_scatter(pool, new, table, length);  present = block_gather(next, table, length + new, ...)
//
// Calls other than attention get the rows that a run's sequences have, gathered
// as the program has them: sequences of one length then run together. All
// states must have one length, and samples along the first axis. The error
// names the state or the call.
func RewriteBlocks(p *ir.Program, pairs []Pair, known func(*ir.Value) ([]byte, bool)) (*Result, error) {
	r := newRewriter(p, pairs, known)
	for i, s := range r.states {
		if r.appends[i] != nil {
			return nil, fmt.Errorf("state %s: it is several caches in one, want one of keys or values", p.Body.Params[s.Input])
		}
		if s.Kind != Appended && s.Kind != Written {
			why := s.Why
			switch s.Kind {
			case Same:
				why = "the output has the type of the state"
			case Held:
				why = "a branch computes it or leaves it as it is"
			}
			return nil, fmt.Errorf("state %s: its kind is no pool of blocks, want rows that are appended or written for attention (%s)", p.Body.Params[s.Input], why)
		}
	}
	if r.branch != nil {
		return nil, fmt.Errorf("states: %s chooses between regions with a past and without, want attention in the program itself", r.branch.cond)
	}
	b := &blocks{rewriter: r, pools: map[*ir.Value]int{}, present: map[*ir.Value]int{}, gathered: map[*ir.Value]*ir.Value{}}
	if err := b.rewrite(); err != nil {
		return nil, err
	}
	result, err := r.result()
	if err != nil {
		return nil, err
	}
	for i := range result.States {
		result.States[i].Kind = Appended // a pool has no rows to write but those behind the length
	}
	result.Shapes, result.Table, result.Even = b.shapes, b.tableAt, b.evenBy
	return result, nil
}

// blocks rewrites to pools of blocks.
type blocks struct {
	*rewriter
	group   *group
	table   *ir.Value      // input tableAt
	shapes  []*shape.Shape // Shapes of the result
	tableAt int
	evenBy  string // Even of the result
	batch   shape.Dim
	pools   map[*ir.Value]int // inputs and results that are pools, with the state of each
	present map[*ir.Value]int // what was the state after the run
	added   *ir.Value         // rows of a run, as a list of one size

	gathered map[*ir.Value]*ir.Value // the rows of states before and after the run, by what they were
}

func (b *blocks) rewrite() error {
	params := b.program.Body.Params
	b.batch = dimOf(params[b.states[0].Input], 0)
	for i := range b.states {
		if err := b.join(i); err != nil {
			return err
		}
	}
	b.group = &group{Group: Group{Length: -1, Sizes: -1, Rows: -1}, dim: dimOf(params[b.states[0].Input], b.states[0].Axis)}
	b.group.length, b.group.Length = b.param("states.length", dtype.I64, b.batch)
	b.table, b.tableAt = b.param("states.table", dtype.I64, b.batch, shape.Sym(b.freeSymbol("table")))
	b.groups = []*group{b.group}
	number, rows := shape.Sym(b.freeSymbol("blocks")), shape.Sym(b.freeSymbol("block_rows"))
	shapes := make([]*shape.Shape, len(b.states)) // which are set when all is emitted
	for i, s := range b.states {
		heads, size := partsOfRow(params[s.Input].Type.Shape, s.Axis)
		var err error
		if shapes[i], err = shape.FromDims(number, shape.N(heads), rows, shape.N(size)); err != nil {
			return err
		}
	}
	for _, c := range b.program.Body.Calls {
		b.node = c.Node
		list, ours := b.at[c]
		switch {
		case ours && c.Op.Name == "attention":
			b.attend(c, list)
		case ours && c.Op.Name == "concat":
			b.put(list[0], b.inPool(list[0], c.Args[1].Value), b.group.length)
		case ours:
			b.write(c, list[0])
		case c.Op.Name == "attention" && b.pooled(c.Args[1].Value) && b.pooled(c.Args[2].Value):
			if err := b.attendWritten(c); err != nil {
				return err
			}
		default:
			b.calls = append(b.calls, c)
		}
	}
	b.sayRows(b.group)
	b.program.Body.Calls = b.calls
	b.dropDead()
	b.calls = nil
	for _, c := range b.program.Body.Calls { // of sizes and rows those alone that are read
		if b.node = c.Node; c.Op.Name == "shape" && b.isState(c.Args[0].Value) {
			c.Args[0].Value = b.standIn(c)
		} else if c.Op.Name != "block_scatter" && c.Op.Name != "block_attention" {
			b.readRows(c, c)
		}
		b.calls = append(b.calls, c)
	}
	for i, v := range b.program.Body.Results {
		if !slices.ContainsFunc(b.states, func(s State) bool { return s.Output == i }) && b.isJoined(v) {
			b.program.Body.Results[i] = b.rows(v, v.Def)
		}
	}
	for i, s := range b.states {
		params[s.Input].Type.Shape = shapes[i]
		b.pools[params[s.Input]] = i
	}
	b.program.Body.Calls = slices.Concat(b.first, b.calls)
	if b.err != nil {
		return b.err
	}
	return b.check()
}

// join notes state i among those of the pool.
func (b *blocks) join(i int) error {
	s := &b.states[i]
	in, out := b.program.Body.Params[s.Input], b.program.Body.Results[s.Output]
	c, first := out.Def, b.program.Body.Params[b.states[0].Input]
	switch rows := dimOf(in, s.Axis); {
	case s.Axis == 0:
		return fmt.Errorf("state %s: %s appends along axis 0 of %s, want another one: axis 0 is that of sequences", in, c.Where(), in.Type)
	case c.Op.Name != "concat" && (in.Type.Shape.Rank() != 4 || s.Axis != 2):
		return fmt.Errorf("state %s: %s appends along axis %d of %s, want axis 2 of 4", in, c.Where(), s.Axis, in.Type)
	case dimOf(in, 0) != b.batch || rows != dimOf(first, b.states[0].Axis) || s.Kind != b.states[0].Kind:
		return fmt.Errorf("states %s and %s: got %s and %s, want one batch and one length of all states", first, in, first.Type, in.Type)
	}
	for axis, d := range in.Type.Shape.Dims() {
		if _, sized := d.Size(); !sized && axis != 0 && axis != s.Axis {
			return fmt.Errorf("state %s: got %s, want the sizes of all axes known, such as heads and their size, but those of sequences and rows", in, in.Type)
		}
	}
	s.Group, b.present[out] = 0, i
	b.shapes = append(b.shapes, in.Type.Shape)
	return nil
}

func (b *blocks) isState(v *ir.Value) bool {
	_, after := b.present[v]
	return after || b.stateOf(v) >= 0
}

// stateOf returns the state that an input is, -1 for none.
func (b *blocks) stateOf(v *ir.Value) int {
	return slices.IndexFunc(b.states, func(s State) bool { return b.program.Body.Params[s.Input] == v })
}

// pooled reports whether a value is one that was written into a pool.
func (b *blocks) pooled(v *ir.Value) bool {
	i, ok := b.present[v]
	return ok && b.states[i].Kind == Written
}

// put writes rows into the pool of state i, from the given row of each sequence
// on, and returns the pool.
func (b *blocks) put(i int, rows, at *ir.Value) *ir.Value {
	s := &b.states[i]
	args := []*ir.Value{b.program.Body.Params[s.Input], rows, b.table, at}
	if at != b.group.length {
		args = append(args, b.group.length)
	}
	b.addRows(i, rows, 2, b.addedTo(i))
	out := b.program.Body.Results[s.Output]
	pool := b.emit(&b.calls, out.Name+".pool", "block_scatter", nil, args...)
	b.pools[pool] = i
	b.program.Body.Results[s.Output] = pool
	if b.added == nil {
		b.added = b.emit(&b.calls, "states.added.rows", "shape", span(2), rows)
	}
	return pool
}

// attend makes a call of attention with past keys and values one over pools.
func (b *blocks) attend(c *ir.Call, list []int) {
	packed := c.Args[0].Value.Type.Shape.Rank() == 3
	q := b.heads(c.Args[0].Value, packed, c.Attrs.Int("q_num_heads", 0))
	var pools [3]*ir.Value
	var fresh *ir.Value
	for _, i := range list {
		result := b.program.Body.Results[b.states[i].Output].Index // 1 for keys, 2 for values: also the operand
		fresh = b.heads(c.Args[result].Value, packed, c.Attrs.Int("kv_num_heads", 0))
		pools[result] = b.put(i, fresh, b.group.length)
	}
	if looksAtPlaces(c) { // which are counted from the last key
		b.addRows(list[0], q, 2, dimOf(c.Args[0].Value, c.Args[0].Value.Type.Shape.Rank()-2))
	}
	keys := b.emit(&b.calls, c.Results[0].Name+".keys", "add", nil, b.group.length, b.emit(&b.calls, c.Results[0].Name+".added", "shape", span(2), fresh))
	mask := c.Args[3].Value
	args := []*ir.Value{q, pools[1], pools[2], b.table, keys}
	if mask != nil { // it has the places of one length
		b.even(c)
		args = append(args, mask)
	}
	if !packed {
		b.define(c.Results[0], "block_attention", ofBlocks(c.Attrs), args...)
		return
	}
	y := b.emit(&b.calls, c.Results[0].Name+".heads", "block_attention", ofBlocks(c.Attrs), args...)
	b.define(c.Results[0], "reshape", nil, b.packRows(c, y)...)
}

// attendWritten makes a call of attention over written keys and values one over
// pools.
func (b *blocks) attendWritten(c *ir.Call) error {
	if len(c.Args) < 7 || c.Args[6].Value == nil {
		return fmt.Errorf("%s: got no number of keys per sample, want one: a pool has no others", c.Where())
	}
	for i, v := range c.Results {
		if i > 0 && v != nil && b.uses[v] > 0 {
			return fmt.Errorf("%s: result %d is read, want the first alone where keys are in a pool", c.Where(), i)
		}
	}
	k, v := b.program.Body.Results[b.states[b.present[c.Args[1].Value]].Output], b.program.Body.Results[b.states[b.present[c.Args[2].Value]].Output]
	args := []*ir.Value{c.Args[0].Value, k, v, b.table, c.Args[6].Value}
	if mask := c.Args[3].Value; mask != nil {
		args = append(args, mask)
	}
	b.define(c.Results[0], "block_attention", ofBlocks(c.Attrs), args...)
	return nil
}

// ofBlocks are the attributes of attention that block_attention has.
func ofBlocks(attrs op.Attrs) (list op.Attrs) {
	for _, a := range attrs {
		switch a.Name {
		case "is_causal", "scale", "softcap", "left_window_size", "right_window_size":
			list = append(list, a)
		}
	}
	return list
}

// write makes a call of tensor_scatter write into the pool.
func (b *blocks) write(c *ir.Call, i int) {
	b.put(i, c.Args[1].Value, c.Args[2].Value)
}

// even notes that a call reads what is one for all sequences of a run.
func (b *blocks) even(c *ir.Call) {
	b.sayEven(c, "reads the length of the past")
}

func (b *blocks) sayEven(c *ir.Call, why string) {
	if b.evenBy == "" {
		b.evenBy = c.Where() + " " + why
	}
}

// standIn returns a value that has the sizes which a state would have, for a
// call of shape.
func (b *blocks) standIn(c *ir.Call) *ir.Value {
	b.even(c)
	v := c.Args[0].Value
	to, rows := &b.first, b.rowsOf(b.group)
	i, after := b.present[v]
	if after {
		v, to = b.program.Body.Params[b.states[i].Input], &b.calls
		rows = b.emit(to, v.Name+".end", "add", nil, rows, b.added)
	} else {
		i = b.stateOf(v)
	}
	list := b.sizesWith(to, i, rows)
	return b.emit(to, v.Name+".alike", "constant_of_shape", op.Attrs{{Name: "dtype", Value: dtype.U8}}, list)
}

// dropDead drops the calls that no result needs any more.
func (b *blocks) dropDead() {
	live := map[*ir.Call]bool{}
	var visit func(v *ir.Value)
	var visitCall func(c *ir.Call)
	visitCall = func(c *ir.Call) {
		if live[c] {
			return
		}
		live[c] = true
		for i := range c.Args {
			visit(c.Args[i].Value)
		}
		for _, region := range c.Regions {
			for _, inner := range region.Calls {
				visitCall(inner)
			}
			for _, v := range region.Results {
				visit(v)
			}
		}
	}
	visit = func(v *ir.Value) {
		if v != nil && v.Def != nil {
			visitCall(v.Def)
		}
	}
	for _, v := range b.program.Body.Results {
		visit(v)
	}
	visit(b.added)
	b.program.Body.Calls = slices.DeleteFunc(b.program.Body.Calls, func(c *ir.Call) bool { return !live[c] })
}

// check refuses a program in which something else reads the rows of states.
func (b *blocks) check() (err error) {
	refuse := func(v *ir.Value, where string) {
		if _, pool := b.pools[v]; err == nil && (pool || b.isState(v)) {
			err = fmt.Errorf("%s reads all rows of %s, want attention alone to read those of a pool", where, v)
		}
	}
	b.program.Walk(func(_ *ir.Block, c *ir.Call) {
		for i := range c.Args {
			ours := (c.Op.Name == "block_scatter" || c.Op.Name == "block_gather") && i == 0 || c.Op.Name == "block_attention" && (i == 1 || i == 2)
			if v := c.Args[i].Value; v != nil && !ours {
				refuse(v, c.Where())
			}
		}
		for _, region := range c.Regions {
			for _, v := range region.Results {
				refuse(v, c.Where())
			}
		}
	})
	for i, v := range b.program.Body.Results {
		if !slices.ContainsFunc(b.states, func(s State) bool { return s.Output == i }) {
			refuse(v, fmt.Sprintf("output %d", i))
		}
	}
	return err
}
