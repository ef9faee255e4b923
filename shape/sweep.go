package shape

import "runtime"

// probation is the number of sweeps in one of which a node's values are put to
// the test.
const probation = 8

// watch sweeps once after every collection, for as long as the process runs.
func watch(sweep func()) {
	// The sentinel is unreachable at once: its cleanup follows the next
	// collection. It holds a pointer, or it would share a block with others.
	sentinel := &struct{ _ *int }{}
	runtime.AddCleanup(sentinel, func(sweep func()) {
		// Other packages' cleanups do not wait for a sweep.
		go func() {
			sweep()
			watch(sweep)
		}()
	}, sweep)
}

// phase is what a sweep does with the values that it finds alive.
type phase uint8

const (
	routine phase = iota // promote, but put each node to the test once in so many sweeps
	weaken               // hold all weakly, so that the next collection tells what is reachable
	promote              // hold all strongly
)

// sweep takes out what was collected. A value that has survived a collection
// while it was held weakly is held strongly from then on, since that makes it
// quick to find, and weakly again for one collection in a while, since that is
// how the dead are known. One sweep at a time.
func (t *trie[T]) sweep(p phase) {
	t.tick++
	for rank := range t.roots {
		t.sweepNode(&t.roots[rank], p)
	}
}

// sweepNode sweeps n and all below it.
func (t *trie[T]) sweepNode(n *node[T], p phase) {
	t.sweepValues(n, p)
	empty := false
	for _, k := range n.kids.Load().all(nil) {
		t.sweepNode(k.node, p)
		empty = empty || k.node.isEmpty()
	}
	if empty {
		t.prune(n)
	}
}

func (n *node[T]) isEmpty() bool {
	return n.kids.Load() == nil && n.held.Load() == nil && n.weak.Load() == nil
}

func (t *trie[T]) sweepValues(n *node[T], p phase) {
	mu := t.lock(n)
	mu.Lock()
	defer mu.Unlock()
	held, weak := n.held.Load(), n.weak.Load()
	if p == routine {
		p = promote
		if (t.tick+int(n.path>>48))%probation == 0 {
			p = weaken
		}
	}
	if weak == nil && (held == nil || p == promote) {
		return
	}
	live := weak.live(nil)
	dead := weak.len() - len(live)
	t.account.drop(dead)
	// First into the table where values go, then out of the one they leave.
	if all := held.leaves(live); len(all) == 0 || p == promote {
		n.held.Store(newHeld(all))
		n.weak.Store(nil)
		n.heldBytes, n.weakBytes = t.sizes(all), 0
	} else {
		n.weak.Store(newWeak(all))
		n.held.Store(nil)
		n.heldBytes, n.weakBytes = 0, t.sizes(all)
	}
	if dead > 0 {
		n.crowd = min(n.crowd, int32(max(crowd, 2*n.held.Load().len(), 2*n.weak.Load().len())))
	}
	t.settle(n)
}

// prune takes the empty children out of n. The sweeper alone holds two locks
// at once, so it waits for nobody who waits for it.
func (t *trie[T]) prune(n *node[T]) {
	mu := t.lock(n)
	mu.Lock()
	defer mu.Unlock()
	var left []kid[T]
	for _, k := range n.kids.Load().all(nil) {
		if !t.remove(k.node, mu) {
			left = append(left, k)
		}
	}
	n.kids.Store(newKids(left, t.spread))
	t.settle(n)
}

// remove marks an empty node as gone, unless somebody has put a value into it.
func (t *trie[T]) remove(n *node[T], locked any) bool {
	if mu := t.lock(n); mu != locked {
		mu.Lock()
		defer mu.Unlock()
	}
	if !n.isEmpty() {
		return false
	}
	n.gone = true
	t.settle(n)
	return true
}
