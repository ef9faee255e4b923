package memory

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/invariant"
)

// collectLeak runs f, which drops a buffer of that many bytes, and waits for
// the safety net to report it.
func collectLeak(t *testing.T, bytes int, f func()) Leak {
	t.Helper()
	found := make(chan Leak, 100)
	old := OnLeak(func(l Leak) { found <- l })
	defer func() { OnLeak(old) }()
	f()
	deadline := time.After(20 * time.Second)
	for {
		runtime.GC()
		select {
		case l := <-found:
			if l.Bytes == bytes { // not what another test dropped
				return l
			}
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatalf("no report of %d dropped bytes", bytes)
		}
	}
}

//go:noinline
func dropHandle(t *testing.T, bytes int, use bool) {
	b := mustAlloc(t, bytes, Activations)
	b.SetLabel("f32")
	h, err := b.IntoHandle()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.NewHandle(); err != nil { // a second one, dropped with it
		t.Fatal(err)
	}
	if use {
		if err := h.Use(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDroppedHandlesAreReportedAndFreed(t *testing.T) {
	before := Stats()
	leak := collectLeak(t, 1111, func() { dropHandle(t, 1111, false) })
	if leak.Bytes != 1111 || leak.Purpose != Activations || leak.Label != "f32" || leak.Holders != 2 || leak.Uses != 0 || !leak.Freed {
		t.Errorf("got %+v", leak)
	}
	if invariant.Enabled != strings.Contains(leak.Site, "memory.dropHandle (") {
		t.Errorf("site: got %q, want the allocating function in the invariant build and nothing else", leak.Site)
	}
	if !strings.Contains(leak.String(), "1111 bytes of activations (f32) dropped without Release by 2 holders") {
		t.Errorf("text: got %q", leak)
	}
	after := Stats()
	if after.Total.Current != before.Total.Current || after.Handles != before.Handles {
		t.Errorf("figures: got %+v, want the bytes and handles of %+v", after, before)
	}
	if after.Leaks != before.Leaks+1 || after.LeakedBytes != before.LeakedBytes {
		t.Errorf("leaks: got %d and %d bytes kept, want one more than %d and %d", after.Leaks, after.LeakedBytes, before.Leaks, before.LeakedBytes)
	}
}

func TestDroppedHandleInUseIsReportedAndKept(t *testing.T) {
	before := Stats()
	leak := collectLeak(t, 2222, func() { dropHandle(t, 2222, true) })
	if leak.Bytes != 2222 || leak.Uses != 1 || leak.Freed || !strings.Contains(leak.String(), "not freed") {
		t.Errorf("got %+v (%s)", leak, leak)
	}
	after := Stats()
	if after.Total.Current != before.Total.Current+2222 || after.LeakedBytes != before.LeakedBytes+2222 {
		t.Errorf("figures: got %+v, want 2222 bytes more than %+v", after, before)
	}
}

//go:noinline
func dropBuffer(t *testing.T) []byte { return mustAlloc(t, 3333, Scratch).Bytes() }

// A slice that Bytes returned may still be in use, which cannot be detected, so
// the bytes stay.
func TestDroppedBufferIsReportedAndKept(t *testing.T) {
	var data []byte
	leak := collectLeak(t, 3333, func() { data = dropBuffer(t) })
	if leak.Bytes != 3333 || leak.Freed {
		t.Errorf("got %+v", leak)
	}
	for _, c := range data {
		if c != 0 {
			t.Fatalf("kept bytes: got %#x, want 0", c)
		}
	}
}

func TestReleasedBuffersAreNoLeaks(t *testing.T) {
	before := Stats().Leaks
	for range 100 {
		_, h := newHandle(t)
		wantErr(t, "release", h.Release(), nil)
	}
	// The dropped one shows that the collector has been here.
	collectLeak(t, 10, func() { dropHandle(t, 10, false) })
	if got := Stats().Leaks - before; got != 1 {
		t.Errorf("got %d leaks, want 1", got)
	}
}

// At the limit the collector gets one chance to find dropped buffers before the
// error.
func TestLimitCollectsDroppedBuffers(t *testing.T) {
	defer SetLimit(SetLimit(Stats().Total.Current + 100_000))
	lastCollect.Store(0)
	dropHandle(t, 60_000, false)
	b, err := Alloc(60_000, IO)
	if err != nil {
		t.Fatalf("got %v, want room after a collection", err)
	}
	defer mustRelease(t, b)
	start := time.Now()
	if _, err := Alloc(60_000, IO); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	if lastCollect.Load() > start.UnixNano() {
		t.Error("a second refusal at once started another collection")
	}
}
