package share

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/memory"
)

// A copy has a lock and, for each process that has it mapped, a socket that answers with its descriptor. The lock is held by
// whoever looks for the copy, until it has one and its own socket listens. So there is one maker at a time, and who finds no
// socket that answers knows that nobody has the copy. All of that is the kernel's to end: a dead process holds no lock and
// listens on nothing. Its empty files stay, and the next one to make something removes them.

const (
	// silence is how long a holder may take to answer. One that is stopped does not.
	silence = time.Second

	answerMagic = 'T' | 'N'<<8 | 'C'<<16 | 'B'<<24
	answerBytes = 4 + 4 + len(Key{}) + 8 // magic, version, key, size
)

func common(ctx context.Context, key Key, size int, label string, fill func([]byte) error, opts []Option) (b *memory.Buffer, made bool, err error) {
	folder, err := commonFolder(opts)
	if err != nil {
		return nil, false, err
	}
	name := key.String()[:16] // paths of sockets are short; the answer has the whole key
	lock, err := lockFile(ctx, filepath.Join(folder, name+".lock"))
	if err != nil {
		return nil, false, err
	}
	defer lock.unlock()
	c := &copyHeld{folder: folder, name: name, key: key}
	if !c.find(ctx, size) {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
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

// copyHeld is this process's part of a copy: it has it mapped and gives its descriptor to others.
type copyHeld struct {
	folder, name string
	key          Key

	bytes  []byte // all of the memory: whole pages
	fd     int
	shared *osmem.Shared // of the maker; nil for a copy that was found

	socket *net.UnixListener
	served chan struct{} // closed when nothing is answered any more
}

// make makes the copy.
func (c *copyHeld) make(size int, fill func([]byte) error) error {
	s, err := osmem.NewSharedPages("tenure:"+c.name, size)
	if errors.Is(err, osmem.ErrNoMemory) {
		err = fmt.Errorf("%w (%w)", err, memory.ErrLimit)
	}
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // also where fill panics
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

// find maps the copy that another process has. One who does not answer, or with something else, is passed over: what it has
// cannot be used, and it must not keep others from work.
func (c *copyHeld) find(ctx context.Context, size int) bool {
	for _, path := range socketsOf(c.folder, c.name) {
		fd, n, err := askHolder(ctx, path, c.key)
		if isStale(err) {
			_ = os.Remove(path)
		}
		if err != nil {
			continue
		}
		if n >= size {
			if c.bytes, err = osmem.MapShared(fd, n); err == nil {
				c.fd = fd
				return true
			}
		}
		_ = unix.Close(fd)
	}
	return false
}

// drop gives the mapping and the descriptor back.
func (c *copyHeld) drop() error {
	if c.shared != nil {
		return c.shared.Close()
	}
	return errors.Join(osmem.Unmap(c.bytes), unix.Close(c.fd))
}

// listen begins to answer who asks for the copy. The lock is held.
func (c *copyHeld) listen() error {
	for i := 0; ; i++ {
		path := filepath.Join(c.folder, fmt.Sprintf("%s.%d-%d.sock", c.name, os.Getpid(), i))
		if len(path) > longestPath {
			return fmt.Errorf("socket %s: got a path of %d bytes, want at most %d", path, len(path), longestPath)
		}
		l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
		if errors.Is(err, unix.EADDRINUSE) { // this process has it twice, or there was one of that number, in this container or another
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

// end is the last release: nobody reads the bytes here any more.
func (c *copyHeld) end() {
	_ = c.socket.Close() // and remove its file
	<-c.served
	_ = c.drop() // of what is ours; there is nobody to tell
	if lock, err := tryLock(filepath.Join(c.folder, c.name+".lock")); err == nil {
		lock.removeWithout(c.folder, c.name)
	}
}

func (c *copyHeld) serve() {
	defer close(c.served)
	for {
		conn, err := c.socket.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors: those who ask wait, or go to another holder
			time.Sleep(10 * time.Millisecond)
		default:
			_ = c.answer(conn) // who asked has gone
			_ = conn.Close()
		}
	}
}

// answer sends the descriptor. It is one packet into an empty queue, so it waits for nobody.
func (c *copyHeld) answer(conn *net.UnixConn) error {
	if err := sameUser(conn); err != nil {
		return err
	}
	packet := binary.LittleEndian.AppendUint32(nil, answerMagic)
	packet = binary.LittleEndian.AppendUint32(packet, 1)
	packet = append(packet, c.key[:]...)
	packet = binary.LittleEndian.AppendUint64(packet, uint64(len(c.bytes)))
	if err := conn.SetDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	_, _, err := conn.WriteMsgUnix(packet, unix.UnixRights(c.fd), nil)
	return err
}

// askHolder gets the descriptor from a holder, and how many bytes it says that there are.
func askHolder(ctx context.Context, path string, key Key) (fd, size int, err error) {
	d := net.Dialer{Timeout: silence}
	conn, err := d.DialContext(ctx, "unixpacket", path)
	if err != nil {
		return -1, 0, err
	}
	defer conn.Close()
	c := conn.(*net.UnixConn)
	if err := sameUser(c); err != nil {
		return -1, 0, err
	}
	if err := c.SetDeadline(time.Now().Add(silence)); err != nil {
		return -1, 0, err
	}
	packet, control := make([]byte, answerBytes+1), make([]byte, 256)
	n, cn, _, _, err := c.ReadMsgUnix(packet, control)
	if err != nil {
		return -1, 0, err
	}
	fds := rightsIn(control[:cn])
	size, err = parseAnswer(packet[:n], key)
	if err == nil && len(fds) != 1 {
		err = fmt.Errorf("got %d descriptors, want one", len(fds))
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return -1, 0, err
	}
	return fds[0], size, nil
}

func parseAnswer(p []byte, key Key) (size int, err error) {
	if len(p) != answerBytes {
		return 0, fmt.Errorf("got an answer of %d bytes, want %d", len(p), answerBytes)
	}
	if magic, version := binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:]); magic != answerMagic || version != 1 {
		return 0, fmt.Errorf("got an answer %#x of version %d, want %#x of version 1", magic, version, answerMagic)
	}
	if got := Key(p[8 : 8+len(key)]); got != key {
		return 0, fmt.Errorf("got bytes %v, want %v", got, key)
	}
	n := binary.LittleEndian.Uint64(p[8+len(key):])
	if int64(n) < 0 || uint64(int(n)) != n {
		return 0, fmt.Errorf("got a size of %d bytes, want one that can be mapped", n)
	}
	return int(n), nil
}

// rightsIn returns the descriptors that came with a packet.
func rightsIn(control []byte) (fds []int) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		if more, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, more...)
		}
	}
	return fds
}

// sameUser fails unless the other end of a connection runs as this user.
func sameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var fault error
	if err := raw.Control(func(fd uintptr) {
		cred, fault = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if fault != nil {
		return fault
	}
	if me := os.Geteuid(); int(cred.Uid) != me {
		return fmt.Errorf("got a process of user %d, want one of user %d", cred.Uid, me)
	}
	return nil
}

// isStale reports whether nobody listens on a socket any more.
func isStale(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
