package tenure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// Run runs the model. It takes what [Session.Plan] promises for the inputs'
// shapes and may be called from many goroutines.
//
// A borrowed input is only read. A donated one is given up: the run uses its
// bytes for some value of the program, and a state that comes out with the type
// and shape that it went in with comes back in the same bytes; one that is the
// result of a branch whose regions return two shapes is copied once. If the
// bytes cannot be used, the call is an error that says why, before anything
// runs. A reused input is given up too, and overwritten if that is possible.
//
// When ctx ends, the run stops between two steps or between the parts of one. A
// run that stops or fails has consumed nothing, unless it had already written
// into an input that was given up: then all inputs that were given up are dead,
// and the error is [ErrPartlyWritten], with the step. Where the caller's own
// code panics, such as a function given with [Watch], the run ends in the same
// way and the panic goes on. A tensor given with [Into] is the caller's again
// after every run; after one that failed its contents are undefined.
func (s *Session) Run(ctx context.Context, in Inputs, opts ...RunOption) (Outputs, error) {
	r, err := s.begin("run")
	if err != nil {
		return nil, err
	}
	defer s.leave(r)
	if err := r.configure("run", opts); err != nil {
		return nil, err
	}
	if err := r.byName(in); err != nil {
		return nil, err
	}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r.newOutputs(), nil
}

// RunInto is [Session.Run] with inputs and outputs by position, in the order of
// [Model.Inputs] and [Model.Outputs]. An output whose tensor is in out is
// written into it, as [Into] says; where out has nil the run makes a tensor,
// and sets it there. A run that fails leaves out as it was.
//
// So the tensors that one run has made are those that the next one writes into:
// then the run allocates nothing. A session makes a tensor for outputs of
// another shape only where out has nil; [Session.Bind] does so by itself.
func (s *Session) RunInto(ctx context.Context, in []tensor.Operand, out []*tensor.Tensor, opts ...RunOption) error {
	r, err := s.begin("run")
	if err != nil {
		return err
	}
	defer s.leave(r)
	if err := r.configure("run", opts); err != nil {
		return err
	}
	if err := r.byPosition(in); err != nil {
		return err
	}
	if err := r.into(out); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	for i := range out {
		if !r.outputs[i].lent {
			out[i] = r.outputs[i].t
		}
	}
	return nil
}

// PlanFor returns the plan of a run with these inputs and keeps it for that
// run, as [Session.Plan] does for shapes alone. It is for models in which the
// value of an input decides a size, and for inputs that are to be donated. It
// consumes nothing.
func (s *Session) PlanFor(ctx context.Context, in Inputs) (*plan.Plan, error) {
	r, err := s.begin("plan")
	if err != nil {
		return nil, err
	}
	defer s.leave(r)
	if err := r.byName(in); err != nil {
		return nil, err
	}
	defer r.taken.Rollback()
	if err := r.takeInputs(ctx); err != nil {
		return nil, err
	}
	return s.model.planOf(r.exe)
}

// running is one run, with all that it has taken until now. A session keeps
// those that have ended for its next runs.
type running struct {
	session   *Session
	operands  []tensor.Operand // in the order of the model's inputs, as the rest
	taken     tensor.Taken
	types     []op.Type
	donated   []bool
	packed    []*tensor.Tensor // inputs that are copies of elements of sequences
	inputs    [][]byte
	input     func(i int) []byte // reads inputs
	opts      runOptions
	exe       *exec.Executable
	unplanned bool // the session has no plan for the types
	outputs   []output
	results   [][]byte // the bytes of the outputs
	slot      *exec.Slot
	runner    *exec.Runner
	step      string // that failed
	cause     error  // why
	done      bool   // nothing can fail any more
	profile   *profiledRun
	states    keeper // of inputs and outputs, nil for none
}

// keeper keeps inputs and outputs of runs: a [States] or a [StatePool].
type keeper interface {
	admit(r *running) error  // once the plan is known, before anything is written
	survive(r *running) bool // after a failure: whether nothing that was given up is lost
}

func newRunning(s *Session) *running {
	in, out := len(s.model.inputs), len(s.model.outputs)
	r := &running{session: s, operands: make([]tensor.Operand, in), types: make([]op.Type, in), donated: make([]bool, in),
		inputs: make([][]byte, in), outputs: make([]output, out), results: make([][]byte, out)}
	r.input = func(i int) []byte { return r.inputs[i] }
	return r
}

// forget makes a run that has ended one that has not begun: it keeps nothing of
// the caller's.
func (r *running) forget() {
	r.taken.Clear()
	for i, t := range r.packed {
		_ = t.Release() // no other code knows it
		r.packed[i] = nil
	}
	r.packed = r.packed[:0]
	clear(r.operands)
	clear(r.inputs)
	clear(r.outputs)
	clear(r.results)
	r.opts, r.exe, r.slot, r.runner = runOptions{}, nil, nil, nil
	r.step, r.cause, r.done, r.profile, r.states, r.unplanned = "", nil, false, nil, nil, false
}

// configure applies the options of the run, and finds the outputs that they
// name.
func (r *running) configure(what string, opts []RunOption) error {
	for i, f := range opts {
		if f == nil {
			return nilOption(what, i)
		}
		f(&r.opts)
	}
	for _, into := range r.opts.into {
		i := r.session.model.output(into.name)
		if i < 0 {
			return fmt.Errorf("%s: Into(%q): want one of the model's outputs %s: %w", what, into.name, names(r.session.model.outputs), ErrInput)
		}
		if into.t.Layout() == nil {
			return fmt.Errorf("%s: Into(%q): got %w: %w", what, into.name, ErrNoTensor, ErrInput)
		}
		if r.outputs[i].into != nil {
			return fmt.Errorf("%s: Into(%q): the output is given twice: %w", what, into.name, ErrInput)
		}
		r.outputs[i].into = into.t
	}
	return nil
}

// run runs the model, from the inputs to the outputs.
func (r *running) run(ctx context.Context) (err error) {
	defer func() { err = r.end(err) }()
	if err := r.takeInputs(ctx); err != nil {
		return err
	}
	if r.states != nil {
		if err := r.states.admit(r); err != nil {
			return err
		}
	}
	if p := r.opts.profile; p != nil {
		if r.profile, err = p.begin(r.session.model, r.exe); err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}
	return r.execute(ctx)
}

// end is the way out of every run: one that is done, one that was refused or
// failed, and one that panics or whose goroutine ends, which then goes on. It
// releases the slot and the run's holds, and decides the fate of the outputs
// and of the inputs that were given up.
func (r *running) end(err error) error {
	wrote := false
	if r.runner != nil {
		wrote = r.runner.End()
	}
	if r.slot != nil {
		r.session.slots <- r.slot
	}
	if r.profile != nil {
		r.profile.end()
	}
	for i := range r.outputs {
		r.outputs[i].bytes.Release()
	}
	if r.done {
		r.taken.Commit() // ends the inputs that were given up
		return nil
	}
	for i := range r.outputs {
		if o := &r.outputs[i]; o.t != nil && !o.lent && o.input < 0 {
			_ = o.t.Release() // no other code knows it; one in an input's bytes ends with the taking
		}
	}
	if !wrote || r.states != nil && r.states.survive(r) {
		r.taken.Rollback()
		return err
	}
	return r.taken.Fail(r.step, r.cause)
}

// execute waits for a slot, runs, and makes the results ready to be handed
// over.
func (r *running) execute(ctx context.Context) error {
	if err := r.takeOutputs(); err != nil {
		return err
	}
	if r.cause = r.runProgram(ctx); r.cause != nil {
		var part *exec.PartError
		if errors.As(r.cause, &part) {
			r.step = part.Step()
		}
		return fmt.Errorf("run: %w", r.cause)
	}
	for i := range r.outputs {
		if r.cause = r.complete(i); r.cause != nil {
			r.step = fmt.Sprintf("handing over output %q", r.session.model.outputs[i].Name)
			return fmt.Errorf("run: %s: %w", r.step, r.cause)
		}
	}
	r.done = true
	return nil
}

// watch is called after every step of the runner, if the caller asked for it.
func (r *running) watch(k int, start time.Time, took time.Duration) {
	if r.profile != nil {
		r.profile.add(r.runner, k, start, took)
	}
	if r.opts.watch != nil {
		r.opts.watch(r.exe.Call(k), took)
	}
}

func (r *running) runProgram(ctx context.Context) (err error) {
	if r.slot, err = r.session.takeSlot(ctx); err != nil {
		return err
	}
	if r.runner, err = r.slot.Runner(r.exe); err != nil {
		return err
	}
	for i := range r.outputs {
		r.results[i] = r.outputs[i].bytes.Data
	}
	if r.opts.watch != nil || r.profile != nil {
		r.runner.Watch = r.watch
	}
	if r.exe.Draws() {
		r.runner.Draws = op.Draws{Seed: r.session.opts.seed, Run: r.session.drawing.Add(1) - 1}
	}
	if err := r.runner.Run(r.session.pool, ctx.Done(), r.inputs, r.results); err != nil {
		if errors.Is(err, compute.ErrStopped) {
			return fmt.Errorf("%w: %w", err, ended.Error(ctx))
		}
		return err
	}
	return nil
}
