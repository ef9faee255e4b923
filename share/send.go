package share

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// queued is a packet that waits for the other end to read.
type queued struct {
	packet []byte
	fd     int  // a duplicate that the queue owns, -1 for none
	going  bool // is being sent: the other end may receive it at any moment
}

func (q *queued) kind() kind { return kind(q.packet[0]) }

// unsaid returns the number of releases in it that were certainly not sent.
func (q *queued) unsaid() int32 {
	if q.going || q.kind() != kindRelease {
		return 0
	}
	return int32(le.Uint16(q.packet[2:]))
}

// post sends a message without blocking. An error means that the connection has
// ended.
func (p *Peer) post(h header, body func([]byte) []byte) error { return p.postWith(h, body, -1) }

func (p *Peer) postWith(h header, body func([]byte) []byte, fd int) error {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	if p.shut || p.endSent && h.kind == kindOffer {
		return fmt.Errorf("the connection is %w", ErrClosed)
	}
	p.endSent = p.endSent || h.kind == kindEnd
	if h.endsQuestion() { // before the peer can receive the answer and ask the next question
		p.open.Add(-1)
	}
	p.scratch = h.append(p.scratch[:0])
	if body != nil {
		p.scratch = body(p.scratch)
	}
	if len(p.queue) == 0 {
		err := p.s.send(p.scratch, fd, false)
		if !errors.Is(err, errBusy) {
			return err
		}
	}
	return p.enqueue(h, fd)
}

// enqueue queues the packet in scratch until the other end reads. The caller
// has outMu.
func (p *Peer) enqueue(h header, fd int) error {
	if h.kind == kindRelease {
		p.unsaid.Add(int32(h.count))
		if p.joinReleases(h) {
			return nil
		}
	} else if !p.outRoom.fits(p.account, p.queued+len(p.scratch)) {
		go p.poison(malformed("got questions and no reader: %d bytes of answers wait, and no more have room", p.queued))
		return errBusy
	} else if p.queued > maxQueued {
		return errBusy
	}
	q := queued{packet: slices.Clone(p.scratch), fd: -1}
	if fd >= 0 { // the caller may close it before the packet is sent
		dup, err := duplicate(fd)
		if err != nil {
			return err
		}
		q.fd = dup
	}
	if p.queue = append(p.queue, q); len(p.queue) == 1 {
		go p.flush()
	}
	if h.kind == kindRelease {
		return nil
	}
	p.queued += len(q.packet)
	if p.queued > maxQueued {
		go p.poison(malformed("got questions and no reader: %d bytes of answers wait", p.queued))
	}
	return nil
}

// joinReleases appends the RELEASE in scratch to the last packet of the queue,
// if that is a RELEASE with room for it. The first packet of the queue is being
// sent and is left alone.
func (p *Peer) joinReleases(h header) bool {
	n := len(p.queue)
	if n < 2 || p.queue[n-1].kind() != kindRelease {
		return false
	}
	last := &p.queue[n-1]
	count := int(le.Uint16(last.packet[2:]))
	if count+h.count > maxReleases {
		return false
	}
	last.packet = append(last.packet, p.scratch[headBytes:]...)
	le.PutUint16(last.packet[2:], uint16(count+h.count))
	return true
}

// reply is post for the reader and for releases. It ignores errors: if nothing
// can be sent, the peer is gone, and the reader will find the end of file
// behind everything that the peer sent before.
func (p *Peer) reply(h header, body func([]byte) []byte) { _ = p.post(h, body) }

// congested reports whether packets wait for the other end to read.
func (p *Peer) congested() bool {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	return len(p.queue) > 0
}

// flush sends the queue until it is empty. One goroutine at a time runs it: it
// ends in the step that empties the queue, and the next packet that does not
// fit the socket starts another.
func (p *Peer) flush() {
	for left := true; left; {
		p.outMu.Lock()
		q := p.queue[0]
		p.unsaid.Add(-q.unsaid()) // before the other end can use the credit
		p.queue[0].going = true
		p.outMu.Unlock()
		err := p.s.send(q.packet, q.fd, true)
		p.outMu.Lock()
		switch {
		case err == nil:
			p.flushed++
			p.unqueue(1)
		case errors.Is(err, os.ErrDeadlineExceeded): // interrupted; the packet is still queued
		default: // the reader finds the error too, and ends the connection
			p.unqueue(len(p.queue))
		}
		revoked := p.takeRevoked()
		left = len(p.queue) > 0
		p.outMu.Unlock()
		for _, serial := range revoked {
			p.undo(serial)
		}
	}
	p.o.mu.Lock()
	p.signal()
	p.o.mu.Unlock()
	p.settle()
}

// revocation selects offers in the queue that are to be removed.
type revocation uint8

const (
	revokeNone   revocation = iota
	revokeOffers            // except answers to questions
	revokeAll
)

// revokeUnsent removes offers that were not sent from the queue. An offer that
// was sent stays, whether it was read or not.
func (p *Peer) revokeUnsent(which revocation) {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	if len(p.queue) > 0 { // the sending goroutine removes them, because a packet that is being sent must stay
		p.revoke = max(p.revoke, which)
		p.s.interruptSend()
	}
}

// takeRevoked removes the offers that revokeUnsent has selected, and returns
// the serials of the leases to end. No packet is being sent, and the caller has
// outMu.
func (p *Peer) takeRevoked() (serials []uint64) {
	if p.revoke == revokeNone {
		return nil
	}
	which := p.revoke
	p.revoke = revokeNone
	p.s.resumeSend()
	var keep []queued
	for i := range p.queue {
		q := &p.queue[i]
		isAnswer := le.Uint32(q.packet[4:]) != 0
		if q.kind() != kindOffer || isAnswer && which < revokeAll {
			keep = append(keep, *q)
			continue
		}
		p.queued -= len(q.packet)
		if serial := le.Uint64(q.packet[headBytes:]); serial != 0 { // this end puts one offer into each OFFER
			serials = append(serials, serial)
		}
	}
	p.queue = keep
	p.unqueue(0)
	return serials
}

// unqueue removes the first n packets from the queue. The caller has outMu.
func (p *Peer) unqueue(n int) {
	for _, q := range p.queue[:n] {
		closeDescriptor(q.fd)
		p.unsaid.Add(-q.unsaid())
		if q.kind() != kindRelease {
			p.queued -= len(q.packet)
		}
	}
	if p.queue = p.queue[n:]; len(p.queue) == 0 {
		p.queue = nil
		p.outRoom.empty(p.account)
	}
}
