package sequence

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
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
type Recurrent struct {
	Kind                              CellKind
	Steps, Batch, Input, Hidden, Dirs int
	Reverse                           bool // the first direction starts at the end; the second always does
	BatchFirst                        bool
	Clip                              float64 // of what functions are given; 0: none
	InputForget, LinearBeforeReset    bool
	Funcs                             []CellFunc // per direction: f, g, h as far as the cell has them

	// How rows lie; those that are zero are set by Prepare.
	X, Y, H0, C0, H, C RowSteps
}

// RowSteps says how the rows of an operand or a result lie: the elements from
// one of them to that of the next step, direction and sample.
type RowSteps struct{ Step, Dir, Sample int }

func (s *RowSteps) at(step, dir, sample int) int { return step*s.Step + dir*s.Dir + sample*s.Sample }

// Prepare sets the steps that are zero to those of rows that follow each other.
func (r *Recurrent) Prepare() {
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

// RecurrentArgs are the operands; Bias, Lengths, H0, C0 and Peepholes may be
// absent, and so may every result.
type RecurrentArgs[T kernel.Float] struct {
	X, W, R, Bias, H0, C0, Peepholes []T
	Lengths                          []int32
	Y, H, C                          []T
}

// Tiles returns the number of tiles: one per sample and direction.
func (r *Recurrent) Tiles() int { return r.Dirs * r.Batch }

// ScratchElements returns the size of a worker's scratch, in elements.
func (r *Recurrent) ScratchElements() int { return (2*r.Kind.gates() + 3) * r.Hidden }

// cell is the work of one sample in one direction.
type cell[T kernel.Float] struct {
	*Recurrent
	gates, rec []T // what each gate is made from: w x + bias, and r h + bias
	h, c, tmp  []T
	w, r       []T
	biasW      []T
	biasR      []T
	peepholes  []T
	funcs      []CellFunc
}

// RecurrentTile computes one tile.
func RecurrentTile[T kernel.Float](v *kernel.Variant, r *Recurrent, tile int, g *RecurrentArgs[T], scratch []T) {
	dir, sample := tile/r.Batch, tile%r.Batch
	c := newCell(r, dir, g, scratch)
	initial(c.h, g.H0, r.H0.at(0, dir, sample))
	initial(c.c, g.C0, r.C0.at(0, dir, sample))
	length := r.Steps
	if g.Lengths != nil {
		length = int(g.Lengths[sample])
	}
	for step := range r.Steps {
		t := step
		if step < length && (dir == 1 || r.Reverse) {
			t = length - 1 - step
		}
		to := r.Y.at(t, dir, sample)
		if step < length {
			c.step(v, g.X[r.X.at(t, 0, sample):][:r.Input])
		}
		switch {
		case g.Y == nil:
		case step < length:
			copy(g.Y[to:], c.h)
		default:
			clear(g.Y[to:][:r.Hidden])
		}
	}
	if g.H != nil {
		copy(g.H[r.H.at(0, dir, sample):], c.h)
	}
	if g.C != nil {
		copy(g.C[r.C.at(0, dir, sample):], c.c)
	}
}

func initial[T kernel.Float](dst, src []T, at int) {
	if src == nil {
		clear(dst)
		return
	}
	copy(dst, src[at:])
}

func newCell[T kernel.Float](r *Recurrent, dir int, g *RecurrentArgs[T], scratch []T) cell[T] {
	n, gates := r.Hidden, r.Kind.gates()
	take := func(count int) []T {
		part := scratch[:count*n]
		scratch = scratch[count*n:]
		return part
	}
	c := cell[T]{Recurrent: r, gates: take(gates), rec: take(gates), h: take(1), c: take(1), tmp: take(1)}
	c.w, c.r = g.W[dir*gates*n*r.Input:], g.R[dir*gates*n*n:]
	if g.Bias != nil {
		c.biasW = g.Bias[dir*2*gates*n:][:gates*n]
		c.biasR = g.Bias[(dir*2+1)*gates*n:][:gates*n]
	}
	if g.Peepholes != nil {
		c.peepholes = g.Peepholes[dir*3*n:][:3*n]
	}
	per := len(r.Funcs) / r.Dirs
	c.funcs = r.Funcs[dir*per:][:per]
	return c
}

// gate returns a gate's row of a list.
func (c *cell[T]) gate(list []T, i int) []T { return list[i*c.Hidden:][:c.Hidden] }

// apply clips a row and computes a function of it in place.
func (c *cell[T]) apply(v *kernel.Variant, f int, row []T) {
	if c.Clip > 0 {
		elementwise.Clamp(v, row, row, T(-c.Clip), T(c.Clip))
	}
	c.squash(v, f, row)
}

// squash computes a function of a row in place.
func (c *cell[T]) squash(v *kernel.Variant, f int, row []T) {
	k := c.funcs[f]
	if k.Scaled {
		inPlace(v, kernel.Affine, row, k.B, 0)
		inPlace(v, k.Op, row, 0, 0)
		inPlace(v, kernel.Affine, row, k.A, 0)
		return
	}
	inPlace(v, k.Op, row, k.A, k.B)
}

func inPlace[T kernel.Float](v *kernel.Variant, op kernel.UnaryOp, row []T, a, b float64) {
	if x, ok := any(row).([]float32); ok {
		elementwise.UnaryF32(v, op, x, x, float32(a), float32(b))
		return
	}
	x := any(row).([]float64)
	elementwise.UnaryF64(v, op, x, x, a, b)
}

func addTo[T kernel.Float](dst, src []T) {
	for i, v := range src {
		dst[i] += v
	}
}

func addProduct[T kernel.Float](dst, a, b []T) {
	for i, v := range a {
		dst[i] += v * b[i]
	}
}

// step moves the state by one element of the sequence.
func (c *cell[T]) step(v *kernel.Variant, x []T) {
	initial(c.gates, c.biasW, 0)
	initial(c.rec, c.biasR, 0)
	dots(v, c.gates, x, c.w, 0, c.Input)
	switch c.Kind {
	case RNNCell:
		dots(v, c.rec, c.h, c.r, 0, c.Hidden)
		addTo(c.gates, c.rec)
		c.apply(v, 0, c.gates)
		copy(c.h, c.gates)
	case GRUCell:
		c.gru(v)
	case LSTMCell:
		dots(v, c.rec, c.h, c.r, 0, c.Hidden)
		addTo(c.gates, c.rec)
		c.lstm(v)
	}
}

func (c *cell[T]) gru(v *kernel.Variant) {
	n := c.Hidden
	z, reset, next := c.gate(c.gates, 0), c.gate(c.gates, 1), c.gate(c.gates, 2)
	dots(v, c.rec[:2*n], c.h, c.r, 0, n)
	addTo(c.gates[:2*n], c.rec[:2*n])
	c.apply(v, 0, z)
	c.apply(v, 0, reset)
	last := c.gate(c.rec, 2)
	if c.LinearBeforeReset {
		dots(v, last, c.h, c.r, 2*n*n, n)
		addProduct(next, reset, last)
	} else {
		for i, v := range reset {
			c.tmp[i] = v * c.h[i]
		}
		dots(v, last, c.tmp, c.r, 2*n*n, n)
		addTo(next, last)
	}
	c.apply(v, 1, next)
	for i := range c.h {
		c.h[i] = (1-z[i])*next[i] + z[i]*c.h[i]
	}
}

func (c *cell[T]) lstm(v *kernel.Variant) {
	input, output, forget, next := c.gate(c.gates, 0), c.gate(c.gates, 1), c.gate(c.gates, 2), c.gate(c.gates, 3)
	if c.peepholes != nil {
		addProduct(input, c.c, c.gate(c.peepholes, 0))
		addProduct(forget, c.c, c.gate(c.peepholes, 2))
	}
	c.apply(v, 0, input)
	c.apply(v, 0, forget)
	c.apply(v, 1, next)
	for i := range c.c {
		keep := forget[i]
		if c.InputForget {
			keep = 1 - input[i]
		}
		c.c[i] = keep*c.c[i] + input[i]*next[i]
	}
	if c.peepholes != nil {
		addProduct(output, c.c, c.gate(c.peepholes, 1))
	}
	c.apply(v, 0, output)
	copy(c.tmp, c.c)
	c.squash(v, 2, c.tmp)
	for i := range c.h {
		c.h[i] = output[i] * c.tmp[i]
	}
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
