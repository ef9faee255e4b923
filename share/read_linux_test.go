package share

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// watchedContext counts the functions that its end calls.
type watchedContext struct {
	context.Context
	now, ever atomic.Int32
}

// AfterFunc is what package context calls for contexts that have it.
func (c *watchedContext) AfterFunc(f func()) func() bool {
	c.now.Add(1)
	c.ever.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		c.now.Add(-1)
		return stop()
	}
}

// Value hides that a context of package context is within, which AfterFunc
// would be told of instead.
func (c *watchedContext) Value(any) any { return nil }

// TestWatchedContext: the end of a context ends the wait that is under way with
// it, and the connection drops the context when no goroutine waits for a while,
// or one waits with another context.
func TestWatchedContext(t *testing.T) {
	a, b := twoEnds(t)
	x := build(t, a.o, 4)
	defer mustRelease(t, x)
	once := &watchedContext{Context: t.Context()}
	received := make(chan error)
	go func() {
		r, err := b.Receive(once)
		if err == nil {
			err = r.Tensor.Release()
		}
		received <- err
	}()
	untilTrue(t, "a wait watches its context", func() bool { return once.now.Load() == 1 })
	if err := a.Offer(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	untilTrue(t, "no goroutine waits, and the context is not watched", func() bool { return once.now.Load() == 0 })

	inner, cancel := context.WithCancel(t.Context())
	ctx := &watchedContext{Context: inner}
	ended := make(chan error)
	go func() {
		_, err := b.Receive(ctx)
		ended <- err
	}()
	untilTrue(t, "the wait has begun", func() bool { return ctx.now.Load() == 1 && b.reading.parked.Load() })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	// The end of a context that is watched still, and over, harms no wait with
	// another.
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := b.Receive(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
	if err := a.Offer(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, ok(b.Receive(t.Context()))(t).Tensor)
	if n := ctx.ever.Load(); n != 1 {
		t.Errorf("a context was watched %d times for one wait, want once", n)
	}
}
