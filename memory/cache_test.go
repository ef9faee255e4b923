package memory

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
)

func place(b *Buffer) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes()))) }

func mustObtain(t *testing.T, size int) []byte {
	t.Helper()
	m, err := obtain(size)
	if err != nil {
		t.Fatal(err)
	}
	if invariant.Enabled {
		invariant.Poison(m) // as what came back is
	}
	return m
}

// still empties the cache, and prevents its timer from running before the test
// ends: the figures change only by the test's calls.
func still(t *testing.T) {
	t.Helper()
	Trim()
	giving.Lock()
	t.Cleanup(giving.Unlock)
}

// idle returns a cache for one test, which no other code uses.
func idle(t *testing.T) *mappings {
	c := &mappings{}
	t.Cleanup(func() {
		if err := surrenderAll(c.drop(len(c.waiting))); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestBuffersComeBackAtOnce(t *testing.T) {
	const size = 256<<10 - 2*canaryBytes
	still(t)
	b := mustAlloc(t, size, Scratch)
	at, full, whole := place(b), Stats(), int64(len(b.s.raw))
	for i := range b.Bytes() {
		b.Bytes()[i] = 0xff
	}
	mustRelease(t, b)
	if now := Stats(); now.Cached != whole || now.System != full.System || now.Total.Current != full.Total.Current-size {
		t.Errorf("after the release: got %d bytes cached, %d of the system, %d in use, want %d, %d and %d",
			now.Cached, now.System, now.Total.Current, whole, full.System, full.Total.Current-size)
	}
	b = mustAlloc(t, size-1000, Scratch)
	if place(b) != at || Stats().Cached != 0 {
		t.Errorf("got bytes at %#x and %d cached, want those at %#x again and none", place(b), Stats().Cached, at)
	}
	for i, v := range b.Bytes() {
		if v != 0 {
			t.Fatalf("byte %d: got %#x, want zero", i, v)
		}
	}
	b.Bytes()[0] = 0xff
	mustRelease(t, b)
	b, err := Process(Scratch).Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	if place(b) != at || b.Bytes()[0] == 0 || b.Len() != size || b.Purpose() != Scratch {
		t.Errorf("for somebody who writes all of it: got %d bytes of %s at %#x that begin with %d, want the old ones as they were",
			b.Len(), b.Purpose(), place(b), b.Bytes()[0])
	}
	mustRelease(t, b)
	if n := trim(); n != whole || Stats().Cached != 0 || Stats().System != full.System-whole {
		t.Errorf("trim: got %d bytes and %d cached, want %d and none", n, Stats().Cached, whole)
	}
}

func TestProcessRefuses(t *testing.T) {
	for _, p := range []Purpose{noPurpose, IO} {
		if b, err := Process(p).Alloc(-1); err == nil || b != nil {
			t.Errorf("%s: got %v and error %v, want an error", p, b, err)
		}
	}
}

func TestLargeBuffersDoNotWait(t *testing.T) {
	still(t)
	before := Stats()
	mustRelease(t, mustAlloc(t, hugeBytes, Scratch))
	if now := Stats(); now.Cached != 0 || now.System != before.System {
		t.Errorf("got %d bytes cached and %d of the system, want none and %d", now.Cached, now.System, before.System)
	}
}

func TestCacheFitsAndIsBounded(t *testing.T) {
	c := idle(t)
	page := osmem.PageSize()
	const step = 1 << 20
	for i := range 40 {
		if err := c.put(mustObtain(t, step+i%4*page)); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, m := range c.waiting {
			sum += len(m)
		}
		if sum != c.bytes || sum > cacheBytes {
			t.Fatalf("after %d: got %d bytes that wait and a count of %d, want at most %d", i, sum, c.bytes, cacheBytes)
		}
	}
	newest := &c.waiting[len(c.waiting)-1][0]
	for _, size := range []int{step + 4*page, step / 2} {
		if m := c.take(size); m != nil {
			t.Errorf("%d bytes: got a mapping of %d, want none that fits", size, len(m))
		}
	}
	if m := c.take(step); m == nil || &m[0] != newest {
		t.Error("got another mapping, want the one that came back last")
	} else if err := surrender(m); err != nil {
		t.Error(err)
	}
}

func TestCacheEndsWhenNothingIsTaken(t *testing.T) {
	c := idle(t)
	for range 2 {
		if err := c.put(mustObtain(t, 100<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if gone, again := c.sweep(); len(gone) != 0 || !again {
		t.Errorf("after a time in which two came back: got %d that go, and another look %v, want none and one", len(gone), again)
	}
	m := c.take(100 << 10)
	if gone, again := c.sweep(); len(gone) != 0 || !again {
		t.Errorf("after a time in which one was taken: got %d that go, and another look %v, want none and one", len(gone), again)
	}
	gone, again := c.sweep()
	if len(gone) != 1 || again || c.bytes != 0 {
		t.Errorf("after a time in which none was taken: got %d that go, and another look %v, want the one that waits and none", len(gone), again)
	}
	if err := surrenderAll(append(gone, m)); err != nil {
		t.Error(err)
	}
}

// The timer is set by the first release, and the process keeps nothing when all
// is quiet.
func TestCacheEmptiesByItself(t *testing.T) {
	mustRelease(t, mustAlloc(t, 100<<10, Scratch))
	for end := time.Now().Add(20 * time.Second); Stats().Cached > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d bytes cached, want none by now", Stats().Cached)
		}
	}
}

func TestCacheFromManyGoroutines(t *testing.T) {
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 300 {
				b := mustAlloc(t, 40<<10+(i*g)%5*8192, Scratch)
				data := b.Bytes()
				for k := 0; k < len(data); k += 512 {
					if data[k] != 0 {
						t.Errorf("byte %d: got %d, want zero", k, data[k])
						return
					}
					data[k] = byte(g + 1)
				}
				for k := 0; k < len(data); k += 512 {
					if data[k] != byte(g+1) {
						t.Errorf("byte %d: got %d of somebody else, want %d", k, data[k], g+1)
						return
					}
				}
				mustRelease(t, b)
				if i%100 == 99 {
					Trim()
				}
			}
		})
	}
	group.Wait()
}
