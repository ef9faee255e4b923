package rival

import (
	"encoding/binary"
	"sync"
	"unique"

	"github.com/tenure-go/tenure/shape"
)

// Packed is a comparable key for up to eight dimensions below 2^32.
type Packed struct {
	rank  uint32
	sizes [8]uint32
}

// Pack returns the key for the sizes.
func Pack(sizes []int) (key Packed) {
	key.rank = uint32(len(sizes))
	for i, n := range sizes {
		key.sizes[i&7] = uint32(n)
	}
	return key
}

// Rank returns the number of dimensions.
func (k Packed) Rank() int { return int(k.rank) }

// Unique returns the canonical handle for the sizes. Properties of the shape
// cannot be stored in it.
func Unique(sizes []int) unique.Handle[Packed] { return unique.Make(Pack(sizes)) }

// Locked is a map under a lock. Its keys are strings of eight bytes, or of as
// few as suffice, for each dimension.
type Locked struct {
	create func(sizes []int) *shape.Shape
	short  bool
	mu     sync.RWMutex
	shapes map[string]*shape.Shape
}

// NewLocked returns an empty map that creates shapes by create. Short keys
// take less memory and more time.
func NewLocked(create func(sizes []int) *shape.Shape, short bool) *Locked {
	return &Locked{create: create, short: short, shapes: map[string]*shape.Shape{}}
}

func (m *Locked) key(buf []byte, sizes []int) []byte {
	for _, n := range sizes {
		if m.short {
			buf = binary.AppendUvarint(buf, uint64(n))
		} else {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(n))
		}
	}
	return buf
}

// Of returns the shape with the sizes.
func (m *Locked) Of(sizes []int) *shape.Shape {
	var buf [64]byte
	key := m.key(buf[:0], sizes)
	m.mu.RLock()
	s := m.shapes[string(key)]
	m.mu.RUnlock()
	if s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.shapes[string(key)]; s != nil {
		return s
	}
	s = m.create(sizes)
	m.shapes[string(key)] = s
	return s
}

// SyncMap is a sync.Map by [Packed].
type SyncMap struct {
	create func(sizes []int) *shape.Shape
	shapes sync.Map
}

// NewSyncMap returns an empty map that creates shapes by create.
func NewSyncMap(create func(sizes []int) *shape.Shape) *SyncMap { return &SyncMap{create: create} }

// Of returns the shape with the sizes.
func (m *SyncMap) Of(sizes []int) *shape.Shape {
	key := any(Pack(sizes))
	if s, ok := m.shapes.Load(key); ok {
		return s.(*shape.Shape)
	}
	s, _ := m.shapes.LoadOrStore(key, m.create(sizes))
	return s.(*shape.Shape)
}
