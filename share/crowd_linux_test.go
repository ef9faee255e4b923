package share

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/tensor"
)

// side is one end of a connection that many goroutines use at once.
type side struct {
	t    *testing.T
	p    *Peer
	most time.Duration // that a wait may take before its context ends
}

// may fails the test unless err is one of the ends that the test has brought
// about itself.
func (s *side) may(what string, err error) bool {
	for _, kind := range []error{ErrClosed, io.EOF, ErrNoCredit, ErrNotFound, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return false
		}
	}
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
	return err == nil
}

func (s *side) keepOrDrop(r *Received, held []*tensor.Tensor, random *rand.Rand) []*tensor.Tensor {
	held = append(held, r.Tensor)
	data, err := tensor.Values[int32](r.Tensor)
	want, _ := strconv.Atoi(r.Label)
	if err != nil || slices.ContainsFunc(data, func(v int32) bool { return int(v) != want }) {
		s.t.Errorf("got %v, want %s everywhere (%v)", data[:min(len(data), 4)], r.Label, err)
	}
	for len(held) > random.IntN(3) {
		mustRelease(s.t, held[0])
		held = held[1:]
	}
	return held
}

// run plays random calls until the connection is over.
func (s *side) run(random *rand.Rand) {
	var held []*tensor.Tensor
	defer func() { mustRelease(s.t, held...) }()
	for !s.p.isOver() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Int64N(int64(s.most))))
		switch random.IntN(6) {
		case 0, 1:
			v := random.Int32N(1000)
			n := []int{10, 30_000}[random.IntN(2)]
			x, err := tensor.Of(slices.Repeat([]int32{v}, n), n)
			if s.may("make", err) {
				s.may("offer", s.p.Offer(ctx, x, Label(strconv.Itoa(int(v)))))
				mustRelease(s.t, x)
			}
		case 2, 3:
			if r, err := s.p.Receive(ctx); s.may("receive", err) {
				held = s.keepOrDrop(r, held, random)
			}
		case 4:
			if r, err := s.p.Get(ctx, "7"); s.may("get", err) {
				held = s.keepOrDrop(r, held, random)
			}
		case 5:
			_, err := s.p.State(ctx)
			s.may("state", err)
		}
		cancel()
	}
}

// TestOnePeerManyGoroutines: both ends of one connection offer, receive and ask
// in many goroutines, whose contexts end at random, so that the goroutine that
// reads for all leaves at any moment; then an end or an owner is closed while
// they run. No goroutine hangs, no byte is wrong, and nothing is left.
func TestOnePeerManyGoroutines(t *testing.T) {
	for i, end := range []func(a, b *Peer) error{
		func(a, _ *Peer) error { return a.Close() },
		func(_, b *Peer) error { return b.o.Close() },
		func(a, b *Peer) error { return errors.Join(a.o.Close(), b.Close()) },
	} {
		a, b := twoEnds(t, WithCredits(8, 1<<20))
		var work sync.WaitGroup
		for _, p := range []*Peer{a, b} {
			x := ok(tensor.Of(slices.Repeat([]int32{7}, 100), 100))(t)
			if err := p.o.Publish("7", x); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, x)
			for g := range uint64(5) {
				s := &side{t: t, p: p, most: []time.Duration{2 * time.Millisecond, 40 * time.Millisecond}[g%2]}
				work.Go(func() { s.run(rand.New(rand.NewPCG(uint64(i), p.info.Connection<<8|g))) })
			}
		}
		time.Sleep(300 * time.Millisecond)
		if err := end(a, b); err != nil {
			t.Error(err)
		}
		work.Wait()
		for _, p := range []*Peer{a, b} {
			p.Close()
			p.o.Close()
		}
		for _, p := range []*Peer{a, b} {
			untilTrue(t, "nothing is left", func() bool { s := p.o.State(); return len(s.Arenas)+len(s.Leases)+len(s.Blocks) == 0 })
		}
	}
}
