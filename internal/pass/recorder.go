package pass

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// recorder records, while a program is specialised, the parts of a [Structure]:
// fold's decisions about each call, and the passes' questions about sizes.
// Values are named by their IDs.
type recorder struct {
	pinned    string // why the program is for its sizes alone, "" if it is not
	allowance allowance
	initial   ir.Types            // of the values before the first pass: they do not depend on sizes but for the parameters'
	visits    map[*ir.Call]*visit // the last one of each call
	steps     []step
	typed     map[int]int // the number of steps after which a value had its type
	guards    []guard
	asked     map[guard]bool
	values    []valueGuard
	views     []viewGuard
	copies    []copied
	deciding  []int       // inputs whose values are constants of the program
	met       []*ir.Value // operands and results of steps
}

// step is a decision about the program that is made again for other sizes. take
// returns the difference, "" if there is none.
type step interface {
	take(s *Structure, left *allowance) (why string)
}

// guard is a question with its answer.
type guard struct {
	question question
	a, b     int // 0: none
	x, y     int
	answer   int
	at       int // the number of steps before it was asked
}

// valueGuard is a constant that has these bytes.
type valueGuard struct {
	id   int
	data []byte
	at   int // the number of steps before they were read
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
// change the call itself afterwards. It is made again for other sizes. What
// follows from it is a function of its types and of the constants among its
// operands, so where these are those of before, so is the answer.
type shadow struct {
	sig           op.Sig
	args, results []int
	regions       [][]int

	before []op.Type // of the results, without what a shape rule has set
	stamps []int     // of the operands
	known  bool      // the answer for these is the one wanted
}

// Record makes the context record the parts of a [Structure]. Call it before
// the first pass on a program that was bound to one set of types.
func (c *Context) Record() {
	c.recorder = &recorder{initial: ir.TypesOf(c.Program), visits: map[*ir.Call]*visit{}, typed: map[int]int{}, asked: map[guard]bool{}}
}

// pin says that the passes' decisions hold for the program's present sizes
// alone.
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
	g := guard{question: q, a: a.ID, x: x, y: y, answer: answer, at: len(c.recorder.steps)}
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
	c.recorder.values = append(c.recorder.values, valueGuard{v.ID, slices.Clone(data), len(c.recorder.steps)})
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
		args: make([]int, len(c.Args)), results: idsOf(c.Results), before: make([]op.Type, len(c.Results)), stamps: make([]int, len(c.Args))}
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
