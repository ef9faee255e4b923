package share

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Memory that another allocator of this process made on the owner's device is
// an arena of its own: the whole allocation, which peers open by a handle. Its
// blocks are the buffers that were offered. To free an allocation that another
// process has open is undefined, so the last of its blocks goes back to its
// allocator when every peer that was told of it has closed it, or is dead. The
// others go back when their last lease and the work of this process has ended:
// the allocator cannot free what it has given out.

// InPlace lets the owner, which is [OnDevice], offer tensors in memory that
// other libraries of this process allocated there without a copy, such as those
// that package dlpack imports from PyTorch. It applies to memory that the
// driver can share, to peers that know how to open it, and to those whose
// process the kernel names, so that its death is known. All others get a copy
// as before, and offers with [WithoutCopy] an error that says why.
//
// Such tensors differ from those in the owner's arenas. A peer can read, and a
// hostile one can write, the whole allocation, in which the library may have
// other tensors. What the library itself writes later shows at the peer. The
// bytes end with this process: after its death they are undefined, and new work
// of the peer that reads them fails. The library gets the bytes back after the
// last lease, and the last ones of an allocation when every peer has closed it.
// What is published is copied for each request of a peer that gets copies.
func InPlace() OwnerOption {
	return func(o *Owner) error {
		o.inPlace = true
		return nil
	}
}

// allocationsHere has an ownAllocation for each allocation that owners of this
// process lend, by the number of its arena, for consumers in the same process.
var allocationsHere sync.Map

type ownAllocation struct {
	device  Device
	address uintptr
}

// isOnDevice reports whether the arena is memory of a device.
func (a *arena) isOnDevice() bool { return a.chunk != nil || a.alloc != nil }

// lentBlock returns the block of a buffer that another allocator made, or why
// there is none. The caller holds the buffer.
func (o *Owner) lentBlock(buf *memory.Buffer) (*block, error) {
	switch {
	case !o.inPlace:
		return nil, errors.New("the owner has no InPlace")
	case buf.Device() != o.memory() || buf.Len() == 0:
		return nil, errors.New("it is elsewhere")
	}
	o.lending.Lock() // while the driver is asked for the handle of a buffer once
	defer o.lending.Unlock()
	r := buf.Remote()
	o.mu.Lock()
	b := o.lent[r]
	o.mu.Unlock()
	if b != nil {
		return b, nil
	}
	b = &block{span: new(span)}
	alloc, err := o.device.ShareAllocation(buf, func(giveBack func()) { o.lentEnded(r, b, giveBack) })
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.allocations[alloc.Address]
	if a == nil {
		a = &arena{id: newArenaID(), alloc: &alloc, at: alloc.Address, size: alloc.Bytes, blocks: map[int]*block{}}
		o.allocations[alloc.Address] = a
		allocationsHere.Store(a.id, ownAllocation{o.device.Device, a.at})
	}
	o.generation++
	offset := int(r.Address - alloc.Address)
	b.skew = offset % blockMultiple
	b.arena, b.key, b.bytes, b.generation = a, int(o.generation), buf.Len()+b.skew, o.generation
	b.span.at, b.span.size = offset-b.skew, b.bytes
	a.blocks[b.key] = b
	o.lent[r] = b
	return b, nil
}

// lentEnded is called when no holder, no lease and no work of this process is
// left on a block. The last block of an allocation keeps it until every peer
// has closed it.
func (o *Owner) lentEnded(r *memory.Remote, b *block, giveBack func()) {
	o.mu.Lock()
	a := b.arena
	delete(a.blocks, b.key)
	delete(o.lent, r)
	if len(a.blocks) > 0 {
		o.mu.Unlock()
		go giveBack() // code of another library, which may wait for a goroutine that releases this
		return
	}
	a.end = giveBack
	if mutated("early end") {
		go giveBack()
		a.end = func() {}
	}
	delete(o.allocations, a.at)
	o.retired[a] = struct{}{}
	for p := range o.peers {
		p.retire(a)
	}
	o.mu.Unlock()
	o.giveBack()
}

// offerInPlace offers a block of another allocator's memory to the peers that
// can open it, and a copy to the others.
func (o *Owner) offerInPlace(ctx context.Context, peers []*Peer, g delivery) error {
	var able, others []*Peer
	var errs []error
	refuse := func(p *Peer, why error) {
		if g.noCopy {
			errs = append(errs, fmt.Errorf("%w, and %w", why, ErrCopy))
			return
		}
		others = append(others, p)
	}
	for _, p := range peers {
		if err := p.takes(g.block.arena); err != nil {
			refuse(p, err)
			continue
		}
		able = append(able, p)
	}
	placed := g
	placed.offer.first += g.block.skew
	for i, err := range o.toEach(ctx, able, placed) {
		if errors.Is(err, ErrRefused) {
			refuse(able[i], err)
			continue
		}
		errs = append(errs, err)
	}
	if len(others) > 0 {
		errs = append(errs, o.offerCopy(ctx, others, g))
	}
	return errors.Join(errs...)
}

// takes reports why the peer is not offered what is in an arena; nil if it is.
func (p *Peer) takes(a *arena) error {
	if !a.isOnDevice() {
		return nil
	}
	if err := p.knowsDevices(); err != nil || a.alloc == nil {
		return err
	}
	if p.theirs.abilities&capAllocations == 0 {
		return fmt.Errorf("%s takes no memory of other allocators (it speaks an older form of the protocol): %w", p.who(), ErrRefused)
	}
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	if p.death == nil && !p.isHere() {
		return fmt.Errorf("%s is not offered memory of other allocators, because the kernel does not say when it has died: %w", p.who(), ErrRefused)
	}
	return nil
}

// hasAllocations reports whether the peer, whose side is over, may have an
// allocation open. One that has ended in order has closed all before, and has
// not opened one that it was told of meanwhile. The caller has o.mu.
func (p *Peer) hasAllocations() bool {
	for _, m := range p.maps {
		if m.arena.alloc != nil && (m.state == mapped || m.state == announced && (!p.gotEnd || p.s.hungUp())) {
			return true
		}
	}
	return false
}

// whyCopied returns the error of an offer that must not copy.
func whyCopied(x *tensor.Tensor, why error) error {
	if why == nil {
		return fmt.Errorf("%s%s lies outside of the owner's arenas: %w", x.DType(), x.Shape(), ErrCopy)
	}
	return fmt.Errorf("%s%s lies outside of the owner's arenas and is not shared in place (%w): %w", x.DType(), x.Shape(), why, ErrCopy)
}

// isLendable reports whether a buffer is offered in place.
func (o *Owner) isLendable(buf *memory.Buffer) bool {
	if !o.inPlace {
		return false
	}
	b, _ := o.lentBlock(buf)
	return b != nil
}
