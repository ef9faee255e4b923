package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// OfferOption configures an offer.
type OfferOption func(offerOptions) offerOptions

type offerOptions struct {
	label      string
	noCopy     bool
	noWait     bool
	beforeWork bool
	request    uint32 // the question that the offer answers; such an offer waits for an answer about the arena, since the peer waits for the offer
}

// Label attaches a text of up to 56 bytes to the tensor. The receiver can read
// it, and lists of leases show it.
func Label(text string) OfferOption {
	return func(c offerOptions) offerOptions {
		c.label = text
		return c
	}
}

// WithoutCopy makes an offer fail with [ErrCopy] if the tensor is outside of
// the owner's arenas.
func WithoutCopy() OfferOption {
	return func(c offerOptions) offerOptions {
		c.noCopy = true
		return c
	}
}

// NoWait makes an offer fail with [ErrNoCredit] instead of waiting, if the peer
// holds as much as it announced, does not read, or has not mapped the tensor's
// arena yet. In the last case the peer was told to map it; once it has
// answered, the same offer need not wait.
func NoWait() OfferOption {
	return func(c offerOptions) offerOptions {
		c.noWait = true
		return c
	}
}

// Offer lends x to the peer, which gets a read-only tensor over the same bytes.
// The bytes stay until the peer releases them, even after x is released, and
// are not written any more. The caller keeps x and may release it at any time.
// A tensor outside of the owner's arenas is copied into one, or into the
// message if it is small; State counts the copied bytes. To build tensors in an
// arena use [tensor.Make] with the owner.
//
// Offer waits while the peer holds as much as it announced; ctx ends the wait.
// Its return does not mean that the peer has received or read anything.
func (p *Peer) Offer(ctx context.Context, x *tensor.Tensor, opts ...OfferOption) error {
	if p.none() {
		return fmt.Errorf("share offer: %w", errNoPeer)
	}
	return p.o.Offer(ctx, x, []*Peer{p}, opts...)
}

// Offer lends x to several peers, with at most one copy for all of them. It
// first serves the peers for which it need not wait. The error joins the errors
// of all peers that did not get the tensor.
func (o *Owner) Offer(ctx context.Context, x *tensor.Tensor, peers []*Peer, opts ...OfferOption) error {
	var c offerOptions
	for i, option := range opts {
		if option == nil {
			return fmt.Errorf("share offer: %w", errNilOption(i))
		}
		c = option(c)
	}
	if o.none() {
		return fmt.Errorf("share offer: %w", errNoOwner)
	}
	if ctx == nil {
		return fmt.Errorf("share offer: %w", errNilContext)
	}
	if len(c.label) > maxLabel || !utf8.ValidString(c.label) {
		return fmt.Errorf("share offer: got the label %q, want at most %d bytes of UTF-8", c.label, maxLabel)
	}
	if err := o.offer(ctx, x, peers, c); err != nil {
		return fmt.Errorf("share offer: %w", err)
	}
	return nil
}

func (o *Owner) offer(ctx context.Context, x *tensor.Tensor, peers []*Peer, c offerOptions) error {
	buf, first, err := x.Hold()
	if err != nil {
		return err
	}
	if err := o.mayOffer(x, peers); err != nil {
		release(buf)
		return err
	}
	g := delivery{x: x, block: o.blockOf(buf), buf: buf, offerOptions: c,
		offer: offer{dt: x.DType(), layout: x.Layout(), first: first, label: c.label}}
	if g.block != nil {
		defer release(buf)
		return o.toAll(ctx, peers, g)
	}
	var why error
	if o.inPlace {
		if g.block, why = o.lentBlock(buf); g.block != nil {
			defer release(buf)
			return o.offerInPlace(ctx, peers, g)
		}
	}
	release(buf) // the copy is sent instead
	if c.noCopy && buf.Len() > 0 {
		return whyCopied(x, why)
	}
	return o.offerCopy(ctx, peers, g)
}

func (o *Owner) mayOffer(x *tensor.Tensor, peers []*Peer) error {
	if r := x.Shape().Rank(); r > maxRank {
		return fmt.Errorf("got a tensor of rank %d, want at most %d: %w", r, maxRank, tensor.ErrUnsupported)
	}
	for _, p := range peers {
		if p.none() {
			return errNoPeer
		}
		if p.o != o {
			return fmt.Errorf("got a peer of another owner: %w", ErrRefused)
		}
	}
	return nil
}

// offerCopy offers a tensor outside of the arenas: inside the message, or as a
// copy in an arena.
func (o *Owner) offerCopy(ctx context.Context, peers []*Peer, g delivery) (err error) {
	if o.device == nil {
		if g.x.Device() != nil {
			here, err := tensor.To(ctx, g.x, nil)
			if err != nil {
				return err
			}
			defer here.Release()
			g.x = here
		}
		if g.offer, g.inline, err = inlined(g.x, g.offer); err != nil {
			return err
		}
		if g.inline != nil {
			return o.toAll(ctx, peers, g)
		}
	}
	placed, err := g.x.CopyTo(o)
	if err != nil {
		return err
	}
	defer placed.Release()
	o.copied.Add(int64(placed.NumBytes()))
	if g.buf, g.offer.first, err = placed.Hold(); err != nil {
		return err
	}
	defer release(g.buf)
	g.block, g.offer.layout = o.blockOf(g.buf), placed.Layout()
	return o.toAll(ctx, peers, g)
}

// delivery is the tensor that each peer of an offer receives.
type delivery struct {
	x      *tensor.Tensor
	offer  offer
	block  *block         // in an arena
	buf    *memory.Buffer // the caller of the offer holds it
	inline []byte         // if not nil, the bytes, which are sent inside the message
	offerOptions
}

// waitMode selects the events that an offer waits for.
type waitMode uint8

const (
	waitForNothing waitMode = iota
	waitForArena            // the answer about an arena that the peer does not know yet
	waitForCredit           // also credit
)

// wait returns the events that an offer waits for.
func (c offerOptions) wait() waitMode {
	switch {
	case !c.noWait:
		return waitForCredit
	case c.request == 0:
		return waitForNothing
	}
	return waitForArena
}

// errNotMapped: the arena was announced and the peer has not answered yet.
var errNotMapped = fmt.Errorf("has not mapped the arena yet: %w", ErrNoCredit)

// toAll serves the peers that need no wait first, then the others, each on a
// goroutine of its own.
func (o *Owner) toAll(ctx context.Context, peers []*Peer, g delivery) error {
	if len(peers) == 1 { // without an allocation
		return peers[0].offerOne(ctx, &g, g.wait())
	}
	return errors.Join(o.toEach(ctx, peers, g)...)
}

// toEach is toAll that returns the error of each peer.
func (o *Owner) toEach(ctx context.Context, peers []*Peer, g delivery) []error {
	errs := make([]error, len(peers))
	wait := g.wait()
	if len(peers) == 1 {
		errs[0] = peers[0].offerOne(ctx, &g, wait)
		return errs
	}
	var work sync.WaitGroup
	for i, p := range peers {
		err := p.offerOne(ctx, &g, waitForNothing)
		if errors.Is(err, ErrNoCredit) && wait != waitForNothing {
			work.Go(func() { errs[i] = p.offerOne(ctx, &g, wait) })
			continue
		}
		errs[i] = err
	}
	work.Wait()
	return errs
}

func (p *Peer) offerOne(ctx context.Context, g *delivery, wait waitMode) error {
	if g.inline != nil {
		return p.sendInline(ctx, g.offer, g.inline, g.offerOptions, wait)
	}
	return p.lend(ctx, g, wait)
}

// lend records a lease on the block and sends the offer.
func (p *Peer) lend(ctx context.Context, g *delivery, wait waitMode) error {
	b := g.block
	known, ready, err := p.announce(b.arena)
	if err == nil && !ready {
		if wait == waitForNothing {
			return p.notMapped()
		}
		err = p.awaitMapped(ctx, b.arena, known)
	}
	if err != nil {
		if b.arena.isOnDevice() { // what is on a device is not sent inside messages
			return err
		}
		if m, bytes, inErr := inlined(g.x, g.offer); errors.Is(err, ErrRefused) && inErr == nil && bytes != nil && !g.noCopy {
			return p.sendInline(ctx, m, bytes, g.offerOptions, wait)
		}
		return err
	}
	if most := min(p.theirs.maxBytes, uint64(p.o.peerBytes)); uint64(b.bytes) > most {
		return fmt.Errorf("%s gets at most %d bytes at once, the tensor has %d: %w", p.who(), most, b.bytes, ErrNoCredit)
	}
	m := g.offer
	if m.mark, err = p.markFor(ctx, b, g.buf, g.offerOptions, wait != waitForNothing); err != nil {
		return err
	}
	err = p.whenFree(ctx, wait == waitForCredit, func() (ok bool, err error) {
		if !p.credit(b.bytes) {
			return false, nil
		}
		m, err = p.record(b, m, g.buf)
		return true, err
	})
	if err != nil {
		return err
	}
	crashAt(4)
	if err := p.post(header{kind: kindOffer, count: 1, request: g.request}, m.append); err != nil {
		p.undo(m.serial)
		return fmt.Errorf("%s: %w", p.who(), err)
	}
	crashAt(5)
	return nil
}

// whenFree calls try under o.mu until it is done: at once, then after every
// change in the peer's row. It also waits while packets wait for the peer to
// read.
func (p *Peer) whenFree(ctx context.Context, wait bool, try func() (done bool, err error)) error {
	o := p.o
	o.mu.Lock()
	for {
		if p.row.gone || p.isOver() {
			o.mu.Unlock()
			return fmt.Errorf("%s: %w", p.who(), p.closedErr())
		}
		if !p.congested() {
			if done, err := try(); done || err != nil {
				o.mu.Unlock()
				return err
			}
		}
		left, stalled := p.stalling()
		if stalled || !wait {
			n, bytes := len(p.row.leases)+len(p.row.tickets), p.row.bytes
			o.mu.Unlock()
			if stalled {
				return p.stalled()
			}
			return fmt.Errorf("%s holds %d tensors of %d bytes, or does not read: %w", p.who(), n, bytes, ErrNoCredit)
		}
		changed := p.join()
		o.mu.Unlock()
		err := p.awaitFor(ctx, changed, left)
		o.mu.Lock()
		p.leaveRow(changed)
		if err != nil {
			o.mu.Unlock()
			return fmt.Errorf("%s: %w", p.who(), err)
		}
	}
}

// notMapped returns the error of an offer that does not wait for the answer
// about an arena.
func (p *Peer) notMapped() error {
	p.o.mu.Lock()
	_, stalled := p.stalling()
	p.o.mu.Unlock()
	if stalled {
		return p.stalled()
	}
	return fmt.Errorf("%s %w", p.who(), errNotMapped)
}

// whenRead returns nil when the peer has read everything that was sent to it.
// Without wait, it otherwise returns ErrNoCredit.
func (p *Peer) whenRead(ctx context.Context, wait bool) error {
	return p.whenFree(ctx, wait, func() (bool, error) { return true, nil })
}

func (p *Peer) isOver() bool { return ended.Closed(p.over) }

// closedErr returns the error of offers after the end of the connection.
func (p *Peer) closedErr() error {
	if err := p.Err(); err != nil && errors.Is(err, ErrClosed) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w (%w)", ErrClosed, err)
	}
	return ErrClosed
}

// inlined returns the bytes of a tensor that is sent inside a message, nil for
// one that is too large.
func inlined(x *tensor.Tensor, m offer) (offer, []byte, error) {
	n, err := x.DType().ByteLen(x.NumElements())
	if err != nil {
		return m, nil, err
	}
	if n > maxInline {
		return m, nil, nil
	}
	c, _, err := x.Contiguous()
	if err != nil {
		return m, nil, err
	}
	defer c.Release()
	use, err := c.Use()
	if err != nil {
		return m, nil, err
	}
	defer use.Release()
	m.layout, m.first, m.bytes = c.Layout(), 0, n
	return m, append(make([]byte, 0, max(n, 1)), use.Data...), nil
}

func (p *Peer) sendInline(ctx context.Context, m offer, data []byte, c offerOptions, wait waitMode) error {
	if err := p.whenRead(ctx, wait == waitForCredit); err != nil {
		return err
	}
	p.o.copied.Add(int64(len(data)))
	return p.post(header{kind: kindOffer, count: 1, request: c.request}, func(b []byte) []byte { return append(m.append(b), data...) })
}
