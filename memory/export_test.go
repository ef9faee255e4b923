package memory

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// The offsets are a contract with code in other languages.
func TestForeignLayout(t *testing.T) {
	var r record
	for name, got := range map[string][2]uint64{
		"word":          {uint64(unsafe.Offsetof(r.word)), 0},
		"index":         {uint64(unsafe.Offsetof(r.index)), ForeignIndex},
		"next":          {uint64(unsafe.Offsetof(r.free)), ForeignNext},
		"size":          {uint64(unsafe.Sizeof(r)), 64},
		"unit":          {ForeignUnit, 1 << 18},
		"write":         {ForeignWrite, 1<<34 | 1<<18},
		"busy":          {ForeignBusy, 1<<34 - 1},
		"dead":          {ForeignDead, 1 << 37},
		"dead released": {stateReleased & dead, dead},
		"dead donated":  {stateDonated & dead, dead},
		"dead alive":    {stateAlive & dead, 0},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %d, want %d", name, got[0], got[1])
		}
	}
}

func TestExportKeepsTheBytes(t *testing.T) {
	b, h := newHandle(t)
	wantErr(t, "export", h.Export(), nil)
	wantErr(t, "second export", h.Export(), nil)
	if uses, exports := h.Uses(); uses != 0 || exports != 2 {
		t.Errorf("got %d uses and %d exports, want 0 and 2", uses, exports)
	}
	wantErr(t, "lock while exported", h.Lock(), ErrShared)
	wantErr(t, "use while exported", h.Use(), nil)
	h.EndUse()
	h.Foreign().end(ForeignUnit)
	if Reclaim() != 0 {
		t.Error("an export of a live handle ended: got something to reclaim")
	}
	wantErr(t, "release", h.Release(), nil)
	wantErr(t, "export of a released handle", h.Export(), ErrReleased)
	if b.Holders() != 1 {
		t.Fatal("released while exported: the hold is gone")
	}
	h.Foreign().end(ForeignUnit)
	for end := time.Now().Add(10 * time.Second); b.Holders() != 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // the timer does it: no other goroutine allocates or reads figures
	}
	if b.Holders() != 0 || orphans.Load() != 0 {
		t.Errorf("after the last export: got %d holders and %d orphans, want none", b.Holders(), orphans.Load())
	}
}

func TestReclaimOnDemandAndOnAllocation(t *testing.T) {
	for name, act := range map[string]func(){
		"demand":     func() { Reclaim() },
		"allocation": func() { mustAlloc(t, 64, Scratch).Release() },
	} {
		watching.Store(true) // no timer in this test
		b, h := newHandle(t)
		wantErr(t, "export", h.LockExport(), nil)
		wantErr(t, "use while an export writes", h.Use(), ErrWriting)
		wantErr(t, "donate", h.Donate(), nil)
		h.Foreign().end(ForeignWrite)
		if b.Holders() != 1 {
			t.Errorf("%s: the hold ended before", name)
		}
		act()
		if b.Holders() != 0 {
			t.Errorf("%s: got %d holders, want 0", name, b.Holders())
		}
		watching.Store(false)
	}
}

type attachment struct{ ended atomic.Int32 }

func (a *attachment) End() { a.ended.Add(1) }

func TestAttachment(t *testing.T) {
	_, h := newHandle(t)
	first, second := new(attachment), new(attachment)
	wantErr(t, "use", h.Use(), nil)
	if there, ok := h.Attach(first); there != first || !ok {
		t.Error("attach: refused")
	}
	if there, ok := h.Attach(second); there != first || ok {
		t.Error("second attach: want the first one back")
	}
	h.EndUse()
	wantErr(t, "lock", h.Lock(), nil)
	moved := h.Move()
	if first.ended.Load() != 1 {
		t.Error("moved: what was attached belongs to the old handle and must end")
	}
	wantErr(t, "use", moved.Use(), nil)
	if there, ok := moved.Attach(second); there != second || !ok {
		t.Error("attach to the moved handle: refused")
	}
	wantErr(t, "release", moved.Release(), nil)
	if second.ended.Load() != 0 {
		t.Error("ended before the last use")
	}
	moved.EndUse()
	if second.ended.Load() != 1 || first.ended.Load() != 1 {
		t.Errorf("got %d and %d ends, want one each", first.ended.Load(), second.ended.Load())
	}
}

func TestMove(t *testing.T) {
	b, h := newHandle(t)
	wantErr(t, "lock", h.Lock(), nil)
	to := h.Move()
	wantErr(t, "use of the old one", h.Use(), ErrReleased)
	wantErr(t, "use of the new one", to.Use(), nil)
	to.EndUse()
	if b.Holders() != 1 || len(b.Info().Handles) != 1 {
		t.Errorf("got %+v, want one holder", b.Info())
	}
	// A release under the lock succeeds; the move goes on.
	wantErr(t, "lock", to.Lock(), nil)
	wantErr(t, "release under the lock", to.Release(), nil)
	last := to.Move()
	wantErr(t, "the moved one", last.Err(), nil)
	wantErr(t, "release", last.Release(), nil)
	if b.Holders() != 0 {
		t.Errorf("got %d holders, want 0", b.Holders())
	}
}

func TestMoveWithoutLockIsABug(t *testing.T) {
	_, h := newHandle(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("move of a handle that is not locked: got no panic")
			}
		}()
		h.Move()
	}()
	h.rec.word.Store(h.tag)
	wantErr(t, "release", h.Release(), nil)
}

func TestGivenUpWhileExportedIsNoLeak(t *testing.T) {
	before := Stats()
	var place Foreign
	func() {
		b := mustAlloc(t, 4444, Exports)
		h, err := b.IntoHandle()
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, "export", h.Export(), nil)
		wantErr(t, "release", h.Release(), nil)
		place = h.Foreign()
	}()
	for range 3 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	if got := Stats(); got.Leaks != before.Leaks || got.Total.Current != before.Total.Current+4444 {
		t.Errorf("while exported: got %+v, want 4444 bytes more than %+v and no leak", got, before)
	}
	place.end(ForeignUnit)
	for end := time.Now().Add(10 * time.Second); Stats().Total.Current != before.Total.Current && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if got := Stats(); got.Total.Current != before.Total.Current {
		t.Errorf("after the export: got %d bytes, want %d", got.Total.Current, before.Total.Current)
	}
}

// Exports end on threads of their own while handles are released, locked and
// used: every hold ends exactly once.
func TestHammerExports(t *testing.T) {
	before := Stats()
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 3000 {
				b, err := Alloc(64, Scratch)
				if err != nil {
					t.Error(err)
					return
				}
				h, err := b.IntoHandle()
				if err != nil {
					t.Error(err)
					return
				}
				var foreign sync.WaitGroup
				for range 3 {
					if err := h.Export(); err != nil {
						t.Error(err)
						return
					}
					foreign.Add(1)
					go func() { defer foreign.Done(); h.Foreign().end(ForeignUnit) }()
				}
				if err := h.Lock(); err == nil {
					h.Unlock()
				} else if !errors.Is(err, ErrShared) {
					t.Error(err)
				}
				if err := h.Release(); err != nil {
					t.Error(err)
				}
				foreign.Wait()
				runtime.KeepAlive(b)
			}
		}()
	}
	group.Wait()
	Reclaim()
	if got := Stats(); got.Total.Current != before.Total.Current || got.Handles != before.Handles || orphans.Load() != 0 {
		t.Errorf("got %d bytes, %d handles, %d orphans, want %d, %d, 0", got.Total.Current, got.Handles, orphans.Load(), before.Total.Current, before.Handles)
	}
}

// TestRecordModel drives a handle through all of its transitions and compares
// it with a simple model.
func TestRecordModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := Alloc(64, Scratch)
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.IntoHandle()
		if err != nil {
			t.Fatal(err)
		}
		place := h.Foreign()
		alive, locked, lockedOut, uses, exports := true, false, false, 0, 0
		idle := func() bool { return !locked && !lockedOut && uses+exports == 0 }
		agree := func(what string, err, want error) {
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Fatalf("%s: got %v, want %v", what, err, want)
			}
		}
		refusal := func(write bool) error {
			switch {
			case !alive:
				return ErrReleased
			case locked || lockedOut:
				return ErrWriting
			case write && !idle():
				return ErrShared
			}
			return nil
		}
		take := func(what string, err error, write bool, then func()) {
			want := refusal(write)
			agree(what, err, want)
			if want == nil {
				then()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"use":        func(*rapid.T) { take("use", h.Use(), false, func() { uses++ }) },
			"export":     func(*rapid.T) { take("export", h.Export(), false, func() { exports++ }) },
			"lock":       func(*rapid.T) { take("lock", h.Lock(), true, func() { locked = true }) },
			"lockExport": func(*rapid.T) { take("lock export", h.LockExport(), true, func() { lockedOut = true }) },
			"endUse": func(t *rapid.T) {
				if uses == 0 {
					t.Skip()
				}
				uses--
				h.EndUse()
			},
			"endExport": func(t *rapid.T) {
				if exports == 0 {
					t.Skip()
				}
				exports--
				place.end(ForeignUnit)
			},
			"unlock": func(t *rapid.T) {
				if !locked {
					t.Skip()
				}
				locked = false
				h.Unlock()
			},
			"unlockExport": func(t *rapid.T) {
				if !lockedOut {
					t.Skip()
				}
				lockedOut = false
				place.end(ForeignWrite)
			},
			"release": func(*rapid.T) {
				if !alive {
					agree("release", h.Release(), ErrReleased)
					return
				}
				agree("release", h.Release(), nil)
				alive = false
			},
			"move": func(t *rapid.T) {
				if !locked {
					t.Skip()
				}
				old := h
				h, locked, alive = h.Move(), false, true
				agree("use of a moved handle", old.Use(), ErrReleased)
				agree("release of a moved handle", old.Release(), ErrReleased)
			},
			"": func(*rapid.T) {
				Reclaim()
				held := alive || !idle()
				if (b.Holders() == 1) != held {
					t.Fatalf("alive %v, locked %v %v, %d uses, %d exports: got %d holders", alive, locked, lockedOut, uses, exports, b.Holders())
				}
			},
		})
		for ; uses > 0; uses-- {
			h.EndUse()
		}
		for ; exports > 0; exports-- {
			place.end(ForeignUnit)
		}
		if locked {
			h.Unlock()
		}
		if lockedOut {
			place.end(ForeignWrite)
		}
		if alive {
			agree("last release", h.Release(), nil)
		}
		Reclaim()
		if b.Holders() != 0 {
			t.Fatalf("at the end: got %d holders, want 0", b.Holders())
		}
	})
}
