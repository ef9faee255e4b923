package fake

import (
	"bytes"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// TestGraph captures two streams that fork and join, and replays the graph.
func TestGraph(t *testing.T) {
	everyMode(t, func(t *testing.T, cfg Config) {
		b := start(t, cfg)
		CheckReports(t, b.Machine)
		_, f := b.kernel()
		p, q, r := b.alloc(0, 40), b.alloc(0, 40), b.alloc(0, 40)
		in := bytes.Repeat([]byte{1, 0, 0, 0}, 10)
		b.put(0, p, in)
		s, side := b.stream(0, driver.StreamNonBlocking), b.stream(0, driver.StreamNonBlocking)
		fork, join := b.event(), b.event()
		b.ok(b.StreamBeginCapture(b.ctx[0], s))
		b.ok(b.add(f, q, p, 10, s))
		b.ok(b.EventRecord(b.ctx[0], fork, s))
		b.ok(b.StreamWaitEvent(b.ctx[0], side, fork))
		b.ok(b.add(f, r, q, 10, side))
		b.ok(b.EventRecord(b.ctx[0], join, side))
		b.ok(b.StreamWaitEvent(b.ctx[0], s, join))
		b.ok(b.add(f, p, r, 10, s))
		g, err := b.StreamEndCapture(b.ctx[0], s)
		b.ok(err)
		if got := b.get(0, p, 1); got[0] != 1 {
			t.Fatal("the capture ran")
		}
		e, err := b.GraphInstantiate(b.ctx[0], g)
		b.ok(err)
		b.ok(b.GraphDestroy(b.ctx[0], g))
		for range 3 {
			b.ok(b.GraphLaunch(b.ctx[0], e, s))
		}
		b.ok(b.GraphLaunch(b.ctx[0], e, side)) // waits for the launches before
		b.ok(b.GraphExecDestroy(b.ctx[0], e))
		b.ok(b.StreamSynchronize(b.ctx[0], side))
		if got, want := b.get(0, p, 40), bytes.Repeat([]byte{13, 0, 0, 0}, 10); !bytes.Equal(got, want) {
			t.Errorf("got % x after 4 launches, want % x", got, want)
		}
		want(t, b.GraphLaunch(b.ctx[0], e, s), driver.InvalidValue)
		want(t, b.GraphDestroy(b.ctx[0], g), driver.InvalidValue)
		if len(b.lanes.last) > 10 {
			t.Errorf("got %d lanes: launches do not share theirs", len(b.lanes.last))
		}
	})
}

func TestCaptureErrors(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	p := b.alloc(0, 8)
	s, other := b.stream(0, driver.StreamDefault), b.stream(0, driver.StreamNonBlocking)
	e := b.event()
	want(t, b.StreamBeginCapture(b.ctx[0], driver.LegacyStream), captureUnsupported)
	_, err := b.StreamEndCapture(b.ctx[0], s)
	want(t, err, driver.InvalidValue)
	begin := func() {
		t.Helper()
		b.ok(b.StreamBeginCapture(b.ctx[0], s))
	}
	end := func(r driver.Result) {
		t.Helper()
		g, err := b.StreamEndCapture(b.ctx[0], s)
		want(t, err, r)
		if r == driver.Success {
			b.ok(b.GraphDestroy(b.ctx[0], g))
		}
	}
	begin()
	want(t, b.StreamBeginCapture(b.ctx[0], s), illegalState)
	want(t, b.StreamSynchronize(b.ctx[0], s), captureUnsupported)
	want(t, b.MemsetD8Async(b.ctx[0], p, 0, 1, s), captureInvalidated)
	end(captureInvalidated)
	begin() // the default stream would wait for the captured one
	want(t, b.MemsetD8Async(b.ctx[0], p, 0, 1, driver.LegacyStream), captureImplicit)
	end(driver.Success)
	begin()
	_, err = b.StreamQuery(b.ctx[0], s)
	want(t, err, captureUnsupported)
	end(captureInvalidated)
	begin() // of work outside
	b.ok(b.EventRecord(b.ctx[0], e, other))
	want(t, b.StreamWaitEvent(b.ctx[0], s, e), driver.Result(905))
	end(captureInvalidated)
	begin() // the other stream does not come back
	b.ok(b.EventRecord(b.ctx[0], e, s))
	_, err = b.EventQuery(b.ctx[0], e)
	want(t, err, captureUnsupported)
	end(captureInvalidated)
	begin()
	b.ok(b.EventRecord(b.ctx[0], e, s))
	b.ok(b.StreamWaitEvent(b.ctx[0], other, e))
	b.ok(b.MemsetD8Async(b.ctx[0], p, 0, 1, other))
	_, err = b.StreamEndCapture(b.ctx[0], other)
	want(t, err, captureUnmatched)
	end(captureUnjoined)
	b.ok(b.MemsetD8Async(b.ctx[0], p, 0, 1, other)) // works again
	begin()
	_, err = b.MemAllocAsync(b.ctx[0], 8, s)
	want(t, err, driver.NotSupported)
	end(captureInvalidated)
}
