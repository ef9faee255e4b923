package pass

import (
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// recorder writes down, while a program is specialised, what a [Structure] is
// made of: what fold did with each call, and what passes asked about sizes.
// Values are named by their IDs.
type recorder struct {
	pinned    string // why the program is for its sizes alone, "" if it is not
	allowance allowance
	visits    map[*ir.Call]*visit // the last one of each call
	steps     []*visit
	guards    []guard
	asked     map[guard]bool
	values    []valueGuard
	views     []viewGuard
	copies    []copied
	met       []*ir.Value // operands and results of steps
}

// guard is a question with its answer.
type guard struct {
	question question
	a, b     int // 0: none
	x, y     int
	answer   int
}

// valueGuard is a constant that has these bytes.
type valueGuard struct {
	id   int
	data []byte
}

// viewGuard is what wholeView said of a call.
type viewGuard struct {
	call  shadow
	arg   int
	whole bool
}

// copied is a value that has the type of another one.
type copied struct{ id, of int }

// shadow is a call as it stood when a question about it was asked: passes may
// change the call itself afterwards. It is made again for other sizes.
type shadow struct {
	sig           op.Sig
	args, results []int
	regions       [][]int
}

// Record makes the context write down what a [Structure] needs. Call it before
// the first pass on a program that was bound to one set of types.
func (c *Context) Record() {
	c.recorder = &recorder{visits: map[*ir.Call]*visit{}, asked: map[guard]bool{}}
}

// pin says that what was done with the program holds for its sizes alone.
func (c *Context) pin(reason string) {
	if r := c.recorder; r != nil && r.pinned == "" {
		r.pinned = reason
	}
}

// varies reports whether anything about the value may depend on sizes.
func (c *Context) varies(v *ir.Value) bool { return v != nil && (v.Kind != ir.Weight || c.varying[v]) }

func (c *Context) recordQuestion(q question, a, b *ir.Value, x, y, answer int) {
	if c.recorder == nil || a == b || !c.varies(a) && !c.varies(b) {
		return
	}
	g := guard{question: q, a: a.ID, x: x, y: y, answer: answer}
	if b != nil {
		g.b = b.ID
	}
	if !c.recorder.asked[g] {
		c.recorder.asked[g] = true
		c.recorder.guards = append(c.recorder.guards, g)
	}
}

func (c *Context) recordValue(v *ir.Value, data []byte) {
	if c.recorder == nil || !c.varying[v] {
		return
	}
	for _, g := range c.recorder.values {
		if g.id == v.ID {
			return
		}
	}
	c.recorder.values = append(c.recorder.values, valueGuard{v.ID, slices.Clone(data)})
}

func (c *Context) recordView(call *ir.Call, arg int, whole bool) {
	if c.recorder == nil || !hasRule(call, op.View) {
		return
	}
	c.recorder.views = append(c.recorder.views, viewGuard{shadowOf(call), arg, whole})
}

func (c *Context) recordCopy(made, of *ir.Value) {
	if c.recorder != nil {
		c.recorder.copies = append(c.recorder.copies, copied{made.ID, of.ID})
	}
}

// hasRule reports whether a rule of the operator is of the kind.
func hasRule(c *ir.Call, kind op.AliasKind) bool {
	return slices.ContainsFunc(c.Op.Alias.Rules(), func(r op.Rule) bool { return r.Kind == kind })
}

func shadowOf(c *ir.Call) shadow {
	s := shadow{sig: op.Sig{Def: c.Op, Attrs: c.Attrs, Args: make([]op.Type, len(c.Args)), Results: make([]op.Type, len(c.Results))},
		args: make([]int, len(c.Args)), results: idsOf(c.Results)}
	for i, a := range c.Args {
		if a.Value != nil {
			s.args[i] = a.Value.ID
		}
	}
	for _, r := range c.Regions {
		s.regions = append(s.regions, idsOf(r.Results))
		s.sig.Regions = append(s.sig.Regions, make([]op.Type, len(r.Results)))
	}
	return s
}

func idsOf(values []*ir.Value) []int {
	ids := make([]int, len(values))
	for i, v := range values {
		if v != nil {
			ids[i] = v.ID
		}
	}
	return ids
}

// visit is one call as fold met it: its operands are the values that had taken
// the place of others until then. A nil visit records nothing.
type visit struct {
	shadow
	ctx     *Context
	node    string
	before  []op.Type // of the results: a shape rule may see them
	again   *visit    // an earlier visit of the call
	changed bool      // the call has other operands than at the earlier visit

	constant bool // its operands are constants
	outcome  outcome
	made     []int // the constants that took the place of its results
	fixed    bool  // nothing about it depends on sizes
	asks     bool  // a fixed call asked for these of the allowance
	bytes    int64
	work     int64
	call     *op.Call // of a constant, made again for other sizes
	task     *compute.Task
}

// visit begins to record what fold does with a call.
func (c *Context) visit(call *ir.Call) *visit {
	if c.recorder == nil {
		return nil
	}
	v := &visit{shadow: shadowOf(call), ctx: c, node: call.Node, before: make([]op.Type, len(call.Results)), made: make([]int, len(call.Results))}
	for i, r := range call.Results {
		if r != nil {
			v.before[i] = r.Type
		}
	}
	for _, r := range call.Regions {
		if len(r.Params) > 0 {
			c.pin("a region with parameters")
		}
	}
	v.again = c.recorder.visits[call]
	v.changed = v.again != nil && (!slices.Equal(v.again.args, v.args) || !slices.EqualFunc(v.again.regions, v.regions, slices.Equal[[]int]))
	return v
}

// judged notes what is decided about a call whose operands are constants.
func (v *visit) judged(c *ir.Call, call *op.Call, decided outcome, asked bool) {
	if v == nil {
		return
	}
	v.constant, v.outcome = true, decided
	v.fixed = !slices.ContainsFunc(c.Args, func(a ir.Operand) bool { return v.ctx.varies(a.Value) })
	if v.fixed {
		v.asks = asked
		v.bytes, v.work, _ = needs(call)
	} else {
		v.call = &op.Call{Sig: &v.sig, Node: call.Node, In: make([]op.Arg, len(call.In)), Out: make([]op.Arg, len(call.Out))}
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

// end records the visit. A second visit of a call, in a later run of fold, must
// find nothing new: its operands are the same values, with the same types at
// all sizes, so that the first visit says all.
func (v *visit) end(c *ir.Call) {
	if v == nil {
		return
	}
	r := v.ctx.recorder
	if v.again != nil {
		same := !v.changed && v.outcome == kept && v.again.outcome == kept
		for i, res := range c.Results {
			same = same && (res == nil || res.Type == v.before[i])
		}
		if !same {
			v.ctx.pin("a size that is found late")
		}
		return
	}
	r.visits[c] = v
	r.steps = append(r.steps, v)
	for _, a := range c.Args {
		if a.Value != nil {
			r.met = append(r.met, a.Value)
		}
	}
	for _, res := range c.Results {
		if res != nil {
			r.met = append(r.met, res)
		}
	}
}
