package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/internal/ended"
)

// Packets are read by whoever waits for what they say: a goroutine in Receive, one whose offer waits for credit, one with a
// question. So a hand-over costs no switch from a reading goroutine to the one that waits. A goroutine in the background
// reads while nobody waits, because releases and the peer's death must not wait for anybody; it gives way when asked, and
// takes over again when there was no waiter for a moment.

// quiet is for how long nobody waits before the background takes over. A shorter one would be no better for anybody who waits,
// and would cost every hand-over: with a timer due before the kernel's next tick (4 ms where it ticks 250 times a second) each
// sleep of the process sets a timer of the hardware, which on a virtual machine takes longer than the rest of the hand-over.
// Whoever needs room in an arena does not wait for it: see drain.
const quiet = 10 * time.Millisecond

// reading is the right to receive packets, and who waits for it.
type reading struct {
	role    chan struct{}   // holds a token while nobody reads
	packet  []byte          // of whoever has the role
	label   string          // of the last offer, so likely that of the next one
	waiters atomic.Int32    // goroutines in await
	waits   atomic.Uint64   // calls of await so far
	watched <-chan struct{} // ends the context whose end interrupts; whoever has the role may change it
	unwatch func() bool
	parked  atomic.Bool   // whoever has the role is waiting for a packet, and would be missed elsewhere
	idle    chan struct{} // wakes the background
	asleep  atomic.Bool   // the background waits for idle
	spent   time.Duration // on costly packets, of whoever has the role
	failed  atomic.Bool   // receiving is over, for the reason in err
	err     error
}

func (r *reading) init() {
	r.role, r.idle = make(chan struct{}, 1), make(chan struct{}, 1)
	r.packet = make([]byte, maxPacket)
	r.role <- struct{}{}
}

// await returns when ready is, when the connection is over, or with ctx's error. Meanwhile it reads, unless another goroutine
// that waits does.
func (p *Peer) await(ctx context.Context, ready <-chan struct{}) error {
	r := &p.reading
	r.waits.Add(1)
	if r.waiters.Add(1) == 1 {
		p.interrupt() // the background gives way
	}
	select {
	case <-r.role:
		err := p.readFor(ctx, ready)
		r.role <- struct{}{}
		if r.waiters.Add(-1) == 0 && r.asleep.Load() || err == errStepDown {
			wake(r.idle)
		}
		if err != errStepDown {
			return err
		}
		select {
		case <-ready:
		case <-p.over:
		case <-ctx.Done():
			return ended.Error(ctx)
		}
		return nil
	case <-ready:
	case <-p.over:
	case <-ctx.Done():
		p.leave()
		return ended.Error(ctx)
	}
	p.leave()
	return nil
}

// leave takes a goroutine that never had the role out of those that wait.
func (p *Peer) leave() {
	if p.reading.waiters.Add(-1) == 0 && p.reading.asleep.Load() {
		wake(p.reading.idle)
	}
}

// errStepDown: whoever reads must leave it to the background.
var errStepDown = errors.New("reading is for the background")

// readFor reads until ready is. The caller has the role.
func (p *Peer) readFor(ctx context.Context, ready <-chan struct{}) error {
	p.watch(ctx)
	for {
		p.reading.parked.Store(true)
		select {
		case <-ready:
			p.reading.parked.Store(false)
			return nil
		case <-p.over:
			p.reading.parked.Store(false)
			return nil
		case <-ctx.Done():
			p.reading.parked.Store(false)
			return ended.Error(ctx)
		default:
		}
		if p.reading.failed.Load() || p.full() {
			p.reading.parked.Store(false)
			return errStepDown
		}
		p.readOne()
	}
}

// watch has the end of a context interrupt whoever reads. It stays so until another context is watched, or none: a program
// waits with the same one again and again, and to watch it costs more than all else that a wait does in this process.
func (p *Peer) watch(ctx context.Context) {
	r := &p.reading
	if r.watched == ctx.Done() {
		return
	}
	if r.watched != nil {
		r.unwatch()
	}
	if r.watched = ctx.Done(); r.watched != nil {
		r.unwatch = context.AfterFunc(ctx, p.interrupt)
	}
}

// drain does what has arrived already, if nobody is reading: releases that the background has not looked at yet.
func (p *Peer) drain() {
	r := &p.reading
	select {
	case <-r.role:
	default:
		return
	}
	for !r.failed.Load() && !p.full() && p.s.readable() {
		p.readOne()
	}
	r.role <- struct{}{}
	if r.failed.Load() {
		wake(r.idle)
	}
}

// readOne receives one packet and does what it says. The caller has the role and has set parked. A failure is noted for the
// background, which ends the connection.
func (p *Peer) readOne() {
	n, fd, lost, err := p.s.receive(p.reading.packet)
	p.reading.parked.Store(false)
	if errors.Is(err, os.ErrDeadlineExceeded) { // interrupted: look again what there is to do
		p.s.resume()
		return
	}
	if err == nil {
		if packet := p.reading.packet[:n]; isCostly(packet) {
			begin := time.Now()
			err = p.handle(packet, fd, lost)
			p.reading.spent += time.Since(begin)
		} else {
			err = p.handle(packet, fd, lost)
		}
	}
	if err == nil && p.broken.Load() {
		err = p.Err()
	}
	if err != nil {
		p.reading.err = err
		p.reading.failed.Store(true)
	}
}

// isCostly reports whether a packet is none of a hand-over: those that anybody may send without end. What it costs is counted.
func isCostly(packet []byte) bool {
	switch k := kind(packet[0]); k {
	case kindOffer:
		return len(packet) >= headBytes+8 && le.Uint64(packet[headBytes:]) == 0 // in the message, so that it needs no credit
	case kindRelease, kindMapped, kindUnmapped:
		return false
	}
	return true
}

// rest gives way when the peer's process has had its share of the reading that nobody waits for. The caller has the role, and
// gets it back.
func (p *Peer) rest() {
	r := &p.reading
	spent := r.spent
	if r.spent = 0; spent == 0 {
		return
	}
	if rest := processBudget().pace(p.account, spent); rest > 0 {
		r.role <- struct{}{}
		select {
		case <-time.After(rest):
		case <-p.over:
		}
		<-r.role
	}
}

// interrupt makes whoever is receiving look up.
func (p *Peer) interrupt() {
	if p.reading.parked.Load() {
		p.s.interrupt()
	}
}

// background reads while nobody waits, and ends the connection.
func (p *Peer) background() {
	r := &p.reading
	for {
		<-r.role
		p.watch(context.Background())
		for !r.failed.Load() && r.waiters.Load() == 0 {
			p.waitForRoom()
			r.parked.Store(true)
			if r.waiters.Load() > 0 {
				r.parked.Store(false)
				break
			}
			p.readOne()
			p.rest()
		}
		if r.failed.Load() {
			break // with the role: nobody reads any more
		}
		r.role <- struct{}{}
		p.awaitQuiet()
	}
	if errors.Is(r.err, io.EOF) {
		p.finish(fmt.Errorf("%s hung up: %w", p.who(), ErrClosed))
	} else {
		p.poison(r.err)
		p.s.awaitEnd()
	}
	p.end()
}

// awaitQuiet returns when nobody has waited for a moment, or when there is something that only the background does. While
// one wait follows the other it does no more than look at times; it sleeps while one wait goes on.
func (p *Peer) awaitQuiet() {
	r := &p.reading
	for {
		before := r.waits.Load()
		time.Sleep(quiet)
		if r.failed.Load() {
			return
		}
		if r.waits.Load() != before {
			continue
		}
		if r.waiters.Load() == 0 {
			return
		}
		r.asleep.Store(true)
		if r.waiters.Load() > 0 && !r.failed.Load() {
			<-r.idle
		}
		r.asleep.Store(false)
	}
}
