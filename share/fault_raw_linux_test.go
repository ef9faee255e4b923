package share_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// The kinds of docs/share.md. The tests of this file write the protocol's bytes
// by themselves: they know the page, not the package.
const (
	mHello = 1 + iota
	mArena
	mMapped
	mRefused
	mRetire
	mUnmapped
	mOffer
	mRelease
	mTicket
	mTicketed
	mClaim
	mCancel
	mGet
	mList
	mText
	mDrop
	mNo
	mEnd
)

// message makes a packet. Numbers in parts are u32, u64 (also as int), u8 by
// their type; bytes go in as they are.
func message(kind byte, count uint16, request uint32, parts ...any) []byte {
	b := []byte{kind, 0}
	b = binary.LittleEndian.AppendUint16(b, count)
	b = binary.LittleEndian.AppendUint32(b, request)
	return pack(b, parts...)
}

func pack(b []byte, parts ...any) []byte {
	for _, p := range parts {
		switch p := p.(type) {
		case byte:
			b = append(b, p)
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, p)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, p)
		case int:
			b = binary.LittleEndian.AppendUint64(b, uint64(p))
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, p)
		case []byte:
			b = append(b, p...)
		case string:
			b = append(b, p...)
		default:
			panic(fmt.Sprintf("BUG: a %T in a message", p))
		}
	}
	return b
}

// set returns packet with parts written over it from byte at on.
func set(packet []byte, at int, parts ...any) []byte {
	b := bytes.Clone(packet)
	copy(b[at:], pack(nil, parts...))
	return b
}

const wide = 1 << 40 // more bytes than any test's credit needs

func hello(leases uint32, bytes uint64) []byte {
	return message(mHello, 0, 0, "TNUR", uint16(1), uint16(0), make([]byte, 16), make([]byte, 16), leases, uint32(0), bytes, 0)
}

func arenaNote(id uint64, size int) []byte { return message(mArena, 0, 0, id, size, make([]byte, 16)) }

// tensorAt is the 256 bytes of a tensor of n bytes (uint8, rank 1) in an arena.
func tensorAt(serial, arena uint64, offset, n int) []byte {
	b := pack(nil, serial, arena, offset, n, uint32(1), byte(1), byte(8), uint16(1), byte(1), byte(1), uint16(0), uint32(0), 0, 0)
	b = pack(b, n, make([]byte, 56), 1, make([]byte, 56), make([]byte, 56), 0)
	if len(b) != 256 {
		panic(fmt.Sprintf("BUG: an offer of %d bytes", len(b)))
	}
	return b
}

func inlineTensor(data []byte) []byte {
	return pack(set(tensorAt(0, 0, 0, len(data)), 44, uint32(1)), data)
}

// raw is one end of a connection that the test drives by hand.
type raw struct {
	t  *testing.T
	fd int
}

func rawOn(t *testing.T, fd int) *raw {
	t.Helper()
	r := &raw{t, fd}
	// A test that waits for a missing message fails and does not hang.
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &unix.Timeval{Sec: 20}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(r.close)
	return r
}

// dialRaw connects to a socket and says nothing.
func dialRaw(t *testing.T, path string) *raw {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		_ = unix.Close(fd)
		t.Fatal(err)
	}
	return rawOn(t, fd)
}

// attach returns both ends of a connection of o on which nothing is received.
func attach(t *testing.T, o *share.Owner) (*raw, *share.Peer) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := rawOn(t, fds[0])
	r.send(hello(1024, wide))
	p, err := o.Attach(within(t), os.NewFile(uintptr(fds[1]), "peer"))
	if err != nil {
		t.Fatal(err)
	}
	r.expect(mHello)
	return r, p
}

func (r *raw) close() {
	if r.fd >= 0 {
		_ = unix.Close(r.fd)
		r.fd = -1
	}
}

// try sends a packet, or fails with EAGAIN if the other end does not read.
func (r *raw) try(packet []byte, fds ...int) error {
	return r.sendmsg(packet, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, fds)
}

func (r *raw) send(packet []byte, fds ...int) {
	r.t.Helper()
	if err := r.sendmsg(packet, unix.MSG_NOSIGNAL, fds); err != nil {
		r.t.Fatalf("send %d bytes: %v", len(packet), err)
	}
}

func (r *raw) sendmsg(packet []byte, flags int, fds []int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err := sendmsg(r.fd, packet, rights, flags)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// sendmsg is unix.Sendmsg, which never sends an empty packet with descriptors:
// it adds a byte.
func sendmsg(fd int, packet, rights []byte, flags int) error {
	if len(packet) > 0 || len(rights) == 0 {
		return unix.Sendmsg(fd, packet, rights, nil, flags)
	}
	h := unix.Msghdr{Control: &rights[0]}
	h.SetControllen(len(rights))
	if _, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)), uintptr(flags)); errno != 0 {
		return errno
	}
	return nil
}

// receive returns the next packet and the descriptors with it; nil is the end
// of file.
func (r *raw) receive() (packet []byte, fds []int) {
	r.t.Helper()
	packet, oob := make([]byte, 65536), make([]byte, 256)
	for {
		n, oobn, _, _, err := unix.Recvmsg(r.fd, packet, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECONNRESET):
			return nil, nil
		case err != nil:
			r.t.Fatalf("receive: %v", err)
		}
		if messages, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil && len(messages) > 0 {
			fds, _ = unix.ParseUnixRights(&messages[0])
		}
		if n == 0 {
			return nil, nil
		}
		return packet[:n], fds
	}
}

// expect receives until a packet of a kind comes, answers ARENA on the way, and
// returns its bytes behind the header.
func (r *raw) expect(kind byte) []byte {
	r.t.Helper()
	for {
		p, fds := r.receive()
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		switch {
		case p == nil:
			r.t.Fatalf("got the end of file, want message %d", kind)
		case p[0] == kind:
			return p[8:]
		case p[0] == mArena:
			r.send(message(mMapped, 0, 0, p[8:16]))
		default:
			r.t.Fatalf("got message %d (%q), want %d", p[0], p[8:min(len(p), 100)], kind)
		}
	}
}

func (r *raw) greet() *raw {
	r.t.Helper()
	r.send(hello(1024, wide))
	r.expect(mHello)
	return r
}

// get requests a published tensor and returns the serial of the lease.
func (r *raw) get(name string) uint64 {
	r.t.Helper()
	r.send(message(mGet, 0, 1, name))
	return binary.LittleEndian.Uint64(r.expect(mOffer))
}

// shared makes an arena as the page wants it.
func shared(t *testing.T, size int) *osmem.Shared {
	t.Helper()
	s, err := osmem.NewShared("test", size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// memfd makes memory with these seals, all of it there or nothing.
func memfd(t *testing.T, size, seals int, there bool) int {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	err = unix.Ftruncate(fd, int64(size))
	if err == nil && there {
		err = unix.Fallocate(fd, 0, 0, int64(size))
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// host is an owner that publishes a tensor, listens, and takes all that its
// peers offer.
type host struct {
	t        *testing.T
	o        *share.Owner
	l        *share.Listener
	dir      string
	accepted chan *share.Peer
	good     *share.Peer // an honest peer, which attacks must not disturb
	side     *share.Peer // the host's end of it
	before   figures
}

const published = 4096 // bytes of the tensor "steady"

func steady() []byte {
	b := make([]byte, published)
	for i := range b {
		b[i] = byte(i * 31)
	}
	return b
}

func newHost(t *testing.T, opts ...share.OwnerOption) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir(), accepted: make(chan *share.Peer, 4096), before: figuresNow(t)}
	if err := os.Chmod(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.o, err = share.NewOwner(opts...); err != nil {
		t.Fatal(err)
	}
	if h.l, err = h.o.Listen("host", share.InDir(h.dir)); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			p, err := h.l.Accept(context.Background())
			if err != nil {
				return
			}
			go takeAll(p)
			h.accepted <- p
		}
	}()
	x, err := tensor.Make(h.o, dtype.U8, shape.MustOf(published))
	if err != nil {
		t.Fatal(err)
	}
	w, err := tensor.Write[uint8](x)
	if err != nil {
		t.Fatal(err)
	}
	copy(w.Data, steady())
	w.Release()
	if err := h.o.Publish("steady", x); err != nil {
		t.Fatal(err)
	}
	if err := x.Release(); err != nil {
		t.Fatal(err)
	}
	h.good, h.side = h.dial()
	t.Cleanup(h.end)
	return h
}

// takeAll receives and releases all tensors that a peer offers.
func takeAll(p *share.Peer) {
	for {
		r, err := p.Receive(context.Background())
		if err != nil {
			return
		}
		if r.Tensor.Release() != nil {
			return
		}
	}
}

// dial makes an honest peer, of an owner of its own, and returns both ends.
func (h *host) dial() (peer, side *share.Peer) {
	h.t.Helper()
	p, err := share.Dial(within(h.t), "host", share.InDir(h.dir))
	if err != nil {
		h.t.Fatal(err)
	}
	return p, <-h.accepted
}

// attack connects a raw peer and returns both ends of it.
func (h *host) attack() (*raw, *share.Peer) {
	h.t.Helper()
	r := dialRaw(h.t, h.l.Path()).greet()
	return r, <-h.accepted
}

// serves checks that an honest peer is served, over its old connection and over
// a new one.
func (h *host) serves() {
	h.t.Helper()
	fresh, _ := h.dial()
	for _, p := range []*share.Peer{h.good, fresh} {
		getSteady(h.t, p)
	}
	closePeer(h.t, fresh)
}

func getSteady(t *testing.T, p *share.Peer) {
	t.Helper()
	r, err := p.Get(within(t), "steady")
	if err != nil {
		t.Fatalf("an honest peer: %v", err)
	}
	data, _ := r.Tensor.UnsafeBytes()
	if !bytes.Equal(data, steady()) {
		t.Error("an honest peer got other bytes than were published")
	}
	if err := r.Tensor.Release(); err != nil {
		t.Error(err)
	}
}

// closePeer ends a connection of an owner that has no other one.
func closePeer(t *testing.T, p *share.Peer) {
	t.Helper()
	if err := errors.Join(p.Close(), p.Owner().Close()); err != nil {
		t.Error(err)
	}
}

// leases counts the leases of a peer of the host.
func (h *host) leases(p *share.Peer) (n int) {
	for _, l := range h.o.State().Leases {
		if l.Connection == p.Info().Connection {
			n++
		}
	}
	return n
}

// end closes all and checks that nothing is left.
func (h *host) end() {
	closePeer(h.t, h.good)
	eventually(h.t, "no leases are left", func() bool { return len(h.o.State().Leases) == 0 })
	if err := h.o.Close(); err != nil {
		h.t.Error(err)
	}
	eventually(h.t, "no arenas are left, and no process has one mapped", func() bool { return len(h.o.State().Arenas) == 0 })
	h.before.wantAgain(h.t)
}

// figures counts the resources of a process that could leak.
type figures struct{ descriptors, arenas, goroutines int }

func figuresNow(t *testing.T) figures {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return figures{len(list), bytes.Count(maps, []byte("/memfd:")), runtime.NumGoroutine()}
}

func (f figures) wantAgain(t *testing.T) {
	t.Helper()
	var now figures
	for deadline := time.Now().Add(timeLimit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		now = figuresNow(t)
		if now.descriptors <= f.descriptors && now.arenas <= f.arenas && now.goroutines <= f.goroutines {
			return
		}
	}
	t.Errorf("what is left: got %+v, want at most %+v", now, f)
}

const timeLimit = 20 * time.Second

// within returns a context that ends long after the expected event.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for what other goroutines and processes do.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeLimit); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("not so after %v: %s", timeLimit, what)
			return
		}
	}
}

// wantBroken waits for a peer's end and wants it to be a breach of the
// protocol.
func wantBroken(t *testing.T, name string, p *share.Peer) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(timeLimit):
		t.Fatalf("%s: the peer is still served", name)
	}
	if err := p.Err(); !errors.Is(err, share.ErrPeer) {
		t.Errorf("%s: got %v, want ErrPeer", name, err)
	}
}
