package tenure

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure/tensor"
)

// Binding runs a session again and again, with inputs and outputs by position
// and one set of results, which each run overwrites. A run of shapes that the
// binding's last run had allocates nothing.
//
// The tensors of the set are the binding's. A result whose bytes the caller, or
// a tensor over the same bytes, still uses when the next run begins is not
// overwritten: a new tensor takes its place, and the old one ends with its last
// use. So does a result of another shape.
//
// A binding serves one call at a time; another one meanwhile is [ErrBusy]. Many
// bindings may share a session.
type Binding struct {
	run    *running
	opts   runOptions       // of every run
	out    []*tensor.Tensor // the set: nil where there is no result yet
	lent   []bool           // the caller's own, given with Into
	busy   atomic.Bool
	closed bool
}

// Bind returns a binding of the session, with options for all of its runs. The
// caller closes it.
func (s *Session) Bind(opts ...RunOption) (*Binding, error) {
	if err := s.admit("bind"); err != nil {
		return nil, err
	}
	defer s.running.Done()
	n := len(s.model.outputs)
	b := &Binding{run: newRunning(s), out: make([]*tensor.Tensor, n), lent: make([]bool, n)}
	if err := b.run.configure("bind", opts); err != nil {
		return nil, err
	}
	for i := range b.out {
		b.out[i] = b.run.outputs[i].into
		b.lent[i] = b.out[i] != nil
	}
	b.opts = b.run.opts
	b.run.forget()
	return b, nil
}

// Run runs the model on inputs in the order of [Model.Inputs], which are
// borrowed or given up as in [Session.Run]. It returns the results in the order
// of [Model.Outputs]. They, and the slice, are the binding's: they are valid
// until its next run, and are not released by the caller.
//
// A result that is donated to the run, and in whose bytes the result of the
// same position comes back, stays the same tensor. That is how a state lives on
// from run to run:
//
//	out, err := b.Run(ctx, x, state.Donate())    // the first state is the caller's
//	out, err = b.Run(ctx, x, out[1].Donate())
//
// A run that fails leaves the set as it was, but for the contents of tensors
// that it had begun to write, and for donated ones that are dead
// ([ErrPartlyWritten]).
func (b *Binding) Run(ctx context.Context, in ...tensor.Operand) ([]*tensor.Tensor, error) {
	if err := b.begin("run"); err != nil {
		return nil, err
	}
	defer b.busy.Store(false)
	r := b.run
	if err := r.session.admit("run"); err != nil {
		return nil, err
	}
	defer r.session.running.Done()
	defer r.forget()
	if err := r.byPosition(in); err != nil {
		return nil, err
	}
	r.opts = b.opts
	for i, t := range b.out {
		r.outputs[i].into, r.outputs[i].again = t, !b.lent[i]
	}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	for i := range b.out {
		if o := &r.outputs[i]; !o.lent {
			b.drop(i)
			b.out[i] = o.t
		}
	}
	return b.out, nil
}

// Into makes runs write output i into t until another call says otherwise,
// under the conditions of [Into]. t stays the caller's. A nil t makes the
// output a tensor of the binding again.
func (b *Binding) Into(i int, t *tensor.Tensor) error {
	if err := b.begin("into"); err != nil {
		return err
	}
	defer b.busy.Store(false)
	if err := b.check("into", i); err != nil {
		return err
	}
	if t != nil && t.Layout() == nil {
		return fmt.Errorf("binding: into: output %q: got %w: %w", b.run.session.model.outputs[i].Name, ErrNoTensor, ErrInput)
	}
	b.drop(i)
	b.out[i], b.lent[i] = t, t != nil
	return nil
}

// Take takes result i out of the set: it is the caller's to release, and the
// next run makes another tensor. The error is [ErrNoTensor] if there is no
// result, and ErrInput for an output that was given with Into, which is the
// caller's.
func (b *Binding) Take(i int) (*tensor.Tensor, error) {
	if err := b.begin("take"); err != nil {
		return nil, err
	}
	defer b.busy.Store(false)
	if err := b.check("take", i); err != nil {
		return nil, err
	}
	t, name := b.out[i], b.run.session.model.outputs[i].Name
	switch {
	case t == nil:
		return nil, fmt.Errorf("binding: take: got %w of output %q: no run has made one", ErrNoTensor, name)
	case b.lent[i]:
		return nil, fmt.Errorf("binding: take: output %q is written into a tensor of the caller: %w", name, ErrInput)
	}
	b.out[i] = nil
	return t, nil
}

// Close releases the results. It does not close the session. A second call
// returns nil.
func (b *Binding) Close() error {
	if b == nil || b.run == nil {
		return nil
	}
	if !b.busy.CompareAndSwap(false, true) {
		return errBusy("close")
	}
	defer b.busy.Store(false)
	b.closed = true
	var errs []error
	for i, t := range b.out {
		if t != nil && !b.lent[i] && t.Alive() {
			errs = append(errs, t.Release())
		}
		b.out[i] = nil
	}
	return errors.Join(errs...)
}

// begin makes the binding the caller's alone until busy is false again.
func (b *Binding) begin(what string) error {
	if b == nil || b.run == nil {
		return fmt.Errorf("binding: %s: got no binding: %w", what, ErrClosed)
	}
	if !b.busy.CompareAndSwap(false, true) {
		return errBusy(what)
	}
	if b.closed {
		b.busy.Store(false)
		return fmt.Errorf("binding: %s: the binding is %w", what, ErrClosed)
	}
	return nil
}

func errBusy(what string) error {
	return fmt.Errorf("binding: %s: the binding is %w: use one binding for each goroutine", what, ErrBusy)
}

// check returns an error for an output that the model does not have.
func (b *Binding) check(what string, i int) error {
	if i < 0 || i >= len(b.out) {
		infos := b.run.session.model.outputs
		return fmt.Errorf("binding: %s: got output %d, want 0 to %d (%s): %w", what, i, len(infos)-1, names(infos), ErrInput)
	}
	return nil
}

// drop releases the binding's tensor of output i, if it has one that has not
// been given up.
func (b *Binding) drop(i int) {
	if t := b.out[i]; t != nil && !b.lent[i] && t.Alive() {
		_ = t.Release() // ours: only the caller could have released it meanwhile
	}
	b.out[i] = nil
}
