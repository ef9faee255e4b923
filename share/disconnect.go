package share

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/ended"
)

// A process that is stopped is alive: it may read at any time what was sent to it. So what it was sent is never written again
// before it is dead, and what an owner can do about it is to send it no more, and to count what it has on its own account
// instead of the owner's.

// Stall says what an owner does with a peer that does not move while something waits for it.
type Stall uint8

const (
	// StallWait waits, as long as contexts do. It costs what waits: offers to that peer, and allocations that need the memory
	// which it has mapped. This is the default.
	StallWait Stall = iota
	// StallDrop takes back the offers that were not sent yet, and lets those that wait, and all later ones, fail with [ErrStalled] until the peer moves. It
	// costs the peer these tensors, and keeps what it has.
	StallDrop
	// StallDisconnect is [Peer.Disconnect]. It costs the peer its connection.
	StallDisconnect
)

// WithStall sets what the owner does with a stalled peer: one that has read no packet, released no tensor and answered
// nothing for the given time while an offer waited for it, or an allocation waited until it unmaps an arena. A peer that
// reads a long queue slowly is not stalled. Offers that fail because they do not wait count as one that waits if no more
// than that time is between them. A peer for which nothing waits is never stalled, however long it holds its leases.
func WithStall(after time.Duration, do Stall) OwnerOption {
	return func(o *Owner) error {
		if after <= 0 || do > StallDisconnect {
			return fmt.Errorf("got stall %d after %s, want one of StallWait, StallDrop, StallDisconnect after a time above 0", do, after)
		}
		o.stall, o.stallAfter = do, after
		return nil
	}
}

// WithPeerLimit bounds the leases and tickets that all connections of one peer process hold of this owner together, and
// their bytes, whatever credits the peer announces. The leases of disconnected connections count until the process is
// dead, and so do the arenas that it may still have mapped; at most so many bytes of those leave the owner's own limit,
// without this option as many as that limit.
func WithPeerLimit(tensors int, bytes int64) OwnerOption {
	return func(o *Owner) error {
		if tensors < 1 || bytes < 1 {
			return fmt.Errorf("got a limit for each peer process of %d tensors of %d bytes, want at least 1 of each", tensors, bytes)
		}
		o.peerLeases, o.peerBytes = tensors, bytes
		return nil
	}
}

// debtor is what the connections of a peer process have of an owner. The owner's mutex guards it.
type debtor struct {
	id        processID
	peers     int
	leases    int // and tickets, of all connections
	bytes     int64
	lost      int // those of them that were disconnected
	lostBytes int64
	lists     *sync.Mutex // held while an answer to LIST is made for one of them
	waiting   int         // offers that wait for one of them
	pinned    int64       // bytes of arenas that the owner has given back and a disconnected one may still have mapped
}

// debtorOf returns the debtor for one more connection of a process. The caller has o.mu.
func (o *Owner) debtorOf(id processID) *debtor {
	d := o.debtors[id]
	if d == nil {
		d = &debtor{id: id, lists: new(sync.Mutex)}
		o.debtors[id] = d
	}
	d.peers++
	return d
}

// Disconnect ends the connection at once, for a peer that is stopped, does not read or is not to be trusted. Offers
// that were not sent yet are taken back. Tensors that were sent, read or not, are in quarantine: their bytes are not
// written until the peer has released them or its process is dead, and until then they count against what connections
// of that process may have. Arenas without such tensors are not waited for: they leave the owner's limit, as far as
// [WithPeerLimit] says, although their pages exist until that process has unmapped them.
//
// Tensors that were received from the peer stay valid, as with [Peer.Close].
//
// Where the kernel does not say which process the peer is (the other end of a socket pair, or a process in a namespace
// that this one cannot see), the end of the connection counts as its death.
func (p *Peer) Disconnect() error {
	if p.none() {
		return fmt.Errorf("share: disconnect: %w", errNoPeer)
	}
	p.disconnect(fmt.Errorf("%s was disconnected: the connection is %w", p.who(), ErrClosed))
	return nil
}

func (p *Peer) disconnect(why error) {
	p.lose()
	p.finish(why)
	p.revokeUnsent(revokeAll)
	p.closeDown()
	p.o.giveBack()
}

// lose puts what the peer has into quarantine.
func (p *Peer) lose() {
	o := p.o
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.lost || p.row.gone {
		return
	}
	p.death = p.s.process(p.info.PID)
	p.lost = true
	p.debtor.lost += len(p.row.leases) + len(p.row.tickets)
	p.debtor.lostBytes += p.row.bytes
	for _, m := range p.maps {
		m.arena.peers--
		m.arena.lost++
	}
	p.signal()
}

// deathToAwait returns the handle of the process of a lost peer that has ended its connection and not let go of everything.
func (p *Peer) deathToAwait() *os.File {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	if !p.lost || len(p.row.leases)+len(p.row.tickets)+len(p.maps) == 0 {
		return nil
	}
	return p.death
}

// pin puts an arena that is given back into the accounts of the lost peers that may have it mapped, unless one has no room.
// The caller has o.mu.
func (o *Owner) pin(a *arena) bool {
	if a.lost == 0 {
		return true
	}
	most, size := o.peerBytes, int64(len(a.data))
	if most == math.MaxInt64 && o.limit > 0 {
		most = o.limit
	}
	var by []*mapping
	more := map[*debtor]int64{}
	for p := range o.peers {
		for _, m := range p.maps {
			if m.arena == a && p.lost {
				by = append(by, m)
				if more[p.debtor] += size; more[p.debtor] > most-p.debtor.pinned {
					return false
				}
			}
		}
	}
	for _, m := range by {
		m.pinned = true
	}
	for d, n := range more {
		d.pinned += n
	}
	o.pinned += size
	return true
}

// unread says how far the peer has read what was sent to it.
type unread struct {
	flushed uint64    // packets that have left the queue
	bytes   int       // in the socket, as the kernel counts them
	read    time.Time // when a look found that the peer had read since the look before
}

// lastRead returns when the peer was last found to have read. It compares what is unread now with what was unread at the
// last call: packets leave the queue, and bytes leave the socket, only because the peer reads. The caller has o.mu.
func (p *Peer) lastRead(now time.Time) time.Time {
	p.outMu.Lock()
	is := unread{flushed: p.flushed, bytes: p.s.unread(), read: p.row.seen.read}
	p.outMu.Unlock()
	if is.flushed != p.row.seen.flushed || is.bytes < p.row.seen.bytes {
		is.read = now
	}
	p.row.seen = is
	return is.read
}

// stalling notes that something waits for the peer. It returns how long the peer may still take before it counts as stalled, and
// whether that time is over. The caller has o.mu.
func (p *Peer) stalling() (left time.Duration, over bool) {
	if p.o.stall == StallWait {
		return 0, false
	}
	now := time.Now()
	read := p.lastRead(now)
	if p.row.stuck.IsZero() || now.Sub(p.row.tried) > p.o.stallAfter { // nothing has waited in between
		p.row.stuck = now
	} else if read.After(p.row.stuck) {
		p.row.stuck = read
	}
	p.row.tried = now
	left = p.o.stallAfter - now.Sub(p.row.stuck)
	return left, left <= 0
}

// stalled does what the owner's rule says about a peer that has not moved, and returns the error of whoever has waited for it.
func (p *Peer) stalled() error {
	why := fmt.Errorf("%s has not moved for %s: %w", p.who(), p.o.stallAfter, ErrStalled)
	if p.o.stall == StallDrop {
		p.revokeUnsent(revokeOffers)
		return why
	}
	p.disconnect(fmt.Errorf("%w, the connection is %w", why, ErrClosed))
	return fmt.Errorf("%w (%w)", why, ErrClosed)
}

// awaitFor is await for at most that long; 0 is as long as ctx says. That the time is over is no error.
func (p *Peer) awaitFor(ctx context.Context, ready <-chan struct{}, most time.Duration) error {
	if most == 0 {
		return p.await(ctx, ready)
	}
	short, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := p.await(short, ready); err != nil && ctx.Err() != nil {
		return ended.Error(ctx)
	}
	return nil
}

// overdue reports whether the peer has neither answered about a retired arena nor read anything for as long as the rule says. The
// caller has o.mu.
func (p *Peer) overdue(now time.Time) bool {
	read := p.lastRead(now)
	for _, m := range p.maps {
		if m.retired && now.Sub(m.asked) >= p.o.stallAfter && now.Sub(read) >= p.o.stallAfter {
			return true
		}
	}
	return false
}

// disconnectStalled disconnects the peers that have owed an answer about a retired arena for too long, if that is the rule.
func (o *Owner) disconnectStalled() {
	if o.stall != StallDisconnect {
		return
	}
	o.mu.Lock()
	var overdue []*Peer
	now := time.Now()
	for p := range o.peers {
		if !p.lost && p.overdue(now) {
			overdue = append(overdue, p)
		}
	}
	o.mu.Unlock()
	for _, p := range overdue {
		_ = p.stalled() // for the allocation there may be room now
	}
}
