package shape

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	stripes       = 64    // locks of a trie under which values are created; a power of two
	maxLevels     = 16    // words of a path that nodes branch on; the key covers all words
	nodeLimit     = 16384 // values of a node above which it is split
	weakFactor    = 4     // so many times as many if they are held weakly, because most of those die soon
	minChildShare = 16    // a child is made for at least one in so many of a full node's values

	classBits = 8
	classes   = 1 << classBits // of words
)

// trie interns values of type T under paths of words. The rank selects a root,
// and each level below it branches on the class of one word, which few words
// share. Values are in the tables of the node at the end of their path. When a
// node has more values than its limit, groups of values that have the same next
// class move into children, if a group is large enough. So prefixes are stored
// once, and paths are as short as the limit permits.
//
// Readers take no lock and write nothing. They load the children of a node,
// then its strong values, then its weak values. A writer holds the node's lock
// and publishes tables in that order when values move down or from strong to
// weak. When a value moves from weak to strong, a reader may miss it; it then
// searches again under the lock.
//
// A value is created, which takes time, under the stripe of its key instead of
// the lock of its node: it is created once, and goroutines that create other
// values do not wait.
type trie[T any] struct {
	roots  [maxLevels + 1]node[T]
	making [stripes]struct {
		sync.Mutex
		_ [64]byte // stripes do not share cache lines, for any alignment of the first one
	}
	keys   keys
	spread uint64 // random odd multiplier of this process that spreads words over classes

	account   *account
	nodeLimit int              // the constant of this name; tests change it
	words     func(v *T) []int // the path of a value
	size      func(v *T) int   // bytes of a value
	newWeakly atomic.Bool      // so many new values die that they are held weakly at first
	tick      int              // counts sweeps; it and the fields below are the sweeper's
	found     int              // dead witnesses since all values were last tested
}

// node holds the paths that begin with words of the same classes.
type node[T any] struct {
	children atomic.Pointer[childTable[T]]
	strong   atomic.Pointer[strongTable[T]]
	weak     atomic.Pointer[weakTable[T]]
	path     uint64        // hash of the classes
	depth    atomic.Uint32 // of a root: the number of levels below it
	level    uint8
	rank     uint8    // of the root above it
	_        [64]byte // fields that readers load do not share a cache line with fields that change

	sync.Mutex      // guards the tables and the fields below
	bytes       int // of its values and tables
	strongBytes int // of its strong values
	weakBytes   int
	nodeLimit   int  // number of values above which it is split
	lost        dead // since the last sweep
	gone        bool // removed from the trie
	_           [64]byte
}

func (t *trie[T]) open(a *account, words func(*T) []int, size func(*T) int) {
	t.account, t.words, t.size, t.spread = a, words, size, rand.Uint64()|1
	t.keys.open()
	for rank := range t.roots {
		n := &t.roots[rank]
		n.path, n.rank = (uint64(rank)+1)*t.spread, uint8(rank)
		t.setChildren(n, nil)
	}
	t.setNodeLimit(nodeLimit)
}

// setNodeLimit sets the limit of an empty trie's nodes.
func (t *trie[T]) setNodeLimit(n int) {
	t.nodeLimit = n
	for rank := range t.roots {
		t.roots[rank].nodeLimit = n
	}
}

// find returns the node at which a path ends at present.
func (t *trie[T]) find(words []int) *node[T] {
	n := &t.roots[min(len(words), maxLevels)]
	return n.descend(words, t.spread)
}

// descend takes as many steps from a root as there are levels below it. At the
// end of the path a step leads to the same node.
func (n *node[T]) descend(words []int, spread uint64) *node[T] {
	for range n.depth.Load() {
		n = n.children.Load().next(classOf(words[n.level], spread))
	}
	return n
}

// isEnd reports whether a path through n ends there.
func (n *node[T]) isEnd(words []int, spread uint64) bool {
	return int(n.level) >= len(words) || n.children.Load().next(classOf(words[n.level], spread)) == n
}

// search returns the node's value that is the same, or nil.
func (n *node[T]) search(key uint64, same func(*T) bool) *T {
	strong := n.strong.Load()
	for v, i := strong.at(key, 0); v != nil; v, i = strong.at(key, i) {
		if same(v) {
			return v
		}
	}
	weak := n.weak.Load()
	for v, i := weak.at(key, 0); v != nil; v, i = weak.at(key, i) {
		if same(v) {
			return v
		}
	}
	return nil
}

// lock returns the node at which a path ends, locked.
func (t *trie[T]) lock(words []int) *node[T] {
	for {
		n := t.find(words)
		n.Lock()
		if !n.gone && n.isEnd(words, t.spread) {
			return n
		}
		n.Unlock()
	}
}

// lookup returns the interned value of a path that equals the given one, or
// nil. It finds values that are being moved, too.
func (t *trie[T]) lookup(words []int, key uint64, same func(*T) bool) *T {
	n := t.lock(words)
	defer n.Unlock()
	return n.search(key, same)
}

// intern returns the interned value of a path that equals the given one, or
// else creates it. Callers have searched without a lock before.
func (t *trie[T]) intern(words []int, same func(*T) bool, create func() *T) (*T, error) {
	key := t.keys.of(words)
	mu := &t.making[key>>32%stripes].Mutex
	mu.Lock()
	defer mu.Unlock()
	if v := t.lookup(words, key, same); v != nil {
		return v, nil
	}
	if !t.account.reserve() && (!t.account.evictDropped() || !t.account.reserve()) {
		return nil, t.account.full()
	}
	l := leaf[T]{key: key, value: create()}
	weakly := t.begin(&l)
	n := t.lock(words)
	t.add(n, l, weakly)
	n.Unlock()
	return l.value, nil
}

// add inserts a new value into a node, which is locked.
func (t *trie[T]) add(n *node[T], l leaf[T], weakly bool) {
	if weakly {
		weak := n.weak.Load()
		if weak == nil || weak.isFull() {
			weak = weak.grown()
			weak.add(l)
			n.weak.Store(weak)
		} else {
			weak.add(l)
		}
		n.weakBytes += t.size(l.value)
	} else {
		strong := n.strong.Load()
		if strong == nil || strong.isFull() {
			n.strong.Store(newStrong(append(strong.leaves(nil), l), n.level == 0))
		} else {
			strong.add(l)
		}
		n.strongBytes += t.size(l.value)
	}
	t.settle(n)
	if n.strong.Load().len() > n.nodeLimit || n.weak.Load().len() > weakFactor*n.nodeLimit {
		t.burst(n)
	}
}

func (t *trie[T]) sizes(leaves []leaf[T]) (sum int) {
	for _, l := range leaves {
		sum += t.size(l.value)
	}
	return sum
}

// settle updates the statistics to the node's present values and tables.
func (t *trie[T]) settle(n *node[T]) {
	bytes := n.strongBytes + n.weakBytes + n.strong.Load().bytes() + n.weak.Load().bytes()
	if n.level > 0 && !n.gone {
		bytes += int(unsafe.Sizeof(*n))
	}
	// The root and its table of children exist from the start, so they do not
	// count.
	if children := n.children.Load(); n.level > 0 && !n.gone || len(children.list) > 0 {
		bytes += children.bytes()
	}
	t.account.grow(bytes - n.bytes)
	n.bytes = bytes
}

// burst moves values of a node above its limit into children. The node is
// locked or not yet published.
func (t *trie[T]) burst(n *node[T]) {
	live, d := n.weak.Load().live(nil)
	t.account.drop(d.all)
	n.lost.add(d)
	all := group[T]{strong: n.strong.Load().leaves(nil), weak: live}
	children := n.children.Load().list
	stay := all
	if groups := t.split(int(n.level), &all); groups != nil {
		stay = group[T]{}
		for class, g := range groups {
			if g.len() < t.nodeLimit/minChildShare {
				stay.strong, stay.weak = append(stay.strong, g.strong...), append(stay.weak, g.weak...)
				continue
			}
			children = append(children, child[T]{class, t.newNode(n, class, g)})
		}
	}
	t.fill(n, &stay, children)
}

// group is a set of values of a node, for instance those whose next words have
// the same class.
type group[T any] struct{ strong, weak []leaf[T] }

func (g *group[T]) len() int { return len(g.strong) + len(g.weak) }

// split groups values by the class of their word at the level; nil if their
// paths end there.
func (t *trie[T]) split(level int, all *group[T]) map[int]*group[T] {
	groups := map[int]*group[T]{}
	of := func(l leaf[T]) *group[T] {
		words := t.words(l.value)
		if level >= len(words) || level >= maxLevels {
			return nil
		}
		class := int(classOf(words[level], t.spread))
		g := groups[class]
		if g == nil {
			g = &group[T]{}
			groups[class] = g
		}
		return g
	}
	for _, l := range all.strong {
		g := of(l)
		if g == nil {
			return nil
		}
		g.strong = append(g.strong, l)
	}
	for _, l := range all.weak {
		g := of(l)
		if g == nil {
			return nil
		}
		g.weak = append(g.weak, l)
	}
	return groups
}

// newNode returns a new child of n with the values of g.
func (t *trie[T]) newNode(n *node[T], class int, g *group[T]) *node[T] {
	child := &node[T]{path: (n.path ^ uint64(class)) * t.spread, level: n.level + 1, rank: n.rank}
	t.fill(child, g, nil)
	if len(g.strong) > t.nodeLimit || len(g.weak) > weakFactor*t.nodeLimit {
		t.burst(child)
	}
	return child
}

// setChildren sets the children of a node. It increases the root's depth before
// it publishes them and reduces it after it removes them, so that a reader that
// sees the children also takes enough steps.
func (t *trie[T]) setChildren(n *node[T], children []child[T]) {
	root := &t.roots[n.rank]
	if deep := uint32(n.level) + 1; len(children) > 0 {
		for old := root.depth.Load(); deep > old && !root.depth.CompareAndSwap(old, deep); old = root.depth.Load() {
		}
	}
	n.children.Store(newChildren(n, children))
	if n == root && len(children) == 0 {
		n.depth.Store(0)
	}
}

// fill sets the values and children of a node.
func (t *trie[T]) fill(n *node[T], g *group[T], children []child[T]) {
	n.nodeLimit = max(t.nodeLimit, 2*g.len())
	t.setChildren(n, children)
	n.weak.Store(newWeak(g.weak, 0))
	n.strong.Store(newStrong(g.strong, n.level == 0))
	n.strongBytes, n.weakBytes = t.sizes(g.strong), t.sizes(g.weak)
	t.settle(n)
}
