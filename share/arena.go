package share

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// arena is a memfd, or memory of a device, and the blocks in it.
type arena struct {
	id     uint64
	shm    *osmem.Shared
	data   []byte
	chunk  Chunk // of a device; shm and data are nil then
	at     uintptr
	size   int
	buf    *memory.Buffer // counted in the statistics of package memory
	spans  *spans
	blocks map[int]*block // by offset
	large  bool           // for one tensor at a time
	peers  int            // number of peers that have it mapped or were told of it
	lost   int            // the same for disconnected peers
	going  bool           // is being returned to the system
	alloc  *Allocation    // memory of another allocator; shm, data, chunk, buf and spans are nil then
	end    func()         // gives the last block of a retired allocation back
	spoilt bool           // a device of a dead process may still read it: nothing is put into it any more
}

// block is a part of an arena that is not free.
type block struct {
	arena      *arena
	key        int // in arena.blocks: the offset, and a number in an allocation, where blocks may overlap
	span       *span
	bytes      int // as requested
	skew       int // in an allocation, bytes before the buffer: blocks begin at multiples of blockMultiple
	generation uint32
	refs       int            // leases and tickets
	hold       *memory.Buffer // the one hold that all leases and tickets share; nil if there are none
	shared     bool           // offered at least once
}

const (
	firstArena = 4 << 20
	lastArena  = 256 << 20
	largeBytes = 32 << 20 // a tensor of at least this size gets an arena of its own
	hugePage   = 2 << 20
)

// Alloc returns a buffer in an arena; a tensor that [tensor.Make] makes there
// is offered without a copy. Its contents are undefined. When the limit is
// reached, or no memory is left for another arena, Alloc returns empty arenas
// to the system and lets the collector find dropped buffers before it fails
// with tensor.ErrLimit.
func (o *Owner) Alloc(bytes int) (*memory.Buffer, error) {
	if bytes < 0 || bytes > math.MaxInt-hugePage {
		return nil, fmt.Errorf("share: allocate: got %d bytes, want 0 to %d", bytes, math.MaxInt-hugePage)
	}
	if o.none() {
		return nil, fmt.Errorf("share: allocate %d bytes: %w", bytes, errNoOwner)
	}
	b, err := o.take(bytes)
	if err == nil && b == nil {
		b, err = o.takeNew(bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("share: allocate %d bytes: %w", bytes, err)
	}
	crashAt(3)
	at := b.span.at
	if b.arena.chunk == nil {
		return memory.Adopt(b.arena.data[at:at+bytes], 0, func() { o.freed(b) }), nil
	}
	buf, err := b.arena.chunk.Block(at, bytes, func() { o.freed(b) })
	if err != nil {
		o.freed(b)
		return nil, fmt.Errorf("share: allocate %d bytes: %w", bytes, err)
	}
	return buf, nil
}

// take finds a free block in the arenas; nil if there is none.
func (o *Owner) take(bytes int) (*block, error) {
	size := o.roundUp(bytes)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, fmt.Errorf("the owner is %w", ErrClosed)
	}
	var best *arena
	for _, a := range o.arenas {
		switch {
		case a.spoilt || a.large != (size >= largeBytes):
		case !a.large:
			if s := a.spans.take(size); s != nil {
				return o.occupy(a, s, bytes), nil
			}
		case len(a.blocks) == 0 && a.spans.size >= size && (best == nil || a.spans.size < best.spans.size):
			best = a
		}
	}
	// An arena that is much too large is kept for a tensor that needs it.
	if best != nil && best.spans.size/2 <= size {
		return o.occupy(best, best.spans.take(size), bytes), nil
	}
	return nil, nil
}

func (o *Owner) occupy(a *arena, s *span, bytes int) *block {
	o.generation++
	b := &block{arena: a, key: s.at, span: s, bytes: bytes, generation: o.generation}
	a.blocks[s.at] = b
	return b
}

// takeNew creates an arena for the block, and first makes room for the arena if
// necessary.
func (o *Owner) takeNew(bytes int) (b *block, err error) {
	o.grow.Lock()
	defer o.grow.Unlock()
	o.drain()
	enough := func() bool {
		if b, err = o.take(bytes); b != nil || err != nil { // another goroutine may have created an arena, or a release may have freed a block
			return true
		}
		if err = o.addArena(bytes); err == nil || errors.Is(err, tensor.ErrLimit) && o.takeBack(o.roundUp(bytes)) {
			b, err = o.take(bytes)
		}
		return !errors.Is(err, tensor.ErrLimit)
	}
	if enough() {
		return b, err
	}
	o.Collect()
	o.setWanted(true)
	defer o.setWanted(false)
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	for again := true; again; {
		o.mu.Lock()
		returned := o.returned // read before the attempt, so that no return of bytes is missed
		o.mu.Unlock()
		if enough() {
			return b, err
		}
		again = o.awaitReturn(ctx, returned)
	}
	o.disconnectStalled()
	memory.CollectUntil(func() bool {
		o.Collect()
		return enough()
	})
	return b, err
}

// takeBack returns a retired arena with room for a block of that size to use. A
// peer that has not answered RETIRE keeps the pages allocated but holds nothing
// in the arena. The arena gets a new id, so it is a new arena for all peers.
func (o *Owner) takeBack(size int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	var best *arena
	for a := range o.retired {
		if a.alloc == nil && !a.going && !a.spoilt && a.spans.size >= size && (best == nil || a.spans.size < best.spans.size) {
			best = a
		}
	}
	if best == nil || o.closed {
		return false
	}
	delete(o.retired, best)
	best.id, best.large = newArenaID(), size >= largeBytes
	o.addSorted(best)
	return true
}

func (o *Owner) addSorted(a *arena) {
	o.arenas = append(o.arenas, a)
	slices.SortFunc(o.arenas, func(a, b *arena) int { return cmp.Compare(a.at, b.at) })
}

// addArena creates an arena that has room for a block.
func (o *Owner) addArena(bytes int) error {
	unit := o.unit()
	least := (o.roundUp(bytes) + unit - 1) / unit * unit
	o.mu.Lock()
	held, pooled, mapped := o.held, 0, int64(0)
	for _, a := range o.arenas {
		if !a.large {
			pooled += a.size
		}
	}
	for a := range o.retired {
		if a.alloc == nil {
			mapped += int64(a.size)
		}
	}
	o.mu.Unlock()
	size := least
	if o.roundUp(bytes) < largeBytes { // three times the present size: each arena costs a descriptor, and at worst a quarter of the bytes is in use
		size = max(least, min(max(3*pooled, firstArena), lastArena))
	}
	if o.limit > 0 {
		left := o.limit - held
		if int64(least) > left {
			return fmt.Errorf("got %d bytes in arenas, %d of them given back and still mapped by peers, and want %d more, the owner's limit is %d: %w",
				held, mapped, least, o.limit, tensor.ErrLimit)
		}
		size = int(min(int64(size), left/int64(unit)*int64(unit))) // not below least, which is a multiple, too
	}
	a, err := o.newArena(size)
	if err != nil && size > least {
		a, err = o.newArena(least)
	}
	if err != nil {
		return err
	}
	a.large = o.roundUp(bytes) >= largeBytes
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		release(a.buf)
		return fmt.Errorf("the owner is %w", ErrClosed)
	}
	o.addSorted(a)
	o.held += int64(a.size)
	o.mu.Unlock()
	crashAt(1)
	return nil
}

func (o *Owner) newArena(size int) (*arena, error) {
	a := &arena{id: newArenaID(), blocks: map[int]*block{}}
	if o.device != nil {
		chunk, err := o.device.NewChunk(size)
		if err != nil {
			return nil, err
		}
		a.chunk, a.buf = chunk, chunk.Buffer()
		a.at, a.size, a.spans = a.buf.Remote().Address, size, newSpans(size)
		return a, nil
	}
	shm, err := osmem.NewShared(fmt.Sprintf("tenure:%.8s:%x", instance(), a.id), size)
	if err != nil {
		if errors.Is(err, osmem.ErrNoMemory) {
			err = fmt.Errorf("%w (%w)", err, tensor.ErrLimit)
		}
		return nil, err
	}
	a.shm, a.data = shm, shm.Bytes()
	a.at, a.size = addressOf(a.data), len(a.data)
	a.buf, err = memory.Own(a.data, memory.Shared, func() {
		if err := shm.Close(); err != nil {
			invariant.Failf("share: %v", err)
		}
	})
	if err != nil {
		shm.Close()
		return nil, err
	}
	a.buf.SetLabel("shared arena")
	a.spans = newSpans(a.size)
	return a, nil
}

func newArenaID() uint64 {
	var id [8]byte
	rand.Read(id[:])
	return binary.LittleEndian.Uint64(id[:]) | 1
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// retireEmpty retires the arenas without blocks, tells the peers, and returns
// the number of their bytes. The caller has o.mu, and calls giveBack after
// releasing it.
func (o *Owner) retireEmpty() (bytes int64) { return o.retireIf(func(*arena) bool { return true }) }

func (o *Owner) retireIf(may func(*arena) bool) (bytes int64) {
	o.arenas = slices.DeleteFunc(o.arenas, func(a *arena) bool {
		if len(a.blocks) > 0 || !may(a) {
			return false
		}
		bytes += int64(a.size)
		o.retired[a] = struct{}{}
		for p := range o.peers {
			p.retire(a)
		}
		return true
	})
	return bytes
}

// giveBack returns the retired arenas that no peer has mapped to the system.
// The pages of a mapped arena exist regardless of this process, so they still
// count, here and in the statistics of package memory. If only disconnected
// peers have the arena mapped, its bytes move to their accounts, as far as
// these have room. An allocation of another allocator goes back to it when no
// peer has it open, connected or not. The caller does not have o.mu.
func (o *Owner) giveBack() {
	o.mu.Lock()
	var over []*arena
	for a := range o.retired {
		if a.peers == 0 && !a.going && (a.alloc == nil && o.pin(a) || a.alloc != nil && a.lost == 0) {
			a.going = true
			over = append(over, a)
		}
	}
	o.mu.Unlock()
	if len(over) == 0 {
		return
	}
	for _, a := range over {
		if a.alloc != nil {
			allocationsHere.Delete(a.id)
			go a.end() // code of another library, which may wait for a goroutine that is here
			continue
		}
		release(a.buf)
	}
	o.mu.Lock()
	for _, a := range over {
		delete(o.retired, a)
		if a.alloc == nil {
			o.held -= int64(a.size)
		}
	}
	o.tellReturn()
	o.mu.Unlock()
}

func (o *Owner) setWanted(is bool) {
	o.mu.Lock()
	o.wanted = is
	o.mu.Unlock()
}

// tellReturn wakes the allocation that waits for bytes. The caller has o.mu.
func (o *Owner) tellReturn() {
	if o.wanted {
		close(o.returned)
		o.returned = make(chan struct{})
	}
}

// An allocation that finds no room waits up to patient for peers to unmap
// retired arenas, which a running peer does at once, and up to moment for
// releases that may be on their way.
const (
	patient = time.Second
	moment  = 10 * time.Millisecond
)

// awaitReturn waits until returned is closed, which means that bytes were
// returned. It returns false if none will be, or at the end of the wait.
func (o *Owner) awaitReturn(ctx context.Context, returned <-chan struct{}) bool {
	working := o.settle()
	o.mu.Lock()
	most := time.Duration(0)
	switch {
	case len(o.retired) > 0 || working > 0:
		most = patient
	case len(o.peers) > 0:
		most = moment
	}
	holders := slices.Collect(maps.Keys(o.peers))
	o.mu.Unlock()
	if most == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var work sync.WaitGroup
	for _, p := range holders { // await also reads the peers' packets
		work.Go(func() { _ = p.await(ctx, returned) })
	}
	work.Wait()
	select {
	case <-returned:
		return true
	case <-ctx.Done():
		return false
	}
}
