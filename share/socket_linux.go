package share

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const supported = true

// errBusy: the socket's buffer is full.
var errBusy = errors.New("socket buffer is full")

// socket is a connected SOCK_SEQPACKET. One goroutine at a time receives; the
// callers of send order the packets.
type socket struct {
	c   *net.UnixConn
	raw syscall.RawConn

	receiving receiveState
	take      func(fd uintptr) bool // receives into receiving as soon as there is a packet

	sendMu   sync.Mutex
	sending  sendState
	try, all func(fd uintptr) bool // send the messages in sending: one attempt, or until all are sent
}

type sendState struct {
	packet, rights []byte
	err            error
}

type receiveState struct {
	packet, oob    []byte
	n, oobn, flags int
	err            error
}

// newSocket takes ownership of f, which may be in blocking mode, as socketpair
// returns it.
func newSocket(f *os.File) (*socket, error) {
	c, err := net.FileConn(f)
	f.Close() // FileConn has duplicated the descriptor
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("socket: got %s, want a UNIX socket: %w", c.LocalAddr().Network(), ErrRefused)
	}
	return wrapSocket(u)
}

func wrapSocket(c *net.UnixConn) (*socket, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		c.Close()
		return nil, err
	}
	s := &socket{c: c, raw: raw}
	s.receiving.oob = make([]byte, unix.CmsgSpace(16*4))
	s.take = func(fd uintptr) bool {
		s.receiveOnce(fd)
		return s.receiving.err != unix.EAGAIN
	}
	s.try = func(fd uintptr) bool {
		s.sending.err = s.sendOnce(int(fd))
		return true
	}
	s.all = func(fd uintptr) bool {
		s.sending.err = s.sendOnce(int(fd))
		return !errors.Is(s.sending.err, unix.EAGAIN)
	}
	kind := 0
	ctlErr := raw.Control(func(fd uintptr) { kind, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE) })
	if err = errors.Join(ctlErr, err); err == nil && kind != unix.SOCK_SEQPACKET {
		err = fmt.Errorf("socket: got type %d, want SOCK_SEQPACKET (%d): %w", kind, unix.SOCK_SEQPACKET, ErrRefused)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// sendRaw and receiveOnce make raw system calls, without Go's scheduler. The
// calls do not block, and the first call that the scheduler sees after a pause
// would wake a thread of the runtime first.
func sendRaw(fd int, packet []byte) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(packet))), uintptr(len(packet)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// sendOnce does not block. A packet is sent as a whole or not at all.
func (s *socket) sendOnce(fd int) error {
	for {
		var err error
		if s.sending.rights == nil { // all packets except ARENA
			err = sendRaw(fd, s.sending.packet)
		} else {
			err = unix.Sendmsg(fd, s.sending.packet, s.sending.rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		}
		if err != unix.EINTR {
			return err
		}
	}
}

// send sends a packet, with the descriptor fd unless it is negative. With wait
// it blocks while the other end does not read; otherwise it returns errBusy.
func (s *socket) send(packet []byte, fd int, wait bool) error {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	s.sending = sendState{packet: packet}
	if fd >= 0 {
		s.sending.rights = unix.UnixRights(fd)
	}
	step := s.try
	if wait {
		step = s.all
	}
	err := s.raw.Write(step)
	if err == nil {
		err = s.sending.err
	}
	s.sending = sendState{}
	if errors.Is(err, unix.EAGAIN) {
		return errBusy
	}
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("the other end hung up: %w", ErrClosed)
	}
	return err
}

// receive reads one packet. fd is the descriptor that came with it, -1 for
// none; lost reports that this process had no free descriptor for one. The
// error io.EOF is the end of file: the peer's side is over.
func (s *socket) receive(packet []byte) (n, fd int, lost bool, err error) {
	r := &s.receiving
	r.packet = packet
	err = s.receiveNext()
	if errors.Is(err, unix.ECONNRESET) { // the peer died with packets unread; reported once, before its queued packets
		err = s.receiveNext()
	}
	fd, fdErr := oneDescriptor(r.oob[:r.oobn])
	switch {
	case errors.Is(err, io.EOF) && !s.isOver(): // an empty packet looks like the end of file
		err = malformed("got an empty packet")
	case err == nil && fdErr != nil:
		err = fdErr
	case err == nil && r.flags&unix.MSG_TRUNC != 0:
		err = malformed("got a packet of more than %d bytes", len(packet))
	}
	if err != nil {
		closeDescriptor(fd)
		return 0, -1, false, err
	}
	return r.n, fd, r.flags&unix.MSG_CTRUNC != 0, nil
}

func (s *socket) receiveNext() error {
	r := &s.receiving
	r.n, r.oobn, r.flags, r.err = 0, 0, 0, nil
	if err := s.raw.Read(s.take); err != nil {
		return err
	}
	if r.err != nil {
		return os.NewSyscallError("recvmsg", r.err)
	}
	if r.n == 0 {
		return io.EOF
	}
	return nil
}

// receiveOnce does not block. It does not ask for the address of the other end,
// for which package net and unix.Recvmsg would allocate three objects per
// packet.
func (s *socket) receiveOnce(fd uintptr) {
	r := &s.receiving
	buf := unix.Iovec{Base: unsafe.SliceData(r.packet)}
	buf.SetLen(len(r.packet))
	m := unix.Msghdr{Iov: &buf, Iovlen: 1, Control: unsafe.SliceData(r.oob)}
	m.SetControllen(len(r.oob))
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&m)), unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if r.err = nil; errno != 0 {
			r.err = errno
			return
		}
		r.n, r.oobn, r.flags = int(n), int(m.Controllen), int(m.Flags)
		return
	}
}

// oneDescriptor returns the descriptor of a control message. More than one is
// malformed, and all are closed then.
func oneDescriptor(oob []byte) (int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return -1, malformed("got a control message that cannot be read: %v", err)
	}
	var fds []int
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	if len(fds) > 1 {
		for _, fd := range fds {
			closeDescriptor(fd)
		}
		return -1, malformed("got %d descriptors with a packet, want one", len(fds))
	}
	if len(fds) == 0 {
		return -1, nil
	}
	return fds[0], nil
}

func closeDescriptor(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}

// awaitEnd returns when the peer's side is over, even if packets of it are
// unread. The receiving goroutine calls it and receives no more.
func (s *socket) awaitEnd() { s.awaitEndOr(func() bool { return false }) }

// awaitEndOr returns when the peer's side is over, or at an interruption if
// given returns true then. Other interruptions are meant for a receive.
func (s *socket) awaitEndOr(given func() bool) {
	for {
		err := s.raw.Read(func(fd uintptr) bool { return given() || sideIsOver(fd) })
		if !errors.Is(err, os.ErrDeadlineExceeded) || given() { // any other error: this end was closed meanwhile
			return
		}
		s.resume()
	}
}

// isOver reports whether the peer's side is over.
func (s *socket) isOver() bool {
	over := true
	_ = s.raw.Control(func(fd uintptr) { over = sideIsOver(fd) })
	return over
}

func sideIsOver(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err != nil && err != unix.EINTR || n > 0
}

func (s *socket) shutWrite()              { _ = s.c.CloseWrite() }
func (s *socket) close()                  { _ = s.c.Close() }
func (s *socket) setDeadline(t time.Time) { _ = s.c.SetDeadline(t) }

// sameUser returns the number of the peer's process, which is only a label, and
// fails unless the process runs as this user.
func (s *socket) sameUser() (pid int, err error) {
	var c *unix.Ucred
	ctlErr := s.raw.Control(func(fd uintptr) { c, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(ctlErr, err); err != nil {
		return 0, fmt.Errorf("the identity of the peer: %w", err)
	}
	if me := os.Geteuid(); int(c.Uid) != me {
		return 0, fmt.Errorf("process %d runs as user %d, want %d: %w", c.Pid, c.Uid, me, ErrRefused)
	}
	return int(c.Pid), nil
}

// commandOf returns the name of a process, "" if it cannot be read.
func commandOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func bootID() (id [16]byte) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(raw) != len(id) {
		return id
	}
	return [16]byte(raw)
}

// pair returns the two ends of a new connection.
func pair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "share"), os.NewFile(uintptr(fds[1]), "share"), nil
}

// isNobody reports whether connecting failed because no process listens.
func isNobody(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED)
}

func closeOnExec(fd int) { unix.CloseOnExec(fd) }

// duplicate returns another descriptor of the same open file.
func duplicate(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) }

// interrupt makes the present or the next receive fail with
// os.ErrDeadlineExceeded, until resume.
func (s *socket) interrupt() { _ = s.c.SetReadDeadline(time.Unix(1, 0)) }
func (s *socket) resume()    { _ = s.c.SetReadDeadline(time.Time{}) }

// interruptSend makes a waiting send fail with os.ErrDeadlineExceeded, until
// resumeSend.
func (s *socket) interruptSend() { _ = s.c.SetWriteDeadline(time.Unix(1, 0)) }
func (s *socket) resumeSend()    { _ = s.c.SetWriteDeadline(time.Time{}) }

// awaitEndUntil waits for the end of the peer's side in a goroutine, which
// closes ended at the end. stop ends the goroutine and waits for it.
func (s *socket) awaitEndUntil() (ended <-chan struct{}, stop func()) {
	done := make(chan struct{})
	var given atomic.Bool
	go func() {
		s.awaitEndOr(given.Load)
		close(done)
	}()
	return done, func() {
		given.Store(true)
		s.interrupt()
		<-done
		s.resume()
	}
}

// readable reports whether a packet or the end of file can be received without
// waiting.
func (s *socket) readable() (is bool) {
	_ = s.raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(p, 0)
		is = err == nil && p[0].Revents&(unix.POLLIN|unix.POLLHUP|unix.POLLERR) != 0
	})
	return is
}

// hungUp reports whether the other end is completely closed, not only for
// writing.
func (s *socket) hungUp() bool {
	hup := true
	_ = s.raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(p, 0)
		hup = err == nil && p[0].Revents&unix.POLLHUP != 0
	})
	return hup
}

// systemLimits returns the number of descriptors and of mappings that this
// process may have.
func systemLimits() (descriptors, maps int) {
	descriptors, maps = 1024, 65530
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		descriptors = int(min(limit.Cur, 1<<30))
	}
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if n, numErr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && numErr == nil {
		maps = n
	}
	return descriptors, maps
}

// process returns a handle of the process at the other end, which becomes
// readable when the process is dead. It returns nil if the kernel does not know
// the process, as at the ends of a socket pair that this process has made.
func (s *socket) process(pid int) (handle *os.File) {
	if pid == 0 || pid == os.Getpid() {
		return nil
	}
	fd := -1
	_ = s.raw.Control(func(of uintptr) {
		var err error
		if fd, err = unix.GetsockoptInt(int(of), unix.SOL_SOCKET, unix.SO_PEERPIDFD); errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.5
			fd, err = unix.PidfdOpen(pid, 0)
		}
		if err != nil {
			fd = -1
		}
	})
	if fd < 0 || unix.SetNonblock(fd, true) != nil {
		closeDescriptor(fd)
		return nil
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "process")
}

// unread returns the number of sent bytes that the other end has not read, as
// the kernel counts them; 0 if the socket is closed.
func (s *socket) unread() (bytes int) {
	_ = s.raw.Control(func(fd uintptr) { bytes, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return bytes
}

// awaitDeath returns when the process of the handle is dead.
func awaitDeath(handle *os.File) {
	raw, err := handle.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return err != nil && err != unix.EINTR || n > 0
	})
}
