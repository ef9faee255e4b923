package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenure-go/tenure/shape"
)

// A relayout computes the layout of a view from the layout of its base, and the
// distance in elements from the base's element [0,...,0] to that of the view.
type relayout func(op string, l *shape.Layout) (to *shape.Layout, elements int, err error)

func same(_ string, l *shape.Layout) (*shape.Layout, int, error) { return l, 0, nil }

// Range selects elements of one dimension: Start, Start+Step, ... below Stop. A
// negative Start or Stop counts from the end, a Stop of [End] means the end
// itself, and a Step of 0 means 1.
type Range struct{ Start, Stop, Step int }

// End is the Stop of a Range that extends to the end of the dimension.
const End = math.MaxInt

// All selects a whole dimension.
var All = Range{Stop: End}

// Only selects element i of a dimension, which remains with size 1.
func Only(i int) Range {
	if i == -1 {
		return Range{Start: i, Stop: End}
	}
	return Range{Start: i, Stop: i + 1}
}

// in resolves the range for a dimension of size n.
func (r Range) in(op string, axis, n int) (start, count, step int, err error) {
	start, stop, step := r.Start, r.Stop, max(r.Step, 1)
	if start < 0 {
		start += n
	}
	if stop < 0 {
		stop += n
	}
	if r.Stop == End {
		stop = n
	}
	if r.Step < 0 {
		return 0, 0, 0, fmt.Errorf("%s: axis %d: got step %d, want at least 1: %w", op, axis, r.Step, ErrUnsupported)
	}
	if start < 0 || start > stop || stop > n {
		return 0, 0, 0, fmt.Errorf("%s: axis %d: got range %d to %d, want it within size %d: %w", op, axis, r.Start, r.Stop, n, ErrShape)
	}
	if start < stop {
		count = (stop-start-1)/step + 1
	}
	return start, count, step, nil
}

func sliced(ranges []Range) relayout {
	return func(op string, l *shape.Layout) (*shape.Layout, int, error) {
		if len(ranges) > l.Shape().Rank() {
			return nil, 0, fmt.Errorf("%s: got %d ranges for shape %s, want at most %d: %w", op, len(ranges), l.Shape(), l.Shape().Rank(), ErrShape)
		}
		sizes, strides := slices.Clone(l.Shape().Sizes()), slices.Clone(l.Strides())
		skip := 0
		for i, r := range ranges {
			start, count, step, err := r.in(op, i, sizes[i])
			if err != nil {
				return nil, 0, err
			}
			skip += start * strides[i]
			sizes[i] = count
			strides[i] *= step // with two or more elements the product stays within the layout's span; otherwise strided replaces it
		}
		to, err := strided(op, sizes, strides)
		if err == nil && to.Shape().NumElements() == 0 {
			skip = 0 // no element is reached, and an offset beyond the end would be refused
		}
		return to, skip, err
	}
}

func indexed(places []int) relayout {
	return func(op string, l *shape.Layout) (*shape.Layout, int, error) {
		skip, err := placeOf(op, l, places)
		if err != nil {
			return nil, 0, err
		}
		to, err := strided(op, l.Shape().Sizes()[len(places):], l.Strides()[len(places):])
		if err == nil && to.Shape().NumElements() == 0 {
			skip = 0
		}
		return to, skip, err
	}
}

// placeOf returns the distance in elements from the first element to the given
// position in the leading dimensions.
func placeOf(op string, l *shape.Layout, places []int) (int, error) {
	if len(places) > l.Shape().Rank() {
		return 0, fmt.Errorf("%s: got %d places for shape %s, want at most %d: %w", op, len(places), l.Shape(), l.Shape().Rank(), ErrShape)
	}
	skip := 0
	for axis, at := range places {
		n := l.Shape().Size(axis)
		if at < 0 {
			at += n
		}
		if at < 0 || at >= n {
			return 0, fmt.Errorf("%s: axis %d: got place %d, want it within size %d: %w", op, axis, places[axis], n, ErrShape)
		}
		skip += at * l.Strides()[axis]
	}
	return skip, nil
}

func reshaped(dims []int) relayout {
	return func(op string, l *shape.Layout) (*shape.Layout, int, error) {
		from := l.Shape()
		sizes, err := inferred(op, from, dims)
		if err != nil {
			return nil, 0, err
		}
		s, err := shape.Of(sizes...)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", op, err)
		}
		if s.NumElements() != from.NumElements() {
			return nil, 0, fmt.Errorf("%s: got shape %s with %d elements for %s, want %d: %w", op, s, s.NumElements(), from, from.NumElements(), ErrShape)
		}
		if !l.IsContiguous() {
			return nil, 0, fmt.Errorf("%s: got %s, want a contiguous layout (see Contiguous): %w", op, l, ErrLayout)
		}
		return shape.RowMajor(s), 0, nil
	}
}

// inferred replaces a -1 in dims by the remaining size.
func inferred(op string, from *shape.Shape, dims []int) ([]int, error) {
	at := slices.Index(dims, -1)
	if at < 0 {
		return dims, nil
	}
	sizes := slices.Clone(dims)
	sizes[at] = 1
	rest, err := shape.Of(sizes...) // refuses another negative size, and an overflow
	if err != nil {
		return nil, fmt.Errorf("%s: got dims %v, want sizes and at most one -1: %w", op, dims, err)
	}
	n := rest.NumElements()
	if n == 0 || from.NumElements()%n != 0 {
		return nil, fmt.Errorf("%s: got dims %v for %s, want them to divide its %d elements: %w", op, dims, from, from.NumElements(), ErrShape)
	}
	sizes[at] = from.NumElements() / n
	return sizes, nil
}

func permuted(axes []int) relayout {
	return func(op string, l *shape.Layout) (*shape.Layout, int, error) {
		rank := l.Shape().Rank()
		sizes, strides, seen := make([]int, rank), make([]int, rank), make([]bool, rank)
		wrong := len(axes) != rank
		for i, a := range axes {
			if wrong || a < 0 || a >= rank || seen[a] {
				wrong = true
				break
			}
			seen[a] = true
			sizes[i], strides[i] = l.Shape().Size(a), l.Strides()[a]
		}
		if wrong {
			return nil, 0, fmt.Errorf("%s: got axes %v for shape %s, want each of 0 to %d once: %w", op, axes, l.Shape(), rank-1, ErrShape)
		}
		to, err := strided(op, sizes, strides)
		return to, 0, err
	}
}

func reversed(op string, l *shape.Layout) (*shape.Layout, int, error) {
	sizes, strides := slices.Clone(l.Shape().Sizes()), slices.Clone(l.Strides())
	slices.Reverse(sizes)
	slices.Reverse(strides)
	to, err := strided(op, sizes, strides)
	return to, 0, err
}

func broadcasted(dims []int) relayout {
	return func(op string, l *shape.Layout) (*shape.Layout, int, error) {
		to, err := shape.Of(dims...)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", op, err)
		}
		from := l.Shape()
		both, err := shape.Broadcast(from, to)
		if err != nil || both != to {
			return nil, 0, fmt.Errorf("%s: got shape %s for %s, want one that it broadcasts to: %w", op, to, from, ErrShape)
		}
		strides := make([]int, to.Rank())
		lead := to.Rank() - from.Rank()
		for i := range from.Rank() {
			if from.Size(i) == to.Size(lead+i) {
				strides[lead+i] = l.Strides()[i]
			}
		}
		out, err := strided(op, to.Sizes(), strides)
		return out, 0, err
	}
}

func squeezed(axes []int) relayout {
	return func(op string, l *shape.Layout) (*shape.Layout, int, error) {
		rank := l.Shape().Rank()
		drop := make([]bool, rank)
		for _, a := range axes {
			i := a
			if i < 0 {
				i += rank
			}
			if i < 0 || i >= rank || l.Shape().Size(i) != 1 || drop[i] {
				return nil, 0, fmt.Errorf("%s: got axes %v for shape %s, want each a dimension of size 1, once: %w", op, axes, l.Shape(), ErrShape)
			}
			drop[i] = true
		}
		var sizes, strides []int
		for i, n := range l.Shape().Sizes() {
			if drop[i] || len(axes) == 0 && n == 1 {
				continue
			}
			sizes, strides = append(sizes, n), append(strides, l.Strides()[i])
		}
		to, err := strided(op, sizes, strides)
		return to, 0, err
	}
}

func unsqueezed(axes []int) relayout {
	return func(op string, l *shape.Layout) (*shape.Layout, int, error) {
		rank := l.Shape().Rank() + len(axes)
		added := make([]bool, rank)
		for _, a := range axes {
			i := a
			if i < 0 {
				i += rank
			}
			if i < 0 || i >= rank || added[i] {
				return nil, 0, fmt.Errorf("%s: got axes %v for shape %s, want each a dimension of the result of rank %d, once: %w", op, axes, l.Shape(), rank, ErrShape)
			}
			added[i] = true
		}
		sizes, strides := make([]int, rank), make([]int, rank)
		from := 0
		for i := range sizes {
			if added[i] {
				sizes[i] = 1 // its stride has no effect
				continue
			}
			sizes[i], strides[i] = l.Shape().Size(from), l.Strides()[from]
			from++
		}
		to, err := strided(op, sizes, strides)
		return to, 0, err
	}
}

// strided is shape.Strided for computed sizes. Dimensions of size 1 get the
// row-major stride, so that equivalent layouts are the same one.
func strided(op string, sizes, strides []int) (*shape.Layout, error) {
	s, err := shape.Of(sizes...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	strides = slices.Clone(strides)
	for i, n := range sizes {
		if n == 1 || s.NumElements() == 0 {
			strides[i] = s.Strides()[i]
		}
	}
	l, err := shape.Strided(s, strides...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return l, nil
}
