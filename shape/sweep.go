package shape

import (
	"runtime"
	"weak"
)

const (
	probation = 8   // sweeps in one of which a node's values are tested
	few       = 256 // entries up to which all are tested, not a sample
	samples   = 32  // one value in so many is of the sample; a power of two
	slack     = 8   // one entry in so many may be dead before all are tested
)

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
	routine phase = iota // promote, and test some
	weaken               // hold all weakly, so that the next collection tells what is reachable
	promote              // hold all strongly
)

// sampled reports whether a value belongs to the sample. Tables go by other
// bits of its key.
func sampled(key uint64) bool { return key>>32%samples == 0 }

// begin reports whether a new value is held weakly until it has survived a
// collection, and prepares it for that. The runtime needs time and memory for
// each that is.
func (t *trie[T]) begin(l *leaf[T]) (weakly bool) {
	if t.account.entries.Load() > few && !t.storm.Load() {
		if l.witness = sampled(l.key); !l.witness {
			return false
		}
	}
	l.ref = weak.Make(l.value)
	return true
}

// sweep takes out what was collected. One sweep at a time.
//
// A value can be known to be dead only if it was held weakly while a
// collection ran, a whole one, from one sweep to the next; held strongly it is
// found more quickly, and takes less memory. So what survives one is held
// strongly, and one sweep in some weakens it again: all values while they are
// few, otherwise a sample. Who of the sample is held weakly while others like
// it are not is a witness for them. When the dead witnesses stand for more than
// the slack, all are weakened at once.
//
// New values begin strongly, witnesses aside. When many die, they begin weakly
// until that is over; it is then the young who die, and those who survived a
// collection are held strongly all the while.
func (t *trie[T]) sweep(p phase) {
	t.tick++
	d := t.sweepAll(p)
	if p != routine {
		t.found = 0
		t.storm.Store(false)
		return
	}
	t.found += d.witnesses
	entries := int(t.account.entries.Load())
	stormy := d.all-d.witnesses > max(entries, few)/slack
	switch {
	case entries <= few:
		t.found = 0
	case t.found*samples > entries/slack:
		t.sweepAll(weaken)
		t.found, stormy = 0, true
	}
	t.storm.Store(stormy)
}

func (t *trie[T]) sweepAll(p phase) (d dead) {
	for rank := range t.roots {
		d.add(t.sweepNode(&t.roots[rank], p))
	}
	return d
}

// sweepNode sweeps n and all below it.
func (t *trie[T]) sweepNode(n *node[T], p phase) dead {
	d := t.sweepValues(n, p)
	empty := false
	for _, k := range n.kids.Load().kids {
		d.add(t.sweepNode(k.node, p))
		empty = empty || k.node.isEmpty()
	}
	if empty {
		t.prune(n)
	}
	return d
}

func (n *node[T]) isEmpty() bool {
	return len(n.kids.Load().kids) == 0 && n.strong.Load() == nil && n.weak.Load() == nil
}

// tested says which values of a node a sweep holds weakly.
type tested uint8

const (
	none tested = iota
	sample
	all
)

func (t tested) covers(key uint64) bool { return t == all || t == sample && sampled(key) }

func (t *trie[T]) tests(n *node[T], p phase) tested {
	due := (t.tick+int(n.path>>48))%probation == 0
	switch {
	case p == weaken:
		return all
	case p == promote:
		return none
	case due && t.account.entries.Load() <= few:
		return all
	case due || t.storm.Load():
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
			l.witness = true // its like go up
		}
		l.aged = true
		stay = append(stay, l)
	}
	extra := 0
	if p == routine && n.level == 0 && t.storm.Load() {
		extra = frail.len() // as many come again
	}
	if test == none {
		t.promote(n, up, stay, extra)
	} else {
		t.test(n, up, stay, extra, test)
	}
	if d.all > 0 {
		n.crowd = min(n.crowd, max(t.crowd, 2*(n.strong.Load().len()+n.weak.Load().len())))
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
	n.weak.Store(newWeak(stay, extra)) // the last: readers look here after they looked there
	n.strongBytes, n.weakBytes = n.strongBytes+t.sizes(up), t.sizes(stay)
}

// test moves the values that are tested into the weak table; those of a sample
// are then witnesses.
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
			stay[i].witness = false // there is nobody else
		}
	}
	n.weak.Store(newWeak(stay, extra)) // first, so that readers miss nothing that leaves the other
	n.strong.Store(newStrong(strong, n.level == 0))
	n.strongBytes, n.weakBytes = t.sizes(strong), t.sizes(stay)
}

// prune takes the empty children out of n. The sweeper alone holds two locks
// at once, a child's after its parent's.
func (t *trie[T]) prune(n *node[T]) {
	n.Lock()
	defer n.Unlock()
	var left []kid[T]
	for _, k := range n.kids.Load().kids {
		if !t.remove(k.node) {
			left = append(left, k)
		}
	}
	t.setKids(n, left)
	t.settle(n)
}

// remove marks an empty node as gone, unless somebody has put a value into it.
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
