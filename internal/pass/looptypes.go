package pass

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// loopTypes is the inference of a loop: types of the loop state that hold in
// every iteration. They follow from the types of the operands and from the
// region as it is then, of which loopTypes has a copy.
type loopTypes struct {
	ctx    *Context
	call   *ir.Call    // the copy
	values []*ir.Value // that it names, each once
	found  []op.Type   // of these, after it
	failed bool
	types  *ir.LoopTypes // of the copy, once it was used
}

// loopTypes begins to record the inference of a loop.
func (c *Context) loopTypes(call *ir.Call) *loopTypes {
	if c.recorder == nil {
		return nil
	}
	r := &loopTypes{ctx: c, call: call.Clone()}
	r.values = valuesOf(r.call)
	c.recorder.met = append(c.recorder.met, valuesOf(call)...)
	return r
}

// end records the inference of the call.
func (r *loopTypes) end(call *ir.Call, err error) {
	if r == nil {
		return
	}
	r.failed = err != nil
	rec := r.ctx.recorder
	rec.steps = append(rec.steps, r)
	for i, v := range valuesOf(call) { // in the order of those of the copy
		r.found = append(r.found, v.Type)
		if v.Kind == ir.Param || r.values[i].Def != nil { // not of one from outside
			rec.typed[v.ID] = len(rec.steps)
		}
	}
}

// take infers the copy for other sizes.
func (r *loopTypes) take(s *Structure, _ *allowance) (why string) {
	for _, v := range r.values {
		v.Type = s.types[v.ID]
	}
	if r.types == nil {
		r.types = ir.NewLoopTypes(r.call, s.knownValue)
	}
	err := r.types.Infer()
	if (err != nil) != r.failed && !s.ignores("operator's error") {
		return "operator's error"
	}
	for i, v := range r.values {
		if !alike(v.Type, r.found[i]) && !s.ignores("rank") {
			return "rank"
		}
		s.types[v.ID] = v.Type
	}
	return ""
}

// valuesOf lists the values that a call and its regions name, each once.
func valuesOf(c *ir.Call) (list []*ir.Value) {
	seen := map[*ir.Value]bool{}
	var add func(c *ir.Call)
	note := func(values []*ir.Value) {
		for _, v := range values {
			if v != nil && !seen[v] {
				seen[v] = true
				list = append(list, v)
			}
		}
	}
	add = func(c *ir.Call) {
		for _, a := range c.Args {
			note([]*ir.Value{a.Value})
		}
		for _, region := range c.Regions {
			note(region.Params)
			for _, inner := range region.Calls {
				add(inner)
			}
			note(region.Results)
		}
		note(c.Results)
	}
	add(c)
	return list
}
