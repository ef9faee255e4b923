package op

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// MaxRank bounds the rank of every value: without a bound a declared shape
// operand of unknown value could state 2^58 dimensions.
const MaxRank = 64

// maxSize bounds sizes in arithmetic. It is the bound of package shape on
// element counts; sums and products of two sizes that passed it are exact in
// the checked functions below.
const maxSize = 1 << 58

// give sets the type of result i.
func (s *Sig) give(i int, dt dtype.DType, dims ...shape.Dim) error {
	if len(dims) > MaxRank {
		return badShape("result %d: got %d dimensions, want at most %d", i, len(dims), MaxRank)
	}
	sh, err := shape.FromDims(dims...)
	if err != nil {
		return fmt.Errorf("result %d: %w", i, err)
	}
	s.Results[i] = Type{dt, sh}
	return nil
}

// giveLike sets result 0 to the type of an operand.
func (s *Sig) giveLike(arg int) error {
	s.Results[0] = s.Args[arg]
	return nil
}

// giveRank sets result i to a value of which only the rank is known.
func (s *Sig) giveRank(i int, dt dtype.DType, rank int) error {
	if rank < 0 || rank > MaxRank {
		return badShape("result %d: got %d dimensions, want 0 to %d", i, rank, MaxRank)
	}
	return s.give(i, dt, make([]shape.Dim, rank)...)
}

// giveAny sets result i to a value of unknown rank.
func (s *Sig) giveAny(i int, dt dtype.DType) error {
	s.Results[i] = Type{DType: dt}
	return nil
}

// giveKnown sets result 0, whose dimensions are nil where not even its rank is
// known.
func (s *Sig) giveKnown(dt dtype.DType, dims []shape.Dim) error {
	if dims == nil {
		return s.giveAny(0, dt)
	}
	return s.give(0, dt, dims...)
}

// giveSizes is give for a result whose dimensions all have sizes.
func (s *Sig) giveSizes(i int, dt dtype.DType, sizes ...int) error {
	if len(sizes) > MaxRank {
		return badShape("result %d: got %d dimensions, want at most %d", i, len(sizes), MaxRank)
	}
	sh, err := shape.Of(sizes...)
	if err != nil {
		return fmt.Errorf("result %d: %w", i, err)
	}
	s.Results[i] = Type{dt, sh}
	return nil
}

// fewDims is the rank up to which shape rules allocate nothing but the shapes
// that they find.
const fewDims = 8

// appendDims appends the dimensions of a shape to dims.
func appendDims(dims []shape.Dim, of *shape.Shape) []shape.Dim {
	for i := range of.Rank() {
		dims = append(dims, of.Dim(i))
	}
	return dims
}

// axisOf counts a negative axis from the end.
func axisOf(axis int64, rank int) (int, error) {
	if rank == 0 {
		return 0, badShape("axis: got %d for a scalar, want a value with dimensions", axis)
	}
	if axis < int64(-rank) || axis >= int64(rank) {
		return 0, badShape("axis: got %d, want %d to %d", axis, -rank, rank-1)
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis), nil
}

// axesOf is axisOf for a list without duplicates.
func axesOf(list []int64, rank int) ([]int, error) {
	return appendAxes(make([]int, 0, min(len(list), MaxRank)), list, rank)
}

// appendAxes is axesOf that appends to axes.
func appendAxes(axes []int, list []int64, rank int) ([]int, error) {
	var seen uint64
	for _, a := range list {
		axis, err := axisOf(a, rank)
		if err != nil {
			return nil, err
		}
		if seen>>axis&1 != 0 {
			return nil, badShape("axes: got axis %d twice in %v, want each once", axis, slices.Clone(list))
		}
		seen |= 1 << axis
		axes = append(axes, axis)
	}
	return axes, nil
}

// unify returns the dimension that both a and b describe, as far as either is
// known, and false when they contradict each other.
func unify(a, b shape.Dim) (shape.Dim, bool) {
	n, aSized := a.Size()
	m, bSized := b.Size()
	switch {
	case aSized && bSized:
		return a, n == m
	case aSized:
		return a, true
	case bSized:
		return b, true
	case a != shape.Unknown:
		return a, true
	}
	return b, true
}

// isSize reports whether the dimension is known to have size n.
func isSize(d shape.Dim, n int) bool { return d == shape.N(n) }

// addSize and mulSize compute on sizes from 0 to maxSize; false means that
// the result is out of that range.
func addSize(a, b int) (int, bool) {
	if a < 0 || b < 0 || a > maxSize || b > maxSize {
		return 0, false
	}
	return a + b, a+b <= maxSize
}

func mulSize(a, b int) (int, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int(lo), a >= 0 && b >= 0 && hi == 0 && lo <= maxSize
}

// sizeOf checks a number from outside that is to become a size.
func sizeOf(v int64, meaning string) (int, error) {
	if v < 0 || v > maxSize {
		return 0, badShape("%s: got %d, want 0 to 2^58", meaning, v)
	}
	return int(v), nil
}

// product returns the product of the given dimensions: a size, the one symbol
// among ones, or Unknown.
func product(dims []shape.Dim) (shape.Dim, error) {
	count, rest, open := 1, shape.N(1), 0
	for _, d := range dims {
		n, ok := d.Size()
		switch {
		case !ok:
			rest = d
			open++
		case n == 0:
			return shape.N(0), nil
		default:
			if count, ok = mulSize(count, n); !ok {
				return shape.Unknown, badShape("got more than 2^58 elements in %v", slices.Clone(dims))
			}
		}
	}
	switch {
	case open == 0:
		return shape.N(count), nil
	case open == 1 && count == 1:
		return rest, nil
	}
	return shape.Unknown, nil
}

// total is the sum of sizes along an axis: a size, the one symbol among
// zeros, or Unknown.
func total(dims []shape.Dim) (shape.Dim, error) {
	sum, rest, open := 0, shape.N(0), 0
	for _, d := range dims {
		n, ok := d.Size()
		if !ok {
			rest = d
			open++
		} else if sum, ok = addSize(sum, n); !ok {
			return shape.Unknown, badShape("got more than 2^58 in all of %v along an axis", slices.Clone(dims))
		}
	}
	switch {
	case open == 0:
		return shape.N(sum), nil
	case open == 1 && sum == 0:
		return rest, nil
	}
	return shape.Unknown, nil
}
