package share

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/ended"
)

// Option configures the location of named connections.
type Option func(*place)

type place struct{ dir string }

// InDir sets the directory of the sockets. It must be the user's alone (mode
// 0700), and is created if it is missing. Without this option the directory is
// the one that docs/share.md describes: TENURE_SHARE_DIR or a directory below
// XDG_RUNTIME_DIR.
func InDir(dir string) Option { return func(p *place) { p.dir = dir } }

// longestPath is the longest path in a socket address, without the terminating
// zero.
const longestPath = 107

// resolve returns the directory of the options, created and checked.
func resolve(opts []Option) (string, error) {
	var p place
	for i, o := range opts {
		if o == nil {
			return "", errNilOption(i)
		}
		o(&p)
	}
	if p.dir == "" {
		p.dir = userFolder()
	}
	dir, err := privateFolder(p.dir)
	if err != nil {
		return "", fmt.Errorf("socket directory: %w (%w)", err, ErrRefused)
	}
	return dir, nil
}

func checkName(name string) error {
	ok := len(name) >= 1 && len(name) <= 64 && name[0] != '.'
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if !ok {
		return fmt.Errorf("got the name %q, want 1 to 64 of A-Z a-z 0-9 . _ - with no point in front", name)
	}
	return nil
}

// locate returns the directory of the options and the socket of a name in it.
func locate(name string, opts []Option) (dir, path string, err error) {
	if dir, err = resolve(opts); err != nil {
		return "", "", err
	}
	if err := checkName(name); err != nil {
		return "", "", err
	}
	path = filepath.Join(dir, name+".sock")
	if len(path) > longestPath {
		return "", "", fmt.Errorf("got the socket path %s of %d bytes, want at most %d: choose a shorter directory", path, len(path), longestPath)
	}
	return dir, path, nil
}

// Listener accepts connections of processes that dial its name.
type Listener struct {
	o     *Owner
	l     *net.UnixListener
	lock  *fileLock
	name  string
	path  string
	ready chan *Peer
	ctx   context.Context // ends with Close
	end   context.CancelFunc
	once  sync.Once
	work  sync.WaitGroup

	mu       sync.Mutex
	greeting []*newcomer // in the order of arrival
}

// newcomer is a connection that has not sent HELLO yet.
type newcomer struct {
	s   *socket
	pid int
}

// handshakes is the number of connections of a listener that may be in their
// handshake at once.
const handshakes = 256

// Listen makes the owner reachable under a name. The error matches [ErrRefused]
// if another process has that name.
func (o *Owner) Listen(name string, opts ...Option) (*Listener, error) {
	if o.none() {
		return nil, fmt.Errorf("share listen: %w", errNoOwner)
	}
	l, err := o.listen(name, opts)
	if err != nil {
		return nil, fmt.Errorf("share listen: %w", err)
	}
	return l, nil
}

func (o *Owner) listen(name string, opts []Option) (*Listener, error) {
	dir, path, err := locate(name, opts)
	if err != nil {
		return nil, err
	}
	lock, err := takeLock(filepath.Join(dir, name+".lock"))
	for try := 0; err == nil && lock == nil && try < 5; try++ { // another process may hold the lock briefly to see whether the name is in use
		time.Sleep(10 * time.Millisecond)
		lock, err = takeLock(filepath.Join(dir, name+".lock"))
	}
	if err != nil {
		return nil, err
	}
	if lock == nil {
		return nil, fmt.Errorf("another process has the name %s in %s: %w", name, dir, ErrRefused)
	}
	os.Remove(path) // of a killed listener: this process has the lock, so no process listens there
	ul, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		lock.remove()
		return nil, err
	}
	ul.SetUnlinkOnClose(false) // Close does it while it has the lock
	l := &Listener{o: o, l: ul, lock: lock, name: name, path: path, ready: make(chan *Peer)}
	l.ctx, l.end = context.WithCancel(context.Background())
	if err := errors.Join(os.Chmod(path, 0o600), o.adopt(l)); err != nil {
		l.Close()
		return nil, err
	}
	l.work.Add(1)
	go l.serve()
	return l, nil
}

// Path returns the path of the socket.
func (l *Listener) Path() string {
	if l.none() {
		return ""
	}
	return l.path
}

func (l *Listener) serve() {
	defer l.work.Done()
	for {
		c, err := l.l.AcceptUnix()
		if err != nil {
			select {
			case <-l.ctx.Done():
				return
			case <-time.After(10 * time.Millisecond): // for instance, no descriptor is free; others may become free
				continue
			}
		}
		s, err := wrapSocket(c)
		if err != nil {
			continue
		}
		pid, err := s.sameUser()
		if err != nil {
			s.close()
			continue
		}
		n := &newcomer{s, pid}
		if gone := l.admit(n); gone != nil {
			gone.s.close()
		}
		l.work.Add(1)
		go func() {
			defer l.work.Done()
			l.greet(n)
		}()
	}
}

// admit adds a newcomer and returns the one that it replaces: the oldest
// newcomer of the process that has the most. Only silent connections remain
// newcomers for long, so neither many processes nor many connections keep
// others out.
func (l *Listener) admit(n *newcomer) (gone *newcomer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.greeting = append(l.greeting, n)
	if len(l.greeting) <= handshakes {
		return nil
	}
	of := map[int]int{}
	for _, g := range l.greeting {
		of[g.pid]++
	}
	worst := 0
	for i, g := range l.greeting {
		if of[g.pid] > of[l.greeting[worst].pid] {
			worst = i
		}
	}
	gone = l.greeting[worst]
	l.greeting = slices.Delete(l.greeting, worst, worst+1)
	return gone
}

// leave removes a newcomer from the list, unless it was replaced.
func (l *Listener) leave(n *newcomer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.greeting, n); i >= 0 {
		l.greeting = slices.Delete(l.greeting, i, i+1)
	}
}

// greet completes the handshake of a connection and passes the peer to Accept.
func (l *Listener) greet(n *newcomer) {
	// A connection that fails here ends, which tells the other end; no
	// goroutine of this process waits for it.
	p, err := l.o.connect(l.ctx, n.s, handshakeTime, true)
	l.leave(n)
	if err != nil {
		return
	}
	select {
	case l.ready <- p:
	case <-p.over:
		p.Close()
	case <-l.ctx.Done():
		p.Close()
	}
}

// Accept returns the next peer that has connected.
func (l *Listener) Accept(ctx context.Context) (*Peer, error) {
	if l.none() {
		return nil, fmt.Errorf("share accept: got no listener: it is %w", ErrClosed)
	}
	if ctx == nil {
		return nil, fmt.Errorf("share accept: %w", errNilContext)
	}
	select {
	case p := <-l.ready:
		return p, nil
	case <-l.ctx.Done():
		return nil, fmt.Errorf("share accept: listener %s: %w", l.name, ErrClosed)
	case <-ctx.Done():
		return nil, fmt.Errorf("share accept: %w", ended.Error(ctx))
	}
}

// Close ends the listener and removes the name. Accepted peers stay connected.
func (l *Listener) Close() error {
	if l.none() {
		return fmt.Errorf("share: close: got no listener: it is %w", ErrClosed)
	}
	l.once.Do(func() {
		l.end()
		l.o.disown(l)
		os.Remove(l.path)
		l.lock.remove()
		l.l.Close()
		l.work.Wait()
	})
	return nil
}

// Dial connects to the listener of a name.
func (o *Owner) Dial(ctx context.Context, name string, opts ...Option) (*Peer, error) {
	if o.none() {
		return nil, fmt.Errorf("share dial: %w", errNoOwner)
	}
	if ctx == nil {
		return nil, fmt.Errorf("share dial: %w", errNilContext)
	}
	p, err := o.dial(ctx, name, opts)
	if err != nil {
		return nil, fmt.Errorf("share dial: %w", err)
	}
	return p, nil
}

func (o *Owner) dial(ctx context.Context, name string, opts []Option) (*Peer, error) {
	dir, path, err := locate(name, opts)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unixpacket", path)
	if isNobody(err) {
		return nil, fmt.Errorf("no process listens to the name %s in %s: %w", name, dir, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	crashAt(21)
	s, err := wrapSocket(c.(*net.UnixConn))
	if err != nil {
		return nil, err
	}
	return o.connect(ctx, s, handshakeTime, false)
}

// Dial is [Owner.Dial] for a program without an owner. The tensors that it
// offers to the peer are in arenas of a new owner, which [Peer.Owner] returns.
func Dial(ctx context.Context, name string, opts ...Option) (*Peer, error) {
	o, err := NewOwner()
	if err != nil {
		return nil, err
	}
	p, err := o.Dial(ctx, name, opts...)
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return p, nil
}

// Name is a socket in the directory.
type Name struct {
	Name  string
	Stale bool // its listener was killed
}

// Names lists the names of the directory, and removes the files of killed
// listeners.
func Names(opts ...Option) ([]Name, error) {
	dir, err := resolve(opts)
	if err != nil {
		return nil, fmt.Errorf("share names: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("share names: %w", err)
	}
	var names []Name
	seen := map[string]bool{}
	for _, e := range entries {
		name, isSocket := strings.CutSuffix(e.Name(), ".sock")
		if !isSocket {
			var isLock bool
			if name, isLock = strings.CutSuffix(e.Name(), ".lock"); !isLock {
				continue
			}
		}
		if seen[name] || checkName(name) != nil {
			continue
		}
		seen[name] = true
		lock, err := takeLock(filepath.Join(dir, name+".lock"))
		if err != nil {
			return names, fmt.Errorf("share names: %w", err)
		}
		if lock != nil {
			os.Remove(filepath.Join(dir, name+".sock"))
			lock.remove()
		}
		names = append(names, Name{Name: name, Stale: lock != nil})
	}
	return names, nil
}
