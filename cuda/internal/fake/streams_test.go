package fake

import (
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// fill submits a memset.
func (b *bench) fill(s driver.Stream, p driver.Pointer, v byte, n uint64) {
	b.t.Helper()
	b.ok(b.MemsetD8Async(b.ctx[0], p, v, n, s))
}

// lazily returns a machine that runs what it must, with one page-locked byte
// and memory that is zero.
func lazily(t *testing.T) (*bench, driver.Pointer) {
	b := start(t, Config{Mode: Lazy, NoOrder: true})
	p := b.alloc(0, 64)
	b.put(0, p, make([]byte, 64))
	return b, p
}

// peek reads a byte past all streams, as no program can.
func (b *bench) peek(p driver.Pointer) byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.space.find(p)
	return a.mem.data[a.offset+uint64(p-a.base)]
}

func TestNothingRunsEarly(t *testing.T) {
	b, p := lazily(t)
	s, other := b.stream(0, driver.StreamNonBlocking), b.stream(0, driver.StreamNonBlocking)
	b.fill(s, p, 1, 1)
	b.fill(s, p+1, 1, 1)
	e := b.event()
	b.ok(b.EventRecord(b.ctx[0], e, s))
	b.fill(s, p+2, 1, 1)
	b.fill(other, p+3, 1, 1)
	if b.peek(p) != 0 {
		t.Error("work ran when it was submitted")
	}
	b.ok(b.EventSynchronize(b.ctx[0], e))
	if b.peek(p) != 1 || b.peek(p+1) != 1 || b.peek(p+2) != 0 || b.peek(p+3) != 0 {
		t.Error("a wait for an event did not run exactly what is before it")
	}
	b.ok(b.StreamSynchronize(b.ctx[0], s))
	if b.peek(p+2) != 1 || b.peek(p+3) != 0 {
		t.Error("a wait for a stream did not run exactly its work")
	}
	b.ok(b.CtxSynchronize(b.ctx[0]))
	if b.peek(p+3) != 1 {
		t.Error("a wait for the context did not run all work")
	}
}

// TestDefaultStream: the default stream waits for blocking streams and they for
// it; others do not.
func TestDefaultStream(t *testing.T) {
	b, p := lazily(t)
	blocking, free := b.stream(0, driver.StreamDefault), b.stream(0, driver.StreamNonBlocking)
	b.fill(blocking, p, 1, 1)
	b.fill(free, p+1, 1, 1)
	b.fill(driver.LegacyStream, p+2, 1, 1)
	b.fill(driver.PerThreadStream, p+3, 1, 1)
	b.fill(blocking, p+4, 1, 1)
	b.ok(b.StreamSynchronize(b.ctx[0], driver.PerThreadStream))
	if b.peek(p) != 1 || b.peek(p+2) != 1 || b.peek(p+3) != 1 {
		t.Error("the default stream did not order blocking streams")
	}
	if b.peek(p+1) != 0 || b.peek(p+4) != 0 {
		t.Error("work ran that nothing waits for")
	}
	b.fill(0, p+5, 1, 1) // stream 0 is the default stream
	b.ok(b.StreamSynchronize(b.ctx[0], 0))
	if b.peek(p+4) != 1 || b.peek(p+5) != 1 || b.peek(p+1) != 0 {
		t.Error("stream 0 is not the default stream")
	}
}

// TestEventCaptures: a wait is for the record before the wait, and a record for
// the work before the record.
func TestEventCaptures(t *testing.T) {
	b, p := lazily(t)
	s, w := b.stream(0, driver.StreamNonBlocking), b.stream(0, driver.StreamNonBlocking)
	e := b.event()
	if done, err := b.EventQuery(b.ctx[0], e); !done || err != nil {
		t.Errorf("an event that was never recorded: got %v, %v", done, err)
	}
	b.ok(b.StreamWaitEvent(b.ctx[0], w, e)) // for nothing
	b.fill(s, p, 1, 1)
	b.ok(b.EventRecord(b.ctx[0], e, s))
	b.ok(b.StreamWaitEvent(b.ctx[0], w, e))
	b.fill(s, p+1, 1, 1)
	b.ok(b.EventRecord(b.ctx[0], e, s))
	b.fill(w, p+2, 1, 1)
	b.ok(b.EventDestroy(b.ctx[0], e))
	want(t, b.EventDestroy(b.ctx[0], e), driver.InvalidHandle)
	b.ok(b.StreamSynchronize(b.ctx[0], w))
	if b.peek(p) != 1 || b.peek(p+1) != 0 || b.peek(p+2) != 1 {
		t.Error("the wait was not for the record before it")
	}
}

func TestCtxRecordEvent(t *testing.T) {
	b, p := lazily(t)
	for i := range driver.Pointer(3) {
		b.fill(b.stream(0, driver.StreamNonBlocking), p+i, 1, 1)
	}
	e := b.event()
	b.ok(b.CtxRecordEvent(b.ctx[0], e))
	late := b.stream(0, driver.StreamNonBlocking)
	b.fill(late, p+3, 1, 1)
	w := b.stream(0, driver.StreamNonBlocking)
	b.ok(b.StreamWaitEvent(b.ctx[0], w, e))
	b.ok(b.StreamSynchronize(b.ctx[0], w))
	if b.peek(p) != 1 || b.peek(p+1) != 1 || b.peek(p+2) != 1 || b.peek(p+3) != 0 {
		t.Error("the event is not exactly the context's work before it")
	}
	old := start(t, Config{Version: 12040})
	if err := old.CtxRecordEvent(old.ctx[0], 1); err != driver.ErrNotFound {
		t.Errorf("driver 12.4: got %v, want ErrNotFound", err)
	}
}

// TestQueries: a query says no some times, and who asks on makes progress.
func TestQueries(t *testing.T) {
	b, p := lazily(t)
	s := b.stream(0, driver.StreamNonBlocking)
	b.fill(s, p, 1, 1)
	e := b.event()
	b.ok(b.EventRecord(b.ctx[0], e, s))
	for name, query := range map[string]func() (bool, error){
		"event":  func() (bool, error) { return b.EventQuery(b.ctx[0], e) },
		"stream": func() (bool, error) { return b.StreamQuery(b.ctx[0], s) },
	} {
		b.fill(s, p, 1, 1)
		b.ok(b.EventRecord(b.ctx[0], e, s))
		n := 0
		for ; ; n++ {
			done, err := query()
			b.ok(err)
			if done {
				break
			}
			if n > 20 {
				t.Fatalf("%s: not done after %d queries", name, n)
			}
		}
		if n < defaultQueries {
			t.Errorf("%s: done after %d queries, want at least %d", name, n, defaultQueries)
		}
		if done, _ := query(); !done {
			t.Errorf("%s: not done any more", name)
		}
	}
}

func TestElapsedTime(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	p := b.alloc(0, 1<<20)
	from, to, never := b.event(), b.event(), b.event()
	silent, err := b.EventCreate(b.ctx[0], driver.EventDisableTiming)
	b.ok(err)
	s := b.stream(0, driver.StreamNonBlocking)
	b.ok(b.EventRecord(b.ctx[0], from, s))
	b.fill(s, p, 1, 1<<20)
	b.ok(b.EventRecord(b.ctx[0], to, s))
	b.ok(b.EventRecord(b.ctx[0], silent, s))
	ms, err := b.EventElapsedTime(b.ctx[0], from, to)
	b.ok(err)
	if ms <= 0.01 || ms > 0.1 {
		t.Errorf("got %g ms for 1 MiB, want about 0.01", ms)
	}
	for _, e := range []driver.Event{never, silent, 77} {
		_, err = b.EventElapsedTime(b.ctx[0], from, e)
		want(t, err, driver.InvalidHandle)
	}
	lazy, q := lazily(t)
	s = lazy.stream(0, driver.StreamNonBlocking)
	from, to = lazy.event(), lazy.event()
	lazy.ok(lazy.EventRecord(lazy.ctx[0], from, s))
	lazy.fill(s, q, 1, 1)
	lazy.ok(lazy.EventRecord(lazy.ctx[0], to, s))
	_, err = lazy.EventElapsedTime(lazy.ctx[0], from, to)
	want(t, err, driver.NotReady)
}

func TestHandles(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	s, e := b.stream(0, driver.StreamDefault), b.event()
	_, err := b.StreamCreate(b.ctx[0], 2, 0)
	want(t, err, driver.InvalidValue)
	_, err = b.EventCreate(b.ctx[0], driver.EventInterprocess)
	want(t, err, driver.InvalidValue)
	want(t, b.EventRecord(b.ctx[1], e, driver.LegacyStream), driver.InvalidHandle) // of another context
	want(t, b.StreamSynchronize(b.ctx[1], s), driver.InvalidHandle)
	want(t, b.StreamDestroy(b.ctx[0], driver.LegacyStream), driver.InvalidHandle)
	b.ok(b.StreamDestroy(b.ctx[0], s))
	want(t, b.StreamDestroy(b.ctx[0], s), driver.InvalidHandle)
	want(t, b.CtxSynchronize(77), driver.InvalidContext)
	b.ok(b.StreamWaitEvent(b.ctx[1], driver.LegacyStream, e)) // events cross contexts
	fresh := New(Config{})
	_, err = fresh.DeviceGetCount()
	want(t, err, driver.NotInitialized)
	want(t, New(Config{Devices: -1}).Init(), driver.NoDevice)
}

// TestDestroyedStream: its work still runs.
func TestDestroyedStream(t *testing.T) {
	b, p := lazily(t)
	s := b.stream(0, driver.StreamNonBlocking)
	b.fill(s, p, 1, 1)
	b.ok(b.StreamDestroy(b.ctx[0], s))
	b.ok(b.CtxSynchronize(b.ctx[0]))
	if b.peek(p) != 1 {
		t.Error("the work of a destroyed stream did not run")
	}
	if len(b.streams) != 4 {
		t.Errorf("got %d streams, want the default ones of two contexts", len(b.streams))
	}
}

// TestHostFunc: it runs after the work before it, without another call, and
// must not call the driver. The stream goes on when it returns.
func TestHostFunc(t *testing.T) {
	b, p := lazily(t)
	s := b.stream(0, driver.StreamNonBlocking)
	seen := make(chan byte, 1)
	var inside error
	fn := RegisterHostFunc(func(arg uintptr) {
		inside = b.CtxSynchronize(b.ctx[0])
		seen <- b.peek(p) + byte(arg)
	})
	b.fill(s, p, 1, 1)
	b.ok(b.LaunchHostFunc(b.ctx[0], s, fn, 10))
	b.fill(s, p, 2, 1)
	select {
	case v := <-seen:
		if v != 11 {
			t.Errorf("got %d, want the byte 1 and the argument 10", v)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the host function was not called")
	}
	b.ok(b.StreamSynchronize(b.ctx[0], s))
	want(t, inside, driver.NotPermitted)
	b.reported(Misuse)
	want(t, b.LaunchHostFunc(b.ctx[0], s, lowestCode-1, 0), driver.InvalidValue)
}

// TestHostFuncTakesLock: a host function may wait for a lock that a caller of
// the driver holds.
func TestHostFuncTakesLock(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	var mu sync.Mutex
	done := make(chan bool)
	fn := RegisterHostFunc(func(uintptr) {
		mu.Lock()
		defer mu.Unlock()
		close(done)
	})
	mu.Lock()
	b.ok(b.LaunchHostFunc(b.ctx[0], driver.LegacyStream, fn, 0))
	b.alloc(0, 10)
	mu.Unlock()
	<-done
	b.ok(b.CtxSynchronize(b.ctx[0]))
}

func BenchmarkCalls(bm *testing.B) {
	for _, mode := range []Mode{Random, Eager, Lazy} {
		bm.Run([]string{"random", "eager", "lazy"}[mode], func(bm *testing.B) {
			b := &bench{Machine: New(Config{Mode: mode}), t: bm}
			b.ok(b.Init())
			b.ctx = append(b.ctx, b.context(0))
			p := b.alloc(0, 1024)
			s, r, e := b.stream(0, driver.StreamNonBlocking), b.stream(0, driver.StreamNonBlocking), b.event()
			bm.ReportAllocs()
			for i := 0; bm.Loop(); i++ {
				b.fill(s, p, byte(i), 1024)
				b.ok(b.EventRecord(b.ctx[0], e, s))
				b.ok(b.StreamWaitEvent(b.ctx[0], r, e))
				b.fill(r, p, byte(i), 1024)
				b.ok(b.EventRecord(b.ctx[0], e, r))
				b.ok(b.StreamWaitEvent(b.ctx[0], s, e))
				if i%16 == 0 {
					b.ok(b.StreamSynchronize(b.ctx[0], s))
				}
			}
			b.quiet()
		})
	}
}
