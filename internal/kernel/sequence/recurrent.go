package sequence

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// CellKind is a recurrent cell; its number of gates is that of its weight
// matrices.
type CellKind uint8

const (
	RNNCell  CellKind = iota // h = f(a)
	GRUCell                  // gates z, r, h
	LSTMCell                 // gates i, o, f, c
)

func (k CellKind) gates() int { return [...]int{1, 3, 4}[k] }

// CellFunc is a function of a cell with its parameters. If Scaled it is
// A*Op(B*x).
type CellFunc struct {
	Op     kernel.UnaryOp
	A, B   float64
	Scaled bool
}

// Recurrent runs a cell over sequences: x [Steps, Batch, Input], or [Batch,
// Steps, Input] if BatchFirst; weights per direction.
//
// A tile is some samples in one direction. It multiplies the inputs of some
// steps at once, then the states step by step, with panels of the weights that
// stay in the cache. How an element is summed depends on the sizes alone.
type Recurrent struct {
	Kind                              CellKind
	Steps, Batch, Input, Hidden, Dirs int
	Reverse                           bool // the first direction starts at the end; the second always does
	BatchFirst                        bool
	Clip                              float64 // of what functions are given; 0: none
	InputForget, LinearBeforeReset    bool
	Funcs                             []CellFunc // per direction: f, g, h as far as the cell has them
	Wide                              bool       // numbers are float64, which have no panels
	Packed                            bool       // W and R are what PackW and PackR wrote

	// How rows lie; those that are zero are set by Prepare.
	X, Y, H0, C0, H, C RowSteps

	samples, groups int // of a tile, and tiles of a direction
	steps           int // whose inputs are multiplied at once
	w, r            [2]matrix
	size            cellSizes
}

// RowSteps says how the rows of an operand or a result lie: the elements from
// one of them to that of the next step, direction and sample.
type RowSteps struct{ Step, Dir, Sample int }

func (s *RowSteps) at(step, dir, sample int) int { return step*s.Step + dir*s.Dir + sample*s.Sample }

// cellSizes are the parts of a worker's scratch, in elements.
type cellSizes struct{ x, gates, state, bias, w, r int }

const (
	inputRows   = 64      // of a product of inputs
	mostSamples = 8       // of a tile
	fewSamples  = 4       // of one where there would be few tiles
	stayBytes   = 1 << 20 // of weights that stay in the second-level cache
)

// Prepare works out the tiles, and sets the steps that are zero to those of
// rows that follow each other.
func (r *Recurrent) Prepare(v *kernel.Variant) {
	r.lay()
	gates := r.Kind.gates() * r.Hidden
	r.samples = mostSamples
	if r.Dirs*kernel.CeilDiv(r.Batch, mostSamples) < kernel.WantedTiles && 4*gates*r.Hidden <= stayBytes {
		r.samples = fewSamples
	}
	r.samples = kernel.EvenTile(r.Batch, r.samples, 1)
	r.groups = kernel.CeilDiv(r.Batch, r.samples)
	r.steps = max(1, inputRows/r.samples)
	width := 1
	if !r.Wide {
		width = gemm.PanelWidth(v)
	}
	r.w = [2]matrix{{cols: gates, depth: r.Input, width: width}}
	r.r = [2]matrix{{cols: gates, depth: r.Hidden, width: width}}
	if r.Kind == GRUCell { // the last gate is multiplied by itself
		r.r = [2]matrix{{cols: 2 * r.Hidden, depth: r.Hidden, width: width}, {from: 2 * r.Hidden, cols: r.Hidden, depth: r.Hidden, width: width}}
	}
	most := min(r.Batch, mostSamples) // so that smaller sizes take no more
	rows := min(inputRows, r.Steps*most)
	r.size = cellSizes{x: line(rows * uncrowded(r.Input)), gates: line(rows * uncrowded(gates)), state: line(most * r.Hidden), bias: line(gates)}
	if !r.Packed && !r.Wide {
		r.size.w, r.size.r = r.WElements(), r.RElements()
	}
}

// line rounds a number of elements up to whole lines of the cache.
func line(n int) int { return (n + 15) &^ 15 }

func (r *Recurrent) lay() {
	x, y := RowSteps{Step: r.Batch * r.Input, Sample: r.Input}, RowSteps{Step: r.Dirs * r.Batch * r.Hidden, Dir: r.Batch * r.Hidden, Sample: r.Hidden}
	state := RowSteps{Dir: r.Batch * r.Hidden, Sample: r.Hidden}
	if r.BatchFirst {
		x = RowSteps{Step: r.Input, Sample: r.Steps * r.Input}
		y = RowSteps{Step: r.Dirs * r.Hidden, Dir: r.Hidden, Sample: r.Steps * r.Dirs * r.Hidden}
		state = RowSteps{Dir: r.Hidden, Sample: r.Dirs * r.Hidden}
	}
	orElse := func(s *RowSteps, even RowSteps) {
		if *s == (RowSteps{}) {
			*s = even
		}
	}
	orElse(&r.X, x)
	orElse(&r.Y, y)
	for _, s := range [...]*RowSteps{&r.H0, &r.C0, &r.H, &r.C} {
		orElse(s, state)
	}
}

// WElements and RElements are the sizes of what PackW and PackR write for a
// direction. The recurrence is prepared.
func (r *Recurrent) WElements() int { return r.w[0].panels() }

func (r *Recurrent) RElements() int { return r.r[0].panels() + r.r[1].panels() }

// PackW packs the input weights of a direction in panels.
func (r *Recurrent) PackW(v *kernel.Variant, dst, w []float32) { packMatrices(v, &r.w, dst, w) }

// PackR packs the recurrent weights of a direction in panels.
func (r *Recurrent) PackR(v *kernel.Variant, dst, w []float32) { packMatrices(v, &r.r, dst, w) }

// RecurrentArgs are the operands; Bias, Lengths, H0, C0 and Peepholes may be
// absent, and so may every result.
type RecurrentArgs[T kernel.Float] struct {
	X, W, R, Bias, H0, C0, Peepholes []T
	Lengths                          []int32
	Y, H, C                          []T
}

// Tiles returns the number of tiles.
func (r *Recurrent) Tiles() int { return r.Dirs * r.groups }

// ScratchElements returns the size of a worker's scratch, in elements. It is no
// smaller than that of smaller sizes.
func (r *Recurrent) ScratchElements() int {
	s := &r.size
	return s.x + s.gates + 4*s.state + s.bias + s.w + s.r
}

// RecurrentTile computes one tile.
func RecurrentTile[T kernel.Float](v *kernel.Variant, r *Recurrent, tile int, g *RecurrentArgs[T], scratch []T) {
	c := newCells(v, r, tile, g, scratch)
	c.initial(c.h, g.H0, &r.H0)
	c.initial(c.c, g.C0, &r.C0)
	longest := 0
	for i := range c.rows {
		longest = max(longest, c.length(i))
	}
	for first := 0; first < longest; first += r.steps {
		steps := min(r.steps, longest-first)
		c.inputs(first, steps)
		for i := range steps {
			c.step(first+i, c.gates[i*c.rows*c.ld:])
		}
	}
	c.finish()
}
