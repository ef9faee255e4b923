package sequence

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// Attend is softmax(Q * K^T * Scale, masked) * V on float32 matrices, one for
// each head of each batch. Q has Heads heads, K and V have Groups, each for
// Heads/Groups neighbours of Q.
//
// A tile takes some rows of the heads of a group, and goes over the keys in
// blocks: their scores exist for one block at a time. Between blocks the sums
// so far are scaled to the largest score so far.
//
// Softmax is the function of that name: a row whose scores are all -Inf is NaN,
// and so is one with a NaN or Inf among them. Every key takes part, one with
// the weight 0 too.
type Attend struct {
	Batch           []int // sizes of the axes before the heads
	Heads, Groups   int
	Queries, Keys   int
	Size, ValueSize int // of a row of Q and K, of V and Y

	Q, K, V, Y Strides
	Bias, Mask Strides // along [Batch, Heads, Queries, Keys]

	Scale     float32
	Fill      float32 // the score of a hidden key
	BiasFirst bool    // Bias is added before Mask hides keys
	MaskHides bool    // Mask is true for hidden keys, and not for the others
	NaNToZero bool    // the weights of a row are zeros where they would be NaN

	// Of Prepare.
	variant     *kernel.Variant
	batch       int
	rows        int // of a group
	tile, most  int // rows, and most of all tiles with sizes up to these
	tiles       int // of a group
	parts       int // tiles in one of the worker pool
	block       int // keys
	gap, spread int // distances of rows of Q in scratch, and of scores
}

// Strides are the distances of an operand's elements, 0 along axes where it is
// broadcast. Neighbours along Row are rows. Q, V and Y have Column 1, K has 1
// for Column or Row, and a mask 0 or 1 for Column, which is its axis of keys.
type Strides struct {
	Batch             []int
	Head, Row, Column int
}

// AttendArgs are the operands. Bias and Mask may be nil.
type AttendArgs struct {
	Y, Q, K, V, Bias []float32
	Mask             []uint8
}

const (
	attendRows  = 64
	attendKeys  = 1024
	attendDepth = gemm.BlockDepth
	fewRows     = 4 // these read K and V where they lie
	attendFlops = 1 << 20
)

// Prepare works out the tiles.
func (a *Attend) Prepare(v *kernel.Variant) {
	a.variant, a.batch = v, kernel.Product(a.Batch)
	a.rows = a.Heads / max(1, a.Groups) * a.Queries
	a.tile, a.most = attendRows, min(a.rows, attendRows)
	row := max(1, 2*a.Keys*(a.Size+a.ValueSize)) // operations
	for a.tile > fewRows && a.batch*a.Groups*kernel.CeilDiv(a.rows, a.tile) < kernel.WantedTiles && min(a.tile, a.rows)*row > attendFlops {
		a.tile /= 2 // each tile packs all keys and values again
	}
	a.tile = kernel.EvenTile(a.rows, a.tile, 1)
	a.tiles = kernel.CeilDiv(a.rows, a.tile)
	a.parts = max(1, attendFlops/(a.tile*row))
	a.block = kernel.EvenTile(a.Keys, attendKeys, v.Gemm.Width)
	a.gap, a.spread = uncrowded(a.Size), uncrowded(a.block)
}

// inPlace reports whether there is one block of keys, so that rows of Y are
// written once.
func (a *Attend) inPlace() bool { return a.Keys <= a.block && a.steps(&a.Y) }

// steps reports whether all rows of a group have one distance.
func (a *Attend) steps(s *Strides) bool {
	return a.Heads == a.Groups || a.Queries == 1 || s.Head == a.Queries*s.Row
}

// step is the distance of rows.
func (a *Attend) step(s *Strides) int {
	if a.Queries == 1 {
		return s.Head
	}
	return s.Row
}

const crowdedGap = 16

// uncrowded returns a distance for rows of n elements that do not meet in one
// set of the first-level cache.
func uncrowded(n int) int {
	if n%512 == 0 {
		return n + crowdedGap
	}
	return n
}

// Tiles returns the number of tiles.
func (a *Attend) Tiles() int {
	if a.ValueSize == 0 {
		return 0
	}
	return kernel.CeilDiv(a.batch*a.Groups*a.tiles, a.parts)
}

// ScratchFloats returns the size of a worker's scratch. It is no smaller than
// that of smaller sizes, as long as Heads and Groups stay.
func (a *Attend) ScratchFloats() int {
	n := a.panel() + a.most*(kernel.CeilDiv(max(1, min(a.Keys, attendKeys)), a.variant.Gemm.Width)*a.variant.Gemm.Width+a.Size+2*crowdedGap)
	if !a.inPlace() {
		n += a.most * (a.ValueSize + 2)
	}
	return n
}

// panel returns the size of a panel of K or V.
func (a *Attend) panel() int {
	if a.most <= fewRows {
		return 0
	}
	return a.variant.Gemm.Width * max(a.Size, min(a.Keys, attendDepth))
}

// attendTile is a tile under way: rows [row, row+n) of a group.
type attendTile struct {
	*Attend
	args           AttendArgs
	row, n         int
	head           int // the first of the group
	atQ, atY       int // where the batch begins
	atK, atV       int // and the group
	atBias, atMask int
	lda, ldy       int

	q, rows, x, y, peaks, sums []float32
}

// Tile computes one tile.
func (a *Attend) Tile(t int, scratch []float32, args *AttendArgs) {
	for p := t * a.parts; p < min((t+1)*a.parts, a.batch*a.Groups*a.tiles); p++ {
		a.part(p, scratch, args)
	}
}

func (a *Attend) part(p int, scratch []float32, args *AttendArgs) {
	group := p / a.tiles % a.Groups
	batch := p / a.tiles / a.Groups
	t := attendTile{Attend: a, args: *args, row: p % a.tiles * a.tile, head: group * (a.Heads / a.Groups)}
	t.n = min(a.tile, a.rows-t.row)
	t.atQ, t.atY = kernel.BatchOffsets(batch, a.Batch, a.Q.Batch, a.Y.Batch)
	t.atK, t.atV = kernel.BatchOffsets(batch, a.Batch, a.K.Batch, a.V.Batch)
	t.atK, t.atV = t.atK+group*a.K.Head, t.atV+group*a.V.Head
	if args.Bias != nil {
		t.atBias, _ = kernel.BatchOffsets(batch, a.Batch, a.Bias.Batch, a.Bias.Batch)
	}
	if args.Mask != nil {
		t.atMask, _ = kernel.BatchOffsets(batch, a.Batch, a.Mask.Batch, a.Mask.Batch)
	}
	take := func(n int) (x []float32) {
		x, scratch = scratch[:n:n], scratch[n:]
		return x
	}
	t.rows, t.x = take(a.panel()), take(a.tile*a.spread)
	t.gather(take(a.tile * a.gap))
	if a.inPlace() {
		t.y, t.ldy = args.Y[t.at(&a.Y, t.atY, 0):], a.step(&a.Y)
	} else {
		t.y, t.ldy, t.peaks, t.sums = take(a.tile*a.ValueSize), a.ValueSize, take(a.tile), take(a.tile)
	}
	for key := 0; key < a.Keys; key += a.block {
		n := min(a.block, a.Keys-key)
		t.multiply(key, n)
		t.mask(key, n)
		if a.Keys <= a.block {
			for i := range t.n {
				x := t.x[i*t.spread:][:n]
				if reduce.RowSoftmax(t.variant, x, x, false); t.NaNToZero && x[0] != x[0] {
					clear(x)
				}
			}
		} else {
			t.weigh(key, n)
		}
		t.addUp(key, n)
	}
	t.finish()
}

// at returns where row i of the tile begins in an operand.
func (t *attendTile) at(s *Strides, base, i int) int {
	r := t.row + i
	return base + (t.head+r/t.Queries)*s.Head + r%t.Queries*s.Row
}

// gather finds the rows of Q, or copies them, times Scale.
func (t *attendTile) gather(scratch []float32) {
	if t.q, t.lda = scratch, t.gap; t.Size == 0 {
		return
	}
	if t.steps(&t.Q) {
		rows, step := t.args.Q[t.at(&t.Q, t.atQ, 0):], t.step(&t.Q)
		switch {
		case t.Scale == 1 && step == uncrowded(step):
			t.q, t.lda = rows, step
			return
		case step == t.Size && step == t.gap:
			elementwise.BinaryRowVS(t.variant, kernel.Mul, t.q[:t.n*step], rows[:t.n*step], t.Scale)
			return
		}
	}
	for i := range t.n {
		dst, src := t.q[i*t.gap:][:t.Size], t.args.Q[t.at(&t.Q, t.atQ, i):][:t.Size]
		if t.Scale == 1 {
			copy(dst, src)
		} else {
			elementwise.BinaryRowVS(t.variant, kernel.Mul, dst, src, t.Scale)
		}
	}
}

// multiply sets the scores of n keys, with Bias where that comes first and its
// rows have one distance.
func (t *attendTile) multiply(key, n int) {
	if t.Size == 0 {
		clear(t.x)
		return
	}
	k, v := t.args.K[t.atK+key*t.K.Row:], t.variant
	switch {
	case t.n <= fewRows:
		for i := range t.n {
			x, q := t.x[i*t.spread:][:n], t.q[i*t.lda:][:t.Size]
			clear(x)
			if t.K.Column == 1 {
				gemm.GemvDot(v, x, q, k, t.K.Row)
			} else {
				gemm.GemvAxpy(v, x, q, k, t.K.Column)
			}
		}
	default:
		var bias []float32
		ldb := 0
		if t.biasIsAddend() {
			bias, ldb = t.args.Bias[t.at(&t.Bias, t.atBias, 0)+key:], t.step(&t.Bias)
		}
		for j := 0; j < n; j += v.Gemm.Width {
			nr := min(v.Gemm.Width, n-j)
			from := bias
			if from != nil {
				from = from[j:]
			}
			if t.K.Column == 1 {
				gemm.PackTransposed(v, t.rows, k[j*t.K.Row:], t.K.Row, t.Size, nr)
				gemm.MultiplyPanel(v, t.n, t.Size, t.q, t.lda, t.rows, nr, t.x[j:], t.spread, from, ldb)
			} else {
				gemm.MultiplyRows(v, t.n, t.Size, t.q, t.lda, k[j:], t.K.Column, t.rows, nr, t.x[j:], t.spread, from, ldb)
			}
		}
	}
}

// biasIsAddend reports whether the product takes Bias as its addend.
func (t *attendTile) biasIsAddend() bool {
	return t.args.Bias != nil && t.n > fewRows && t.Size > 0 && t.Bias.Column == 1 && t.steps(&t.Bias) && (t.BiasFirst || t.args.Mask == nil)
}

// mask adds Bias to the scores, and sets those that Mask hides.
func (t *attendTile) mask(key, n int) {
	if t.BiasFirst {
		t.addBias(key, n)
		t.hide(key, n)
		return
	}
	t.hide(key, n)
	t.addBias(key, n)
}

func (t *attendTile) addBias(key, n int) {
	if t.args.Bias == nil || t.biasIsAddend() {
		return
	}
	for i := range t.n {
		x, bias := t.x[i*t.spread:][:n], t.args.Bias[t.at(&t.Bias, t.atBias, i)+key*t.Bias.Column:]
		if t.Bias.Column == 0 {
			elementwise.BinaryRowVS(t.variant, kernel.Add, x, x, bias[0])
		} else {
			elementwise.BinaryRowVV(t.variant, kernel.Add, x, x, bias[:n])
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
			elementwise.Choose(t.variant, x, mask[:n], &t.Fill, t.MaskHides)
		} else if (mask[0] != 0) == t.MaskHides {
			kernel.Repeat(x, t.Fill)
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
	values, size, v := t.args.V[t.atV+key*t.V.Row:], t.ValueSize, t.variant
	switch {
	case t.n <= fewRows:
		for i := range t.n {
			y := t.y[i*t.ldy:][:size]
			if key == 0 {
				clear(y)
			}
			for j := 0; j < size; j += attendKeys {
				gemm.GemvAxpy(v, y[j:min(j+attendKeys, size)], t.x[i*t.spread:][:n], values[j:], t.V.Row)
			}
		}
	default:
		for k := 0; k < n; k += attendDepth {
			depth := min(attendDepth, n-k)
			for j := 0; j < size; j += v.Gemm.Width {
				var from []float32
				if key+k > 0 {
					from = t.y[j:]
				}
				nr := min(v.Gemm.Width, size-j)
				gemm.MultiplyRows(v, t.n, depth, t.x[k:], t.spread, values[k*t.V.Row+j:], t.V.Row, t.rows, nr, t.y[j:], t.ldy, from, t.ldy)
			}
		}
	}
}

// finish writes the rows of Y that lie in scratch, divided by the sums of their
// weights.
func (t *attendTile) finish() {
	if t.inPlace() && t.Keys > 0 {
		return
	}
	for i := range t.n {
		dst, src := t.args.Y[t.at(&t.Y, t.atY, i):][:t.ValueSize], t.y[i*t.ldy:][:t.ValueSize]
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
	}
}
