package share

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/memory"
)

// Ticket lets any peer of the same owner claim a tensor once. It keeps the tensor's bytes until then, on the account of the
// peer that asked for it.
type Ticket [16]byte

// String returns the ticket as [ParseTicket] reads it.
func (t Ticket) String() string { return hex.EncodeToString(t[:]) }

// ParseTicket reads a ticket from its text.
func ParseTicket(text string) (t Ticket, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(t) {
		return t, fmt.Errorf("share: got the ticket %q, want %d hexadecimal digits", text, 2*len(t))
	}
	return Ticket(b), nil
}

// lease is a reference to a block in the row of a peer: a serial that the peer was given, or a ticket that it asked for.
type lease struct {
	peer   *Peer
	block  *block
	offer  offer // as it was sent; of a ticket, as it will be but for the serial
	ticket Ticket
	since  time.Time
}

// row is what a peer holds of this process. The owner's mutex guards it.
type row struct {
	leases  map[uint64]*lease
	tickets map[Ticket]*lease
	serial  uint64 // the last one given out
	bytes   int64  // of leases and tickets
	gone    bool   // the peer's side is over: no lease may be recorded
	waiting int    // offers that wait for a change
	changed chan struct{}
}

func newRow() row {
	return row{leases: map[uint64]*lease{}, tickets: map[Ticket]*lease{}, changed: make(chan struct{})}
}

// signal wakes whoever waits for credit or for an answer about an arena. The caller has o.mu.
func (p *Peer) signal() {
	if p.row.waiting > 0 {
		close(p.row.changed)
		p.row.changed = make(chan struct{})
		p.interrupt()
	}
}

// credit reports whether the peer takes another reference to so many bytes. The caller has o.mu.
func (p *Peer) credit(bytes int) bool {
	n := len(p.row.leases) + len(p.row.tickets)
	return n < int(p.theirs.maxLeases) && uint64(p.row.bytes)+uint64(bytes) <= p.theirs.maxBytes
}

// record makes a lease: from here on the block is not reused. The caller has o.mu, acts for a holder of buf, and sends the
// offer after it has let go of o.mu.
func (p *Peer) record(b *block, m offer, buf *memory.Buffer) (*lease, error) {
	if b.refs == 0 && !mutated("early reuse") {
		if err := buf.Retain(); err != nil {
			return nil, err
		}
		b.hold = buf
		if !b.shared {
			buf.Freeze()
			b.shared = true
		}
	}
	b.refs++
	p.row.serial++
	m.serial, m.arena, m.offset, m.bytes, m.generation = p.row.serial, b.arena.id, b.span.at, b.bytes, b.generation
	l := &lease{peer: p, block: b, offer: m, since: time.Now()}
	p.row.leases[m.serial] = l
	p.row.bytes += int64(b.bytes)
	return l, nil
}

// end takes a lease or ticket out of its row and returns the hold to release after o.mu, nil if others are on the block.
func (l *lease) end() *memory.Buffer {
	r := &l.peer.row
	if l.ticket != (Ticket{}) {
		delete(r.tickets, l.ticket)
		delete(l.peer.o.tickets, l.ticket)
	} else {
		delete(r.leases, l.offer.serial)
	}
	r.bytes -= int64(l.block.bytes)
	l.peer.signal()
	b := l.block
	if b.refs--; b.refs > 0 {
		return nil
	}
	hold := b.hold
	b.hold = nil
	return hold
}

// undo ends a lease whose offer could not be sent.
func (l *lease) undo() {
	o := l.peer.o
	var hold *memory.Buffer
	o.mu.Lock()
	if l.peer.row.leases[l.offer.serial] == l {
		hold = l.end()
	}
	o.mu.Unlock()
	release(hold)
}

// released handles RELEASE.
func (p *Peer) released(body []byte) error {
	crashAt(6)
	var holds [8]*memory.Buffer
	over := holds[:0]
	var err error
	p.o.mu.Lock()
	for ; len(body) > 0; body = body[8:] {
		serial := le.Uint64(body)
		if serial == 0 || serial > p.row.serial {
			err = malformed("got RELEASE of lease %d, the last one given out is %d", serial, p.row.serial)
			break
		}
		if l := p.row.leases[serial]; l != nil {
			over = append(over, l.end())
		}
	}
	p.o.mu.Unlock()
	for _, hold := range over {
		release(hold)
	}
	crashAt(7)
	return err
}

// dropRow ends all that the peer holds, because it is dead or has said that it holds nothing.
func (p *Peer) dropRow() {
	crashAt(8)
	if mutated("no reclaim") {
		return
	}
	var over []*memory.Buffer
	o := p.o
	o.mu.Lock()
	p.row.gone = true
	for _, l := range p.row.leases {
		over = append(over, l.end())
	}
	for _, l := range p.row.tickets {
		over = append(over, l.end())
	}
	for _, m := range p.maps {
		m.arena.peers--
	}
	clear(p.maps)
	p.signal()
	o.mu.Unlock()
	for _, hold := range over {
		release(hold)
	}
	o.giveBack()
	crashAt(9)
}

// mint handles TICKET: a second reference to what the peer holds.
func (p *Peer) mint(serial uint64, request uint32) error {
	o := p.o
	o.mu.Lock()
	l := p.row.leases[serial]
	switch {
	case serial == 0 || serial > p.row.serial:
		o.mu.Unlock()
		return malformed("got TICKET for lease %d, the last one given out is %d", serial, p.row.serial)
	case l == nil:
		o.mu.Unlock()
		p.no(request, noTicket, fmt.Sprintf("lease %d is released", serial))
		return nil
	case !p.credit(l.block.bytes):
		o.mu.Unlock()
		p.no(request, noCredit, "the ticket would go over the holder's own credit")
		return nil
	}
	t := &lease{peer: p, block: l.block, offer: l.offer, since: time.Now()}
	rand.Read(t.ticket[:])
	l.block.refs++
	p.row.tickets[t.ticket] = t
	o.tickets[t.ticket] = t
	p.row.bytes += int64(l.block.bytes)
	o.mu.Unlock()
	crashAt(10)
	p.reply(header{kind: kindTicketed, request: request}, func(b []byte) []byte { return append(b, t.ticket[:]...) })
	crashAt(11)
	return nil
}

// cancel handles CANCEL. Anybody who has a ticket may end it.
func (p *Peer) cancel(t Ticket) {
	var hold *memory.Buffer
	p.o.mu.Lock()
	if l := p.o.tickets[t]; l != nil {
		hold = l.end()
	}
	p.o.mu.Unlock()
	release(hold)
}

// claim answers CLAIM: the ticket becomes a lease of this peer, in one step.
func (p *Peer) claim(t Ticket, request uint32) {
	o := p.o
	o.mu.Lock()
	l := o.tickets[t]
	if l == nil {
		o.mu.Unlock()
		p.no(request, noTicket, "no such ticket: it was claimed or cancelled, or who asked for it is gone")
		return
	}
	a, hold := l.block.arena, l.block.hold
	err := hold.Retain() // the ticket may end while the peer maps the arena, and the arena must not end with it
	o.mu.Unlock()
	if err != nil {
		p.noBecause(request, err)
		return
	}
	defer release(hold)
	if err := p.mapped(p.ctx, a); err != nil {
		p.noBecause(request, err)
		return
	}
	o.mu.Lock()
	l = o.tickets[t]
	if l == nil || p.row.gone || l.peer != p && !p.credit(l.block.bytes) { // its own ticket is on the account already
		o.mu.Unlock()
		if l == nil {
			p.no(request, noTicket, "the ticket is gone since a moment")
		} else {
			p.no(request, noCredit, "the claimer's credit is used up")
		}
		return
	}
	got, err := p.record(l.block, l.offer, l.block.hold)
	if err == nil {
		l.end() // the lease is there already: this is never the last reference
	}
	o.mu.Unlock()
	if err != nil {
		p.noBecause(request, err)
		return
	}
	crashAt(12)
	if err := p.post(header{kind: kindOffer, count: 1, request: request}, got.offer.append); err != nil {
		got.undo()
	}
}
