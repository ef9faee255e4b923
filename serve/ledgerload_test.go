package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
)

// slowLedger is a ledger that keeps lists alone, and sums them anew for every
// question.
type slowLedger struct {
	budget   int64
	accounts []*slowAccount
	held     []*slowClaim
	waiting  []*slowClaim
}

type slowAccount struct {
	instances, weights, standing int64
}

type slowClaim struct {
	account        *slowAccount
	bytes          int64
	arena, weights int64
	lasting        bool
	real           *claim
}

func (l *slowLedger) used() (n int64) {
	for _, a := range l.accounts {
		n += a.weights + a.standing
	}
	for _, c := range l.held {
		n += c.bytes
	}
	return n
}

// with returns what would be used with c held, and only keep of the others.
func (l *slowLedger) with(c *slowClaim, keep func(*slowClaim) bool, trimmed bool) (n int64) {
	held := []*slowClaim{c}
	for _, h := range l.held {
		if keep(h) {
			held = append(held, h)
		}
	}
	for _, h := range held {
		n += h.bytes
	}
	for _, a := range l.accounts {
		weights, arenas := a.weights, int64(0)
		if !trimmed {
			arenas = a.standing
		}
		for _, h := range held {
			if h.account == a {
				arenas = max(arenas, h.arena*a.instances)
			}
		}
		if c.account == a {
			weights = max(weights, c.weights)
		}
		n += weights + arenas
	}
	return n
}

func all(*slowClaim) bool       { return true }
func lasting(c *slowClaim) bool { return c.lasting }

// trim gives back the arenas that no claim has.
func (l *slowLedger) trim() {
	for _, a := range l.accounts {
		var need int64
		for _, h := range l.held {
			if h.account == a {
				need = max(need, h.arena*a.instances)
			}
		}
		a.standing = min(a.standing, need)
	}
}

// settle grants what is to be granted.
func (l *slowLedger) settle() {
	for i := 0; i < len(l.waiting); {
		c := l.waiting[i]
		fits := l.with(c, all, false) <= l.budget
		if !fits {
			l.trim()
			fits = l.with(c, all, true) <= l.budget
		}
		if fits {
			l.waiting = slices.Delete(l.waiting, i, i+1)
			l.held = append(l.held, c)
			if a := c.account; a != nil {
				a.standing, a.weights = max(a.standing, c.arena*a.instances), max(a.weights, c.weights)
			}
			continue
		}
		if l.with(c, lasting, true) <= l.budget {
			return // it gets its bytes when others have run: all behind it wait
		}
		i++
	}
}

// TestLedgerAgainstLists draws claims, loads and ends, and compares who is
// granted, who lacks bytes, and the sum with the slow ledger.
func TestLedgerAgainstLists(t *testing.T) {
	lacked, passed := 0, 0
	for seed := range 300 {
		synctest.Test(t, func(t *testing.T) { drawLedger(t, uint64(seed), &lacked, &passed) })
	}
	if lacked < 300 || passed < 100 {
		t.Errorf("got %d moments in which bytes lacked, and %d claims that passed others, want many", lacked, passed)
	}
}

func drawLedger(t *testing.T, seed uint64, lacked, passed *int) {
	r := rand.New(rand.NewPCG(9, seed))
	l, slow := newLedger(1000), &slowLedger{budget: 1000}
	calls := 0
	l.short = func() { calls++ }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var accounts []*account
	begin := func(c *claim, s *slowClaim) {
		s.real = c
		go func() { _ = l.acquire(ctx, c) }()
		synctest.Wait()
		if c.granted == nil || s.with0() > slow.budget { // it never fits
			return
		}
		behind := len(slow.waiting)
		slow.waiting = append(slow.waiting, s)
		slow.settle()
		if behind > 0 && slices.Contains(slow.held, s) {
			*passed++
		}
	}
	for step := range 60 {
		switch k := r.IntN(8); {
		case k == 0 && len(accounts) < 4:
			a := &account{instances: int64(1 + r.IntN(2)), trim: func() {}}
			weights := int64(r.IntN(400))
			if got, want := l.open(a, weights), slow.open(a.instances, weights); got != want {
				t.Fatalf("seed %d, step %d: got %v, want %v for %d bytes of weights", seed, step, got, want, weights)
			} else if got {
				accounts = append(accounts, a)
			}
		case k == 1 && len(accounts) > 0: // an eviction, with nobody who uses the model
			i := r.IntN(len(accounts))
			if slow.uses(slow.accounts[i]) {
				continue
			}
			slow.accounts = slices.Delete(slow.accounts, i, i+1)
			l.close(accounts[i])
			accounts = slices.Delete(accounts, i, i+1)
			slow.settle()
		case k < 5:
			c, s := &claim{bytes: int64(r.IntN(300))}, &slowClaim{}
			if len(accounts) > 0 && r.IntN(4) > 0 {
				i := r.IntN(len(accounts))
				c.account, c.arena, c.weights, c.lasting = accounts[i], int64(r.IntN(150)), int64(r.IntN(250)), r.IntN(6) == 0
				s.account = slow.accounts[i]
			}
			s.bytes, s.arena, s.weights, s.lasting = c.bytes, c.arena, c.weights, c.lasting
			begin(c, s)
		case len(slow.held) > 0:
			i := r.IntN(len(slow.held))
			c := slow.held[i].real
			slow.held = slices.Delete(slow.held, i, i+1)
			c.release()
			slow.settle()
		}
		synctest.Wait()
		lacks := len(slow.waiting) > 0 && slow.with(slow.waiting[0], lasting, true) > slow.budget
		if lacks {
			*lacked++
		}
		f := l.figures()
		if f.used != slow.used() || f.waiting != len(slow.waiting) || l.lacking() != lacks || lacks && calls == 0 {
			t.Fatalf("seed %d, step %d: got %d bytes, %d that wait, lacking %v; want %d, %d, %v", seed, step, f.used, f.waiting, l.lacking(), slow.used(), len(slow.waiting), lacks)
		}
		for _, c := range slow.held {
			if !c.real.held {
				t.Fatalf("seed %d, step %d: a claim of %d bytes waits, want it granted", seed, step, c.bytes)
			}
		}
	}
	cancel()
	synctest.Wait()
	for _, c := range slow.held {
		c.real.release()
	}
	for _, c := range slow.waiting {
		c.real.release()
	}
	for _, a := range accounts {
		l.close(a)
	}
	if f := l.figures(); f.used != 0 || f.waiting != 0 {
		t.Fatalf("seed %d: got %+v at the end, want nothing used", seed, f)
	}
}

// with0 is what a claim takes with nothing else there.
func (c *slowClaim) with0() int64 {
	n := c.bytes
	if a := c.account; a != nil {
		n += c.arena*a.instances + max(c.weights, a.weights)
	}
	return n
}

func (l *slowLedger) open(instances, weights int64) bool {
	if l.used()+weights > l.budget {
		l.trim()
		if l.used()+weights > l.budget {
			return false
		}
	}
	l.accounts = append(l.accounts, &slowAccount{instances: instances, weights: weights})
	l.settle()
	return true
}

// uses reports whether a claim belongs to the account.
func (l *slowLedger) uses(a *slowAccount) bool {
	of := func(c *slowClaim) bool { return c.account == a }
	return slices.ContainsFunc(l.held, of) || slices.ContainsFunc(l.waiting, of)
}

// TestLedgerReserve wants the claims of a load granted from its reserve, with
// others before them, and what it takes counted.
func TestLedgerReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(1000)
		l.short = func() {}
		a := &account{instances: 2, trim: func() {}}
		r, err := l.openWhenFree(t.Context(), a, 300, 200)
		if err != nil || l.figures().used != 500 {
			t.Fatalf("got %v and %+v, want 500 bytes promised", err, l.figures())
		}
		running := &claim{bytes: 450}
		if err := l.acquire(t.Context(), running); err != nil {
			t.Fatal(err)
		}
		go func() {
			c := &claim{bytes: 100}
			if err := l.acquire(t.Context(), c); err != nil {
				t.Error(err)
			}
			c.release()
		}()
		synctest.Wait()
		for range 3 { // the second one has the arena of the first one
			c := &claim{account: a, bytes: 60, arena: 70, from: r}
			if err := l.acquire(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			c.release()
		}
		if f := l.figures(); f.used != 950 || f.waiting != 1 || r.free != 60 {
			t.Errorf("got %+v and %d bytes left, want 950 used, one that waits, and 60", f, r.free)
		}
		if most := l.end(r); most != 200 {
			t.Errorf("got %d bytes that the load took, want 200", most)
		}
		running.release()
		synctest.Wait()
		l.close(a)
		if f := l.figures(); f.used != 0 || f.waiting != 0 {
			t.Errorf("got %+v at the end, want nothing used", f)
		}
	})
}

// TestLedgerRefusesALoad lets a load and a request wait for each other: the
// load is refused, and the request is granted when its weights are free.
func TestLedgerRefusesALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(1000)
		short := make(chan struct{}, 1)
		l.short = func() {
			select {
			case short <- struct{}{}:
			default:
			}
		}
		used, loading := &account{instances: 1, trim: func() {}}, &account{instances: 1, trim: func() {}}
		if !l.open(used, 400) {
			t.Fatal("want room for the weights")
		}
		r, err := l.openWhenFree(t.Context(), loading, 300, 0)
		if err != nil {
			t.Fatal(err)
		}
		running := &claim{bytes: 50}
		if err := l.acquire(t.Context(), running); err != nil {
			t.Fatal(err)
		}
		request, granted := &claim{account: used, bytes: 500}, false
		go func() {
			if err := l.acquire(t.Context(), request); err != nil {
				t.Error(err)
			}
			granted = true
		}()
		var failed error
		go func() { failed = l.acquire(t.Context(), &claim{account: loading, bytes: 400, from: r}) }()
		synctest.Wait()
		<-short
		l.refuseLoad()
		synctest.Wait()
		if failed != nil {
			t.Errorf("got %v while something runs, want the load to wait", failed)
		}
		running.release()
		synctest.Wait()
		<-short
		l.refuseLoad()
		synctest.Wait()
		if !errors.Is(failed, ErrBusy) || granted {
			t.Errorf("got %v, request granted: %v, want the load refused, and the request waiting", failed, granted)
		}
		l.end(r)
		l.close(loading)
		synctest.Wait()
		if !granted {
			t.Error("got no memory for the request, want that of the load")
		}
		request.release()
		l.close(used)
		if f := fmt.Sprint(l.figures()); f != "{1000 0 950 0}" && f != "{1000 0 900 0}" {
			t.Errorf("got %s at the end, want nothing used", f)
		}
	})
}
