package sequence

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// This file is where a tile reads its operands and writes its result. All else
// works on float32 rows: those of an operand where they lie, or rows in scratch
// that are widened from 16 bits.

const widenedFloats = 4096

// widened returns how many elements are widened at a time: at least the rows of
// a panel, a row of K, of V as far as it is read at once, and of an addend.
func (a *Attend) widened() int {
	width := a.variant.Gemm.Width
	keys := kernel.CeilDiv(min(a.Keys, attendKeys), width) * width
	return max(width*max(a.Size, min(a.Keys, attendDepth)), min(a.ValueSize, attendKeys), keys, widenedFloats)
}

// at returns where row i of the tile begins in an operand.
func (t *attendTile) at(s *Strides, base, i int) int {
	r := t.row + i
	return base + (t.head+r/t.Queries)*s.Head + r%t.Queries*s.Row
}

// gather finds the rows of Q, or copies them, times the factor.
func (t *attendTile) gather(scratch []float32) {
	if t.q, t.lda = scratch, t.gap; t.Size == 0 {
		return
	}
	if t.wide == 0 && t.steps(&t.Q) {
		rows, step := t.args.Q.F32[t.at(&t.Q, t.atQ, 0):], t.step(&t.Q)
		switch {
		case t.factor == 1 && step == uncrowded(step):
			t.q, t.lda = rows, step
			return
		case step == t.Size && step == t.gap:
			elementwise.BinaryRowVS(t.variant, kernel.Mul, t.q[:t.n*step], rows[:t.n*step], t.factor)
			return
		}
	}
	for i := range t.n {
		dst, at := t.q[i*t.gap:][:t.Size], t.at(&t.Q, t.atQ, i)
		switch {
		case t.wide > 0:
			elementwise.Widen(t.variant, t.Type, dst, t.args.Q.Half, at, 1)
			if t.factor != 1 {
				elementwise.BinaryRowVS(t.variant, kernel.Mul, dst, dst, t.factor)
			}
		case t.factor == 1:
			copy(dst, t.args.Q.F32[at:])
		default:
			elementwise.BinaryRowVS(t.variant, kernel.Mul, dst, t.args.Q.F32[at:][:t.Size], t.factor)
		}
	}
}

// keys returns where rows of K lie, from the given key on: count of them, at
// least 1 and at most n. Neighbours are row apart, and the elements of each
// column; one of the two is 1. A panel's width of keys comes at once, as far as
// they lie in one piece. The rows are valid until the next call of keys, values
// or addend.
func (t *attendTile) keys(key, n int) (k []float32, row, column, count int) {
	at := t.atK + key*t.K.Row
	if t.wide == 0 {
		return t.args.K.F32[at:], t.K.Row, t.K.Column, n
	}
	n = min(n, max(1, t.wide/t.Size))
	k = t.widened
	if t.K.Column == 1 {
		t.widen(k, t.Size, t.args.K.Half[at:], t.K.Row, n)
		return k, t.Size, 1, n
	}
	for i := range t.Size {
		elementwise.Widen(t.variant, t.Type, k[i*n:][:n], t.args.K.Half, at+i*t.K.Column, 1)
	}
	return k, 1, n, n
}

// values returns where columns [column, column+columns) of rows of V lie, from
// the given key on: count rows, at least 1 and at most n, row apart. As many as
// are multiplied at once come at once, as far as they lie in one piece. The
// rows are valid until the next call of keys, values or addend.
func (t *attendTile) values(key, n, column, columns int) (v []float32, row, count int) {
	at := t.atV + key*t.V.Row + column
	if t.wide == 0 {
		return t.args.V.F32[at:], t.V.Row, n
	}
	n = min(n, t.wide/columns)
	t.widen(t.widened, columns, t.args.V.Half[at:], t.V.Row, n)
	return t.widened, columns, n
}

// widen writes n rows of the given size, which are step apart, side by side.
func (t *attendTile) widen(dst []float32, size int, src []uint16, step, n int) {
	if step == size {
		size, n = n*size, 1
	}
	for i := range n {
		elementwise.Widen(t.variant, t.Type, dst[i*size:][:size], src, i*step, 1)
	}
}

// addend returns n elements of row i of an addend of the tile, from the given
// key on, or one that stands for all. They are valid until the next call of
// keys, values or addend.
func (t *attendTile) addend(which, i, key, n int) []float32 {
	a, x := &t.Addends[which], &t.args.Addends[which]
	at := t.at(&a.Strides, t.atAddends[which], i) + key*a.Column
	if a.Column == 0 {
		n = 1
	}
	if x.F32 != nil {
		return x.F32[at:][:n]
	}
	elementwise.Widen(t.variant, a.Type, t.widened[:n], x.Half, at, 1)
	return t.widened[:n]
}

// finish writes the rows of Y that lie in scratch, divided by the sums of their
// weights.
func (t *attendTile) finish() {
	if t.inPlace() && t.Keys > 0 {
		return
	}
	for i := range t.n {
		at, src := t.at(&t.Y, t.atY, i), t.y[i*t.ldy:][:t.ValueSize]
		dst := src
		if t.wide == 0 {
			dst = t.args.Y.F32[at:][:t.ValueSize]
		}
		switch {
		case t.Keys == 0:
			clear(dst)
		case t.Keys <= t.block:
			copy(dst, src)
		case t.NaNToZero && !(t.sums[i] > 0):
			clear(dst)
		default: // the sum of a row of scores that are all -Inf is 0, and 0 * Inf is NaN
			elementwise.BinaryRowVS(t.variant, kernel.Mul, dst, src, 1/t.sums[i])
		}
		if t.wide > 0 {
			elementwise.Narrow(t.variant, t.Type, t.args.Y.Half, at, 1, dst)
		}
	}
}
