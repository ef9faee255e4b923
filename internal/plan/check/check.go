package check

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// Check proves that plan d is a safe way to run program p, which has to be
// well-formed (see [ir.Verify]). The views of some operators depend on the
// values of operands: weights contains those of weights, and may be nil. The
// error is a [Violation] of the first rule that does not hold.
func Check(p *ir.Program, d *plan.Plan, weights ir.Weights) error {
	c := newChecker(p)
	c.set(ir.TypesOf(p), weights)
	c.plan = d
	if v := c.first(c.document, c.places, c.run, c.outputs, c.figures, c.claims); v != nil {
		return v
	}
	return nil
}

type checker struct {
	program *ir.Program
	plan    *plan.Plan // nil for a bare layout
	layout  *Layout    // nil for a document
	index   *ir.Index
	listed  []*ir.Value // parameters, weights, what calls define in preorder

	types    ir.Types
	values   []value      // by ID
	ordered  []*value     // those of listed
	possible ir.Possibles // of values whose size depends on data
	sigs     *ir.Signatures
	stepOf   []int  // per call, once it has run
	partly   []bool // per call: some results are views, and others are computed
	views    []bool // per call: the operator has results that may be views
	starts   []int  // of partsOf and boxOf
	parts    []part

	memory contents
	step   int // that runs; -1 before and after
	next   int // step to run next
	impure int // the impure call that ran last

	loops []span // those that the step is in, the outermost first
}

func newChecker(p *ir.Program) *checker {
	c := &checker{program: p, index: ir.NewIndex(p), values: make([]value, p.NumIDs())}
	c.sigs, c.stepOf, c.partly = ir.NewSignatures(c.index), make([]int, len(c.index.Calls)), make([]bool, len(c.index.Calls))
	c.listed = append(append(c.listed, p.Body.Params...), p.Weights...)
	c.views = make([]bool, len(c.index.Calls))
	for k, call := range c.index.Calls {
		c.views[k] = slices.ContainsFunc(call.Op.Alias.Rules(), func(r op.Rule) bool { return r.Kind == op.View })
		for v := range call.Defs() {
			c.listed = append(c.listed, v)
		}
	}
	c.memory = newContents(p, stacksOf(c.index))
	return c
}

// set begins a proof for values of the given types.
func (c *checker) set(types ir.Types, weights ir.Weights) {
	known := ir.Known(weights)
	c.sigs.Set(types, known)
	c.types, c.possible = types, c.sigs.Possible(c.program, types)
	c.ordered = c.ordered[:0]
	for _, v := range c.listed {
		*c.of(v) = value{Value: v, typ: types.Of(v)}
	}
	c.memory.clear()
	c.step, c.next, c.loops = -1, 0, c.loops[:0]
}

// first returns the first violation of the rules.
func (c *checker) first(rules ...func() *Violation) *Violation {
	for _, rule := range rules {
		if v := rule(); v != nil {
			return v
		}
	}
	return nil
}

// span is the step of a loop's call, and when its last step ends.
type span struct {
	step int
	end  plan.Time
}

// value is a value of the program, its place, and the facts found about it.
type value struct {
	*ir.Value
	typ   op.Type
	place place
	size  int64

	strides []int // of its axes, in elements; nil for contiguous bytes

	// Set when the value is there: what its bytes are. Those of several other
	// values are in parts, which are all of it; laid are the parts in the place
	// where that has gaps.
	content content
	parts   []piece
	laid    []piece

	start, end plan.Time

	// unsized says that the size depends on data and that nothing bounds it:
	// the value is alone in a buffer of its own, which is freed at the given
	// time.
	unsized bool
	freed   plan.Time
}

// of returns the facts about a value.
func (c *checker) of(v *ir.Value) *value { return &c.values[v.ID] }

// fault makes a violation of the step that runs.
func (c *checker) fault(rule Rule, v *value, got, want string) *Violation {
	f := &Violation{Rule: rule, Step: c.step, Got: got, Want: want}
	if c.step >= 0 && c.plan != nil {
		s := &c.plan.Steps[c.step]
		f.Op, f.Node = s.Op, s.Node
	} else if c.step >= 0 {
		call := c.index.Calls[c.step]
		f.Op, f.Node = call.Op.Name, call.Node
	}
	if v != nil {
		f.Value = v.String()
	}
	return f
}

// in adds the bytes.
func (v *Violation) in(p place) *Violation {
	v.Bytes = p.bytes()
	return v
}

// document proves rule 1, except for steps, whose names are compared as they
// run.
func (c *checker) document() *Violation {
	d := c.plan
	if err := d.Validate(); err != nil {
		return &Violation{Rule: Document, Step: -1, err: err}
	}
	if hash := c.program.Hash(); d.Model != hash {
		return c.fault(Document, nil, fmt.Sprintf("model %q", d.Model), fmt.Sprintf("the hash of the program, %q", hash))
	}
	params := c.program.Body.Params
	if len(d.Shapes) != len(params) {
		return c.fault(Document, nil, fmt.Sprintf("%d shapes", len(d.Shapes)), fmt.Sprintf("one per input, %d", len(params)))
	}
	for i, v := range params {
		if want := (plan.Shape{Name: v.Name, Type: c.types.Of(v).String(), Donated: v.Donated}); d.Shapes[i] != want {
			return c.fault(Document, nil, fmt.Sprintf("input %d as %q of type %q, donated: %t", i, d.Shapes[i].Name, d.Shapes[i].Type, d.Shapes[i].Donated),
				fmt.Sprintf("%q of type %q, donated: %t", want.Name, want.Type, want.Donated))
		}
	}
	if len(d.Steps) != len(c.index.Calls) {
		return c.fault(Order, nil, fmt.Sprintf("%d steps", len(d.Steps)), fmt.Sprintf("one per call, %d", len(c.index.Calls)))
	}
	return c.entries()
}

// entries proves that the document lists the values of the program, and takes
// their places from it.
func (c *checker) entries() *Violation {
	for n, v := range c.listed {
		x := c.of(v)
		if n == len(c.plan.Values) {
			return c.fault(Document, x, "no entry for it among the values", "one")
		}
		entry := &c.plan.Values[n]
		if entry.ID != v.ID {
			return c.fault(Document, x, fmt.Sprintf("id %d as value %d of the list", entry.ID, n), fmt.Sprintf("id %d: inputs, weights, and what each call defines, in the program's order", v.ID))
		}
		if entry.Name != v.Name || entry.Type != x.typ.String() {
			return c.fault(Document, x, fmt.Sprintf("%q of type %q as id %d", entry.Name, entry.Type, v.ID), fmt.Sprintf("%q of type %q", v.Name, x.typ))
		}
		at := Position{Space: entry.Space, Arg: entry.Arg, Offset: entry.Offset, Size: entry.Size, End: entry.End}
		for _, n := range entry.Strides {
			at.Strides = append(at.Strides, int(n))
		}
		if fault := c.place(x, &at); fault != nil {
			return fault
		}
	}
	if len(c.plan.Values) != len(c.ordered) {
		return c.fault(Document, nil, fmt.Sprintf("%d values", len(c.plan.Values)), fmt.Sprintf("those of the program, %d", len(c.ordered)))
	}
	return c.unpromised()
}

// place puts a value where the plan has it.
func (c *checker) place(x *value, at *Position) *Violation {
	if err := c.measure(x, at.Space); err != nil {
		return &Violation{Rule: Document, Step: -1, Value: x.String(), err: err}
	}
	if at.Size != x.size {
		return c.fault(Document, x, fmt.Sprintf("%q of type %q and %d bytes", x.Name, x.typ, at.Size), fmt.Sprintf("%d bytes", x.size))
	}
	x.place = place{space: space{kind: kindOf(at.Space)}, lo: at.Offset, hi: at.Offset + at.Size}
	switch {
	case x.place.kind == nowhere:
		return c.fault(Place, x, fmt.Sprintf("a place in the space %q", at.Space), "one of those that there are")
	case x.place.kind == input || x.place.kind == output:
		x.place.arg = at.Arg
	case x.place.kind == slot:
		if !slices.Contains(c.memory.stacks, at.Arg) {
			return c.fault(Place, x, fmt.Sprintf("a part of value %d", at.Arg), "one of a result that a loop stacks")
		}
		x.place.arg = at.Arg
	case at.Arg != 0:
		return c.fault(Document, x, fmt.Sprintf("arg %d in space %q", at.Arg, at.Space), "0: only inputs, outputs and slots have numbers")
	}
	if at.Strides != nil {
		if fault := c.stride(x, at.Strides); fault != nil {
			return fault
		}
	}
	if x.unsized {
		x.freed = at.End
		c.placeUnsized(x)
	}
	c.ordered = append(c.ordered, x)
	return nil
}

// places proves rule 3 for everything but results in weights, and puts inputs
// and weights into their bytes.
func (c *checker) places() *Violation {
	for i, v := range c.program.Body.Params {
		x := c.of(v)
		if want := (place{space: space{input, i}, hi: x.size}); !x.place.isSame(want) {
			return c.fault(Place, x, x.place.String(), want.String())
		}
		c.hold(x, content{root: v.ID}, nil)
		c.memory.put(x)
	}
	for _, v := range c.program.Weights {
		x := c.of(v)
		if x.place.kind != weight || x.place.lo != 0 || x.place.box != nil {
			return c.fault(Place, x, x.place.String(), fmt.Sprintf("bytes [0,%d) of the weight", x.size))
		}
		x.place.arg = v.ID
		c.hold(x, content{root: v.ID}, nil)
	}
	for _, x := range c.ordered {
		if v := c.fits(x); v != nil {
			return v
		}
	}
	return nil
}

// fits proves that a value lies within its space and is aligned there.
func (c *checker) fits(x *value) *Violation {
	var owners []*ir.Value // that the buffers of the space are made for
	switch x.place.kind {
	case input:
		owners = c.program.Body.Params
	case output:
		owners = c.program.Body.Results
	case constant:
		return c.fault(Place, x, "a place among constants", "another space: programs have none")
	}
	align := alignment(x.typ.DType)
	if x.place.lo%align != 0 {
		return c.fault(Place, x, fmt.Sprintf("offset %d", x.place.lo), fmt.Sprintf("a multiple of %d", align)).in(x.place)
	}
	if x.place.kind == slot {
		return c.fitsSlot(x)
	}
	if x.place.kind != input && x.place.kind != output {
		return nil
	}
	if x.place.arg >= len(owners) {
		return c.fault(Place, x, fmt.Sprintf("%s %d", spaces[x.place.kind], x.place.arg), fmt.Sprintf("one of %d", len(owners)))
	}
	owner := c.of(owners[x.place.arg])
	if owner.unsized || x.unsized || !owner.typ.IsStatic() {
		if owner != x {
			return c.fault(Place, x, x.place.String(), "another place: a buffer whose size depends on data holds one value")
		}
		return nil
	}
	if x.place.hi > owner.size {
		return c.fault(Place, x, x.place.String(), fmt.Sprintf("bytes within its %d", owner.size))
	}
	if align > alignment(owner.typ.DType) {
		return c.fault(Place, x, fmt.Sprintf("elements of %s", x.typ.DType),
			fmt.Sprintf("elements that need no more alignment than the buffer's, of %s", owner.typ.DType)).in(x.place)
	}
	return nil
}

// alignment is what elements of a type need in memory.
func alignment(dt dtype.DType) int64 {
	size := int64(dt.Size())
	if dt.IsComplex() {
		size /= 2
	}
	return max(size, 1)
}

// outputs proves rule 8 from the state at the end.
func (c *checker) outputs() *Violation {
	c.step = -1
	results := c.program.Body.Results
	for i, v := range results {
		x := c.of(v)
		own := place{space: space{output, i}, hi: x.extent()}
		returned := c.donated(x.place) && x.place.lo == 0 && x.place.box == nil && 2*x.size >= c.of(c.program.Body.Params[x.place.arg]).size
		if !x.place.isSame(own) && !returned {
			return c.fault(Output, x, fmt.Sprintf("output %d in %s", i, x.place), fmt.Sprintf("%s, or the first half of a donated input, or more", own))
		}
		if bad, found := c.memory.lacks(x); found {
			return c.holds(Output, x, bad)
		}
		for j, other := range results[:i] {
			if y := c.of(other); c.overlap(x.place, y.place) {
				return c.fault(Output, x, fmt.Sprintf("output %d in bytes of output %d (%s)", i, j, y), "bytes of its own").in(x.place)
			}
		}
	}
	return nil
}

// donated reports whether the bytes are those of an input that may be
// overwritten.
func (c *checker) donated(p place) bool {
	return p.kind == input && c.program.Body.Params[p.arg].Donated
}

// holds is the fault of bytes with a wrong content.
func (c *checker) holds(rule Rule, x *value, bad missing) *Violation {
	got := "nothing"
	if bad.got.root != 0 {
		got = fmt.Sprintf("%s from its byte %d", c.values[bad.got.root].Value, bad.got.offset)
	}
	return c.fault(rule, x, got, fmt.Sprintf("%s from its byte %d", c.values[bad.want.root].Value, bad.want.offset)).in(bad.place)
}

// overlap reports whether two places may share bytes.
func (c *checker) overlap(a, b place) bool {
	if a.space != b.space || max(a.lo, b.lo) >= min(a.hi, b.hi) {
		return false
	}
	return a.box == nil && b.box == nil || c.memory.work.overlap(a, b)
}
