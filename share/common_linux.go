package share

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/memory"
)

// A copy has a lock and, for each process that has it mapped, a socket that
// sends its descriptor. A process that looks for the copy holds the lock until
// it has one and its own socket listens. So one process at a time makes a copy,
// and if no socket answers, no process has one. The kernel ends both with a
// process: a dead process holds no lock and listens on nothing. Its empty files
// stay, and the next process that makes a copy removes them.

const (
	// silence is how long a holder may take to answer. A stopped holder does
	// not answer. A holder that is ready to run on a suspended or overloaded
	// machine may take stretch times as long, because giving up on it makes a
	// second copy.
	silence = time.Second
	stretch = 10

	answerMagic = 'T' | 'N'<<8 | 'C'<<16 | 'B'<<24
	answerBytes = 4 + 4 + len(Key{}) + 8 // magic, version, key, size
)

func common(ctx context.Context, key Key, size int, label string, fill func([]byte) error, opts []Option) (b *memory.Buffer, made bool, err error) {
	folder, err := commonFolder(opts)
	if err != nil {
		return nil, false, err
	}
	name := key.String()[:16] // socket paths are short; the answer contains the whole key
	lock, err := lockFile(ctx, filepath.Join(folder, name+".lock"))
	if err != nil {
		return nil, false, err
	}
	defer lock.unlock()
	c := &commonCopy{folder: folder, name: name, key: key}
	if !c.find(ctx, size) {
		if ctx.Err() != nil {
			return nil, false, ended.Error(ctx)
		}
		if err := c.make(size, fill); err != nil {
			return nil, false, err
		}
		made = true
		removeStale(folder)
	}
	if err := c.listen(); err != nil {
		return nil, false, errors.Join(err, c.drop())
	}
	b, err = memory.Own(c.bytes[:size:size], memory.Shared, c.end)
	if err != nil {
		c.end()
		return nil, false, err
	}
	b.SetLabel(label)
	b.Freeze()
	return b, made, nil
}

// commonCopy is a copy that this process has mapped. It sends the descriptor to
// processes that request it.
type commonCopy struct {
	folder, name string
	key          Key

	bytes  []byte // all of the memory, in whole pages
	fd     int
	shared *osmem.Shared // of the process that made the copy; nil if the copy was found

	socket *net.UnixListener
	served chan struct{} // closed when requests are not answered any more
}

// make creates the copy.
func (c *commonCopy) make(size int, fill func([]byte) error) error {
	if fill == nil {
		return fmt.Errorf("got no function that fills them, want one: %w", os.ErrInvalid)
	}
	s, err := osmem.NewSharedPages("tenure:"+c.name, size)
	if errors.Is(err, osmem.ErrNoMemory) {
		err = fmt.Errorf("%w (%w)", err, memory.ErrLimit)
	}
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // also if fill panics
			_ = s.Close()
		}
	}()
	if err := fill(s.Bytes()[:size:size]); err != nil {
		return err
	}
	if err := s.Finish(); err != nil {
		return err
	}
	c.bytes, c.fd, c.shared, done = s.Bytes(), s.Fd(), s, true
	return nil
}

// find maps the copy of another process. A holder that does not answer, or
// answers with something else, is skipped.
func (c *commonCopy) find(ctx context.Context, size int) bool {
	for _, path := range socketsOf(c.folder, c.name) {
		fd, n, err := requestFrom(ctx, path, c.key)
		if isNobody(err) {
			_ = os.Remove(path)
		}
		if err != nil {
			continue
		}
		if n >= size {
			if c.bytes, err = osmem.MapShared(fd, n); err == nil {
				osmem.Populate(c.bytes) // all of it will be read
				c.fd = fd
				return true
			}
		}
		_ = unix.Close(fd)
	}
	return false
}

// drop unmaps the copy and closes its descriptor.
func (c *commonCopy) drop() error {
	if c.shared != nil {
		return c.shared.Close()
	}
	return errors.Join(osmem.Unmap(c.bytes), unix.Close(c.fd))
}

// listen starts to answer requests for the copy. The caller holds the lock.
func (c *commonCopy) listen() error {
	for i := 0; ; i++ {
		path := filepath.Join(c.folder, fmt.Sprintf("%s.%d-%d.sock", c.name, os.Getpid(), i))
		if len(path) > longestPath {
			return fmt.Errorf("socket %s: got a path of %d bytes, want at most %d", path, len(path), longestPath)
		}
		l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
		if errors.Is(err, unix.EADDRINUSE) { // this process has it twice, or another process of that number had it, in this container or another
			continue
		}
		if err != nil {
			return err
		}
		if err := os.Chmod(path, 0o600); err != nil {
			return errors.Join(err, l.Close())
		}
		c.socket, c.served = l, make(chan struct{})
		go c.serve()
		return nil
	}
}

// end runs at the last release of the buffer.
func (c *commonCopy) end() {
	_ = c.socket.Close() // also removes its file
	<-c.served
	_ = c.drop() // there is no caller that could handle the error
	if lock, err := tryLock(filepath.Join(c.folder, c.name+".lock")); err == nil {
		lock.removeWithout(c.folder, c.name)
	}
}

func (c *commonCopy) serve() {
	defer close(c.served)
	for {
		conn, err := c.socket.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors: requests wait, or go to another holder
			time.Sleep(10 * time.Millisecond)
		default:
			_ = c.send(conn) // an error means that the other end has gone
		}
	}
}

// send sends the descriptor. It is one packet into an empty queue, so it does
// not block.
func (c *commonCopy) send(conn *net.UnixConn) error {
	s, err := wrapSocket(conn)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.sameUser(); err != nil {
		return err
	}
	packet := binary.LittleEndian.AppendUint32(nil, answerMagic)
	packet = binary.LittleEndian.AppendUint32(packet, 1)
	packet = append(packet, c.key[:]...)
	packet = binary.LittleEndian.AppendUint64(packet, uint64(len(c.bytes)))
	return s.send(packet, c.fd, false)
}

// requestFrom returns the descriptor of the copy that a holder sends, and its
// size as the holder states it.
func requestFrom(ctx context.Context, path string, key Key) (fd, size int, err error) {
	h, err := requestCopy(ctx, path)
	if err != nil {
		return -1, 0, err
	}
	if h.key != key {
		closeDescriptor(h.fd)
		return -1, 0, fmt.Errorf("got bytes %v, want %v", h.key, key)
	}
	return h.fd, h.size, nil
}

// answer is a holder's message about its copy.
type answer struct {
	pid, fd, size int
	key           Key
}

// requestCopy requests the copy of a holder. If the holder sends nothing, or
// anything else, only its process number is returned.
func requestCopy(ctx context.Context, path string) (h answer, err error) {
	d := net.Dialer{Timeout: silence}
	conn, err := d.DialContext(ctx, "unixpacket", path)
	if err != nil {
		return h, err
	}
	s, err := wrapSocket(conn.(*net.UnixConn))
	if err != nil {
		return h, err
	}
	defer s.close()
	if h.pid, err = s.sameUser(); err != nil {
		return h, err
	}
	packet := make([]byte, answerBytes)
	n, fd, err := s.awaitAnswer(ctx, packet, h.pid)
	if err != nil {
		return h, err
	}
	if h.key, h.size, err = parseAnswer(packet[:n]); err == nil && fd < 0 {
		err = fmt.Errorf("got no descriptor, want one")
	}
	if err != nil {
		closeDescriptor(fd)
		return h, err
	}
	h.fd = fd
	return h, nil
}

// awaitAnswer receives the answer of a holder. It waits twice: if this process
// itself was suspended during the first wait, the second finds what arrived
// meanwhile.
func (s *socket) awaitAnswer(ctx context.Context, packet []byte, pid int) (n, fd int, err error) {
	for half := 1; ; half++ {
		s.setDeadline(time.Now().Add(silence / 2))
		n, fd, _, err = s.receive(packet)
		if !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil || half == 2*stretch || half > 1 && !isAtWork(pid) {
			return n, fd, err
		}
	}
}

// isAtWork reports whether a thread of a process runs or waits for a processor.
func isAtWork(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(threads, func(path string) bool {
		text, _ := os.ReadFile(path) // a process that has ended has none
		i := bytes.LastIndexByte(text, ')')
		return i >= 0 && bytes.HasPrefix(text[i:], []byte(") R"))
	})
}

func parseAnswer(p []byte) (key Key, size int, err error) {
	if len(p) != answerBytes {
		return key, 0, fmt.Errorf("got an answer of %d bytes, want %d", len(p), answerBytes)
	}
	if magic, version := binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:]); magic != answerMagic || version != 1 {
		return key, 0, fmt.Errorf("got an answer %#x of version %d, want %#x of version 1", magic, version, answerMagic)
	}
	key = Key(p[8 : 8+len(key)])
	n := binary.LittleEndian.Uint64(p[8+len(key):])
	if int64(n) < 0 || uint64(int(n)) != n {
		return key, 0, fmt.Errorf("got a size of %d bytes, want one that can be mapped", n)
	}
	return key, int(n), nil
}
