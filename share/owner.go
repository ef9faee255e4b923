package share

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

var errUnsupported = fmt.Errorf("sharing with other processes needs Linux: %w", tensor.ErrUnsupported)

// Instance identifies a process, even if other processes have had the same
// number.
type Instance [16]byte

// String returns the instance in hexadecimal.
func (i Instance) String() string { return hex.EncodeToString(i[:]) }

var instance = sync.OnceValue(func() (i Instance) {
	rand.Read(i[:]) // never fails
	return i
})

// Owner has arenas that other processes map, the table of leases on their
// blocks, and the names of published tensors. All of its peers are one
// audience: each can read every byte of the arenas that it is offered tensors
// of. A process may have several owners.
type Owner struct {
	limit      int64
	maxLeases  uint32
	maxBytes   uint64
	peerLeases int // bound for the connections of one peer process together
	peerBytes  int64
	stall      Stall
	stallAfter time.Duration
	allowDrop  bool
	device     *ownDevice // nil for the host's memory
	inPlace    bool       // memory of other allocators is not copied

	grow    sync.Mutex   // held while an arena is created, which takes long
	lending sync.Mutex   // held while the driver is asked for the handle of an allocation
	lists   sync.Mutex   // held while a part of an answer to LIST is written
	waits   atomic.Int64 // offers that waited for work of the device
	copied  atomic.Int64 // bytes of tensors that were copied because they were outside the arenas

	mu          sync.Mutex // guards the fields below, and the rows of the peers
	arenas      []*arena   // sorted by address
	retired     map[*arena]struct{}
	allocations map[uintptr]*arena        // of other allocators, by address; retired ones are not in it
	lent        map[*memory.Remote]*block // the blocks in all allocations
	wanted      bool                      // an allocation waits for bytes
	returned    chan struct{}             // closed and replaced when bytes were returned while an allocation waits
	held        int64                     // bytes of arenas and retired
	pinned      int64                     // bytes of arenas that were returned although disconnected peers may have them mapped
	generation  uint32
	connections uint64
	peers       map[*Peer]struct{}
	debtors     map[processID]*debtor
	listeners   map[*Listener]struct{}
	names       map[string]*tensor.Tensor
	tickets     map[Ticket]*Peer // the peer in whose row each ticket is
	closed      bool
}

// OwnerOption configures an owner.
type OwnerOption func(*Owner) error

// WithLimit bounds the bytes of the owner's arenas, including retired ones that
// a peer still has mapped, but not memory of other allocators (see [InPlace]).
// Without it the system and the process's memory limits (control groups,
// memory.SetLimit) bound them.
func WithLimit(bytes int64) OwnerOption {
	return func(o *Owner) error {
		if bytes < 1 {
			return fmt.Errorf("got a limit of %d bytes, want at least 1", bytes)
		}
		o.limit = bytes
		return nil
	}
}

// WithCredits bounds the number and bytes of the tensors that the owner's
// process holds of each peer at once. The default is 1,024 tensors of any size.
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

// NewOwner returns an owner without arenas, which are created when tensors need
// them. The caller closes it.
func NewOwner(opts ...OwnerOption) (*Owner, error) {
	if !supported {
		return nil, fmt.Errorf("share: %w", errUnsupported)
	}
	o := &Owner{maxLeases: 1024, maxBytes: math.MaxInt64, peerLeases: math.MaxInt, peerBytes: math.MaxInt64, debtors: map[processID]*debtor{}, retired: map[*arena]struct{}{}, returned: make(chan struct{}),
		peers: map[*Peer]struct{}{}, allocations: map[uintptr]*arena{}, lent: map[*memory.Remote]*block{}, listeners: map[*Listener]struct{}{}, names: map[string]*tensor.Tensor{}, tickets: map[Ticket]*Peer{}}
	for i, option := range opts {
		if option == nil {
			return nil, fmt.Errorf("share: new owner: %w", errNilOption(i))
		}
		if err := option(o); err != nil {
			return nil, fmt.Errorf("share: new owner: %w", err)
		}
	}
	if o.inPlace && o.device == nil {
		return nil, fmt.Errorf("share: new owner: got InPlace for arenas of the host, want OnDevice, too: %w", tensor.ErrUnsupported)
	}
	return o, nil
}

// blockOf returns the block of a buffer, nil if it is outside the arenas. The
// caller holds the buffer. An empty buffer has no block, because an empty slice
// has no reliable address.
func (o *Owner) blockOf(buf *memory.Buffer) *block {
	var at uintptr
	switch {
	case buf.Device() != o.memory():
		return nil
	case o.device != nil:
		at = buf.Remote().Address
	case buf.Len() == 0:
		return nil
	default:
		at = addressOf(buf.Bytes())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	i, found := slices.BinarySearchFunc(o.arenas, at, func(a *arena, at uintptr) int { return cmp.Compare(a.at, at) })
	if !found {
		i--
	}
	if i < 0 || at-o.arenas[i].at >= uintptr(o.arenas[i].size) {
		return nil
	}
	return o.arenas[i].blocks[int(at-o.arenas[i].at)]
}

// freed is called when the last holder has released a block's buffer. Leases
// are holders too, so the block has none.
func (o *Owner) freed(b *block) {
	if invariant.Enabled {
		if b.refs != 0 && !mutated("early reuse") {
			invariant.Failf("share: a block with %d leases is free", b.refs)
		}
		if !b.arena.isOnDevice() {
			invariant.Poison(b.arena.data[b.span.at : b.span.at+b.span.size])
		}
	}
	o.mu.Lock()
	delete(b.arena.blocks, b.key)
	b.arena.spans.release(b.span)
	o.tellReturn()
	over := o.closed || b.arena.spoilt
	if over {
		o.retireIf(func(a *arena) bool { return o.closed || a.spoilt })
	}
	o.mu.Unlock()
	if over && o.device != nil {
		go o.giveBack() // the driver may wait for the device, and any goroutine may release a tensor last
	} else if over {
		o.giveBack()
	}
}

// Collect processes the releases that have arrived and ends exports that
// foreign code has deleted. It then returns empty arenas to the system and
// reports their bytes. An arena that peers have mapped is returned when the
// last of them has unmapped it, which a running peer does at once; until then
// it counts against the limit. Blocks become free without Collect when their
// last lease ends.
func (o *Owner) Collect() int64 {
	if o.none() {
		return 0
	}
	o.drain()
	memory.Reclaim()
	o.settle()
	o.mu.Lock()
	bytes := o.retireEmpty()
	o.mu.Unlock()
	o.giveBack()
	return bytes
}

// drain processes the releases that have arrived.
func (o *Owner) drain() {
	o.mu.Lock()
	peers := slices.Collect(maps.Keys(o.peers))
	o.mu.Unlock()
	for _, p := range peers {
		p.drain()
	}
}

// release drops a hold of this package; b may be nil.
func release(b *memory.Buffer) {
	if b == nil {
		return
	}
	if err := b.Release(); err != nil {
		invariant.Failf("share: %v", err)
	}
}

// adopt registers a listener that Close closes too.
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

// Close ends the owner: it withdraws its names, closes its listeners and peers,
// and allocates no more tensors. Tensors and leases stay valid: each arena is
// returned to the system when its last block is free, and each connection ends
// when neither end holds a tensor of the other.
func (o *Owner) Close() error {
	if o.none() {
		return fmt.Errorf("share: close: %w", errNoOwner)
	}
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
	o.retireEmpty()
	o.mu.Unlock()
	o.giveBack()
	for l := range listeners {
		l.Close()
	}
	for _, x := range names {
		_ = x.Release() // no other goroutine has it
	}
	for _, p := range closing {
		p.Close()
	}
	return nil
}
