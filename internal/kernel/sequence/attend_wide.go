package sequence

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// Attend on float64 computes row by row: scratch has the scores of one.

// rowsOfTile returns how many rows of all groups are one tile.
func (a *Attend) rowsOfTile() int {
	return max(1, kernel.PlainFlops/max(1, 2*a.Keys*(a.Size+a.ValueSize)))
}

func (a *Attend) wideTile(tile int, x []float64, args *AttendArgs) {
	n := a.rowsOfTile()
	for r := tile * n; r < min((tile+1)*n, a.batch*a.Groups*a.rows); r++ {
		t := attendTile{Attend: a, args: *args, row: r % a.rows, n: 1}
		t.begin(r / a.rows)
		t.wideScores(x)
		y := args.Y.F64[t.at(&a.Y, t.atY, 0):][:a.ValueSize]
		clear(y)
		if a.Keys == 0 {
			continue
		}
		if reduce.SoftmaxOf(x, x, false); a.NaNToZero && x[0] != x[0] {
			clear(x)
		}
		for j, w := range x {
			for i, e := range args.V.F64[t.atV+j*a.V.Row:][:a.ValueSize] {
				y[i] += w * e
			}
		}
	}
}

// wideScores sets the scores of a row.
func (t *attendTile) wideScores(x []float64) {
	var q []float64
	if t.Size > 0 {
		q = t.args.Q.F64[t.at(&t.Q, t.atQ, 0):][:t.Size]
	}
	for j := range x {
		at, sum := t.atK+j*t.K.Row, 0.0
		for i, e := range q {
			sum += e * t.args.K.F64[at+i*t.K.Column]
		}
		if x[j] = sum * t.Scale; t.Softcap != 0 {
			x[j] = t.Softcap * math.Tanh(x[j]/t.Softcap)
		}
	}
	for which := range t.Addends {
		if t.MaskAfter == which {
			t.wideHide(x)
		}
		t.wideAdd(which, x)
	}
	if t.MaskAfter >= len(t.Addends) {
		t.wideHide(x)
	}
}

func (t *attendTile) wideAdd(which int, x []float64) {
	a, from := &t.Addends[which], &t.args.Addends[which]
	if from.isAbsent() {
		return
	}
	at := t.at(&a.Strides, t.atAddends[which], 0)
	for j := range x {
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
	for j := range x {
		if (t.args.Mask[at+j*t.Mask.Column] != 0) == t.MaskHides {
			x[j] = t.Fill
		}
	}
}
