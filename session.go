package tenure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// Session runs a model. It keeps plans for the input shapes that it has seen,
// and one arena per concurrent run.
type Session struct {
	model *Model
	opts  sessionOptions
	pool  *compute.Pool
	slots chan *exec.Slot // free slots: as many as runs may be under way

	mu      sync.Mutex
	plans   []*cached // the one used last first
	epoch   int       // counts plans that left the cache
	running sync.WaitGroup
	closed  bool

	closing   sync.Once
	compiling chan struct{} // one compilation at a time; others find its plan afterwards
}

// cached is a plan and the key that it was made for. The key holds the
// shapes, so their pointers stay theirs.
type cached struct {
	shapes  []*shape.Shape
	donated []bool
	frozen  []frozen
	exe     *exec.Executable
}

// frozen is the value of an input that decides a shape: it is part of the key.
type frozen struct {
	input int
	bytes []byte
}

// NewSession makes a session on the model. The caller closes it.
func (m *Model) NewSession(opts ...SessionOption) (*Session, error) {
	o, err := configure(opts)
	if err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	if err := m.retain("new session"); err != nil {
		return nil, err
	}
	s := &Session{model: m, opts: o, pool: compute.NewPool(o.threads), slots: make(chan *exec.Slot, o.maxConcurrent),
		compiling: make(chan struct{}, 1)}
	for range o.maxConcurrent {
		s.slots <- &exec.Slot{}
	}
	return s, nil
}

// Model returns the session's model.
func (s *Session) Model() *Model {
	if s == nil {
		return nil
	}
	return s.model
}

// Plan says what a run with inputs of these shapes will take and keeps the
// plan for it: arena and scratch per concurrent run, inputs and outputs,
// weights.
func (s *Session) Plan(ctx context.Context, shapes Shapes) (*plan.Plan, error) {
	if err := s.admit("plan"); err != nil {
		return nil, err
	}
	defer s.running.Done()
	if err := ended.Missing(ctx); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	types, err := s.model.types(shapes)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	exe, err := s.executable(ctx, target{types: types, donated: make([]bool, len(types))})
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return exe.Plan, nil
}

// none reports whether the session is nil or zero, which is treated as closed.
func (s *Session) none() bool { return s == nil || s.model == nil }

// admit counts a run or the making of a plan, unless the session is closed.
func (s *Session) admit(what string) error {
	if s.none() {
		return fmt.Errorf("%s: got no session: %w", what, ErrClosed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("%s: the session is %w", what, ErrClosed)
	}
	s.running.Add(1)
	return nil
}

// Close refuses new runs, waits for those that have begun, and gives the arenas
// back. A second call waits for the same and returns nil.
func (s *Session) Close() (err error) {
	if s.none() {
		return nil
	}
	s.closing.Do(func() { err = s.close() })
	return err
}

func (s *Session) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	var errs []error
	for range s.opts.maxConcurrent {
		errs = append(errs, (<-s.slots).Release())
	}
	s.pool.Close()
	return errors.Join(append(errs, s.model.release())...)
}

// find returns the executable for the key and makes it the one used last.
func (s *Session) find(t target) *exec.Executable {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.plans {
		if !c.matches(t) {
			continue
		}
		copy(s.plans[1:i+1], s.plans[:i])
		s.plans[0] = c
		return c.exe
	}
	return nil
}

func (c *cached) matches(t target) bool {
	for i := range t.types {
		if c.shapes[i] != t.types[i].Shape || c.donated[i] != t.donated[i] {
			return false
		}
	}
	for _, f := range c.frozen {
		if t.value == nil || !bytes.Equal(f.bytes, t.value(f.input)) {
			return false
		}
	}
	return true
}

// executable returns the executable for a target, from the cache or compiled
// now.
func (s *Session) executable(ctx context.Context, t target) (*exec.Executable, error) {
	if exe := s.find(t); exe != nil {
		return exe, nil
	}
	select {
	case s.compiling <- struct{}{}:
		defer func() { <-s.compiling }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another plan to be made: %w", ended.Error(ctx))
	}
	if exe := s.find(t); exe != nil {
		return exe, nil
	}
	exe, deciding, err := s.model.compileAndPack(ctx, t, s.opts)
	if err != nil {
		return nil, err
	}
	c := &cached{donated: slices.Clone(t.donated), exe: exe}
	for _, typ := range t.types {
		c.shapes = append(c.shapes, typ.Shape)
	}
	for _, i := range deciding {
		c.frozen = append(c.frozen, frozen{i, bytes.Clone(t.value(i))})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = slices.Insert(s.plans, 0, c)
	if len(s.plans) > s.opts.plans {
		s.plans[s.opts.plans] = nil
		s.plans = s.plans[:s.opts.plans]
		s.epoch++
	}
	return exe, nil
}

// takeSlot waits for a free slot and drops its runners of plans that left.
func (s *Session) takeSlot(ctx context.Context) (*exec.Slot, error) {
	var slot *exec.Slot
	select {
	case slot = <-s.slots:
	default:
		select {
		case slot = <-s.slots:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for one of %d concurrent runs to end: %w", s.opts.maxConcurrent, ended.Error(ctx))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot.Keep(s.epoch, func(e *exec.Executable) bool {
		return slices.ContainsFunc(s.plans, func(c *cached) bool { return c.exe == e })
	})
	return slot, nil
}
