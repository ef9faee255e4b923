package memory

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
)

// recordBytes returns the bytes that the records of handles take permanently.
func recordBytes() int64 {
	slabs := records.slabs.Load()
	if slabs == nil {
		return 0
	}
	return int64(len(*slabs) * recordSlabBytes)
}

// apart returns the bytes that the process has from the system, without the
// records of handles.
func apart() int64 { return Stats().System - recordBytes() }

// capacityOf is how many bytes a slot of size i has for a buffer.
func capacityOf(i int) int {
	if invariant.Enabled {
		return max(slotSize(i)-canaryBytes, 1)
	}
	return slotSize(i)
}

// fill makes buffers of each slot size, enough for so many chunks and one more,
// in an order of its own.
func fill(t *testing.T, chunks int) []*Buffer {
	t.Helper()
	var bs []*Buffer
	for i := range numBins {
		for range chunks*(chunkBytes(slotSize(i))/slotSize(i)) + 1 {
			bs = append(bs, mustAlloc(t, capacityOf(i), Scratch))
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(bs), func(i, k int) { bs[i], bs[k] = bs[k], bs[i] })
	return bs
}

func TestTrimGivesEverySmallBufferBack(t *testing.T) {
	Trim()
	before := apart()
	bs := fill(t, 2)
	handles := make([]Handle, 0, len(bs))
	for _, b := range bs {
		h, err := b.NewHandle()
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	mustRelease(t, bs...)
	for _, h := range handles {
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.KeepAlive(bs) // a handle does not keep its buffer reachable
	spares := int64(0)
	for i := range bins {
		chunk, err := osmem.RoundUp(chunkBytes(slotSize(i)))
		if err != nil {
			t.Fatal(err)
		}
		spares += int64(chunk)
	}
	if got := apart() - before; got > spares {
		t.Errorf("after the last release: got %d bytes that wait, want at most one chunk per size, %d together", got, spares)
	}
	waiting := apart() - before
	if n := Trim(); n != waiting || apart() != before {
		t.Errorf("trim: got %d bytes and %d left, want %d and none", n, apart()-before, waiting)
	}
	if n := Trim(); n != 0 {
		t.Errorf("trim again: got %d bytes, want 0", n)
	}
	for _, h := range handles {
		if h.Err() == nil {
			t.Fatal("a handle is alive after its release and Trim")
		}
	}
}

func TestTrimLeavesChunksWithABuffer(t *testing.T) {
	Trim()
	before := apart()
	seen := map[*chunk]bool{} // those of before, then also ours
	for i := range bins {
		for _, c := range bins[i].partial {
			seen[c] = true
		}
	}
	others := fill(t, 1)
	var kept []*Buffer
	want := int64(0)
	for i := range numBins {
		b := mustAlloc(t, capacityOf(i), Scratch)
		for k := range b.Bytes() {
			b.Bytes()[k] = byte(i + 1)
		}
		if c := b.s.chunk; !seen[c] {
			seen[c] = true
			want += int64(len(c.mem))
		}
		kept = append(kept, b)
	}
	mustRelease(t, others...)
	Trim()
	if got := apart() - before; got != want || want == 0 {
		t.Errorf("got %d bytes for the chunks of %d buffers, want %d", got, len(kept), want)
	}
	for i, b := range kept {
		for k, c := range b.Bytes() {
			if c != byte(i+1) {
				t.Fatalf("buffer of %d bytes: got %d at %d, want %d", b.Len(), c, k, i+1)
			}
		}
	}
	mustRelease(t, kept...)
	Trim()
	if got := apart() - before; got != 0 {
		t.Errorf("after the last release: got %d bytes, want none", got)
	}
}

// A look takes the chunk that has been empty since the look before, and no
// other.
func TestIdleChunksGoBack(t *testing.T) {
	for i := range numBins {
		b := &newBins()[i]
		sweep := func(what string, wantGone, wantAgain bool) {
			t.Helper()
			gone, again := b.sweep(false)
			if (gone != nil) != wantGone || again != wantAgain {
				t.Errorf("slots of %d bytes, %s: got %d bytes that go, another look %v, want some: %v, %v", b.slot, what, len(gone), again, wantGone, wantAgain)
			}
			if gone != nil {
				if err := surrender(gone); err != nil {
					t.Error(err)
				}
			}
		}
		cycle := func() {
			raw, c, err := b.take()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.put(c.slotOf(raw)); err != nil {
				t.Fatal(err)
			}
		}
		sweep("never used", false, false)
		cycle()
		sweep("a first look", false, true)
		cycle()
		sweep("used since", false, true)
		raw, c, err := b.take()
		if err != nil {
			t.Fatal(err)
		}
		sweep("with a slot out", false, false)
		if err := c.put(c.slotOf(raw)); err != nil {
			t.Fatal(err)
		}
		sweep("empty again", false, true)
		sweep("not used since", true, false)
		sweep("gone", false, false)
		if len(b.partial) != 0 || b.spare != nil {
			t.Errorf("slots of %d bytes: got %d chunks with room, want none", b.slot, len(b.partial))
		}
		cycle()
		sweep("a new chunk", false, true)
		sweep("idle", true, false)
	}
}

// The spare that is used again, while another chunk becomes the empty one, is
// not given back twice.
func TestChunksTakeTurnsAsSpare(t *testing.T) {
	b := &newBins()[numBins-1]
	type slot struct {
		raw []byte
		c   *chunk
	}
	takeAll := func() (out []slot) {
		for range 2 * chunkBytes(b.slot) / b.slot {
			raw, c, err := b.take()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, slot{raw, c})
		}
		return out
	}
	putAll := func(list []slot) {
		for _, s := range list {
			if err := s.c.put(s.c.slotOf(s.raw)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for round := range 6 {
		list := takeAll()
		if round%2 == 1 {
			for i, k := 0, len(list)-1; i < k; i, k = i+1, k-1 {
				list[i], list[k] = list[k], list[i]
			}
		}
		putAll(list)
		if len(b.partial) != 1 || b.partial[0].nfree != b.partial[0].slots {
			t.Fatalf("round %d: got %d chunks with room, want one that is empty", round, len(b.partial))
		}
	}
	gone, _ := b.sweep(true)
	if gone == nil || len(b.partial) != 0 || b.spare != nil {
		t.Fatalf("got %d bytes that go and %d chunks left, want the spare and none", len(gone), len(b.partial))
	}
	if err := surrender(gone); err != nil {
		t.Error(err)
	}
}

// The timer is set by the release that leaves a chunk empty.
func TestSmallBuffersGoBackByThemselves(t *testing.T) {
	Trim()
	before := apart()
	mustRelease(t, fill(t, 0)...)
	for end := time.Now().Add(20 * time.Second); apart() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d bytes from the system, want %d by now", apart(), before)
		}
	}
}

func TestTrimFromManyGoroutines(t *testing.T) {
	Trim()
	before := apart()
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			var held []*Buffer
			for i := range 2000 {
				b := mustAlloc(t, 1+(i*37*(g+1))%maxSlot, Scratch)
				data := b.Bytes()
				if data[0] != 0 || data[len(data)-1] != 0 {
					t.Errorf("%d bytes: got some of somebody else, want zeros", len(data))
				}
				data[0], data[len(data)-1] = byte(g+1), byte(g+1)
				if held = append(held, b); len(held) > 40 || i%3 == 0 {
					b := held[0]
					if data := b.Bytes(); data[0] != byte(g+1) || data[len(data)-1] != byte(g+1) {
						t.Errorf("%d bytes: got %d and %d of somebody else, want %d", len(data), data[0], data[len(data)-1], g+1)
					}
					mustRelease(t, b)
					held = held[1:]
				}
				switch i % 50 {
				case 0:
					Trim()
				case 25:
					look()
				}
			}
			mustRelease(t, held...)
		})
	}
	group.Wait()
	Trim()
	if got := apart(); got != before {
		t.Errorf("got %d bytes from the system, want %d as before", got, before)
	}
}
