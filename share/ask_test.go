package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/tensor"
)

// TestManyQuestions: any number of goroutines may ask one peer, however fast it
// answers.
func TestManyQuestions(t *testing.T) {
	a, b := twoEnds(t)
	x := build(t, a.o, 4)
	if err := a.o.Publish("x", x); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, x)
	var work sync.WaitGroup
	for range 2 * maxQuestions {
		work.Go(func() {
			for range 30 {
				if err := b.Drop(t.Context(), "x"); !errors.Is(err, ErrRefused) {
					t.Errorf("drop: got %v, want ErrRefused", err)
					return
				}
				r, err := b.Get(t.Context(), "x")
				if err != nil {
					t.Error(err)
					return
				}
				if err := r.Tensor.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if err := errors.Join(a.Err(), b.Err()); err != nil {
		t.Error(err)
	}
}

// TestQuestionsWaitForTheirTurn: a peer that does not answer holds up further
// questions until their contexts end.
func TestQuestionsWaitForTheirTurn(t *testing.T) {
	_, b := twoEnds(t)
	var asked sync.WaitGroup
	answers := make(chan struct{})
	for range maxQuestions { // questions that the peer has not received
		b.asking <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.State(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a question too many: got %v, want DeadlineExceeded", err)
	}
	asked.Go(func() {
		if _, err := b.State(t.Context()); err != nil {
			t.Error(err)
		}
		close(answers)
	})
	<-b.asking
	asked.Wait()
	<-answers
}

// TestLargeState: a list of more than an owner would let wait for a reader.
func TestLargeState(t *testing.T) {
	a, b := twoEnds(t)
	var xs []*tensor.Tensor
	const blocks = 60_000
	for range blocks {
		xs = append(xs, build(t, a.o, 1))
	}
	if s, err := b.State(t.Context()); err != nil || len(s.Blocks) != blocks {
		t.Errorf("got %v, want %d blocks", err, blocks)
	}
	mustRelease(t, xs...)
}

// TestOwnTicket: a ticket that its minter claims becomes its lease, without
// another credit.
func TestOwnTicket(t *testing.T) {
	a, b := twoEnds(t, WithCredits(2, 1<<20))
	x := build(t, a.o, 32)
	if err := a.Offer(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, x)
	r := receive(t, b)
	got, err := b.Claim(t.Context(), ok(r.Ticket(t.Context()))(t))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(a.o.Outstanding()); n != 2 {
		t.Errorf("got %d leases, want 2", n)
	}
	mustRelease(t, r.Tensor, got.Tensor)
}

// TestAllocWhileClosing: an arena that is made while the owner is closed goes
// back.
func TestAllocWhileClosing(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	for i := range 30 {
		o := ok(NewOwner())(t)
		var work sync.WaitGroup
		work.Go(func() {
			x, err := o.Alloc(1000)
			if err == nil {
				release(x)
			} else if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		})
		time.Sleep(time.Duration(i) * 50 * time.Microsecond)
		o.Close()
		work.Wait()
		if s := o.State(); len(s.Arenas) != 0 {
			t.Fatalf("got %s, want no arenas of a closed owner", fmt.Sprint(s.Arenas))
		}
	}
}
