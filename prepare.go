package tenure

import (
	"context"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
)

// Prepare makes the session ready for runs with inputs of these shapes, so that
// the first of them takes as long as the others: it makes the plans, packs the
// weights, binds the kernels for every concurrent run, and touches the pages of
// the arenas and of the weights. Later runs of these shapes compile nothing,
// see [Session.Stats]. Arenas have the size of the first plan until another one
// runs.
//
// Each of shapes is a set as of [Session.Plan]; none stands for the declared
// ones. More sets than the session keeps plans ([WithPlans]) are ErrInput.
// Inputs that runs give up, or whose values decide a size, have plans of their
// own: [Session.PrepareFor]. Prepare waits for runs under way, and runs wait
// for it.
func (s *Session) Prepare(ctx context.Context, shapes ...Shapes) error {
	if len(shapes) == 0 {
		shapes = []Shapes{nil}
	}
	return s.prepare(ctx, len(shapes), func(i int) (*exec.Executable, error) {
		types, err := s.model.types(shapes[i])
		if err != nil {
			return nil, err
		}
		return s.executable(ctx, target{types: types, donated: make([]bool, len(types))})
	})
}

// PrepareFor is [Session.Prepare] for runs with inputs like these, given up
// where these are. It consumes nothing.
func (s *Session) PrepareFor(ctx context.Context, in ...Inputs) error {
	return s.prepare(ctx, len(in), func(i int) (*exec.Executable, error) {
		r, err := s.begin("prepare")
		if err != nil {
			return nil, err
		}
		defer s.leave(r)
		if err := r.byName(in[i]); err != nil {
			return nil, err
		}
		defer r.taken.Rollback()
		if err := r.takeInputs(ctx); err != nil {
			return nil, err
		}
		return r.exe, nil
	})
}

// prepare makes n plans, the first one last, and warms every slot for them.
func (s *Session) prepare(ctx context.Context, n int, plan func(i int) (*exec.Executable, error)) error {
	if err := s.admit("prepare"); err != nil {
		return err
	}
	defer s.running.Done()
	if err := ended.Missing(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if n > s.opts.plans {
		return fmt.Errorf("prepare: got %d sets of shapes, want at most the %d plans that the session keeps (WithPlans): %w", n, s.opts.plans, ErrInput)
	}
	exes := make([]*exec.Executable, n)
	for i := n - 1; i >= 0; i-- {
		var err error
		if exes[i], err = plan(i); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	return s.warm(ctx, exes)
}

// warm warms every slot, each as soon as it is free. Others wait meanwhile: two
// that each had some of the slots would wait for each other.
func (s *Session) warm(ctx context.Context, exes []*exec.Executable) error {
	select {
	case s.warming <- struct{}{}:
		defer func() { <-s.warming }()
	case <-ctx.Done():
		return fmt.Errorf("prepare: waiting for another call: %w", ended.Error(ctx))
	}
	var slots []*exec.Slot
	defer func() {
		for _, slot := range slots {
			s.slots <- slot
		}
	}()
	for range s.opts.maxConcurrent {
		slot, err := s.takeSlot(ctx)
		if err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		slots = append(slots, slot)
		for _, exe := range slices.Backward(exes) {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("prepare: %w", ended.Error(ctx))
			}
			if err := slot.Warm(exe); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
		}
	}
	return nil
}

// SessionStats are counts of a session's work since it was made.
type SessionStats struct {
	Compiled  int64 // plans that were compiled
	Found     int64 // runs, and other calls for a plan, that found theirs
	Plans     int   // that are kept now
	Forgotten int64 // plans that others took the place of (WithPlans)
}

// Stats returns the counts. It may be called from any goroutine, also on a
// session that is closed.
func (s *Session) Stats() SessionStats {
	if s.none() {
		return SessionStats{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.stats
	f.Plans, f.Forgotten = len(s.plans), int64(s.epoch)
	return f
}
