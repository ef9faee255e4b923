package sequence

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// Ranges says that a query sees a range of keys: those up to its own place if
// Causal, and those within a window about it. The other keys, and those at
// either end of the range that a mask hides with -Inf, take no part: they are
// not read, unless Scores gets their products, and may be NaN.
type Ranges struct {
	Causal      bool
	Left, Right int // how far a query sees; -1 for no limit
	MaskKeys    int // keys that Mask or Addends have; those behind them are hidden
}

// seen returns the range of keys that a query may see, if the mask allows them.
// The last query is at the last key.
func (t *attendTile) seen(query int) (lo, hi int) {
	r, length := t.Ranges, t.Keys
	place := query + t.Past
	if t.args.Lengths != nil {
		length = int(t.args.Lengths[t.batch])
		place = query + length - t.Queries
	}
	hi = length
	if t.args.Mask != nil || !t.args.Addends[0].isAbsent() {
		hi = min(hi, r.MaskKeys)
	}
	if r.Causal {
		hi = min(hi, place+1)
	}
	if r.Right >= 0 {
		hi = min(hi, place+r.Right+1)
	}
	if r.Left >= 0 {
		lo = max(lo, place-r.Left)
	}
	hi = max(hi, 0)
	return min(lo, hi), hi
}

// findRanges sets the ranges of the rows, and that of all.
func (t *attendTile) findRanges() {
	if t.Ranges == nil {
		for i := range t.n {
			t.to[i] = int32(t.Keys)
		}
		t.hi = t.Keys
		return
	}
	t.lo = t.Keys
	before, last := -1, [4]int{} // the mask's row of the row before, what was seen of it, and what is left
	for i := range t.n {
		lo, hi := t.seen((t.row + i) % t.Queries)
		if at := t.maskAt(i); at >= 0 && at == before && lo == last[0] && hi == last[1] {
			lo, hi = last[2], last[3]
		} else if at >= 0 {
			before, last[0], last[1] = at, lo, hi
			lo, hi = t.trim(at, lo, hi)
			last[2], last[3] = lo, hi
		}
		if t.from[i], t.to[i] = int32(lo), int32(hi); lo < hi {
			t.lo, t.hi = min(t.lo, lo), max(t.hi, hi)
		}
	}
	if t.lo = min(t.lo, t.hi); t.lo == t.hi {
		t.lo, t.hi = 0, 0
	}
	for i := range t.n {
		t.ragged = t.ragged || int(t.from[i]) != t.lo || int(t.to[i]) != t.hi
	}
}

// maskAt is where a row of the mask begins, -1 without one.
func (t *attendTile) maskAt(i int) int {
	switch {
	case t.args.Mask != nil:
		return t.at(&t.Mask, t.atMask, i)
	case !t.args.Addends[0].isAbsent():
		return t.at(&t.Addends[0].Strides, t.atAddends[0], i)
	}
	return -1
}

// trim takes the hidden keys off the ends of a range.
func (t *attendTile) trim(at, lo, hi int) (int, int) {
	if lo >= hi {
		return lo, hi
	}
	a := &t.args.Addends[0]
	switch {
	case t.args.Mask != nil:
		return trimBytes(t.args.Mask[at:], lo, hi)
	case a.F32 != nil:
		return t.trimFloats(a.F32[at:], lo, hi)
	case a.F64 != nil:
		return trimmed(a.F64[at:], lo, hi, math.Inf(-1))
	case t.Addends[0].Type == dtype.F16:
		return trimmed(a.Half[at:], lo, hi, 0xFC00)
	}
	return trimmed(a.Half[at:], lo, hi, 0xFF80)
}

// trimmed takes the hidden elements off the ends of a range.
func trimmed[T kernel.Number](x []T, lo, hi int, hidden T) (int, int) {
	for lo < hi && x[hi-1] == hidden {
		hi--
	}
	for lo < hi && x[lo] == hidden {
		lo++
	}
	return lo, hi
}

// trimBytes is trimmed, eight elements at a time first.
func trimBytes(x []uint8, lo, hi int) (int, int) {
	const n = 8
	for hi-lo >= n && binary.LittleEndian.Uint64(x[hi-n:]) == 0 {
		hi -= n
	}
	for hi-lo >= n && binary.LittleEndian.Uint64(x[lo:]) == 0 {
		lo += n
	}
	return trimmed(x, lo, hi, 0)
}

// trimFloats is trimmed, some elements at a time first.
func (t *attendTile) trimFloats(x []float32, lo, hi int) (int, int) {
	const n = 64
	for hi-lo >= n && math.IsInf(float64(reduce.RowMax(t.variant, x[hi-n:hi])), -1) {
		hi -= n
	}
	for hi-lo >= n && math.IsInf(float64(reduce.RowMax(t.variant, x[lo:lo+n])), -1) {
		lo += n
	}
	return trimmed(x, lo, hi, float32(math.Inf(-1)))
}

// within returns the part of n keys that row i sees, counted from the first of
// them.
func (t *attendTile) within(i, key, n int) (lo, hi int) {
	lo, hi = max(0, int(t.from[i])-key), min(n, int(t.to[i])-key)
	return min(lo, max(hi, 0)), max(hi, 0)
}

// rowsOf returns a range of rows outside which none sees one of n keys.
func (t *attendTile) rowsOf(key, n int) (first, end int) {
	if !t.ragged {
		return 0, t.n
	}
	sees := func(i int) bool { return int(t.from[i]) < key+n && int(t.to[i]) > key }
	for first = 0; first < t.n && !sees(first); first++ {
	}
	for end = t.n; end > first && !sees(end-1); end-- {
	}
	return first, end
}

// run returns how many of n keys the same rows see, and these rows.
func (t *attendTile) run(key, n int) (depth, first, end int) {
	n = min(n, attendDepth)
	if !t.ragged {
		return n, 0, t.n
	}
	width := t.variant.Gemm.Width
	depth = min(n, width)
	first, end = t.rowsOf(key, depth)
	for depth < n {
		more := min(width, n-depth)
		if f, e := t.rowsOf(key+depth, more); f != first || e != end {
			break
		}
		depth += more
	}
	return depth, first, end
}

// hidesSome reports whether one of these rows does not see all of n keys.
func (t *attendTile) hidesSome(key, n, first, end int) bool {
	if !t.ragged {
		return false
	}
	for i := first; i < end; i++ {
		if int(t.from[i]) > key || int(t.to[i]) < key+n {
			return true
		}
	}
	return false
}
