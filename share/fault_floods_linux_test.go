package share_test

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/share"
)

// heap returns the bytes that the Go program uses, garbage aside.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// flood sends packets until the other end has not read for a while, and returns
// how many it took.
func (r *raw) flood(most int, packet func(i int) []byte) (sent int) {
	r.t.Helper()
	full := 0
	for sent < most && full < 100 {
		switch err := r.try(packet(sent)); {
		case err == nil:
			sent, full = sent+1, 0
		case errors.Is(err, unix.EAGAIN):
			full++
			time.Sleep(time.Millisecond)
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
			return sent
		default:
			r.t.Fatalf("packet %d: %v", sent, err)
		}
	}
	return sent
}

// TestFloodsOfTensors: tensors that are not received are bounded, however small
// each is.
func TestFloodsOfTensors(t *testing.T) {
	const most = 200_000
	for name, data := range map[string][]byte{"empty": {}, "small": {1}, "large": make([]byte, 65000)} {
		o, err := share.NewOwner()
		if err != nil {
			t.Fatal(err)
		}
		r, p := attach(t, o)
		before := heap()
		packet := message(mOffer, 1, 0, inlineTensor(data))
		if sent := r.flood(most, func(int) []byte { return packet }); sent == most {
			t.Errorf("%s tensors: all %d were taken, want the reader to stop", name, most)
		}
		if used := heap() - before; used > 64<<20 {
			t.Errorf("%s tensors: got %d bytes in use, want at most 64 MiB", name, used)
		}
		if p.Err() != nil {
			t.Errorf("%s tensors: got %v, want a peer that waits", name, p.Err())
		}
		// After a receive it continues.
		for range 20_000 {
			got, err := p.Receive(within(t))
			if err != nil {
				t.Fatal(err)
			}
			mustRelease(t, got.Tensor)
			if r.try(packet) == nil {
				break
			}
		}
		r.close()
		closePeer(t, p)
	}
}

// TestFloodsOfQuestions: unread answers are bounded, too.
func TestFloodsOfQuestions(t *testing.T) {
	h := newHost(t)
	before := heap()
	for name, packet := range map[string]func(i int) []byte{
		"LIST":           func(i int) []byte { return message(mList, 0, uint32(i+1)) },
		"GET":            func(i int) []byte { return message(mGet, 0, uint32(i+1), "steady") },
		"GET of nothing": func(i int) []byte { return message(mGet, 0, uint32(i+1), strings.Repeat("x", 255)) },
		"DROP":           func(i int) []byte { return message(mDrop, 0, uint32(i+1), "steady") },
		"CLAIM":          func(i int) []byte { return message(mClaim, 0, uint32(i+1), make([]byte, 16)) },
		"TICKET":         func(i int) []byte { return message(mTicket, 0, uint32(i+1), 1) },
	} {
		r, p := h.attack()
		if r.get("steady") != 1 {
			t.Fatal("the first lease has another serial than 1")
		}
		r.flood(100_000, packet)
		h.serves()
		if n := h.leases(p); n > 1024 {
			t.Errorf("flood of %s: got %d leases, want at most the credit of 1024", name, n)
		}
		if used := heap() - before; used > 64<<20 {
			t.Errorf("flood of %s: got %d bytes in use, want at most 64 MiB", name, used)
		}
		r.close()
		eventually(t, "the row is dropped", func() bool { return h.leases(p) == 0 })
	}
}

// TestFloodsThatAreLegal: ignored messages cost nothing.
func TestFloodsThatAreLegal(t *testing.T) {
	h := newHost(t)
	r, p := h.attack()
	serial := r.get("steady")
	releases := message(mRelease, 500, 0)
	for range 500 {
		releases = binary.LittleEndian.AppendUint64(releases, serial)
	}
	cancel := message(mCancel, 0, 0, make([]byte, 16))
	for range 2000 {
		r.send(releases)
		r.send(cancel)
	}
	h.serves()
	r.get("steady")
	if p.Err() != nil {
		t.Errorf("got %v, want a peer that is served", p.Err())
	}
}

// TestFloodsOfArenas: an owner that announces arenas without end cannot take
// all the mappings that a process may have.
func TestFloodsOfArenas(t *testing.T) {
	h := newHost(t)
	r, p := h.attack()
	arena := shared(t, 4096)
	refused := 0
	for i := range 5000 {
		r.send(arenaNote(uint64(i+1), 4096), arena.Fd())
		packet, _ := r.receive()
		switch {
		case packet == nil:
			t.Fatalf("arena %d: got the end of file", i)
		case packet[0] == mRefused:
			refused++
		case packet[0] != mMapped:
			t.Fatalf("arena %d: got message %d, want MAPPED or REFUSED", i, packet[0])
		}
	}
	if refused == 0 {
		t.Error("got 5000 arenas mapped, want a bound")
	}
	if p.Err() != nil {
		t.Errorf("got %v, want a peer that is served", p.Err())
	}
	r.send(message(mRetire, 0, 0, 1)) // an end of one makes room
	r.expect(mUnmapped)
	r.send(arenaNote(99999, 4096), arena.Fd())
	r.expect(mMapped)
	h.serves()
}

// TestHalfHandshakes: connections that say nothing do not hold up those that
// are there, and end by themselves.
func TestHalfHandshakes(t *testing.T) {
	h := newHost(t)
	var silent []*raw
	for range 400 {
		silent = append(silent, dialRaw(t, h.l.Path()))
	}
	getSteady(t, h.good)
	for _, r := range silent {
		r.close()
	}
	eventually(t, "newcomers are served again", func() bool {
		p, err := share.Dial(within(t), "host", share.InDir(h.dir))
		if err != nil {
			return false
		}
		<-h.accepted
		getSteady(t, p)
		closePeer(t, p)
		return true
	})
}

// TestThousandConnections: each holds a tensor; all are served, and what one
// costs is bounded.
func TestThousandConnections(t *testing.T) {
	const n = 1000
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*n+100 {
		t.Skipf("got a limit of %d descriptors (%v), want %d", limit.Cur, err, 2*n+100)
	}
	h := newHost(t)
	h.serves()
	before := heap()
	var peers []*raw
	for range n {
		r, _ := h.attack()
		r.get("steady")
		peers = append(peers, r)
	}
	s := h.o.State()
	if len(s.Leases) != n || s.Arenas[0].Peers != n+1 {
		t.Errorf("got %d leases and %d peers, want %d and %d", len(s.Leases), s.Arenas[0].Peers, n, n+1)
	}
	if each := (heap() - before) / n; each > 128<<10 {
		t.Errorf("got %d bytes for each connection, want at most 128 KiB", each)
	}
	h.serves()
	for i, r := range peers {
		if i%2 == 0 {
			r.send(message(mRelease, 1, 0, 1))
			r.send(message(mEnd, 0, 0))
		}
		r.close()
	}
	eventually(t, "all rows are dropped", func() bool { return len(h.o.State().Leases) == 0 })
	h.serves()
}
