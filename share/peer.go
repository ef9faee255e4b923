package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/internal/ended"
)

// handshakeTime is how long the other end may take to send HELLO, childTime the
// same for a process that is being started.
const (
	handshakeTime = 5 * time.Second
	childTime     = time.Minute
)

// Peer is a connection to another process. Tensors can be offered to it and
// received from it. Its methods may be called from any goroutine.
type Peer struct {
	o       *Owner
	s       *socket
	info    PeerInfo
	theirs  hello
	account *account // of the peer's process
	bounded bool     // the connection counts against the budget, because the other end has made it
	closing sync.Once

	// The state that the peer holds of this owner. The owner's mutex guards it.
	row    row
	maps   map[uint64]*mapping
	debtor *debtor // of the peer's process
	lost   bool    // disconnected: its leases are in quarantine
	gotEnd bool    // it has sent END: it opens no more allocations of this owner's process
	sent   map[Source]*sentEvent
	death  *os.File // readable when the process of a disconnected peer is dead; nil if that cannot be known

	// Sending. A packet is sent at once or, while the other end does not read,
	// queued.
	outMu   sync.Mutex
	scratch []byte
	queue   []queued
	flushed uint64 // packets that have left the queue
	queued  int    // bytes of queued packets except releases, whose number this end's credits bound
	outRoom reserve
	unsaid  atomic.Int32 // queued releases that were not sent
	revoke  revocation   // offers that the sending goroutine is to remove from the queue
	endSent bool         // no offer may follow
	shut    bool

	noEvents atomic.Bool // the peer cannot open events of this process

	reading reading

	mu       sync.Mutex // guards the fields below
	inbox    []arrival
	boxes    []arrival // the start of the inbox's array
	inline   int       // cost of the inline tensors in the inbox
	inRoom   reserve   // for inline
	arrived  chan struct{}
	room     chan struct{} // receives a token when the inbox has shrunk
	views    map[uint64]*view
	device   Device // of the last view of a device's memory
	events   map[uint32]gotEvent
	holding  map[uint64]*borrowed // leases of the peer that are not released yet, by serial
	bytes    uint64               // of holding
	spare    []*borrowed
	asks     map[uint32]*ask
	lastAsk  uint32
	sentEnd  bool
	ended    bool // the peer's side is over
	busy     int  // allocations of the peer's process are being opened or closed by so many goroutines
	closed   bool
	broken   atomic.Bool
	err      error // the reason once nothing more can be received; io.EOF after END
	over     chan struct{}
	overOnce sync.Once
	ctx      context.Context // ends when over is closed
	cancelFn context.CancelCauseFunc
	asking   chan struct{} // a token for each open question to the peer
	open     atomic.Int32  // open questions of the peer
}

// PeerInfo describes the process of a peer. PID and Command are labels from the
// time when it connected.
type PeerInfo struct {
	PID        int
	Command    string
	Instance   Instance
	Connection uint64 // number of the connection within the owner
}

const (
	maxQueued    = 4 << 20  // bytes of waiting answers; a peer that asks more and does not read is dropped
	maxInlineBox = 16 << 20 // cost of inline tensors that wait to be received; while there are more, nothing is read
	maxQuestions = 64       // that one end may have open at once
)

// connect performs the handshake and starts to read. It takes ownership of s.
// bounded is true if the other end made the connection.
func (o *Owner) connect(ctx context.Context, s *socket, timeout time.Duration, bounded bool) (*Peer, error) {
	p, err := o.greet(ctx, s, timeout, bounded)
	if err != nil {
		s.close()
		return nil, err
	}
	go p.background()
	return p, nil
}

func (o *Owner) greet(ctx context.Context, s *socket, timeout time.Duration, bounded bool) (*Peer, error) {
	pid, err := s.sameUser()
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	s.setDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { s.setDeadline(time.Now()) })
	defer stop()
	mine := hello{version: version, instance: instance(), boot: bootID(), maxLeases: o.maxLeases, maxBytes: o.maxBytes, abilities: capDevices | capAllocations}
	if err := s.send(mine.append(header{kind: kindHello}.append(nil)), -1, true); err != nil {
		return nil, fmt.Errorf("send HELLO: %w", err)
	}
	crashAt(22)
	packet := make([]byte, maxPacket)
	n, fd, _, err := s.receive(packet)
	closeDescriptor(fd)
	if err != nil {
		if ctx.Err() != nil {
			err = ended.Error(ctx)
		} else if errors.Is(err, io.EOF) {
			err = fmt.Errorf("process %d hung up: %w", pid, ErrClosed)
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("process %d said nothing for %s: %w", pid, timeout, err)
		}
		return nil, fmt.Errorf("wait for HELLO: %w", err)
	}
	h, body, err := parseHeader(packet[:n])
	if err != nil {
		return nil, err
	}
	if h.kind != kindHello {
		return nil, malformed("got %s first, want HELLO", h.kind)
	}
	theirs, err := parseHello(body)
	if err != nil {
		return nil, err
	}
	if !stop() {
		return nil, fmt.Errorf("wait for HELLO: %w", ended.Error(ctx))
	}
	s.setDeadline(time.Time{})
	return o.newPeer(s, theirs, PeerInfo{PID: pid, Command: commandOf(pid), Instance: theirs.instance}, bounded)
}

func (o *Owner) newPeer(s *socket, theirs hello, info PeerInfo, bounded bool) (*Peer, error) {
	p := &Peer{o: o, s: s, theirs: theirs, info: info, bounded: bounded, row: newRow(), maps: map[uint64]*mapping{}, arrived: make(chan struct{}, 1), room: make(chan struct{}, 1),
		views: map[uint64]*view{}, holding: map[uint64]*borrowed{}, asks: map[uint32]*ask{}, over: make(chan struct{}), asking: make(chan struct{}, maxQuestions)}
	p.reading.init()
	p.ctx, p.cancelFn = context.WithCancelCause(context.Background())
	if err := p.openAccount(); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		p.closeAccount()
		return nil, fmt.Errorf("the owner is %w", ErrClosed)
	}
	o.connections++
	p.info.Connection = o.connections
	o.peers[p] = struct{}{}
	p.debtor = o.debtorOf(p.account.id)
	if o.device != nil { // while the process certainly exists
		p.death = s.process(info.PID)
	}
	return p, nil
}

// openAccount charges the connection to the peer's process; closeAccount undoes
// that.
func (p *Peer) openAccount() error {
	p.account = processBudget().open(processOf(p.info.PID, p.info.Instance))
	if !p.bounded {
		return nil
	}
	err := processBudget().charge(p.account, connections, 1)
	if err != nil {
		processBudget().close(p.account)
	}
	return err
}

func (p *Peer) closeAccount() {
	if p.bounded {
		processBudget().giveBack(p.account, connections, 1)
	}
	processBudget().close(p.account)
}

// closeSocket closes the socket and its account.
func (p *Peer) closeSocket() {
	p.closing.Do(func() {
		p.s.close()
		p.closeAccount()
	})
}

// Info describes the process of the peer.
func (p *Peer) Info() PeerInfo {
	if p.none() {
		return PeerInfo{}
	}
	return p.info
}

// Owner returns the owner in whose arenas this end's offers to the peer are.
func (p *Peer) Owner() *Owner {
	if p.none() {
		return nil
	}
	return p.o
}

// Done returns a channel that is closed when nothing more can be offered to the
// peer or received from it: it ended, it died, or Close was called. Tensors
// that were received stay valid. Except after Close, Receive still returns
// tensors that arrived before.
func (p *Peer) Done() <-chan struct{} {
	if p.none() {
		return over
	}
	return p.over
}

// Err returns the reason once Done is closed: [io.EOF] after an orderly end by
// the peer, [ErrClosed] after Close or a death, [ErrPeer] after a breach of the
// protocol. Before, it is nil.
func (p *Peer) Err() error {
	if p.none() {
		return errNoPeer
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// finish records why nothing more will be received, and wakes all waiting
// goroutines. The first reason stays.
func (p *Peer) finish(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	p.mu.Unlock()
	p.overOnce.Do(func() {
		close(p.over)
		p.interrupt()
		p.cancelFn(err)
		p.failAsks()
	})
}

// Close ends the connection. Tensors that the program has not received yet are
// released. Received tensors stay valid and keep the socket open until they are
// released, and tensors that the peer holds stay valid until it releases them.
// Close trusts the peer to do that; see [Peer.Disconnect]. A peer whose process
// has ended closes by itself, but Receive still returns the tensors that
// arrived before.
func (p *Peer) Close() error {
	if p.none() {
		return fmt.Errorf("share: close: %w", errNoPeer)
	}
	p.finish(fmt.Errorf("the connection is %w", ErrClosed))
	p.closeDown()
	return nil
}

// closeDown performs the orderly end of a connection.
func (p *Peer) closeDown() {
	p.mu.Lock()
	p.closed = true
	waiting := p.inbox
	p.inbox, p.inline = nil, 0
	p.inRoom.empty(p.account)
	p.mu.Unlock()
	for _, a := range waiting {
		p.giveUp(a.lease)
	}
	p.sendEnd()
	p.settle()
}

// sendEnd sends END, once.
func (p *Peer) sendEnd() {
	p.mu.Lock()
	first := !p.sentEnd
	p.sentEnd = true
	p.mu.Unlock()
	if first {
		p.reply(header{kind: kindEnd}, nil)
	}
}

// settle shuts the connection down as far as is permitted: for writing once
// this end holds nothing of the peer, and completely once the peer's side is
// over, too.
func (p *Peer) settle() {
	p.mu.Lock()
	idle := p.sentEnd && len(p.holding) == 0 && p.busy == 0
	ended := p.ended
	var list []ending
	if idle {
		if list = p.idleAllocations(); len(list) > 0 {
			p.busy++
		}
	}
	p.mu.Unlock()
	if !idle { // the last lease, or the call that is busy, calls settle again
		return
	}
	if len(list) > 0 {
		p.unmap(list)
		p.mu.Lock()
		p.busy--
		p.mu.Unlock()
		p.settle()
		return
	}
	p.outMu.Lock()
	if len(p.queue) > 0 && !ended { // the goroutine that empties the queue calls settle again
		p.outMu.Unlock()
		return
	}
	if !p.shut {
		p.shut = true
		p.s.shutWrite()
	}
	p.outMu.Unlock()
	if ended {
		p.closeSocket()
	}
}

func (p *Peer) who() string { return fmt.Sprintf("process %d (%s)", p.info.PID, p.info.Command) }

// end handles the peer's end of file: all leases of the peer end, unless it was
// disconnected; then they end with its process.
func (p *Peer) end() {
	death := p.deathToAwait()
	if death == nil {
		p.dropRow()
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	if p.s.hungUp() { // no process is left to receive releases
		p.closeSocket()
	}
	p.sendEnd()
	if death == nil {
		p.leaveOwner()
	}
	p.settle()
	p.unmapIdle()
	p.closeEvents()
	if death != nil {
		awaitDeath(death)
		p.dropRow()
		p.leaveOwner()
	}
}

// leaveOwner removes the peer, of which nothing is left, from the owner's list.
func (p *Peer) leaveOwner() {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	delete(p.o.peers, p)
	if d := p.debtor; d.peers == 1 {
		delete(p.o.debtors, d.id)
	} else {
		d.peers--
	}
	if p.death != nil {
		p.death.Close()
	}
}

// poison ends a connection whose peer broke the protocol. Its row stays until
// the kernel reports that the peer's side is over.
func (p *Peer) poison(err error) {
	p.finish(fmt.Errorf("%s: %w (%w)", p.who(), err, ErrClosed))
	p.broken.Store(true)
	p.sendEnd()
	p.settle()
}

// Pair returns the two ends of a new connection, for [Owner.Attach] in two
// owners.
func Pair() (*os.File, *os.File, error) {
	a, b, err := pair()
	if err != nil {
		return nil, nil, fmt.Errorf("share: %w", err)
	}
	return a, b, nil
}

// childVar is the environment variable with the number of the descriptor that
// Command passes.
const childVar = "TENURE_SHARE_FD"

// Command passes one end of a new connection to a command that was not started
// yet, for [Owner.Parent] in it, or tenure.parent() in Python, and returns the
// other end for [Owner.Attach]. After the start, close the last of
// cmd.ExtraFiles: while this process has the child's end open, the kernel does
// not report the child's death.
func Command(cmd *exec.Cmd) (*os.File, error) {
	if cmd == nil {
		return nil, fmt.Errorf("share: got no command, want one that is to be started: %w", os.ErrInvalid)
	}
	ours, theirs, err := pair()
	if err != nil {
		return nil, fmt.Errorf("share: %w", err)
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, childVar+"="+strconv.Itoa(2+len(cmd.ExtraFiles)))
	return ours, nil
}

// Attach makes a peer of one end of a socket pair, of which it takes ownership.
// It waits for the other end's HELLO for up to a minute, because the process at
// the other end may still be starting.
func (o *Owner) Attach(ctx context.Context, f *os.File) (*Peer, error) {
	if o.none() {
		return nil, fmt.Errorf("share attach: %w", errNoOwner)
	}
	if ctx == nil {
		return nil, fmt.Errorf("share attach: %w", errNilContext)
	}
	s, err := newSocket(f)
	if err != nil {
		return nil, fmt.Errorf("share attach: %w", err)
	}
	p, err := o.connect(ctx, s, childTime, false)
	if err != nil {
		return nil, fmt.Errorf("share attach: %w", err)
	}
	return p, nil
}

// Parent attaches to the process that started this one with [Command].
func (o *Owner) Parent(ctx context.Context) (*Peer, error) {
	if o.none() { // before the descriptor is taken
		return nil, fmt.Errorf("share parent: %w", errNoOwner)
	}
	if ctx == nil {
		return nil, fmt.Errorf("share parent: %w", errNilContext)
	}
	text := os.Getenv(childVar)
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("share parent: got %s=%q, want the number of a descriptor: %w", childVar, text, ErrNotFound)
	}
	closeOnExec(fd)
	os.Unsetenv(childVar) // children of this process have another parent
	return o.Attach(ctx, os.NewFile(uintptr(fd), "share"))
}
