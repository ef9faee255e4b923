package shape

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
)

// ErrShape is the error of a shape that is invalid or does not fit.
var ErrShape = errors.New("shape does not fit")

// maxElements bounds the element count of a shape, so that counts and byte
// offsets of every valid tensor, and sums of them, fit an int.
const maxElements = 1 << 58

// weakBytes is the memory that the runtime needs for a weak pointer: a record
// and a word.
const weakBytes = 48

// Shape is an interned list of dimensions. Compare shapes with ==. A nil or
// zero Shape is not static, has no dimensions, and is refused with ErrShape
// where a shape is required.
type Shape struct {
	sizes    []int                  // nil unless static; the row-major strides follow in the same array
	dims     *[]Dim                 // nil when static
	elements int                    // -1 unless static
	row      atomic.Pointer[Layout] // row-major; created when it is first requested
}

// Of returns the shape with the given sizes; Of() is the scalar. It fails on
// a negative size and on an element count beyond 2^58.
func Of(sizes ...int) (*Shape, error) {
	return global.static(sizes, true)
}

// Lookup returns the interned shape with the given sizes, or nil if there is
// none. It creates nothing.
func Lookup(sizes ...int) *Shape {
	s, _ := global.static(sizes, false)
	return s
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
	var buf [12]int
	sizes := buf[:0] // of the dimensions that have one
	for _, d := range dims {
		if d.kind == sized {
			sizes = append(sizes, d.size)
		}
	}
	if len(sizes) == len(dims) {
		return Of(sizes...)
	}
	if _, err := count(sizes); err != nil {
		for i, d := range dims {
			if d.kind == sized && d.size < 0 {
				return nil, negative(i, d.size)
			}
		}
		return nil, tooMany(format(dims))
	}
	return global.symbolic(dims)
}

// count returns the element count of valid sizes. The product without zeros is
// bounded too, because strides must not overflow either.
func count(sizes []int) (int, error) {
	nonzero, zero := 1, false
	for i, n := range sizes {
		if n < 0 {
			return 0, negative(i, n)
		}
		if n == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(uint64(nonzero), uint64(n))
		if hi != 0 || lo > maxElements {
			return 0, tooMany(format(toDims(sizes)))
		}
		nonzero = int(lo)
	}
	if zero {
		return 0, nil
	}
	return nonzero, nil
}

func negative(dim, size int) error {
	return fmt.Errorf("shape: dimension %d is %d, want zero or more: %w", dim, size, ErrShape)
}

func tooMany(shape string) error {
	return fmt.Errorf("shape: %s has more than 2^58 elements: %w", shape, ErrShape)
}

// makeStatic returns a new shape, in one allocation up to rank 8.
func makeStatic(sizes []int, elements int) *Shape {
	s, words := allocate(len(sizes))
	s.sizes, s.elements = words[:len(sizes)], elements
	copy(s.sizes, sizes)
	step := 1
	for i := len(sizes) - 1; i >= 0; i-- {
		words[len(sizes)+i] = step
		step *= max(sizes[i], 1)
	}
	return s
}

// allocate returns a new shape with two words per dimension.
func allocate(rank int) (*Shape, []int) {
	switch rank {
	case 1:
		s := new(struct {
			Shape
			words [2]int
		})
		return &s.Shape, s.words[:]
	case 2:
		s := new(struct {
			Shape
			words [4]int
		})
		return &s.Shape, s.words[:]
	case 3:
		s := new(struct {
			Shape
			words [6]int
		})
		return &s.Shape, s.words[:]
	case 4:
		s := new(struct {
			Shape
			words [8]int
		})
		return &s.Shape, s.words[:]
	case 5:
		s := new(struct {
			Shape
			words [10]int
		})
		return &s.Shape, s.words[:]
	case 6:
		s := new(struct {
			Shape
			words [12]int
		})
		return &s.Shape, s.words[:]
	}
	return new(Shape), make([]int, 2*rank)
}

// bytes returns the memory of the shape, including the runtime's record of a
// weak pointer.
func (s *Shape) bytes() int {
	n := weakBytes + int(unsafe.Sizeof(*s)) + 2*len(s.sizes)*int(unsafe.Sizeof(0))
	if s.dims != nil {
		for _, d := range *s.dims {
			n += int(unsafe.Sizeof(d)) + len(d.symbol)
		}
	}
	return n
}

// Rank returns the number of dimensions.
func (s *Shape) Rank() int {
	if s == nil {
		return 0
	}
	if s.dims != nil {
		return len(*s.dims)
	}
	return len(s.sizes)
}

// Dim returns dimension i, or [Unknown] if i is out of range.
func (s *Shape) Dim(i int) Dim {
	if uint(i) >= uint(s.Rank()) {
		return Unknown
	}
	if s.dims != nil {
		return (*s.dims)[i]
	}
	return N(s.sizes[i])
}

// Dims returns a copy of the dimensions.
func (s *Shape) Dims() []Dim {
	if s == nil {
		return nil
	}
	if s.dims != nil {
		return slices.Clone(*s.dims)
	}
	return toDims(s.sizes)
}

func toDims(sizes []int) []Dim {
	dims := make([]Dim, len(sizes))
	for i, n := range sizes {
		dims[i] = N(n)
	}
	return dims
}

// Size returns the size of dimension i, or -1 if the dimension is symbolic or
// unknown or i is out of range. [Dim.Size] and [Dim.Symbol] distinguish these
// cases.
func (s *Shape) Size(i int) int {
	if d := s.Dim(i); d.kind == sized {
		return d.size
	}
	return -1
}

// Sizes returns the sizes of a static shape, or nil for any other. If
// dimensions may be symbolic or unknown, as those of a model's input, use
// [Shape.Size] or [Shape.Dims]. The slice belongs to the shape; the caller must
// not write it.
func (s *Shape) Sizes() []int {
	if s == nil {
		return nil
	}
	return s.sizes[:len(s.sizes):len(s.sizes)]
}

// IsStatic reports whether every dimension has a size.
func (s *Shape) IsStatic() bool { return s != nil && s.elements >= 0 && !s.isZero() }

// isZero reports whether s is the zero Shape: the scalar has one element.
func (s *Shape) isZero() bool { return s.elements == 0 && len(s.sizes) == 0 }

// NumElements returns the element count, or -1 if the shape is not static.
func (s *Shape) NumElements() int {
	if s == nil || s.isZero() {
		return -1
	}
	return s.elements
}

// Strides returns the row-major strides of a static shape in elements, or nil
// for any other. The slice belongs to the shape; the caller must not write it.
func (s *Shape) Strides() []int {
	if s == nil {
		return nil
	}
	return s.sizes[len(s.sizes) : 2*len(s.sizes) : 2*len(s.sizes)]
}

// String returns the form that [Parse] parses, or "no shape" for a nil or zero
// shape.
func (s *Shape) String() string {
	if s == nil || s.isZero() {
		return "no shape"
	}
	return format(s.Dims())
}

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

// Bytes returns the size in bytes of the packed elements of a static shape.
func Bytes(dt dtype.DType, s *Shape) (int, error) {
	if s == nil || s.isZero() {
		return 0, fmt.Errorf("shape: bytes: got no shape for %s: %w", dt, ErrShape)
	}
	if !s.IsStatic() {
		return 0, fmt.Errorf("shape: bytes of %s%s: got dimensions without a size, want a static shape: %w", dt, s, ErrShape)
	}
	return dt.ByteLen(s.elements)
}

// Broadcast returns the common shape of a and b by numpy's rule: dimensions are
// aligned at the last, and sizes must be equal or one of them 1. A symbol and a
// size greater than 1 become that size, equal symbols become the symbol, and a
// dimension that these rules do not determine is [Unknown].
func Broadcast(a, b *Shape) (*Shape, error) {
	switch {
	case a == nil || b == nil || a.isZero() || b.isZero():
		return nil, fmt.Errorf("broadcast: got %s and %s, want two shapes: %w", a, b, ErrShape)
	case a == b:
		return a, nil
	case a.IsStatic() && b.IsStatic():
		return broadcastStatic(a, b)
	}
	rank := max(a.Rank(), b.Rank())
	var buf [12]Dim
	dims := buf[:0]
	for i := range rank {
		x, y := N(1), N(1)
		if j := i - (rank - a.Rank()); j >= 0 {
			x = a.Dim(j)
		}
		if j := i - (rank - b.Rank()); j >= 0 {
			y = b.Dim(j)
		}
		d, ok := broadcastDim(x, y)
		if !ok {
			return nil, incompatible(a, b, i)
		}
		dims = append(dims, d)
	}
	return FromDims(dims...)
}

// broadcastStatic returns a or b without a lookup if one of them is the result.
func broadcastStatic(a, b *Shape) (*Shape, error) {
	if len(a.sizes) < len(b.sizes) {
		a, b = b, a
	}
	var buf [12]int
	sizes := append(buf[:0], a.sizes...)
	lead := len(a.sizes) - len(b.sizes)
	isA, isB := true, lead == 0
	for j, y := range b.sizes {
		x := sizes[lead+j]
		switch {
		case x == y:
		case y == 1:
			isB = false
		case x == 1:
			isA = false
			sizes[lead+j] = y
		default:
			return nil, incompatible(a, b, lead+j)
		}
	}
	switch {
	case isA:
		return a, nil
	case isB:
		return b, nil
	}
	return Of(sizes...)
}

func incompatible(a, b *Shape, dim int) error {
	return fmt.Errorf("broadcast: got %s and %s, want equal sizes or 1 at dimension %d: %w", a, b, dim, ErrShape)
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
