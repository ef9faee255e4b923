package share

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// stallAfterAnHour sets a rule whose time passes only by age.
func stallAfterAnHour(o *Owner, do Stall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stall, o.stallAfter = do, time.Hour
}

// age makes everything that the owner has noted about the peer two hours older,
// but for the last attempt to offer.
func age(p *Peer) {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	p.row.stuck, p.row.seen.read = p.row.stuck.Add(-2*time.Hour), p.row.seen.read.Add(-2*time.Hour)
	for _, m := range p.maps {
		m.asked = m.asked.Add(-2 * time.Hour)
	}
}

// queueLen returns the number of packets that wait for the peer to read, and of
// those that have left the queue.
func queueLen(p *Peer) (waiting int, flushed uint64) {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	return len(p.queue), p.flushed
}

// unreadOffers returns an owner and a peer of it that has been sent three
// offers, which are all that it will hold, and has read none.
func unreadOffers(t *testing.T) (o *Owner, p *Peer, socket int, x *tensor.Tensor) {
	t.Helper()
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o = ok(NewOwner())(t)
	t.Cleanup(func() { o.Close() })
	p, socket = silentPeer(t, o, 100_000)
	p.theirs.maxLeases = 3
	x = bytesOf(t, o, 100_000, 5)
	t.Cleanup(func() { mustRelease(t, x) })
	for range 3 {
		if err := p.Offer(t.Context(), x, NoWait()); err != nil {
			t.Fatal(err)
		}
	}
	return o, p, socket, x
}

// TestSlowReaderIsNotStalled: a peer that reads one packet of many is not
// stalled, one that has read none for the whole time is.
func TestSlowReaderIsNotStalled(t *testing.T) {
	o, p, socket, x := unreadOffers(t)
	stallAfterAnHour(o, StallDisconnect)
	offer := func(what string, want error) {
		t.Helper()
		if err := p.Offer(t.Context(), x, NoWait()); !errors.Is(err, want) || p.isOver() != errors.Is(want, ErrStalled) {
			t.Fatalf("%s: got %v and over %v, want %v", what, err, p.isOver(), want)
		}
		age(p)
	}
	offer("the first that has to wait", ErrNoCredit)
	ok(unix.Read(socket, make([]byte, maxPacket)))(t)
	offer("after the peer has read one packet", ErrNoCredit)
	offer("after it has read no more", ErrStalled)
	unix.Shutdown(socket, unix.SHUT_RDWR)
}

// TestQueueThatShrinks: packets that leave the queue show that the peer reads,
// also while the socket is as full as before.
func TestQueueThatShrinks(t *testing.T) {
	o, p, socket, x, offers := deafPeer(t)
	for range 40 {
		p.reply(header{kind: kindMapped}, func(b []byte) []byte { return le.AppendUint64(b, 1) })
	}
	stallAfterAnHour(o, StallDrop)
	if err := p.Offer(t.Context(), x, NoWait()); !errors.Is(err, ErrNoCredit) {
		t.Fatalf("got %v, want ErrNoCredit", err)
	}
	age(p)
	packet := make([]byte, maxPacket)
	for range offers { // more than the socket had: the queue moves up
		ok(unix.Read(socket, packet))(t)
	}
	untilTrue(t, "packets leave the queue", func() bool { n, flushed := queueLen(p); return n > 0 && flushed > 0 })
	o.mu.Lock()
	p.row.seen.bytes = 0 // as if the socket were fuller than at the last look
	o.mu.Unlock()
	if err := p.Offer(t.Context(), x, NoWait()); !errors.Is(err, ErrNoCredit) || errors.Is(err, ErrStalled) {
		t.Errorf("while the queue moves: got %v, want ErrNoCredit", err)
	}
	unix.Shutdown(socket, unix.SHUT_RDWR)
}

// TestSlowAnswerAboutAnArena: a peer that owes an answer about a retired arena
// is not disconnected while it reads older messages.
func TestSlowAnswerAboutAnArena(t *testing.T) {
	o, p, socket, _ := unreadOffers(t)
	stallAfterAnHour(o, StallDisconnect)
	p.o.mu.Lock()
	for _, m := range p.maps {
		m.retired = true
		p.tellRetired(m) // behind the offers that the peer has not read
	}
	p.o.mu.Unlock()
	age(p)
	ok(unix.Read(socket, make([]byte, maxPacket)))(t)
	if o.disconnectStalled(); p.isOver() {
		t.Fatalf("after the peer has read one packet: got %v, want a connection that goes on", p.Err())
	}
	age(p)
	if o.disconnectStalled(); !p.isOver() || !errors.Is(p.Err(), ErrStalled) {
		t.Errorf("after it has read no more: got %v, want ErrStalled", p.Err())
	}
	unix.Shutdown(socket, unix.SHUT_RDWR)
}
