package share_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// script writes packets the way in which FuzzPeer reads them: a length of 16
// bits, whose highest one says that an arena's descriptor comes along, then the
// packet.
func script(packets ...[]byte) (b []byte) {
	for _, p := range packets {
		n := uint16(len(p))
		if len(p) > 0 && p[0] == mArena {
			n |= 1 << 15
		}
		b = append(binary.LittleEndian.AppendUint16(b, n), p...)
	}
	return b
}

func nextPacket(script []byte) (packet []byte, withArena bool, rest []byte) {
	n := binary.LittleEndian.Uint16(script)
	script = script[2:]
	packet = script[:min(int(n&^(1<<15)), len(script))]
	return packet, n&(1<<15) != 0, script[len(packet):]
}

// fuzzTarget is an owner that lives as long as the fuzzing: a later peer finds
// the damage of a bad one.
type fuzzTarget struct {
	o     *share.Owner
	arena *osmem.Shared
}

func newFuzzTarget(f *testing.F) *fuzzTarget {
	o, err := share.NewOwner(share.WithCredits(20, 1<<20))
	if err != nil {
		f.Fatal(err)
	}
	s, err := osmem.NewShared("fuzz", 8192)
	if err != nil {
		f.Fatal(err)
	}
	x, err := tensor.Make(o, dtype.U8, shape.MustOf(1000))
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(o.Publish("x", x), x.Release()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = o.Close()
		_ = s.Close()
	})
	return &fuzzTarget{o, s}
}

// FuzzPeer sends packets to a live peer, after a good beginning: an arena is
// mapped, in some cases a tensor is leased or a goroutine receives. With any
// packets, tensors that arrive can be read, and at the end nothing of the
// connection is left.
func FuzzPeer(f *testing.F) {
	good := tensorAt(7, arenaID, 64, 100)
	f.Add(script(message(mOffer, 2, 0, good, set(good, 0, 8)), message(mRetire, 0, 0, arenaID)))
	f.Add(script(message(mOffer, 1, 0, inlineTensor([]byte("inline"))), message(mRelease, 2, 0, 1, 1)))
	f.Add(script(message(mTicket, 0, 1, 1), message(mClaim, 0, 2, make([]byte, 16)), message(mCancel, 0, 0, make([]byte, 16))))
	f.Add(script(message(mGet, 0, 1, "x"), message(mList, 0, 2), message(mDrop, 0, 3, "x")))
	f.Add(script(arenaNote(2, 8192), message(mOffer, 1, 0, set(good, 8, 2)), message(mRetire, 0, 0, 2), message(mEnd, 0, 0)))
	f.Add(script(message(mText, 0, 1), message(mNo, 0, 1, uint32(1)), message(mTicketed, 0, 1, make([]byte, 16))))
	f.Add(script(message(mOffer, 1, 0, set(good, 36, byte(2), byte(32), uint16(1), byte(2)), 0)))
	f.Add(script([]byte{}, message(mMapped, 0, 0, arenaID), message(mUnmapped, 0, 0, 1), message(mRefused, 0, 0, 1, 0)))
	target := newFuzzTarget(f)
	f.Fuzz(target.play)
}

func (f *fuzzTarget) play(t *testing.T, script []byte) {
	r, p := attach(t, f.o)
	// A goroutine that waits reads for all, and the next reader takes over only
	// after a while. So most cases have none.
	if len(script)%16 == 0 {
		go readAll(p)
	}
	r.send(arenaNote(arenaID, 8192), f.arena.Fd())
	r.expect(mMapped)
	if len(script)%8 == 1 {
		r.get("x")
	}
	drained := make(chan error, 1)
	go func() {
		buf := make([]byte, 65536)
		for {
			n, _, _, _, err := unix.Recvmsg(r.fd, buf, nil, 0)
			if n > 0 && buf[0] == mArena {
				_ = r.try(message(mMapped, 0, 0, buf[8:16]))
			}
			if err == nil && n == 0 || err != nil && !errors.Is(err, unix.EINTR) {
				drained <- err
				return
			}
		}
	}()
	for len(script) >= 2 {
		var packet []byte
		var withArena bool
		packet, withArena, script = nextPacket(script)
		var fds []int
		if withArena {
			fds = append(fds, f.arena.Fd())
		}
		if !r.play(p, packet, fds) {
			break
		}
	}
	_ = unix.Shutdown(r.fd, unix.SHUT_WR)
	gone(t, "the row is dropped", func() bool {
		for _, l := range f.o.State().Leases {
			if l.Connection == p.Info().Connection {
				return false
			}
		}
		return true
	})
	<-p.Done()
	readAll(p) // what waits still comes
	_ = p.Close()
	if err := <-drained; err != nil && !errors.Is(err, unix.ECONNRESET) {
		t.Fatalf("the connection does not end: %v", err) // although neither side holds anything
	}
	r.close()
}

// play sends a packet, unless the other end has had enough.
func (r *raw) play(p *share.Peer, packet []byte, fds []int) bool {
	for {
		err := r.try(packet, fds...)
		if !errors.Is(err, unix.EAGAIN) {
			return err == nil
		}
		select {
		case <-p.Done(): // a connection that is over is not read from any more
			return false
		case <-time.After(10 * time.Microsecond):
		}
	}
}

// readAll receives until the end and reads every byte.
func readAll(p *share.Peer) {
	sum := byte(0)
	for {
		r, err := p.Receive(context.Background())
		if err != nil {
			return
		}
		data, _ := r.Tensor.UnsafeBytes()
		for _, b := range data {
			sum += b
		}
		if r.Tensor.Release() != nil {
			panic("BUG: a tensor that was received cannot be released")
		}
	}
}

// gone is eventually for a target that runs thousands of times a second.
func gone(t *testing.T, what string, holds func() bool) {
	for start := time.Now(); !holds(); time.Sleep(20 * time.Microsecond) {
		if time.Since(start) > timeLimit {
			t.Fatalf("not so after %v: %s", timeLimit, what)
		}
	}
}
