package cuda_test

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
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// The test binary is also the processes that its tests start and kill: roleVar
// says which. Each has a driver of its own. A role reports in lines on its
// standard output; "violation" and "leak" are what no process may ever say.

const roleVar = "TENURE_CUDA_ROLE"

var roles = map[string]func(*side) error{"owner": ownerRole, "consumer": consumerRole, "liar": liarRole, "reader": readerRole, "maker": makerRole, "waiter": waiterRole}

func TestMain(m *testing.M) {
	role, isRole := roles[os.Getenv(roleVar)]
	if !isRole {
		os.Exit(m.Run())
	}
	s, err := newSide()
	if err == nil {
		err = errors.Join(role(s), s.close())
	}
	if err != nil {
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
	if n, err := strconv.Atoi(os.Getenv("TENURE_CUDA_" + name)); err == nil {
		return n
	}
	return otherwise
}

// side is the driver and the device of a process.
type side struct {
	m      *fake.Machine // nil for the computer's driver
	c      *cuda.Driver
	d      *cuda.Device
	random *rand.Rand
	drawn  sync.Mutex // guards random: two goroutines of a consumer draw
	code   *cuda.Module
	fill   *cuda.Function
}

func newSide() (s *side, err error) {
	s = &side{random: rand.New(rand.NewPCG(uint64(os.Getpid()), 1))}
	if setting("REAL", 0) > 0 {
		s.c, err = cuda.Open()
	} else {
		s.m = fake.New(fake.Config{Mode: fake.Mode(setting("MODE", int(fake.Random))), Seed: uint64(os.Getpid()), NoIPC: setting("NOIPC", 0) > 0, Idle: 200 * time.Microsecond, NoRaces: true})
		s.c, err = cuda.New(s.m)
	}
	if err != nil {
		return nil, err
	}
	if s.d, err = s.c.Device(0); err != nil {
		return nil, err
	}
	return s, nil
}

// close ends the device and reports what is left of it.
func (s *side) close() error {
	if s.code != nil {
		_ = s.code.Close()
	}
	err := s.d.Close()
	for until := time.Now().Add(5 * time.Second); err != nil && time.Now().Before(until); err = s.d.Close() {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		say("leak: %v", err)
		return nil
	}
	if s.m == nil {
		return nil
	}
	for _, l := range s.m.Live() {
		say("leak: %s", l)
	}
	return nil
}

// reports says what the machine noticed. After the death of another process,
// bytes that it did not write are no fault of this one.
func (s *side) reports(orphaned bool) {
	if s.m == nil {
		return
	}
	for _, r := range s.m.TakeReports() {
		if !orphaned || r.Kind != fake.Unwritten {
			say("violation: %s: %s", r.Kind, r.Text)
		}
	}
}

// stampTensor fills a tensor of the owner's arena, on the stream.
func (s *side) stampTensor(on *cuda.Stream, x *tensor.Tensor, v uint32) error {
	if s.fill == nil {
		var err error
		if s.code, err = s.d.Compile(drivertest.PTX); err != nil {
			return err
		}
		if s.fill, err = s.code.Function("fill"); err != nil {
			return err
		}
	}
	n := x.NumElements()
	return on.Launch(s.fill, cuda.Dim{X: (n + 63) / 64}, cuda.Dim{X: 64}, 0, cuda.Out(x), cuda.Value(v), cuda.Value(uint32(n)))
}

// ownerRole serves the name "kill": each round it makes stamped tensors on one
// of its streams, offers each to every peer and lets go of it. A line "go N" on
// its input starts it with N peers, "run" makes it work until the next line,
// which ends it.
func ownerRole(s *side) error {
	o, err := share.NewOwner(share.OnDevice(s.d.Memory()), share.WithLimit(64<<20), share.InPlace())
	if err != nil {
		return err
	}
	lib, err := newLibrary(s.m, 3)
	if err != nil {
		return err
	}
	l, err := o.Listen("kill")
	if err != nil {
		return err
	}
	w := &stamper{side: s, o: o, lib: lib, foreign: setting("FOREIGN", 50)}
	for range 3 {
		on, err := s.d.NewStream()
		if err != nil {
			return err
		}
		defer on.Close()
		w.streams = append(w.streams, on)
	}
	go w.accept(l)
	say("ready")
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		n, isGo := strings.CutPrefix(orders.Text(), "go ")
		if orders.Text() != "run" && !isGo {
			break
		}
		want, _ := strconv.Atoi(n)
		w.awaitPeers(max(want, 1))
		if isGo {
			err = w.rounds(setting("ROUNDS", 6))
			say("rounds done")
		} else {
			stop := make(chan struct{})
			go func() {
				orders.Scan()
				close(stop)
			}()
			err = w.runUntil(stop)
			break
		}
		if err != nil {
			return err
		}
	}
	w.releaseKept()
	l.Close()
	o.Close()
	say("offers %d", w.offers)
	checkEmpty(o)
	if err := lib.close(); err != nil {
		say("leak: %v", err)
	}
	s.reports(false)
	return err
}

// checkEmpty waits until no lease is left.
func checkEmpty(o *share.Owner) {
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		st := o.State()
		if st.Bytes.Used == 0 && len(st.Leases) == 0 && len(st.Arenas) == 0 {
			return
		}
		if time.Now().After(until) {
			say("leak: %d bytes used, %d leases, %d arenas", st.Bytes.Used, len(st.Leases), len(st.Arenas))
			return
		}
	}
}

// stamper offers tensors whose every element is the number in their label.
type stamper struct {
	*side
	o       *share.Owner
	lib     *library
	foreign int              // of 100 tensors, those of the library
	kept    []*tensor.Tensor // of the library
	streams []*cuda.Stream
	stamp   uint32
	offers  int

	mu    sync.Mutex
	peers []*share.Peer
	seen  int
}

func (s *stamper) accept(l *share.Listener) {
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
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
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
		for until := time.Now().Add(300 * time.Millisecond); len(s.o.Outstanding()) > 0 && time.Now().Before(until); time.Sleep(200 * time.Microsecond) {
		}
		s.o.Collect()
	}
	return nil
}

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

// alive returns the peers whose connection is not over.
func (s *stamper) alive() (list []*share.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		select {
		case <-p.Done():
		default:
			list = append(list, p)
		}
	}
	s.peers = list
	return append([]*share.Peer{}, list...)
}

// tensor makes a stamped one, of the library or in the owner's arenas.
func (s *stamper) tensor(foreign bool) (*tensor.Tensor, error) {
	if foreign {
		return s.lib.tensor(s.stamp, 1+s.draw(placeBytes/4))
	}
	x, err := tensor.Make(s.o, dtype.U32, shape.MustOf(1+s.draw(1<<s.draw(11))))
	if err != nil {
		return nil, err
	}
	if err := s.stampTensor(s.streams[s.draw(len(s.streams))], x, s.stamp); err != nil {
		_ = x.Release()
		return nil, err
	}
	return x, nil
}

// keep releases the library's tensors in turn, so that a segment may have
// tensors whose leases end while others of it are held here.
func (s *stamper) keep(x *tensor.Tensor) {
	s.kept = append(s.kept, x)
	if i := s.draw(len(s.kept)); len(s.kept) > 2 {
		_ = s.kept[i].Release()
		s.kept = append(s.kept[:i], s.kept[i+1:]...)
	}
}

func (s *stamper) releaseKept() {
	for _, x := range s.kept {
		_ = x.Release()
	}
	s.kept = nil
}

// offer makes one tensor and offers it to all. Half of the offers wait for the
// work. A label that ends in "w" says so, and that the tensor outlives its
// owner.
func (s *stamper) offer() error {
	s.stamp++
	foreign := s.draw(100) < s.foreign
	x, err := s.tensor(foreign)
	if errors.Is(err, tensor.ErrLimit) { // consumers hold it all
		time.Sleep(time.Millisecond)
		return nil
	}
	if err != nil {
		return err
	}
	if foreign {
		defer s.keep(x)
	} else {
		defer x.Release()
	}
	label, opts := strconv.Itoa(int(s.stamp)), []share.OfferOption{}
	if !foreign || setting("NOIPC", 0) == 0 {
		opts = append(opts, share.WithoutCopy())
	}
	if s.draw(2) == 0 {
		opts = append(opts, share.BeforeWork())
	} else if !foreign {
		label += "w"
	}
	to := s.alive()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s.offers += len(to)
	err = s.o.Offer(ctx, x, to, append(opts, share.Label(label))...)
	if err != nil && !errors.Is(err, share.ErrClosed) && !errors.Is(err, share.ErrNoCredit) {
		return err
	}
	return nil
}

// consumerRole receives, reads every tensor on one of two streams at once and
// again before it lets go, which it does while the work may be under way.
func consumerRole(s *side) error {
	o, err := share.NewOwner(share.WithCredits(64, 1<<30))
	if err != nil {
		return err
	}
	ctx := context.Background()
	p, err := o.Dial(ctx, "kill")
	if errors.Is(err, share.ErrNotFound) || errors.Is(err, share.ErrClosed) {
		say("too late: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	say("connected")
	c := &checker{side: s, p: p, forward: setting("FORWARD", 0) > 0}
	for range 2 {
		on, err := s.d.NewStream()
		if err != nil {
			return err
		}
		defer on.Close()
		c.streams = append(c.streams, on)
	}
	go c.claimAll()
	for {
		r, err := c.receive(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			c.releaseAll("when nothing comes")
			continue
		}
		if err != nil {
			c.releaseAll("after the owner's end")
			if !errors.Is(err, io.EOF) && !errors.Is(err, share.ErrClosed) {
				return err
			}
			break
		}
		c.take(ctx, r)
	}
	c.claiming.Lock()
	defer c.claiming.Unlock()
	c.over = true
	s.reports(true)
	say("tensors %d, lost with their owner %d", c.seen, c.lost.Load())
	return o.Close()
}

// draw returns a number below n.
func (s *side) draw(n int) int {
	s.drawn.Lock()
	defer s.drawn.Unlock()
	return s.random.IntN(n)
}

type checker struct {
	*side
	p        *share.Peer
	streams  []*cuda.Stream
	forward  bool
	held     []*share.Received
	seen     int
	lost     atomic.Int32
	claiming sync.Mutex
	over     bool
}

func (c *checker) take(ctx context.Context, r *share.Received) {
	c.seen++
	if c.forward && c.draw(3) == 0 {
		if ticket, err := r.Ticket(ctx); err == nil {
			say("ticket %s", ticket)
		} else if !errors.Is(err, share.ErrClosed) && !errors.Is(err, share.ErrNoCredit) {
			say("failed: ticket: %v", err)
		}
	}
	if c.draw(2) == 0 {
		c.check(r, "on receipt", false)
	}
	c.held = append(c.held, r)
	for len(c.held) > 3 || len(c.held) > 0 && c.draw(2) == 0 {
		i := c.draw(len(c.held))
		c.check(c.held[i], "before its release", true)
		c.held = append(c.held[:i], c.held[i+1:]...)
	}
}

// receive waits a moment only if tensors are held.
func (c *checker) receive(ctx context.Context) (*share.Received, error) {
	if len(c.held) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*time.Millisecond)
		defer cancel()
	}
	return c.p.Receive(ctx)
}

func (c *checker) releaseAll(when string) {
	for _, r := range c.held {
		c.check(r, when, true)
	}
	c.held = nil
}

func (c *checker) claimAll() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		ticket, err := share.ParseTicket(lines.Text())
		if err != nil {
			say("failed: %v", err)
			continue
		}
		c.claiming.Lock()
		if c.over {
			c.claiming.Unlock()
			return
		}
		r, err := c.p.Claim(context.Background(), ticket)
		switch {
		case err == nil:
			c.check(r, "claimed", true)
			say("claimed")
		case !errors.Is(err, share.ErrNotFound) && !errors.Is(err, share.ErrClosed) && !errors.Is(err, share.ErrNoCredit):
			say("failed: claim: %v", err)
		}
		c.claiming.Unlock()
	}
}

// check copies a tensor on a stream of this process and says a violation unless
// every element is its stamp. With last it lets go of the tensor before the
// copy has run.
func (c *checker) check(r *share.Received, when string, last bool) {
	number, complete := strings.CutSuffix(r.Label, "w")
	want, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		say("failed: %v", err)
		return
	}
	y, err := c.streams[c.draw(2)].Copy(r.Tensor)
	if last {
		_ = r.Tensor.Release()
	}
	if err == nil {
		defer y.Release()
		err = compare(y, uint32(want))
	}
	switch {
	case err == nil:
	case !complete && c.orphaned(): // the owner took its work along
		c.lost.Add(1)
	default:
		say("violation: %s: tensor %s: %v", when, r.Label, err)
	}
}

// orphaned reports whether the owner is gone, which may show a moment later.
func (c *checker) orphaned() bool {
	select {
	case <-c.p.Done():
		return true
	case <-time.After(time.Second):
		return false
	}
}

func compare(y *tensor.Tensor, want uint32) error {
	back, err := tensor.To(context.Background(), y, nil)
	if err != nil {
		return err
	}
	defer back.Release()
	got, err := tensor.Values[uint32](back)
	if err != nil {
		return err
	}
	for i, v := range got {
		if v != want {
			return fmt.Errorf("element %d of %d is %#x, want %#x", i, len(got), v, want)
		}
	}
	return nil
}
