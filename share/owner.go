package share

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

var errUnsupported = fmt.Errorf("sharing with other processes needs Linux: %w", tensor.ErrUnsupported)

// Instance tells one process from another, also one with the same number.
type Instance [16]byte

// String returns the instance in hexadecimal.
func (i Instance) String() string { return hex.EncodeToString(i[:]) }

var instance = sync.OnceValue(func() (i Instance) {
	rand.Read(i[:]) // never fails
	return i
})

// Owner has arenas that other processes map, the table of leases on what lies in them, and the names under which tensors of
// them can be asked for. All of its peers are one audience: each can read every byte of the arenas that it is offered
// tensors of. A process may have several.
type Owner struct {
	limit     int64
	maxLeases uint32
	maxBytes  uint64
	allowDrop bool

	grow   sync.Mutex   // held while an arena is made, which takes long
	copied atomic.Int64 // bytes that were copied because a tensor lay outside the arenas

	mu          sync.Mutex // guards everything below, and the rows of the peers
	arenas      []*arena   // by address
	held        int64      // bytes of them
	generation  uint32
	connections uint64
	peers       map[*Peer]struct{}
	listeners   map[*Listener]struct{}
	names       map[string]*tensor.Tensor
	tickets     map[Ticket]*lease
	closed      bool
}

// arena is a memfd and the blocks in it.
type arena struct {
	id     uint64
	shm    *osmem.Shared
	data   []byte
	buf    *memory.Buffer // what the figures count
	spans  *spans
	blocks map[int]*block // by offset
	large  bool           // for one tensor at a time
	peers  int            // that have it mapped, or are about to
}

// block is a part of an arena that is not free.
type block struct {
	arena      *arena
	span       *span
	bytes      int // that were asked for
	generation uint32
	refs       int            // leases and tickets
	hold       *memory.Buffer // the hold that all of them are; nil while there are none
	shared     bool           // offered at least once
}

const (
	firstArena = 4 << 20
	lastArena  = 256 << 20
	largeBytes = 32 << 20 // from here on a tensor has an arena of its own
	hugePage   = 2 << 20
)

// OwnerOption configures an owner.
type OwnerOption func(*Owner) error

// WithLimit bounds the bytes of the owner's arenas. Without it they are bounded by what the system and the process's memory
// limits (control groups, [memory.SetLimit]) leave.
func WithLimit(bytes int64) OwnerOption {
	return func(o *Owner) error {
		if bytes < 1 {
			return fmt.Errorf("got a limit of %d bytes, want at least 1", bytes)
		}
		o.limit = bytes
		return nil
	}
}

// WithCredits bounds what the owner's process holds of each peer at once: tensors, and bytes of them. The default is 1,024
// tensors of any size.
func WithCredits(tensors int, bytes int64) OwnerOption {
	return func(o *Owner) error {
		if tensors < 1 || tensors > maxMaxLeases || bytes < 1 {
			return fmt.Errorf("got credits for %d tensors of %d bytes, want 1 to %d and at least 1", tensors, bytes, maxMaxLeases)
		}
		o.maxLeases, o.maxBytes = uint32(tensors), uint64(bytes)
		return nil
	}
}

// AllowDrop lets peers withdraw published tensors.
func AllowDrop() OwnerOption {
	return func(o *Owner) error {
		o.allowDrop = true
		return nil
	}
}

// NewOwner returns an owner without arenas: they are made as tensors need them. The caller closes it.
func NewOwner(opts ...OwnerOption) (*Owner, error) {
	if !supported {
		return nil, fmt.Errorf("share: %w", errUnsupported)
	}
	o := &Owner{maxLeases: 1024, maxBytes: math.MaxInt64, peers: map[*Peer]struct{}{}, listeners: map[*Listener]struct{}{},
		names: map[string]*tensor.Tensor{}, tickets: map[Ticket]*lease{}}
	for _, option := range opts {
		if err := option(o); err != nil {
			return nil, fmt.Errorf("share: new owner: %w", err)
		}
	}
	return o, nil
}

// Alloc returns a buffer in an arena: what is made there with [tensor.Make] is offered without a copy. Its contents are
// undefined. When there is no room, and no memory for another arena, empty arenas go back and the collector looks for dropped
// buffers; then it is [tensor.ErrLimit].
func (o *Owner) Alloc(bytes int) (*memory.Buffer, error) {
	if bytes < 0 || bytes > math.MaxInt-hugePage {
		return nil, fmt.Errorf("share: allocate: got %d bytes, want 0 to %d", bytes, math.MaxInt-hugePage)
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
	return memory.Adopt(b.arena.data[at:at+bytes], 0, func() { o.freed(b) }), nil
}

// take finds room in the arenas; nil if there is none.
func (o *Owner) take(bytes int) (*block, error) {
	size := roundUp(bytes)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, fmt.Errorf("the owner is %w", ErrClosed)
	}
	var best *arena
	for _, a := range o.arenas {
		switch {
		case a.large != (size >= largeBytes):
		case !a.large:
			if s := a.spans.take(size); s != nil {
				return o.occupy(a, s, bytes), nil
			}
		case len(a.blocks) == 0 && a.spans.size >= size && (best == nil || a.spans.size < best.spans.size):
			best = a
		}
	}
	// One that is much too large waits for a tensor that needs it.
	if best != nil && best.spans.size/2 <= size {
		return o.occupy(best, best.spans.take(size), bytes), nil
	}
	return nil, nil
}

func (o *Owner) occupy(a *arena, s *span, bytes int) *block {
	o.generation++
	b := &block{arena: a, span: s, bytes: bytes, generation: o.generation}
	a.blocks[s.at] = b
	return b
}

// takeNew makes an arena for the block, and room for the arena if need be.
func (o *Owner) takeNew(bytes int) (b *block, err error) {
	o.grow.Lock()
	defer o.grow.Unlock()
	o.drain()
	enough := func() bool {
		if b, err = o.take(bytes); b != nil || err != nil { // another goroutine, or a release, may have made room
			return true
		}
		if err = o.addArena(bytes); err == nil {
			b, err = o.take(bytes)
		}
		return !errors.Is(err, tensor.ErrLimit)
	}
	if enough() || o.Collect() > 0 && enough() {
		return b, err
	}
	memory.CollectUntil(func() bool {
		o.Collect()
		return enough()
	})
	return b, err
}

// addArena makes an arena that has room for a block.
func (o *Owner) addArena(bytes int) error {
	least := (roundUp(bytes) + hugePage - 1) / hugePage * hugePage
	o.mu.Lock()
	held, pooled := o.held, 0
	for _, a := range o.arenas {
		if !a.large {
			pooled += len(a.data)
		}
	}
	o.mu.Unlock()
	size := least
	if roundUp(bytes) < largeBytes { // three times what there is: each arena is a descriptor, and a quarter is in use at worst
		size = max(least, min(max(3*pooled, firstArena), lastArena))
	}
	if o.limit > 0 && held+int64(size) > o.limit {
		size = least
	}
	if o.limit > 0 && held+int64(size) > o.limit {
		return fmt.Errorf("got %d bytes in arenas and want %d more, the owner's limit is %d: %w", held, size, o.limit, tensor.ErrLimit)
	}
	a, err := newArena(size)
	if err != nil && size > least {
		a, err = newArena(least)
	}
	if err != nil {
		return err
	}
	a.large = roundUp(bytes) >= largeBytes
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		release(a.buf)
		return fmt.Errorf("the owner is %w", ErrClosed)
	}
	o.arenas = append(o.arenas, a)
	slices.SortFunc(o.arenas, func(a, b *arena) int { return cmp.Compare(addressOf(a.data), addressOf(b.data)) })
	o.held += int64(len(a.data))
	o.mu.Unlock()
	crashAt(1)
	return nil
}

func newArena(size int) (*arena, error) {
	var id [8]byte
	rand.Read(id[:])
	a := &arena{id: binary.LittleEndian.Uint64(id[:]) | 1, blocks: map[int]*block{}}
	shm, err := osmem.NewShared(fmt.Sprintf("tenure:%.8s:%x", instance(), a.id), size)
	if err != nil {
		if errors.Is(err, osmem.ErrNoMemory) {
			err = fmt.Errorf("%w (%w)", err, tensor.ErrLimit)
		}
		return nil, err
	}
	a.shm, a.data = shm, shm.Bytes()
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
	a.spans = newSpans(len(a.data))
	return a, nil
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// blockOf returns the block that a buffer is, nil if it lies outside the arenas. The caller holds the buffer. No bytes are
// nowhere: a slice of none does not say where it was cut.
func (o *Owner) blockOf(buf *memory.Buffer) *block {
	if buf.Len() == 0 {
		return nil
	}
	at := addressOf(buf.Bytes())
	o.mu.Lock()
	defer o.mu.Unlock()
	i, found := slices.BinarySearchFunc(o.arenas, at, func(a *arena, at uintptr) int { return cmp.Compare(addressOf(a.data), at) })
	if !found {
		i--
	}
	if i < 0 || at-addressOf(o.arenas[i].data) >= uintptr(len(o.arenas[i].data)) {
		return nil
	}
	return o.arenas[i].blocks[int(at-addressOf(o.arenas[i].data))]
}

// freed is called when the last holder of a block's buffer has let go: leases are holders too, so there are none.
func (o *Owner) freed(b *block) {
	if invariant.Enabled {
		if b.refs != 0 && !mutated("early reuse") {
			invariant.Failf("share: a block with %d leases is free", b.refs)
		}
		invariant.Poison(b.arena.data[b.span.at : b.span.at+b.span.size])
	}
	o.mu.Lock()
	delete(b.arena.blocks, b.span.at)
	b.arena.spans.release(b.span)
	var over []*arena
	if o.closed {
		over = o.retireEmpty()
	}
	o.mu.Unlock()
	giveBack(over)
}

// Collect takes in the releases that have arrived and drains exports that foreign code has ended, then gives empty arenas
// back to the system and returns their bytes. Blocks come back by themselves, when their last lease ends; this is for the
// arenas, and for who cannot wait.
func (o *Owner) Collect() int64 {
	o.drain()
	memory.Reclaim()
	o.mu.Lock()
	over := o.retireEmpty()
	o.mu.Unlock()
	return giveBack(over)
}

// drain takes in the releases that have arrived.
func (o *Owner) drain() {
	o.mu.Lock()
	peers := slices.Collect(maps.Keys(o.peers))
	o.mu.Unlock()
	for _, p := range peers {
		p.drain()
	}
}

// retireEmpty takes the arenas without blocks out of the table and tells the peers. The caller has o.mu, and gives them back
// after it.
func (o *Owner) retireEmpty() (over []*arena) {
	o.arenas = slices.DeleteFunc(o.arenas, func(a *arena) bool {
		if len(a.blocks) > 0 {
			return false
		}
		over = append(over, a)
		o.held -= int64(len(a.data))
		for p := range o.peers {
			p.retire(a)
		}
		return true
	})
	return over
}

func giveBack(arenas []*arena) (bytes int64) {
	for _, a := range arenas {
		bytes += int64(len(a.data))
		release(a.buf)
	}
	return bytes
}

// release drops a hold that is ours.
func release(b *memory.Buffer) {
	if err := b.Release(); err != nil {
		invariant.Failf("share: %v", err)
	}
}

// adopt makes Close close a listener too.
func (o *Owner) adopt(l *Listener) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return fmt.Errorf("the owner is %w", ErrClosed)
	}
	o.listeners[l] = struct{}{}
	return nil
}

func (o *Owner) disown(l *Listener) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.listeners, l)
}

// Close ends the owner: its names go, its listeners and peers are closed, and it makes no more tensors. What is out stays
// good: each arena goes back when its last block does, each connection ends when neither side holds anything of the other.
func (o *Owner) Close() error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil
	}
	o.closed = true
	listeners, peers, names := o.listeners, o.peers, o.names
	o.names, o.listeners = map[string]*tensor.Tensor{}, map[*Listener]struct{}{}
	var closing []*Peer
	for p := range peers {
		closing = append(closing, p)
	}
	over := o.retireEmpty()
	o.mu.Unlock()
	giveBack(over)
	for l := range listeners {
		l.Close()
	}
	for _, x := range names {
		_ = x.Release() // ours alone
	}
	for _, p := range closing {
		p.Close()
	}
	return nil
}
