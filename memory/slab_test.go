package memory

import (
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/internal/invariant"
	"pgregory.net/rapid"
)

func TestEverySizeHasTheSmallestSlotThatFits(t *testing.T) {
	for i := range numBins {
		if s := slotSize(i); s%Alignment != 0 || i > 0 && s <= slotSize(i-1) {
			t.Errorf("slot %d: got %d bytes, want a multiple of %d above %d", i, s, Alignment, slotSize(i-1))
		}
	}
	if got := slotSize(numBins - 1); got != maxSlot {
		t.Fatalf("largest slot: got %d, want %d", got, maxSlot)
	}
	want := 0
	for size := 1; size <= maxSlot; size++ {
		for slotSize(want) < size {
			want++
		}
		if got := binOf(size); got != &bins[want] {
			t.Fatalf("size %d: got the slot of %d bytes, want %d", size, got.slot, slotSize(want))
		}
		if slack := slotSize(want) - size; size > firstDoubled && slack*4 >= slotSize(want) {
			t.Fatalf("size %d: got slot %d, want less than a quarter of slack", size, slotSize(want))
		}
	}
}

func TestBuffersAreAlignedZeroedAndApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type owned struct {
			b    *Buffer
			mark byte
		}
		var held []owned
		mark := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 70_000)).Draw(t, "size")
				b, err := Alloc(size, Scratch)
				if err != nil {
					t.Fatal(err)
				}
				data := b.Bytes()
				if len(data) != size || cap(data) != size {
					t.Fatalf("size %d: got length %d, capacity %d", size, len(data), cap(data))
				}
				if at := uintptr(unsafe.Pointer(unsafe.SliceData(data))); at%Alignment != 0 {
					t.Fatalf("size %d: got address %#x, want a multiple of %d", size, at, Alignment)
				}
				mark++
				for i, c := range data {
					if c != 0 {
						t.Fatalf("size %d: got %#x at %d, want 0", size, c, i)
					}
					data[i] = mark
				}
				held = append(held, owned{b, mark})
			},
			"free": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				o := held[i]
				held[i] = held[len(held)-1]
				held = held[:len(held)-1]
				for j, c := range o.b.Bytes() {
					if c != o.mark {
						t.Fatalf("got %d at %d of a buffer of %d bytes, want its own mark %d", c, j, o.b.Len(), o.mark)
					}
				}
				if err := o.b.Release(); err != nil {
					t.Fatal(err)
				}
			},
		})
		for _, o := range held {
			if err := o.b.Release(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestSmallBuffersShareAChunk(t *testing.T) {
	still(t)
	before := Stats().System
	var bs []*Buffer
	for range 500 {
		bs = append(bs, mustAlloc(t, 40, IO))
	}
	if got := Stats().System - before; got > 3*64<<10 { // twice the room in the invariant build, and one chunk begun
		t.Errorf("500 buffers of 40 bytes: got %d bytes from the system, want at most three chunks", got)
	}
	mustRelease(t, bs...)
}

func TestEmptyChunksGoBack(t *testing.T) {
	still(t)
	const size = 20_000
	slot := binOf(size + canaryBytes).slot
	var bs []*Buffer
	for range 5 * chunkBytes(slot) / slot {
		bs = append(bs, mustAlloc(t, size, IO))
	}
	full := Stats().System
	mustRelease(t, bs...)
	if got, want := full-Stats().System, int64(4*chunkBytes(slot)); got < want {
		t.Errorf("after freeing five chunks: got %d bytes back, want at least %d", got, want)
	}
	// One buffer that comes and goes must not ask the system each time.
	mustRelease(t, mustAlloc(t, size, IO))
	spare := Stats().System
	for range 10 {
		b := mustAlloc(t, size, IO)
		if got := Stats().System; got != spare {
			t.Fatalf("with a spare chunk: got %d bytes from the system, want %d as before", got, spare)
		}
		mustRelease(t, b)
	}
}

func TestSlotFreedTwiceIsABug(t *testing.T) {
	defer func() {
		if r := recover(); r == nil {
			t.Error("second free of a slot: got no panic")
		}
	}()
	b := &newBins()[0]
	_, c, err := b.take()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.put(0); err != nil {
			t.Fatal(err)
		}
		c.bin.mu.TryLock() // put panics with the lock held
		c.bin.mu.Unlock()
	}
}

func TestInvariantBuildFindsAWriteBehindTheEnd(t *testing.T) {
	if !invariant.Enabled {
		t.Skip("needs the tag invariants")
	}
	for _, size := range []int{40, 64, 100_000} {
		b := mustAlloc(t, size, IO)
		data := unsafe.Slice(unsafe.SliceData(b.Bytes()), size+1)
		old := data[size]
		data[size] = 1
		func() {
			defer func() {
				if r, _ := recover().(string); r == "" {
					t.Errorf("size %d: a byte behind the end was written, got no panic", size)
				}
			}()
			b.s.checkCanary(b.s.raw[size : size+canaryBytes])
		}()
		data[size] = old
		mustRelease(t, b)
	}
}

func TestInvariantBuildPoisonsFreedBytes(t *testing.T) {
	if !invariant.Enabled {
		t.Skip("needs the tag invariants")
	}
	keep, b := mustAlloc(t, 40, IO), mustAlloc(t, 40, IO) // keep: the chunk stays mapped
	data := b.Bytes()
	data[0] = 7
	mustRelease(t, b)
	for i, c := range data {
		if c != invariant.PoisonByte {
			t.Fatalf("freed byte %d: got %#x, want %#x", i, c, invariant.PoisonByte)
		}
	}
	mustRelease(t, keep)
}
