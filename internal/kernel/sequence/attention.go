package sequence

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// Rows says where the rows of all heads of an operand or a result lie: the
// elements from one sample, head or row to the next. Those of a row follow each
// other.
type Rows struct{ Sample, Head, Row int }

// At is where a row begins.
func (r *Rows) At(sample, head, row int) int { return sample*r.Sample + head*r.Head + row*r.Row }

// RowsOf are those of [batch, heads, length, size], or of [batch, length, heads
// * size] if packed, without gaps.
func RowsOf(heads, length, size int, packed bool) Rows {
	if packed {
		return Rows{Sample: heads * length * size, Head: size, Row: heads * size}
	}
	return Rows{Sample: heads * length * size, Head: length * size, Row: size}
}

// Attention is softmax(Q * K^T * Scale + mask) * V for each head. Q has Heads
// heads, K and V have Groups, each for Heads/Groups of Q. They are [Batch,
// heads, length, size], or [Batch, length, heads * size] if Packed; past keys
// and values are never packed.
type Attention struct {
	Batch, Heads, Groups int
	Queries, Past, Keys  int
	Size, ValueSize      int
	Packed               bool
	Scale, Softcap       float64
	Causal               bool
	Left, Right          int // how far a query sees; -1 for no limit
	Output               int // what Scores gets: 0 the products, 1 after Softcap, 2 after the mask, 3 after softmax

	PlaceQ, PlaceK, PlaceV, PlacePastK, PlacePastV, PlaceY Rows // where they lie: see Lay

	// Of keys and values in blocks, of which Tables says where each is: the
	// rows of one, and how many a sample has at most. Keys is Block * Columns
	// then, Sample in PlaceK and PlaceV the distance of blocks, and Past 0.
	Block, Columns int

	Mask     [3]int // strides of the mask along batch, heads and queries
	MaskKeys int    // keys that the mask has; the others are masked
}

// AttentionArgs are the operands. Of the two masks at most one is there;
// Lengths, the keys per sample, may be absent, and so may Scores.
type AttentionArgs[T kernel.Float] struct {
	Y, Q, K, V, PastK, PastV, Bias, Scores []T
	Allow                                  []uint8
	Lengths                                []int64
	Tables                                 []int64 // [Batch, Columns] of Attention, nil for keys that are in no blocks
}

// Lay sets the places of operands and results without gaps.
func (a *Attention) Lay() {
	a.PlaceQ, a.PlaceY = RowsOf(a.Heads, a.Queries, a.Size, a.Packed), RowsOf(a.Heads, a.Queries, a.ValueSize, a.Packed)
	a.PlaceK, a.PlaceV = RowsOf(a.Groups, a.Keys, a.Size, a.Packed), RowsOf(a.Groups, a.Keys, a.ValueSize, a.Packed)
	a.PlacePastK, a.PlacePastV = RowsOf(a.Groups, a.Past, a.Size, false), RowsOf(a.Groups, a.Past, a.ValueSize, false)
}

func (a *Attention) total() int { return a.Past + a.Keys }

func (a *Attention) perTile() int {
	return max(1, kernel.PlainFlops/max(1, 2*a.total()*(a.Size+a.ValueSize)))
}

// Tiles returns the number of tiles: each is some queries of a head.
func (a *Attention) Tiles() int { return kernel.CeilDiv(a.Batch*a.Heads*a.Queries, a.perTile()) }

// ScratchElements returns the size of a worker's scratch, in elements.
func (a *Attention) ScratchElements() int { return a.total() }

// seen returns the range of keys that a query may see, if the mask allows them.
func (a *Attention) seen(lengths []int64, batch, query int) (lo, hi int) {
	length, place := a.total(), query+a.Past
	if lengths != nil {
		length = int(lengths[batch])
		place = query + length - a.Queries
	}
	lo, hi = 0, length
	if a.Causal {
		hi = min(hi, place+1)
	}
	if a.Right >= 0 {
		hi = min(hi, place+a.Right+1)
	}
	if a.Left >= 0 {
		lo = max(lo, place-a.Left)
	}
	hi = max(hi, 0)
	return min(lo, hi), hi
}

// AttentionTile computes one tile. The keys that are hidden from a query are
// not read, unless Scores gets their products.
func AttentionTile[T kernel.Float](v *kernel.Variant, a *Attention, tile int, g *AttentionArgs[T], scratch []T) {
	for r := tile * a.perTile(); r < min((tile+1)*a.perTile(), a.Batch*a.Heads*a.Queries); r++ {
		query, head, batch := r%a.Queries, r/a.Queries%a.Heads, r/a.Queries/a.Heads
		group := head / (a.Heads / a.Groups)
		lo, hi := a.seen(g.Lengths, batch, query)
		from, to := lo, hi
		if g.Scores != nil {
			from, to = 0, a.total()
		}
		split := min(max(a.Past, from), to) // past keys are before it
		scores := scratch[:to-from]
		past, rest := scores[:split-from], scores[split-from:]
		q := g.Q[a.PlaceQ.At(batch, head, query):][:a.Size]
		clear(scores)
		dots(v, past, q, g.PastK, a.PlacePastK.At(batch, group, from), a.PlacePastK.Row)
		for i := 0; i < len(rest); {
			at, n := a.keys(g.Tables, &a.PlaceK, batch, group, split-a.Past+i, len(rest)-i)
			dots(v, rest[i:i+n], q, g.K, at, a.PlaceK.Row)
			i += n
		}
		output := func(stage int) {
			if g.Scores != nil && a.Output == stage {
				copy(g.Scores[r*len(scores):], scores)
			}
		}
		for i := range scores {
			scores[i] *= T(a.Scale)
		}
		output(0)
		if a.Softcap > 0 {
			for i, s := range scores {
				scores[i] = T(math.Tanh(float64(s)/a.Softcap) * a.Softcap)
			}
		}
		output(1)
		open := attentionMask(a, g, scores, from, lo, hi, batch*a.Mask[0]+head*a.Mask[1]+query*a.Mask[2])
		output(2)
		if open {
			softmaxKeys(v, scores)
		} else {
			clear(scores)
		}
		output(3)
		y := g.Y[a.PlaceY.At(batch, head, query):][:a.ValueSize]
		clear(y)
		weighted(v, y, past, g.PastV, a.PlacePastV.At(batch, group, from), a.PlacePastV.Row)
		for i := 0; i < len(rest); {
			at, n := a.keys(g.Tables, &a.PlaceV, batch, group, split-a.Past+i, len(rest)-i)
			weighted(v, y, rest[i:i+n], g.V, at, a.PlaceV.Row)
			i += n
		}
	}
}

// keys returns where row key of K or V begins, and how many of the n rows from
// it on lie at even distances: those of its block.
func (a *Attention) keys(tables []int64, place *Rows, batch, group, key, n int) (at, rows int) {
	if tables == nil {
		return place.At(batch, group, key), n
	}
	block := int(tables[batch*a.Columns+key/a.Block])
	return place.At(block, group, key%a.Block), min(n, a.Block-key%a.Block)
}

// attentionMask adds what masks the scores of keys from on, of which [lo, hi)
// are seen, and tells whether a key is left. The row of the mask is where it
// starts.
func attentionMask[T kernel.Float](a *Attention, g *AttentionArgs[T], scores []T, from, lo, hi, row int) (open bool) {
	masked := T(math.Inf(-1))
	for i := range scores {
		key, bias := from+i, T(0)
		switch {
		case key < lo || key >= hi:
			bias = masked
		case g.Bias == nil && g.Allow == nil:
		case key >= a.MaskKeys:
			bias = masked
		case g.Bias != nil:
			bias = g.Bias[row+key]
		case g.Allow[row+key] == 0:
			bias = masked
		}
		scores[i] += bias
		open = open || bias != masked
	}
	return open
}

// softmaxKeys is softmax, with zeros for a row without a key.
func softmaxKeys[T kernel.Float](v *kernel.Variant, scores []T) {
	peak := T(math.Inf(-1))
	for _, s := range scores {
		peak = max(peak, s)
	}
	if math.IsInf(float64(peak), -1) {
		clear(scores)
		return
	}
	if x, ok := any(scores).([]float32); ok {
		reduce.RowSoftmax(v, x, x, false)
		return
	}
	reduce.SoftmaxOf(scores, scores, false)
}

// dots adds to dst the products of q with the rows of k from at on, ld apart.
func dots[T kernel.Float](v *kernel.Variant, dst, q, k []T, at, ld int) {
	if len(dst) == 0 || len(q) == 0 {
		return
	}
	if d, ok := any(dst).([]float32); ok {
		gemm.GemvDot(v, d, any(q).([]float32), any(k).([]float32)[at:], ld)
		return
	}
	for i := range dst {
		for j, x := range k[at+i*ld:][:len(q)] {
			dst[i] += q[j] * x
		}
	}
}

// weighted adds to dst the rows of values from at on, ld apart, times their
// weights.
func weighted[T kernel.Float](v *kernel.Variant, dst, weights, values []T, at, ld int) {
	if len(weights) == 0 || len(dst) == 0 {
		return
	}
	if d, ok := any(dst).([]float32); ok {
		gemm.GemvAxpy(v, d, any(weights).([]float32), any(values).([]float32)[at:], ld)
		return
	}
	for i, w := range weights {
		for j, x := range values[at+i*ld:][:len(dst)] {
			dst[j] += w * x
		}
	}
}

// Rotary turns pairs of numbers of heads: the first Half of a head with the
// Half after it, or neighbours if Interleaved. The rest of a head stays. The
// output may be the operand.
type Rotary struct {
	Batch, Length, Heads, Size, Half int
	Packed, Interleaved              bool

	PlaceX, PlaceY Rows // where the operand and the result lie: see Lay
}

// Lay sets the places of an operand and a result without gaps.
func (r *Rotary) Lay() {
	r.PlaceX = RowsOf(r.Heads, r.Length, r.Size, r.Packed)
	r.PlaceY = r.PlaceX
}

// Rows is how many heads there are at all positions.
func (r *Rotary) Rows() int { return r.Batch * r.Length * r.Heads }

// RotaryRows turns rows [lo, hi). The angles are one row of Half per sample and
// position, or the rows that the positions name.
func RotaryRows[T kernel.Float](r *Rotary, lo, hi int, dst, src, cos, sin []T, positions []int64) {
	for row := lo; row < hi; row++ {
		var sample, head, at int
		if r.Packed {
			sample, at, head = row/r.Heads/r.Length, row/r.Heads%r.Length, row%r.Heads
		} else {
			sample, head, at = row/r.Length/r.Heads, row/r.Length%r.Heads, row%r.Length
		}
		place := sample*r.Length + at
		if positions != nil {
			place = int(positions[place])
		}
		c, s := cos[place*r.Half:][:r.Half], sin[place*r.Half:][:r.Half]
		d, x := dst[r.PlaceY.At(sample, head, at):][:r.Size], src[r.PlaceX.At(sample, head, at):][:r.Size]
		first, step := r.Half, 1
		if r.Interleaved {
			first, step = 1, 2
		}
		for i := range r.Half {
			a, b := x[i*step], x[i*step+first]
			d[i*step], d[i*step+first] = c[i]*a-s[i]*b, s[i]*a+c[i]*b
		}
		copy(d[2*r.Half:], x[2*r.Half:])
	}
}
