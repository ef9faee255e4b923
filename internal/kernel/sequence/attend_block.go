package sequence

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// multiply sets the scores of n keys, with the first addend where nothing comes
// before it and its rows have one distance. Those of keys that a row does not
// see are undefined.
func (t *attendTile) multiply(key, n int) {
	if t.Size == 0 {
		clear(t.x)
		return
	}
	if t.n <= fewRows {
		t.multiplyFew(key, n)
		return
	}
	v := t.variant
	var bias []float32
	ldb := 0
	if t.addsFirst() {
		a := &t.Addends[0].Strides
		bias, ldb = t.args.Addends[0].F32[t.at(a, t.atAddends[0], 0)+key:], t.step(a)
	}
	for j := 0; j < n; j += v.Gemm.Width {
		nr := min(v.Gemm.Width, n-j)
		first, end := t.rowsOf(key+j, nr)
		if t.HasScores {
			first, end = 0, t.n
		}
		if first == end {
			continue
		}
		k, row, column, _ := t.keys(key+j, nr)
		from := bias
		if from != nil {
			from = from[first*ldb+j:]
		}
		m, q, x := end-first, t.q[first*t.lda:], t.x[first*t.spread+j:]
		if column == 1 {
			gemm.PackTransposed(v, t.packed, k, row, t.Size, nr)
			gemm.MultiplyPanel(v, m, t.Size, q, t.lda, t.packed, nr, x, t.spread, from, ldb)
		} else {
			gemm.MultiplyRows(v, m, t.Size, q, t.lda, k, column, t.packed, nr, x, t.spread, from, ldb)
		}
	}
}

// multiplyFew is multiply for few rows.
func (t *attendTile) multiplyFew(key, n int) {
	for j := 0; j < n; {
		k, row, column, count := t.keys(key+j, n-j)
		for i := range t.n {
			lo, hi := t.within(i, key+j, count)
			if t.HasScores {
				lo, hi = 0, count
			}
			if lo >= hi {
				continue
			}
			x, q := t.x[i*t.spread+j+lo:][:hi-lo], t.q[i*t.lda:][:t.Size]
			clear(x)
			if column == 1 {
				gemm.GemvDot(t.variant, x, q, k[lo*row:], row)
			} else {
				gemm.GemvAxpy(t.variant, x, q, k[lo:], column)
			}
		}
		j += count
	}
}

// addsFirst reports whether the product takes the first addend as its own.
func (t *attendTile) addsFirst() bool {
	a := &t.Addends[0].Strides
	return t.args.Addends[0].F32 != nil && t.n > fewRows && t.Size > 0 && t.Softcap == 0 && a.Column == 1 && t.steps(a) &&
		(t.MaskAfter > 0 || t.args.Mask == nil) && !t.HasScores
}

// visible are the scores of those of n keys that row i sees, and the first of
// these keys.
func (t *attendTile) visible(i, key, n int) (x []float32, first int) {
	lo, hi := t.within(i, key, n)
	return t.x[i*t.spread+lo : i*t.spread+hi], key + lo
}

// mask does to the scores what comes before softmax.
func (t *attendTile) mask(key, n int) {
	t.output(0)
	if t.Softcap != 0 {
		for i := range t.n {
			x, _ := t.visible(i, key, n)
			if t.HasScores {
				x = t.x[i*t.spread:][:n]
				elementwise.BinaryRowVS(t.variant, kernel.Mul, x, x, float32(1/t.Softcap))
			}
			elementwise.UnaryRow(t.variant, kernel.Tanh, x, x, 0, 0)
			elementwise.BinaryRowVS(t.variant, kernel.Mul, x, x, float32(t.Softcap))
		}
	}
	t.output(1)
	for which := range t.Addends {
		if t.MaskAfter == which {
			t.hide(key, n)
		}
		if which > 0 || !t.addsFirst() {
			t.add(which, key, n)
		}
	}
	if t.MaskAfter >= len(t.Addends) {
		t.hide(key, n)
	}
	if t.HasScores && t.Stage == 2 {
		for i := range t.n {
			x := t.x[i*t.spread:][:n]
			lo, hi := t.within(i, key, n)
			kernel.Repeat(x[:lo], float32(math.Inf(-1)))
			kernel.Repeat(x[hi:], float32(math.Inf(-1)))
		}
		t.output(2)
	}
}

func (t *attendTile) add(which, key, n int) {
	if t.args.Addends[which].isAbsent() {
		return
	}
	for i := range t.n {
		x, first := t.visible(i, key, n)
		if len(x) == 0 {
			continue
		}
		a := t.addend(which, i, first, len(x))
		if t.Addends[which].Column == 0 {
			elementwise.BinaryRowVS(t.variant, kernel.Add, x, x, a[0])
		} else {
			elementwise.BinaryRowVV(t.variant, kernel.Add, x, x, a)
		}
	}
}

func (t *attendTile) hide(key, n int) {
	if t.args.Mask == nil {
		return
	}
	for i := range t.n {
		x, first := t.visible(i, key, n)
		if len(x) == 0 {
			continue
		}
		mask := t.args.Mask[t.at(&t.Mask, t.atMask, i)+first*t.Mask.Column:]
		if t.Mask.Column == 1 {
			elementwise.Choose(t.variant, x, mask[:len(x)], &t.fill, t.MaskHides)
		} else if (mask[0] != 0) == t.MaskHides {
			kernel.Repeat(x, t.fill)
		}
	}
}

// seenScores are the scores of those of n keys that row i sees. The weights of
// the others become zeros.
func (t *attendTile) seenScores(i, key, n int) []float32 {
	x := t.x[i*t.spread:][:n]
	lo, hi := t.within(i, key, n)
	clear(x[:lo])
	clear(x[hi:])
	return x[lo:hi]
}

// normalize makes weights of the scores of the only block.
func (t *attendTile) normalize(key, n int) {
	for i := range t.n {
		x := t.seenScores(i, key, n)
		switch {
		case len(x) == 0:
		case t.Ranges != nil && math.IsInf(float64(x[0]), -1) && math.IsInf(float64(reduce.RowMax(t.variant, x)), -1):
			clear(x)
		default:
			if reduce.RowSoftmax(t.variant, x, x, false); t.NaNToZero && x[0] != x[0] {
				clear(x)
			}
		}
	}
	t.output(3)
}

// weigh makes weights of the scores of a block, and scales what was added up
// about a smaller peak.
func (t *attendTile) weigh(key, n int) {
	if key == t.lo {
		for i := range t.n {
			t.sums[i], t.peaks[i] = 0, float32(math.Inf(-1))
		}
	}
	for i := range t.n {
		x, before := t.seenScores(i, key, n), t.peaks[i]
		if len(x) == 0 {
			continue
		}
		peak := reduce.RowMax(t.variant, x)
		if peak != before && !math.IsInf(float64(before), -1) {
			if peak = max(peak, before); peak != before {
				f := float32(math.Exp(float64(before - peak)))
				t.sums[i] *= f
				y := t.y[i*t.ldy:][:t.ValueSize]
				elementwise.BinaryRowVS(t.variant, kernel.Mul, y, y, f)
			}
		}
		t.peaks[i] = peak
		if math.IsInf(float64(peak), -1) {
			clear(x)
			continue
		}
		t.sums[i] += reduce.RowExpSum(t.variant, x, peak)
	}
}

// addUp adds the weighted values of n keys. Values that a row does not see may
// be NaN or Inf, which the weight 0 would not hide.
func (t *attendTile) addUp(key, n int) {
	if t.n <= fewRows {
		t.addFew(key, n, 0, t.n)
		return
	}
	for k := 0; k < n; {
		depth, first, end := t.run(key+k, n-k)
		switch {
		case first == end:
		case t.hidesSome(key+k, depth, first, end) && !t.areFinite(key+k, depth):
			x := t.x
			t.x = x[k:]
			t.addFew(key+k, depth, first, end)
			t.x = x
		default:
			t.addPanels(key, k, depth, first, end)
		}
		k += depth
	}
}

// addPanels adds the weighted values of depth keys, of which the first is k
// keys from the first of the block.
func (t *attendTile) addPanels(key, k, depth, first, end int) {
	v, x := t.variant, t.x[first*t.spread+k:]
	for column := 0; column < t.ValueSize; column += valueColumns {
		columns := min(valueColumns, t.ValueSize-column)
		values, row := t.valueRows(key+k, depth, column, columns)
		for j := 0; j < columns; j += v.Gemm.Width {
			y := t.y[first*t.ldy+column+j:]
			var from []float32
			if key+k > t.lo || t.ragged {
				from = y
			}
			gemm.MultiplyRows(v, end-first, depth, x, t.spread, values[j:], row, t.packed, min(v.Gemm.Width, columns-j), y, t.ldy, from, t.ldy)
		}
	}
}

// addFew adds the weighted values of n keys to each row by itself, in the order
// of the keys that it sees.
func (t *attendTile) addFew(key, n, first, end int) {
	size := t.ValueSize
	for j := 0; j < size; j += attendKeys {
		columns := min(attendKeys, size-j)
		for k := 0; k < n; {
			values, row, count := t.values(key+k, min(n-k, max(1, fewKeys/columns)), j, columns)
			for i := first; i < end; i++ {
				if lo, hi := t.within(i, key+k, count); lo < hi {
					gemm.GemvAxpy(t.variant, t.y[i*t.ldy+j:][:columns], t.x[i*t.spread+k+lo:][:hi-lo], values[lo*row:], row)
				}
			}
			k += count
		}
	}
}

// areFinite reports whether no value of n keys is NaN or Inf. It may be false
// for very large ones.
func (t *attendTile) areFinite(key, n int) bool {
	for j := 0; j < t.ValueSize; j += attendKeys {
		columns := min(attendKeys, t.ValueSize-j)
		for k := 0; k < n; {
			values, row, count := t.values(key+k, n-k, j, columns)
			for i := range count {
				if s := reduce.RowSum(t.variant, values[i*row:][:columns]); math.IsNaN(s) || math.IsInf(s, 0) {
					return false
				}
			}
			k += count
		}
	}
	return true
}
