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

// A stopped process is alive and may read bytes that were sent to it at any
// time. So these bytes are not written before it has released them or is dead.
// An owner can only stop sending to it, and charge its leases to its account
// instead of the owner's limit.

// Stall selects what an owner does with a stalled peer; see [WithStall].
type Stall uint8

const (
	// StallWait waits until contexts end. It delays offers to the peer, and
	// allocations that need memory that the peer has mapped. It is the default.
	StallWait Stall = iota
	// StallDrop withdraws the offers that were not sent. Offers that wait and
	// later ones fail with [ErrStalled] until the peer is not stalled any more.
	// The peer does not get these tensors and keeps those that it holds.
	StallDrop
	// StallDisconnect calls [Peer.Disconnect]. The peer loses its connection.
	StallDisconnect
)

// WithStall sets how the owner treats a stalled peer: one that has read no
// packet, released no tensor and answered nothing for the given time while an
// offer waited for it, or an allocation waited until it unmaps an arena. A peer
// that reads a long queue slowly is not stalled. Offers that fail because they
// do not wait count as one that waits if no more than that time is between
// them. A peer for which nothing waits is never stalled, however long it holds
// its leases.
func WithStall(after time.Duration, do Stall) OwnerOption {
	return func(o *Owner) error {
		if after <= 0 || do > StallDisconnect {
			return fmt.Errorf("got stall %d after %s, want one of StallWait, StallDrop, StallDisconnect after a time above 0", do, after)
		}
		o.stall, o.stallAfter = do, after
		return nil
	}
}

// WithPeerLimit bounds the leases and tickets that all connections of one peer
// process together hold of this owner, and their bytes, for any credits that
// the peer announces. Leases of disconnected connections count until they are
// released or the process is dead. So do retired arenas that a disconnected
// connection may still have mapped: at most the given bytes of these, or of the
// owner's limit without this option, leave the owner's own limit.
func WithPeerLimit(tensors int, bytes int64) OwnerOption {
	return func(o *Owner) error {
		if tensors < 1 || bytes < 1 {
			return fmt.Errorf("got a limit for each peer process of %d tensors of %d bytes, want at least 1 of each", tensors, bytes)
		}
		o.peerLeases, o.peerBytes = tensors, bytes
		return nil
	}
}

// debtor counts the leases, tickets and bytes of an owner that the connections
// of a peer process hold. The owner's mutex guards it.
type debtor struct {
	id        processID
	peers     int
	leases    int // leases and tickets of all connections
	bytes     int64
	lost      int // those of disconnected connections
	lostBytes int64
	lists     *sync.Mutex // held while an answer to LIST is made for a connection
	waiting   int         // offers that wait for one of the connections
	pinned    int64       // bytes of arenas that left the owner's limit and that a disconnected connection may still have mapped
}

// debtorOf returns the debtor for one more connection of a process. The caller
// has o.mu.
func (o *Owner) debtorOf(id processID) *debtor {
	d := o.debtors[id]
	if d == nil {
		d = &debtor{id: id, lists: new(sync.Mutex)}
		o.debtors[id] = d
	}
	d.peers++
	return d
}

// Disconnect ends the connection at once. It is meant for a peer that is
// stopped, does not read or cannot be trusted. Offers that were not sent are
// withdrawn. Tensors that were sent, read or not, are in quarantine: their
// bytes are not written until the peer has released them or its process is
// dead, and until then they count against the credits of that process's
// connections. Arenas without such tensors leave the owner's limit, as far as
// [WithPeerLimit] permits, although their pages exist until that process has
// unmapped them.
//
// Tensors that were received from the peer stay valid, as with [Peer.Close].
//
// If the kernel does not tell which process the peer is (the other end of a
// socket pair, or a process in a namespace that is not visible to this one),
// the end of the connection counts as its death.
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

// lose puts everything that the peer holds into quarantine.
func (p *Peer) lose() {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	if !p.lost && !p.row.gone {
		p.quarantine()
	}
}

// quarantine is lose for a caller that has o.mu.
func (p *Peer) quarantine() {
	if p.death == nil {
		p.death = p.s.process(p.info.PID)
	}
	p.lost = true
	p.debtor.lost += len(p.row.leases) + len(p.row.tickets)
	p.debtor.lostBytes += p.row.bytes
	for _, m := range p.maps {
		m.arena.peers--
		m.arena.lost++
	}
	p.signal()
}

// deathToAwait returns the handle of the process of a disconnected peer whose
// connection has ended and that still holds something.
func (p *Peer) deathToAwait() *os.File {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	if p.o.device != nil && (len(p.row.leases) > 0 || p.hasAllocations()) && !p.isHere() {
		p.keepFromDevice()
	}
	if !p.lost || len(p.row.leases)+len(p.row.tickets)+len(p.maps) == 0 {
		return nil
	}
	return p.death
}

// keepFromDevice handles the end of file of a peer that holds tensors of a
// device. Work of the peer's device may outlive its socket, but not its
// process. Where the kernel does not name the process, nothing is ever written
// again into the arenas of these tensors, and they are freed instead: the
// driver keeps their memory as long as that process has it. The caller has
// o.mu.
func (p *Peer) keepFromDevice() {
	if !p.lost {
		p.quarantine()
	}
	if p.death != nil {
		return
	}
	for _, l := range p.row.leases {
		l.block.arena.spoilt = true
	}
}

// isHere reports whether the other end is in this process. Its leases end with
// the work of its device, and not with a death.
func (p *Peer) isHere() bool { return p.info.PID == os.Getpid() && p.info.Instance == instance() }

// pin charges a retired arena to the accounts of the disconnected peers that
// may have it mapped, unless one of them has no room for it. The caller has
// o.mu.
func (o *Owner) pin(a *arena) bool {
	if a.lost == 0 {
		return true
	}
	most, size := o.peerBytes, int64(a.size)
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

// unread describes how much the peer has read of the data that was sent to it.
type unread struct {
	flushed uint64    // packets that have left the queue
	bytes   int       // in the socket, as the kernel counts them
	read    time.Time // time of the last call that found that the peer had read
}

// lastRead returns when the peer was last found to have read. It compares the
// unread data now with the unread data at the last call: packets leave the
// queue, and bytes leave the socket, only because the peer reads. The caller
// has o.mu.
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

// stalling notes that something waits for the peer. It returns how long the
// peer may still take before it counts as stalled, and whether that time is
// over. The caller has o.mu.
func (p *Peer) stalling() (left time.Duration, over bool) {
	if p.o.stall == StallWait {
		return 0, false
	}
	now := time.Now()
	read := p.lastRead(now)
	if p.row.stuck.IsZero() || now.Sub(p.row.tried) > p.o.stallAfter { // nothing waited in between
		p.row.stuck = now
	} else if read.After(p.row.stuck) {
		p.row.stuck = read
	}
	p.row.tried = now
	left = p.o.stallAfter - now.Sub(p.row.stuck)
	return left, left <= 0
}

// stalled applies the owner's rule to a stalled peer, and returns the error of
// the offer that waited for it.
func (p *Peer) stalled() error {
	why := fmt.Errorf("%s has not moved for %s: %w", p.who(), p.o.stallAfter, ErrStalled)
	if p.o.stall == StallDrop {
		p.revokeUnsent(revokeOffers)
		return why
	}
	p.disconnect(fmt.Errorf("%w, the connection is %w", why, ErrClosed))
	return fmt.Errorf("%w (%w)", why, ErrClosed)
}

// awaitFor is await for at most that long; 0 means until ctx ends. The end of
// that time is not an error.
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

// overdue reports whether the peer has neither answered about a retired arena
// nor read anything for as long as the rule permits. The caller has o.mu.
func (p *Peer) overdue(now time.Time) bool {
	read := p.lastRead(now)
	for _, m := range p.maps {
		if m.retired && now.Sub(m.asked) >= p.o.stallAfter && now.Sub(read) >= p.o.stallAfter {
			return true
		}
	}
	return false
}

// disconnectStalled disconnects the peers whose answer about a retired arena is
// overdue, if that is the rule.
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
		_ = p.stalled() // its arenas may be room for the allocation now
	}
}
