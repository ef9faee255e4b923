package shape

import (
	"encoding/binary"
	"hash/maphash"
	"runtime"
	"sync"
	"weak"
)

// stripes is the number of locks of a table; a power of two.
const stripes = 64

// table interns values of type T under a packed key. It holds them weakly: a
// value that nothing reaches is collected, and its entry goes with it.
type table[T any] struct {
	seed   maphash.Seed
	stripe [stripes]struct {
		sync.RWMutex
		entries map[string]weak.Pointer[T]
		_       [64]byte // stripes do not share cache lines, wherever the first one starts
	}
}

type (
	shapeTable  struct{ table[Shape] }
	layoutTable struct{ table[Layout] }
)

var (
	shapes  = shapeTable{table[Shape]{seed: maphash.MakeSeed()}}
	layouts = layoutTable{table[Layout]{seed: maphash.MakeSeed()}}
)

// find returns the live value under key, or nil.
func (t *table[T]) find(key []byte) *T {
	st := &t.stripe[maphash.Bytes(t.seed, key)%stripes]
	st.RLock()
	p := st.entries[string(key)]
	st.RUnlock()
	return p.Value()
}

// add makes and returns the value under key, or returns the one that another
// goroutine put there first.
func (t *table[T]) add(key string, create func(key string) *T) *T {
	st := &t.stripe[maphash.String(t.seed, key)%stripes]
	st.Lock()
	defer st.Unlock()
	if v := st.entries[key].Value(); v != nil {
		return v
	}
	if st.entries == nil {
		st.entries = make(map[string]weak.Pointer[T])
	}
	v := create(key)
	p := weak.Make(v)
	st.entries[key] = p
	runtime.AddCleanup(v, func(key string) { t.drop(key, p) }, key)
	return v
}

// drop removes the entry of a collected value, unless a successor has it.
func (t *table[T]) drop(key string, p weak.Pointer[T]) {
	st := &t.stripe[maphash.String(t.seed, key)%stripes]
	st.Lock()
	defer st.Unlock()
	if st.entries[key] == p {
		delete(st.entries, key)
	}
}

// len returns the number of entries.
func (t *table[T]) len() int {
	n := 0
	for i := range t.stripe {
		st := &t.stripe[i]
		st.RLock()
		n += len(st.entries)
		st.RUnlock()
	}
	return n
}

func (t *shapeTable) intern(dims []Dim, count int) *Shape {
	var buf [96]byte
	key := buf[:0]
	for _, d := range dims {
		key = append(key, byte(d.kind))
		switch d.kind {
		case sized:
			key = binary.AppendUvarint(key, uint64(d.size))
		case symbolic:
			key = binary.AppendUvarint(key, uint64(len(d.symbol)))
			key = append(key, d.symbol...)
		}
	}
	if s := t.find(key); s != nil {
		return s
	}
	// The closure is made here, past the hit, so that a hit allocates nothing.
	own := append([]Dim(nil), dims...)
	return t.add(string(key), func(key string) *Shape { return newShape(own, count, key) })
}

func (t *layoutTable) intern(s *Shape, strides []int, lo, hi int) *Layout {
	var buf [160]byte
	key := append(binary.AppendUvarint(buf[:0], uint64(len(s.key))), s.key...)
	for _, stride := range strides {
		key = binary.AppendVarint(key, int64(stride))
	}
	if l := t.find(key); l != nil {
		return l
	}
	own := append([]int(nil), strides...)
	return t.add(string(key), func(key string) *Layout {
		return &Layout{shape: s, strides: own, contiguous: isContiguous(s, strides), lo: lo, hi: hi, key: key}
	})
}
