package sequence

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// multiply sets the scores of n keys, with the first addend where nothing comes
// before it and its rows have one distance.
func (t *attendTile) multiply(key, n int) {
	if t.Size == 0 {
		clear(t.x)
		return
	}
	v := t.variant
	if t.n <= fewRows {
		for j := 0; j < n; {
			k, row, column, count := t.keys(key+j, n-j)
			for i := range t.n {
				x, q := t.x[i*t.spread+j:][:count], t.q[i*t.lda:][:t.Size]
				clear(x)
				if column == 1 {
					gemm.GemvDot(v, x, q, k, row)
				} else {
					gemm.GemvAxpy(v, x, q, k, column)
				}
			}
			j += count
		}
		return
	}
	var bias []float32
	ldb := 0
	if t.addsFirst() {
		a := &t.Addends[0].Strides
		bias, ldb = t.args.Addends[0].F32[t.at(a, t.atAddends[0], 0)+key:], t.step(a)
	}
	for j := 0; j < n; {
		k, row, column, nr := t.keys(key+j, min(v.Gemm.Width, n-j))
		from := bias
		if from != nil {
			from = from[j:]
		}
		if column == 1 {
			gemm.PackTransposed(v, t.packed, k, row, t.Size, nr)
			gemm.MultiplyPanel(v, t.n, t.Size, t.q, t.lda, t.packed, nr, t.x[j:], t.spread, from, ldb)
		} else {
			gemm.MultiplyRows(v, t.n, t.Size, t.q, t.lda, k, column, t.packed, nr, t.x[j:], t.spread, from, ldb)
		}
		j += nr
	}
}

// addsFirst reports whether the product takes the first addend as its own.
func (t *attendTile) addsFirst() bool {
	a := &t.Addends[0].Strides
	return t.args.Addends[0].F32 != nil && t.n > fewRows && t.Size > 0 && t.Softcap == 0 && a.Column == 1 && t.steps(a) &&
		(t.MaskAfter > 0 || t.args.Mask == nil)
}

// mask does to the scores what comes before softmax.
func (t *attendTile) mask(key, n int) {
	if t.Softcap != 0 {
		for i := range t.n {
			x := t.x[i*t.spread:][:n]
			elementwise.UnaryRow(t.variant, kernel.Tanh, x, x, 0, 0)
			elementwise.BinaryRowVS(t.variant, kernel.Mul, x, x, float32(t.Softcap))
		}
	}
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
}

func (t *attendTile) add(which, key, n int) {
	if t.args.Addends[which].isAbsent() {
		return
	}
	for i := range t.n {
		x, a := t.x[i*t.spread:][:n], t.addend(which, i, key, n)
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
		x, mask := t.x[i*t.spread:][:n], t.args.Mask[t.at(&t.Mask, t.atMask, i)+key*t.Mask.Column:]
		if t.Mask.Column == 1 {
			elementwise.Choose(t.variant, x, mask[:n], &t.fill, t.MaskHides)
		} else if (mask[0] != 0) == t.MaskHides {
			kernel.Repeat(x, t.fill)
		}
	}
}

// weigh makes weights of the scores of a block, and scales what was added up
// about a smaller peak.
func (t *attendTile) weigh(key, n int) {
	for i := range t.n {
		x := t.x[i*t.spread:][:n]
		peak := reduce.RowMax(t.variant, x)
		if key == 0 {
			t.sums[i] = 0
		} else if before := t.peaks[i]; peak != before {
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

// addUp adds the weighted values of n keys.
func (t *attendTile) addUp(key, n int) {
	size, v := t.ValueSize, t.variant
	if t.n <= fewRows {
		if key == 0 {
			for i := range t.n {
				clear(t.y[i*t.ldy:][:size])
			}
		}
		for j := 0; j < size; j += attendKeys {
			columns := min(attendKeys, size-j)
			for k := 0; k < n; {
				values, row, count := t.values(key+k, n-k, j, columns)
				for i := range t.n {
					gemm.GemvAxpy(v, t.y[i*t.ldy+j:][:columns], t.x[i*t.spread+k:][:count], values, row)
				}
				k += count
			}
		}
		return
	}
	for k := 0; k < n; {
		depth := min(attendDepth, n-k)
		for j := 0; j < size; j += v.Gemm.Width {
			var from []float32
			if key+k > 0 {
				from = t.y[j:]
			}
			nr := min(v.Gemm.Width, size-j)
			values, row, count := t.values(key+k, depth, j, nr)
			depth = count // of all columns
			gemm.MultiplyRows(v, t.n, depth, t.x[k:], t.spread, values, row, t.packed, nr, t.y[j:], t.ldy, from, t.ldy)
		}
		k += depth
	}
}
