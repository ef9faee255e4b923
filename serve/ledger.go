package serve

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/plan"
)

// ledger sums the bytes that were promised to what waits and runs against a
// budget. A claim that does not fit waits, behind those that came before it.
// A holder of a claim never waits for another one of the same ledger, so those
// that wait are always answered.
type ledger struct {
	budget int64
	short  func()      // some claim lacks bytes; nil: nothing is evicted
	lacks  atomic.Bool // a claim that waits lacked bytes when it was looked at

	mu       sync.Mutex
	used     int64
	most     int64 // the largest used
	running  int   // claims that are held and end by themselves
	waiting  []*claim
	accounts map[*account]bool
}

// account is what a loaded model keeps between requests: its weights, and an
// arena for each run at a time.
type account struct {
	instances int64
	trim      func() // returns the arenas that no run uses

	// These belong to the ledger's lock.
	weights  int64
	standing int64 // for arenas
	claims   map[*claim]bool
	loading  bool // its reserve has not ended
}

// claim is bytes that were promised to a request or a batch of them.
type claim struct {
	l       *ledger
	account *account // nil for one without a model
	bytes   int64
	arena   int64 // of the run: the account holds as many for each instance
	weights int64 // of the model, with those that its plan packs

	lasting bool     // it is held as long as its account is there
	from    *reserve // of the load that it belongs to; nil for others

	granted chan struct{} // closed once it is granted, or refused
	held    bool          // it is granted and not released
}

// reserve is what was promised to the loading of a model beside its weights:
// its claims take their bytes from there first, and give them back to it. It
// belongs to the ledger's lock.
type reserve struct {
	account *account
	free    int64
	taken   int64 // by claims and what they left behind
	most    int64 // the largest taken
	ended   bool
}

func newLedger(budget int64) *ledger {
	return &ledger{budget: budget, accounts: map[*account]bool{}}
}

// neverFits is the error of a claim that is larger than the whole budget.
type neverFits struct{ need, budget int64 }

func (e *neverFits) Error() string {
	return fmt.Sprintf("the request takes %s, want at most the %s that the server may use", plan.FormatBytes(e.need), plan.FormatBytes(e.budget))
}

// growth returns how many bytes granting c would take. The lock is held.
func (c *claim) growth() int64 {
	n := c.bytes
	if a := c.account; a != nil {
		n += max(0, c.arena*a.instances-a.standing) + max(0, c.weights-a.weights)
	}
	return n
}

// fits grants c if its bytes are free. The lock is held.
func (l *ledger) fits(c *claim) bool {
	var own int64 // that are promised already
	if c.from != nil {
		own = c.from.free
	}
	n := c.growth()
	if n-own > l.budget-l.used {
		l.shrink()
		if n = c.growth(); n-own > l.budget-l.used {
			return false
		}
	}
	if r := c.from; r != nil {
		l.used -= min(n, r.free)
		r.free -= min(n, r.free)
		r.taken += n
		r.most = max(r.most, r.taken)
	}
	l.used += n
	l.most = max(l.most, l.used)
	if !c.lasting {
		l.running++
	}
	if a := c.account; a != nil {
		a.standing = max(a.standing, c.arena*a.instances)
		a.weights = max(a.weights, c.weights)
		a.claims[c] = true
	}
	c.held = true
	close(c.granted)
	return true
}

// shrink makes accounts give up what their requests do not need any more: a run
// under way has the arena of its own plan, and all others give theirs back. A
// model that is being loaded needs its arena for the next run of its load.
// The lock is held, so no claim is granted meanwhile.
func (l *ledger) shrink() {
	for a := range l.accounts {
		var need int64
		for c := range a.claims {
			need = max(need, c.arena*a.instances)
		}
		if need < a.standing && !a.loading {
			a.trim()
			l.used -= a.standing - need
			a.standing = need
		}
	}
}

// try grants c at once, or not.
func (l *ledger) try(c *claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.l, c.granted = l, make(chan struct{})
	return len(l.waiting) == 0 && l.fits(c)
}

// window is how many bytes of the body of a request over HTTP/2 may have come
// that nobody has read, and mostWaiting how many requests of a connection may
// wait for memory. All of these together leave room in the window that the
// requests of a connection share, 4 MiB: those that have memory go on.
const (
	window      = 256 << 10
	mostWaiting = 14
)

// connection is that of requests, in their contexts.
type connection struct{ waiting atomic.Int32 }

type connectionKey struct{}

func connectionOf(ctx context.Context) *connection {
	n, _ := ctx.Value(connectionKey{}).(*connection)
	return n
}

// enter counts a request that waits for memory.
func (n *connection) enter() error {
	if n.waiting.Add(1) > mostWaiting {
		n.waiting.Add(-1)
		return fmt.Errorf("%d requests of the connection wait for memory: %w", mostWaiting, ErrBusy)
	}
	return nil
}

// acquire waits until c is granted. The error is a *neverFits, or why ctx
// ended, or ErrBusy where too many requests of the connection wait.
func (l *ledger) acquire(ctx context.Context, c *claim) error {
	l.mu.Lock()
	c.l, c.granted = l, make(chan struct{})
	least := c.bytes
	if c.account != nil { // with nothing else there
		least += c.arena*c.account.instances + max(c.weights, c.account.weights)
	}
	if least > l.budget {
		l.mu.Unlock()
		return &neverFits{least, l.budget}
	}
	if len(l.waiting) == 0 && l.fits(c) {
		l.mu.Unlock()
		return nil
	}
	if n := connectionOf(ctx); n != nil {
		if err := n.enter(); err != nil {
			l.mu.Unlock()
			return err
		}
		defer n.waiting.Add(-1)
	}
	if c.from != nil {
		l.waiting = append([]*claim{c}, l.waiting...) // others may need the bytes of its load
	} else {
		l.waiting = append(l.waiting, c)
	}
	l.grant()
	l.mu.Unlock()
	select {
	case <-c.granted:
		l.mu.Lock()
		defer l.mu.Unlock()
		if !c.held {
			return fmt.Errorf("the model does not fit beside those that requests wait for: %w", ErrBusy)
		}
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == c {
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			l.grant() // one behind it may fit
			return context.Cause(ctx)
		}
	}
	if !c.held {
		return context.Cause(ctx) // it was refused at the same moment
	}
	return nil // it was granted at the same moment
}

// grant grants the claims that wait, in order. Where models are evicted, those
// behind one that lacks bytes do not wait for it: what runs is not what it
// waits for. The lock is held.
func (l *ledger) grant() {
	lacks, passed := false, 0 // at the front
	for passed < len(l.waiting) {
		c := l.waiting[passed]
		switch {
		case l.fits(c):
			if passed == 0 {
				l.waiting = l.waiting[1:]
			} else {
				l.waiting = append(l.waiting[:passed:passed], l.waiting[passed+1:]...)
			}
		case l.short == nil || l.lack(c) <= 0:
			passed = len(l.waiting)
		default:
			lacks = true
			passed++
		}
	}
	l.lacks.Store(lacks)
	if lacks {
		l.short()
	}
}

// release ends a claim. For one that is not held it does nothing.
func (c *claim) release() {
	if c == nil || c.l == nil {
		return
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if !c.held {
		return
	}
	c.held = false
	c.l.used -= c.bytes
	if !c.lasting {
		c.l.running--
	}
	if r := c.from; r != nil && !r.ended {
		r.taken -= c.bytes
		r.free += c.bytes
		c.l.used += c.bytes
	}
	if c.account != nil {
		delete(c.account.claims, c)
	}
	c.l.grant()
}

// grow adds bytes to a claim that was granted, whether or not they fit: they
// are in use already.
func (c *claim) grow(bytes int64) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.bytes += bytes
	c.l.used += bytes
	c.l.most = max(c.l.most, c.l.used)
	if c.from != nil {
		c.from.taken += bytes
		c.from.most = max(c.from.most, c.from.taken)
	}
}

// tryGrow adds bytes to a claim that was granted, if they fit.
func (c *claim) tryGrow(bytes int64) bool {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if len(c.l.waiting) > 0 || bytes > c.l.budget-c.l.used {
		return false
	}
	c.bytes += bytes
	c.l.used += bytes
	c.l.most = max(c.l.most, c.l.used)
	return true
}

// open adds an account whose weights take bytes, or returns false if these are
// not free.
func (l *ledger) open(a *account, weights int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if weights > l.budget-l.used {
		l.shrink()
		if weights > l.budget-l.used {
			return false
		}
	}
	l.add(a, weights)
	return true
}

// add adds an account. The lock is held.
func (l *ledger) add(a *account, weights int64) {
	a.claims = map[*claim]bool{}
	a.weights = weights
	l.used += weights
	l.most = max(l.most, l.used)
	l.accounts[a] = true
	if l.short != nil {
		l.grant() // what waits may lack bytes now
	}
}

// weigh states what the weights of an account really take.
func (l *ledger) weigh(a *account, weights int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.accounts[a] {
		return
	}
	for c := range a.claims {
		weights = max(weights, c.weights) // that may not be packed yet
	}
	l.used += weights - a.weights
	l.most = max(l.most, l.used)
	a.weights = weights
	l.grant()
}

// close ends an account: nothing of it is in memory any more.
func (l *ledger) close(a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.accounts[a] {
		return
	}
	delete(l.accounts, a)
	l.used -= a.weights + a.standing
	a.weights, a.standing = 0, 0
	l.grant()
}

// figures are the sums of a ledger.
type figures struct {
	budget, used, most int64
	waiting            int
}

func (l *ledger) figures() figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return figures{l.budget, l.used, l.most, len(l.waiting)}
}

// of returns what an account has.
func (l *ledger) of(a *account) (weights, standing int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.weights, a.standing
}
