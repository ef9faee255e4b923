package sequence

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// Attend is softmax(Q * K^T * Scale, masked) * V on matrices of floats, one for
// each head of each batch. Q has Heads heads, K and V have Groups, each for
// Heads/Groups neighbours of Q.
//
// A tile takes some rows of the heads of a group, and goes over the keys in
// blocks: their scores exist for one block at a time. Between blocks the sums
// so far are scaled to the largest score so far. Numbers of 16 bits are widened
// where they are read, and rounded once, in Y: see attend_rows.go. Those of 64
// bits are computed row by row: see attend_wide.go.
//
// Softmax is the function of that name: a row whose scores are all -Inf is NaN,
// and so is one with a NaN or Inf among them. Every key takes part, one with
// the weight 0 too.
type Attend struct {
	Batch           []int // sizes of the axes before the heads
	Heads, Groups   int
	Queries, Keys   int
	Size, ValueSize int // of a row of Q and K, of V and Y

	Type       dtype.DType // of Q, K, V and Y: F32, F16, BF16 or F64
	Q, K, V, Y Strides

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
	wide        int // elements that are widened at a time
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

// AttendArgs are the operands. Addends may be empty, and Mask nil.
type AttendArgs struct {
	Y, Q, K, V Elements
	Addends    [2]Elements
	Mask       []uint8
}

// Elements are numbers of one type: one of the slices has them.
type Elements struct {
	F32  []float32
	Half []uint16 // F16 or BF16
	F64  []float64
}

func (e *Elements) isAbsent() bool { return e.F32 == nil && e.Half == nil && e.F64 == nil }

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
	a.fill = float32(a.Fill)
	if a.factor = float32(a.Scale); a.Softcap != 0 {
		a.factor = float32(a.Scale / a.Softcap)
	}
	if a.wide = 0; a.isHalf() {
		a.wide = a.widened()
	}
}

func (a *Attend) isHalf() bool { return a.Type == dtype.F16 || a.Type == dtype.BF16 }

// inPlace reports whether there is one block of keys, so that rows of Y are
// written once.
func (a *Attend) inPlace() bool { return a.Keys <= a.block && a.steps(&a.Y) && !a.isHalf() }

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
	case a.ValueSize == 0:
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
	n := a.wide + a.panel() + a.most*(kernel.CeilDiv(max(1, min(a.Keys, attendKeys)), a.variant.Gemm.Width)*a.variant.Gemm.Width+a.Size+2*crowdedGap)
	if !a.inPlace() {
		n += a.most * (a.ValueSize + 2)
	}
	return 4 * n
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
	args      AttendArgs
	row, n    int
	head      int // the first of the group
	atQ, atY  int // where the batch begins
	atK, atV  int // and the group
	atAddends [2]int
	atMask    int
	lda, ldy  int

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
	take := func(n int) (x []float32) {
		x, scratch = scratch[:n:n], scratch[n:]
		return x
	}
	t.packed, t.x, t.widened = take(a.panel()), take(a.tile*a.spread), take(a.wide)
	t.gather(take(a.tile * a.gap))
	if a.inPlace() {
		t.y, t.ldy = args.Y.F32[t.at(&a.Y, t.atY, 0):], a.step(&a.Y)
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

// begin finds where the operands of a group of a batch begin.
func (t *attendTile) begin(groups int) {
	a, group, batch := t.Attend, groups%t.Groups, groups/t.Groups
	t.head = group * (a.Heads / a.Groups)
	t.atQ, t.atY = kernel.BatchOffsets(batch, a.Batch, a.Q.Batch, a.Y.Batch)
	t.atK, t.atV = kernel.BatchOffsets(batch, a.Batch, a.K.Batch, a.V.Batch)
	t.atK, t.atV = t.atK+group*a.K.Head, t.atV+group*a.V.Head
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
