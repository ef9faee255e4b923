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

// A goroutine that waits for a packet reads the socket itself: one in Receive,
// one whose offer waits for credit, or one with a question. So a hand-over
// needs no switch from a reading goroutine to the waiting one. A background
// goroutine reads while no other waits, because releases and the peer's death
// must be processed at any time. It stops when a goroutine begins to wait, and
// continues when none has waited for a while.

// quiet is how long no goroutine waits before the background takes over. A
// shorter time would not help any waiter and would slow every hand-over: with a
// timer due before the kernel's next tick (4 ms at 250 ticks per second) each
// sleep of the process sets a hardware timer, which on a virtual machine takes
// longer than the rest of the hand-over. An allocation that needs room in an
// arena does not wait for the background: see drain.
const quiet = 10 * time.Millisecond

// reading is the right to receive packets, the reader's role, and the state of
// its waiters.
type reading struct {
	role    chan struct{}   // holds a token while no goroutine reads
	packet  []byte          // of the goroutine that has the role
	label   string          // of the last offer, which the next offer is likely to have too
	waiters atomic.Int32    // goroutines in await
	waits   atomic.Uint64   // calls of await so far
	watched <-chan struct{} // ends the context whose end interrupts reading; of the goroutine that has the role
	unwatch func() bool
	parked  atomic.Bool   // the goroutine that has the role waits for a packet, so other events must interrupt it
	idle    chan struct{} // wakes the background
	asleep  atomic.Bool   // the background waits for idle
	spent   time.Duration // on costly packets; of the goroutine that has the role
	failed  atomic.Bool   // receiving is over, for the reason in err
	err     error
}

func (r *reading) init() {
	r.role, r.idle = make(chan struct{}, 1), make(chan struct{}, 1)
	r.packet = make([]byte, maxPacket)
	r.role <- struct{}{}
}

// await returns when ready is, when the connection is over, or with ctx's
// error. Meanwhile it reads packets, unless another waiting goroutine does.
func (p *Peer) await(ctx context.Context, ready <-chan struct{}) error {
	r := &p.reading
	r.waits.Add(1)
	if r.waiters.Add(1) == 1 {
		p.interrupt() // the background stops reading
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

// leave counts a goroutine out that waited without the role.
func (p *Peer) leave() {
	if p.reading.waiters.Add(-1) == 0 && p.reading.asleep.Load() {
		wake(p.reading.idle)
	}
}

// errStepDown: the reader must leave reading to the background.
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

// watch makes the end of a context interrupt reading, until another context is
// watched. A program waits with the same context again and again, and
// registering it costs more than the rest of a wait.
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

// drain processes the packets that have arrived, if no goroutine reads, for
// instance releases that the background has not read yet.
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

// readOne receives one packet and handles it. The caller has the role and has
// set parked. A failure is recorded for the background, which ends the
// connection.
func (p *Peer) readOne() {
	n, fd, lost, err := p.s.receive(p.reading.packet)
	p.reading.parked.Store(false)
	if errors.Is(err, os.ErrDeadlineExceeded) { // interrupted: the caller looks for the reason
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

// isCostly reports whether a packet is not part of a hand-over. A peer can send
// any number of such packets, so their cost is counted.
func isCostly(packet []byte) bool {
	switch k := kind(packet[0]); k {
	case kindOffer:
		return len(packet) >= headBytes+8 && le.Uint64(packet[headBytes:]) == 0 // inside the message, so it needs no credit
	case kindRelease, kindMapped, kindUnmapped:
		return false
	}
	return true
}

// rest pauses when the peer's process has used up its share of background
// reading. The caller has the role, and gets it back.
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

// interrupt makes the receiving goroutine check for other events.
func (p *Peer) interrupt() {
	if p.reading.parked.Load() {
		p.s.interrupt()
	}
}

// background reads while no other goroutine waits, and ends the connection.
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
			break // with the role: no goroutine reads any more
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

// awaitQuiet returns when no goroutine has waited for a while, or when there is
// work that only the background does. While waits follow each other it only
// checks from time to time; during one long wait it sleeps.
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
