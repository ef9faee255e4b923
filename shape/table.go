package shape

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"
	"weak"
)

// perBlock is the number of slots of a block, which is a cache line. Slots are
// filled in order, so an empty slot ends a search.
const perBlock = 4

// leaf is a value and its key in the tables; see [keys].
type leaf[T any] struct {
	key     uint64
	aged    bool // an earlier sweep has seen it
	witness bool // see [trie.sweep]
	value   *T
	ref     weak.Pointer[T] // zero until it is needed, because the runtime makes weak pointers slowly
}

// strongTable holds values strongly, so that reading one costs a single load. A
// slot is written once, its value before its key, so readers need no lock.
type strongTable[T any] struct {
	blocks   []strongBlock[T]
	_        [64]byte // readers load the cache line above
	used     int      // slots in use; guarded by the node's lock, as is capacity
	capacity int      // slots that may be used
}

type strongBlock[T any] struct {
	keys   [perBlock]atomic.Uint64
	values [perBlock]*T
}

// newStrong returns a table of the leaves with spare free slots, or nil for no
// leaves. A wide table has nearly all leaves in their home blocks.
func newStrong[T any](leaves []leaf[T], wide bool) *strongTable[T] {
	n := len(leaves)
	if n == 0 {
		return nil
	}
	t := &strongTable[T]{capacity: n + n/4 + 1}
	slots := t.capacity * 7 / 5
	if wide && n < wideMost {
		slots = t.capacity * 2
	}
	t.blocks = make([]strongBlock[T], slots/perBlock+1)
	for _, l := range leaves {
		t.add(l)
	}
	return t
}

// wideMost is the largest number of values for which tables are made wide.
const wideMost = 512

// isFull reports whether the next value needs a larger table.
func (t *strongTable[T]) isFull() bool { return t.used >= t.capacity }

// add publishes a leaf in a table that is not full.
func (t *strongTable[T]) add(l leaf[T]) {
	for i := home(l.key, len(t.blocks)); ; i = after(i, len(t.blocks)) {
		b := &t.blocks[i]
		for slot := range perBlock {
			if b.keys[slot].Load() == 0 {
				b.values[slot] = l.value
				b.keys[slot].Store(l.key)
				t.used++
				return
			}
		}
	}
}

// home returns the block where the search for key begins.
func home(key uint64, blocks int) int {
	block, _ := bits.Mul64(key, uint64(blocks))
	return int(block)
}

func after(block, blocks int) int {
	if block++; block == blocks {
		return 0
	}
	return block
}

// slotOf returns the slot of a block that has the key, if exactly one has it.
// It computes the slot with bit operations: the compiler turns a conditional
// address into a branch, which the processor could not predict.
func slotOf(key uint64, keys *[perBlock]atomic.Uint64) int {
	return bit(keys[1].Load() == key) | bit(keys[2].Load() == key)<<1 | bit(keys[3].Load() == key)*3
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// find returns the value with the key if exactly one has it, as is true of an
// exact key.
func (t *strongTable[T]) find(key uint64) *T {
	if t == nil {
		return nil
	}
	n := len(t.blocks)
	for i := home(key, n); ; i = after(i, n) {
		b := &t.blocks[i]
		if slot := slotOf(key, &b.keys); b.keys[slot].Load() == key {
			return b.values[slot]
		}
		if b.keys[perBlock-1].Load() == 0 {
			return nil
		}
	}
}

// at returns the first value with the key from step on, and the next step; nil
// if there is none. A search begins at step 0.
func (t *strongTable[T]) at(key uint64, step int) (*T, int) {
	if t == nil {
		return nil, 0
	}
	n := len(t.blocks)
	i := home(key, n) + step/perBlock
	if i >= n {
		i -= n
	}
	for ; step < n*perBlock; i = after(i, n) {
		b := &t.blocks[i]
		for slot := step % perBlock; slot < perBlock; slot++ {
			step++
			switch b.keys[slot].Load() {
			case key:
				return b.values[slot], step
			case 0:
				return nil, 0
			}
		}
	}
	return nil, 0
}

// leaves appends the table's values to into.
func (t *strongTable[T]) leaves(into []leaf[T]) []leaf[T] {
	if t == nil {
		return into
	}
	for i := range t.blocks {
		b := &t.blocks[i]
		for slot := range perBlock {
			if key := b.keys[slot].Load(); key != 0 {
				into = append(into, leaf[T]{key: key, value: b.values[slot]})
			}
		}
	}
	return into
}

func (t *strongTable[T]) len() int {
	if t == nil {
		return 0
	}
	return t.used
}

// weakTable holds values weakly, in slots like those of [strongTable]. Slots of
// dead values are freed when the table is replaced.
type weakTable[T any] struct {
	blocks []weakBlock[T]
	_      [64]byte // readers load the cache line above
	marks  []marks  // of each block; guarded by the node's lock, as is used
	used   int      // slots in use
}

type weakBlock[T any] struct {
	keys   [perBlock]atomic.Uint64
	values [perBlock]weak.Pointer[T]
}

// marks are the flags of a block's leaves, one bit for each slot.
type marks struct{ aged, witnesses uint8 }

// newWeak returns a table of the leaves with at least so many slots, or nil for
// no slots.
func newWeak[T any](leaves []leaf[T], extra int) *weakTable[T] {
	if len(leaves) == 0 && extra == 0 {
		return nil
	}
	n := max(len(leaves)*3/2, extra*10/9)/perBlock + 1
	t := &weakTable[T]{blocks: make([]weakBlock[T], n), marks: make([]marks, n)}
	for _, l := range leaves {
		t.add(l)
	}
	return t
}

// isFull reports whether the next value needs a larger table.
func (t *weakTable[T]) isFull() bool { return t.used >= len(t.blocks)*perBlock-len(t.blocks)/2 }

// add publishes a leaf in a table that is not full.
func (t *weakTable[T]) add(l leaf[T]) {
	for i := home(l.key, len(t.blocks)); ; i = after(i, len(t.blocks)) {
		b := &t.blocks[i]
		for slot := range perBlock {
			if b.keys[slot].Load() == 0 {
				if l.ref == (weak.Pointer[T]{}) {
					l.ref = weak.Make(l.value)
				}
				b.values[slot] = l.ref
				if l.aged {
					t.marks[i].aged |= 1 << slot
				}
				if l.witness {
					t.marks[i].witnesses |= 1 << slot
				}
				b.keys[slot].Store(l.key)
				t.used++
				return
			}
		}
	}
}

// at returns the first live value with the key from step on, in the same way as
// [strongTable.at].
func (t *weakTable[T]) at(key uint64, step int) (*T, int) {
	if t == nil {
		return nil, 0
	}
	n := len(t.blocks)
	i := home(key, n) + step/perBlock
	if i >= n {
		i -= n
	}
	for ; step < n*perBlock; i = after(i, n) {
		b := &t.blocks[i]
		for slot := step % perBlock; slot < perBlock; slot++ {
			step++
			switch b.keys[slot].Load() {
			case key:
				if v := b.values[slot].Value(); v != nil {
					return v, step
				}
			case 0:
				return nil, 0
			}
		}
	}
	return nil, 0
}

// all iterates over the table's values, including dead ones.
func (t *weakTable[T]) all(yield func(leaf[T]) bool) {
	if t == nil {
		return
	}
	for i, m := range t.marks {
		b := &t.blocks[i]
		for slot := range perBlock {
			key := b.keys[slot].Load()
			if key != 0 && !yield(leaf[T]{key: key, aged: m.aged>>slot&1 != 0, witness: m.witnesses>>slot&1 != 0, ref: b.values[slot]}) {
				return
			}
		}
	}
}

// grown returns a table with the same values and as many free slots.
func (t *weakTable[T]) grown() *weakTable[T] {
	larger := newWeak[T](nil, 2*t.len()+1)
	for l := range t.all {
		larger.add(l)
	}
	return larger
}

// dead counts values that were found dead, and the witnesses among them.
type dead struct{ all, witnesses int }

func (d *dead) add(e dead) { d.all, d.witnesses = d.all+e.all, d.witnesses+e.witnesses }

// live appends the table's live values to into and counts the others.
func (t *weakTable[T]) live(into []leaf[T]) (_ []leaf[T], d dead) {
	for l := range t.all {
		if l.value = l.ref.Value(); l.value != nil {
			into = append(into, l)
			continue
		}
		d.all++
		if l.witness {
			d.witnesses++
		}
	}
	return into, d
}

func (t *weakTable[T]) len() int {
	if t == nil {
		return 0
	}
	return t.used
}

// childTable finds a node's children by the class of the next word of the path.
// It is immutable. A class without a child has the node itself, so that a
// lookup needs no branch for a miss, which the processor could not predict.
type childTable[T any] struct {
	slots []*node[T] // by class; one slot if there are no children
	mask  uint64
	list  []child[T] // the children in a row
}

// child is the child node for a class of words.
type child[T any] struct {
	class int
	node  *node[T]
}

// classOf returns the class of a word. The odd multiplier spreads words over
// classes: words smaller than the number of classes seldom share one, and words
// that do share a child.
func classOf(word int, spread uint64) uint64 { return uint64(word) * spread >> (64 - classBits) }

// newChildren returns the table of a node with children of different classes.
func newChildren[T any](owner *node[T], children []child[T]) *childTable[T] {
	n := classes
	if len(children) == 0 {
		n = 1
	}
	t := &childTable[T]{slots: make([]*node[T], n), mask: uint64(n - 1), list: slices.Clip(children)}
	for i := range t.slots {
		t.slots[i] = owner
	}
	for _, k := range children {
		t.slots[k.class] = k.node
	}
	return t
}

// next returns the child for a class, or the table's own node if there is none.
func (t *childTable[T]) next(class uint64) *node[T] { return t.slots[class&t.mask] }

// Sizes of the tables in bytes, for the statistics.

func (t *strongTable[T]) bytes() int {
	if t == nil {
		return 0
	}
	return int(unsafe.Sizeof(*t)) + len(t.blocks)*int(unsafe.Sizeof(strongBlock[T]{}))
}

func (t *weakTable[T]) bytes() int {
	if t == nil {
		return 0
	}
	return int(unsafe.Sizeof(*t)) + len(t.blocks)*int(unsafe.Sizeof(weakBlock[T]{})+unsafe.Sizeof(marks{}))
}

func (t *childTable[T]) bytes() int {
	return int(unsafe.Sizeof(*t)) + len(t.slots)*int(unsafe.Sizeof(t)) + len(t.list)*int(unsafe.Sizeof(child[T]{}))
}
