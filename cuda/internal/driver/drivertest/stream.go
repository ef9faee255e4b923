package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

func testEvents(r *rig) {
	e := r.event(driver.EventDisableTiming)
	if done := must(r.EventQuery(r.ctx, e))(r.T); !done {
		r.Error("an event that was never recorded is not done")
	}
	r.check(r.EventSynchronize(r.ctx, e))
	r.check(r.StreamWaitEvent(r.ctx, r.s, e)) // waits for nothing
	p := r.alloc(1 << 20)
	for range 3 {
		r.check(r.MemsetD8Async(r.ctx, p, 1, 1<<20, r.s))
		r.check(r.EventRecord(r.ctx, e, r.s))
	}
	r.check(r.EventSynchronize(r.ctx, e))
	if done := must(r.EventQuery(r.ctx, e))(r.T); !done {
		r.Error("an event is not done after EventSynchronize")
	}
	r.sync()
	if done := must(r.StreamQuery(r.ctx, r.s))(r.T); !done {
		r.Error("a stream is not done after StreamSynchronize")
	}
	_, err := r.EventQuery(r.ctx, 0)
	r.fails("EventQuery of none", err, driver.InvalidHandle, driver.InvalidValue)
	r.fails("EventRecord of none", r.EventRecord(r.ctx, 0, r.s), driver.InvalidHandle, driver.InvalidValue)
	r.fails("StreamWaitEvent of none", r.StreamWaitEvent(r.ctx, r.s, 0), driver.InvalidHandle, driver.InvalidValue)
	r.fails("EventDestroy of none", r.EventDestroy(r.ctx, 0), driver.InvalidHandle, driver.InvalidValue)
	_, err = r.EventCreate(r.ctx, driver.EventInterprocess)
	r.fails("EventCreate of an interprocess event with timing", err, driver.InvalidValue)
}

func testTimes(r *rig) {
	from, to, plain := r.event(driver.EventDefault), r.event(driver.EventBlockingSync), r.event(driver.EventDisableTiming)
	_, err := r.EventElapsedTime(r.ctx, from, to)
	r.fails("EventElapsedTime of events that were not recorded", err, driver.InvalidHandle)
	p := r.alloc(1 << 20)
	r.check(r.EventRecord(r.ctx, from, r.s))
	r.check(r.MemsetD8Async(r.ctx, p, 1, 1<<20, r.s))
	r.check(r.EventRecord(r.ctx, to, r.s))
	r.check(r.EventRecord(r.ctx, plain, r.s))
	r.check(r.EventSynchronize(r.ctx, to))
	r.sync()
	if ms := must(r.EventElapsedTime(r.ctx, from, to))(r.T); ms < 0 || ms > 60_000 {
		r.Errorf("EventElapsedTime: got %g ms", ms)
	}
	_, err = r.EventElapsedTime(r.ctx, from, plain)
	r.fails("EventElapsedTime of an event without timing", err, driver.InvalidHandle)
}

func testContextEvent(r *rig) {
	e := r.event(driver.EventDisableTiming)
	p := r.alloc(1 << 20)
	r.check(r.MemsetD8Async(r.ctx, p, 1, 1<<20, r.s))
	r.found(r.CtxRecordEvent(r.ctx, e))
	r.check(r.EventSynchronize(r.ctx, e))
	if done := must(r.StreamQuery(r.ctx, r.s))(r.T); !done {
		r.Error("work of a stream is not done, but an event of its context is")
	}
}

// testAcrossStreams passes bytes from stream to stream, and each one waits.
func testAcrossStreams(r *rig) {
	const n, streams, rounds = 1 << 18, 4, 20
	p := r.alloc(n * (streams + 1))
	s := [streams]driver.Stream{}
	e := [streams]driver.Event{}
	for i := range s {
		s[i], e[i] = r.stream(), r.event(driver.EventDisableTiming)
	}
	host := r.pinned(n, 0)
	for round := range byte(rounds) {
		// The round before must be over before its bytes are overwritten.
		r.check(r.StreamWaitEvent(r.ctx, s[0], e[streams-1]))
		r.check(r.MemsetD8Async(r.ctx, p, round+1, n, s[0]))
		r.check(r.EventRecord(r.ctx, e[0], s[0]))
		for i := 1; i < streams; i++ {
			r.check(r.StreamWaitEvent(r.ctx, s[i], e[i-1]))
			r.check(r.MemcpyDtoDAsync(r.ctx, p+driver.Pointer(i*n), p+driver.Pointer((i-1)*n), n, s[i]))
			r.check(r.EventRecord(r.ctx, e[i], s[i]))
		}
		r.check(r.MemcpyDtoHAsync(r.ctx, at(host), p+driver.Pointer((streams-1)*n), n, s[streams-1]))
		r.check(r.EventRecord(r.ctx, e[streams-1], s[streams-1]))
		if round%5 == 4 {
			r.check(r.EventSynchronize(r.ctx, e[streams-1]))
			r.equal("bytes that went through all streams", host, bytes.Repeat([]byte{round + 1}, n))
		}
	}
}

// hostFunc submits a function of Go, or skips the test.
func (r *rig) hostFunc(s driver.Stream, f func(arg uintptr), arg uintptr) {
	r.Helper()
	fn := driver.NewHostFunc(f)
	if fn == 0 {
		r.Skip("this platform has no functions of C")
	}
	r.found(r.LaunchHostFunc(r.ctx, s, fn, arg))
}

func testHostFunc(r *rig) {
	var got [2]atomic.Uintptr
	host := r.pinned(4096, 0)
	p := r.alloc(4096)
	r.check(r.MemsetD8Async(r.ctx, p, 9, 4096, r.s))
	r.check(r.MemcpyDtoHAsync(r.ctx, at(host), p, 4096, r.s))
	r.hostFunc(r.s, func(arg uintptr) { got[0].Store(arg); got[1].Store(uintptr(host[4095])) }, 0xabcd)
	r.sync()
	if got[0].Load() != 0xabcd || got[1].Load() != 9 {
		r.Errorf("got argument %#x and byte %d, want 0xabcd and 9, after the copy", got[0].Load(), got[1].Load())
	}
}

// gate holds a stream until open is called.
func (r *rig) gate(s driver.Stream) (open func()) {
	r.Helper()
	// A driver that works when work is submitted cannot be held.
	var inside atomic.Bool
	r.hostFunc(s, func(uintptr) { time.Sleep(200 * time.Millisecond); inside.Store(true) }, 0)
	if inside.Load() {
		r.Skip("this driver does work when it is submitted")
	}
	opened := make(chan struct{})
	r.hostFunc(s, func(uintptr) {
		select {
		case <-opened:
		case <-time.After(20 * time.Second):
		}
	}, 0)
	open = sync.OnceFunc(func() { close(opened) })
	r.Cleanup(open) // before the stream is destroyed
	return open
}

// testWaits holds a stream and sees who waits for it.
func testWaits(r *rig) {
	const n = 1 << 16
	other, free := r.stream(), r.stream()
	e, after, timed := r.event(driver.EventDisableTiming), r.event(driver.EventDisableTiming), r.event(driver.EventDefault)
	p := r.alloc(n)
	r.check(r.MemsetD8Async(r.ctx, p, 1, n, r.s))
	r.sync()
	// Allocation may wait for the device, so it comes before the gate.
	got, before := r.pinned(n, 0), r.pinned(n, 0)
	open := r.gate(r.s)
	r.check(r.MemsetD8Async(r.ctx, p, 2, n, r.s))
	r.check(r.EventRecord(r.ctx, e, r.s))
	r.check(r.EventRecord(r.ctx, timed, r.s))
	r.check(r.StreamWaitEvent(r.ctx, other, e))
	r.check(r.MemcpyDtoHAsync(r.ctx, at(got), p, n, other))
	r.check(r.EventRecord(r.ctx, after, other))
	// A stream without a wait goes on, and reads what was there before.
	r.check(r.MemcpyDtoHAsync(r.ctx, at(before), p, n, free))
	r.check(r.StreamSynchronize(r.ctx, free))
	r.equal("a stream that does not wait", before, bytes.Repeat([]byte{1}, n))
	for name, query := range map[string]func() (bool, error){
		"the held stream":             func() (bool, error) { return r.StreamQuery(r.ctx, r.s) },
		"the stream that waits":       func() (bool, error) { return r.StreamQuery(r.ctx, other) },
		"the event behind the gate":   func() (bool, error) { return r.EventQuery(r.ctx, e) },
		"the event of the other side": func() (bool, error) { return r.EventQuery(r.ctx, after) },
	} {
		if done := must(query())(r.T); done {
			r.Errorf("%s is done, want it to wait", name)
		}
	}
	if _, err := r.EventElapsedTime(r.ctx, timed, timed); !errors.Is(err, driver.NotReady) {
		r.Errorf("EventElapsedTime of an event that is not done: got %v, want NotReady", err)
	}
	// A wait is for the work that was recorded when it was submitted, not for a
	// later record.
	r.check(r.EventRecord(r.ctx, e, free))
	r.check(r.StreamSynchronize(r.ctx, free))
	if done := must(r.EventQuery(r.ctx, e))(r.T); !done {
		r.Error("an event that was recorded again still waits for its first record")
	}
	if done := must(r.StreamQuery(r.ctx, other))(r.T); done {
		r.Error("a wait was lost when its event was recorded again")
	}
	open()
	r.check(r.EventSynchronize(r.ctx, after))
	r.equal("a stream that waits", got, bytes.Repeat([]byte{2}, n))
	r.sync()
}

// testLegacyStream uses the default stream by its handle.
func testLegacyStream(r *rig) {
	p := r.alloc(4096)
	blocking := must(r.StreamCreate(r.ctx, driver.StreamDefault, 0))(r.T)
	r.check(r.MemsetD8Async(r.ctx, p, 1, 4096, blocking))
	r.check(r.MemsetD8Async(r.ctx, p, 2, 4096, driver.LegacyStream)) // waits for the first
	r.check(r.MemsetD8Async(r.ctx, p, 3, 2048, blocking))            // waits for the second
	r.check(r.StreamSynchronize(r.ctx, blocking))
	r.check(r.StreamSynchronize(r.ctx, driver.LegacyStream))
	r.holds("the later work", p, 3, 2048)
	r.holds("the earlier work", p+2048, 2, 2048)
	r.check(r.StreamDestroy(r.ctx, blocking))
	high := must(r.StreamCreate(r.ctx, driver.StreamNonBlocking, -1))(r.T)
	r.check(r.StreamDestroy(r.ctx, high))
}

// testGoroutines works from many goroutines, which have no threads of their
// own.
func testGoroutines(r *rig) {
	const n, workers, rounds = 4096, 8, 50
	errs := make(chan error, workers)
	for w := range workers {
		go func() { errs <- r.worker(byte(w+1), n, rounds) }()
	}
	for range workers {
		if err := <-errs; err != nil {
			r.Error(err)
		}
	}
}

// worker allocates, writes, reads and frees memory in a stream of its own.
func (r *rig) worker(v byte, n, rounds int) error {
	s, err := r.StreamCreate(r.ctx, driver.StreamNonBlocking, 0)
	if err != nil {
		return err
	}
	for range rounds {
		p, err := r.MemAlloc(r.ctx, uint64(n))
		if err != nil {
			return err
		}
		got := make([]byte, n)
		err = errors.Join(r.MemsetD8Async(r.ctx, p, v, uint64(n), s), r.MemcpyDtoHAsync(r.ctx, at(got), p, uint64(n), s))
		runtime.Gosched()
		if err := errors.Join(err, r.StreamSynchronize(r.ctx, s), r.MemFree(r.ctx, p)); err != nil {
			return err
		}
		if i := differ(got, bytes.Repeat([]byte{v}, n)); i >= 0 {
			return fmt.Errorf("worker %d: got %d at byte %d", v, got[i], i)
		}
	}
	return r.StreamDestroy(r.ctx, s)
}
