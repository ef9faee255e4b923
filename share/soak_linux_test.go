package share

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/python/pythontest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

var (
	soakTime = flag.Duration("soak", 4*time.Second, "how long TestSoak goes on")
	soakRate = flag.Bool("soakrate", false, "TestSoak fails if the honest pair's rate is less than half of what it is without the others")
)

// TestSoak: an honest pair hands over while eight peers, half of them in
// Python, stop, die, flood, stall and misname. Every byte is right, at no
// moment is the table wrong or more spent than the bounds say, and in the end
// nothing is held. The rate of the honest pair is compared with its rate beside
// processes that use as much processor time and connect to no peer.
//
//	go test ./share -run TestSoak -v -timeout 20m -soak 10m -soakrate
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: takes seconds, and all processors")
	}
	python := pythontest.Interpreter(t, "numpy")
	checkDescriptors(t)
	memorytest.Check(t)
	checkLedger(t)
	timeLimit := 2 * time.Second
	if *soakTime < time.Minute { // beside all other tests: there an honest process may not run for as long
		timeLimit = time.Minute
	}
	o := ok(NewOwner(WithLimit(256<<20), WithPeerLimit(64, 8<<20), WithStall(timeLimit, StallDisconnect)))(t)
	defer o.Close()
	s := &soak{t: t, o: o, dir: filepath.Join(t.TempDir(), "s"), python: python, random: rand.New(rand.NewPCG(5, uint64(os.Getpid())))}
	l := ok(o.Listen(soakName, InDir(s.dir)))(t)
	steady := build(t, o, 1000)
	if err := o.Publish("steady", steady); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, steady)
	honest := startRole(t, "honest", s.dir, "soak honest")
	s.honest = ok(l.Accept(t.Context()))(t)
	go s.accept(l)

	attack := *soakTime * 3 / 4
	attacked := s.measure(attack, s.attack)
	load := s.cpu.Seconds() / attack.Seconds()
	calm := s.measure(*soakTime-attack, func(stop <-chan struct{}) { s.burn(load, stop) })
	ratio := attacked.rate() / calm.rate()
	t.Logf("beside the eight: %s", attacked)
	t.Logf("beside as much work (%.2f processors) without a connection: %s", load, calm)
	t.Logf("ratio %.2f; %d processes started, %d stopped, %d killed; %d connections taken, %d of them stalled; %d times no room for the others' tensors",
		ratio, s.started.Load(), s.stopped.Load(), s.killed.Load(), s.accepted.Load(), s.stalled.Load(), s.full.Load())
	if *soakRate && ratio < 0.5 {
		t.Errorf("got %.2f of the rate, want at least half", ratio)
	}
	s.end(l, honest)
}

// soak is the owner, its honest peer and the others.
type soak struct {
	t      *testing.T
	o      *Owner
	dir    string
	python string
	random *rand.Rand
	honest *Peer
	sent   int

	mu    sync.Mutex
	peers []*Peer
	cpu   time.Duration // of the processes that have ended

	started, stopped, killed, accepted, stalled, full atomic.Int64
}

// handovers counts the hand-overs of the honest pair in a period.
type handovers struct {
	n     int
	in    time.Duration
	worst time.Duration
}

func (h handovers) rate() float64 { return float64(h.n) / h.in.Seconds() }
func (h handovers) String() string {
	return fmt.Sprintf("%d hand-overs in %s, %.0f per second, the longest wait %s", h.n, h.in.Round(time.Millisecond), h.rate(), h.worst.Round(time.Millisecond))
}

// measure has the honest pair at work beside others for a while.
func (s *soak) measure(most time.Duration, others func(stop <-chan struct{})) (h handovers) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		others(stop)
		close(done)
	}()
	begin := time.Now()
	for time.Since(begin) < most && !s.t.Failed() {
		before := time.Now()
		s.sent++
		x := s.stamped(1<<12, s.sent)
		if x == nil {
			s.t.Errorf("no room for the honest pair: %+v", s.o.State().Bytes)
			break
		}
		if err := s.honest.Offer(context.Background(), x, Label(strconv.Itoa(s.sent)), WithoutCopy()); err != nil {
			s.t.Error(err)
		}
		mustRelease(s.t, x)
		h.n++
		h.worst = max(h.worst, time.Since(before))
	}
	h.in = time.Since(begin)
	close(stop)
	<-done
	return h
}

// stamped makes a tensor of n times v; nil if there is no room.
func (s *soak) stamped(n, v int) *tensor.Tensor {
	x, err := tensor.Make(s.o, dtype.U32, shape.MustOf(n))
	if errors.Is(err, tensor.ErrLimit) {
		return nil
	}
	w := ok(tensor.Write[uint32](ok(x, err)(s.t)))(s.t)
	for i := range w.Data {
		w.Data[i] = uint32(v)
	}
	w.Release()
	return x
}

// accept accepts every connection, and receives from every other one.
func (s *soak) accept(l *Listener) {
	for {
		p, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		if s.accepted.Add(1)%2 == 0 {
			go func() {
				for {
					r, err := p.Receive(context.Background())
					if err != nil {
						p.Close()
						return
					}
					_ = r.Tensor.Release()
				}
			}()
		}
		s.mu.Lock()
		s.peers = append(s.peers, p)
		s.mu.Unlock()
	}
}

// living returns the peers that are not over, and closes the others.
func (s *soak) living() []*Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	living := s.peers[:0]
	for _, p := range s.peers {
		if !p.isOver() {
			living = append(living, p)
			continue
		}
		if errors.Is(p.Err(), ErrStalled) {
			s.stalled.Add(1)
		}
		p.Close()
	}
	s.peers = living
	return append([]*Peer{}, living...)
}

// attack keeps the eight at work.
func (s *soak) attack(stop <-chan struct{}) {
	var work sync.WaitGroup
	for _, kind := range []string{"keep", "keep", "flood", "stall"} {
		work.Go(func() {
			s.slot(stop, func() *exec.Cmd {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), roleVar+"=soak "+kind)
				return cmd
			})
		})
	}
	for _, kind := range []string{"keep", "keep", "flood", "misname"} {
		work.Go(func() {
			s.slot(stop, func() *exec.Cmd {
				cmd := exec.Command(s.python, filepath.Join("testdata", "soak.py"), kind)
				cmd.Env = pythontest.Env("..")
				return cmd
			})
		})
	}
	work.Go(func() { s.feed(stop) })
	work.Go(func() { s.watch(stop) })
	work.Wait()
}

// slot has one process after the other, which is stopped at times and killed in
// the end.
func (s *soak) slot(stop <-chan struct{}, make func() *exec.Cmd) {
	for !ended.Closed(stop) {
		cmd := make()
		cmd.Env = append(cmd.Env, "TENURE_SHARE_DIR="+s.dir)
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			s.t.Error(err)
			return
		}
		s.started.Add(1)
		sleep(stop, s.upTo(5*time.Second))
		if s.upTo(2) == 0 {
			_ = cmd.Process.Signal(syscall.SIGSTOP)
			s.stopped.Add(1)
			sleep(stop, s.upTo(5*time.Second))
			if s.upTo(2) == 0 {
				_ = cmd.Process.Signal(syscall.SIGCONT)
				sleep(stop, s.upTo(200*time.Millisecond))
			}
		}
		_ = cmd.Process.Kill()
		s.killed.Add(1)
		_ = cmd.Wait()
		if strings.Contains(out.String(), "violation") || strings.Contains(out.String(), "failed") {
			s.t.Errorf("a peer says: %s", out.String())
		}
		s.mu.Lock()
		s.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		s.mu.Unlock()
	}
}

func (s *soak) upTo(most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.random.Int64N(int64(most)))
}

func sleep(stop <-chan struct{}, d time.Duration) {
	select {
	case <-stop:
	case <-time.After(d):
	}
}

// feed offers to all others, mostly without waiting, and waits for one now and
// then.
func (s *soak) feed(stop <-chan struct{}) {
	for i := 0; !ended.Closed(stop); i++ {
		living := s.living()
		x := s.stamped(1+i%5000, i)
		if x == nil {
			s.full.Add(1)
			sleep(stop, 10*time.Millisecond)
			continue
		}
		for j, p := range living {
			if i%20 == 0 && j == i/20%len(living) {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				_ = p.Offer(ctx, x, Label(strconv.Itoa(i)))
				cancel()
				continue
			}
			_ = p.Offer(context.Background(), x, NoWait(), Label(strconv.Itoa(i)))
		}
		mustRelease(s.t, x)
		if i%1000 == 0 {
			s.o.Collect()
		}
		sleep(stop, 5*time.Millisecond)
	}
}

// watch holds the table and the budget to their rules.
func (s *soak) watch(stop <-chan struct{}) {
	for ; !ended.Closed(stop); sleep(stop, 200*time.Millisecond) {
		if err := s.o.checkTable(); err != nil {
			s.t.Error(err)
			return
		}
		h := processBudget()
		h.mu.Lock()
		used, limit := h.used, h.limit
		h.mu.Unlock()
		for r := range used {
			if used[r] > limit[r] || used[r] < 0 {
				s.t.Errorf("got %d %s in use, want at most %d", used[r], resourceNames[r], limit[r])
			}
		}
		if b := s.o.State().Bytes; b.Arenas > b.Limit {
			s.t.Errorf("got %+v, want no more than the limit", b)
		}
	}
}

// burn has eight processes take as much of the processors together.
func (s *soak) burn(load float64, stop <-chan struct{}) {
	var list []*exec.Cmd
	for range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVar+"=soak burn", fmt.Sprintf("TENURE_SHARE_BURN=%.0f", load/8*1000))
		if err := cmd.Start(); err != nil {
			s.t.Error(err)
			return
		}
		list = append(list, cmd)
	}
	<-stop
	for _, cmd := range list {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// end wants nothing to be held when all are gone.
func (s *soak) end(l *Listener, honest *proc) {
	t, o := s.t, s.o
	l.Close()
	untilTrue(t, "the others are over", func() bool { return len(s.living()) == 0 })
	s.honest.Close()
	honest.wants(t, fmt.Sprintf("received %d", s.sent))
	honest.wants(t, "clean")
	o.Withdraw("steady")
	untilTrue(t, "nothing is held", func() bool {
		o.Collect()
		b := o.State()
		return len(b.Leases) == 0 && len(b.Blocks) == 0 && len(b.Arenas) == 0 && b.Bytes.Arenas == 0 && b.Bytes.Pinned == 0
	})
	if err := o.checkTable(); err != nil {
		t.Error(err)
	}
	untilTrue(t, "no connection is left", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.peers) == 0 && len(o.debtors) == 0 && len(o.tickets) == 0
	})
}
