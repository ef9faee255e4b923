package pass

import (
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// visit is one call as fold met it: its operands are the values that had taken
// the place of others until then. A nil visit records nothing.
type visit struct {
	shadow
	ctx    *Context
	node   string
	again  *visit // an earlier visit of the call
	number int    // of steps before it

	failed bool      // it is in a branch, and does not fit
	found  []op.Type // of the results, after it

	constant bool // its operands are constants
	outcome  outcome
	made     []int // the constants that took the place of its results
	fixed    bool  // nothing about it depends on sizes
	asks     bool  // the call asked for these of the allowance
	filled   bool  // it changed the allowance otherwise: its answer is never known
	bytes    int64
	work     int64
	call     *op.Call // of a constant, made again for other sizes
	task     *compute.Task
	resized  bool // the call has other types than the task was refilled for
	asked    bool // the task asked for values then
}

// visit begins to record what fold does with a call.
func (c *Context) visit(call *ir.Call) *visit {
	r := c.recorder
	if r == nil {
		return nil
	}
	v := &visit{shadow: shadowOf(call), ctx: c, node: call.Node, number: len(r.steps), again: r.visits[call], found: make([]op.Type, len(call.Results)), made: make([]int, len(call.Results))}
	if call.Op.Loop {
		v.sig.Endless = call.Sig(c.constant).Endless // of constants that are pinned
	}
	return v
}

// evaluates notes that the operands are constants and all types static.
func (v *visit) evaluates(c *ir.Call) {
	if v == nil {
		return
	}
	v.constant = true
	v.fixed = !slices.ContainsFunc(c.Args, func(a ir.Operand) bool { return v.ctx.varies(a.Value) })
	if !v.fixed {
		v.call = &op.Call{Sig: &v.sig, Node: c.Node, In: make([]op.Arg, len(c.Args)), Out: make([]op.Arg, len(c.Results))}
	}
}

// judged notes the decision about a call whose operands are constants.
func (v *visit) judged(call *op.Call, decided outcome, asked bool) {
	if v == nil {
		return
	}
	v.outcome = decided
	if v.fixed {
		v.asks = asked
		v.bytes, v.work, _ = needs(call)
	}
}

// became notes the constant that takes the place of a result.
func (v *visit) became(r, made *ir.Value) {
	if v == nil {
		return
	}
	for i, id := range v.results {
		if id == r.ID {
			v.made[i] = made.ID
		}
	}
	v.ctx.recorder.met = append(v.ctx.recorder.met, made)
}

// end records the visit, unless an earlier one says all: see isSame.
func (v *visit) end(c *ir.Call, err error) {
	if v == nil {
		return
	}
	r := v.ctx.recorder
	if v.failed = err != nil; r.isSame(v) {
		return
	}
	r.visits[c] = v
	r.steps = append(r.steps, v)
	for _, a := range c.Args {
		if a.Value != nil {
			r.met = append(r.met, a.Value)
		}
	}
	for i, res := range c.Results {
		if res != nil {
			v.found[i] = res.Type
			r.met = append(r.met, res)
			r.typed[res.ID] = len(r.steps)
		}
	}
}

// isSame reports whether a visit of a call, in a later run of fold, finds
// nothing new at any size: its operands are those of the visit before, and no
// step has found other types for them, or for its results, since.
func (r *recorder) isSame(v *visit) bool {
	a := v.again
	if a == nil || a.failed || v.failed || a.outcome != kept || v.outcome != kept ||
		!slices.Equal(a.args, v.args) || !slices.EqualFunc(a.regions, v.regions, slices.Equal[[]int]) {
		return false
	}
	later := func(limit int) func(id int) bool { return func(id int) bool { return r.typed[id] > limit } }
	return !slices.ContainsFunc(v.args, later(a.number)) &&
		!slices.ContainsFunc(v.regions, func(ids []int) bool { return slices.ContainsFunc(ids, later(a.number)) }) &&
		!slices.ContainsFunc(v.results, later(a.number+1))
}

// take does again what fold does with a call.
func (v *visit) take(s *Structure, left *allowance) (why string) {
	if v.fixed {
		for i, id := range v.results {
			if id != 0 {
				s.types[id] = v.found[i]
			}
		}
		if v.asks && left.spend(v.bytes, v.work) != (v.outcome == computed) && !s.ignores("allowance") {
			return "allowance"
		}
		return ""
	}
	failed, why := v.repeat(s, left)
	if failed != v.failed && why == "" && !s.ignores("operator's error") {
		return "operator's error"
	}
	return why
}

// repeat runs the shape rule, and judges and evaluates a call of constants. It
// says whether the call fails, and what else is different.
func (v *visit) repeat(s *Structure, left *allowance) (failed bool, why string) {
	if s.fill(&v.shadow) {
		return false, v.retake(s, left)
	}
	own, infer := v.sig.Results, v.sig.Def.Infer // the number of operands and the attributes were checked when it was recorded
	if v.failed {
		infer = op.InferTypes // they may be wrong
	}
	err := infer(&v.sig)
	found := v.sig.Results
	v.sig.Results = own
	if err != nil || len(found) != len(own) {
		return true, ""
	}
	for i, id := range v.results {
		own[i] = found[i]
		if id == 0 {
			continue
		}
		if !v.failed && !alike(found[i], v.found[i]) && !s.ignores("rank") {
			return false, "rank"
		}
		s.types[id] = found[i]
		if made := v.made[i]; made != 0 {
			s.types[made] = found[i]
		}
	}
	if v.constant {
		failed, why = s.fold(v, left)
	}
	v.known = !failed && why == "" && !v.failed && !v.filled
	return failed, why
}

// retake is repeat for a call of which all types and bytes are those of before.
func (v *visit) retake(s *Structure, left *allowance) (why string) {
	for i, id := range v.results {
		if id != 0 {
			s.types[id] = v.sig.Results[i]
		}
		if made := v.made[i]; made != 0 {
			s.types[made] = v.sig.Results[i]
		}
	}
	if v.constant {
		return s.refold(v, left)
	}
	return ""
}
