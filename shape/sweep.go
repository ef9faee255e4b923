package shape

import (
	"runtime"
	"weak"
)

const (
	testEvery   = 8   // a node's values are tested in one sweep of so many
	testAllMost = 256 // most entries of which all are tested instead of a sample
	sampleEvery = 32  // the sample has one value in so many; a power of two
	slack       = 8   // one entry in so many may be dead before all are tested
)

// watch runs a sweep after every collection, until the process ends.
func watch(sweep func()) {
	// The sentinel is unreachable at once, so its cleanup follows the next
	// collection. It contains a pointer, because the runtime may put objects
	// without pointers into one block with others.
	sentinel := &struct{ _ *int }{}
	runtime.AddCleanup(sentinel, func(sweep func()) {
		// The sweep runs on its own goroutine, so other packages' cleanups do
		// not wait for it.
		go func() {
			sweep()
			watch(sweep)
		}()
	}, sweep)
}

// phase selects the work of a sweep on the values that it finds alive.
type phase uint8

const (
	routine phase = iota // hold survivors strongly, and test some values
	weaken               // hold all values weakly, so that the next collection shows which are reachable
	promote              // hold all values strongly
)

// sampled reports whether a value belongs to the sample. It uses bits of the
// key that tables do not use.
func sampled(key uint64) bool { return key>>32%sampleEvery == 0 }

// begin reports whether a new value is held weakly until it has survived a
// collection, and prepares it for that. A weak pointer costs the runtime time
// and memory.
func (t *trie[T]) begin(l *leaf[T]) (weakly bool) {
	if t.account.entries.Load() > testAllMost && !t.newWeakly.Load() {
		if l.witness = sampled(l.key); !l.witness {
			return false
		}
	}
	l.ref = weak.Make(l.value)
	return true
}

// sweep removes values that were collected. One sweep runs at a time.
//
// A value is found dead only if it was held weakly during a whole collection,
// from one sweep to the next. A value that is held strongly is found faster and
// takes less memory. Therefore a value that survives a collection is held
// strongly, and one sweep in testEvery makes values weak again: all values if
// there are at most testAllMost, otherwise a sample. Sampled values that are
// held weakly while other values are not are witnesses for those. When the
// number of dead witnesses indicates more dead values than the slack allows,
// one sweep makes all values weak.
//
// New values are held strongly at first, except for witnesses. When many values
// die, new values are held weakly until fewer die: values that survived a
// collection, which are then less likely to die, stay strong.
// collection are held strongly all the while.
func (t *trie[T]) sweep(p phase) {
	t.tick++
	d := t.sweepAll(p)
	if p != routine {
		t.found = 0
		t.newWeakly.Store(false)
		return
	}
	t.found += d.witnesses
	entries := int(t.account.entries.Load())
	manyDie := d.all-d.witnesses > max(entries, testAllMost)/slack
	switch {
	case entries <= testAllMost:
		t.found = 0
	case t.found*sampleEvery > entries/slack:
		t.sweepAll(weaken)
		t.found, manyDie = 0, true
	}
	t.newWeakly.Store(manyDie)
}

func (t *trie[T]) sweepAll(p phase) (d dead) {
	for rank := range t.roots {
		d.add(t.sweepNode(&t.roots[rank], p))
	}
	return d
}

// sweepNode sweeps n and all nodes below it.
func (t *trie[T]) sweepNode(n *node[T], p phase) dead {
	d := t.sweepValues(n, p)
	empty := false
	for _, k := range n.children.Load().list {
		d.add(t.sweepNode(k.node, p))
		empty = empty || k.node.isEmpty()
	}
	if empty {
		t.prune(n)
	}
	return d
}

func (n *node[T]) isEmpty() bool {
	return len(n.children.Load().list) == 0 && n.strong.Load() == nil && n.weak.Load() == nil
}

// tested returns which values of a node a sweep makes weak.
type tested uint8

const (
	none tested = iota
	sample
	all
)

func (t tested) covers(key uint64) bool { return t == all || t == sample && sampled(key) }

func (t *trie[T]) tests(n *node[T], p phase) tested {
	due := (t.tick+int(n.path>>48))%testEvery == 0
	switch {
	case p == weaken:
		return all
	case p == promote:
		return none
	case due && t.account.entries.Load() <= testAllMost:
		return all
	case due || t.newWeakly.Load():
		return sample
	}
	return none
}

func (t *trie[T]) sweepValues(n *node[T], p phase) dead {
	n.Lock()
	defer n.Unlock()
	strong, frail, test := n.strong.Load(), n.weak.Load(), t.tests(n, p)
	if frail == nil && (strong == nil || test == none) {
		return dead{}
	}
	live, d := frail.live(nil)
	t.account.drop(d.all)
	d.add(n.lost)
	n.lost = dead{}
	stay, up := live[:0:0], live[:0:0]
	for _, l := range live {
		if p == promote || l.aged && !test.covers(l.key) {
			up = append(up, l)
			continue
		}
		if l.aged {
			l.witness = true // the values that it stands for become strong
		}
		l.aged = true
		stay = append(stay, l)
	}
	extra := 0
	if p == routine && n.level == 0 && t.newWeakly.Load() {
		extra = frail.len() // room for as many new values again
	}
	if test == none {
		t.promote(n, up, stay, extra)
	} else {
		t.test(n, up, stay, extra, test)
	}
	if d.all > 0 {
		n.nodeLimit = min(n.nodeLimit, max(t.nodeLimit, 2*(n.strong.Load().len()+n.weak.Load().len())))
	}
	t.settle(n)
	return d
}

// promote moves values from a node's weak table to its strong one.
func (t *trie[T]) promote(n *node[T], up, stay []leaf[T], extra int) {
	if strong := n.strong.Load(); strong == nil || strong.used+len(up) > strong.capacity {
		n.strong.Store(newStrong(strong.leaves(up), n.level == 0))
	} else {
		for _, l := range up {
			strong.add(l)
		}
	}
	n.weak.Store(newWeak(stay, extra)) // last: readers look at the weak table after the strong one
	n.strongBytes, n.weakBytes = n.strongBytes+t.sizes(up), t.sizes(stay)
}

// test moves the values that are tested into the weak table. Those of a sample
// become witnesses.
func (t *trie[T]) test(n *node[T], up, stay []leaf[T], extra int, test tested) {
	strong := up[:0:0]
	for _, l := range n.strong.Load().leaves(up) {
		if !test.covers(l.key) {
			strong = append(strong, l)
			continue
		}
		l.aged, l.witness = true, true
		stay = append(stay, l)
	}
	if test == all {
		for i := range stay {
			stay[i].witness = false // no value is left that it could stand for
		}
	}
	n.weak.Store(newWeak(stay, extra)) // first, so that readers miss no value that leaves the strong table
	n.strong.Store(newStrong(strong, n.level == 0))
	n.strongBytes, n.weakBytes = t.sizes(strong), t.sizes(stay)
}

// prune removes the empty children of n. Only the sweeper holds two locks at
// once: a parent's, then a child's.
func (t *trie[T]) prune(n *node[T]) {
	n.Lock()
	defer n.Unlock()
	var left []child[T]
	for _, k := range n.children.Load().list {
		if !t.remove(k.node) {
			left = append(left, k)
		}
	}
	t.setChildren(n, left)
	t.settle(n)
}

// remove marks an empty node as removed, unless a value was added meanwhile.
func (t *trie[T]) remove(n *node[T]) bool {
	n.Lock()
	defer n.Unlock()
	if !n.isEmpty() {
		return false
	}
	n.gone = true
	t.settle(n)
	return true
}
