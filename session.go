package tenure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/plan"
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
	ended   []*running // runs that have ended, for the next ones: at most as many as may be under way
	stats   SessionStats
	closed  bool

	drawing   atomic.Uint64 // counts runs that draw random numbers
	closing   sync.Once
	compiling chan struct{} // one compilation at a time; others find its plan afterwards
	warming   chan struct{} // one Prepare at a time has slots
}

// NewSession makes a session on the model. The caller closes it. With bounds
// ([WithUpTo]) it proves the plans of all sizes and takes their memory.
func (m *Model) NewSession(opts ...SessionOption) (*Session, error) {
	o, err := configure(opts)
	if err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	if err := m.retain("new session"); err != nil {
		return nil, err
	}
	if len(o.bounds) > 0 {
		if o.promise, err = m.promise(context.Background(), o); err != nil {
			return nil, errors.Join(fmt.Errorf("new session: %w", err), m.release())
		}
	}
	s := &Session{model: m, opts: o, pool: compute.NewPool(o.threads), slots: make(chan *exec.Slot, o.maxConcurrent),
		compiling: make(chan struct{}, 1), warming: make(chan struct{}, 1)}
	for range o.maxConcurrent {
		slot := &exec.Slot{}
		s.slots <- slot
		if p := o.promise; p != nil && !o.giveBack {
			err = errors.Join(err, slot.Reserve(p.figures.Arena.Bytes, p.figures.Scratch.Bytes))
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new session: %w", err), s.Close())
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

// Plan returns the plan of runs with inputs of these shapes and keeps it for
// them. It states the bytes of arena and scratch per concurrent run, of inputs
// and outputs, and of weights.
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
	return s.model.planOf(exe)
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

// begin counts a run, unless the session is closed, and returns one that leave
// ends.
func (s *Session) begin(what string) (*running, error) {
	if err := s.admit(what); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.ended); n > 0 {
		r := s.ended[n-1]
		s.ended[n-1], s.ended = nil, s.ended[:n-1]
		return r, nil
	}
	return newRunning(s), nil
}

// leave ends what begin began.
func (s *Session) leave(r *running) {
	r.forget()
	s.mu.Lock()
	if len(s.ended) < s.opts.maxConcurrent {
		s.ended = append(s.ended, r)
	}
	s.mu.Unlock()
	s.running.Done()
}

// Close refuses new runs, waits for those that have begun, and frees the
// arenas. A second call waits for the same and returns nil.
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

// Trim returns the arenas that no run uses to the system, and reports the
// number of their bytes: the next run of each takes an arena again. A session
// with bounds ([WithUpTo]) keeps them, unless it has [WithGiveBack].
func (s *Session) Trim() (bytes int64) {
	if s.admit("trim") != nil {
		return 0
	}
	defer s.running.Done()
	var free []*exec.Slot
	for range s.opts.maxConcurrent {
		select {
		case slot := <-s.slots:
			bytes += slot.Trim()
			free = append(free, slot)
		default:
		}
	}
	for _, slot := range free {
		s.slots <- slot
	}
	return bytes
}
