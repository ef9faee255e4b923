package memory

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func newHandle(t *testing.T) (*Buffer, Handle) {
	t.Helper()
	b := mustAlloc(t, 64, IO)
	h, err := b.IntoHandle()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runtime.KeepAlive(b) }) // a handle alone does not keep the safety net away
	return b, h
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestHandleLife(t *testing.T) {
	b, h := newHandle(t)
	if b.Holders() != 1 {
		t.Fatalf("into handle: got %d holders, want 1", b.Holders())
	}
	wantErr(t, "use", h.Use(), nil)
	wantErr(t, "lock while used", h.Lock(), ErrShared)
	wantErr(t, "release while used", h.Release(), nil)
	if b.Holders() != 1 {
		t.Error("released while used: the hold is gone, want it to stay until the use ends")
	}
	wantErr(t, "use of a released handle", h.Use(), ErrReleased)
	wantErr(t, "second release", h.Release(), ErrReleased)
	h.EndUse()
	if b.Holders() != 0 {
		t.Errorf("after the last use: got %d holders, want 0", b.Holders())
	}
	wantErr(t, "use after the end", h.Use(), ErrReleased)
	wantErr(t, "lock after the end", h.Lock(), ErrReleased)
	wantErr(t, "err after the end", h.Err(), ErrReleased)
	wantErr(t, "zero handle", Handle{}.Use(), ErrReleased)
	wantErr(t, "zero handle", Handle{}.Lock(), ErrReleased)
	wantErr(t, "zero handle", Handle{}.Release(), ErrReleased)
}

func TestHandleLock(t *testing.T) {
	b, h := newHandle(t)
	other, err := b.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "lock with two holders", h.Lock(), ErrShared)
	wantErr(t, "after the refused lock", h.Err(), nil)
	wantErr(t, "release of the other", other.Release(), nil)
	wantErr(t, "lock", h.Lock(), nil)
	wantErr(t, "use while locked", h.Use(), ErrWriting)
	wantErr(t, "second lock", h.Lock(), ErrWriting)
	wantErr(t, "err while locked", h.Err(), ErrWriting)
	h.Unlock()
	wantErr(t, "use after unlock", h.Use(), nil)
	h.EndUse()

	wantErr(t, "lock", h.Lock(), nil)
	wantErr(t, "donate under the lock", h.Donate(), nil)
	wantErr(t, "use of a donated handle", h.Use(), ErrDonated)
	wantErr(t, "release of a donated handle", h.Release(), ErrDonated)
	if b.Holders() != 1 {
		t.Errorf("donated, still locked: got %d holders, want 1", b.Holders())
	}
	h.Unlock()
	if b.Holders() != 0 {
		t.Errorf("unlocked: got %d holders, want 0", b.Holders())
	}
}

// A record serves one handle after another; a handle of an earlier life must
// not reach the later one.
func TestStaleHandleNeverMatchesALaterOne(t *testing.T) {
	_, first := newHandle(t)
	wantErr(t, "release", first.Release(), nil)
	for range 3 {
		_, h := newHandle(t)
		if h.rec != first.rec {
			t.Fatal("the record was not used again: this test tests nothing")
		}
		wantErr(t, "stale use", first.Use(), ErrReleased)
		wantErr(t, "stale lock", first.Lock(), ErrReleased)
		wantErr(t, "stale release", first.Release(), ErrReleased)
		wantErr(t, "the live one", h.Err(), nil)
		wantErr(t, "release", h.Release(), nil)
	}
}

func TestRecordInItsLastGenerationIsNotReused(t *testing.T) {
	_, h := newHandle(t)
	last := h.rec
	// Move the record, while no other goroutine has it, near the end of its
	// life.
	h.tag = genMask - genUnit | stateAlive
	last.word.Store(h.tag)
	wantErr(t, "release", h.Release(), nil)
	for range 3 {
		_, h := newHandle(t)
		if h.rec == last {
			t.Fatal("a record whose generations are used up was handed out again")
		}
		defer h.Release()
	}
}

func TestUseCountHasAnEnd(t *testing.T) {
	_, h := newHandle(t)
	h.rec.word.Store(h.tag | usesMask)
	wantErr(t, "one use too many", h.Use(), ErrLimit)
	h.rec.word.Store(h.tag)
	wantErr(t, "release", h.Release(), nil)
}

func TestUseEndedTwiceIsABug(t *testing.T) {
	_, h := newHandle(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("end of a use that was not taken: got no panic")
			}
		}()
		h.EndUse()
	}()
	h.rec.word.Store(h.tag)
	wantErr(t, "release", h.Release(), nil)
}

func TestRecordLayout(t *testing.T) {
	if got := unsafe.Sizeof(record{}); got != 64 {
		t.Errorf("record: got %d bytes, want a cache line of 64", got)
	}
	if got := unsafe.Offsetof(record{}.word); got != 0 {
		t.Errorf("word: got offset %d, want 0: foreign code subtracts there", got)
	}
	if got := unsafe.Sizeof(Handle{}); got != 16 {
		t.Errorf("handle: got %d bytes, want 16", got)
	}
}

func TestHandlesNeedMoreThanOneSlab(t *testing.T) {
	before := Stats().Handles
	b := mustAlloc(t, 64, IO)
	hs := make([]Handle, 3*recordsPerSlab)
	seen := map[*record]bool{}
	for i := range hs {
		var err error
		if hs[i], err = b.NewHandle(); err != nil {
			t.Fatal(err)
		}
		if seen[hs[i].rec] {
			t.Fatal("two live handles have one record")
		}
		seen[hs[i].rec] = true
	}
	if got := Stats().Handles - before; got != int64(len(hs)) || b.Holders() != len(hs)+1 {
		t.Errorf("got %d handles, %d holders, want %d and one more", got, b.Holders(), len(hs))
	}
	for i := range hs { // inside out, so that the chain loses links everywhere
		at := (i*7919 + 13) % len(hs)
		wantErr(t, "release", hs[at].Release(), nil)
	}
	if got := Stats().Handles; got != before || b.Holders() != 1 || len(b.Info().Handles) != 0 {
		t.Errorf("after release: got %d handles, %d holders, want %d and 1", got, b.Holders(), before)
	}
	mustRelease(t, b)
}

func TestUseAllocatesNothing(t *testing.T) {
	_, h := newHandle(t)
	if n := testing.AllocsPerRun(1000, func() {
		if h.Use() == nil {
			h.EndUse()
		}
		if h.Lock() == nil {
			h.Unlock()
		}
	}); n != 0 {
		t.Errorf("use and lock: got %v allocations, want 0", n)
	}
	wantErr(t, "release", h.Release(), nil)
}

// modelHandle is a simple model of a handle.
type modelHandle struct {
	h      Handle
	dead   error
	uses   int
	locked bool
}

// TestHandlesFollowTheModel runs random calls on handles of one buffer against
// a model without atomics.
func TestHandlesFollowTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := Alloc(64, IO)
		if err != nil {
			t.Fatal(err)
		}
		first, err := b.NewHandle()
		if err != nil {
			t.Fatal(err)
		}
		hs := []*modelHandle{{h: first}}
		raw := 1
		pick := func(t *rapid.T) *modelHandle { return hs[rapid.IntRange(0, len(hs)-1).Draw(t, "handle")] }
		holders := func() int {
			n := raw
			for _, m := range hs {
				if m.dead == nil || m.uses > 0 {
					n++
				}
			}
			return n
		}
		blocked := func(m *modelHandle) error { // why a use must fail
			switch {
			case m.dead != nil && m.uses == 0:
				return ErrReleased // the handle forgets how it ended when its record is free
			case m.dead != nil:
				return m.dead
			case m.locked:
				return ErrWriting
			}
			return nil
		}
		expect := func(t *rapid.T, what string, got, want error) {
			if !errors.Is(got, want) || (got == nil) != (want == nil) {
				t.Fatalf("%s: got %v, want %v", what, got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if got := b.Holders(); got != holders() {
					t.Fatalf("got %d holders, want %d", got, holders())
				}
				if (b.Bytes() == nil) != (holders() == 0) {
					t.Fatalf("%d holders: got %d bytes", holders(), len(b.Bytes()))
				}
			},
			"new": func(t *rapid.T) {
				h, err := b.NewHandle()
				if holders() == 0 {
					expect(t, "new handle on a freed buffer", err, ErrReleased)
					return
				}
				expect(t, "new handle", err, nil)
				hs = append(hs, &modelHandle{h: h})
			},
			"raw release": func(t *rapid.T) {
				if raw == 1 {
					expect(t, "buffer release", b.Release(), nil)
					raw = 0
				}
			},
			"use": func(t *rapid.T) {
				m := pick(t)
				want := blocked(m)
				expect(t, "use", m.h.Use(), want)
				if want == nil {
					m.uses++
				}
			},
			"end use": func(t *rapid.T) {
				m := pick(t)
				switch {
				case m.uses == 0:
					return
				case m.locked:
					m.h.Unlock()
					m.locked = false
				default:
					m.h.EndUse()
				}
				m.uses--
			},
			"lock": func(t *rapid.T) {
				m := pick(t)
				want := blocked(m)
				if want == nil && (m.uses > 0 || holders() != 1) {
					want = ErrShared
				}
				expect(t, "lock", m.h.Lock(), want)
				if want == nil {
					m.locked = true
					m.uses++
				}
			},
			"kill": func(t *rapid.T) {
				m := pick(t)
				kill, as := m.h.Release, ErrReleased
				if m.uses > 0 && rapid.Bool().Draw(t, "donate") {
					kill, as = m.h.Donate, ErrDonated
				}
				want := blocked(m)
				if want == ErrWriting {
					want = nil
				}
				expect(t, "kill", kill(), want)
				if want == nil {
					m.dead = as
				}
			},
		})
		for _, m := range hs {
			for ; m.uses > 0; m.uses-- {
				if m.locked {
					m.h.Unlock()
				} else {
					m.h.EndUse()
				}
			}
			if m.dead == nil {
				expect(t, "final release", m.h.Release(), nil)
			}
		}
		if raw == 1 {
			expect(t, "final release", b.Release(), nil)
		}
		if b.Holders() != 0 {
			t.Fatalf("at the end: got %d holders, want 0", b.Holders())
		}
	})
}

// TestHammerOneHandle lets readers, writers, makers of views and a releaser use
// one handle after another concurrently. The bytes are eight equal words except
// during a write; a reader that sees a mix has read during a write or after the
// end.
func TestHammerOneHandle(t *testing.T) {
	const rounds, readers, writers = 60, 3, 2
	before := Stats()
	for range rounds {
		b := mustAlloc(t, 64, IO)
		h, err := b.IntoHandle()
		if err != nil {
			t.Fatal(err)
		}
		m := &meeting{t: t, b: b, h: h, words: unsafe.Slice((*uint64)(unsafe.Pointer(&b.Bytes()[0])), 8)}
		var wg sync.WaitGroup
		for range readers {
			wg.Go(m.read)
		}
		for range writers {
			wg.Go(m.write)
		}
		wg.Go(func() { // releases when the others have met often enough
			for m.reads.Load() < 50 || m.writes.Load() < 50 {
				if v, err := viewOf(b, h); err == nil {
					wantErr(t, "view release", v.Release(), nil)
				}
				runtime.Gosched()
			}
			wantErr(t, "release", h.Release(), nil)
		})
		wg.Wait()
		if b.Holders() != 0 {
			t.Fatalf("at the end of a round: got %d holders, want 0", b.Holders())
		}
	}
	if after := Stats(); after.Handles != before.Handles || after.Total.Current != before.Total.Current {
		t.Errorf("after all: got %d handles, %d bytes, want %d and %d", after.Handles, after.Total.Current, before.Handles, before.Total.Current)
	}
}

type meeting struct {
	t             *testing.T
	b             *Buffer
	h             Handle
	words         []uint64
	reads, writes atomic.Int64
}

func (m *meeting) read() {
	for {
		err := m.h.Use()
		switch {
		case err == nil:
			for _, w := range m.words[1:] {
				if w != m.words[0] {
					m.t.Errorf("reader: got %v, want equal words", m.words)
					break
				}
			}
			m.h.EndUse()
			m.reads.Add(1)
		case !errors.Is(err, ErrWriting):
			wantErr(m.t, "reader", err, ErrReleased)
			return
		}
		runtime.Gosched()
	}
}

func (m *meeting) write() {
	for {
		err := m.h.Lock()
		switch {
		case err == nil:
			for i := range m.words {
				m.words[i]++
			}
			m.h.Unlock()
			m.writes.Add(1)
		case !errors.Is(err, ErrWriting) && !errors.Is(err, ErrShared):
			wantErr(m.t, "writer", err, ErrReleased)
			return
		}
		runtime.Gosched()
	}
}

// viewOf makes a second holder the way tensors do: under a use of the first.
func viewOf(b *Buffer, h Handle) (Handle, error) {
	if err := h.Use(); err != nil {
		return Handle{}, err
	}
	defer h.EndUse()
	return b.NewHandle()
}

// TestHammerRecords makes and ends handles on many goroutines: no record may be
// given to two, and every hold must end once.
func TestHammerRecords(t *testing.T) {
	before := Stats()
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			b := mustAlloc(t, 64, IO)
			for i := range 800 {
				var hs [4]Handle
				for j := range hs {
					var err error
					if hs[j], err = b.NewHandle(); err != nil {
						t.Error(err)
						return
					}
				}
				for j := range hs {
					wantErr(t, "use", hs[j].Use(), nil)
					wantErr(t, "release", hs[j].Release(), nil)
				}
				if i%100 == 0 && b.Holders() != 5 {
					t.Errorf("got %d holders, want 5", b.Holders())
				}
				for j := range hs {
					hs[j].EndUse()
				}
			}
			if b.Holders() != 1 {
				t.Errorf("got %d holders, want 1", b.Holders())
			}
			mustRelease(t, b)
		})
	}
	wg.Wait()
	if after := Stats(); after.Handles != before.Handles {
		t.Errorf("after all: got %d handles, want %d", after.Handles, before.Handles)
	}
}
