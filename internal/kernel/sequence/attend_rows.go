package sequence

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// This file is where a tile reads its operands and writes its result. All else
// works on float32 rows: those of an operand where they lie, or rows in scratch
// that are widened from 16 bits.

const widenedFloats = 4096

// widened returns how many elements are widened, or brought together, at a
// time: the rows of a panel of keys, and of values as valueRows has them. Few
// rows take any number of 16 bits, of addends a block.
func (a *Attend) widened() (n int) {
	if a.most > fewRows {
		n = max(a.variant.Gemm.Width*a.Size, min(a.Keys, attendDepth)*min(a.ValueSize, valueColumns))
	}
	switch {
	case a.half:
		return max(n, a.Size, min(a.ValueSize, attendKeys), a.columns(min(a.Keys, attendKeys)), widenedFloats)
	case a.Past > 0 || a.Block > 0:
		return n
	}
	return 0
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
	if !t.half && t.steps(&t.Q) {
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
		case t.half:
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

// piece finds a row of keys or values, and says how many of the n rows from it
// on lie in one piece with it.
func (t *attendTile) piece(isKey bool, key, n int) (from *Elements, at int, s *Strides, count int) {
	from, s, at = &t.args.V, &t.V, t.atV
	block := t.BlockV
	if isKey {
		from, s, at, block = &t.args.K, &t.K, t.atK, t.BlockK
	}
	switch {
	case t.Block > 0:
		at += int(t.args.Tables[t.batch*t.Columns+key/t.Block])*block + key%t.Block*s.Row
		n = min(n, t.Block-key%t.Block)
	case key >= t.Past:
		at += (key - t.Past) * s.Row
	default:
		if from, s, at = &t.args.PastV, &t.PastV, t.pastV; isKey {
			from, s, at = &t.args.PastK, &t.PastK, t.pastK
		}
		at += key * s.Row
		n = min(n, t.Past-key)
	}
	return from, at, s, n
}

// fewKeys are rows that one row of Q at a time is multiplied with: as many as a
// first-level cache holds.
const fewKeys = 8 << 10

// keys returns where rows of K lie, from the given key on: count of them, at
// least 1 and at most n. Neighbours are row apart, and the elements of each
// column; one of the two is 1. A panel's width of keys comes at once, unless
// the tile has few rows. The rows are valid until the next call of keys, values
// or addend.
func (t *attendTile) keys(key, n int) (k []float32, row, column, count int) {
	few := t.n <= fewRows
	from, at, s, count := t.piece(true, key, n)
	if few && s.Column == 1 {
		count = min(count, max(1, fewKeys/t.Size))
	}
	if !t.half && (few || count == n) {
		return from.F32[at:], s.Row, s.Column, count
	}
	k, size := t.widened, t.Size
	if few {
		n = min(count, max(1, t.wide/size))
	}
	if s.Column != 1 { // then all keys lie in one piece
		for i := range size {
			elementwise.Widen(t.variant, t.Type, k[i*n:][:n], from.Half, at+i*s.Column, 1)
		}
		return k, 1, n, n
	}
	for i := 0; i < n; i += count {
		from, at, s, count = t.piece(true, key+i, n-i)
		t.bring(k[i*size:], size, from, at, s.Row, count)
	}
	return k, size, 1, n
}

// values returns where columns [column, column+columns) of rows of V lie, from
// the given key on: count rows, at least 1 and at most n, row apart, as far as
// they lie in one piece. The rows are valid until the next call of keys, values
// or addend.
func (t *attendTile) values(key, n, column, columns int) (v []float32, row, count int) {
	from, at, s, count := t.piece(false, key, n)
	if at += column; !t.half {
		return from.F32[at:], s.Row, count
	}
	count = min(count, t.wide/columns)
	t.bring(t.widened, columns, from, at, s.Row, count)
	return t.widened, columns, count
}

// valueColumns are how many columns of V a panel's depth of rows is brought
// together of at a time: a multiple of a panel's width.
const valueColumns = 128

// valueRows is values of at most valueColumns columns of all n rows, at most
// attendDepth.
func (t *attendTile) valueRows(key, n, column, columns int) (v []float32, row int) {
	from, at, s, count := t.piece(false, key, n)
	if !t.half && count == n {
		return from.F32[at+column:], s.Row
	}
	for i := 0; i < n; i += count {
		from, at, s, count = t.piece(false, key+i, n-i)
		t.bring(t.widened[i*columns:], columns, from, at+column, s.Row, count)
	}
	return t.widened, columns
}

// bring writes n rows of the given size, which are step apart, side by side.
func (t *attendTile) bring(dst []float32, size int, from *Elements, at, step, n int) {
	if step == size {
		size, n = n*size, 1
	}
	for i := range n {
		if t.half {
			elementwise.Widen(t.variant, t.Type, dst[i*size:][:size], from.Half, at+i*step, 1)
		} else {
			copy(dst[i*size:][:size], from.F32[at+i*step:])
		}
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

// output writes the scores of the rows, if Scores gets those of this stage.
func (t *attendTile) output(stage int) {
	if !t.HasScores || stage != t.Stage {
		return
	}
	for i := range t.n {
		r := t.row + i
		at := ((t.batch*t.Heads+t.head+r/t.Queries)*t.Queries + r%t.Queries) * t.Keys
		x := t.x[i*t.spread:][:t.Keys]
		if t.half {
			elementwise.Narrow(t.variant, t.Type, t.args.Scores.Half, at, 1, x)
		} else {
			copy(t.args.Scores.F32[at:], x)
		}
	}
}

// finish writes the rows of Y that lie in scratch, divided by the sums of their
// weights.
func (t *attendTile) finish() {
	if t.inPlace() {
		return
	}
	for i := range t.n {
		at, src := t.at(&t.Y, t.atY, i), t.y[i*t.ldy:][:t.ValueSize]
		dst := src
		if !t.half {
			dst = t.args.Y.F32[at:][:t.ValueSize]
		}
		switch {
		case t.isOneBlock():
			copy(dst, src)
		case t.NaNToZero && !(t.sums[i] > 0), t.Ranges != nil && t.sums[i] == 0:
			clear(dst)
		default: // the sum of a row of scores that are all -Inf is 0, and 0 * Inf is NaN
			elementwise.BinaryRowVS(t.variant, kernel.Mul, dst, src, 1/t.sums[i])
		}
		if t.half {
			elementwise.Narrow(t.variant, t.Type, t.args.Y.Half, at, 1, dst)
		}
	}
}
