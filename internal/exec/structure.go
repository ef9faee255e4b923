package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/internal/plan/solve"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// structure is a final program with everything that does not depend on the
// sizes of its values: the executables that are made of it share it.
type structure struct {
	program *ir.Program
	types   ir.Types // that the program has
	options Options
	weights []*ir.Value // by ID
	draws   bool        // some call may draw random numbers

	instances, rebound atomic.Int64 // the latter: tasks that were bound anew because their sizes wanted it

	freeMu sync.Mutex
	unused []*tasks // of runners that have ended

	mu       sync.Mutex // of the fields below, whose contents are for one executable at a time
	lowering *lowering
	prover   *check.Prover
	layout   check.Layout
	known    solve.Known
	code     []instr
	steps    []step // of the executable that was made last

	// Of the first executable.
	firstCode []instr
	packing   *packing
}

func newStructure(p *ir.Program, o Options) *structure {
	s := &structure{program: p, types: ir.TypesOf(p), options: o, lowering: newLowering(p), prover: check.NewProver(p)}
	s.lowering.leastMemory, s.lowering.oneThread, s.lowering.apart = o.LeastMemory, o.Threads <= 1, o.Apart || o.Capacity != nil
	if o.Apart {
		s.lowering.joins = nil
	}
	if o.limits != nil {
		s.lowering.limits = *o.limits
	}
	s.weights = make([]*ir.Value, p.NumIDs())
	for _, v := range p.Weights {
		s.weights[v.ID] = v
	}
	s.layout.Values = make([]check.Position, p.NumIDs())
	for k := range s.lowering.calls {
		s.draws = s.draws || s.lowering.calls[k].Op.Impure
		s.lowering.fixed[k] = !slices.ContainsFunc(s.lowering.calls[k].Args, func(a ir.Operand) bool {
			return a.Value != nil && a.Value.Kind == ir.Weight && (o.Store == nil || !o.Store.Has(a.Value))
		})
	}
	return s
}

// compile makes the executable for the program's own types. The checker may
// have no proof for values with strides whose steps make no grid: those are not
// placed so in any executable of the structure.
func (s *structure) compile(ctx context.Context, types ir.Types, table ir.Weights) (*Executable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.compileOnce(ctx, types, table)
	violation := new(check.Violation)
	if errors.As(err, &violation) && s.options.limits == nil && s.lowering.hasMade(true) {
		if err := s.limitUnproved(ctx, types, table); err != nil {
			return nil, err
		}
		e, err = s.compileOnce(ctx, types, table)
	}
	if errors.As(err, &violation) && s.options.limits == nil && s.lowering.hasMade(true) {
		s.lowering.limits = limits{{strided: true, reason: unproved}}
		e, err = s.compileOnce(ctx, types, table)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (s *structure) compileOnce(ctx context.Context, types ir.Types, table ir.Weights) (*Executable, error) {
	e, err := s.lowerLeast(types, table)
	if err != nil {
		return nil, err
	}
	problem := s.lowering.problem()
	placed, err := s.placeFirst(ctx, problem)
	if err != nil {
		return nil, err
	}
	s.settle(e, placed)
	e.code = slices.Clone(e.code)
	ts := s.newTasks()
	ts.sigs.Set(types, ir.Known(table))
	if err := e.findPanels(ts); err != nil {
		return nil, err
	}
	s.firstCode, s.packing = e.code, e.packing
	return e, s.finish(e, ts)
}

// placeFirst places the values of the first executable.
func (s *structure) placeFirst(ctx context.Context, p *plan.Problem) (plan.Placement, error) {
	if s.options.Capacity != nil {
		return s.place(ctx, p)
	}
	placed, err := solve.Solve(ctx, p, s.solveOptions())
	if err == nil {
		s.known.Remember(p, placed)
	}
	return placed, err
}

func (s *structure) solveOptions() solve.Options { return solve.Options{Effort: s.options.Effort} }

// proved has the document of a new executable proved as well, in builds that
// check invariants.
func (e *Executable) proved() error {
	if !invariant.Enabled {
		return nil
	}
	_, err := e.Plan()
	return err
}

// lower begins an executable: its values have places, but not yet in the arena.
func (s *structure) lower(types ir.Types, table ir.Weights) (*Executable, error) {
	e := &Executable{Program: s.program, structure: s, types: types, weights: table}
	return e, s.lowering.lower(types, ir.Known(table))
}

// settle places the storages of the arena, and makes the code that a runner
// executes. The next call overwrites the code.
func (s *structure) settle(e *Executable, placed plan.Placement) {
	l := s.lowering
	l.settle(placed.Offsets)
	e.offsets, e.ArenaBytes = placed.Offsets, placed.Size
	e.resolve(l)
	e.code = s.code[:0]
	e.emit(l, s.program.Body, 0)
	e.emitOwn(l)
	s.code = e.code
}

// finish proves the executable, whose tasks are given.
func (s *structure) finish(e *Executable, ts *tasks) error {
	e.scratch = make([]int64, len(e.steps))
	for k, t := range ts.list {
		if t != nil {
			e.scratch[k] = int64(t.Scratch)
		}
	}
	if err := e.dynamicScratch(s.lowering); err != nil {
		return err
	}
	s.lay(e)
	e.ScratchBytes = s.layout.ScratchPerThread * int64(max(s.options.Threads, 1))
	if err := s.prover.Prove(e.types, &s.layout, e.weights); err != nil {
		return fmt.Errorf("BUG: the plan does not hold: %w", err)
	}
	if s.options.Capacity != nil {
		var err error
		if e.proof, err = s.prover.Figures(); err != nil {
			return err
		}
	}
	e.tasks.Store(ts)
	return nil
}

// lay writes down the numbers of the executable's plan.
func (s *structure) lay(e *Executable) {
	l := s.lowering
	s.layout.Scratch, s.layout.ArenaBytes = e.scratch, e.ArenaBytes
	s.layout.ScratchPerThread = 0
	for _, n := range e.scratch {
		s.layout.ScratchPerThread = max(s.layout.ScratchPerThread, n)
	}
	add := func(v *ir.Value) {
		at := &l.of(v).place
		to := &s.layout.Values[v.ID]
		*to = check.Position{Space: at.storage.space, Arg: at.storage.arg, Offset: at.offset + at.storage.start, Size: at.size}
		if at.layout != nil {
			to.Strides = at.layout.Strides()
		}
		if to.Space == plan.SpaceOwn {
			_, to.End = l.life(v)
		}
	}
	for _, v := range l.program.Body.Params {
		add(v)
	}
	for _, v := range l.program.Weights {
		add(v)
	}
	for _, v := range l.defs {
		add(v)
	}
}

// takeTasks returns tasks for a runner of the executable.
func (e *Executable) takeTasks() (*tasks, error) {
	if ts := e.tasks.Swap(nil); ts != nil {
		return ts, nil
	}
	ts := e.structure.free()
	return ts, e.bindAll(ts)
}

// maxUnused is the most tasks that are kept for later runners.
const maxUnused = 4

// free returns tasks that no runner has any more, or new ones.
func (s *structure) free() *tasks {
	s.freeMu.Lock()
	defer s.freeMu.Unlock()
	n := len(s.unused) - 1
	if n < 0 {
		return s.newTasks()
	}
	ts := s.unused[n]
	s.unused = s.unused[:n]
	return ts
}

// retire ends the runner. Its tasks serve another one.
func (r *Runner) retire() {
	r.End()
	s, ts := r.exe.structure, r.tasks
	for _, t := range ts.list {
		if t != nil {
			t.Begun = nil
			forget(t.Call.In)
			forget(t.Call.Out)
		}
	}
	clear(r.steps)
	ts.arena, ts.inputs, ts.outputs = r.arena, r.inputs, r.outputs
	*r = Runner{}
	s.yield(ts)
}

// yield keeps tasks that no runner has any more.
func (s *structure) yield(ts *tasks) {
	s.freeMu.Lock()
	defer s.freeMu.Unlock()
	if len(s.unused) < maxUnused {
		s.unused = append(s.unused, ts)
	}
}

// forget drops the bytes of operands or results.
func forget(list []op.Arg) {
	for i := range list {
		list[i].Data = nil
	}
}
