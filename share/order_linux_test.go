package share

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// The tests of this file put steps of several goroutines or processes into the
// orders in which they are most likely to be wrong.

// bareEnd returns a peer and the socket at its other end, which the test drives
// by hand after the handshake.
func bareEnd(t *testing.T, o *Owner) (*Peer, int) {
	t.Helper()
	ours, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd := ok(unix.Dup(int(theirs.Fd())))(t)
	theirs.Close()
	t.Cleanup(func() { unix.Close(fd) })
	greeting := hello{version: version, maxLeases: 1 << 20, maxBytes: 1 << 40}
	if err := unix.Send(fd, greeting.append(header{kind: kindHello}.append(nil)), 0); err != nil {
		t.Fatal(err)
	}
	p := ok(o.Attach(t.Context(), ours))(t)
	buf := make([]byte, maxPacket)
	if n := ok(unix.Read(fd, buf))(t); n == 0 || kind(buf[0]) != kindHello {
		t.Fatalf("got %v, want HELLO", buf[:n])
	}
	return p, fd
}

// TestPacketsGoOnce: packets that find the queue just emptied and the socket
// still full are sent once like all others.
func TestPacketsGoOnce(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	p, fd := bareEnd(t, o)
	if err := p.s.raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 1) }); err != nil { // full at once
		t.Fatal(err)
	}
	const writers, each = 8, 400
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for i := range each {
				for p.congested() { // so that the queue is short, and empties often
					runtime.Gosched()
				}
				p.reply(header{kind: kindCancel}, func(b []byte) []byte {
					return le.AppendUint64(le.AppendUint64(b, uint64(w)), uint64(i))
				})
			}
		})
	}
	seen := map[[2]uint64]int{}
	buf := make([]byte, maxPacket)
	for range writers * each {
		n := ok(unix.Read(fd, buf))(t)
		if n != headBytes+ticketBytes {
			t.Fatalf("got a packet of %d bytes, want %d", n, headBytes+ticketBytes)
		}
		seen[[2]uint64{binary.LittleEndian.Uint64(buf[8:]), binary.LittleEndian.Uint64(buf[16:])}]++
	}
	work.Wait()
	if len(seen) != writers*each {
		t.Errorf("got %d different packets of %d", len(seen), writers*each)
	}
}

// TestNothingEndsTheWaitForTheEnd: a wait for the end of a broken peer's side
// does not end by an interruption that was meant for its last receive: the row
// would be dropped while the peer reads.
func TestNothingEndsTheWaitForTheEnd(t *testing.T) {
	skipElsewhere(t)
	memorytest.Check(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	p, fd := bareEnd(t, o)
	over := make(chan struct{})
	go func() {
		p.s.awaitEnd()
		close(over)
	}()
	for range 20 {
		p.s.interrupt()
		time.Sleep(time.Millisecond)
	}
	if ended.Closed(over) {
		t.Error("an interruption passed for the end of file")
	}
	unix.Shutdown(fd, unix.SHUT_WR)
	<-over
}

// TestOffersBehindEnd: an offer after both sides have sent END has no receiver:
// the owner may have been told that nothing is held.
func TestOffersBehindEnd(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	p, fd := bareEnd(t, o)
	x := ok(tensor.Of([]uint8{1, 2, 3}, 3))(t)
	defer x.Release()
	m := offer{dt: x.DType(), layout: x.Layout(), bytes: 3}
	behind := append(m.append(header{kind: kindOffer, count: 1}.append(nil)), 1, 2, 3)
	for _, packet := range [][]byte{header{kind: kindEnd}.append(nil), behind} {
		if err := unix.Send(fd, packet, 0); err != nil {
			t.Fatal(err)
		}
	}
	unix.Shutdown(fd, unix.SHUT_WR)
	untilTrue(t, "the end is read", func() bool { // with it all that came before
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.ended
	})
	if r, err := p.Receive(t.Context()); err != io.EOF {
		t.Errorf("got %v and %v, want io.EOF", r, err)
	}
}

// TestSilentEnd: an end that says nothing is named, with how long it took.
func TestSilentEnd(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	ours, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	_, err = ok(NewOwner())(t).connect(t.Context(), ok(newSocket(ours))(t), 10*time.Millisecond, false)
	want := fmt.Sprintf("process %d said nothing for 10ms", os.Getpid())
	if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
