package share

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// The test binary is also the processes that its tests start and kill: roleVar
// says which. A role reports in lines on its standard output; "violation" and
// "leak" are what no process may ever say.

const roleVar = "TENURE_SHARE_ROLE"

var roles = map[string]func() error{"owner": ownerRole, "consumer": consumerRole, "lender": lenderRole}

func TestMain(m *testing.M) {
	role, isRole := roles[os.Getenv(roleVar)]
	if !isRole {
		os.Exit(m.Run())
	}
	if err := role(); err != nil {
		say("failed: %v", err)
		os.Exit(1)
	}
	say("clean")
}

var saying sync.Mutex

func say(format string, args ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Printf(format+"\n", args...)
}

// setting is a number that the parent passes.
func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("TENURE_SHARE_" + name)); err == nil {
		return n
	}
	return otherwise
}

// ownerRole serves the name "kill" in TENURE_SHARE_DIR: each round it builds
// stamped tensors, offers each to every peer and lets go of it. A line "go N"
// on its input starts it with N peers, "stop" ends it.
func ownerRole() error {
	o, err := NewOwner(WithLimit(64 << 20))
	if err != nil {
		return err
	}
	l, err := o.Listen("kill")
	if err != nil {
		return err
	}
	s := &stamper{o: o, random: rand.New(rand.NewPCG(1, uint64(os.Getpid())))}
	go s.accept(l)
	say("ready")
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if n, isGo := strings.CutPrefix(orders.Text(), "go "); isGo {
			want, _ := strconv.Atoi(n)
			s.awaitPeers(want)
			if err := s.rounds(setting("ROUNDS", 6)); err != nil {
				return err
			}
			say("rounds done")
		} else if orders.Text() == "run" {
			s.awaitPeers(1)
			stop := make(chan struct{})
			go func() {
				orders.Scan()
				close(stop)
			}()
			if err := s.runUntil(stop); err != nil {
				return err
			}
			break
		} else {
			break
		}
	}
	l.Close()
	o.Close()
	say("offers %d", s.offers)
	return o.checkEmpty()
}

// checkEmpty waits until no lease is left and otherwise returns an error that
// lists them.
func (o *Owner) checkEmpty() error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		s := o.State()
		o.mu.Lock()
		peers := len(o.peers)
		o.mu.Unlock()
		maps, fds := arenaMaps(), len(ownDescriptors())
		if s.Bytes.Used == 0 && len(s.Leases) == 0 && len(s.Arenas) == 0 && peers == 0 && maps == 0 && fds == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			say("leak: %d bytes used, %d leases, %d arenas, %d peers, %d maps, descriptors %v", s.Bytes.Used, len(s.Leases), len(s.Arenas), peers, maps, ownDescriptors())
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// stamper offers tensors whose every element is the number in their label.
type stamper struct {
	o      *Owner
	random *rand.Rand
	stamp  uint32
	offers int

	mu    sync.Mutex
	peers []*Peer
	seen  int
}

func (s *stamper) accept(l *Listener) {
	for {
		p, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		s.mu.Lock()
		s.peers = append(s.peers, p)
		s.seen++
		s.mu.Unlock()
	}
}

func (s *stamper) awaitPeers(n int) {
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		seen := s.seen
		s.mu.Unlock()
		if seen >= n {
			return
		}
	}
}

func (s *stamper) rounds(n int) error {
	for range n {
		for range 4 {
			if err := s.offer(); err != nil {
				return err
			}
		}
		// Between rounds nothing is out, unless a process holds a ticket for
		// one that is dead: so arenas are freed too.
		for until := time.Now().Add(300 * time.Millisecond); len(s.o.Outstanding()) > 0 && time.Now().Before(until); time.Sleep(200 * time.Microsecond) {
		}
		s.o.Collect()
	}
	return nil
}

// runUntil offers without a pause, and collects now and then.
func (s *stamper) runUntil(stop <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := s.offer(); err != nil {
			return err
		}
		if i%64 == 0 {
			s.o.Collect()
		}
	}
}

// offer builds one tensor and offers it to all.
func (s *stamper) offer() error {
	s.stamp++
	n := 1 << 12 // often, so that a tensor is often received into one of its own shape
	if s.random.IntN(2) == 0 {
		n = 1 + s.random.IntN(1<<14)
	}
	x, err := tensor.Make(s.o, dtype.U32, shape.MustOf(n))
	if errors.Is(err, tensor.ErrLimit) { // consumers hold it all; some of them may be stopped in the middle of dying
		time.Sleep(time.Millisecond)
		return nil
	}
	if err != nil {
		return err
	}
	w, err := tensor.Write[uint32](x)
	if err != nil {
		return err
	}
	for i := range w.Data {
		w.Data[i] = s.stamp
	}
	w.Release()
	s.mu.Lock()
	alive := s.peers[:0]
	for _, p := range s.peers {
		if !p.isOver() {
			alive = append(alive, p)
		}
	}
	s.peers = alive
	to := append([]*Peer{}, alive...)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// A peer may die at any moment; what that does to an offer is an error, and
	// not the others'.
	err = s.o.Offer(ctx, x, to, Label(strconv.Itoa(int(s.stamp))), WithoutCopy())
	s.offers += len(to)
	_ = x.Release()
	crashAt(14)
	if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNoCredit) {
		return err
	}
	return nil
}

// consumerRole receives, looks at every element at once and again before it
// lets go, and holds a few tensors at a time. With TENURE_SHARE_FORWARD it asks
// for tickets and says them; lines on its input are tickets to claim.
func consumerRole() error {
	ctx := context.Background()
	p, err := Dial(ctx, "kill")
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrClosed) {
		say("too late: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	say("connected")
	c := &checker{p: p, random: rand.New(rand.NewPCG(2, uint64(os.Getpid()))), forward: setting("FORWARD", 0) > 0}
	go c.claimAll()
	for {
		r, err := c.receive(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			c.releaseAll("when nothing comes")
			continue
		}
		if err != nil {
			c.releaseAll("after the owner's end")
			if !errors.Is(err, io.EOF) && !errors.Is(err, ErrClosed) {
				return err
			}
			break
		}
		c.take(ctx, r)
	}
	p.Close()
	c.claiming.Lock() // a claim that is under way fails now or is checked
	defer c.claiming.Unlock()
	deadline := time.Now().Add(5 * time.Second)
	for arenaMaps() > 0 || len(ownDescriptors()) > 0 {
		if time.Now().After(deadline) {
			say("leak: after the end %d arenas are mapped, descriptors %v are open", arenaMaps(), ownDescriptors())
			break
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

type checker struct {
	p        *Peer
	random   *rand.Rand
	forward  bool
	held     []*Received
	spare    []*Received // to receive into
	claiming sync.Mutex
}

func (c *checker) take(ctx context.Context, r *Received) {
	check(r, "on receipt")
	if c.forward && c.random.IntN(3) == 0 {
		if ticket, err := r.Ticket(ctx); err == nil {
			say("ticket %s", ticket)
		} else if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNoCredit) {
			say("failed: ticket: %v", err)
		}
	}
	c.held = append(c.held, r)
	for len(c.held) > 3 || len(c.held) > 0 && c.random.IntN(2) == 0 {
		i := c.random.IntN(len(c.held))
		check(c.held[i], "before its release")
		_ = c.held[i].Tensor.Release()
		c.spare = append(c.spare, c.held[i])
		c.held = append(c.held[:i], c.held[i+1:]...)
	}
}

// receive waits a moment only if tensors are held.
func (c *checker) receive(ctx context.Context) (*Received, error) {
	if len(c.held) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*time.Millisecond)
		defer cancel()
	}
	if len(c.spare) == 0 || c.random.IntN(4) == 0 {
		return c.p.Receive(ctx)
	}
	r := c.spare[len(c.spare)-1]
	if err := c.p.ReceiveInto(ctx, r); err != nil {
		return nil, err
	}
	c.spare = c.spare[:len(c.spare)-1]
	return r, nil
}

func (c *checker) releaseAll(when string) {
	for _, r := range c.held {
		check(r, when)
		_ = r.Tensor.Release()
	}
	c.held = nil
}

func (c *checker) claimAll() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		ticket, err := ParseTicket(lines.Text())
		if err != nil {
			say("failed: %v", err)
			continue
		}
		c.claiming.Lock()
		r, err := c.p.Claim(context.Background(), ticket)
		switch {
		case err == nil:
			check(r, "claimed")
			_ = r.Tensor.Release()
			say("claimed")
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNoCredit):
			say("failed: claim: %v", err)
		}
		c.claiming.Unlock()
	}
}

// check says a violation unless every element of a tensor is its stamp.
func check(r *Received, when string) {
	want, err := strconv.ParseUint(r.Label, 10, 32)
	v, err2 := tensor.Read[uint32](r.Tensor)
	if err = errors.Join(err, err2); err != nil {
		say("failed: %v", err)
		return
	}
	defer v.Release()
	for i, got := range v.Data {
		if got != uint32(want) {
			say("violation: %s: element %d of %d is %#x, want %#x", when, i, len(v.Data), got, want)
			return
		}
	}
}
