package states

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/shape"
)

// Kind says what becomes of a state in a run.
type Kind int

const (
	Replaced Kind = iota // the output is a value of its own
	Same                 // the output has the type of the input
	Appended             // the input is a buffer: the run writes rows behind those that are there
	Written              // the input is a buffer: the run writes rows where operands of the program say
	Held                 // one region of a branch computes the output, and the other leaves the input as it is: the output has no elements then
)

// Pair is a state: the places of an input and of an output of a program.
type Pair struct{ Input, Output int }

// State is what Rewrite found of a pair.
type State struct {
	Pair
	Kind  Kind
	Axis  int    // along which rows are appended or written; -1 for other states
	Group int    // of an Appended or Written state; -1 for others
	Why   string // of a Replaced state: why the program does not append to it
}

// Group is the states of one length. Inputs and outputs are places of those of
// the new program.
type Group struct {
	Length int // the input i64[1] that has the number of rows; -1 where operands of the program say it
	Sizes  int // the input u8[rows,0] that has it as a size; -1 where the program reads no sizes of the past
	Rows   int // the output u8[n,0,...]: n is how many rows a run adds, and all sizes but the 0 and those of Masks must be n

	// Masks are the calls whose masks have a column per row that there is after
	// the run, or fewer, or one per row of the buffer: the last sizes of Rows
	// are their columns. Masks in regions are not among them.
	Masks []string
}

// Result is what Rewrite did. States are in the order of the pairs. Inputs and
// outputs that Rewrite added are behind those of the program.
type Result struct {
	States []State
	Groups []Group

	// Branch is the input that chooses between regions with a past and without,
	// -1 for none: it is to be Past where there are rows.
	Branch int
	Past   bool

	// Of RewriteBlocks:
	Shapes []*shape.Shape // what the input of each state had before it was a pool
	Table  int            // the input i64[batch,columns] that has the blocks of each sequence
	Even   string         // the call that reads the length or all rows of the past, and which it does: all sequences have one length then; "" for none
}

// Rewrite changes the program in place and infers its types again. known is
// that of [ir.Infer]. An error leaves the program unusable.
func Rewrite(p *ir.Program, pairs []Pair, known func(*ir.Value) ([]byte, bool)) (*Result, error) {
	r := newRewriter(p, pairs, known)
	if err := r.rewrite(); err != nil {
		return nil, err
	}
	return r.result()
}

// newRewriter finds out what the program does with states.
func newRewriter(p *ir.Program, pairs []Pair, known func(*ir.Value) ([]byte, bool)) *rewriter {
	r := &rewriter{program: p, names: namesOf(p), uses: usesOf(p), at: map[*ir.Call][]int{}, buffers: map[*ir.Value]part{},
		byKey: map[groupKey]int{}, next: map[*ir.Value]*ir.Value{}, selections: map[*ir.Call]bool{}, joinsOf: map[*ir.Call]bool{},
		appends: map[int][]*ir.Call{}, joined: map[*ir.Value]*ir.Value{}, windows: map[*ir.Value]window{}, known: known}
	for _, pair := range pairs {
		r.states = append(r.states, State{Pair: pair, Axis: -1, Group: -1})
		r.returned = append(r.returned, slot{p.Body, pair.Output})
	}
	for i := range r.states {
		r.classify(i)
	}
	r.pairAttention()
	r.settleBranch()
	return r
}

// result infers the types of the new program.
func (r *rewriter) result() (*Result, error) {
	result := &Result{States: r.states, Branch: -1}
	if r.branch != nil {
		result.Branch, result.Past = r.branch.cond.Index, r.branch.past == 0
	}
	for _, g := range r.groups {
		result.Groups = append(result.Groups, g.Group)
	}
	return result, ir.Infer(r.program, r.known)
}

// classify finds out what the program does with state i.
func (r *rewriter) classify(i int) {
	s := &r.states[i]
	in, out := r.program.Body.Params[s.Input], r.program.Body.Results[s.Output]
	if in.Type.DType != out.Type.DType {
		s.Why = fmt.Sprintf("the output is %s, the input %s", out.Type, in.Type)
		return
	}
	if out.Def != nil && out.Def.Op.Branch && r.isChosen(i, in, out) || r.isAppended(i, in, out) || r.isStacked(i, in, out) {
		return
	}
	if c := out.Def; c != nil && in.Type.Shape != nil {
		if axis := axisOf(c, in.Type.Shape.Rank()); c.Op.Name == "tensor_scatter" && bufferOf(c) == in && axis > 0 && !isRing(c) {
			s.Kind, s.Axis = Written, axis
			r.at[c] = append(r.at[c], i)
			return
		}
	}
	if r.isRolled(i) || r.isSame(in, out) {
		s.Kind, s.Why = Same, ""
		return
	}
	if s.Why != "" {
		return
	}
	s.Why = "it is an input"
	if out.Def != nil {
		s.Why = "rows are not appended to it: " + out.Def.Where() + " computes the output"
	}
}

// isAppended reports whether a value is the input of state i with rows behind
// it, and notes the call that appends them.
func (r *rewriter) isAppended(i int, in, out *ir.Value) bool {
	if c := out.Def; c != nil && in.Type.Shape != nil {
		switch axis := axisOf(c, in.Type.Shape.Rank()); {
		case c.Op.Name == "concat" && len(c.Args) == 2 && c.Args[0].Value == in && c.Args[1].Value != in && axis >= 0:
			r.append(i, c, axis)
			return true
		case c.Op.Name == "attention" && (out.Index == 1 || out.Index == 2) && len(c.Args) > 5 && c.Args[out.Index+3].Value == in:
			r.append(i, c, 2)
			return true
		}
	}
	return false
}

func (r *rewriter) append(i int, c *ir.Call, axis int) {
	r.states[i].Kind, r.states[i].Axis = Appended, axis
	r.at[c] = append(r.at[c], i)
}

// pairAttention drops the states of calls of attention that keep keys but not
// values, or values but not keys, or whose scores are read, which have a column
// per row of the buffer otherwise.
func (r *rewriter) pairAttention() {
	for c, list := range r.at {
		if c.Op.Name != "attention" {
			continue
		}
		why := ""
		switch {
		case len(list) != 2 || r.states[list[0]].Output == r.states[list[1]].Output:
			why = "only keys or only values of " + c.Where() + " are a state"
		case len(c.Results) > 3 && c.Results[3] != nil:
			why = "the scores of " + c.Where() + " are read"
		case c.Args[0].Value.Type.Shape == nil:
			why = "the rank of the queries of " + c.Where() + " is not known"
		default:
			continue
		}
		for _, i := range list {
			r.states[i].Kind, r.states[i].Axis, r.states[i].Why = Replaced, -1, why
		}
		delete(r.at, c)
	}
}

// bufferOf returns the value into which a call of tensor_scatter writes: its
// operand, or what the operand appends nothing to if the buffer has room, which
// are some of the rows that are written.
func bufferOf(c *ir.Call) *ir.Value {
	v := c.Args[0].Value
	d := v.Def
	if d == nil || d.Op.Name != "concat" || len(d.Args) != 2 || v.Type.Shape == nil {
		return v
	}
	rank := v.Type.Shape.Rank()
	if more := d.Args[1].Value.Def; more == nil || more.Op.Name != "slice" || more.Args[0].Value != c.Args[1].Value || axisOf(d, rank) != axisOf(c, rank) {
		return v
	}
	return d.Args[0].Value
}

// isRing reports whether a call of tensor_scatter writes over the oldest rows:
// its buffer has one capacity, and is never full.
func isRing(c *ir.Call) bool {
	mode, _ := c.Attrs.Get("mode").(string)
	return mode == "circular"
}

// axisOf returns the attribute axis of a call, counted from the front, for a
// value of that rank; -1 without.
func axisOf(c *ir.Call, rank int) int {
	axis := int(c.Attrs.Int("axis", defaultAxis(c)))
	if axis < 0 {
		axis += rank
	}
	if axis >= rank {
		return -1
	}
	return axis
}

func defaultAxis(c *ir.Call) int64 {
	if c.Op.Name == "tensor_scatter" {
		return -2
	}
	return 0
}

// isSame reports whether an output has the type of an input: in dimensions that
// are not known of the output, the input has the dimension of an input that is
// no state, such as a batch.
func (r *rewriter) isSame(in, out *ir.Value) bool {
	a, b := in.Type.Shape, out.Type.Shape
	if a == nil || b == nil || a.Rank() != b.Rank() {
		return false
	}
	for axis, d := range a.Dims() {
		if _, sized := d.Size(); d == b.Dim(axis) && d != shape.Unknown {
			continue
		} else if sized || b.Dim(axis) != shape.Unknown || !r.isOther(d) {
			return false
		}
	}
	return true
}

// isOther reports whether an input that is no state has the dimension.
func (r *rewriter) isOther(d shape.Dim) bool {
	if d == shape.Unknown {
		return false
	}
	for i, v := range r.program.Body.Params {
		isState := false
		for _, s := range r.states {
			isState = isState || s.Input == i
		}
		if isState || v.Type.Shape == nil {
			continue
		}
		for _, other := range v.Type.Shape.Dims() {
			if other == d {
				return true
			}
		}
	}
	return false
}
