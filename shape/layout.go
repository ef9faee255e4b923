package shape

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
)

// Layout is a static shape with one stride per dimension and flags. It is
// interned: equal layouts are one *Layout. A nil or zero Layout has no shape
// and is refused where a layout is required.
type Layout struct {
	shape      *Shape
	strides    []int
	lo, hi     int // lowest and highest element offset reached
	contiguous bool
	flags      Flags
}

// Flags describe how the elements of a layout are stored.
type Flags uint8

// Padded marks elements of less than a byte that take a whole byte each instead
// of being packed.
const Padded Flags = 1

// RowMajor returns the row-major layout of a static shape, the last dimension
// fastest and without gaps. It returns nil for any other shape.
func RowMajor(s *Shape) *Layout {
	if s == nil {
		return nil
	}
	if l := s.row.Load(); l != nil {
		return l
	}
	if !s.IsStatic() {
		return nil
	}
	// The shape owns this layout, which is collected with it.
	s.row.CompareAndSwap(nil, &Layout{shape: s, strides: s.Strides(), contiguous: true, hi: s.elements - 1})
	return s.row.Load()
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
	if slices.Equal(strides, s.Strides()) {
		return RowMajor(s), nil
	}
	lo, hi, err := span(s, strides)
	if err != nil {
		return nil, err
	}
	return global.layout(s, strides, 0, lo, hi)
}

// span returns the lowest and the highest element offset reached.
func span(s *Shape, strides []int) (lo, hi int, err error) {
	for i, stride := range strides {
		reach := uint64(max(s.sizes[i]-1, 0))
		over, span := bits.Mul64(reach, uint64(max(stride, -stride)))
		if over != 0 || span > maxElements {
			return 0, 0, fmt.Errorf("layout: stride %d over dimension %d of %s reaches past 2^58 elements: %w", stride, i, s, ErrShape)
		}
		if stride < 0 {
			lo -= int(span)
		} else {
			hi += int(span)
		}
		if hi > maxElements || lo < -maxElements {
			// A copy, so that the caller's strides stay off the heap.
			return 0, 0, fmt.Errorf("layout: strides %v over %s reach past 2^58 elements: %w", slices.Clone(strides), s, ErrShape)
		}
	}
	if s.elements == 0 {
		return 0, -1, nil
	}
	return lo, hi, nil
}

// WithFlags returns the layout with these flags instead of its own.
func (l *Layout) WithFlags(f Flags) (*Layout, error) {
	switch {
	case l.none():
		return nil, fmt.Errorf("layout: got no layout, want one for flags %#x: %w", uint8(f), ErrShape)
	case f&^Padded != 0:
		return nil, fmt.Errorf("layout: got flags %#x, want none but %#x: %w", uint8(f), uint8(Padded), ErrShape)
	case f == l.flags:
		return l, nil
	case f == 0:
		return Strided(l.shape, l.strides...)
	}
	return global.layout(l.shape, l.strides, f, l.lo, l.hi)
}

// none reports whether the layout is nil or zero.
func (l *Layout) none() bool { return l == nil || l.shape == nil }

// Flags returns the layout's flags.
func (l *Layout) Flags() Flags {
	if l == nil {
		return 0
	}
	return l.flags
}

// ByteSpan returns the number of bytes from the lowest element that the
// layout reaches to the end of the highest.
func (l *Layout) ByteSpan(dt dtype.DType) (int, error) {
	if l.none() {
		return 0, fmt.Errorf("layout: got no layout of %s, want one: %w", dt, ErrShape)
	}
	n := l.hi - l.lo + 1
	if bits := dt.Bits(); l.flags&Padded != 0 && bits > 0 && bits < 8 {
		return n, nil
	}
	return dt.ByteLen(n)
}

// bytes returns the memory of the layout, including the runtime's record of a
// weak pointer.
func (l *Layout) bytes() int {
	return weakBytes + int(unsafe.Sizeof(*l)) + len(l.strides)*int(unsafe.Sizeof(0))
}

// Shape returns the layout's shape.
func (l *Layout) Shape() *Shape {
	if l == nil {
		return nil
	}
	return l.shape
}

// Strides returns the strides in elements. The slice belongs to the layout; the
// caller must not write it.
func (l *Layout) Strides() []int {
	if l == nil {
		return nil
	}
	return l.strides
}

// IsContiguous reports whether the elements lie in row-major order without
// gaps. Strides of dimensions of size 1 and of empty tensors are ignored.
func (l *Layout) IsContiguous() bool { return l != nil && l.contiguous }

// Span returns the lowest and highest element offset that the layout
// reaches from its first element; high is -1 when there are no elements.
func (l *Layout) Span() (low, high int) {
	if l.none() {
		return 0, -1
	}
	return l.lo, l.hi
}

// Overlaps reports whether two index tuples may reach the same element. It is
// conservative: false is exact, true may be wrong.
func (l *Layout) Overlaps() bool { return l != nil && !l.contiguous && l.overlaps() }

func (l *Layout) overlaps() bool {
	if l.none() || l.shape.elements <= 1 {
		return false
	}
	type axis struct{ size, stride int }
	var axes []axis
	for i, n := range l.shape.sizes {
		if n > 1 {
			axes = append(axes, axis{n, max(l.strides[i], -l.strides[i])})
		}
	}
	// Sorted by stride, every axis must step over all elements that the smaller
	// strides reach.
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

// String returns the shape and, unless the layout is contiguous, the strides.
func (l *Layout) String() string {
	if l.none() {
		return "no layout"
	}
	text := l.shape.String()
	if !l.contiguous {
		text += fmt.Sprintf(" strides %v", l.strides)
	}
	if l.flags&Padded != 0 {
		text += " padded"
	}
	return text
}

func isContiguous(s *Shape, strides []int) bool {
	if s.elements == 0 {
		return true
	}
	for i, n := range s.sizes {
		if n != 1 && strides[i] != s.Strides()[i] {
			return false
		}
	}
	return true
}

// Reshape returns the layout of the same elements, in the same order, with
// another static shape of as many elements, and false where there is none:
// where axes are joined over which the elements do not lie at one distance.
// Layouts without elements have any shape.
func (l *Layout) Reshape(to *Shape) (*Layout, bool) {
	if l.none() || !to.IsStatic() || to.elements != l.shape.elements {
		return nil, false
	}
	if l.contiguous {
		return RowMajor(to), true
	}
	strides := make([]int, to.Rank())
	from := len(l.strides) - 1 // the axis of l that comes next
	left, step := 1, 1         // of the axes of l that are one: elements that no axis has yet, and their distance
	for d := to.Rank() - 1; d >= 0; d-- {
		size := to.sizes[d]
		if left == 1 && size > 1 {
			from = l.skipOnes(from)
			left, step = l.shape.sizes[from], l.strides[from]
			whole := left * step
			for from = l.skipOnes(from - 1); from >= 0 && l.strides[from] == whole; from = l.skipOnes(from - 1) {
				left *= l.shape.sizes[from]
				whole *= l.shape.sizes[from]
			}
		}
		if left%size != 0 {
			return nil, false
		}
		strides[d] = step
		left, step = left/size, step*size
	}
	r, err := Strided(to, strides...)
	return r, err == nil
}

// skipOnes returns the last axis of more than one element up to the given one,
// -1 for none.
func (l *Layout) skipOnes(axis int) int {
	for axis >= 0 && l.shape.sizes[axis] == 1 {
		axis--
	}
	return axis
}
