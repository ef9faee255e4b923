package move

import "github.com/tenure-go/tenure/internal/kernel"

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

// ScanSpec is a running sum or product along one axis of [Outer, Axis, Inner].
type ScanSpec struct {
	Outer, Axis, Inner int
	Product            bool
	Exclusive          bool // of what comes before only
	Reverse            bool // from the end
}

// Tiles returns the number of tiles: one per outer index.
func (s *ScanSpec) Tiles() int { return s.Outer }

// Scan computes part t. dst may be src exactly.
func Scan[T kernel.Number](s *ScanSpec, t int, dst, src []T) {
	size := s.Axis * s.Inner
	d, x := dst[t*size:(t+1)*size], src[t*size:(t+1)*size]
	first, step := 0, s.Inner
	if s.Reverse {
		first, step = (s.Axis-1)*s.Inner, -s.Inner
	}
	for i := range s.Inner {
		var all T
		if s.Product {
			all = 1
		}
		at := first + i
		for range s.Axis {
			before := all
			if s.Product {
				all *= x[at]
			} else {
				all += x[at]
			}
			d[at] = all
			if s.Exclusive {
				d[at] = before
			}
			at += step
		}
	}
}
