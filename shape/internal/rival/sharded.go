package rival

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/shape"
)

const shards = 64

// Sharded is a hash map in shards. Readers take no lock: a slot is written
// once, and a full shard is replaced by a larger one.
type Sharded struct {
	create func(sizes []int) *shape.Shape
	scales [16]uint64
	shards [shards]shard
}

type shard struct {
	table atomic.Pointer[table]
	sync.Mutex
	_ [64]byte
}

type table struct {
	slots []slot // their number is a power of two
	shift uint8
	used  int
}

type slot struct {
	hash  uint32
	value atomic.Pointer[shape.Shape]
}

// NewSharded returns an empty map that creates shapes by create.
func NewSharded(create func(sizes []int) *shape.Shape) *Sharded {
	m := &Sharded{create: create}
	for i := range m.scales {
		m.scales[i] = rand.Uint64() | 1
	}
	for i := range m.shards {
		m.shards[i].table.Store(newTable(8))
	}
	return m
}

func newTable(log uint8) *table {
	return &table{slots: make([]slot, 1<<log), shift: 32 - log}
}

func (m *Sharded) hash(sizes []int) uint64 {
	h := uint64(len(sizes)) * m.scales[15]
	for i, n := range sizes {
		h += uint64(n) * m.scales[i&15]
	}
	return h
}

// Of returns the shape with the sizes.
func (m *Sharded) Of(sizes []int) *shape.Shape {
	h := m.hash(sizes)
	sh := &m.shards[h>>58]
	hash := uint32(h >> 26)
	if s := sh.table.Load().find(hash, sizes); s != nil {
		return s
	}
	return m.add(sh, hash, sizes)
}

func (t *table) find(hash uint32, sizes []int) *shape.Shape {
	for i := hash >> t.shift; ; i++ {
		sl := &t.slots[int(i)&(len(t.slots)-1)]
		s := sl.value.Load()
		if s == nil || sl.hash == hash && slices.Equal(s.Sizes(), sizes) {
			return s
		}
	}
}

func (m *Sharded) add(sh *shard, hash uint32, sizes []int) *shape.Shape {
	sh.Lock()
	defer sh.Unlock()
	t := sh.table.Load()
	if s := t.find(hash, sizes); s != nil {
		return s
	}
	if t.used*4 >= len(t.slots)*3 {
		larger := newTable(32 - t.shift + 1)
		for i := range t.slots {
			if s := t.slots[i].value.Load(); s != nil {
				larger.put(t.slots[i].hash, s)
			}
		}
		sh.table.Store(larger)
		t = larger
	}
	s := m.create(sizes)
	t.put(hash, s)
	return s
}

func (t *table) put(hash uint32, s *shape.Shape) {
	for i := hash >> t.shift; ; i++ {
		sl := &t.slots[int(i)&(len(t.slots)-1)]
		if sl.value.Load() == nil {
			sl.hash = hash
			sl.value.Store(s)
			t.used++
			return
		}
	}
}
