package memory

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
)

func TestHolders(t *testing.T) {
	b := mustAlloc(t, 100, IO)
	if b.Holders() != 1 || !b.IsExclusive() || b.Flags() != 0 || b.Purpose() != IO || b.Len() != 100 {
		t.Errorf("new buffer: got %d holders, exclusive %v, flags %s, purpose %s, %d bytes", b.Holders(), b.IsExclusive(), b.Flags(), b.Purpose(), b.Len())
	}
	if err := b.Retain(); err != nil {
		t.Fatal(err)
	}
	if b.Holders() != 2 || b.IsExclusive() {
		t.Errorf("retained: got %d holders, exclusive %v, want 2 and not", b.Holders(), b.IsExclusive())
	}
	mustRelease(t, b)
	if b.Bytes() == nil || !b.IsExclusive() {
		t.Error("with one holder left: got no bytes, or not exclusive again")
	}
	mustRelease(t, b)
	if b.Bytes() != nil || b.Holders() != 0 || b.Len() != 100 {
		t.Errorf("freed: got %d bytes, %d holders, length %d, want none, none and 100", len(b.Bytes()), b.Holders(), b.Len())
	}
	if err := b.Release(); !errors.Is(err, ErrReleased) {
		t.Errorf("release too much: got %v, want ErrReleased", err)
	}
	if err := b.Retain(); !errors.Is(err, ErrReleased) {
		t.Errorf("retain after the end: got %v, want ErrReleased", err)
	}
	if _, err := b.NewHandle(); !errors.Is(err, ErrReleased) {
		t.Errorf("handle after the end: got %v, want ErrReleased", err)
	}
}

func TestImportedBytesAreNeverExclusive(t *testing.T) {
	before := Stats()
	data := []byte{1, 2, 3}
	ended := 0
	b := Import(data, func() { ended++ })
	if b.IsExclusive() || b.Flags() != Imported || b.Flags().String() != "imported" {
		t.Errorf("imported: got exclusive %v, flags %s", b.IsExclusive(), b.Flags())
	}
	if &b.Bytes()[0] != &data[0] {
		t.Error("imported: got other bytes than the caller's")
	}
	if now := Stats(); now.Total != before.Total {
		t.Errorf("imported bytes are counted: got %+v, want %+v", now.Total, before.Total)
	}
	if err := b.Retain(); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, b)
	if ended != 0 {
		t.Error("release called while held")
	}
	mustRelease(t, b)
	if ended != 1 || data[0] != 1 {
		t.Errorf("after the last holder: release called %d times, first byte %d, want once and 1", ended, data[0])
	}
	mustRelease(t, Import(nil, nil))
}

func TestOwn(t *testing.T) {
	still(t)
	before := Stats()
	data := make([]byte, 5000)
	given := 0
	b, err := Own(data, Shared, func() { given++ })
	if err != nil {
		t.Fatal(err)
	}
	now := Stats()
	if got, want := now.Of(Shared).Current, before.Of(Shared).Current+5000; got != want {
		t.Errorf("owned: got %d bytes of purpose shared, want %d", got, want)
	}
	if got, want := now.System, before.System+5000; got != want {
		t.Errorf("owned: got %d bytes of the system, want %d", got, want)
	}
	if now.Of(Shared).Buffers != before.Of(Shared).Buffers+1 || now.Of(Shared).Peak < now.Of(Shared).Current {
		t.Errorf("owned: got %+v, want one buffer more and a peak not below", now.Of(Shared))
	}
	if !b.IsExclusive() || b.Flags() != 0 || b.Purpose() != Shared || &b.Bytes()[0] != &data[0] || cap(b.Bytes()) != 5000 {
		t.Errorf("owned: got exclusive %v, flags %s, purpose %s, want the caller's bytes, exclusive, for shared", b.IsExclusive(), b.Flags(), b.Purpose())
	}
	h, err := b.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, b)
	if err := h.Lock(); err != nil {
		t.Errorf("lock of the only holder: got %v", err)
	}
	if given != 0 {
		t.Error("given back while held")
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if given != 0 {
		t.Error("given back under the lock")
	}
	h.Unlock()
	if given != 1 || b.Bytes() != nil {
		t.Errorf("after the last holder: given back %d times, %d bytes, want once and none", given, len(b.Bytes()))
	}
	if err := b.Release(); !errors.Is(err, ErrReleased) || given != 1 {
		t.Errorf("release too much: got %v, given back %d times, want ErrReleased and once", err, given)
	}
	if now := Stats(); now.Total.Current != before.Total.Current || now.System != before.System || now.Of(Shared).Buffers != before.Of(Shared).Buffers {
		t.Errorf("after the end: got %+v, want %+v", now, before)
	}
}

func TestOwnRefuses(t *testing.T) {
	still(t)
	data := make([]byte, 5000)
	if _, err := Own(data, noPurpose, func() {}); err == nil {
		t.Error("no purpose: got no error")
	}
	if _, err := Own(data, Shared, nil); err == nil {
		t.Error("no way back: got no error")
	}
	before := Stats()
	defer SetLimit(SetLimit(before.Total.Current + 4999))
	if _, err := Own(data, Shared, func() { t.Error("given back after an error") }); !errors.Is(err, ErrLimit) {
		t.Errorf("over the limit: got %v, want ErrLimit", err)
	}
	if now := Stats(); now.Total.Current != before.Total.Current || now.System != before.System || now.Total.Peak != before.Total.Peak {
		t.Errorf("after a refusal: got %+v, want %+v", now, before)
	}
}

func TestFreeze(t *testing.T) {
	b := mustAlloc(t, 100, IO)
	h, err := b.IntoHandle()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Lock(); err != nil {
		t.Fatal(err)
	}
	b.Bytes()[0] = 7
	h.Unlock()
	b.Freeze()
	b.Freeze()
	if b.IsExclusive() || b.Flags() != ReadOnly || b.Holders() != 1 {
		t.Errorf("frozen: got exclusive %v, flags %s, %d holders, want read-only and 1", b.IsExclusive(), b.Flags(), b.Holders())
	}
	wantErr(t, "lock of a frozen buffer", h.Lock(), ErrShared)
	if err := h.Use(); err != nil || b.Bytes()[0] != 7 {
		t.Errorf("use of a frozen buffer: got %v, byte %d, want 7", err, b.Bytes()[0])
	}
	h.EndUse()
	if err := h.Release(); err != nil || b.Holders() != 0 {
		t.Errorf("release: got %v, %d holders, want none", err, b.Holders())
	}
}

// TestFreezeAmongHolders: the flag comes while others retain and release, and
// no hold is lost.
func TestFreezeAmongHolders(t *testing.T) {
	given := 0
	b, err := Own(make([]byte, 8), Shared, func() { given++ })
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 1000 {
				if err := b.Retain(); err != nil {
					t.Error(err)
				}
				if i == 0 {
					b.Freeze()
				}
				if err := b.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if b.Holders() != 1 || b.Flags() != ReadOnly || given != 0 {
		t.Errorf("got %d holders, flags %s, given back %d times, want 1, read-only, 0", b.Holders(), b.Flags(), given)
	}
	mustRelease(t, b)
	if given != 1 {
		t.Errorf("given back %d times, want once", given)
	}
}

func TestMapFile(t *testing.T) {
	still(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	want := bytes.Repeat([]byte("weights "), 5000)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	before := Stats()
	b, err := MapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Error("mapped bytes differ from the file's")
	}
	now := Stats()
	if n := int64(len(want)); now.Of(Weights).Current-before.Of(Weights).Current != n || now.Files-before.Files != n || now.System != before.System {
		t.Errorf("figures: got %+v, want %d bytes of weights more, all in files", now, n)
	}
	h, err := b.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, b) // the handle alone keeps the mapping
	if b.Bytes()[0] != 'w' || b.IsExclusive() || b.Flags() != Mapped|ReadOnly {
		t.Errorf("with one holder: got exclusive %v, flags %s", b.IsExclusive(), b.Flags())
	}
	if err := h.Lock(); !errors.Is(err, ErrShared) {
		t.Errorf("lock of a mapped file: got %v, want ErrShared", err)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	if after := Stats(); after.Total.Current != before.Total.Current || after.Files != before.Files {
		t.Errorf("figures after the end: got %+v, want %+v", after, before)
	}
}

func TestMapFileErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := MapFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v, want os.ErrNotExist", err)
	}
	if _, err := MapFile(dir); err == nil {
		t.Error("a folder: got no error")
	}
	path := filepath.Join(dir, "empty")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := MapFile(path)
	if err != nil {
		t.Fatalf("empty file: %v", err)
	}
	if b.Len() != 0 || b.Holders() != 1 {
		t.Errorf("empty file: got %d bytes, %d holders, want 0 and 1", b.Len(), b.Holders())
	}
	mustRelease(t, b)
	if err := os.WriteFile(path, make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	defer SetLimit(SetLimit(Stats().Total.Current + 4999))
	if _, err := MapFile(path); !errors.Is(err, ErrLimit) {
		t.Errorf("file over the limit: got %v, want ErrLimit", err)
	}
}

func TestResident(t *testing.T) {
	small := mustAlloc(t, 40, IO)
	defer mustRelease(t, small)
	if _, err := small.Resident(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("small buffer: got %v, want unsupported", err)
	}
	const size = 4 << 20
	b := mustAlloc(t, size, Activations)
	defer mustRelease(t, b)
	n, err := b.Resident()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("not known here: %v", err)
	}
	if err != nil || n > 0 && !invariant.Enabled { // the canary behind the end may lie in one huge page with the end
		t.Errorf("untouched: got %d resident bytes (%v), want none", n, err)
	}
	for i := 0; i < size; i += 4096 {
		b.Bytes()[i] = 1
	}
	if n, err = b.Resident(); err != nil || n != size {
		t.Errorf("touched: got %d resident bytes (%v), want %d", n, err, size)
	}
}

func TestLiveDescribesBuffers(t *testing.T) {
	b := mustAlloc(t, 77, Exports)
	b.SetLabel("f32")
	h, err := b.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Use(); err != nil {
		t.Fatal(err)
	}
	all := Live()
	got := all[len(all)-1]
	if got.Bytes != 77 || got.Purpose != Exports || got.Label != "f32" || got.Holders != 2 || len(got.Handles) != 1 || got.Handles[0].Uses != 1 || got.Handles[0].Dead {
		t.Errorf("newest live buffer: got %+v", got)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if got := b.Info(); len(got.Handles) != 1 || !got.Handles[0].Dead {
		t.Errorf("released in use: got %+v, want one dead handle", got)
	}
	h.EndUse()
	if got := b.Info(); len(got.Handles) != 0 || got.Holders != 1 {
		t.Errorf("use ended: got %+v, want the buffer's own hold alone", got)
	}
	mustRelease(t, b)
	for _, info := range Live() {
		if info.ID == got.ID {
			t.Errorf("freed buffer is listed: %+v", info)
		}
	}
}

func TestDiscard(t *testing.T) {
	small := mustAlloc(t, 40, IO)
	defer mustRelease(t, small)
	wantErr(t, "small buffer", small.Discard(0, 40), errors.ErrUnsupported)
	for _, r := range [][2]int{{-1, 1}, {2, 1}, {0, 41}} {
		if err := small.Discard(r[0], r[1]); err == nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("bytes %d to %d of 40: got %v, want an error of the range", r[0], r[1], err)
		}
	}
	page := osmem.PageSize()
	path := filepath.Join(t.TempDir(), "weights")
	want := bytes.Repeat([]byte{7}, 5*page)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	mapped, err := MapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mustRelease(t, mapped)
	large := mustAlloc(t, 100*page, IO)
	defer mustRelease(t, large)
	for i := range large.Bytes() {
		large.Bytes()[i] = 7
	}
	for name, b := range map[string]*Buffer{"file": mapped, "large": large} {
		if err := b.Discard(1, 3*page+1); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		// Pages 1 and 2 lie wholly within; their neighbours are unchanged, even
		// if the system dropped them.
		for _, at := range []int{0, page - 1, 3 * page, 4 * page} {
			if got := b.Bytes()[at]; got != 7 {
				t.Errorf("%s: got byte %d at %d, want 7", name, got, at)
			}
		}
	}
	if !bytes.Equal(mapped.Bytes(), want) {
		t.Error("a mapped file changed")
	}
	if n, err := large.Resident(); err == nil && large.Discard(page, 99*page) == nil {
		if m, err := large.Resident(); err != nil || m >= n {
			t.Errorf("got %d resident bytes, before %d, want fewer", m, n)
		}
	}
}

// A nil or zero buffer has no bytes and no holder, and so has a released one.
// TestZeroValues of the module calls every method of them; this test checks the
// results.
func TestNoBuffer(t *testing.T) {
	gone, err := Alloc(0, IO)
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Release(); err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string]*Buffer{"nil": nil, "zero": {}, "released": gone} {
		if n, exclusive, flags := b.Holders(), b.IsExclusive(), b.Flags(); n != 0 || exclusive || flags != 0 || b.Len() != 0 || b.Bytes() != nil {
			t.Errorf("%s: got %d holders, exclusive %v, flags %s, %d bytes, want none of them", what, n, exclusive, flags, b.Len())
		}
		_, intoErr := b.IntoHandle()
		_, newErr := b.NewHandle()
		for call, err := range map[string]error{"release": b.Release(), "retain": b.Retain(), "into handle": intoErr, "new handle": newErr} {
			if !errors.Is(err, ErrReleased) {
				t.Errorf("%s of a %s buffer: got %v, want ErrReleased", call, what, err)
			}
		}
	}
	for what, a := range map[string]*Arena{"nil": nil, "zero": {}} {
		if _, err := a.Alloc(1); !errors.Is(err, ErrReleased) {
			t.Errorf("%s arena: got %v, want ErrReleased", what, err)
		}
		if s := a.Stats(); s != (ArenaStats{}) {
			t.Errorf("%s arena: got %+v, want nothing", what, s)
		}
	}
}
