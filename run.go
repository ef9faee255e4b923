package tenure

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
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
func (s *Session) Run(ctx context.Context, in Inputs, opts ...RunOption) (out Outputs, err error) {
	if err := s.admit("run"); err != nil {
		return nil, err
	}
	defer s.running.Done()
	r := &running{session: s}
	defer func() { out, err = r.end(err) }()
	for i, f := range opts {
		if f == nil {
			return nil, nilOption("run", i)
		}
		f(&r.opts)
	}
	if err := r.takeInputs(ctx, in); err != nil {
		return nil, err
	}
	return nil, r.execute(ctx)
}

// PlanFor says what a run with these inputs will take and keeps the plan for
// it, as [Session.Plan] does for shapes alone. It serves models in which the
// value of an input decides a size, and inputs that are to be donated. It
// consumes nothing.
func (s *Session) PlanFor(ctx context.Context, in Inputs) (*plan.Plan, error) {
	if err := s.admit("plan"); err != nil {
		return nil, err
	}
	defer s.running.Done()
	r := &running{session: s}
	defer r.taken.Rollback()
	if err := r.takeInputs(ctx, in); err != nil {
		return nil, err
	}
	return r.exe.Plan, nil
}

// running is one call of Run, with all that it has taken until now.
type running struct {
	session  *Session
	taken    tensor.Taken
	operands []tensor.Operand
	donated  []bool
	opts     runOptions
	exe      *exec.Executable
	inputs   [][]byte
	outputs  []output
	slot     *exec.Slot
	runner   *exec.Runner
	step     string // that failed
	cause    error  // why
	done     bool   // nothing can fail any more
}

// end is the way out of every run: one that is done, one that was refused or
// failed, and one that panics or whose goroutine ends, which then goes on. It
// gives back the slot and what the run holds, and decides what becomes of the
// outputs and of the inputs that were given up.
func (r *running) end(err error) (Outputs, error) {
	wrote := false
	if r.runner != nil {
		wrote = r.runner.End()
	}
	if r.slot != nil {
		r.session.slots <- r.slot
	}
	for i := range r.outputs {
		r.outputs[i].bytes.Release()
	}
	if r.done {
		return r.results(), nil
	}
	for i := range r.outputs {
		if o := &r.outputs[i]; o.t != nil && !o.lent && o.input < 0 {
			_ = o.t.Release() // nobody else knows it; one in an input's bytes ends with the taking
		}
	}
	if !wrote {
		r.taken.Rollback()
		return nil, err
	}
	return nil, r.taken.Fail(r.step, r.cause)
}

// execute waits for a slot, runs, and makes the results ready to be handed over.
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

func (r *running) runProgram(ctx context.Context) (err error) {
	if r.slot, err = r.session.takeSlot(ctx); err != nil {
		return err
	}
	if r.runner, err = r.slot.Runner(r.exe); err != nil {
		return err
	}
	outputs := make([][]byte, len(r.outputs))
	for i := range r.outputs {
		outputs[i] = r.outputs[i].bytes.Data
	}
	r.runner.Watch = r.opts.watch
	if err := r.runner.Run(r.session.pool, ctx.Done(), r.inputs, outputs); err != nil {
		if errors.Is(err, compute.ErrStopped) {
			return fmt.Errorf("%w: %w", err, ended.Error(ctx))
		}
		return err
	}
	return nil
}

// results ends the inputs that were given up and hands the outputs over.
func (r *running) results() Outputs {
	out := make(Outputs, len(r.outputs))
	for i := range r.outputs {
		if o := &r.outputs[i]; !o.lent {
			out[r.session.model.outputs[i].Name] = o.t
		}
	}
	r.taken.Commit()
	return out
}
