package ir

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/op"
)

// Functionalize returns a pure program that computes what p computes, in which
// nothing is written: a statement that writes a value defines a new one, which
// later reads take; what was written through a view is put into the value that
// it is a view of, and views of that are taken again. Values that a branch or a
// loop writes become results of it, and loop state. The marks that put results
// back into the old bytes are those of the pass donate. p is not changed, and
// returned where it is pure.
//
// In p, a value is changed by a call that writes it, or that writes another
// value with which views connect it; a call reads all its operands before it
// writes. Operands of regions and results of blocks are values at that moment.
//
// It is an error to write a weight (V21), a parameter of the program that is
// not donated (V22), elements of another type or shape (V23), and through views
// that cannot be resolved (V24). known is that of [VerifyKnown]; bounds of
// slices that are written must be known by it, or be constants of the program.
func Functionalize(p *Program, known func(*Value) ([]byte, bool)) (*Program, error) {
	if known == nil {
		known = Known(nil)
	}
	if p == nil || p.Body == nil || p.IsPure() {
		return p, nil
	}
	if err := verifyForm(p, known); err != nil {
		return nil, err
	}
	f := &functionalizer{prog: p.Clone(), weights: known, vars: map[*Value]*variable{}, parents: map[*Value]*Value{},
		names: map[string]bool{}, source: map[string]bool{}, numbers: map[*Value][]int64{}, constants: map[string]*Value{}}
	f.prepare()
	named := slices.Clone(f.prog.Body.Results)
	f.block(f.prog.Body, nil)
	f.nameResults(named)
	f.prog.Body.Calls = append(f.consts, f.prog.Body.Calls...)
	if len(f.found) > 0 {
		return nil, errors.Join(f.found...)
	}
	if err := VerifyKnown(f.prog, f.known); err != nil {
		return nil, err
	}
	return f.prog, nil
}

// IsPure reports whether no call writes a value or makes views of one: only
// such programs are analysed, planned and run.
func (p *Program) IsPure() bool {
	pure := true
	p.Walk(func(_ *Block, c *Call) { pure = pure && c.isPure() })
	return pure
}

func (c *Call) isPure() bool {
	return !slices.ContainsFunc(c.Writes, func(v *Value) bool { return v != nil }) &&
		!slices.ContainsFunc(c.Args, func(o Operand) bool { return o.View })
}

// functionalizer rewrites a program.
type functionalizer struct {
	prog    *Program
	weights func(*Value) ([]byte, bool)
	vars    map[*Value]*variable
	order   []*variable       // the same, as they were met
	parents map[*Value]*Value // of views: what they are views of
	names   map[string]bool
	source  map[string]bool // names of values of the source that no statement writes into
	found   []error

	out       []*Call            // of the block that is rewritten
	consts    []*Call            // before the body of the program
	numbers   map[*Value][]int64 // the results of consts
	constants map[string]*Value  // the same by their text
}

// variable is a value of the source that is written, or that views connect with
// one.
type variable struct {
	value *Value
	root  *variable // of which it is a view, through others; itself for no view

	of   *variable // of which it is a view directly; nil for no view
	call *Call     // that makes the view, as its result value.Index from operand arg
	arg  int

	rest *rest // of a slice: what lies around it in the operand

	// now has the elements of the variable: of a view as long as from is what
	// of has now, or while the root is dirty with it.
	now, from *Value

	dirty *variable // of a root: the view whose elements have yet to be put into it
}

// prepare notes names and views of the whole program.
func (f *functionalizer) prepare() {
	note := func(values []*Value) {
		for _, v := range values {
			if v != nil {
				f.names[v.Name] = true
			}
		}
	}
	note(f.prog.Body.Params)
	note(f.prog.Weights)
	for name := range f.names {
		f.source[name] = true
	}
	f.prog.Walk(func(_ *Block, c *Call) {
		note(c.Results)
		for i, v := range c.Results {
			if v != nil && c.written(i) == nil {
				f.source[v.Name] = true
			}
		}
		for _, r := range c.Regions {
			note(r.Params)
		}
		for _, o := range c.Args {
			if !o.View || o.Value == nil {
				continue
			}
			for _, v := range c.Results {
				if v != nil {
					f.parents[v] = o.Value
				}
			}
		}
	})
}

func (f *functionalizer) fail(c *Call, invariant int, format string, args ...any) {
	v := violation(invariant, format, args...)
	v.Line = c.Line
	f.found = append(f.found, v)
}

// known returns the bytes of weights and of constants of the program.
func (f *functionalizer) known(v *Value) ([]byte, bool) {
	if v == nil || v.Def == nil || v.Def.Op.Name != "constant" {
		return f.weights(v)
	}
	return constantBytes(v)
}

// variable returns the variable of a value.
func (f *functionalizer) variable(v *Value) *variable {
	x := f.vars[v]
	if x == nil {
		x = &variable{value: v, now: v}
		x.root = x
		f.vars[v] = x
		f.order = append(f.order, x)
	}
	return x
}

// block rewrites a block. At its end it returns what the variables of outer
// blocks are by then.
func (f *functionalizer) block(b *Block, outer []*variable) (now []*Value) {
	calls, rest := b.Calls, f.out
	f.out = nil
	for _, c := range calls {
		f.call(c)
	}
	for i, v := range b.Results {
		b.Results[i] = f.read(v)
	}
	for _, x := range outer {
		f.flush(x)
		now = append(now, x.now)
	}
	b.Calls, f.out = f.out, rest
	return now
}

func (f *functionalizer) call(c *Call) {
	if len(c.Regions) > 0 {
		f.control(c)
		return
	}
	view := -1
	var of *variable
	for i := range c.Args {
		o := &c.Args[i]
		if o.View {
			if view >= 0 || !f.mayView(c, i) {
				f.fail(c, 24, "%s makes no views of operand %d: want one operand of which the alias rules of %s say that a result may be a view, or no mark", c, i, c.Op.Name)
			}
			view, of = i, f.variable(o.Value)
		}
		o.Value = f.read(o.Value)
	}
	targets, text := c.Writes, ""
	if targets != nil {
		text = c.String()
		if view >= 0 {
			f.fail(c, 24, "%s writes and makes views: want two statements", text)
		}
	}
	c.Writes = nil
	if view >= 0 {
		c.Args[view].View = false
	}
	f.infer(c)
	for _, target := range targets {
		if target != nil {
			f.surround(f.variable(target))
		}
	}
	results := c.Results
	if c.Op.Name == "copy" && targets != nil {
		results = []*Value{c.Args[0].Value} // values do not change: there is nothing to copy
	} else {
		f.out = append(f.out, c)
	}
	if view >= 0 {
		for _, v := range c.Results {
			if v != nil && f.vars[v] == nil {
				x := &variable{value: v, root: of.root, of: of, call: c, arg: view, now: v, from: c.Args[view].Value}
				f.vars[v] = x
				f.order = append(f.order, x)
			}
		}
	}
	f.writes(c, targets, results, text)
}

// mayView reports whether a result of the call may be a view of the operand.
func (f *functionalizer) mayView(c *Call, arg int) bool {
	for _, rule := range c.Op.Alias.Rules() {
		if rule.Kind == op.View && (rule.Arg == arg || rule.Arg == op.EveryArg) {
			return true
		}
	}
	return c.Op.Name == "transpose" && arg == 0
}

// infer runs the shape rule of a call again, for operands that are known here.
func (f *functionalizer) infer(c *Call) {
	types, err := inferResults(c, f.known)
	if err != nil {
		f.fail(c, 8, "%s: %w", c, err)
		return
	}
	for i, v := range c.Results {
		if v != nil && fits(v.Type, types[i]) {
			v.Type = refine(v.Type, types[i])
		}
	}
}

// writes makes the results of a call the elements of what it writes.
func (f *functionalizer) writes(c *Call, targets, results []*Value, text string) {
	var roots []*variable
	for i, target := range targets {
		if target == nil {
			continue
		}
		x, result := f.variable(target), results[i]
		root := x.root.value
		in := ""
		if root != target {
			in = fmt.Sprintf(", a view of %s", root)
		}
		switch {
		case root.Kind == Weight:
			f.fail(c, 21, "%s writes %s%s: weights are never written; write into a copy", text, target, in)
		case root.Kind == Param && !root.Donated && slices.Contains(f.prog.Body.Params, root):
			f.fail(c, 22, "%s writes %s%s: the parameter is not donated; mark it with \"donate\", or write into a copy", text, target, in)
		case result.Type.DType != target.Type.DType || !fits(result.Type, target.Type):
			f.fail(c, 23, "%s writes %s into %s, which is %s: want elements of one type and shape", text, result.Type, target, target.Type)
		case slices.Contains(roots, x.root):
			f.fail(c, 24, "%s writes %s twice: write it in two statements", text, root)
		default:
			if result.Def == c {
				result.Type = refine(target.Type, result.Type)
			}
			roots = append(roots, x.root)
			f.write(c, x, result)
		}
	}
}

// write makes v the elements of a variable.
func (f *functionalizer) write(c *Call, x *variable, v *Value) {
	root := x.root
	if x == root {
		root.dirty, x.now = nil, v
		return
	}
	if why := f.cannotPut(x); why != "" {
		f.fail(c, 24, "%s cannot be written: %s", x.value, why)
	}
	root.dirty, x.now, x.from = x, v, nil
}

// surround takes what lies around a view, before a call that writes it: then
// nothing else is read of its operand after the call, which may overwrite it.
func (f *functionalizer) surround(x *variable) {
	if d := x.root.dirty; d != nil && !d.isIn(x) {
		f.flush(x.root)
	}
	if f.cannotPut(x) != "" {
		return
	}
	for ; x.of != nil; x = x.of {
		if before := f.current(x.of); x.call.Op.Name == "slice" && (x.rest == nil || x.rest.of != before) {
			spans, _ := f.spans(x)
			x.rest = f.around(x.of.value.Name, before, spans)
		}
	}
}

// isIn reports whether x is y or a view of it.
func (x *variable) isIn(y *variable) bool {
	for ; x != nil; x = x.of {
		if x == y {
			return true
		}
	}
	return false
}

// read returns the elements that a value has now.
func (f *functionalizer) read(v *Value) *Value {
	x := f.vars[v]
	if x == nil || x.root.dirty == x {
		if x != nil {
			return x.now
		}
		return v
	}
	f.flush(x.root)
	return f.current(x)
}

// current returns the elements of a variable whose root is not dirty.
func (f *functionalizer) current(x *variable) *Value {
	if x.of == nil {
		return x.now
	}
	of := f.current(x.of)
	if x.from == of {
		return x.now
	}
	c := f.again(x.call, x.arg, of)
	for i, v := range x.call.Results {
		if v == nil {
			continue
		}
		if y := f.vars[v]; y.from != of {
			y.now, y.from = c.Results[i], of
		}
	}
	return x.now
}

// again makes a call that takes a view, of another operand.
func (f *functionalizer) again(view *Call, arg int, of *Value) *Call {
	c := &Call{Op: view.Op, Attrs: view.Attrs, Args: slices.Clone(view.Args), Node: view.Node, Line: view.Line}
	c.Args[arg].Value = of
	for i, v := range view.Results {
		if v == nil {
			c.Results = append(c.Results, nil)
			continue
		}
		r := f.value(Result, v.Name, v.Type)
		r.Def, r.Index = c, i
		c.Results = append(c.Results, r)
	}
	f.infer(c)
	f.out = append(f.out, c)
	return c
}

// flush puts the elements of the view with which a root is dirty into the root.
func (f *functionalizer) flush(root *variable) {
	x := root.dirty
	root.dirty = nil
	if x == nil || len(f.found) > 0 {
		return
	}
	for ; x.of != nil; x = x.of {
		before := f.current(x.of)
		after := f.put(x, before, x.now)
		after.Type = refine(before.Type, after.Type)
		x.from, x.of.now = after, after
		if x.call.Op.Name != "split" {
			continue
		}
		for i, v := range x.call.Results { // the other parts are as they were
			if v != nil && i != x.value.Index && f.vars[v].from == before {
				f.vars[v].from = after
			}
		}
	}
}

// nameResults names the results of the program: one that was written has the
// name of its value, or, where that is the name of a parameter, this name and
// ".new".
func (f *functionalizer) nameResults(named []*Value) {
	results := f.prog.Body.Results
	for i, v := range named {
		r := results[i]
		switch first := slices.Index(named, v); {
		case r == v:
			continue
		case first < i:
			results[i] = results[first]
			continue
		}
		if f.source[r.Name] || slices.Contains(results[:i], r) { // it has a name of its own
			outer := f.out
			f.out = f.prog.Body.Calls
			r = f.emit("identity", nil, v.Name, r)
			f.prog.Body.Calls, f.out = f.out, outer
			results[i] = r
		}
		name := v.Name
		if v.Kind != Result {
			name += ".new"
		} else {
			v.Name = f.value(Result, name, v.Type).Name
		}
		if !f.names[name] || v.Kind == Result {
			r.Name = name
			f.names[name] = true
		}
	}
}

// value makes a value with an unused name that begins with that of another.
func (f *functionalizer) value(kind ValueKind, like string, t op.Type) *Value {
	for n := 1; ; n++ {
		if name := fmt.Sprintf("%s.%d", like, n); !f.names[name] {
			f.names[name] = true
			v := f.prog.NewValue(kind, "", t)
			v.Name = name
			return v
		}
	}
}
