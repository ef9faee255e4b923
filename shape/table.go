package shape

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"
	"weak"
)

// perBlock is the number of slots of a block, which is a cache line. Slots fill
// in order, so an empty one ends a search.
const perBlock = 4

// leaf is a value and the key that tables find it by, see [keys].
type leaf[T any] struct {
	key     uint64
	aged    bool // it was there at an earlier sweep
	witness bool // see [trie.sweep]
	value   *T
	ref     weak.Pointer[T] // zero until somebody needs it: the runtime makes it slowly
}

// strongTable holds values strongly: reading one costs a load. A slot is written
// once, its value before its key, so that readers need no lock.
type strongTable[T any] struct {
	blocks   []strongBlock[T]
	_        [64]byte // readers load the line above
	used     int      // slots taken; like capacity under the node's lock
	capacity int      // slots that may be taken
}

type strongBlock[T any] struct {
	keys   [perBlock]atomic.Uint64
	values [perBlock]*T
}

// newStrong returns a table of the leaves with free slots for some more, nil when
// there are none. A wide one has nearly all of them at home.
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

// wideMost is the number of values up to which speed comes before bytes.
const wideMost = 512

// isFull reports whether the next value wants a larger table.
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

// slotOf returns the slot of a block that has the key if just one has. It does
// not branch on which it is, which nobody could predict: the compiler makes a
// branch of what chooses an address, but not of bits.
func slotOf(key uint64, keys *[perBlock]atomic.Uint64) int {
	return bit(keys[1].Load() == key) | bit(keys[2].Load() == key)<<1 | bit(keys[3].Load() == key)*3
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// find returns the value with the key if there is just one, as of an exact key.
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

// at returns the first value with the key from step on, and the step behind
// it; nil when there is no more. A search begins with step 0.
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

// weakTable holds values weakly, in slots like those of [strongTable]; the slots
// of the dead go with the table.
type weakTable[T any] struct {
	blocks []weakBlock[T]
	_      [64]byte // readers load the line above
	marks  []marks  // of each block; like used under the node's lock
	used   int      // slots taken
}

type weakBlock[T any] struct {
	keys   [perBlock]atomic.Uint64
	values [perBlock]weak.Pointer[T]
}

// marks are what leaves say beside their values, a bit for each slot.
type marks struct{ aged, witnesses uint8 }

// newWeak returns a table of the leaves with slots for so many values at least,
// nil when that is none.
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

// isFull reports whether the next value wants a larger table.
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

// at returns the first live value with the key from step on, as
// [strongTable.at] does.
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

// all goes through the table's values, alive or dead.
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

// kidTable finds a node's children by the class of the next word of the path.
// It is immutable. A class without a child leads back to the node, so that a
// search has no miss to branch on, which nobody could predict.
type kidTable[T any] struct {
	slots []*node[T] // of each class, or of all when there are no children
	mask  uint64
	kids  []kid[T] // the same in a row
}

// kid is the child for a class of words.
type kid[T any] struct {
	class int
	node  *node[T]
}

// classOf returns the class of a word, given the odd multiplier that spreads
// them. Words below classes seldom share one, and those that do share a child.
func classOf(word int, spread uint64) uint64 { return uint64(word) * spread >> (64 - classBits) }

// newKids returns the table of a node with kids of different classes.
func newKids[T any](owner *node[T], kids []kid[T]) *kidTable[T] {
	n := classes
	if len(kids) == 0 {
		n = 1
	}
	t := &kidTable[T]{slots: make([]*node[T], n), mask: uint64(n - 1), kids: slices.Clip(kids)}
	for i := range t.slots {
		t.slots[i] = owner
	}
	for _, k := range kids {
		t.slots[k.class] = k.node
	}
	return t
}

// next returns the child for a class, or the table's node when there is none.
func (t *kidTable[T]) next(class uint64) *node[T] { return t.slots[class&t.mask] }

// Bytes that tables take, for the statistics.

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

func (t *kidTable[T]) bytes() int {
	return int(unsafe.Sizeof(*t)) + len(t.slots)*int(unsafe.Sizeof(t)) + len(t.kids)*int(unsafe.Sizeof(kid[T]{}))
}
