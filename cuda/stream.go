package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/memory"
)

// Stream is a queue of work of a device: work on one stream runs in the order
// in which it was submitted.
type Stream struct {
	d      *Device
	handle driver.Stream
	ours   bool // made by NewStream, so that Close destroys it

	mu     sync.Mutex
	closed bool
	waited map[source]uint64 // the work of other streams that this one has been told to wait for

	submitted atomic.Uint64 // pieces of work so far; the number of the last one
	completed atomic.Uint64 // all work up to this number is known to be complete

	event    sync.Mutex // guards the fields below, and is taken after mu of any stream
	marker   driver.Event
	recorded uint64       // marker completes when all work up to this number has
	shared   *sharedEvent // the marker for other processes; nil before the first tensor that they get
}

// stamp is a piece of work: where it is done and its number there. The zero
// stamp is no work.
type stamp struct {
	s  source
	at uint64
}

// source does work: a stream of this process, or an event of another.
type source interface {
	// done returns the number up to which all work is known to be complete.
	done() uint64
	// precede makes later work of a stream of d, which another library may have
	// made, wait for the work up to the number at, and returns up to which
	// number it does; 0 if nothing waits, because the work is complete. The
	// caller has the lock of a Stream that is on h.
	precede(d *Device, h driver.Stream, at uint64) (uint64, error)
	// isComplete reports whether the work up to the number at is complete,
	// without waiting for it.
	isComplete(at uint64) (bool, error)
	// fail is the error of a wait for the work.
	fail(op string, err error) error
}

// streams counts the open streams of the device.
func (d *Device) streams() int { return int(d.limbo.streams.Load()) }

// NewStream returns a new stream, which does not wait for the default stream of
// other libraries. The caller closes it.
func (d *Device) NewStream() (*Stream, error) {
	if err := d.usable("new stream"); err != nil {
		return nil, err
	}
	h, err := d.drv.StreamCreate(d.ctx, driver.StreamNonBlocking, 0)
	if err != nil {
		return nil, d.fail("new stream", err)
	}
	return d.stream(h, true)
}

// Foreign returns a Stream for a stream that another library made, such as
// PyTorch's current one: its CUstream as a number, or 1 for the legacy default
// stream and 2 for the default stream of the calling thread. That library keeps
// it open until the caller has closed the result.
func (d *Device) Foreign(handle uintptr) (*Stream, error) {
	if err := d.usable("foreign stream"); err != nil {
		return nil, err
	}
	if handle == 0 {
		handle = uintptr(driver.LegacyStream)
	}
	return d.stream(driver.Stream(handle), false)
}

func (d *Device) stream(h driver.Stream, ours bool) (*Stream, error) {
	e, err := d.drv.EventCreate(d.ctx, driver.EventDisableTiming)
	if err != nil {
		if ours {
			_ = d.drv.StreamDestroy(d.ctx, h)
		}
		return nil, d.fail("new stream", err)
	}
	d.limbo.streams.Add(1)
	s := &Stream{d: d, handle: h, ours: ours, marker: e, waited: map[source]uint64{}}
	if h != driver.PerThreadStream { // each thread has another one
		d.handles.Store(h, s)
	}
	return s, nil
}

// Device returns the device of the stream.
func (s *Stream) Device() *Device {
	if s == nil {
		return nil
	}
	return s.d
}

// Handle returns the CUstream, for other libraries.
func (s *Stream) Handle() uintptr {
	if s == nil {
		return 0
	}
	return uintptr(s.handle)
}

// none returns an error for a stream that is nil or zero.
func (s *Stream) none(op string) error {
	if s == nil || s.d == nil {
		return fmt.Errorf("cuda: %s: got no stream, want one of Device.NewStream: %w", op, memory.ErrReleased)
	}
	return nil
}

// Close waits for the work of the stream and ends it.
func (s *Stream) Close() error {
	if err := s.none("close"); err != nil {
		return err
	}
	if s == s.d.main {
		return fmt.Errorf("cuda: close: got the main stream of %s, want one of NewStream: %w", s.d, memory.ErrShared)
	}
	return s.end(true)
}

// end ends the stream, after its work if wait is set.
func (s *Stream) end(wait bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("cuda: close stream: %w", memory.ErrReleased)
	}
	if wait {
		if err := s.d.drv.StreamSynchronize(s.d.ctx, s.handle); err != nil && !isLost(err) {
			return s.d.fail("close stream", err)
		}
	}
	s.closed = true
	s.completed.Store(math.MaxUint64)
	s.event.Lock()
	defer s.event.Unlock()
	_ = s.d.drv.EventDestroy(s.d.ctx, s.marker) // all work is complete: only a lost device could refuse
	s.marker = 0
	if s.shared != nil {
		s.d.events.put(s.shared)
		s.shared = nil
	}
	if s.ours {
		_ = s.d.drv.StreamDestroy(s.d.ctx, s.handle)
	}
	s.d.limbo.streams.Add(-1)
	s.d.handles.CompareAndDelete(s.handle, s)
	s.waited = nil
	return nil
}

// Wait makes work that is submitted to s from now on wait for all work that was
// submitted to other before. Work on tensors does this itself.
func (s *Stream) Wait(other *Stream) error {
	if err := errors.Join(s.none("wait"), other.none("wait")); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable("wait"); err != nil {
		return err
	}
	return s.await(stamp{other, other.submitted.Load()})
}

func (s *Stream) usable(op string) error {
	if s.closed {
		return fmt.Errorf("cuda: %s: the stream is closed: %w", op, memory.ErrReleased)
	}
	return nil
}

// await makes later work of s wait for w, on the device. The caller has s.mu.
func (s *Stream) await(w stamp) error {
	if w.s == nil || w.s == source(s) || w.s.done() >= w.at || s.waited[w.s] >= w.at {
		return nil
	}
	covered, err := w.s.precede(s.d, s.handle, w.at)
	if err == nil && covered > 0 {
		s.waited[w.s] = covered
	}
	return err
}

func (s *Stream) done() uint64 { return s.completed.Load() }

func (s *Stream) fail(op string, err error) error { return s.d.fail(op, err) }

func (s *Stream) precede(d *Device, h driver.Stream, at uint64) (uint64, error) {
	s.event.Lock()
	defer s.event.Unlock()
	if s.marker == 0 {
		return 0, nil // closed: its work is complete
	}
	if err := s.mark(at); err != nil {
		return 0, d.fail("wait", err)
	}
	if err := d.drv.StreamWaitEvent(d.ctx, h, s.marker); err != nil {
		return 0, d.fail("wait", err)
	}
	return s.recorded, nil
}

// mark makes the marker cover the work up to the number at. The caller has the
// lock of the event.
func (s *Stream) mark(at uint64) error {
	if s.recorded >= at {
		return nil
	}
	covered := s.submitted.Load() // before the event, which may cover more
	if err := s.d.drv.EventRecord(s.d.ctx, s.marker, s.handle); err != nil {
		return err
	}
	s.recorded = covered
	return nil
}

// isComplete reports whether the work is complete, without waiting for it. It
// records an event where none tells.
func (w stamp) isComplete() (bool, error) {
	if w.s == nil || w.s.done() >= w.at {
		return true, nil
	}
	return w.s.isComplete(w.at)
}

func (s *Stream) isComplete(at uint64) (bool, error) {
	s.event.Lock()
	defer s.event.Unlock()
	if s.marker == 0 {
		return true, nil
	}
	if err := s.mark(at); err != nil {
		return false, err
	}
	done, err := s.d.drv.EventQuery(s.d.ctx, s.marker)
	if done && err == nil {
		raise(&s.completed, s.recorded)
	}
	return done && err == nil, err
}

// raise sets a counter that only grows.
func raise(c *atomic.Uint64, to uint64) {
	for {
		old := c.Load()
		if old >= to || c.CompareAndSwap(old, to) {
			return
		}
	}
}

// Sync waits until all work that was submitted before is complete, or returns
// the error of ctx. It asks the device again and again, first without a pause
// and then at intervals that grow to a millisecond, so that ctx can end it.
func (s *Stream) Sync(ctx context.Context) error {
	if err := s.none("sync"); err != nil {
		return err
	}
	if ctx == nil {
		return fmt.Errorf("cuda: sync: got no context, want one")
	}
	return (stamp{s, s.submitted.Load()}).sync(ctx, "sync")
}

func (w stamp) sync(ctx context.Context, op string) error {
	began := time.Now()
	for wait := shortestSleep; ; {
		done, err := w.isComplete()
		switch {
		case err != nil:
			return w.s.fail(op, err)
		case done:
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("cuda: %s: %w", op, err)
		}
		if time.Since(began) < spinning {
			runtime.Gosched()
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("cuda: %s: %w", op, ctx.Err())
		case <-timer.C:
		}
		wait = min(2*wait, longestSleep)
	}
}

// A wait asks again and again at first, because the shortest sleep of the
// runtime can be a millisecond, in which a device copies 50 MB.
const (
	spinning      = 200 * time.Microsecond
	shortestSleep = 50 * time.Microsecond
	longestSleep  = time.Millisecond
)
