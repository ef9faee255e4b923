package shape

import (
	"runtime"
	"slices"
)

const (
	probation = 8    // sweeps in one of which a node's values are tested
	few       = 1024 // entries up to which all are tested, not a sample
	samples   = 32   // one value in so many is of the sample; a power of two
	slack     = 8    // one entry in so many may be dead before all are tested
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
	routine phase = iota // promote, and test the sample once in so many sweeps
	weaken               // hold all weakly, so that the next collection tells what is reachable
	promote              // hold all strongly
)

// sampled reports whether a value belongs to the sample. Keys are hashes;
// tables go by their upper bits.
func sampled(key uint32) bool { return key>>1%samples == 0 }

// startsWeak reports whether a new value is held weakly until it has survived
// a collection. The runtime needs time and memory for each that is.
func (t *trie[T]) startsWeak(key uint32) bool {
	return sampled(key) || t.account.entries.Load() <= few || t.storm.Load()
}

// sweep takes out what was collected. One sweep at a time.
//
// A value can be known to be dead only if it was held weakly while a
// collection ran; held strongly it is found more quickly, and takes less
// memory. So what survives a collection is held strongly, and one sweep in
// some weakens it again: all values while they are few, otherwise a sample.
// When the sample's dead stand for more than the slack, the rest is weakened
// too, and while that goes on nothing is promoted, and new values begin weakly.
func (t *trie[T]) sweep(p phase) {
	t.tick++
	if p == routine && t.storm.Load() {
		p = weaken
	}
	dead := 0
	for rank := range t.roots {
		dead += t.sweepNode(&t.roots[rank], p)
	}
	if p == promote {
		t.found = 0
		t.storm.Store(false)
		return
	}
	t.found += dead
	entries := int(t.account.entries.Load())
	t.storm.Store(entries > few && t.found*samples > entries/slack)
	if p == weaken {
		t.found = 0 // what was strong before is not so any more
	}
}

// sweepNode sweeps n and all below it and returns how many of the sample it
// found dead.
func (t *trie[T]) sweepNode(n *node[T], p phase) int {
	dead := t.sweepValues(n, p)
	empty := false
	for _, k := range n.kids.Load().all(nil) {
		dead += t.sweepNode(k.node, p)
		empty = empty || k.node.isEmpty()
	}
	if empty {
		t.prune(n)
	}
	return dead
}

func (n *node[T]) isEmpty() bool {
	return n.kids.Load() == nil && n.held.Load() == nil && n.weak.Load() == nil
}

func (t *trie[T]) sweepValues(n *node[T], p phase) (deadSamples int) {
	mu := t.lock(n)
	mu.Lock()
	defer mu.Unlock()
	held, weak := n.held.Load(), n.weak.Load()
	test := func(uint32) bool { return true }
	if p == routine {
		p = promote
		if (t.tick+int(n.path>>48))%probation == 0 {
			p = weaken
			if t.account.entries.Load() > few {
				test = sampled
			}
		}
	}
	if weak == nil && (held == nil || p == promote) {
		return 0
	}
	live := weak.live(nil)
	dead := weak.len() - len(live)
	t.account.drop(dead)
	deadSamples = weak.samples() - samplesOf(live)
	// First into the table where values go, then out of the one they leave.
	if p == promote {
		if held == nil || held.used+len(live) > held.room {
			n.held.Store(newHeld(held.leaves(live), n.level == 0))
		} else {
			for _, l := range live {
				held.add(l)
			}
		}
		n.weak.Store(nil)
		n.heldBytes, n.weakBytes = n.heldBytes+t.sizes(live), 0
	} else {
		stay := held.leaves(nil)
		stay = slices.DeleteFunc(stay, func(l leaf[T]) bool {
			if test(l.key) {
				live = append(live, l)
			}
			return test(l.key)
		})
		n.weak.Store(newWeak(live))
		n.held.Store(newHeld(stay, n.level == 0))
		n.heldBytes, n.weakBytes = t.sizes(stay), t.sizes(live)
	}
	if dead > 0 {
		n.crowd = min(n.crowd, max(t.crowd, 2*(n.held.Load().len()+n.weak.Load().len())))
	}
	t.settle(n)
	return deadSamples
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
