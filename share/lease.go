package share

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure/memory"
)

// Ticket lets any peer of the same owner claim a tensor once. Until then it
// keeps the tensor's bytes, on the account of the peer that requested it.
type Ticket [16]byte

// String returns the form that [ParseTicket] parses.
func (t Ticket) String() string { return hex.EncodeToString(t[:]) }

// ParseTicket parses the text of a ticket.
func ParseTicket(text string) (t Ticket, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(t) {
		return t, fmt.Errorf("share: got the ticket %q, want %d hexadecimal digits", text, 2*len(t))
	}
	return Ticket(b), nil
}

// lease is a reference to a block in the row of a peer: a lease with a serial,
// or a ticket that the peer has requested.
type lease struct {
	block *block
	offer offer // as it was sent; for a ticket, as it will be sent, without the serial
	since time.Time
}

// row records the leases of a peer in this owner. The owner's mutex guards it.
// A hand-over allocates nothing in it: leases are values, and the channels of
// waiting offers are reused.
type row struct {
	leases  map[uint64]lease
	tickets map[Ticket]lease
	serial  uint64          // the last one issued
	bytes   int64           // of leases and tickets
	gone    bool            // the peer's side is over: no lease may be recorded
	stuck   time.Time       // since when something has waited for the peer without any progress of it; only with a rule for stalled peers
	tried   time.Time       // when something last waited for it, or failed instead of waiting
	seen    unread          // at the last call of lastRead
	waiting []chan struct{} // of offers that wait for a change; each has capacity for a token
	spare   []chan struct{} // for later offers that wait; without a token
}

func newRow() row { return row{leases: map[uint64]lease{}, tickets: map[Ticket]lease{}} }

// join returns a channel that receives a token at the next change; leaveRow
// returns the channel. The caller of both has o.mu.
func (p *Peer) join() chan struct{} {
	p.debtor.waiting++
	r := &p.row
	var changed chan struct{}
	if n := len(r.spare); n > 0 {
		changed, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		changed = make(chan struct{}, 1)
	}
	r.waiting = append(r.waiting, changed)
	return changed
}

func (p *Peer) leaveRow(changed chan struct{}) {
	p.debtor.waiting--
	r := &p.row
	if p.o.stall != StallWait {
		r.tried = time.Now()
	}
	i := slices.Index(r.waiting, changed)
	r.waiting = slices.Delete(r.waiting, i, i+1)
	select {
	case <-changed:
	default:
	}
	r.spare = append(r.spare, changed)
}

// signal wakes the offers that wait for credit or for an answer about an arena:
// the peer has made progress.
func (p *Peer) signal() {
	p.row.stuck = time.Time{}
	for _, changed := range p.row.waiting {
		wake(changed)
	}
	if len(p.row.waiting) > 0 {
		p.interrupt()
	}
}

// signalFellows does so for the other connections of the peer's process, if any
// waits, because their total is bounded. The caller has o.mu.
func (p *Peer) signalFellows() {
	if p.debtor.waiting == len(p.row.waiting) {
		return
	}
	for q := range p.o.peers {
		if q != p && q.debtor == p.debtor {
			q.signal()
		}
	}
}

// credit reports whether the peer accepts another reference to so many bytes,
// and its process may have it. The caller has o.mu.
func (p *Peer) credit(bytes int) bool {
	d, more := p.debtor, int64(bytes)
	n := len(p.row.leases) + len(p.row.tickets) + d.lost
	return n < int(p.theirs.maxLeases) && more <= int64(p.theirs.maxBytes)-p.row.bytes-d.lostBytes-d.pinned &&
		d.leases < p.o.peerLeases && more <= p.o.peerBytes-d.bytes-d.pinned
}

// owes adds to the number of references and bytes that the peer holds. The
// caller has o.mu.
func (p *Peer) owes(references int, bytes int64) {
	p.row.bytes += bytes
	d := p.debtor
	d.leases += references
	d.bytes += bytes
	if p.lost {
		d.lost += references
		d.lostBytes += bytes
	}
}

// record records a lease: from here on the block is not reused. The caller has
// o.mu and a hold on buf. It sends the offer, which now has its serial, after
// it has released o.mu.
func (p *Peer) record(b *block, m offer, buf *memory.Buffer) (offer, error) {
	if b.refs == 0 && !mutated("early reuse") {
		if err := buf.Retain(); err != nil {
			return m, err
		}
		b.hold = buf
		if !b.shared {
			buf.Freeze()
			b.shared = true
		}
	}
	b.refs++
	p.row.serial++
	if b.arena.isOnDevice() {
		m.device = cudaMemory
	}
	m.serial, m.arena, m.offset, m.bytes, m.generation = p.row.serial, b.arena.id, b.span.at, b.bytes, b.generation
	p.row.leases[m.serial] = lease{block: b, offer: m, since: time.Now()}
	p.owes(1, int64(b.bytes))
	return m, nil
}

// endLease removes a lease from the row, if it is there. It returns the hold to
// release after o.mu, or nil if the block has other references. endTicket does
// so with a ticket.
func (p *Peer) endLease(serial uint64) *memory.Buffer {
	l := p.row.leases[serial]
	if l.block == nil {
		return nil
	}
	delete(p.row.leases, serial)
	return p.letGo(l.block)
}

func (p *Peer) endTicket(t Ticket) *memory.Buffer {
	b := p.row.tickets[t].block
	delete(p.row.tickets, t)
	delete(p.o.tickets, t)
	return p.letGo(b)
}

func (p *Peer) letGo(b *block) *memory.Buffer {
	p.owes(-1, -int64(b.bytes))
	p.signal()
	p.signalFellows()
	if b.refs--; b.refs > 0 {
		return nil
	}
	hold := b.hold
	b.hold = nil
	return hold
}

// undo ends a lease whose offer could not be sent.
func (p *Peer) undo(serial uint64) {
	p.o.mu.Lock()
	hold := p.endLease(serial)
	p.o.mu.Unlock()
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
		if hold := p.endLease(serial); hold != nil {
			over = append(over, hold)
		}
	}
	p.o.mu.Unlock()
	for _, hold := range over {
		release(hold)
	}
	crashAt(7)
	return err
}

// dropRow ends all leases and tickets of the peer, which is dead or has
// declared that it holds nothing.
func (p *Peer) dropRow() {
	crashAt(8)
	if mutated("no reclaim") {
		return
	}
	var over []*memory.Buffer
	o := p.o
	o.mu.Lock()
	p.row.gone = true
	for serial := range p.row.leases {
		over = append(over, p.endLease(serial))
	}
	for t := range p.row.tickets {
		over = append(over, p.endTicket(t))
	}
	for _, m := range p.maps {
		p.forget(m)
	}
	p.signal()
	o.mu.Unlock()
	for _, hold := range over {
		release(hold)
	}
	o.giveBack()
	crashAt(9)
}

// mint handles TICKET: it adds a second reference to a block that the peer
// holds.
func (p *Peer) mint(serial uint64, request uint32) error {
	o := p.o
	o.mu.Lock()
	l, held := p.row.leases[serial]
	switch {
	case serial == 0 || serial > p.row.serial:
		o.mu.Unlock()
		return malformed("got TICKET for lease %d, the last one given out is %d", serial, p.row.serial)
	case !held:
		o.mu.Unlock()
		p.no(request, noTicket, fmt.Sprintf("lease %d is released", serial))
		return nil
	case !p.credit(l.block.bytes):
		o.mu.Unlock()
		p.no(request, noCredit, "the ticket would go over the holder's own credit")
		return nil
	}
	var t Ticket
	rand.Read(t[:])
	l.block.refs++
	p.row.tickets[t] = lease{block: l.block, offer: l.offer, since: time.Now()}
	o.tickets[t] = p
	p.owes(1, int64(l.block.bytes))
	o.mu.Unlock()
	crashAt(10)
	p.reply(header{kind: kindTicketed, request: request}, func(b []byte) []byte { return append(b, t[:]...) })
	crashAt(11)
	return nil
}

// cancel handles CANCEL. Every peer that has a ticket may end it.
func (p *Peer) cancel(t Ticket) {
	var hold *memory.Buffer
	p.o.mu.Lock()
	if from := p.o.tickets[t]; from != nil {
		hold = from.endTicket(t)
	}
	p.o.mu.Unlock()
	release(hold)
}

// claim answers CLAIM: the ticket becomes a lease of this peer in one step.
func (p *Peer) claim(t Ticket, request uint32) {
	o := p.o
	o.mu.Lock()
	from := o.tickets[t]
	if from == nil {
		o.mu.Unlock()
		p.no(request, noTicket, "no such ticket: it was claimed or cancelled, or the peer that requested it is gone")
		return
	}
	l := from.row.tickets[t]
	hold := l.block.hold
	err := hold.Retain() // the ticket may end while the peer maps the arena, which must not end with it
	o.mu.Unlock()
	if err != nil {
		p.noBecause(request, err)
		return
	}
	defer release(hold)
	err = p.mapped(p.ctx, l.block.arena)
	if err == nil {
		l.offer.mark, err = p.markFor(p.ctx, l.block, hold, offerOptions{}, true)
	}
	if err != nil {
		p.noBecause(request, err)
		return
	}
	o.mu.Lock()
	from = o.tickets[t]
	if from == nil || p.row.gone || from != p && !p.credit(l.block.bytes) { // its own ticket is already counted
		o.mu.Unlock()
		if from == nil {
			p.no(request, noTicket, "the ticket is gone since a moment")
		} else {
			p.no(request, noCredit, "the claimer's credit is used up")
		}
		return
	}
	got, err := p.record(l.block, l.offer, l.block.hold)
	if err == nil {
		from.endTicket(t) // the lease exists already, so this is never the last reference
	}
	o.mu.Unlock()
	if err != nil {
		p.noBecause(request, err)
		return
	}
	crashAt(12)
	if err := p.post(header{kind: kindOffer, count: 1, request: request}, got.append); err != nil {
		p.undo(got.serial)
	}
}
