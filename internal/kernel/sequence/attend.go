package sequence

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// Attend is softmax(Q * K^T * Scale, masked) * V on matrices of floats, one for
// each head of each batch. Q has Heads heads, K and V have Groups, each for
// Heads/Groups neighbours of Q.
//
// A tile takes some rows of the heads of a group, and goes over the keys in
// blocks: their scores exist for one block at a time. Between blocks the sums
// so far are scaled to the largest score so far (online softmax: Milakov and
// Gimelshein, 2018; Dao and others, FlashAttention, 2022). Numbers of 16 bits
// are widened where they are read, and rounded once, in Y: see attend_rows.go.
// Those of 64 bits are computed row by row: see attend_wide.go.
//
// Softmax is the function of that name: a row whose scores are all -Inf is NaN,
// and so is one with a NaN or Inf among them. Every key takes part, one with
// the weight 0 too. Where queries see Ranges of keys, the others take no part,
// and a row without a key is zeros: see attend_ranges.go. Such a call has a
// promise: the result of a sample does not depend, in any bit, on how its keys
// lie, how much room is behind them, and which other samples share the call. So
// neither Batch nor Keys decides which rows a tile has, and blocks of keys are
// counted from the first one that a tile sees.
type Attend struct {
	Batch           []int // sizes of the axes before the heads
	Heads, Groups   int
	Queries, Keys   int
	Size, ValueSize int // of a row of Q and K, of V and Y

	Type       dtype.DType // of Q, K, V and Y: F32, F16, BF16 or F64
	Q, K, V, Y Strides

	// The first Past keys lie in operands of their own, and the others follow.
	Past         int
	PastK, PastV Strides

	// Keys in blocks of Block rows, if that is not 0: a sample has Columns of
	// them, whose numbers are in its row of Tables. BlockK and BlockV are the
	// distances of blocks, and Keys is Block * Columns.
	Block, Columns int
	BlockK, BlockV int

	// What happens to the scores, in this order. Strides are those along
	// [Batch, Heads, Queries, Keys].
	Scale     float64
	Softcap   float64   // if not 0, a score x becomes Softcap * tanh(x/Softcap)
	Addends   [2]Addend // added one after the other
	Mask      Strides   // hides keys
	MaskAfter int       // how many of Addends come before Mask
	Fill      float64   // the score of a hidden key
	MaskHides bool      // Mask is true for hidden keys, and not for the others
	NaNToZero bool      // the weights of a row are zeros where they would be NaN

	Ranges *Ranges // nil: each query sees all keys

	HasScores bool // Scores is there
	Stage     int  // what it gets: 0 the scaled products, 1 after Softcap, 2 after the masks, 3 after softmax

	// Of Prepare.
	variant     *kernel.Variant
	batch       int
	rows        int     // of a group
	tile, most  int     // rows, and most of all tiles with sizes up to these
	tiles       int     // of a group
	parts       int     // tiles in one of the worker pool
	block       int     // keys
	gap, spread int     // distances of rows of Q in scratch, and of scores
	factor      float32 // of Q
	fill        float32
	half        bool // numbers of 16 bits
	wide        int  // elements that are widened, or brought together, at a time
}

// Addend is an operand that is added to the scores.
type Addend struct {
	Strides
	Type dtype.DType // that of Attend, or F32
}

// Strides are the distances of an operand's elements, 0 along axes where it is
// broadcast. Neighbours along Row are rows. Q, V and Y have Column 1, K has 1
// for Column or Row, and a mask 0 or 1 for Column, which is its axis of keys.
type Strides struct {
	Batch             []int
	Head, Row, Column int
}

// AttendArgs are the operands, and Scores [Batch, Heads, Queries, Keys]. Past
// keys, Addends, Mask, Scores, and Lengths and Tables, which have a row per
// sample, may be absent.
type AttendArgs struct {
	Y, Q, K, V, PastK, PastV Elements
	Scores                   Elements
	Addends                  [2]Elements
	Mask                     []uint8
	Lengths, Tables          []int64
}

// Elements are numbers of one type: one of the slices has them.
type Elements struct {
	F32  []float32
	Half []uint16 // F16 or BF16
	F64  []float64
}

func (e *Elements) isAbsent() bool { return e.F32 == nil && e.Half == nil && e.F64 == nil }

const (
	attendRows   = 64
	attendKeys   = 1024
	attendDepth  = gemm.BlockDepth
	attendScores = 256 << 10 // in scratch at most, where whole rows are in it and more than one
	fewRows      = 4         // these read K and V where they lie
	attendFlops  = 1 << 20
)

// Prepare works out the tiles.
func (a *Attend) Prepare(v *kernel.Variant) {
	a.variant, a.batch = v, kernel.Product(a.Batch)
	a.rows = a.Heads / max(1, a.Groups) * a.Queries
	a.half = a.Type == dtype.F16 || a.Type == dtype.BF16
	if a.block = a.columns(min(a.Keys, attendKeys)); a.HasScores {
		a.block = a.columns(a.Keys)
	}
	a.gap, a.spread = uncrowded(a.Size), uncrowded(a.block)
	a.tile, a.most = attendRows, min(a.rows, attendRows)
	if a.HasScores {
		a.tile = max(1, min(a.tile, attendScores/a.spread))
	}
	row := max(1, 2*a.Keys*(a.Size+a.ValueSize)) // operations
	groups, cost := a.batch*a.Groups, row
	if a.Ranges != nil { // as if it was one sample
		groups, cost = a.Groups, 2*attendKeys*(a.Size+a.ValueSize)
	}
	for a.tile > 2*fewRows && groups*kernel.CeilDiv(a.rows, a.tile) < kernel.WantedTiles && min(a.tile, a.rows)*cost > attendFlops {
		a.tile /= 2 // each tile packs all keys and values again; two tiles of few rows take longer than one of twice as many
	}
	a.tile = kernel.EvenTile(a.rows, a.tile, 1)
	a.tiles = kernel.CeilDiv(a.rows, a.tile)
	a.parts = max(1, attendFlops/(a.tile*row))
	a.fill = float32(a.Fill)
	if a.factor = float32(a.Scale); a.Softcap != 0 && !a.HasScores {
		a.factor = float32(a.Scale / a.Softcap)
	}
	a.wide = a.widened()
}

// inPlace reports whether there is one block of keys, so that rows of Y are
// written once.
func (a *Attend) inPlace() bool { return a.Keys <= a.block && a.steps(&a.Y) && !a.half }

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
	switch {
	case a.ValueSize == 0 && !a.HasScores:
		return 0
	case a.Type == dtype.F64:
		return kernel.CeilDiv(a.batch*a.Groups*a.rows, a.rowsOfTile())
	}
	return kernel.CeilDiv(a.batch*a.Groups*a.tiles, a.parts)
}

// ScratchBytes returns the size of a worker's scratch. It is no smaller than
// that of smaller sizes, as long as Heads and Groups stay.
func (a *Attend) ScratchBytes() int {
	if a.Type == dtype.F64 {
		return 8 * a.Keys
	}
	keys := a.columns(min(a.Keys, attendKeys)) + crowdedGap
	scores := a.most * keys
	if a.HasScores {
		keys = a.columns(a.Keys) + crowdedGap
		scores = min(a.most*keys, max(keys, attendScores))
	}
	n := a.wide + a.panel() + scores + a.most*(a.Size+crowdedGap)
	if !a.inPlace() {
		n += a.most * (a.ValueSize + 2)
	}
	return 4 * n
}

// columns is n in whole panels, at least one.
func (a *Attend) columns(n int) int { return kernel.EvenTile(n, max(1, n), a.variant.Gemm.Width) }

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
	args         AttendArgs
	row, n       int
	batch        int
	head         int // the first of the group
	atQ, atY     int // where the batch begins
	atK, atV     int // and the group
	pastK, pastV int
	atAddends    [2]int
	atMask       int
	lda, ldy     int

	// Row i sees keys [from[i], to[i]), and some row sees those of [lo, hi). A
	// tile is ragged if not all rows see all of them.
	from, to [attendRows]int32
	lo, hi   int
	ragged   bool

	q, packed, x, y, peaks, sums, widened []float32
}

// Tile computes one tile.
func (a *Attend) Tile(t int, scratch []byte, args *AttendArgs) {
	if a.Type == dtype.F64 {
		a.wideTile(t, kernel.View[float64](scratch[:a.ScratchBytes()]), args)
		return
	}
	floats := kernel.View[float32](scratch[:a.ScratchBytes()])
	for p := t * a.parts; p < min((t+1)*a.parts, a.batch*a.Groups*a.tiles); p++ {
		a.part(p, floats, args)
	}
}

func (a *Attend) part(p int, scratch []float32, args *AttendArgs) {
	t := attendTile{Attend: a, args: *args, row: p % a.tiles * a.tile}
	t.n = min(a.tile, a.rows-t.row)
	t.begin(p / a.tiles)
	t.findRanges()
	take := func(n int) (x []float32) {
		x, scratch = scratch[:n:n], scratch[n:]
		return x
	}
	t.packed, t.x, t.widened = take(a.panel()), take(a.tile*a.spread), take(a.wide)
	t.gather(take(a.tile * a.gap))
	if a.inPlace() && a.ValueSize > 0 {
		t.y, t.ldy = args.Y.F32[t.at(&a.Y, t.atY, 0):], a.step(&a.Y)
	} else if !a.inPlace() {
		t.y, t.ldy, t.peaks, t.sums = take(a.tile*a.ValueSize), a.ValueSize, take(a.tile), take(a.tile)
	}
	if t.ragged || t.lo == t.hi || t.n <= fewRows {
		for i := range t.n {
			clear(t.y[i*t.ldy:][:t.ValueSize])
		}
	}
	lo, hi := t.lo, t.hi
	if t.HasScores {
		lo, hi = 0, t.Keys
	}
	for next := lo; next < hi; next += a.block {
		key := next
		n := min(a.block, hi-key)
		t.multiply(key, n)
		t.mask(key, n)
		if t.isOneBlock() {
			t.normalize(key, n)
		} else {
			t.weigh(key, n)
		}
		if t.HasScores {
			t.x, key, n = t.x[t.lo:], t.lo, t.hi-t.lo
		}
		t.addUp(key, n)
	}
	t.finish()
}

// isOneBlock reports whether all keys that are seen fit into one block.
func (t *attendTile) isOneBlock() bool { return t.HasScores || t.hi-t.lo <= t.block }

// begin finds where the operands of a group of a batch begin.
func (t *attendTile) begin(groups int) {
	a, group, batch := t.Attend, groups%t.Groups, groups/t.Groups
	t.head, t.batch = group*(a.Heads/a.Groups), batch
	t.atQ, t.atY = kernel.BatchOffsets(batch, a.Batch, a.Q.Batch, a.Y.Batch)
	t.atK, t.atV = kernel.BatchOffsets(batch, a.Batch, a.K.Batch, a.V.Batch)
	t.atK, t.atV = t.atK+group*a.K.Head, t.atV+group*a.V.Head
	if a.Past > 0 {
		t.pastK, t.pastV = kernel.BatchOffsets(batch, a.Batch, a.PastK.Batch, a.PastV.Batch)
		t.pastK, t.pastV = t.pastK+group*a.PastK.Head, t.pastV+group*a.PastV.Head
	}
	for i := range a.Addends {
		if !t.args.Addends[i].isAbsent() {
			s := &a.Addends[i]
			t.atAddends[i], _ = kernel.BatchOffsets(batch, a.Batch, s.Batch, s.Batch)
		}
	}
	if t.args.Mask != nil {
		t.atMask, _ = kernel.BatchOffsets(batch, a.Batch, a.Mask.Batch, a.Mask.Batch)
	}
}
