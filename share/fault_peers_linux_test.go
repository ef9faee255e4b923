package share_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/share"
)

const arenaID = 0xa5a5

// breach is a way to break the protocol after a proper beginning. do may use an
// arena of 8192 bytes with the id arenaID, which is mapped at the other end,
// and leases on "steady" with the serials 1 and 2.
type breach struct {
	name string
	do   func(r *raw)
}

func sends(packet []byte) func(*raw) { return func(r *raw) { r.send(packet) } }

// offers sends one tensor.
func offers(body []byte) func(*raw) { return sends(message(mOffer, 1, 0, body)) }

func breaches(t *testing.T) []breach {
	good := tensorAt(7, arenaID, 64, 100)
	strange := shared(t, 8192)
	return []breach{
		{"kind 0", sends(message(0, 0, 0))},
		{"kind 19", sends(message(19, 0, 0))},
		{"kind 255", sends(message(255, 0, 0, make([]byte, 100)))},
		{"byte 1 set", sends(set(message(mEnd, 0, 0), 1, byte(1)))},
		{"no packet at all", sends([]byte{})},
		{"no packet but a descriptor", func(r *raw) { r.send([]byte{}, strange.Fd()) }},
		{"a header cut short", sends([]byte{mEnd, 0, 0})},
		{"more than the longest packet", sends(message(mText, 0, 5, make([]byte, 70000)))},
		{"a second HELLO", sends(hello(1, 1))},
		{"END with a body", sends(message(mEnd, 0, 0, "x"))},
		{"END with a count", sends(message(mEnd, 1, 0))},
		{"RELEASE of nothing", sends(message(mRelease, 0, 0))},
		{"RELEASE of too many", sends(message(mRelease, 501, 0, make([]byte, 501*8)))},
		{"RELEASE cut short", sends(message(mRelease, 2, 0, 1))},
		{"RELEASE with a request", sends(message(mRelease, 1, 3, 1))},
		{"RELEASE of serial 0", sends(message(mRelease, 1, 0, 0))},
		{"RELEASE of a serial to come", sends(message(mRelease, 1, 0, 3))},
		{"RELEASE of a good serial and a wild one", sends(message(mRelease, 2, 0, 1, uint64(1)<<63))},
		{"TICKET for a serial to come", sends(message(mTicket, 0, 1, 99))},
		{"TICKET without a request", sends(message(mTicket, 0, 0, 1))},
		{"GET without a request", sends(message(mGet, 0, 0, "steady"))},
		{"GET of no name", sends(message(mGet, 0, 1))},
		{"GET of a long name", sends(message(mGet, 0, 1, strings.Repeat("x", 256)))},
		{"GET of no UTF-8", sends(message(mGet, 0, 1, "\xff\xfe"))},
		{"CLAIM cut short", sends(message(mClaim, 0, 1, make([]byte, 15)))},
		{"MAPPED without ARENA", sends(message(mMapped, 0, 0, 12345))},
		{"REFUSED without ARENA", sends(message(mRefused, 0, 0, 12345, 0))},
		{"UNMAPPED of an unknown arena", sends(message(mUnmapped, 0, 0, 12345))},
		{"RETIRE of an unknown arena", sends(message(mRetire, 0, 0, 12345))},
		{"TICKETED to no question", sends(message(mTicketed, 0, 77, make([]byte, 16)))},
		{"TEXT to no question", sends(message(mText, 0, 77, "hm"))},
		{"NO to no question", sends(message(mNo, 0, 77, uint32(1)))},
		{"OFFER to no question", sends(message(mOffer, 1, 77, good))},
		{"ARENA without a descriptor", sends(arenaNote(1, 4096))},
		{"ARENA with two descriptors", func(r *raw) { r.send(arenaNote(1, 8192), strange.Fd(), strange.Fd()) }},
		{"ARENA with 200 descriptors", func(r *raw) {
			var fds []int
			for range 200 {
				fds = append(fds, strange.Fd())
			}
			r.send(arenaNote(1, 8192), fds...)
		}},
		{"ARENA twice", func(r *raw) { r.send(arenaNote(arenaID, 8192), strange.Fd()) }},
		{"ARENA with id 0", func(r *raw) { r.send(arenaNote(0, 8192), strange.Fd()) }},
		{"ARENA of no bytes", func(r *raw) { r.send(arenaNote(1, 0), strange.Fd()) }},
		{"ARENA of odd bytes", func(r *raw) { r.send(arenaNote(1, 8191), strange.Fd()) }},
		{"ARENA of negative bytes", func(r *raw) { r.send(arenaNote(1, -8192), strange.Fd()) }},
		{"ARENA with bytes set", func(r *raw) { r.send(set(arenaNote(1, 8192), 8+20, byte(1)), strange.Fd()) }},
		{"END with a descriptor", func(r *raw) { r.send(message(mEnd, 0, 0), strange.Fd()) }},
		{"an OFFER of none", sends(message(mOffer, 0, 0))},
		{"an OFFER of 201", sends(message(mOffer, 201, 0, make([]byte, 201*256)))},
		{"an offer cut short", offers(good[:255])},
		{"an offer and a byte", offers(pack(good, byte(1)))},
		{"serial 0", offers(set(good, 0, 0))},
		{"an unknown arena", offers(set(good, 8, 999))},
		{"arena 0", offers(set(good, 8, 0))},
		{"an odd offset", offers(set(good, 16, 63))},
		{"an offset behind the arena", offers(set(good, 16, 8192))},
		{"a block over the end", offers(set(good, 24, 8192))},
		{"a block of 2^63", offers(set(good, 24, uint64(1)<<63))},
		{"an offset that wraps", offers(set(good, 16, -64, 128))},
		{"an unknown type", offers(set(good, 36, byte(99)))},
		{"a type of 7 bits", offers(set(good, 37, byte(7)))},
		{"four lanes", offers(set(good, 38, uint16(4)))},
		{"rank 9", offers(set(good, 40, byte(9)))},
		{"a device", offers(set(good, 41, byte(2)))},
		{"device number 1", offers(set(good, 42, uint16(1)))},
		{"unknown flags", offers(set(good, 44, uint32(2)))},
		{"first behind the block", offers(set(good, 48, 100))},
		{"first at 2^63", offers(set(good, 48, uint64(1)<<63))},
		{"events", offers(set(good, 56, 1))},
		{"more elements than bytes", offers(set(good, 64, 101))},
		{"negative size", offers(set(good, 64, -1))},
		{"sizes that overflow", offers(set(set(good, 40, byte(3)), 64, 1<<31, 1<<31, 1<<31))},
		{"a size behind the rank", offers(set(good, 72, 1))},
		{"a stride behind the rank", offers(set(good, 136, 1))},
		{"a stride that leaves the block", offers(set(good, 128, 2))},
		{"a negative stride that leaves the block", offers(set(good, 128, -1))},
		{"a stride that wraps", offers(set(good, 128, uint64(1)<<63))},
		{"a wider type than the block", offers(set(good, 36, byte(1), byte(64)))},
		{"a label of no UTF-8", offers(set(good, 192, "\xff"))},
		{"a label with a hole", offers(set(good, 192, "a\x00b"))},
		{"the last bytes set", offers(set(good, 248, 1))},
		{"inline with a serial", offers(set(inlineTensor([]byte("abc")), 0, 5))},
		{"inline in an arena", offers(set(inlineTensor([]byte("abc")), 8, arenaID))},
		{"inline at an offset", offers(set(inlineTensor([]byte("abc")), 16, 64))},
		{"inline, data missing", offers(inlineTensor([]byte("abc"))[:258])},
		{"inline, too much data", offers(pack(inlineTensor([]byte("abc")), byte(1)))},
		{"inline among others", sends(message(mOffer, 2, 0, good, inlineTensor([]byte("abc"))))},
		{"inline with strides", offers(set(set(inlineTensor([]byte("abc")), 64, 2), 128, 2))},
	}
}

// TestBreachesCostTheirConnectionOnly breaks each rule of the protocol once.
func TestBreachesCostTheirConnectionOnly(t *testing.T) {
	h := newHost(t)
	list := breaches(t)
	arena := shared(t, 8192)
	for _, b := range list {
		r, p := h.attack()
		for want := range uint64(2) {
			if got := r.get("steady"); got != want+1 {
				t.Fatalf("lease: got serial %d, want %d", got, want+1)
			}
		}
		r.send(arenaNote(arenaID, 8192), arena.Fd())
		r.expect(mMapped)
		b.do(r)
		wantBroken(t, b.name, p)
		if h.leases(p) == 0 {
			// A peer that breaks the protocol is not dead, so its leases stay.
			t.Errorf("%s: its leases were dropped before the end of file", b.name)
		}
		for { // the end is reported after the messages before it
			got, _ := r.receive()
			if got == nil {
				t.Fatalf("%s: got the end of file, want END", b.name)
			}
			if got[0] == mEnd {
				break
			}
		}
		r.close()
		eventually(t, b.name+": its row is dropped", func() bool { return h.leases(p) == 0 })
		if t.Failed() {
			return
		}
	}
	h.serves()
}

// TestBreachesOfLeasesThatAreHeld: messages that are breaches only while a
// tensor is held.
func TestBreachesOfLeasesThatAreHeld(t *testing.T) {
	good := tensorAt(7, arenaID, 64, 100)
	for _, b := range []breach{
		{"the same serial twice", sends(message(mOffer, 2, 0, good, good))},
		{"more bytes than the credit", sends(message(mOffer, 2, 0, set(good, 24, 5000), set(set(good, 0, 8), 24, 5000)))},
		{"more tensors than the credit", sends(message(mOffer, 4, 0, good, set(good, 0, 8), set(good, 0, 9), set(good, 0, 10)))},
	} {
		o, err := share.NewOwner(share.WithCredits(3, 9000))
		if err != nil {
			t.Fatal(err)
		}
		r, p := attach(t, o)
		arena := shared(t, 8192)
		copy(arena.Bytes()[64:], "seven")
		r.send(arenaNote(arenaID, 8192), arena.Fd())
		r.expect(mMapped)
		b.do(r)
		wantBroken(t, b.name, p)
		// Tensors from before the breach are valid.
		got, err := p.Receive(within(t))
		if err != nil {
			t.Fatalf("%s: receive what came before: %v", b.name, err)
		}
		if data, _ := got.Tensor.UnsafeBytes(); string(data[:5]) != "seven" {
			t.Errorf("%s: got %q, want the bytes in the arena", b.name, data[:5])
		}
		if err := got.Tensor.Release(); err != nil {
			t.Error(err)
		}
		closePeer(t, p)
		r.close()
	}
}

// TestHonestBytes: the messages that the breaches modify are valid without the
// modification.
func TestHonestBytes(t *testing.T) {
	h := newHost(t)
	r, p := h.attack()
	arena := shared(t, 8192)
	copy(arena.Bytes()[64:], "in the arena")
	r.send(arenaNote(arenaID, 8192), arena.Fd())
	r.expect(mMapped)
	r.send(message(mOffer, 2, 0, tensorAt(1, arenaID, 64, 12), tensorAt(2, arenaID, 128, 8064)))
	r.send(message(mOffer, 1, 0, inlineTensor([]byte("inline"))))
	seen := map[uint64]bool{}
	for len(seen) < 2 { // the host lets go of all that it gets
		body := r.expect(mRelease)
		for ; len(body) > 0; body = body[8:] {
			seen[binary.LittleEndian.Uint64(body)] = true
		}
	}
	r.send(message(mRetire, 0, 0, arenaID))
	if got := binary.LittleEndian.Uint64(r.expect(mUnmapped)); got != arenaID {
		t.Errorf("got UNMAPPED of %#x, want %#x", got, arenaID)
	}
	serial := r.get("steady")
	r.send(message(mRelease, 3, 0, serial, serial, serial))
	eventually(t, "the lease is released", func() bool { return len(h.o.State().Leases) == 0 })
	if err := p.Err(); err != nil {
		t.Errorf("got %v, want a peer that is served", err)
	}
}

// TestArenasThatAreRefused: what cannot be mapped safely is refused by its
// reason, and the connection goes on.
func TestArenasThatAreRefused(t *testing.T) {
	const size, all = 1 << 20, unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE
	h := newHost(t)
	r, p := h.attack()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pipe, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer other.Close()
	good := memfd(t, size, all, true)
	for i, c := range []struct {
		name string
		note []byte
		fd   int
		want string
	}{
		{"no seals", arenaNote(1, size), memfd(t, size, 0, true), "F_SEAL_SHRINK"},
		{"may shrink", arenaNote(2, size), memfd(t, size, all&^unix.F_SEAL_SHRINK, true), "F_SEAL_SHRINK"},
		{"may grow", arenaNote(3, size), memfd(t, size, all&^unix.F_SEAL_GROW, true), "F_SEAL_GROW"},
		{"may be written", arenaNote(4, size), memfd(t, size, all&^unix.F_SEAL_FUTURE_WRITE, true), "F_SEAL_FUTURE_WRITE"},
		{"smaller than announced", arenaNote(5, 2*size), good, "1048576 bytes"},
		{"larger than announced", arenaNote(6, size/2), good, "1048576 bytes"},
		{"not there", arenaNote(7, 1<<40), memfd(t, 1<<40, all, false), "are there"},
		{"a file", arenaNote(8, size), int(file.Fd()), "memfd"},
		{"a pipe", arenaNote(9, size), int(pipe.Fd()), "pipe"},
		{"the socket itself", arenaNote(10, size), r.fd, "socket"},
		{"of a device", set(arenaNote(11, size), 8+16, byte(3)), good, "kind 3"},
	} {
		r.send(c.note, c.fd)
		body := r.expect(mRefused)
		if id := binary.LittleEndian.Uint64(body); id != uint64(i+1) || !strings.Contains(string(body[16:]), c.want) {
			t.Errorf("%s: got arena %d refused by %q, want %d by a text with %q", c.name, id, body[16:], i+1, c.want)
		}
	}
	r.send(arenaNote(1, size), good) // an id that was refused is free again
	r.expect(mMapped)
	if p.Err() != nil {
		t.Errorf("got %v, want a peer that is served", p.Err())
	}
	r.get("steady")
	r.close()
	h.serves()
}

// TestBadBeginnings: a process that breaks the handshake does not become a
// peer.
func TestBadBeginnings(t *testing.T) {
	h := newHost(t)
	good := hello(1, 1)
	arena := shared(t, 4096)
	for _, c := range []struct {
		name string
		do   func(r *raw)
	}{
		{"says nothing and goes", func(r *raw) {}},
		{"nothing in a packet", sends([]byte{})},
		{"nothing with descriptors", func(r *raw) { r.send([]byte{}, arena.Fd(), arena.Fd()) }},
		{"another message", sends(message(mEnd, 0, 0))},
		{"GET first", sends(message(mGet, 0, 1, "steady"))},
		{"a cut HELLO", sends(good[:40])},
		{"a long HELLO", sends(pack(good, byte(0)))},
		{"other magic", sends(set(good, 8, "TNUX"))},
		{"version 0", sends(set(good, 12, uint16(0)))},
		{"bytes set", sends(set(good, 14, uint16(1)))},
		{"more bytes set", sends(set(good, 8+44, uint32(1)))},
		{"capabilities of version 1", sends(set(good, 8+56, 1))},
		{"no leases", sends(set(good, 8+40, uint32(0)))},
		{"too many leases", sends(set(good, 8+40, uint32(1<<20+1)))},
		{"no bytes", sends(set(good, 8+48, 0))},
		{"HELLO with a descriptor and another first message", func(r *raw) { r.send(message(mEnd, 0, 0), arena.Fd()) }},
	} {
		r := dialRaw(t, h.l.Path())
		c.do(r)
		if c.name != "says nothing and goes" {
			for p, _ := r.receive(); p != nil; p, _ = r.receive() { // its own HELLO, then the end of file
				if p[0] != mHello {
					t.Errorf("%s: got message %d, want HELLO and the end", c.name, p[0])
				}
			}
		}
		r.close()
	}
	select {
	case p := <-h.accepted:
		t.Errorf("got a peer %+v, want none", p.Info())
	default:
	}
	h.serves()
}

// TestEndsInTheMiddle: peers that go at any point leave nothing.
func TestEndsInTheMiddle(t *testing.T) {
	h := newHost(t)
	arena := shared(t, 8192)
	for range 20 {
		for _, do := range []func(r *raw){
			func(r *raw) {},
			func(r *raw) { r.get("steady") },
			func(r *raw) { r.send(message(mGet, 0, 1, "steady")) },
			func(r *raw) { r.send(message(mList, 0, 1)) },
			func(r *raw) { r.send(arenaNote(arenaID, 8192), arena.Fd()) },
			func(r *raw) {
				r.send(arenaNote(arenaID, 8192), arena.Fd())
				r.send(message(mOffer, 1, 0, tensorAt(1, arenaID, 0, 8192)))
			},
			func(r *raw) { r.send(message(mTicket, 0, 9, r.get("steady"))) },
			func(r *raw) { r.send(message(mEnd, 0, 0)) },
			func(r *raw) { _ = unix.Shutdown(r.fd, unix.SHUT_WR) },
			func(r *raw) { _ = unix.Shutdown(r.fd, unix.SHUT_RD) },
		} {
			r, _ := h.attack()
			do(r)
			r.close()
		}
	}
	eventually(t, "all rows are dropped", func() bool { return len(h.o.State().Leases) == 0 })
	h.serves()
}

// TestErrorsNameTheBreach: the error names the process and its breach.
func TestErrorsNameTheBreach(t *testing.T) {
	h := newHost(t)
	r, p := h.attack()
	r.send(message(mRelease, 1, 0, 5))
	wantBroken(t, "RELEASE", p)
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "RELEASE of lease 5") || !strings.Contains(err.Error(), "process") {
		t.Errorf("got %v, want the process and the message in it", err)
	}
	if _, err := p.Receive(within(t)); !errors.Is(err, share.ErrPeer) {
		t.Errorf("receive: got %v, want ErrPeer", err)
	}
	r.close()
}

// TestWhatTheDeadSentStillComes: the packets that a dead peer did not read are
// reported by an error, which comes before the packets that it sent.
func TestWhatTheDeadSentStillComes(t *testing.T) {
	o, err := share.NewOwner()
	if err != nil {
		t.Fatal(err)
	}
	arena := shared(t, 8192)
	copy(arena.Bytes()[64:], "the last words")
	r, p := attach(t, o)
	// It never reads MAPPED.
	r.send(arenaNote(arenaID, 8192), arena.Fd())
	for i := range 50 {
		r.send(message(mOffer, 1, 0, tensorAt(uint64(i+1), arenaID, 64, 14)))
	}
	r.close()
	if err := arena.Close(); err != nil {
		t.Error(err)
	}
	for i := range 50 {
		got, err := p.Receive(within(t))
		if err != nil {
			t.Fatalf("offer %d: %v", i, err)
		}
		if data, _ := got.Tensor.UnsafeBytes(); string(data) != "the last words" {
			t.Errorf("offer %d: got %q", i, data)
		}
		mustRelease(t, got.Tensor)
	}
	if _, err := p.Receive(within(t)); !errors.Is(err, share.ErrClosed) {
		t.Errorf("after the last: got %v, want ErrClosed", err)
	}
	closePeer(t, p)
}

// TestQuestionsEndWithTheConnection: a question to a peer that breaks the
// protocol fails before the peer's end.
func TestQuestionsEndWithTheConnection(t *testing.T) {
	o, err := share.NewOwner()
	if err != nil {
		t.Fatal(err)
	}
	for name, packet := range map[string][]byte{
		"a breach":        message(0, 0, 0),
		"another answer":  message(mTicketed, 0, 1, make([]byte, 16)),
		"a wrong request": message(mText, 0, 2),
		"END":             message(mEnd, 0, 0),
	} {
		r, p := attach(t, o)
		done := make(chan error)
		go func() {
			_, err := p.Get(within(t), "x")
			done <- err
		}()
		r.expect(mGet)
		r.send(packet)
		if err := <-done; !errors.Is(err, share.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
		r.close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
