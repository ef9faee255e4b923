package sequence

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// Attend on float64 computes row by row: scratch has the scores of one.

// rowsOfTile returns how many rows of all groups are one tile.
func (a *Attend) rowsOfTile() int {
	return max(1, kernel.PlainFlops/max(1, 2*a.Keys*(a.Size+a.ValueSize)))
}

func (a *Attend) wideTile(tile int, scratch []float64, args *AttendArgs) {
	n := a.rowsOfTile()
	for r := tile * n; r < min((tile+1)*n, a.batch*a.Groups*a.rows); r++ {
		t := attendTile{Attend: a, args: *args, row: r % a.rows, n: 1}
		t.begin(r / a.rows)
		t.findRanges()
		t.wideRow(scratch)
	}
}

func (t *attendTile) wideRow(all []float64) {
	t.wideScores(all)
	x := all[t.lo:t.hi]
	switch {
	case len(x) == 0:
	case t.Ranges != nil && math.IsInf(slices.Max(x), -1):
		clear(x)
	default:
		if reduce.SoftmaxOf(x, x, false); t.NaNToZero && x[0] != x[0] {
			clear(x)
		}
	}
	t.wideOutput(3, all)
	if t.ValueSize == 0 {
		return
	}
	y := t.args.Y.F64[t.at(&t.Y, t.atY, 0):][:t.ValueSize]
	clear(y)
	for j, w := range x {
		from, at, _, _ := t.piece(false, t.lo+j, 1)
		for i, e := range from.F64[at:][:t.ValueSize] {
			y[i] += w * e
		}
	}
}

// wideScores sets the scores of a row.
func (t *attendTile) wideScores(x []float64) {
	lo, hi := t.lo, t.hi
	if t.HasScores {
		lo, hi = 0, t.Keys
	}
	var q []float64
	if t.Size > 0 {
		q = t.args.Q.F64[t.at(&t.Q, t.atQ, 0):][:t.Size]
	}
	for j := lo; j < hi; j++ {
		x[j] = 0
		if t.Size == 0 {
			continue
		}
		from, at, s, _ := t.piece(true, j, 1)
		for i, e := range q {
			x[j] += e * from.F64[at+i*s.Column]
		}
		x[j] *= t.Scale
	}
	t.wideOutput(0, x)
	if t.Softcap != 0 {
		for j := lo; j < hi; j++ {
			x[j] = t.Softcap * math.Tanh(x[j]/t.Softcap)
		}
	}
	t.wideOutput(1, x)
	for which := range t.Addends {
		if t.MaskAfter == which {
			t.wideHide(x)
		}
		t.wideAdd(which, x)
	}
	if t.MaskAfter >= len(t.Addends) {
		t.wideHide(x)
	}
	if !t.HasScores {
		return
	}
	fill := math.Inf(-1)
	kernel.Repeat(x[:t.lo], fill)
	kernel.Repeat(x[t.hi:], fill)
	if t.wideOutput(2, x); t.Stage == 3 {
		clear(x[:t.lo])
		clear(x[t.hi:])
	}
}

// wideOutput writes the scores of the row, if Scores gets those of this stage.
func (t *attendTile) wideOutput(stage int, x []float64) {
	if t.HasScores && stage == t.Stage {
		copy(t.args.Scores.F64[((t.batch*t.Heads+t.head)*t.Queries+t.row)*t.Keys:], x[:t.Keys])
	}
}

func (t *attendTile) wideAdd(which int, x []float64) {
	a, from := &t.Addends[which], &t.args.Addends[which]
	if from.isAbsent() {
		return
	}
	at := t.at(&a.Strides, t.atAddends[which], 0)
	for j := t.lo; j < t.hi; j++ {
		if a.Type == dtype.F64 {
			x[j] += from.F64[at+j*a.Column]
		} else {
			x[j] += float64(from.F32[at+j*a.Column])
		}
	}
}

func (t *attendTile) wideHide(x []float64) {
	if t.args.Mask == nil {
		return
	}
	at := t.at(&t.Mask, t.atMask, 0)
	for j := t.lo; j < t.hi; j++ {
		if (t.args.Mask[at+j*t.Mask.Column] != 0) == t.MaskHides {
			x[j] = t.Fill
		}
	}
}
