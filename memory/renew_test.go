package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// newRenewable returns a renewable buffer that only the handle holds.
func newRenewable(t *testing.T, bytes int, release func()) (*Buffer, Handle) {
	t.Helper()
	b := AdoptRenewable(make([]byte, bytes), Imported|ReadOnly, release)
	h, err := b.NewHandle()
	wantErr(t, "new handle", err, nil)
	wantErr(t, "release", b.Release(), nil)
	t.Cleanup(func() { runtime.KeepAlive(b) })
	return b, h
}

func mustRenew(t *testing.T, b *Buffer, ended Handle, data []byte, label string, release func()) Handle {
	t.Helper()
	h, ok := b.Renew(ended, data, label, release)
	if !ok {
		t.Fatal("nobody holds the buffer, and it was not renewed")
	}
	return h
}

func TestRenew(t *testing.T) {
	still(t)
	released := 0
	count := func() { released++ }
	b, h := newRenewable(t, 100, count)
	before := Stats()
	for life := 1; life < 5; life++ {
		old, id := h, b.Info().ID
		wantErr(t, "release", h.Release(), nil)
		if b.Bytes() != nil || released != life {
			t.Fatalf("after the last release: got %d bytes, given back %d times, want none, %d times", len(b.Bytes()), released, life)
		}
		data := make([]byte, 100)
		h = mustRenew(t, b, old, data, "again", count)
		if h.rec != old.rec {
			t.Error("the handle has another record")
		}
		for what, err := range map[string]error{"use": old.Use(), "lock": old.Lock(), "release": old.Release(), "err": old.Err()} {
			wantErr(t, "stale handle: "+what, err, ErrReleased)
		}
		wantErr(t, "lock", h.Lock(), ErrShared)
		if &b.Bytes()[0] != &data[0] || b.Holders() != 1 || b.Flags() != Imported|ReadOnly {
			t.Errorf("got %d holders and flags %v, want 1, imported, and the new bytes", b.Holders(), b.Flags())
		}
		info := b.Info()
		if info.ID <= id || info.Label != "again" || len(info.Handles) != 1 {
			t.Errorf("got %+v, want a number above %d, the new label and one handle", info, id)
		}
		if n := liveWith(info.ID); n != 1 {
			t.Errorf("it is listed %d times, want once", n)
		}
	}
	if now := Stats(); now != before {
		t.Errorf("got the figures %+v, want %+v", now, before)
	}
	wantErr(t, "release", h.Release(), nil)
}

func liveWith(id uint64) (n int) {
	for _, info := range Live() {
		if info.ID == id {
			n++
		}
	}
	return n
}

// A buffer with a holder of any kind is not renewed.
func TestRenewRefusesWhatIsHeld(t *testing.T) {
	data := make([]byte, 100)
	for name, hold := range map[string]func(*Buffer, Handle) (end func()){
		"the handle": func(_ *Buffer, h Handle) func() { return func() { _ = h.Release() } },
		"a hold":     func(b *Buffer, h Handle) func() { _ = b.Retain(); _ = h.Release(); return func() { _ = b.Release() } },
		"another handle": func(b *Buffer, h Handle) func() {
			v, _ := b.NewHandle()
			_ = h.Release()
			return func() { _ = v.Release() }
		},
		"a use":     func(_ *Buffer, h Handle) func() { _ = h.Use(); _ = h.Release(); return h.EndUse },
		"an export": func(_ *Buffer, h Handle) func() { _ = h.Export(); _ = h.Release(); return h.EndExport },
		"foreign code": func(_ *Buffer, h Handle) func() {
			_ = h.Export()
			f := h.Foreign()
			_ = h.Release()
			return func() { f.End(ForeignUnit) }
		},
	} {
		b, h := newRenewable(t, 100, nil)
		end := hold(b, h)
		was := &b.Bytes()[0]
		if _, ok := b.Renew(h, data, "", nil); ok {
			t.Errorf("%s is out: it was renewed", name)
		}
		if &b.Bytes()[0] != was {
			t.Errorf("%s is out: it got other bytes", name)
		}
		end()
		wantErr(t, "release", mustRenew(t, b, h, data, "", nil).Release(), nil)
	}
}

func TestRenewRefusesWhatIsUnlike(t *testing.T) {
	b, h := newRenewable(t, 100, nil)
	view, err := b.NewHandle()
	wantErr(t, "new handle", err, nil)
	wantErr(t, "release", h.Release(), nil)
	wantErr(t, "release", view.Release(), nil)
	for what, refused := range map[string]func() bool{
		"fewer bytes":     func() bool { _, ok := b.Renew(h, make([]byte, 99), "", nil); return !ok },
		"more bytes":      func() bool { _, ok := b.Renew(h, make([]byte, 101), "", nil); return !ok },
		"a view's handle": func() bool { _, ok := b.Renew(view, make([]byte, 100), "", nil); return !ok },
		"no handle":       func() bool { _, ok := b.Renew(Handle{}, make([]byte, 100), "", nil); return !ok },
	} {
		if !refused() {
			t.Errorf("%s: it was renewed", what)
		}
	}
	wantErr(t, "release", mustRenew(t, b, h, make([]byte, 100), "", nil).Release(), nil)

	plain := Import(make([]byte, 100), nil)
	h, err = plain.IntoHandle()
	wantErr(t, "into handle", err, nil)
	wantErr(t, "release", h.Release(), nil)
	if _, ok := plain.Renew(h, make([]byte, 100), "", nil); ok {
		t.Error("a buffer of Import was renewed")
	}
}

// A handle that moved to a view is on the same record, and the view may be the
// one that lives again.
func TestRenewAfterMove(t *testing.T) {
	b, h := newRenewable(t, 100, nil)
	wantErr(t, "release", h.Release(), nil)
	h = mustRenew(t, b, h, make([]byte, 100), "", nil)
	h.rec.word.Store(h.tag | writing | useUnit) // as under the lock, which no call gets on imported bytes
	moved := h.Move()
	wantErr(t, "moved from", h.Use(), ErrReleased)
	wantErr(t, "release", moved.Release(), nil)
	again := mustRenew(t, b, h, make([]byte, 100), "", nil)
	wantErr(t, "moved to", moved.Use(), ErrReleased)
	wantErr(t, "release", again.Release(), nil)
}

// Of many that renew at once one does.
func TestRenewIsClaimedOnce(t *testing.T) {
	b, h := newRenewable(t, 100, nil)
	for range 2000 {
		wantErr(t, "release", h.Release(), nil)
		var won atomic.Int32
		var work sync.WaitGroup
		next := make(chan Handle, 4)
		for range 4 {
			work.Go(func() {
				if got, ok := b.Renew(h, make([]byte, 100), "", nil); ok {
					won.Add(1)
					next <- got
				}
			})
		}
		work.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d renewed it, want 1", won.Load())
		}
		h = <-next
	}
	wantErr(t, "release", h.Release(), nil)
}

// Describing buffers does not meet their renewal. The race detector would see
// it.
func TestRenewWhileListed(t *testing.T) {
	b, h := newRenewable(t, 100, func() {})
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = Live()
			}
		}
	})
	for i := range 2000 {
		wantErr(t, "release", h.Release(), nil)
		h = mustRenew(t, b, h, make([]byte, 100), []string{"a", "another"}[i%2], func() {})
	}
	close(stop)
	work.Wait()
	wantErr(t, "release", h.Release(), nil)
}

func TestRenewOfASpentRecord(t *testing.T) {
	b, h := newRenewable(t, 100, nil)
	h.tag = genMask - genUnit | stateAlive // near the end of its life
	h.rec.word.Store(h.tag)
	wantErr(t, "release", h.Release(), nil)
	for _, ended := range []Handle{h, h, {}} {
		if _, ok := b.Renew(ended, make([]byte, 100), "", nil); ok {
			t.Fatal("renewed on a record whose generations are used up")
		}
	}
}

//go:noinline
func dropRenewed(t *testing.T, bytes int) {
	b := AdoptRenewable(make([]byte, bytes), Imported, nil)
	h, err := b.NewHandle()
	wantErr(t, "new handle", err, nil)
	wantErr(t, "release", b.Release(), nil)
	wantErr(t, "release", h.Release(), nil)
	mustRenew(t, b, h, make([]byte, bytes), "dropped", nil)
}

// The net is under every life of a buffer.
func TestDroppedRenewedBufferIsReported(t *testing.T) {
	leak := collectLeak(t, 1357, func() { dropRenewed(t, 1357) })
	if leak.Holders != 1 || leak.Label != "dropped" || !leak.Freed {
		t.Errorf("got %+v, want one holder of the last life, freed", leak)
	}
}

//go:noinline
func renewables(t *testing.T, n int) (exports []Foreign) {
	for i := range n {
		b := AdoptRenewable(make([]byte, 1), Imported, nil)
		h, err := b.NewHandle()
		wantErr(t, "new handle", err, nil)
		wantErr(t, "release", b.Release(), nil)
		if i%2 == 0 {
			wantErr(t, "export", h.Export(), nil)
			exports = append(exports, h.Foreign())
		}
		wantErr(t, "release", h.Release(), nil)
	}
	return exports
}

// The record that a renewable buffer keeps comes back when the buffer is
// dropped, also while foreign code has its bytes.
func TestRecordsOfDroppedRenewables(t *testing.T) {
	const n = 3 * recordsPerSlab
	free := func() (n int) {
		for at := uint32(records.free.Load()); at != 0; at = recordAt(at).free.Load() {
			n++
		}
		return n
	}
	exports := renewables(t, n)
	runtime.GC() // the buffers go first
	for _, f := range exports {
		f.End(ForeignUnit)
	}
	slabs := len(*records.slabs.Load())
	for end := time.Now().Add(20 * time.Second); free() < n && time.Now().Before(end); time.Sleep(time.Millisecond) {
		runtime.GC()
	}
	if got := free(); got < n || len(*records.slabs.Load()) != slabs {
		t.Errorf("got %d free records of %d slabs, want at least %d of %d", got, len(*records.slabs.Load()), n, slabs)
	}
}
