package shape

import (
	"fmt"
	"math/bits"
	"slices"
)

// Layout is a static shape with a stride per dimension, interned: equal
// layouts are one *Layout.
type Layout struct {
	shape      *Shape
	strides    []int
	contiguous bool
	lo, hi     int // lowest and highest element offset reached
	key        string
}

// RowMajor returns the layout of s without gaps, last dimension fastest.
func RowMajor(s *Shape) *Layout {
	l, err := Strided(s, s.strides...)
	if err != nil {
		panic("BUG: shape: RowMajor of " + s.String() + ": " + err.Error())
	}
	return l
}

// Strided returns the layout of a static shape with the given strides in
// elements; they may be zero (a broadcast dimension) or negative.
func Strided(s *Shape, strides ...int) (*Layout, error) {
	if !s.IsStatic() {
		return nil, fmt.Errorf("layout: got shape %s, want a static one: %w", s, ErrShape)
	}
	if len(strides) != s.Rank() {
		return nil, fmt.Errorf("layout: got %d strides for shape %s, want %d: %w", len(strides), s, s.Rank(), ErrShape)
	}
	lo, hi := 0, 0
	for i, stride := range strides {
		reach := uint64(max(s.sizes[i]-1, 0))
		over, span := bits.Mul64(reach, uint64(max(stride, -stride)))
		if over != 0 || span > maxElements {
			return nil, fmt.Errorf("layout: stride %d over dimension %d of %s reaches past 2^58 elements: %w", stride, i, s, ErrShape)
		}
		if stride < 0 {
			lo -= int(span)
		} else {
			hi += int(span)
		}
		if hi > maxElements || lo < -maxElements {
			// A copy, so that the caller's strides stay off the heap.
			return nil, fmt.Errorf("layout: strides %v over %s reach past 2^58 elements: %w", slices.Clone(strides), s, ErrShape)
		}
	}
	if s.elements == 0 {
		lo, hi = 0, -1
	}
	return layouts.intern(s, strides, lo, hi), nil
}

// Shape returns the layout's shape.
func (l *Layout) Shape() *Shape { return l.shape }

// Strides returns the strides in elements. The slice belongs to the layout:
// it must not be written.
func (l *Layout) Strides() []int { return l.strides }

// IsContiguous reports whether the elements lie in row-major order without
// gaps. Strides of dimensions of size 1 and of empty tensors do not count.
func (l *Layout) IsContiguous() bool { return l.contiguous }

// Span returns the lowest and highest element offset that the layout
// reaches from its first element; high is -1 when there are no elements.
func (l *Layout) Span() (low, high int) { return l.lo, l.hi }

// Overlaps reports whether two index tuples may reach the same element. It
// errs on the side of true: false is a proof.
func (l *Layout) Overlaps() bool {
	if l.shape.elements <= 1 || l.contiguous {
		return false
	}
	type axis struct{ size, stride int }
	var axes []axis
	for i, n := range l.shape.sizes {
		if n > 1 {
			axes = append(axes, axis{n, max(l.strides[i], -l.strides[i])})
		}
	}
	// Sorted by stride, every axis must step past all that the smaller ones reach.
	for i := 1; i < len(axes); i++ {
		for j := i; j > 0 && axes[j].stride < axes[j-1].stride; j-- {
			axes[j], axes[j-1] = axes[j-1], axes[j]
		}
	}
	reach := 0
	for _, a := range axes {
		if a.stride <= reach {
			return true
		}
		reach += (a.size - 1) * a.stride
	}
	return false
}

// String returns the shape and, unless contiguous, the strides.
func (l *Layout) String() string {
	if l.contiguous {
		return l.shape.String()
	}
	return fmt.Sprintf("%s strides %v", l.shape, l.strides)
}

func isContiguous(s *Shape, strides []int) bool {
	if s.elements == 0 {
		return true
	}
	for i, n := range s.sizes {
		if n != 1 && strides[i] != s.strides[i] {
			return false
		}
	}
	return true
}
