package share

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// manyOffers sends n leases on the first bytes of an arena.
func manyOffers(socket int, m offer, n int) error {
	for serial := 0; serial < n; {
		packet := header{kind: kindOffer, count: min(maxOffers, n-serial)}.append(nil)
		for range min(maxOffers, n-serial) {
			serial++
			m.serial = uint64(serial)
			packet = m.append(packet)
		}
		if err := unix.Send(socket, packet, unix.MSG_NOSIGNAL); err != nil {
			return err
		}
	}
	return nil
}

// TestReleasesWhileTheOwnerIsStopped: a consumer that lets go of all that it
// had while the owner does not read is not to blame. The releases wait in as
// few packets as they fit into, and come when it reads again.
func TestReleasesWhileTheOwnerIsStopped(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	checkLedger(t)
	const n = 300_000
	o := ok(NewOwner(WithCredits(n, 1<<40)))(t)
	defer o.Close()
	p, socket := bareEnd(t, o)
	if !announceTo(t, socket, 7, foreign(t, "stopped", 4096)) {
		t.Fatal("the arena was refused")
	}
	x := build(t, o, 10)
	defer mustRelease(t, x)
	sent := make(chan error, 1)
	go func() { sent <- manyOffers(socket, offer{arena: 7, bytes: 40, dt: x.DType(), layout: x.Layout()}, n) }()
	var r Received
	for range n {
		if err := p.ReceiveInto(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, r.Tensor)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); err != nil {
		t.Fatalf("got %v, want a connection that waits for the owner", err)
	}
	p.outMu.Lock()
	packets, late := len(p.queue), int(p.unsaid.Load())
	p.outMu.Unlock()
	if late == 0 || packets > late/maxReleases+2 {
		t.Errorf("got %d packets for %d releases, want %d to a packet", packets, late, maxReleases)
	}
	seen := make([]bool, n+1)
	buf := make([]byte, maxPacket)
	for left := n; left > 0; {
		k := ok(unix.Read(socket, buf))(t)
		if k == 0 || kind(buf[0]) != kindRelease {
			t.Fatalf("got %v, want RELEASE", buf[:min(k, 8)])
		}
		for body := buf[headBytes:k]; len(body) > 0; body = body[8:] {
			if serial := le.Uint64(body); seen[serial] {
				t.Fatalf("lease %d is released twice", serial)
			} else {
				seen[serial] = true
			}
			left--
		}
	}
	untilTrue(t, "the queue is empty", func() bool { return !p.congested() && p.unsaid.Load() == 0 })
}

// TestOffersOverUnsaidReleases: releases that the owner cannot have received
// still count, so that no peer can let them grow without end.
func TestOffersOverUnsaidReleases(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o := ok(NewOwner(WithCredits(5000, 1<<40)))(t)
	defer o.Close()
	p, socket := bareEnd(t, o)
	if !announceTo(t, socket, 7, foreign(t, "deaf", 4096)) {
		t.Fatal("the arena was refused")
	}
	x := build(t, o, 10)
	defer mustRelease(t, x)
	go manyOffers(socket, offer{arena: 7, bytes: 40, dt: x.DType(), layout: x.Layout()}, 100_000)
	for got := 0; ; got++ {
		r, err := p.Receive(t.Context())
		if err != nil {
			if late := p.unsaid.Load(); late > 5000 || got == 100_000 {
				t.Errorf("got %d offers and %d releases that wait, want at most 5000", got, late)
			}
			break
		}
		mustRelease(t, r.Tensor)
	}
	unix.Shutdown(socket, unix.SHUT_RDWR)
}

// TestOfferOverAReleaseThatIsBeingSent: the owner uses a credit as soon as it
// has read the release, which may be before this end knows that the packet has
// gone.
func TestOfferOverAReleaseThatIsBeingSent(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	checkLedger(t)
	const n = 2000
	o := ok(NewOwner(WithCredits(n, 1<<40)))(t)
	defer o.Close()
	p, socket := bareEnd(t, o)
	if !announceTo(t, socket, 7, foreign(t, "quick", 4096)) {
		t.Fatal("the arena was refused")
	}
	if err := p.s.raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 1) }); err != nil {
		t.Fatal(err)
	}
	x := build(t, o, 10)
	defer mustRelease(t, x)
	m := offer{arena: 7, bytes: 40, dt: x.DType(), layout: x.Layout()}
	sent := make(chan error, 1)
	go func() { sent <- manyOffers(socket, m, n) }()
	var r Received
	for range n {
		if err := p.ReceiveInto(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, r.Tensor)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	late := 0
	untilTrue(t, "the first packet is being sent", func() bool {
		p.outMu.Lock()
		defer p.outMu.Unlock()
		return len(p.queue) > 1 && p.queue[0].going
	})
	p.outMu.Lock() // so that nothing is noted of what goes from here on
	for _, q := range p.queue[1:] {
		late += int(le.Uint16(q.packet[2:]))
	}
	held, err := useCredit(p, socket, m, n-late)
	p.outMu.Unlock()
	if err != nil {
		t.Errorf("an offer for each release that was read: %v", err)
	}
	for _, r := range held {
		mustRelease(t, r.Tensor)
	}
	unix.Shutdown(socket, unix.SHUT_RDWR)
}

// useCredit reads n releases, makes as many offers, and returns what arrives of
// them.
func useCredit(p *Peer, socket int, m offer, n int) (held []*Received, err error) {
	buf := make([]byte, maxPacket)
	for heard := 0; heard < n; {
		k, err := unix.Read(socket, buf)
		if err != nil || k == 0 || kind(buf[0]) != kindRelease {
			return nil, fmt.Errorf("got %d bytes and %w, want RELEASE", k, err)
		}
		heard += (k - headBytes) / 8
	}
	if err := manyOffers(socket, m, n); err != nil {
		return nil, err
	}
	for range n {
		r, err := p.Receive(context.Background())
		if err != nil {
			return held, err
		}
		held = append(held, r)
	}
	return held, nil
}
