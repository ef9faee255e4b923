package share

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestListsAreWrittenPageByPage: for a client that does not read, the owner
// keeps one page and not the whole list; a client that reads gets the whole
// list, although the owner continues meanwhile.
func TestListsAreWrittenPageByPage(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	checkLedger(t)
	const leases, askers = 50_000, 8
	o := ok(NewOwner())(t)
	defer o.Close()
	holder, holderEnd := bareEnd(t, o)
	x := build(t, o, 100)
	buf, first := ok2(x.Hold())(t)
	b := o.blockOf(buf)
	o.mu.Lock()
	for range leases {
		ok(holder.record(b, offer{dt: x.DType(), layout: x.Layout(), first: first, label: "a lease among many"}, buf))(t)
	}
	o.mu.Unlock()
	release(buf)
	memory := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := memory()
	var sockets []int
	for range askers {
		p, socket := bareEnd(t, o)
		if err := unix.Send(socket, header{kind: kindList, request: 1}.append(nil), 0); err != nil {
			t.Fatal(err)
		}
		untilTrue(t, "an answer waits to be read", p.congested)
		sockets = append(sockets, socket)
	}
	if used := memory() - before; used > 8<<20 {
		t.Errorf("got %d bytes for %d unread answers, want at most 8 MiB", used, askers)
	}
	for _, socket := range sockets[:2] {
		var text []byte
		for packet, more := make([]byte, maxPacket), true; more; {
			n := ok(unix.Read(socket, packet))(t)
			if n == 0 || kind(packet[0]) != kindText {
				t.Fatalf("got %v, want TEXT", packet[:min(n, 8)])
			}
			more = le.Uint16(packet[2:]) == 1
			text = append(text, packet[headBytes:n]...)
			if len(text) < 1<<20 { // the owner continues: its new tensors are listed or not
				mustRelease(t, build(t, o, 10))
			}
		}
		var s State
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Leases) != leases || s.Bytes.Used < 400 || len(s.Arenas) != 1 {
			t.Errorf("got %d leases, %d arenas and %+v, want %d, 1 and 400 bytes in use", len(s.Leases), len(s.Arenas), s.Bytes, leases)
		}
	}
	mustRelease(t, x)
	unix.Shutdown(holderEnd, unix.SHUT_RDWR)
	for _, socket := range sockets {
		unix.Shutdown(socket, unix.SHUT_RDWR)
	}
	untilTrue(t, "nothing is left", func() bool { return o.State().Bytes.Used == 0 })
}

func ok2[A, B any](a A, b B, err error) func(testing.TB) (A, B) {
	return func(t testing.TB) (A, B) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
}

// TestSilentNewcomers: connections that say nothing do not keep others from
// coming in.
func TestSilentNewcomers(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	dir := filepath.Join(t.TempDir(), "s")
	l := ok(o.Listen("door", InDir(dir)))(t)
	for range 300 {
		fd := ok(unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
		defer unix.Close(fd)
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: l.Path()}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		p, err := Dial(t.Context(), "door", InDir(dir))
		if err != nil {
			t.Fatalf("behind 300 silent ones: %v", err)
		}
		ok(l.Accept(t.Context()))(t)
		p.Owner().Close()
	}
}

// TestDialsBeforeAccept: a connection that has sent HELLO waits for the other
// program as long as that takes.
func TestDialsBeforeAccept(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	checkLedger(t)
	o, dialler := ok(NewOwner())(t), ok(NewOwner())(t)
	defer o.Close()
	defer dialler.Close()
	dir := filepath.Join(t.TempDir(), "s")
	l := ok(o.Listen("door", InDir(dir)))(t)
	var peers []*Peer
	for i := range 300 {
		p, err := dialler.Dial(t.Context(), "door", InDir(dir))
		if err != nil {
			t.Fatalf("dial %d: %v", i, err)
		}
		peers = append(peers, p)
	}
	for range peers {
		ok(l.Accept(t.Context()))(t)
	}
	for i, p := range peers {
		if err := p.Err(); err != nil {
			t.Fatalf("dial %d: %v", i, err)
		}
	}
}

// TestWhoGoesForANewcomer: the oldest of the process that has the most.
func TestWhoGoesForANewcomer(t *testing.T) {
	l := &Listener{}
	for i := range handshakes {
		if gone := l.admit(&newcomer{pid: 1 + min(i%3, 1)}); gone != nil { // two thirds of them are of process 2
			t.Fatalf("newcomer %d: %+v had to go, want room for %d", i, gone, handshakes)
		}
	}
	first := l.greeting[1]
	if gone := l.admit(&newcomer{pid: 3}); gone != first {
		t.Errorf("got %+v, want the first of process 2", gone)
	}
	n := l.greeting[0]
	l.leave(n)
	l.leave(first)
	if len(l.greeting) != handshakes-1 || l.admit(&newcomer{pid: 3}) != nil {
		t.Errorf("got %d, want %d and room for one more", len(l.greeting), handshakes-1)
	}
}
