package shape

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	stripes   = 64    // locks of a trie for making values; a power of two
	maxLevels = 16    // words of a path that nodes branch on; the key covers all
	crowd     = 16384 // values that a node takes before some move down
	young     = 4     // so many times as many if they are held weakly: most die soon
	worth     = 16    // one part in so many of a crowd is worth a child

	classBits = 8
	classes   = 1 << classBits // of words
)

// trie interns values of type T under paths of words: the rank chooses a
// root, each level below it branches on the class of one word, which few words
// share. Values sit in the tables of the node that their path leads to; when a
// node has become crowded, those of its values that share their next class with
// enough others move down into a child. So prefixes are stored once, and paths
// are no longer than the crowd demands.
//
// Readers take no lock and write nothing: they load the children of a node,
// then the values it holds strongly, then those it holds weakly. Whoever
// changes a node holds its lock and publishes tables in that order when
// values move down or from strong to weak; where a value moves the other way a
// reader may miss it, and then looks again under the lock.
//
// A value is made, which takes time, under the stripe of its key and not under
// the lock of its node: so it is made once, and those who make others need
// not wait.
type trie[T any] struct {
	roots  [maxLevels + 1]node[T]
	making [stripes]struct {
		sync.Mutex
		_ [64]byte // stripes do not share cache lines, wherever the first one starts
	}
	keys   keys
	spread uint64 // odd multiplier that spreads words over classes, of this process alone

	account *account
	crowd   int              // as the constant, but for tests
	words   func(v *T) []int // the path of a value
	size    func(v *T) int   // bytes of a value
	storm   atomic.Bool      // so many die young that new values begin weakly
	tick    int              // counts sweeps; like what follows only the sweeper uses it
	found   int              // dead witnesses since all values were tested
}

// node is the paths that begin alike: with words of the same classes.
type node[T any] struct {
	kids   atomic.Pointer[kidTable[T]]
	strong atomic.Pointer[strongTable[T]]
	weak   atomic.Pointer[weakTable[T]]
	path   uint64        // hash of the classes
	depth  atomic.Uint32 // of a root: levels below it
	level  uint8
	rank   uint8    // which root it is below
	_      [64]byte // what readers load does not share a cache line with what changes

	sync.Mutex      // guards the tables and all below
	bytes       int // of its values and tables
	strongBytes int // of its values alone
	weakBytes   int
	crowd       int  // how many values it takes before some move down
	lost        dead // since the last sweep
	gone        bool // it left the trie
	_           [64]byte
}

func (t *trie[T]) open(a *account, words func(*T) []int, size func(*T) int) {
	t.account, t.words, t.size, t.spread = a, words, size, rand.Uint64()|1
	t.keys.open()
	for rank := range t.roots {
		n := &t.roots[rank]
		n.path, n.rank = (uint64(rank)+1)*t.spread, uint8(rank)
		t.setKids(n, nil)
	}
	t.setCrowd(crowd)
}

// setCrowd is for an empty trie.
func (t *trie[T]) setCrowd(n int) {
	t.crowd = n
	for rank := range t.roots {
		t.roots[rank].crowd = n
	}
}

// find returns the node where a path ends at present.
func (t *trie[T]) find(words []int) *node[T] {
	n := &t.roots[min(len(words), maxLevels)]
	return n.descend(words, t.spread)
}

// descend takes as many steps from a root as there are levels below it: those
// behind the end of the path stay there.
func (n *node[T]) descend(words []int, spread uint64) *node[T] {
	for range n.depth.Load() {
		n = n.kids.Load().next(classOf(words[n.level], spread))
	}
	return n
}

// isEnd reports whether a path through n ends there.
func (n *node[T]) isEnd(words []int, spread uint64) bool {
	return int(n.level) >= len(words) || n.kids.Load().next(classOf(words[n.level], spread)) == n
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

// lock returns the node where a path ends, locked.
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

// lookup returns the value of a path that is the same, or nil, also while it
// moves.
func (t *trie[T]) lookup(words []int, key uint64, same func(*T) bool) *T {
	n := t.lock(words)
	defer n.Unlock()
	return n.search(key, same)
}

// intern returns the value of a path that is the same, or else the one that
// create makes. It is for those who did not find it without a lock.
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

// add puts a new value into a node, which is locked.
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
	if n.strong.Load().len() > n.crowd || n.weak.Load().len() > young*n.crowd {
		t.burst(n)
	}
}

func (t *trie[T]) sizes(leaves []leaf[T]) (sum int) {
	for _, l := range leaves {
		sum += t.size(l.value)
	}
	return sum
}

// settle brings the statistics up to what the node has now.
func (t *trie[T]) settle(n *node[T]) {
	bytes := n.strongBytes + n.weakBytes + n.strong.Load().bytes() + n.weak.Load().bytes()
	if n.level > 0 && !n.gone {
		bytes += int(unsafe.Sizeof(*n))
	}
	// A root, like its table without children, is there from the start.
	if kids := n.kids.Load(); n.level > 0 && !n.gone || len(kids.kids) > 0 {
		bytes += kids.bytes()
	}
	t.account.grow(bytes - n.bytes)
	n.bytes = bytes
}

// burst moves values of a crowded node, which is locked or not yet published,
// down into children.
func (t *trie[T]) burst(n *node[T]) {
	live, d := n.weak.Load().live(nil)
	t.account.drop(d.all)
	n.lost.add(d)
	all := group[T]{strong: n.strong.Load().leaves(nil), weak: live}
	kids := n.kids.Load().kids
	stay := all
	if groups := t.split(int(n.level), &all); groups != nil {
		stay = group[T]{}
		for class, g := range groups {
			if g.len() < t.crowd/worth {
				stay.strong, stay.weak = append(stay.strong, g.strong...), append(stay.weak, g.weak...)
				continue
			}
			kids = append(kids, kid[T]{class, t.newNode(n, class, g)})
		}
	}
	t.fill(n, &stay, kids)
}

// group is values of a node, such as those whose next words are of one class.
type group[T any] struct{ strong, weak []leaf[T] }

func (g *group[T]) len() int { return len(g.strong) + len(g.weak) }

// split sorts values by the class of their word at the level; nil when they end there.
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

// newNode returns the child of n with the values of g.
func (t *trie[T]) newNode(n *node[T], class int, g *group[T]) *node[T] {
	kid := &node[T]{path: (n.path ^ uint64(class)) * t.spread, level: n.level + 1, rank: n.rank}
	t.fill(kid, g, nil)
	if len(g.strong) > t.crowd || len(g.weak) > young*t.crowd {
		t.burst(kid)
	}
	return kid
}

// setKids sets the children of a node. The depth comes before them and goes after
// them, so that who sees them goes as far.
func (t *trie[T]) setKids(n *node[T], kids []kid[T]) {
	root := &t.roots[n.rank]
	if deep := uint32(n.level) + 1; len(kids) > 0 {
		for old := root.depth.Load(); deep > old && !root.depth.CompareAndSwap(old, deep); old = root.depth.Load() {
		}
	}
	n.kids.Store(newKids(n, kids))
	if n == root && len(kids) == 0 {
		n.depth.Store(0)
	}
}

// fill sets the values and children of a node.
func (t *trie[T]) fill(n *node[T], g *group[T], kids []kid[T]) {
	n.crowd = max(t.crowd, 2*g.len())
	t.setKids(n, kids)
	n.weak.Store(newWeak(g.weak, 0))
	n.strong.Store(newStrong(g.strong, n.level == 0))
	n.strongBytes, n.weakBytes = t.sizes(g.strong), t.sizes(g.weak)
	t.settle(n)
}
