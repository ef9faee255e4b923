package move

import (
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Fill repeats one element over dst.
func Fill(dst, element []byte) { fillBytes(dst, element) }

// fillBytes doubles the filled part, so that copies of growing size do the
// work.
func fillBytes(dst, element []byte) {
	if len(dst) == 0 {
		return
	}
	if len(element) == 0 || len(dst)%len(element) != 0 {
		kernel.Bug("fill: %d bytes by an element of %d", len(dst), len(element))
	}
	n := copy(dst, element)
	for n < len(dst) {
		n += copy(dst[n:], dst[:n])
	}
}

// Range computes dst[i] = start + (first+i)*step: first is the number of dst's
// first element in the whole range.
func Range[T kernel.Number](dst []T, start, step T, first int) {
	for i := range dst {
		dst[i] = start + T(first+i)*step
	}
}

// OneHotSpec sets, for each index, one of Depth positions: dst is [Outer,
// Depth, Inner], the indices are [Outer, Inner].
type OneHotSpec struct{ Outer, Depth, Inner int }

// OneHot writes on at the place of each index and off everywhere else; for an
// index outside [-Depth, Depth), off only. values holds off and on.
func OneHot(s OneHotSpec, elemBytes int, dst []byte, indices []int64, values []byte) {
	off, on := values[:elemBytes], values[elemBytes:2*elemBytes]
	fillBytes(dst, off)
	for i, x := range indices {
		if x < 0 {
			x += int64(s.Depth)
		}
		if x < 0 || x >= int64(s.Depth) {
			continue
		}
		outer, inner := i/s.Inner, i%s.Inner
		at := (outer*s.Depth+int(x))*s.Inner + inner
		copy(dst[at*elemBytes:(at+1)*elemBytes], on)
	}
}

// TriluSpec keeps the part of each matrix on one side of the K-th diagonal and
// sets the rest to zero.
type TriluSpec struct {
	Batch, Rows, Cols int
	K                 int // 0 is the main diagonal, positive ones lie above it
	Upper             bool
}

// Tiles returns the number of tiles: one per matrix.
func (s *TriluSpec) Tiles() int { return s.Batch }

// Trilu computes matrix t. dst may be src exactly.
func Trilu(s *TriluSpec, t, elemBytes int, dst, src []byte) {
	row := s.Cols * elemBytes
	for r := range s.Rows {
		at := (t*s.Rows + r) * row
		d, x := dst[at:at+row], src[at:at+row]
		// Columns from the diagonal on are the upper part, those up to and with
		// it the lower.
		cut := r + s.K
		if !s.Upper {
			cut++
		}
		cut = min(max(cut, 0), s.Cols) * elemBytes
		if s.Upper {
			clear(d[:cut])
			copy(d[cut:], x[cut:])
		} else {
			copy(d[:cut], x[:cut])
			clear(d[cut:])
		}
	}
}

// ScanSpec is a running sum or product along one axis.
type ScanSpec struct {
	Product   bool
	Exclusive bool // of what comes before only
	Reverse   bool // from the end

	axis, inner int         // sizes: of the axis, and of what lies in one piece behind it
	steps       [2]int      // along the axis, of the result and of the operand
	outer       kernel.Nest // over all other axes
	loops       [3][]int    // its sizes, and the strides of both
}

// Reserve makes room for so many axes: Prepare allocates nothing then.
func (s *ScanSpec) Reserve(axes int) {
	for i := range s.loops {
		s.loops[i] = slices.Grow(s.loops[i][:0], axes)
	}
	s.outer.Axes = slices.Grow(s.outer.Axes[:0], axes+1)
}

// Prepare sets the sizes, of at most [kernel.MaxRank] axes, and the strides of
// the result and of the operand, in elements.
func (s *ScanSpec) Prepare(sizes []int, axis int, dst, src []int) {
	s.axis, s.steps, s.inner = sizes[axis], [2]int{dst[axis], src[axis]}, 1
	end := len(sizes)
	for end > axis+1 && (sizes[end-1] == 1 || dst[end-1] == s.inner && src[end-1] == s.inner) {
		end--
		s.inner *= sizes[end]
	}
	for i, list := range [][]int{sizes, dst, src} {
		s.loops[i] = append(append(s.loops[i][:0], list[:axis]...), list[axis+1:end]...)
	}
	s.outer.Prepare(s.loops[0], s.loops[1], s.loops[2])
}

// Parts returns the number of independent parts.
func (s *ScanSpec) Parts() int { return s.outer.Elements() }

// PartElements returns the number of elements of a part.
func (s *ScanSpec) PartElements() int { return s.axis * s.inner }

// Scan computes parts [lo, hi). dst may be src exactly.
func Scan[T kernel.Number](s *ScanSpec, lo, hi int, dst, src []T) {
	for c := s.outer.Cursor(lo, hi); c.Next(); {
		for i := range c.N {
			scanPart(s, dst[c.Off[0]+i*c.Step[0]:], src[c.Off[1]+i*c.Step[1]:])
		}
	}
}

func scanPart[T kernel.Number](s *ScanSpec, d, x []T) {
	first, from, step, stepFrom := 0, 0, s.steps[0], s.steps[1]
	if s.Reverse {
		first, from, step, stepFrom = (s.axis-1)*step, (s.axis-1)*stepFrom, -step, -stepFrom
	}
	for i := range s.inner {
		var all T
		if s.Product {
			all = 1
		}
		to, at := first+i, from+i
		for range s.axis {
			before := all
			if s.Product {
				all *= x[at]
			} else {
				all += x[at]
			}
			d[to] = all
			if s.Exclusive {
				d[to] = before
			}
			to, at = to+step, at+stepFrom
		}
	}
}
