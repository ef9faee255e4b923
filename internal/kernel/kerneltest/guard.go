package kerneltest

import (
	"bytes"
	"testing"
	"unsafe"
)

// guardBytes surround every slice on both sides; canary is their value, and the
// value of an output before the kernel runs.
const (
	guardBytes = 96
	canary     = 0xa5
)

// Space hands out guarded slices and checks them.
type Space struct {
	t    testing.TB
	bufs []guarded
}

type guarded struct {
	name  string
	whole []byte // guard, data, guard
	from  int    // where the data lies
	to    int
	input []byte // what an input held; nil for outputs
}

func NewSpace(t testing.TB) *Space {
	t.Helper()
	return &Space{t: t}
}

// alloc returns n elements between guards. Consecutive slices start at
// different places relative to a vector, but always on an element.
func alloc[T any](s *Space, name string, n int) ([]T, *guarded) {
	var zero T
	return allocAt[T](s, name, n, func(uintptr) int { return len(s.bufs) % 4 * int(unsafe.Sizeof(zero)) })
}

// OutAligned is out at a multiple of a cache line, as results have that are
// written past the caches vector by vector.
func OutAligned[T any](s *Space, name string, n int) []T {
	p, _ := allocAt[T](s, name, n, func(at uintptr) int { return int(-at & 63) })
	return p
}

// allocAt is alloc with the data as many bytes behind an address as shift says
// of it.
func allocAt[T any](s *Space, name string, n int, shift func(at uintptr) int) ([]T, *guarded) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	words := make([]uint64, (2*guardBytes+64+n*size)/8+2)
	whole := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	for i := range whole {
		whole[i] = canary
	}
	from := guardBytes + shift(uintptr(unsafe.Pointer(&whole[guardBytes])))
	s.bufs = append(s.bufs, guarded{name: name, whole: whole, from: from, to: from + n*size})
	// The capacity ends with the data: a portable kernel that reaches beyond it
	// panics, an assembly one hits the guard.
	return unsafe.Slice((*T)(unsafe.Pointer(&whole[from])), n)[:n:n], &s.bufs[len(s.bufs)-1]
}

// In returns a guarded copy of data that must not change.
func In[T any](s *Space, name string, data []T) []T {
	p, g := alloc[T](s, name, len(data))
	copy(p, data)
	g.input = bytes.Clone(g.whole[g.from:g.to])
	return p
}

// Out returns a guarded slice full of canaries.
func Out[T any](s *Space, name string, n int) []T {
	p, _ := alloc[T](s, name, n)
	return p
}

// InOut returns a guarded copy of data that may change.
func InOut[T any](s *Space, name string, data []T) []T {
	p, _ := alloc[T](s, name, len(data))
	copy(p, data)
	return p
}

// check fails the test if a guard was touched or an input changed.
func (s *Space) Check() {
	s.t.Helper()
	for _, g := range s.bufs {
		for i, b := range g.whole {
			if (i < g.from || i >= g.to) && b != canary {
				s.t.Fatalf("%s: byte %d outside [0,%d) was overwritten", g.name, i-g.from, g.to-g.from)
			}
		}
		if g.input != nil && !bytes.Equal(g.input, g.whole[g.from:g.to]) {
			s.t.Fatalf("%s: the input changed", g.name)
		}
	}
}

// AsBytes reads a slice as its bytes.
func AsBytes[T any](x []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(zero)))
}
