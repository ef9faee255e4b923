package share

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// The tests of this file let peers take all that they can get from one process,
// and want the process and others of its peers to go on.

// spent returns the resources that peers have now.
func spent() [resources]int64 {
	h := processBudget()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used
}

// checkLedger fails the test if it leaves any charge. The connections of the
// test before may take a moment to end.
func checkLedger(t *testing.T) {
	t.Helper()
	none := func() bool { return spent() == [resources]int64{} }
	untilTrue(t, "nothing is charged before the test", none)
	t.Cleanup(func() { untilTrue(t, "nothing is charged any more", none) })
}

// withBudget changes the budget for one test.
func withBudget(t *testing.T, b Budget) {
	t.Helper()
	old := SetBudget(b)
	t.Cleanup(func() { SetBudget(old) })
}

// foreign makes an arena as another process would.
func foreign(t *testing.T, name string, size int) *osmem.Shared {
	t.Helper()
	s := ok(osmem.NewShared(name, size))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// announceTo sends ARENA, and reads whether the answer is MAPPED.
func announceTo(t *testing.T, socket int, id uint64, s *osmem.Shared) bool {
	t.Helper()
	note := arenaNote{id: id, size: len(s.Bytes())}
	if err := unix.Sendmsg(socket, note.append(header{kind: kindArena}.append(nil)), unix.UnixRights(s.Fd()), nil, 0); err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, 512)
	n := ok(unix.Read(socket, packet))(t)
	if n < headBytes || kind(packet[0]) != kindMapped && kind(packet[0]) != kindRefused {
		t.Fatalf("got %v to ARENA %d, want MAPPED or REFUSED", packet[:n], id)
	}
	return kind(packet[0]) == kindMapped
}

// mapsOf counts the mappings of a memfd in this process, the one of its maker
// included.
func mapsOf(t *testing.T, name string) int {
	t.Helper()
	return strings.Count(string(ok(os.ReadFile("/proc/self/maps"))(t)), "memfd:"+name)
}

// TestOneFileIsMappedOnce: many connections that announce one memfd again and
// again cost one mapping, and one process's share of the arenas that may be
// known here. Others get theirs.
func TestOneFileIsMappedOnce(t *testing.T) {
	checkLedger(t)
	a, b := twoEnds(t) // an honest pair
	withBudget(t, Budget{Arenas: 2000})
	victim := ok(NewOwner())(t)
	defer victim.Close()
	one := foreign(t, "flood", 4096)
	mapped := 0
	for c := range 16 {
		_, socket := bareEnd(t, victim)
		for i := range 200 {
			if announceTo(t, socket, uint64(c*1000+i+1), one) {
				mapped++
			}
		}
	}
	if mapped != 1000 {
		t.Errorf("got %d of 3200 announcements taken, want the half of 2000 that one process may have", mapped)
	}
	if n := mapsOf(t, "flood"); n != 2 {
		t.Errorf("got %d mappings, want its maker's and one more", n)
	}
	x := build(t, a.o, 5000)
	if err := a.Offer(t.Context(), x, WithoutCopy()); err != nil {
		t.Errorf("an honest owner's arena: %v", err)
	}
	mustRelease(t, x, receive(t, b).Tensor)
}

// TestManyFilesOfOneProcess: as many mappings as the budget has, shared out by
// process and not by connection.
func TestManyFilesOfOneProcess(t *testing.T) {
	checkLedger(t)
	a, b := twoEnds(t)
	withBudget(t, Budget{Arenas: 100})
	victim := ok(NewOwner())(t)
	defer victim.Close()
	var sockets []int
	mapped := 0
	for c := range 4 {
		_, socket := bareEnd(t, victim)
		sockets = append(sockets, socket)
		for i := range 25 {
			if announceTo(t, socket, uint64(i+1), foreign(t, fmt.Sprintf("many:%d:%d", c, i), 4096)) {
				mapped++
			}
		}
	}
	if n := mapsOf(t, "many") - 100; mapped != 50 || n != 50 {
		t.Errorf("got %d announcements taken and %d mappings, want 50", mapped, n)
	}
	x := build(t, a.o, 5000)
	if err := a.Offer(t.Context(), x, WithoutCopy()); err != nil {
		t.Errorf("an honest owner's arena: %v", err)
	}
	mustRelease(t, x, receive(t, b).Tensor)
	for id := range uint64(2) { // each end frees a place, and the honest peer has taken one since
		if err := unix.Send(sockets[0], le.AppendUint64(header{kind: kindRetire}.append(nil), id+1), 0); err != nil {
			t.Fatal(err)
		}
		ok(unix.Read(sockets[0], make([]byte, 512)))(t)
	}
	if !announceTo(t, sockets[3], 99, foreign(t, "many:more", 4096)) {
		t.Error("got an arena refused, want it in the place of one that was retired")
	}
}

var resident = regexp.MustCompile(`(?m)^Rss: +(\d+) kB`)

// residentOf returns the bytes of the read-only mapping of a memfd that have
// page tables.
func residentOf(t *testing.T, name string) int {
	t.Helper()
	for _, part := range regexp.MustCompile(`(?m)^[0-9a-f]+-[0-9a-f]+ `).Split(string(ok(os.ReadFile("/proc/self/smaps"))(t)), -1) {
		if strings.HasPrefix(part, "r--s") && strings.Contains(part, "memfd:"+name) {
			return ok(strconv.Atoi(resident.FindStringSubmatch(part)[1]))(t) << 10
		}
	}
	t.Fatalf("%s is not mapped", name)
	return 0
}

// TestPagesAreMappedByNeed: an arena that is announced costs address space, a
// tensor in it the page tables of its block.
func TestPagesAreMappedByNeed(t *testing.T) {
	skipElsewhere(t)
	memorytest.Check(t)
	checkDescriptors(t)
	checkLedger(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	p, socket := bareEnd(t, o)
	big := foreign(t, "need", 64<<20)
	if !announceTo(t, socket, 7, big) {
		t.Fatal("the arena was refused")
	}
	if n := residentOf(t, "need"); n != 0 {
		t.Errorf("announced: got %d bytes with page tables, want none", n)
	}
	x := build(t, o, 1000)
	defer mustRelease(t, x)
	for serial, want := range []int{2 << 20, 6 << 20} {
		m := offer{serial: uint64(serial + 1), arena: 7, offset: 10 << 20, bytes: 4000 + serial*(4<<20), dt: x.DType(), layout: x.Layout()}
		if err := unix.Send(socket, m.append(header{kind: kindOffer, count: 1}.append(nil)), 0); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, receive(t, p).Tensor)
		if n := residentOf(t, "need"); n != want {
			t.Errorf("offered: got %d bytes with page tables, want %d", n, want)
		}
	}
}

// TestMemoryOfMessages: messages that are not received are bounded for all
// connections together.
func TestMemoryOfMessages(t *testing.T) {
	checkLedger(t)
	a, b := twoEnds(t)
	withBudget(t, Budget{Memory: 8 << 20})
	victim := ok(NewOwner())(t)
	defer victim.Close()
	x := ok(tensor.Of(make([]uint8, 60000), 60000))(t)
	defer x.Release()
	m := offer{dt: x.DType(), layout: x.Layout(), bytes: 60000}
	packet := append(m.append(header{kind: kindOffer, count: 1}.append(nil)), make([]byte, 60000)...)
	sent := map[*Peer]int{}
	for range 16 {
		p, socket := bareEnd(t, victim)
		for full := 0; full < 50; {
			switch err := unix.Send(socket, packet, unix.MSG_DONTWAIT); {
			case err == nil:
				sent[p]++
				full = 0
			case errors.Is(err, unix.EAGAIN):
				full++
				time.Sleep(time.Millisecond)
			default:
				t.Fatal(err)
			}
		}
	}
	waiting := 0
	for p := range sent {
		p.mu.Lock()
		waiting += p.inline
		p.mu.Unlock()
	}
	if most := 4<<20 + 16*(freeReserve+65000); waiting > most || spent()[memoryBytes] > 4<<20 {
		t.Errorf("got %d bytes that wait, %d of them charged, want at most %d and %d", waiting, spent()[memoryBytes], most, 4<<20)
	}
	small := ok(tensor.Of([]uint8{1, 2, 3}, 3))(t)
	if err := a.Offer(t.Context(), small); err != nil {
		t.Errorf("an honest pair: %v", err)
	}
	mustRelease(t, small, receive(t, b).Tensor)
	for p, n := range sent { // after a receive it continues
		for range n {
			mustRelease(t, receive(t, p).Tensor)
		}
	}
}

// TestMemoryOfQuestions: questions that the budget has no room for are answered
// by NO, and others are answered.
func TestMemoryOfQuestions(t *testing.T) {
	checkLedger(t)
	a, b := twoEnds(t)
	withBudget(t, Budget{Memory: 2 * listBytes})
	victim := ok(NewOwner())(t)
	defer victim.Close()
	p, socket := bareEnd(t, victim)
	// It reads nothing: so an answer that is being made cannot go, if the queue
	// is full.
	if err := p.s.raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 1) }); err != nil {
		t.Fatal(err)
	}
	for !p.congested() {
		p.reply(header{kind: kindCancel}, func(b []byte) []byte { return append(b, make([]byte, ticketBytes)...) })
	}
	for i := range uint32(10) {
		if err := unix.Send(socket, header{kind: kindList, request: i + 1}.append(nil), 0); err != nil {
			t.Fatal(err)
		}
	}
	untilTrue(t, "one is being answered", func() bool { return spent()[memoryBytes] >= listBytes })
	if n := spent()[memoryBytes]; n != listBytes {
		t.Errorf("got %d bytes for answers, want %d: half of the budget", n, listBytes)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	small := build(t, a.o, 10)
	if err := a.o.Publish("x", small); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, small, ok(b.Get(ctx, "x"))(t).Tensor)
	refused := 0
	for packet := make([]byte, maxPacket); refused < 9; {
		n := ok(unix.Read(socket, packet))(t)
		if n == 0 {
			t.Fatal("got the end of file, want NO to nine questions")
		}
		if kind(packet[0]) == kindNo && le.Uint32(packet[headBytes:]) == noMemory {
			refused++
		}
	}
}

// TestConnectionsOfOneProcess: a process that dials without end leaves room for
// others.
func TestConnectionsOfOneProcess(t *testing.T) {
	skipElsewhere(t)
	memorytest.Check(t)
	checkDescriptors(t)
	checkLedger(t)
	withBudget(t, Budget{Connections: 20})
	o := ok(NewOwner())(t)
	defer o.Close()
	dir := filepath.Join(t.TempDir(), "s")
	l := ok(o.Listen("door", InDir(dir)))(t)
	greeting := hello{version: version, maxLeases: 1, maxBytes: 1}
	for range 30 {
		fd := ok(unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
		defer unix.Close(fd)
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: l.Path()}); err != nil {
			t.Fatal(err)
		}
		if err := unix.Send(fd, greeting.append(header{kind: kindHello}.append(nil)), unix.MSG_NOSIGNAL); err != nil {
			t.Fatal(err)
		}
		n := ok(unix.Read(fd, make([]byte, 512)))(t)
		if n == 0 {
			t.Fatal("got the end of file, want HELLO first")
		}
	}
	untilTrue(t, "one process has half of them", func() bool { return spent()[connections] == 10 })
	p := ok(Dial(t.Context(), "door", InDir(dir)))(t)
	defer p.o.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		q, err := l.Accept(ctx)
		if err != nil {
			t.Fatalf("an honest process: %v", err)
		}
		if q.Info().Instance == instance() {
			break
		}
	}
	if n := spent()[connections]; n > 11 {
		t.Errorf("got %d connections, want at most ten of one process and one of another", n)
	}
}
