package memory

import (
	"math/bits"
	"sync"

	"github.com/tenure-go/tenure/internal/invariant"
)

// Alignment is the alignment in bytes of all results of Alloc: a cache line,
// and the widest vector register.
const Alignment = 64

// Small buffers are slots of chunks that hold one slot size each, so that 40
// bytes take 64 and not a page. The slot sizes are the multiples of 64 up to
// 512 and four steps per doubling from there: at most a quarter is slack.
const (
	maxSlot      = 32 << 10
	linearSlots  = 8
	firstDoubled = linearSlots * Alignment
	numBins      = linearSlots + 4*6 // six doublings from 512 to maxSlot
)

type bin struct {
	mu      sync.Mutex
	slot    int
	partial []*chunk // chunks with a free slot
	spare   *chunk   // the chunk that last became empty; it may be in use again
	_       [64]byte // bins are locked by different cores
}

type chunk struct {
	bin   *bin
	mem   []byte
	free  []uint64 // a bit per slot
	nfree int
	slots int
	pos   int  // index in bin.partial, -1 if no slot is free
	idle  bool // it is the spare, and was at the last look, and was not used in between
}

var bins = newBins()

func newBins() *[numBins]bin {
	bs := new([numBins]bin)
	for i := range bs {
		bs[i].slot = slotSize(i)
	}
	return bs
}

func slotSize(i int) int {
	if i < linearSlots {
		return (i + 1) * Alignment
	}
	i -= linearSlots
	base := firstDoubled << (i / 4)
	return base + base/4*(i%4+1)
}

// binOf returns the bin with the smallest slot for size, which is 1 to maxSlot.
func binOf(size int) *bin {
	if size <= firstDoubled {
		return &bins[(size-1)/Alignment]
	}
	doubling := bits.Len(uint(size-1)) - bits.Len(uint(firstDoubled)) // 513..1024: 0
	base := firstDoubled << doubling
	step := base / 4
	return &bins[linearSlots+4*doubling+(size-base+step-1)/step-1]
}

// chunkBytes returns the size of a chunk: at least 32 slots, and at least 64
// KiB.
func chunkBytes(slot int) int { return max(64<<10, 32*slot) }

// take returns a free slot with its old contents, in full slot size, and the
// chunk it came from.
func (b *bin) take() ([]byte, *chunk, error) {
	b.mu.Lock()
	if len(b.partial) == 0 {
		c, err := b.grow()
		if err != nil {
			b.mu.Unlock()
			return nil, nil, err
		}
		b.link(c)
	}
	c := b.partial[len(b.partial)-1]
	for w, word := range c.free {
		if word == 0 {
			continue
		}
		i := bits.TrailingZeros64(word)
		c.free[w] &^= 1 << i
		if c.nfree--; c.nfree == 0 {
			b.unlink(c)
		}
		b.mu.Unlock()
		at := (w*64 + i) * b.slot
		return c.mem[at : at+b.slot : at+b.slot], c, nil
	}
	invariant.Failf("memory: a chunk with %d free slots of %d bytes has none", c.nfree, b.slot)
	return nil, nil, nil
}

func (b *bin) grow() (*chunk, error) {
	mem, err := obtain(chunkBytes(b.slot))
	if err != nil {
		return nil, err
	}
	n := len(mem) / b.slot
	c := &chunk{bin: b, mem: mem, free: make([]uint64, (n+63)/64), nfree: n, slots: n, pos: -1}
	for i := range n {
		c.free[i/64] |= 1 << (i % 64)
	}
	return c, nil
}

// put frees a slot. A chunk that becomes empty is returned to the system unless
// it is the only one of its bin with a free slot. That one is kept until the
// next look, so that a program that allocates and frees a single buffer makes
// no system call each time.
func (c *chunk) put(slot int) error {
	b := c.bin
	b.mu.Lock()
	if c.free[slot/64]&(1<<(slot%64)) != 0 {
		invariant.Failf("memory: slot %d of %d bytes freed twice", slot, b.slot)
	}
	c.free[slot/64] |= 1 << (slot % 64)
	if c.nfree++; c.nfree == 1 {
		b.link(c)
	}
	if c.nfree < c.slots {
		b.mu.Unlock()
		return nil
	}
	if len(b.partial) > 1 {
		gone := b.remove(c)
		b.mu.Unlock()
		return surrender(gone)
	}
	b.spare, c.idle = c, false
	b.mu.Unlock()
	lookLater()
	return nil
}

// sweep removes the spare chunk, if there is one and, unless now is set,
// nothing was allocated in it since the last look. It reports whether a spare
// is left. A bin has no other empty chunk: the spare has free slots, so any
// other that becomes empty is returned at once.
func (b *bin) sweep(now bool) (gone []byte, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.spare
	if c == nil || c.nfree < c.slots {
		b.spare = nil // if it is in use, put makes it the spare again
		return nil, false
	}
	if now || c.idle {
		return b.remove(c), false
	}
	c.idle = true
	return nil, true
}

// remove takes an empty chunk out of the bin and returns its memory. The caller
// has the lock.
func (b *bin) remove(c *chunk) []byte {
	if b.spare == c {
		b.spare = nil
	}
	b.unlink(c)
	return c.mem
}

func (b *bin) link(c *chunk) {
	c.pos = len(b.partial)
	b.partial = append(b.partial, c)
}

func (b *bin) unlink(c *chunk) {
	last := b.partial[len(b.partial)-1]
	b.partial[c.pos], last.pos = last, c.pos
	b.partial[len(b.partial)-1] = nil
	b.partial = b.partial[:len(b.partial)-1]
	c.pos = -1
}
