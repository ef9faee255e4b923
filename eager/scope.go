package eager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Scope is a run of operations whose results belong to it: they are released
// when it closes, unless Keep moved them out or they were given up before. It
// keeps the first error; after it every operation returns nil and does nothing.
// A Scope belongs to one goroutine.
type Scope struct {
	from   memory.Source
	keep   KeepPolicy
	ctx    context.Context // nil for none
	owned  []*tensor.Tensor
	sweep  int // how many are owned when those that died are next looked for
	err    error
	closed bool
	stats  Stats
	byName map[string]*Stats // nil unless asked for
}

// Stats counts how operations used the bytes of their operands.
type Stats struct {
	Calls        int   `json:"calls"`         // operations that succeeded
	InPlace      int   `json:"in_place"`      // results in the bytes of an operand that was given up
	Fresh        int   `json:"fresh"`         // results in bytes of their own
	Views        int   `json:"views"`         // results that show an operand's bytes
	FreshBytes   int64 `json:"fresh_bytes"`   // bytes of those in bytes of their own
	CopiedBytes  int64 `json:"copied_bytes"`  // bytes of operands that were copied to lie in row-major order
	ReadBytes    int64 `json:"read_bytes"`    // bytes of the operands of computed operations; a view computes nothing
	WrittenBytes int64 `json:"written_bytes"` // bytes of its results
}

func (s *Stats) add(call *Stats) {
	s.Calls += call.Calls
	s.InPlace += call.InPlace
	s.Fresh += call.Fresh
	s.Views += call.Views
	s.FreshBytes += call.FreshBytes
	s.CopiedBytes += call.CopiedBytes
	s.ReadBytes += call.ReadBytes
	s.WrittenBytes += call.WrittenBytes
}

// MovedBytes is all that was read, written or copied, a copy read and written.
func (s *Stats) MovedBytes() int64 {
	if s == nil {
		return 0
	}
	return s.ReadBytes + s.WrittenBytes + 2*s.CopiedBytes
}

// OperationStats are the statistics of one operation.
type OperationStats struct {
	Operation string `json:"operation"`
	Stats
}

// Option configures a scope.
type Option func(*Scope)

// KeepPolicy selects what Keep does with a tensor whose bytes are from the
// scope's own source.
type KeepPolicy uint8

// The policies.
const (
	CopyOut  KeepPolicy = iota // the tensor is copied into the process's memory, so that the source can end
	HoldOpen                   // the tensor stays where it is; the source cannot end while it lives
)

// From makes fresh results take their bytes from src, an arena for instance.
// What Keep does with them is told by keep.
func From(src memory.Source, keep KeepPolicy) Option {
	return func(s *Scope) { s.from, s.keep = src, keep }
}

// WithContext makes operations stop between the parts of their work when ctx
// ends.
func WithContext(ctx context.Context) Option {
	return func(s *Scope) { s.ctx = ctx }
}

// ByOperation makes the scope keep the counts of [Stats] for each operation
// too, for [Scope.Operations].
func ByOperation() Option {
	return func(s *Scope) { s.byName = map[string]*Stats{} }
}

// NewScope returns an empty scope. Close ends it. A nil option is an error of
// the scope.
func NewScope(options ...Option) *Scope {
	s := &Scope{sweep: 32}
	for i, o := range options {
		if o == nil {
			s.fail(fmt.Errorf("new scope: option %d is nil", i))
			continue
		}
		o(s)
	}
	return s
}

// Err returns the first error of the scope's operations.
func (s *Scope) Err() error {
	if s == nil {
		return errNoScope
	}
	return s.err
}

// Stats returns the counts of the operations so far: calls, results and bytes.
func (s *Scope) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	return s.stats
}

// Operations returns the counts of each operation so far, those that moved most
// bytes first. The scope counts by operation if it was made with [ByOperation].
func (s *Scope) Operations() []OperationStats {
	if s == nil {
		return nil
	}
	all := make([]OperationStats, 0, len(s.byName))
	for name, stats := range s.byName {
		all = append(all, OperationStats{name, *stats})
	}
	slices.SortFunc(all, func(a, b OperationStats) int {
		return cmp.Or(cmp.Compare(b.MovedBytes(), a.MovedBytes()), cmp.Compare(a.Operation, b.Operation))
	})
	return all
}

// count adds the statistics of one call of the operation.
func (s *Scope) count(name string, call *Stats) {
	s.stats.add(call)
	if s.byName == nil {
		return
	}
	of := s.byName[name]
	if of == nil {
		of = &Stats{}
		s.byName[name] = of
	}
	of.add(call)
}

// fail keeps the first error.
func (s *Scope) fail(err error) {
	if s != nil && s.err == nil {
		s.err = err
	}
}

// errNoScope is the error of a nil scope, whose operations do nothing.
var errNoScope = fmt.Errorf("got no scope, want one of NewScope: %w", tensor.ErrReleased)

var errClosed = fmt.Errorf("scope is closed: %w", tensor.ErrReleased)

// ready reports whether operations still do something.
func (s *Scope) ready(c *call) bool {
	if s == nil {
		return false
	}
	if s.closed {
		s.fail(fmt.Errorf("%s: %w", c.op.def.Name, errClosed))
	}
	return s.err == nil
}

func (s *Scope) one(c call) *tensor.Tensor {
	if !s.ready(&c) {
		return nil
	}
	t, err := one(s, c)
	return s.own(t, err)
}

func (s *Scope) many(c call) []*tensor.Tensor {
	if !s.ready(&c) {
		return nil
	}
	ts, err := many(s, c)
	for _, t := range ts {
		s.own(t, nil)
	}
	s.failIf(err)
	return ts
}

func (s *Scope) two(c call) (x, y *tensor.Tensor) {
	if ts := s.many(c); ts != nil {
		return ts[0], ts[1]
	}
	return nil, nil
}

func (s *Scope) failIf(err error) {
	if err != nil {
		s.fail(err)
	}
}

// own makes t the scope's, if there is no error.
func (s *Scope) own(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		s.fail(err)
		return nil
	}
	if len(s.owned) >= s.sweep {
		// A chain of operations in place leaves a dead tensor per step.
		s.owned = slices.DeleteFunc(s.owned, func(t *tensor.Tensor) bool { return !t.Alive() })
		s.sweep = max(32, 2*len(s.owned))
	}
	s.owned = append(s.owned, t)
	return t
}

// Adopt makes a tensor of the caller's the scope's: it is released when the
// scope closes. It takes the two results of what made the tensor, so that the
// scope keeps the error too.
func (s *Scope) Adopt(t *tensor.Tensor, err error) *tensor.Tensor {
	if s == nil || s.err != nil || s.closed {
		if t != nil {
			_ = t.Release()
		}
		if s != nil && s.closed {
			s.fail(fmt.Errorf("adopt: %w", errClosed))
		}
		return nil
	}
	if err == nil && t == nil {
		err = fmt.Errorf("adopt: got %w", tensor.ErrNoTensor)
	}
	return s.own(t, err)
}

// Keep moves a tensor out of the scope: from now on the caller releases what
// Keep returns. A tensor that lies in bytes of the scope's own source is copied
// out of it, or holds it open, as the scope was told. It is an error if the
// tensor is not the scope's.
func (s *Scope) Keep(t *tensor.Tensor) *tensor.Tensor {
	if s == nil {
		return nil
	}
	if s.err != nil || s.closed {
		if s.closed {
			s.fail(fmt.Errorf("keep: %w", errClosed))
		}
		return nil
	}
	at := -1
	for i := len(s.owned) - 1; i >= 0 && at < 0; i-- {
		if s.owned[i] == t {
			at = i
		}
	}
	if at < 0 || !t.Alive() {
		s.fail(fmt.Errorf("keep: got a tensor that the scope does not own, want one of its results that is alive: %w", tensor.ErrReleased))
		return nil
	}
	if s.from != nil && s.keep == CopyOut {
		c, err := one(nil, unary(opCopy, t)) // the scope goes on owning t
		s.failIf(err)
		return c
	}
	s.owned = slices.Delete(s.owned, at, at+1)
	return t
}

// Close releases the tensors that the scope still owns, and returns the first
// error of its operations. A second call releases nothing.
func (s *Scope) Close() error {
	if s == nil {
		return errNoScope
	}
	for _, t := range s.owned {
		if err := t.Release(); err != nil && !errors.Is(err, tensor.ErrDonated) && !errors.Is(err, tensor.ErrReleased) {
			s.fail(err)
		}
	}
	s.owned, s.closed = nil, true
	return s.err
}
