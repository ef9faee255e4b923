package serve

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLedgerAnswersInOrder lets claims wait: they are granted in the order in
// which they came, and one that gives up lets the next one through.
func TestLedgerAnswersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(100)
		a := &claim{bytes: 80}
		if err := l.acquire(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		var order []int
		var mu sync.Mutex
		wait := func(ctx context.Context, i int, bytes int64) *claim {
			c := &claim{bytes: bytes}
			go func() {
				if l.acquire(ctx, c) == nil {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
				}
			}()
			synctest.Wait()
			return c
		}
		short, cancel := context.WithCancel(t.Context())
		b, c, d := wait(short, 1, 90), wait(t.Context(), 2, 15), wait(t.Context(), 3, 15)
		if len(order) != 0 {
			t.Errorf("got %v before room was there: the first one waits", order)
		}
		if l.try(&claim{bytes: 1}) {
			t.Error("a claim was granted at once, before those that wait")
		}
		cancel()
		synctest.Wait()
		if len(order) != 1 || order[0] != 2 {
			t.Errorf("got %v, want 2 when the first one gave up", order)
		}
		b.release() // it was never granted
		if got := l.figures(); got.used != 95 {
			t.Errorf("got %d bytes, want 95", got.used)
		}
		c.release()
		synctest.Wait()
		if len(order) != 2 || order[1] != 3 {
			t.Errorf("got %v, want 3 after 2", order)
		}
		for _, c := range []*claim{a, a, c, d} { // twice does nothing
			c.release()
		}
		if got := l.figures(); got.used != 0 || got.most != 95 || got.waiting != 0 {
			t.Errorf("got %+v, want nothing used, and 95 at most", got)
		}
		var never *neverFits
		if err := l.acquire(t.Context(), &claim{bytes: 101}); !errors.As(err, &never) || never.need != 101 {
			t.Errorf("got %v, want the error of what never fits", err)
		}
	})
}

// TestLedgerArenas wants an account to keep the largest arena, for each run at
// a time, until others need the bytes and no request of its own does.
func TestLedgerArenas(t *testing.T) {
	l := newLedger(1000)
	trimmed := 0
	a, b := &account{instances: 2, trim: func() { trimmed++ }}, &account{instances: 1, trim: func() {}}
	if !l.open(a, 100) || !l.open(b, 50) || l.open(&account{}, 900) {
		t.Fatal("want 100 and 50 bytes of weights, and not 900 more")
	}
	large, small := &claim{account: a, bytes: 10, arena: 200}, &claim{account: a, bytes: 10, arena: 50, weights: 120}
	if !l.try(large) || !l.try(small) {
		t.Fatal("want both")
	}
	if got := l.figures().used; got != 100+50+20+400+20 {
		t.Errorf("got %d, want the weights, two arenas of 200, and what two requests have", got)
	}
	other := &claim{account: b, bytes: 300, arena: 300}
	if l.try(other) {
		t.Error("got the bytes of an arena that a request has")
	}
	large.release()
	if !l.try(other) || trimmed != 1 {
		t.Errorf("got no room, %d arenas given back, want those of the large request", trimmed)
	}
	if w, standing := l.of(a); w != 120 || standing != 100 {
		t.Errorf("got %d bytes of weights and %d of arenas, want 120 and those of the small request", w, standing)
	}
	small.release()
	other.release()
	l.weigh(a, 70)
	l.close(a)
	l.close(b)
	l.close(b)
	if got := l.figures().used; got != 0 {
		t.Errorf("got %d bytes at the end, want 0", got)
	}
}

// TestLedgerStorm lets goroutines claim at random. What is held is counted
// beside the ledger, and is never more than it says, nor that than the budget.
func TestLedgerStorm(t *testing.T) {
	l := newLedger(1000)
	accounts := make([]*account, 3)
	for i := range accounts {
		accounts[i] = &account{instances: int64(1 + i), trim: func() {}}
		if !l.open(accounts[i], 10) {
			t.Fatal("want room for the weights")
		}
	}
	var held atomic.Int64
	var granted atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(g)))
			for range 2000 {
				c := &claim{account: accounts[r.IntN(3)], bytes: int64(r.IntN(300)), arena: int64(r.IntN(150)), weights: 10}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(3))*time.Second)
				if r.IntN(4) == 0 {
					if !l.try(c) {
						cancel()
						continue
					}
				} else if l.acquire(ctx, c) != nil {
					cancel()
					continue
				}
				granted.Add(1)
				sum := held.Add(c.bytes) // arenas are held by runs, of which there are fewer
				f := l.figures()
				if f.used > 1000 || sum > 1000 {
					t.Errorf("got %d bytes used and %d held, want at most 1000", f.used, sum)
				}
				held.Add(-c.bytes)
				c.release()
				cancel()
			}
		})
	}
	wg.Wait()
	for _, a := range accounts {
		l.close(a)
	}
	if f := l.figures(); f.used != 0 || f.waiting != 0 || granted.Load() < 5000 {
		t.Errorf("got %+v at the end, %d claims granted, want nothing used, and most claims granted", f, granted.Load())
	}
}
