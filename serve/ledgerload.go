package serve

import "context"

// This file is the part of a ledger by which models are loaded while others are
// evicted for them.

// lack returns how many bytes c would lack if everything that runs had ended:
// these are free only when models are evicted. The lock is held.
func (l *ledger) lack(c *claim) int64 {
	n := c.bytes
	for a := range l.accounts {
		weights, arena := a.weights, int64(0)
		for held := range a.claims {
			if held.lasting {
				n += held.bytes
				arena = max(arena, held.arena*a.instances)
			}
		}
		if a == c.account {
			weights, arena = max(weights, c.weights), max(arena, c.arena*a.instances)
		}
		n += weights + arena
	}
	return n - l.budget
}

// lacking reports whether the first claim that waits lacks bytes. If it does
// not, those behind it wait for what runs, too.
func (l *ledger) lacking() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0 && l.lack(l.waiting[0]) > 0
}

// refuseLoad refuses the claim of a load that lacks bytes while nothing runs,
// where no model can be evicted: other claims may wait for the weights of what
// is loaded, and hold the models that it waits for.
func (l *ledger) refuseLoad() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range l.waiting {
		if c.from != nil && len(l.waiting) > 1 && l.running == 0 && l.lack(c) > 0 {
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			close(c.granted)
			l.grant()
			return
		}
	}
}

// openWhenFree adds an account with its weights, and a reserve of further
// bytes for what its load runs, as soon as both are free.
func (l *ledger) openWhenFree(ctx context.Context, a *account, weights, further int64) (*reserve, error) {
	c := &claim{bytes: weights + further}
	if err := l.acquire(ctx, c); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.held = false
	l.running--
	l.used -= c.bytes
	l.used += further
	a.loading = true
	l.add(a, weights)
	return &reserve{account: a, free: further}, nil
}

// end gives back what is left of a reserve, and returns the most bytes that
// were taken from it.
func (l *ledger) end(r *reserve) int64 {
	if r == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used -= r.free
	r.free, r.ended, r.account.loading = 0, true, false
	l.grant()
	return r.most
}
