package memory

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/internal/invariant"
)

func mustArena(t testing.TB, limit int64) *Arena {
	t.Helper()
	a, err := NewArena(limit, Activations)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustTake(t testing.TB, a *Arena, bytes int) *Buffer {
	t.Helper()
	b, err := a.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Classes begin at 2^5 and end at 2^36: the index of the first is 0, and no
// size of a class goes past the last.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		bytes, class int
		size         int64
	}{
		{0, 0, 32}, {1, 0, 32}, {32, 0, 32}, {33, 1, 64}, {64, 1, 64}, {65, 2, 128}, {1 << 20, 15, 1 << 20}, {1<<20 + 1, 16, 1 << 21},
		{1 << 31, 26, 1 << 31}, {1<<31 + 1, 27, 1 << 32}, {1 << 36, 31, 1 << 36},
	} {
		if class, size, err := classOf(c.bytes); class != c.class || size != c.size || err != nil {
			t.Errorf("%d bytes: got class %d of %d bytes and %v, want %d of %d", c.bytes, class, size, err, c.class, c.size)
		}
	}
	for _, bytes := range []int{-1, 1<<36 + 1} {
		if _, _, err := classOf(bytes); !errors.Is(err, ErrLimit) {
			t.Errorf("%d bytes: got %v, want ErrLimit", bytes, err)
		}
	}
	if numClasses != 32 {
		t.Errorf("got %d classes, want 32", numClasses)
	}
}

// A buffer of 33 bytes and one of 60 are of one class: the bytes of the first,
// reused, suffice for the second.
func TestReusedBufferHasRoomForItsClass(t *testing.T) {
	a := mustArena(t, 1<<20)
	small := mustTake(t, a, 33)
	at := unsafe.SliceData(small.Bytes())
	wantErr(t, "release", small.Release(), nil)
	large := mustTake(t, a, 60)
	if unsafe.SliceData(large.Bytes()) != at || len(large.Bytes()) != 60 || cap(large.Bytes()) != 60 {
		t.Errorf("got %d bytes, reused %v, want 60 of the same class", len(large.Bytes()), unsafe.SliceData(large.Bytes()) == at)
	}
	other := mustTake(t, a, 64)
	for i := range large.Bytes() {
		large.Bytes()[i] = 1
	}
	for i := range other.Bytes() {
		other.Bytes()[i] = 2
	}
	for i, v := range large.Bytes() {
		if v != 1 {
			t.Fatalf("byte %d was overwritten by another buffer's owner", i)
		}
	}
	if !large.IsExclusive() || uintptr(unsafe.Pointer(unsafe.SliceData(other.Bytes())))%Alignment != 0 {
		t.Error("an arena's buffer is not exclusive, or not aligned")
	}
	wantErr(t, "release", large.Release(), nil)
	wantErr(t, "release", other.Release(), nil)
	wantErr(t, "close", a.Close(), nil)
}

func TestArenaLimit(t *testing.T) {
	before := Stats()
	a := mustArena(t, 256)
	x, y := mustTake(t, a, 100), mustTake(t, a, 100)
	if _, err := a.Alloc(1); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "got 256 out in 2 buffers, want at most the limit of 256") {
		t.Errorf("over the limit: got %v", err)
	}
	if got, want := a.Stats(), (ArenaStats{Buffers: 2, Requested: 200, Class: 256, Limit: 256, Fresh: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	wantErr(t, "release", x.Release(), nil)
	if got := a.Stats(); got.FreeListed != 128 || got.Class != 128 || got.Requested != 100 {
		t.Errorf("one back: got %+v", got)
	}
	// Free bytes of another class are released when the limit requires it.
	z := mustTake(t, a, 10)
	if got := a.Stats(); got.FreeListed != 0 || got.Class != 160 || Stats().Of(Activations).Current != before.Of(Activations).Current+160 {
		t.Errorf("after another class: got %+v", got)
	}
	if _, err := a.Alloc(-1); !errors.Is(err, ErrLimit) {
		t.Errorf("negative: got %v", err)
	}
	wantErr(t, "release", y.Release(), nil)
	wantErr(t, "release", z.Release(), nil)
	wantErr(t, "close", a.Close(), nil)
	if _, err := a.Alloc(1); !errors.Is(err, ErrReleased) {
		t.Errorf("closed: got %v, want ErrReleased", err)
	}
	if got := Stats(); got.Total.Current != before.Total.Current {
		t.Errorf("at the end: got %d bytes, want %d", got.Total.Current, before.Total.Current)
	}
	for _, limit := range []int64{0, -1} {
		if _, err := NewArena(limit, Scratch); err == nil {
			t.Errorf("limit %d: got no error", limit)
		}
	}
	if _, err := NewArena(1, noPurpose); err == nil {
		t.Error("no purpose: got no error")
	}
}

func TestArenaAtTheLimitDrainsAndCollects(t *testing.T) {
	a := mustArena(t, 64)
	b := mustTake(t, a, 64)
	h, err := b.IntoHandle()
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "export", h.Export(), nil)
	wantErr(t, "release", h.Release(), nil)
	h.Foreign().end(ForeignUnit)
	c := mustTake(t, a, 64) // the export's bytes, drained
	wantErr(t, "release", c.Release(), nil)

	func() { // dropped, not released
		if _, err := mustTake(t, a, 64).IntoHandle(); err != nil {
			t.Fatal(err)
		}
	}()
	for end := time.Now().Add(20 * time.Second); ; {
		lastCollect.Store(0)
		if c, err = a.Alloc(64); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a dropped buffer was not found at the limit: %v", err)
		}
	}
	wantErr(t, "release", c.Release(), nil)
	wantErr(t, "close", a.Close(), nil)
}

func TestClearWithHoldersOut(t *testing.T) {
	before := Stats().Total.Current
	a := mustArena(t, 1<<20)
	x, y := mustTake(t, a, 100), mustTake(t, a, 1000)
	x.SetLabel("f32")
	wantErr(t, "release", y.Release(), nil)
	for _, err := range []error{a.Clear(), a.Close()} {
		if !errors.Is(err, ErrShared) || !strings.Contains(err.Error(), "1 buffers are out") || !strings.Contains(err.Error(), "100 bytes (f32), 1 holders") {
			t.Errorf("got %v, want ErrShared with the buffer that is out", err)
		}
		if invariant.Enabled != strings.Contains(err.Error(), "TestClearWithHoldersOut") {
			t.Errorf("got %v, want the allocation site in the invariant build and nothing else", err)
		}
	}
	if a.Stats().FreeListed != 1024 {
		t.Error("a refused clear gave something back")
	}
	a.ClearWhenIdle()
	z := mustTake(t, a, 100)
	if got := a.Stats(); got.FreeListed != 0 || got.Buffers != 2 {
		t.Errorf("deferred: got %+v", got)
	}
	wantErr(t, "release", x.Release(), nil)
	wantErr(t, "release", z.Release(), nil)
	if got := a.Stats(); got.FreeListed != 0 || got.Class != 0 {
		t.Errorf("all back: got %+v, want nothing pooled", got)
	}
	wantErr(t, "release", mustTake(t, a, 100).Release(), nil)
	if got := a.Stats(); got.FreeListed != 128 {
		t.Errorf("after that: got %+v, want it to pool again", got)
	}
	wantErr(t, "clear", a.Clear(), nil)
	last := mustTake(t, a, 10)
	a.CloseWhenIdle()
	wantErr(t, "release", last.Release(), nil)
	if got := Stats().Total.Current; got != before {
		t.Errorf("at the end: got %d bytes, want %d", got, before)
	}
}

func TestDroppedArenaGivesBack(t *testing.T) {
	before := Stats()
	b := func() *Buffer {
		a := mustArena(t, 1<<20)
		wantErr(t, "release", mustTake(t, a, 5000).Release(), nil)
		return mustTake(t, a, 300)
	}()
	for end := time.Now().Add(20 * time.Second); Stats().Total.Current != before.Total.Current+512 && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if got := Stats(); got.Total.Current != before.Total.Current+512 || got.Leaks != before.Leaks {
		t.Errorf("dropped: got %d bytes more and %d leaks more, want 512 and none", got.Total.Current-before.Total.Current, got.Leaks-before.Leaks)
	}
	wantErr(t, "release", b.Release(), nil)
	if got := Stats(); got.Total.Current != before.Total.Current {
		t.Errorf("released: got %d bytes, want %d", got.Total.Current, before.Total.Current)
	}
}

func TestWriteBehindAnArenasBufferIsFound(t *testing.T) {
	if !invariant.Enabled {
		t.Skip("only the invariant build looks behind buffers")
	}
	a := mustArena(t, 1<<20)
	b := mustTake(t, a, 40)
	behind := unsafe.Slice(unsafe.SliceData(b.Bytes()), 41)
	old := behind[40]
	behind[40] = ^old
	func() {
		defer func() {
			if recover() == nil {
				t.Error("got no panic")
			}
		}()
		_ = b.Release()
	}()
}

func TestArenaModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := int64(rapid.IntRange(32, 4096).Draw(t, "limit"))
		a, err := NewArena(limit, Scratch)
		if err != nil {
			t.Fatal(err)
		}
		lastCollect.Store(time.Now().UnixNano()) // no collections: nothing is ever dropped here
		type owned struct {
			b    *Buffer
			mark byte
		}
		var out []owned
		var requested, class int64
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				bytes := rapid.IntRange(0, 1500).Draw(t, "bytes")
				_, size, _ := classOf(bytes)
				b, err := a.Alloc(bytes)
				if (err == nil) != (class+size <= limit) {
					t.Fatalf("%d bytes with %d out of %d: got %v", bytes, class, limit, err)
				}
				if err != nil {
					return
				}
				mark := rapid.Byte().Draw(t, "mark")
				for i := range b.Bytes() {
					b.Bytes()[i] = mark
				}
				out = append(out, owned{b, mark})
				requested, class = requested+int64(bytes), class+size
			},
			"give": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
				_, size, _ := classOf(out[i].b.Len())
				requested, class = requested-int64(out[i].b.Len()), class-size
				if err := out[i].b.Release(); err != nil {
					t.Fatal(err)
				}
				out = append(out[:i], out[i+1:]...)
			},
			"clear": func(t *rapid.T) {
				if err := a.Clear(); (err == nil) != (len(out) == 0) {
					t.Fatalf("clear with %d out: got %v", len(out), err)
				}
			},
			"": func(t *rapid.T) {
				for _, o := range out {
					for i, v := range o.b.Bytes() {
						if v != o.mark {
							t.Fatalf("byte %d of a buffer: got %d, want its owner's %d", i, v, o.mark)
						}
					}
				}
				s := a.Stats()
				if s.Requested != requested || s.Class != class || s.Buffers != len(out) || s.Class+s.FreeListed > limit {
					t.Fatalf("got %+v, want %d requested in %d of class, at most %d", s, requested, class, limit)
				}
			},
		})
		for _, o := range out {
			_ = o.b.Release()
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHammerArena(t *testing.T) {
	before := Stats().Total.Current
	a := mustArena(t, 1<<16)
	var group sync.WaitGroup
	for g := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 2000 {
				b, err := a.Alloc(r.IntN(2000))
				if err != nil {
					t.Error(err)
					return
				}
				for i := range b.Bytes() {
					b.Bytes()[i] = byte(g)
				}
				runtime.Gosched()
				for _, v := range b.Bytes() {
					if v != byte(g) {
						t.Errorf("got a byte of goroutine %d in a buffer of %d", v, g)
						break
					}
				}
				if err := b.Release(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	wantErr(t, "close", a.Close(), nil)
	if got := Stats().Total.Current; got != before {
		t.Errorf("got %d bytes, want %d", got, before)
	}
}

func BenchmarkArena(b *testing.B) {
	a := mustArena(b, 1<<30)
	b.ReportAllocs()
	for b.Loop() {
		x, err := a.Alloc(1 << 20)
		if err != nil {
			b.Fatal(err)
		}
		_ = x.Release()
	}
	_ = a.Close()
}
