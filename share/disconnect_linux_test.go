package share

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

func init() { roles["deserter"] = deserterRole }

// deserterRole is a consumer that receives one tensor and then declares that it
// holds nothing, although it continues to read. It prints the first byte for
// each line on its input.
func deserterRole() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(os.Getenv("TENURE_SHARE_DIR"), "front.sock")}); err != nil {
		return err
	}
	greeting := hello{version: version, maxLeases: 10, maxBytes: 1 << 30}
	if err := unix.Send(fd, greeting.append(header{kind: kindHello}.append(nil)), 0); err != nil {
		return err
	}
	var data []byte
	packet, oob := make([]byte, maxPacket), make([]byte, 64)
	for kind(packet[0]) != kindOffer {
		n, oobn, _, _, err := unix.Recvmsg(fd, packet, oob, 0)
		if err != nil || n == 0 {
			return fmt.Errorf("read: %d bytes, %w", n, err)
		}
		if kind(packet[0]) != kindArena {
			continue
		}
		note, _ := parseArena(packet[headBytes:n])
		arena, _ := oneDescriptor(oob[:oobn])
		if data, err = unix.Mmap(arena, 0, note.size, unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return err
		}
		if err := unix.Send(fd, le.AppendUint64(header{kind: kindMapped}.append(nil), note.id), 0); err != nil {
			return err
		}
	}
	m, err := parseOffer(packet[headBytes:], "")
	if err != nil {
		return err
	}
	say("has %d", data[m.offset])
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "desert" {
			unix.Shutdown(fd, unix.SHUT_WR)
		}
		say("has %d", data[m.offset])
	}
	return nil
}

// bytesOf makes a tensor of n times v in the owner's arenas.
func bytesOf(t *testing.T, o *Owner, n int, v uint8) *tensor.Tensor {
	t.Helper()
	plain := ok(tensor.Of(make([]uint8, n), n))(t)
	defer mustRelease(t, plain)
	x := ok(plain.CopyTo(o))(t)
	w := ok(tensor.Write[uint8](x))(t)
	for i := range w.Data {
		w.Data[i] = v
	}
	w.Release()
	return x
}

// TestQuarantineLastsUntilDeath: bytes that a disconnected process has read are
// not written while it lives, even if it sends messages.
func TestQuarantineLastsUntilDeath(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	dir := filepath.Join(t.TempDir(), "s")
	l := ok(o.Listen("front", InDir(dir)))(t)
	child := startRole(t, "deserter", dir, "deserter")
	p := ok(l.Accept(t.Context()))(t)
	x := bytesOf(t, o, 100_000, 7)
	if err := p.Offer(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, x)
	child.wants(t, "has 7")
	p.Disconnect()
	if !p.isOver() || !errors.Is(p.Err(), ErrClosed) {
		t.Errorf("got %v, want a connection that is over", p.Err())
	}
	child.order(t, "desert")
	child.wants(t, "has 7")
	untilTrue(t, "its side is over", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.ended
	})
	for range 50 { // the next tensor in the bytes would write them
		mustRelease(t, bytesOf(t, o, 100_000, 9))
	}
	child.order(t, "look")
	child.wants(t, "has 7")
	out := o.Outstanding()
	if len(out) != 1 || out[0].State != "quarantined" || out[0].PID != child.cmd.Process.Pid {
		t.Errorf("got %+v, want one lease in quarantine", out)
	}
	child.kill()
	untilTrue(t, "its death ends the quarantine", func() bool { return len(o.Outstanding()) == 0 && o.State().Bytes.Used == 0 })
	if err := o.checkTable(); err != nil {
		t.Error(err)
	}
}

// setRule applies WithStall to an existing owner, so that earlier steps need
// not be quick.
func setRule(t *testing.T, o *Owner, do Stall) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := WithStall(time.Millisecond, do)(o); err != nil {
		t.Fatal(err)
	}
}

// silentPeer returns a peer that has mapped an arena, released a tensor in it,
// and does not answer any more.
func silentPeer(t *testing.T, o *Owner, bytes int) (*Peer, int) {
	t.Helper()
	p, socket := bareEnd(t, o)
	offered := make(chan error, 1)
	x := bytesOf(t, o, bytes, 1)
	go func() { offered <- p.Offer(context.Background(), x) }()
	takeOffer(t, socket)
	if err := <-offered; err != nil {
		t.Fatal(err)
	}
	mustRelease(t, x)
	if err := unix.Send(socket, le.AppendUint64(header{kind: kindRelease, count: 1}.append(nil), p.row.serial), 0); err != nil {
		t.Fatal(err)
	}
	untilTrue(t, "nothing is held", func() bool { return o.State().Bytes.Used == 0 })
	return p, socket
}

// takeOffer answers ARENA and returns at the first OFFER.
func takeOffer(t *testing.T, socket int) {
	t.Helper()
	packet, oob := make([]byte, maxPacket), make([]byte, 64)
	for {
		n, oobn, _, _, err := unix.Recvmsg(socket, packet, oob, unix.MSG_CMSG_CLOEXEC)
		if err != nil || n == 0 {
			t.Fatalf("got %d bytes and %v, want OFFER", n, err)
		}
		switch kind(packet[0]) {
		case kindArena:
			closeDescriptor(ok(oneDescriptor(oob[:oobn]))(t))
			if err := unix.Send(socket, append(header{kind: kindMapped}.append(nil), packet[headBytes:headBytes+8]...), 0); err != nil {
				t.Fatal(err)
			}
		case kindOffer:
			return
		}
	}
}

// TestDisconnectMakesRoom: memory without leases is not lost to a peer that
// does not answer.
func TestDisconnectMakesRoom(t *testing.T) {
	for name, end := range map[string]func(p *Peer){"by call": func(p *Peer) { p.Disconnect() }, "by rule": nil} {
		t.Run(name, func(t *testing.T) {
			skipElsewhere(t)
			checkDescriptors(t)
			memorytest.Check(t)
			o := ok(NewOwner(WithLimit(8 << 20)))(t)
			defer o.Close()
			p, socket := silentPeer(t, o, 3<<20)
			if end == nil {
				setRule(t, o, StallDisconnect)
			} else {
				if _, err := o.Alloc(6 << 20); !errors.Is(err, tensor.ErrLimit) {
					t.Errorf("before: got %v, want ErrLimit", err)
				}
				end(p)
			}
			b, err := o.Alloc(6 << 20)
			if err != nil {
				t.Fatalf("got %v, want room", err)
			}
			if s := o.State().Bytes; s.Pinned != 4<<20 || s.Arenas != 6<<20 {
				t.Errorf("got %+v, want 4 MiB that are pinned and 6 in arenas", s)
			}
			if err := o.checkTable(); err != nil {
				t.Error(err)
			}
			release(b)
			unix.Shutdown(socket, unix.SHUT_RDWR)
			untilTrue(t, "its end unpins them", func() bool { return o.State().Bytes.Pinned == 0 })
		})
	}
}

// TestQuarantineIsBounded: a process that is disconnected again and again gets
// no more out of it than its own share.
func TestQuarantineIsBounded(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o := ok(NewOwner(WithLimit(16<<20), WithPeerLimit(100, 6<<20)))(t)
	defer o.Close()
	p, _ := silentPeer(t, o, 3<<20)
	p.Disconnect()
	o.Collect()
	if s := o.State().Bytes; s.Pinned != 4<<20 || s.Arenas != 0 {
		t.Errorf("the first time: got %+v, want 4 MiB that are pinned", s)
	}
	q, _ := silentPeer(t, o, 100_000) // in an arena of 4 MiB
	x := bytesOf(t, o, 3<<20, 1)
	if err := q.Offer(t.Context(), x, NoWait()); !errors.Is(err, ErrNoCredit) {
		t.Errorf("another connection of that process: got %v, want ErrNoCredit for more than 2 MiB", err)
	}
	mustRelease(t, x)
	q.Disconnect()
	o.Collect()
	if s := o.State().Bytes; s.Pinned > 6<<20 {
		t.Errorf("the second time: got %+v, want at most 6 MiB that are pinned", s)
	}
	if err := o.checkTable(); err != nil {
		t.Error(err)
	}
}

// TestRetiredArenaIsTakenBack: memory that a silent peer keeps there serves the
// next tensor, without a wait for that peer.
func TestRetiredArenaIsTakenBack(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o := ok(NewOwner(WithLimit(36 << 20)))(t)
	defer o.Close()
	p, socket := silentPeer(t, o, 36<<20)
	if n := o.Collect(); n != 36<<20 {
		t.Fatalf("collect: got %d bytes", n)
	}
	for range 3 {
		x := bytesOf(t, o, 1<<20, 3)
		offered := make(chan error, 1)
		go func() { offered <- p.Offer(context.Background(), x) }()
		takeOffer(t, socket) // under another number, behind RETIRE
		if err := <-offered; err != nil {
			t.Error(err)
		}
		mustRelease(t, x)
		if err := o.checkTable(); err != nil {
			t.Error(err)
		}
	}
	unix.Shutdown(socket, unix.SHUT_RDWR)
}

// TestArenasForADeafPeer: a peer that does not read is told of no more arenas.
// Each would be a descriptor of this process.
func TestArenasForADeafPeer(t *testing.T) {
	o, p, socket, _, offers := deafPeer(t)
	waiting := func() (packets, maps int) {
		o.mu.Lock()
		defer o.mu.Unlock()
		p.outMu.Lock()
		defer p.outMu.Unlock()
		return len(p.queue), len(p.maps)
	}
	packets, maps := waiting()
	var arenas []*tensor.Tensor
	for range 3 { // an arena each
		y := bytesOf(t, o, largeBytes, 1)
		arenas = append(arenas, y)
		if err := p.Offer(t.Context(), y, NoWait()); !errors.Is(err, ErrNoCredit) {
			t.Errorf("got %v, want ErrNoCredit", err)
		}
	}
	if n, m := waiting(); n != packets || m != maps {
		t.Errorf("got %d packets that wait and %d arenas, want %d and %d as before", n, m, packets, maps)
	}
	offered := make(chan error, 1)
	go func() { offered <- p.Offer(context.Background(), arenas[0]) }()
	for range offers + 1 { // and when it reads, it gets what waited, then the next arena
		takeOffer(t, socket)
	}
	if err := <-offered; err != nil {
		t.Error(err)
	}
	mustRelease(t, arenas...)
	unix.Shutdown(socket, unix.SHUT_RDWR)
}

// deafPeer returns an owner, a peer of it that does not read, the peer's
// socket, a tensor of the owner's that was offered until an offer had to wait
// in the queue, and how often it was offered. The test ends all of them.
func deafPeer(t *testing.T) (o *Owner, p *Peer, socket int, x *tensor.Tensor, offers int) {
	t.Helper()
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o = ok(NewOwner())(t)
	t.Cleanup(func() { o.Close() })
	p, socket = silentPeer(t, o, 100_000)
	x = bytesOf(t, o, 100_000, 5)
	t.Cleanup(func() { mustRelease(t, x) })
	return o, p, socket, x, fillSocket(t, p, x)
}

// fillSocket offers x until an offer waits in the queue, and returns how many
// offers were made.
func fillSocket(t *testing.T, p *Peer, x *tensor.Tensor) (offers int) {
	t.Helper()
	if err := p.s.raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 1) }); err != nil {
		t.Fatal(err)
	}
	for {
		err := p.Offer(t.Context(), x, NoWait())
		if errors.Is(err, ErrNoCredit) {
			return offers
		}
		if err != nil {
			t.Fatal(err)
		}
		offers++
	}
}

// offersIn reads what has arrived and counts the offers.
func offersIn(t *testing.T, socket int) (n int) {
	t.Helper()
	packet := make([]byte, maxPacket)
	for {
		k, err := unix.Read(socket, packet)
		if err != nil || k == 0 {
			return n
		}
		if kind(packet[0]) == kindOffer {
			n++
		} else if kind(packet[0]) == kindEnd {
			return n
		}
	}
}

// TestDisconnectTakesBackWhatWasNotSent: an offer that has gone stays, whether
// it was read or not; one that waits does not.
func TestDisconnectTakesBackWhatWasNotSent(t *testing.T) {
	o, p, socket, _, offers := deafPeer(t)
	p.Disconnect()
	untilTrue(t, "what was not sent is taken back", func() bool { return len(o.Outstanding()) < offers })
	sent := len(o.Outstanding())
	if got := offersIn(t, socket); got != sent || sent != offers-1 {
		t.Errorf("got %d offers of %d at the peer and %d leases, want %d of both", got, offers, sent, offers-1)
	}
	if n := len(o.Outstanding()); n != sent {
		t.Errorf("got %d leases after the peer has read them, want %d as before", n, sent)
	}
	unix.Shutdown(socket, unix.SHUT_RDWR)
	untilTrue(t, "the end ends them", func() bool { return len(o.Outstanding()) == 0 })
}

// TestStallDrops: a peer that does not read gets no more tensors until it
// reads, and no offer waits for it.
func TestStallDrops(t *testing.T) {
	o, p, socket, x, offers := deafPeer(t)
	setRule(t, o, StallDrop)
	if err := p.Offer(t.Context(), x); !errors.Is(err, ErrStalled) {
		t.Errorf("got %v, want ErrStalled", err)
	}
	untilTrue(t, "what was not sent is taken back", func() bool { return len(o.Outstanding()) == offers-1 })
	if p.isOver() {
		t.Fatalf("got %v, want a connection that waits", p.Err())
	}
	packet := make([]byte, maxPacket)
	for range offers - 1 {
		ok(unix.Read(socket, packet))(t)
	}
	untilTrue(t, "offers go again when it reads", func() bool { return p.Offer(t.Context(), x) == nil })
	unix.Shutdown(socket, unix.SHUT_RDWR)
}

// TestStallDisconnects: with StallDisconnect a peer that holds all its credits
// loses its connection.
func TestStallDisconnects(t *testing.T) {
	a, b := twoEnds(t, WithCredits(2, 1<<20))
	x := build(t, a.o, 5000)
	for range 2 {
		if err := a.Offer(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	setRule(t, a.o, StallDisconnect)
	if err := a.Offer(t.Context(), x); !errors.Is(err, ErrStalled) || !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrStalled and ErrClosed", err)
	}
	mustRelease(t, x)
	if !a.isOver() {
		t.Error("got a connection that goes on, want it over")
	}
	r := receive(t, b) // tensors that were sent stay valid
	if got := sum(t, r.Tensor); got != 12497500 {
		t.Errorf("got the sum %v, want 12497500", got)
	}
	mustRelease(t, r.Tensor, receive(t, b).Tensor)
	untilTrue(t, "everything is free", func() bool { return a.o.State().Bytes.Used == 0 })
}

// TestPeerLimit: the owner's bound holds for all connections of a process
// together, with any credits that they announce.
func TestPeerLimit(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	oa, ob := ok(NewOwner(WithPeerLimit(3, 1<<20)))(t), ok(NewOwner())(t)
	a1, b1 := connected(t, oa, ob)
	a2, b2 := connected(t, oa, ob)
	x := build(t, oa, 5000)
	for _, p := range []*Peer{a1, a2, a1} {
		if err := p.Offer(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*Peer{a1, a2} {
		if err := p.Offer(t.Context(), x, NoWait()); !errors.Is(err, ErrNoCredit) {
			t.Errorf("a fourth: got %v, want ErrNoCredit", err)
		}
	}
	held := receive(t, b1)
	a1.Disconnect()
	if err := a2.Offer(t.Context(), x, NoWait()); !errors.Is(err, ErrNoCredit) {
		t.Errorf("with two in quarantine: got %v, want ErrNoCredit", err)
	}
	mustRelease(t, held.Tensor, receive(t, b1).Tensor)
	if err := a2.Offer(t.Context(), x); err != nil {
		t.Errorf("when they are released: %v", err)
	}
	for range 2 {
		mustRelease(t, receive(t, b2).Tensor)
	}
	big := build(t, oa, 1<<20/4+1)
	if err := a2.Offer(t.Context(), big); !errors.Is(err, ErrNoCredit) {
		t.Errorf("one that is over the bound alone: got %v, want ErrNoCredit at once", err)
	}
	mustRelease(t, x, big)
}

// TestNoWaitDoesNotWait: also not for a peer that has not mapped the arena;
// when it has, the same offer goes.
func TestNoWaitDoesNotWait(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	p, socket := bareEnd(t, o)
	x := bytesOf(t, o, 100_000, 5)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range 2 {
		if err := p.Offer(ctx, x, NoWait()); !errors.Is(err, ErrNoCredit) {
			t.Fatalf("to a peer that has not answered: got %v, want ErrNoCredit", err)
		}
		if err := o.Offer(ctx, x, []*Peer{p, p}, NoWait()); !errors.Is(err, ErrNoCredit) {
			t.Fatalf("to several: got %v, want ErrNoCredit", err)
		}
	}
	if n := len(o.Outstanding()); n != 0 {
		t.Errorf("got %d leases, want none", n)
	}
	packet := make([]byte, maxPacket)
	ok(unix.Read(socket, packet))(t)
	if err := unix.Send(socket, append(header{kind: kindMapped}.append(nil), packet[headBytes:headBytes+8]...), 0); err != nil {
		t.Fatal(err)
	}
	untilTrue(t, "it has answered, and the offer goes", func() bool { return p.Offer(ctx, x, NoWait()) == nil })
	mustRelease(t, x)
	unix.Shutdown(socket, unix.SHUT_RDWR)
}

// TestNothingWaitsBetweenOffers: a peer that holds all that it may for a long
// time is not stalled because an offer failed in the beginning and another one
// fails now.
func TestNothingWaitsBetweenOffers(t *testing.T) {
	a, b := twoEnds(t, WithCredits(1, 1<<20))
	x := build(t, a.o, 5000)
	defer mustRelease(t, x)
	if err := a.Offer(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	defer mustRelease(t, receive(t, b).Tensor)
	a.o.mu.Lock()
	a.o.stall, a.o.stallAfter = StallDisconnect, time.Hour
	a.o.mu.Unlock()
	offer := func(ctx context.Context, want error, opts ...OfferOption) {
		t.Helper()
		if err := a.Offer(ctx, x, opts...); !errors.Is(err, want) || a.isOver() {
			t.Fatalf("got %v, want %v and a connection that goes on", err, want)
		}
		a.o.mu.Lock() // it was long ago
		a.row.stuck, a.row.tried = a.row.stuck.Add(-2*time.Hour), a.row.tried.Add(-2*time.Hour)
		a.o.mu.Unlock()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	offer(t.Context(), ErrNoCredit, NoWait())
	offer(ended, context.Canceled)
	offer(t.Context(), ErrNoCredit, NoWait())
	a.o.mu.Lock() // but not if one has waited or failed all the time
	a.row.tried = time.Now()
	a.o.mu.Unlock()
	if err := a.Offer(t.Context(), x, NoWait()); !errors.Is(err, ErrStalled) || !a.isOver() {
		t.Errorf("got %v, want ErrStalled", err)
	}
}
