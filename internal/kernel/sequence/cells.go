package sequence

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// cells is a tile under way: some samples in one direction.
type cells[T kernel.Float] struct {
	*Recurrent
	v           *kernel.Variant
	g           RecurrentArgs[T]
	dir, sample int // the first one
	rows        int // samples

	ldx, ld   int // distances of rows of x and of gates
	x, gates  []T // of some steps: inputs, and what each gate is made from
	h, c      []T // [rows, Hidden]
	tmp, rec  []T // [rows, Hidden]
	bias      []T // of the products of inputs
	last      []T // of the last gate's own product of states, of GRU; nil: none
	w, r      []T
	peepholes []T
	funcs     []CellFunc
}

func newCells[T kernel.Float](v *kernel.Variant, r *Recurrent, tile int, g *RecurrentArgs[T], scratch []T) cells[T] {
	take := func(n int) []T {
		part := scratch[:n:n]
		scratch = scratch[n:]
		return part
	}
	n, gates := r.Hidden, r.Kind.gates()*r.Hidden
	c := cells[T]{Recurrent: r, v: v, g: *g, dir: tile / r.groups, sample: tile % r.groups * r.samples, ldx: uncrowded(r.Input), ld: uncrowded(gates)}
	c.rows = min(r.samples, r.Batch-c.sample)
	c.x, c.gates = take(r.size.x), take(r.size.gates)
	c.h, c.c, c.tmp, c.rec, c.bias = take(r.size.state), take(r.size.state), take(r.size.state), take(r.size.state), take(r.size.bias)[:gates]
	switch w, rec := g.W, g.R; {
	case r.Wide:
		c.w, c.r = w[c.dir*gates*r.Input:], rec[c.dir*gates*n:]
	case r.Packed:
		c.w, c.r = w[c.dir*r.WElements():], rec[c.dir*r.RElements():]
	default:
		c.w, c.r = take(r.size.w), take(r.size.r)
		r.PackW(v, any(c.w).([]float32), any(w).([]float32)[c.dir*gates*r.Input:])
		r.PackR(v, any(c.r).([]float32), any(rec).([]float32)[c.dir*gates*n:])
	}
	clear(c.bias)
	if g.Bias != nil {
		c.addBiases(g.Bias[c.dir*2*gates:][:2*gates])
	}
	if g.Peepholes != nil {
		c.peepholes = g.Peepholes[c.dir*3*n:][:3*n]
	}
	per := len(r.Funcs) / r.Dirs
	c.funcs = r.Funcs[c.dir*per:][:per]
	return c
}

// addBiases adds those of inputs and of states, but for the last one of a GRU
// that is multiplied by the reset gate.
func (c *cells[T]) addBiases(both []T) {
	input, state := both[:len(both)/2], both[len(both)/2:]
	copy(c.bias, input)
	if c.Kind == GRUCell && c.LinearBeforeReset {
		c.last = state[2*c.Hidden:]
		state = state[:2*c.Hidden]
	}
	for i, b := range state {
		c.bias[i] += b
	}
}

// initial sets rows of the state to those of an operand, or to zeros.
func (c *cells[T]) initial(dst, src []T, steps *RowSteps) {
	clear(dst)
	for i := range c.rows {
		if src != nil {
			copy(c.row(dst, i), src[steps.at(0, c.dir, c.sample+i):])
		}
	}
}

// row returns a row of the state.
func (c *cells[T]) row(list []T, i int) []T { return list[i*c.Hidden:][:c.Hidden] }

// length returns the number of steps of a sample.
func (c *cells[T]) length(i int) int {
	if c.g.Lengths != nil {
		return int(c.g.Lengths[c.sample+i])
	}
	return c.Steps
}

// time returns which element of its sequence a sample meets in a step.
func (c *cells[T]) time(i, step int) int {
	if c.dir == 1 || c.Reverse {
		return c.length(i) - 1 - step
	}
	return step
}

// inputs multiplies the inputs of some steps. Rows of samples that have ended
// are zeros.
func (c *cells[T]) inputs(first, steps int) {
	rows := steps * c.rows
	for at := range rows {
		i, step, x := at%c.rows, first+at/c.rows, c.x[at*c.ldx:][:c.Input]
		if step < c.length(i) {
			copy(x, c.g.X[c.X.at(c.time(i, step), 0, c.sample+i):])
		} else {
			clear(x)
		}
	}
	addProduct(c.v, &c.Recurrent.w[0], c.w, rows, c.x, c.ldx, c.gates, c.ld, c.bias, 0)
}

// step moves the states by one element of the sequences. gates are the rows of
// the step.
func (c *cells[T]) step(step int, gates []T) {
	addProduct(c.v, &c.Recurrent.r[0], c.r, c.rows, c.h, c.Hidden, gates, c.ld, gates, c.ld)
	if c.Kind == GRUCell {
		c.lastGate(gates)
	}
	for i := range c.rows {
		if step >= c.length(i) {
			continue
		}
		row := gates[i*c.ld:][:c.Kind.gates()*c.Hidden]
		h := c.row(c.h, i)
		switch c.Kind {
		case RNNCell:
			c.apply(0, row)
			copy(h, row)
		case GRUCell:
			c.gru(row, h, c.row(c.tmp, i))
		case LSTMCell:
			c.lstm(row, h, c.row(c.c, i), c.row(c.tmp, i))
		}
		if c.g.Y != nil {
			copy(c.g.Y[c.Y.at(c.time(i, step), c.dir, c.sample+i):], h)
		}
	}
}

// lastGate computes the first two gates of a GRU, and adds to the last one.
func (c *cells[T]) lastGate(gates []T) {
	n, last := c.Hidden, &c.Recurrent.r[1]
	panels := c.r
	if !c.Wide {
		panels = c.r[c.Recurrent.r[0].panels():]
	}
	for i := range c.rows {
		row := gates[i*c.ld:]
		c.apply(0, row[:2*n])
		if !c.LinearBeforeReset {
			combine(c.v, kernel.Mul, c.row(c.tmp, i), row[n:2*n], c.row(c.h, i))
		}
	}
	if !c.LinearBeforeReset {
		addProduct(c.v, last, panels, c.rows, c.tmp, n, gates[2*n:], c.ld, gates[2*n:], c.ld)
		return
	}
	for i := range c.rows {
		clear(c.row(c.rec, i))
		copy(c.row(c.rec, i), c.last)
	}
	addProduct(c.v, last, panels, c.rows, c.h, n, c.rec, n, c.rec, n)
	for i := range c.rows {
		rec, row := c.row(c.rec, i), gates[i*c.ld:]
		combine(c.v, kernel.Mul, rec, rec, row[n:2*n])
		combine(c.v, kernel.Add, row[2*n:3*n], row[2*n:3*n], rec)
	}
}

// gru computes h = (1-z) * next + z * h.
func (c *cells[T]) gru(gates, h, tmp []T) {
	z, next := gates[:c.Hidden], gates[2*c.Hidden:]
	c.apply(1, next)
	combine(c.v, kernel.Mul, tmp, z, h)
	c.unary(kernel.Affine, z, z, -1, 1)
	combine(c.v, kernel.Mul, next, z, next)
	combine(c.v, kernel.Add, h, next, tmp)
}

func (c *cells[T]) lstm(gates, h, s, tmp []T) {
	n := c.Hidden
	input, output, forget, next := gates[:n], gates[n:2*n], gates[2*n:3*n], gates[3*n:]
	if c.peepholes == nil {
		c.apply(0, gates[:3*n])
	} else {
		c.addScaled(input, s, c.peepholes[:n], tmp)
		c.addScaled(forget, s, c.peepholes[2*n:], tmp)
		c.apply(0, input)
		c.apply(0, forget)
	}
	c.apply(1, next)
	if c.InputForget {
		c.unary(kernel.Affine, forget, input, -1, 1)
	}
	combine(c.v, kernel.Mul, s, s, forget)
	combine(c.v, kernel.Mul, next, next, input)
	combine(c.v, kernel.Add, s, s, next)
	if c.peepholes != nil {
		c.addScaled(output, s, c.peepholes[n:2*n], tmp)
		c.apply(0, output)
	}
	c.squash(2, tmp, s)
	combine(c.v, kernel.Mul, h, output, tmp)
}

// addScaled adds a * b to dst.
func (c *cells[T]) addScaled(dst, a, b, tmp []T) {
	combine(c.v, kernel.Mul, tmp, a, b)
	combine(c.v, kernel.Add, dst, dst, tmp)
}

// finish writes the last states, and the zeros after the ends of sequences.
func (c *cells[T]) finish() {
	for i := range c.rows {
		for step := c.length(i); step < c.Steps && c.g.Y != nil; step++ {
			clear(c.g.Y[c.Y.at(step, c.dir, c.sample+i):][:c.Hidden])
		}
		if c.g.H != nil {
			copy(c.g.H[c.H.at(0, c.dir, c.sample+i):], c.row(c.h, i))
		}
		if c.g.C != nil {
			copy(c.g.C[c.C.at(0, c.dir, c.sample+i):], c.row(c.c, i))
		}
	}
}

// apply clips a row and computes a function of it in place.
func (c *cells[T]) apply(f int, row []T) {
	if c.Clip > 0 {
		elementwise.Clamp(c.v, row, row, T(-c.Clip), T(c.Clip))
	}
	c.squash(f, row, row)
}

// squash computes a function of a row.
func (c *cells[T]) squash(f int, dst, src []T) {
	k := c.funcs[f]
	if k.Scaled {
		c.unary(kernel.Affine, dst, src, k.B, 0)
		c.unary(k.Op, dst, dst, 0, 0)
		c.unary(kernel.Affine, dst, dst, k.A, 0)
		return
	}
	c.unary(k.Op, dst, src, k.A, k.B)
}

func (c *cells[T]) unary(op kernel.UnaryOp, dst, src []T, a, b float64) {
	if x, ok := any(src).([]float32); ok {
		elementwise.UnaryF32(c.v, op, any(dst).([]float32), x, float32(a), float32(b))
		return
	}
	elementwise.UnaryF64(c.v, op, any(dst).([]float64), any(src).([]float64), a, b)
}

// combine adds or multiplies rows.
func combine[T kernel.Float](v *kernel.Variant, op kernel.BinaryOp, dst, a, b []T) {
	if x, ok := any(a).([]float32); ok {
		elementwise.BinaryRowVV(v, op, any(dst).([]float32), x, any(b).([]float32))
		return
	}
	for i := range dst {
		if op == kernel.Mul {
			dst[i] = a[i] * b[i]
		} else {
			dst[i] = a[i] + b[i]
		}
	}
}
