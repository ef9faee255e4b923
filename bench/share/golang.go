package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// The packets of a bare round trip are as long as an offer and its release.
const (
	offerBytes   = 8 + 256
	releaseBytes = 8 + 8
)

// The first argument of a consumer's process.
const (
	consumeEcho  = "consume-echo"
	consumeShare = "consume-share"
	consumeHold  = "consume-hold"
)

// consume makes this process a consumer if it was started as one.
func consume(what string) bool {
	var err error
	switch what {
	case consumeEcho:
		err = echo()
	case consumeShare:
		err = receiveAll()
	case consumeHold:
		err = receiveAndHold()
	default:
		return false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, what+":", err)
		os.Exit(1)
	}
	return true
}

// taken is where timed notes its figures: memory that is there before, so that
// no page of it is counted as a fault. A consumer has none: it would double
// what there is in its heap.
var taken = sync.OnceValue(func() []int64 {
	all := make([]int64, 1<<18)
	for i := range all {
		all[i] = 1
	}
	return all
})

// timed calls handOver until n or the time is reached.
func timed(n int, idle, limit time.Duration, handOver func() error) ([]int64, error) {
	all := taken()[:0]
	for end := time.Now().Add(limit); len(all) < min(n, cap(all)) && (len(all) == 0 || time.Now().Before(end)); {
		if idle > 0 {
			time.Sleep(idle)
		}
		start := time.Now()
		if err := handOver(); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start).Nanoseconds())
	}
	return all, nil
}

// bare is a round trip of two packets.
type bare struct {
	conn net.Conn
	cmd  *exec.Cmd
}

func startBare(ctx context.Context, self string) (session, error) {
	ours, theirs, err := share.Pair()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, consumeEcho)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	conn, err := net.FileConn(ours)
	return &bare{conn, cmd}, errors.Join(err, ours.Close(), theirs.Close())
}

func (b *bare) turn(_ context.Context, n int, idle, limit time.Duration) ([]int64, error) {
	packet, answer := make([]byte, offerBytes), make([]byte, releaseBytes)
	send := func() error {
		_, err := b.conn.Write(packet)
		return err
	}
	there := func() error {
		if err := send(); err != nil {
			return err
		}
		_, err := b.conn.Read(answer)
		return err
	}
	if idle == 0 {
		return timed(n, 0, limit, there)
	}
	late := false // an answer is out
	all, err := timed(n, idle, limit, func() error {
		if late {
			if _, err := b.conn.Read(answer); err != nil { // it has been there for long
				return err
			}
		}
		late = true
		if err := there(); err != nil {
			return err
		}
		return send() // as a lender does
	})
	if late && err == nil {
		_, err = b.conn.Read(answer)
	}
	return all, err
}

func (b *bare) processes() []int { return []int{os.Getpid(), b.cmd.Process.Pid} }
func (b *bare) close() error     { return errors.Join(b.conn.Close(), b.cmd.Wait()) }

func echo() error {
	file := os.NewFile(3, "socket")
	conn, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	packet, answer := make([]byte, offerBytes), make([]byte, releaseBytes)
	for {
		if _, err := conn.Read(packet); errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := conn.Write(answer); err != nil {
			return err
		}
	}
}

// lender offers one tensor again and again to a consumer that will hold one at
// a time: an offer gets through when the one before it was released.
type lender struct {
	owner *share.Owner
	peer  *share.Peer
	x     *tensor.Tensor
	cmd   *exec.Cmd
}

func startLender(ctx context.Context, cmd *exec.Cmd, size int) (_ session, err error) {
	l := &lender{cmd: cmd}
	if l.owner, err = share.NewOwner(); err != nil {
		return nil, err
	}
	if l.peer, err = spawn(ctx, l.owner, cmd); err != nil {
		return nil, err
	}
	s, err := shape.Of(size)
	if err != nil {
		return nil, err
	}
	l.x, err = tensor.Make(l.owner, dtype.U8, s)
	return l, err
}

// spawn starts a command as a peer of the owner.
func spawn(ctx context.Context, owner *share.Owner, cmd *exec.Cmd) (*share.Peer, error) {
	cmd.Stderr = os.Stderr
	ours, err := share.Command(cmd)
	if err != nil {
		return nil, err
	}
	err = cmd.Start()
	for _, f := range cmd.ExtraFiles {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, err
	}
	return owner.Attach(ctx, ours)
}

func (l *lender) turn(ctx context.Context, n int, idle, limit time.Duration) ([]int64, error) {
	offer := func() error { return l.peer.Offer(ctx, l.x) }
	if idle == 0 {
		if err := offer(); err != nil { // the first finds the consumer without one
			return nil, err
		}
		return timed(n, 0, limit, offer)
	}
	return timed(n, idle, limit, func() error {
		if err := offer(); err != nil {
			return err
		}
		return offer() // waits for the release of the other, and is one more send
	})
}

func (l *lender) processes() []int { return []int{os.Getpid(), l.cmd.Process.Pid} }

func (l *lender) close() error {
	err := errors.Join(l.x.Release(), l.peer.Close())
	err = errors.Join(err, l.cmd.Wait(), l.owner.Close())
	l.owner.Collect()
	return err
}

func receiveAll() error {
	ctx := context.Background()
	owner, err := share.NewOwner(share.WithCredits(1, math.MaxInt64))
	if err != nil {
		return err
	}
	peer, err := owner.Parent(ctx)
	if err != nil {
		return err
	}
	var r share.Received
	for {
		if err := peer.ReceiveInto(ctx, &r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		v, err := tensor.Read[uint8](r.Tensor)
		if err != nil {
			return err
		}
		if v.Data[0] != v.Data[len(v.Data)-1] {
			err = fmt.Errorf("got %d and %d, want the same", v.Data[0], v.Data[len(v.Data)-1])
		}
		v.Release()
		if err != nil {
			return err
		}
		if err := r.Tensor.Release(); err != nil {
			return err
		}
	}
}

// receiveAndHold says on standard output when it holds as many tensors as it is
// told on standard input.
func receiveAndHold() error {
	ctx := context.Background()
	owner, err := share.NewOwner(share.WithCredits(1<<20, math.MaxInt64))
	if err != nil {
		return err
	}
	peer, err := owner.Parent(ctx)
	if err != nil {
		return err
	}
	own := make([]byte, 64<<20) // so that there is something to tear down
	for i := range own {
		own[i] = byte(i)
	}
	want := 0
	if _, err := fmt.Fscan(os.Stdin, &want); err != nil {
		return err
	}
	held := make([]*share.Received, want)
	for i := range held {
		if held[i], err = peer.Receive(ctx); err != nil {
			return err
		}
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the other end closes it, or a kill
	for _, r := range held {
		if err := r.Tensor.Release(); err != nil {
			return err
		}
	}
	return nil
}

// holder is a process that holds tensors.
type holder struct {
	cmd  *exec.Cmd
	peer *share.Peer
	in   io.WriteCloser
	out  *bufio.Reader
}

// startHolder starts one by its command; files are inherited by it.
func startHolder(ctx context.Context, cmd *exec.Cmd, owner *share.Owner, files ...*os.File) (*holder, error) {
	h := &holder{cmd: cmd}
	h.cmd.ExtraFiles = files
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.in, h.out = in, bufio.NewReader(out)
	h.peer, err = spawn(ctx, owner, h.cmd)
	return h, err
}

// hold waits until the process holds n tensors, which the caller offers.
func (h *holder) hold(n int, offer func() error) error {
	if _, err := fmt.Fprintln(h.in, n); err != nil {
		return err
	}
	for range n {
		if err := offer(); err != nil {
			return err
		}
	}
	return readHeld(h.out)
}

// readHeld waits until a process says that all that it was told of is held.
func readHeld(out *bufio.Reader) error {
	line, err := out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "held" {
		err = fmt.Errorf("got %q, want held", line)
	}
	return err
}
