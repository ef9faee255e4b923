package shape

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// ErrShape marks every error about a shape that does not fit.
var ErrShape = errors.New("shape does not fit")

// maxElements bounds the element count of a shape: counts and byte offsets of
// any legal tensor fit an int with room for arithmetic on them.
const maxElements = 1 << 58

// Shape is an interned list of dimensions. Compare shapes with ==.
type Shape struct {
	dims     []Dim
	sizes    []int // nil unless every dimension has a size
	strides  []int // row-major, in elements; nil unless static
	elements int   // -1 unless static
	key      string
}

// Of returns the shape with the given sizes; Of() is the scalar. It fails on
// a negative size and on an element count beyond 2^58.
func Of(sizes ...int) (*Shape, error) {
	var buf [12]Dim
	dims := buf[:0]
	for _, n := range sizes {
		dims = append(dims, N(n))
	}
	return FromDims(dims...)
}

// MustOf is [Of] for tests and package variables; it panics on an error.
func MustOf(sizes ...int) *Shape {
	s, err := Of(sizes...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return s
}

// Scalar returns the shape of rank 0.
func Scalar() *Shape { return MustOf() }

// FromDims returns the shape with the given dimensions.
func FromDims(dims ...Dim) (*Shape, error) {
	count, static := 1, true
	nonzero := 1 // product without the zeros: strides must not overflow either
	for i, d := range dims {
		if d.kind != sized {
			static = false
			continue
		}
		if d.size < 0 {
			return nil, fmt.Errorf("shape: dimension %d is %d, want zero or more: %w", i, d.size, ErrShape)
		}
		if d.size == 0 {
			count = 0
			continue
		}
		hi, lo := bits.Mul64(uint64(nonzero), uint64(d.size))
		if hi != 0 || lo > maxElements {
			return nil, fmt.Errorf("shape: %s has more than 2^58 elements: %w", format(dims), ErrShape)
		}
		nonzero = int(lo)
	}
	switch {
	case !static:
		count = -1
	case count != 0:
		count = nonzero
	}
	return shapes.intern(dims, count), nil
}

func newShape(dims []Dim, count int, key string) *Shape {
	s := &Shape{dims: dims, elements: count, key: key}
	if count < 0 {
		return s
	}
	s.sizes = make([]int, len(dims))
	s.strides = make([]int, len(dims))
	step := 1
	for i := len(dims) - 1; i >= 0; i-- {
		s.sizes[i] = dims[i].size
		s.strides[i] = step
		step *= max(dims[i].size, 1)
	}
	return s
}

// Rank returns the number of dimensions.
func (s *Shape) Rank() int { return len(s.dims) }

// Dim returns dimension i.
func (s *Shape) Dim(i int) Dim { return s.dims[i] }

// Dims returns a copy of the dimensions.
func (s *Shape) Dims() []Dim { return append([]Dim(nil), s.dims...) }

// Size returns the size of dimension i of a static shape.
func (s *Shape) Size(i int) int {
	if s.dims[i].kind != sized {
		panic("BUG: shape: Size of dimension " + s.dims[i].String() + " in " + s.String())
	}
	return s.dims[i].size
}

// Sizes returns the sizes of a static shape, nil for any other. The slice
// belongs to the shape: it must not be written.
func (s *Shape) Sizes() []int { return s.sizes }

// IsStatic reports whether every dimension has a size.
func (s *Shape) IsStatic() bool { return s.elements >= 0 }

// NumElements returns the element count, -1 unless the shape is static.
func (s *Shape) NumElements() int { return s.elements }

// Strides returns the row-major strides of a static shape in elements, nil
// for any other. The slice belongs to the shape: it must not be written.
func (s *Shape) Strides() []int { return s.strides }

// String returns the shape as [Parse] reads it.
func (s *Shape) String() string { return format(s.dims) }

func format(dims []Dim) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range dims {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(d.String())
	}
	b.WriteByte(']')
	return b.String()
}

// Bytes returns the packed size of a static shape's elements in bytes.
func Bytes(dt dtype.DType, s *Shape) (int, error) {
	if !s.IsStatic() {
		return 0, fmt.Errorf("shape: bytes of %s%s: got dimensions without a size, want a static shape: %w", dt, s, ErrShape)
	}
	return dt.ByteLen(s.elements)
}

// Broadcast returns the shape that a and b have together under the rule of
// numpy: aligned at the last dimension, sizes must be equal or one of them 1.
// A symbol against a size greater than 1 gives that size, equal symbols give
// the symbol, and whatever cannot be told gives [Unknown].
func Broadcast(a, b *Shape) (*Shape, error) {
	if a == b {
		return a, nil
	}
	rank := max(a.Rank(), b.Rank())
	var buf [12]Dim
	dims := buf[:0]
	for i := range rank {
		x, y := N(1), N(1)
		if j := i - (rank - a.Rank()); j >= 0 {
			x = a.dims[j]
		}
		if j := i - (rank - b.Rank()); j >= 0 {
			y = b.dims[j]
		}
		d, ok := broadcastDim(x, y)
		if !ok {
			return nil, fmt.Errorf("broadcast: got %s and %s, want equal sizes or 1 at dimension %d: %w", a, b, i, ErrShape)
		}
		dims = append(dims, d)
	}
	return FromDims(dims...)
}

func broadcastDim(x, y Dim) (Dim, bool) {
	one := N(1)
	switch {
	case x == one:
		return y, true
	case y == one:
		return x, true
	case x.kind == sized && y.kind == sized:
		return x, x.size == y.size
	case x.kind == sized:
		return x, true
	case y.kind == sized:
		return y, true
	case x.kind == symbolic && x == y:
		return x, true
	}
	return Unknown, true
}
