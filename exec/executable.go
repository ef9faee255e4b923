package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/plan/check"
	"github.com/tenure-go/tenure/plan/solve"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Options say how a program is compiled.
type Options struct {
	Threads       int // workers that run a step; at least 1
	MaxConcurrent int // runs at a time that the plan's total counts; at least 1

	// Declined and Copies come from the passes and are part of the plan's
	// report.
	Declined []plan.Declined
	Copies   []plan.Copy

	// Store packs constants into the forms that tasks read; nil to read all
	// constants as they are. The table of weights has those of the store, and
	// maybe constants of this program alone.
	Store *weights.Store

	// Compressed makes tasks read large constants compressed, without loss,
	// where they can.
	Compressed bool

	// Effort bounds the search for a placement, see package plan/solve.
	Effort int64
}

// Executable is a compiled program: its plan, proved, and where each operand
// and result of each call lies. It is immutable.
type Executable struct {
	Program *ir.Program // final; must not be changed
	Plan    *plan.Plan

	weights ir.Weights
	store   *weights.Store // nil: nothing is packed
	packing packing
	packed  atomic.Bool // all that packing wants

	compressed bool
	calls      []*ir.Call
	sigs       []*op.Sig
	code       []instr
	refs       [][]ref // per call: operands, then results

	taken    []bool // per parameter: the program writes into it or gives it back
	writes   []bool // per call: it writes into a parameter
	outputIn []int  // per result: the parameter whose bytes it comes back in, or -1

	dynamic    int         // number of values whose size depends on data
	outDynamic []int       // per result: its number among them, or -1
	outTypes   [][]op.Type // per result whose size depends on data: the types one of which it has, if known
	late       []bool      // per call: it is bound when it runs
	isOutput   []bool      // per dynamic value: it is a result
	forOutput  []bool      // per dynamic value: its buffer may become a result
	freed      [][]int     // per call: dynamic values whose own buffers are given back after it
	left       [][][]int   // per call and region: those that are given back when the region has ended
	gives      [][][]gift  // per call and region: what the region returns
	loops      []*loop     // per call that is one
}

// ref is where one operand or result of a call lies.
type ref struct {
	space        plan.Space
	arg          int
	offset, size int64
	weight       *ir.Value
	dynamic      int // number of the value whose size depends on data, -1 for others
}

// gift is what a region returns as a dynamic result of the call around it.
type gift struct {
	ref
	typ op.Type
	to  int  // number of the result among the dynamic values
	in  bool // the result's place in the arena, where the region has computed it
}

// Compile verifies and compiles a final program: the sizes of its inputs are
// known, every result has bytes of its own, what may be overwritten is marked.
// The error of a program that is not well-formed is that of [ir.VerifyKnown].
// table may be nil where the program has no weights.
func Compile(ctx context.Context, p *ir.Program, table ir.Weights, o Options) (*Executable, error) {
	if table == nil {
		table = ir.WeightMap{}
	}
	known := ir.Known(table)
	if err := ir.VerifyKnown(p, known); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	l, err := lower(p, known)
	if err != nil {
		return nil, err
	}
	if err := l.checkTotal(); err != nil {
		return nil, err
	}
	e := &Executable{Program: p, weights: table, store: o.Store, compressed: o.Compressed, calls: l.calls, sigs: l.sigs}
	e.collectDynamic(l)
	problem := l.problem()
	placed, err := solve.Solve(ctx, problem, solve.Options{Effort: o.Effort})
	if err != nil {
		return nil, err
	}
	if err := e.resolve(l, placed.Offsets); err != nil {
		return nil, err
	}
	e.emit(p.Body, l)
	e.emitOwn(l)
	e.findTaken(l)
	scratch, err := e.findPanels()
	if err != nil {
		return nil, err
	}
	if err := e.lateScratch(l, scratch); err != nil {
		return nil, err
	}
	e.Plan = l.document(problem, placed, scratch, o)
	e.packing.document(e.Plan, e.store)
	if err := check.Check(p, e.Plan, table); err != nil {
		return nil, fmt.Errorf("BUG: the plan does not hold: %w", err)
	}
	return e, nil
}

// CheckKernels reports, all at once, the operators of a program that no
// kernel runs.
func CheckKernels(p *ir.Program) error {
	missing := map[string][]string{}
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		if len(c.Regions) == 0 && !compute.Supported(c.Op) {
			missing[c.Op.Name] = append(missing[c.Op.Name], describe(c))
		}
	})
	if len(missing) == 0 {
		return nil
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		faults = append(faults, fmt.Errorf("operator %s has no kernel, wanted by %s: %w", name, some(missing[name]), op.ErrUnsupported))
	}
	return errors.Join(faults...)
}

// some lists names, the first few of many.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// TakesInput reports whether the program overwrites parameter i, or gives it
// back as a result.
func (e *Executable) TakesInput(i int) bool { return e.taken[i] }

// WhyNotTaken says why nothing lies in the bytes of parameter i.
func (e *Executable) WhyNotTaken(i int) string {
	name := e.Program.Body.Params[i].Name
	for _, d := range e.Plan.Declined {
		if d.Value == name {
			return fmt.Sprintf("%s cannot write into it: %s", stepName(d), d.Reason)
		}
	}
	return "no operator that reads it can write its result into its bytes"
}

func stepName(d plan.Declined) string {
	if d.Node == "" {
		return d.Op
	}
	return fmt.Sprintf("node %q (%s)", d.Node, d.Op)
}

// OutputInInput returns the donated parameter in whose bytes result i comes
// back, -1 for none.
func (e *Executable) OutputInInput(i int) int { return e.outputIn[i] }

// PossibleTypes returns the static types one of which result i has when the
// program runs, if its size depends on data. It is nil for a result of static
// type, and where the types are not known. The caller must not change it.
func (e *Executable) PossibleTypes(i int) []op.Type { return e.outTypes[i] }

// findTaken fills in which parameters are overwritten or given back, and by
// which calls.
func (e *Executable) findTaken(l *lowering) {
	e.taken, e.writes = make([]bool, len(e.Program.Body.Params)), make([]bool, len(l.calls))
	for i, v := range e.Program.Body.Params {
		e.taken[i] = v.Donated && l.places[v].size == 0 // no byte is left that could serve
	}
	for k, c := range l.calls {
		for r, v := range c.Results {
			if v == nil {
				continue
			}
			at := l.places[v]
			if _, kind, _ := l.bytesFor(k, c, r); at.storage.space == plan.SpaceInput && kind != op.View {
				e.taken[at.storage.arg], e.writes[k] = true, true
			}
		}
	}
	for _, v := range e.Program.Body.Results {
		in := -1
		if at := l.places[v]; at.storage.space == plan.SpaceInput {
			in = at.storage.arg
			e.taken[in] = true
		}
		e.outputIn = append(e.outputIn, in)
	}
}

// resolve turns places into references that a runner can follow.
func (e *Executable) resolve(l *lowering, bases []int64) error {
	at := func(v *ir.Value) (ref, error) {
		if v == nil {
			return ref{dynamic: -1}, nil
		}
		p := l.places[v]
		if p.storage == nil {
			return ref{}, fmt.Errorf("BUG: exec: value %q has no place", v.Name)
		}
		r := ref{space: p.storage.space, arg: p.storage.arg, offset: p.offset, size: p.size, dynamic: -1}
		if n, ok := l.dynamic[v]; ok {
			r.dynamic = n
			if r.space == plan.SpaceOutput {
				r.size = 0 // the buffer is made when the size is known
			}
		}
		switch r.space {
		case plan.SpaceArena:
			r.offset += bases[p.storage.id]
		case plan.SpaceWeight:
			r.weight = p.storage.weight
		}
		return r, nil
	}
	e.refs = make([][]ref, len(l.calls))
	for k, c := range l.calls {
		for _, a := range c.Args {
			r, err := at(a.Value)
			if err != nil {
				return err
			}
			e.refs[k] = append(e.refs[k], r)
		}
		for _, v := range c.Results {
			r, err := at(v)
			if err != nil {
				return err
			}
			e.refs[k] = append(e.refs[k], r)
		}
		e.loops = append(e.loops, nil)
		if c.Op.Loop {
			var err error
			if e.loops[k], err = l.loop(c, at); err != nil {
				return err
			}
		}
		var regions [][]gift
		for _, region := range c.Regions {
			if c.Op.Loop {
				break
			}
			var list []gift
			for i, v := range c.Results {
				to, dynamic := l.dynamic[v]
				if !dynamic {
					continue
				}
				y := region.Results[i]
				r, err := at(y)
				if err != nil {
					return err
				}
				list = append(list, gift{r, y.Type, to, l.places[v].storage.space == plan.SpaceArena})
			}
			regions = append(regions, list)
		}
		e.gives = append(e.gives, regions)
	}
	return nil
}

// bind makes the task of call k; operands and results have no bytes yet.
func (e *Executable) bind(k int) (*compute.Task, error) {
	c := e.calls[k]
	call := &op.Call{Sig: e.sigs[k], Node: c.Node, In: make([]op.Arg, len(c.Args)), Out: make([]op.Arg, len(c.Results))}
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		call.In[i] = op.Arg{Type: a.Value.Type, Layout: shape.RowMajor(a.Value.Type.Shape)}
	}
	for i, v := range c.Results {
		if v != nil {
			call.Out[i] = op.Arg{Type: v.Type, Layout: shape.RowMajor(v.Type.Shape)}
		}
	}
	return compute.BindConstants(call, e.constants(k))
}

// constant returns the bytes of operand i of call k, if it is a constant: its
// panel, or the weight as it is.
func (e *Executable) constant(k, i int) ([]byte, error) {
	if x, ok := e.packing.operands[operand{k, i}]; ok {
		return e.store.Panel(x), nil
	}
	r := e.refs[k][i]
	if r.space != plan.SpaceWeight {
		return nil, nil
	}
	data, ok := e.weights.Bytes(r.weight)
	if !ok && e.weights.Has(r.weight) {
		return nil, fmt.Errorf("weight %q: no memory for its bytes: %w", r.weight.Name, tensor.ErrLimit)
	}
	if !ok || int64(len(data)) < r.offset+r.size {
		return nil, fmt.Errorf("weight %q: got %d bytes in the table, want at least %d", r.weight.Name, len(data), r.offset+r.size)
	}
	return data[r.offset : r.offset+r.size : r.offset+r.size], nil
}

// document writes the plan down.
func (l *lowering) document(problem *plan.Problem, placed plan.Placement, scratch []int64, o Options) *plan.Plan {
	d := &plan.Plan{
		Format:          plan.Format,
		Model:           l.program.Hash(),
		ArenaBytes:      placed.Size,
		Threads:         max(o.Threads, 1),
		MaxConcurrent:   max(o.MaxConcurrent, 1),
		Unpromised:      l.unpromised(),
		LowerBoundBytes: problem.LowerBound().Bytes,
		InPlace:         l.inPlace,
		Declined:        l.allDeclined(o.Declined),
		Copies:          l.ordered(o.Copies),
	}
	for _, v := range l.program.Body.Params {
		d.Shapes = append(d.Shapes, plan.Shape{Name: v.Name, Type: v.Type.String()})
		d.IOBytes += l.places[v].size
	}
	for _, v := range l.program.Body.Results {
		if l.places[v].storage.space == plan.SpaceOutput {
			d.IOBytes += l.places[v].size
		}
	}
	for k, c := range l.calls {
		step := plan.Step{Call: k, Op: c.Op.Name, Node: c.Node, Scratch: scratch[k]}
		for _, a := range c.Args {
			if a.Value != nil {
				step.Reads = append(step.Reads, a.Value.ID)
			}
		}
		d.Steps = append(d.Steps, step)
		d.ScratchPerThread = max(d.ScratchPerThread, scratch[k])
	}
	d.ScratchBytes = d.ScratchPerThread * int64(d.Threads)
	l.documentValues(d, placed.Offsets)
	d.Peak = peakOf(d)
	return d
}

// allDeclined lists what the passes and the lowering declined in the program's
// order, each operand of a call once.
func (l *lowering) allDeclined(before []plan.Declined) []plan.Declined {
	list := slices.Concat(before, l.declined)
	slices.SortStableFunc(list, func(a, b plan.Declined) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Operand, b.Operand))
	})
	return slices.CompactFunc(list, func(a, b plan.Declined) bool { return a.Call == b.Call && a.Operand == b.Operand })
}

// ordered returns the copies in the program's order.
func (l *lowering) ordered(copies []plan.Copy) []plan.Copy {
	at := map[string]int{}
	for k, c := range l.calls {
		for _, v := range c.Results {
			if v != nil {
				at[v.Name] = k
			}
		}
	}
	return slices.SortedStableFunc(slices.Values(copies), func(a, b plan.Copy) int { return cmp.Compare(at[a.Value], at[b.Value]) })
}

func (l *lowering) documentValues(d *plan.Plan, bases []int64) {
	add := func(v *ir.Value) {
		at := l.places[v]
		start, end := l.life(v)
		e := plan.Value{ID: v.ID, Name: v.Name, Type: v.Type.String(), Space: at.storage.space, Arg: at.storage.arg,
			Offset: at.offset, Size: at.size, Start: start, End: end}
		if e.Space == plan.SpaceArena {
			e.Offset += bases[at.storage.id]
		}
		d.Values = append(d.Values, e)
	}
	for _, v := range l.program.Body.Params {
		add(v)
	}
	for _, v := range l.program.Weights {
		add(v)
		d.WeightBytes += l.places[v].size
	}
	for _, c := range l.calls {
		for _, v := range given(c) {
			add(v)
		}
	}
}
