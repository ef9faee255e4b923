package pass

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// norm starts at the root of (x-mean(x)) / sqrt(mean((x-mean(x))^2)+epsilon),
// or of x / sqrt(mean(x^2)+epsilon).
func (m *idiomFinder) norm(root *ir.Call) {
	sum := def(root.Args[0].Value, "add")
	if sum == nil || root.Args[0].Donate {
		return
	}
	var squares *ir.Call
	var epsilon float64
	for i := range 2 {
		if e, ok := m.ctx.scalar(sum.Args[1-i].Value); ok && squares == nil && m.keepsType(sum, i) {
			squares, epsilon = def(sum.Args[i].Value, "reduce_mean"), e
		}
	}
	if squares == nil {
		return
	}
	// The operand that is squared: a difference from the mean, or x itself.
	d := squares.Args[0].Value.Def
	if d == nil || len(d.Args) == 0 || !m.isSquare(squares.Args[0].Value, d.Args[0].Value) {
		return
	}
	x, name := d.Args[0].Value, "rms_normalization"
	axis, ok := m.lastAxes(squares, x)
	if !ok {
		return
	}
	last := m.quotient(x, root)
	if last == nil {
		return
	}
	scaled := x
	if diff := def(x, "sub"); diff != nil {
		mean := def(diff.Args[1].Value, "reduce_mean")
		if mean != nil && mean.Args[0].Value == diff.Args[0].Value && m.keepsType(diff, 0) {
			if a, ok := m.lastAxes(mean, diff.Args[0].Value); ok && a == axis {
				scaled, name = diff.Args[0].Value, "layer_normalization"
			}
		}
	}
	m.affine(last, scaled, name, axis, epsilon)
}

// lastAxes tells whether a mean of x is taken over the axes from one on, whose
// sizes are known, and keeps them.
func (m *idiomFinder) lastAxes(mean *ir.Call, x *ir.Value) (int, bool) {
	rank := rank(x)
	if rank < 0 {
		return 0, false
	}
	axes, known := m.ctx.reducedAxes(mean, x)
	if !known || len(axes) == 0 || attrsOf(mean).Int("keepdims") == 0 {
		return 0, false
	}
	reduced := make([]bool, rank)
	for _, a := range axes {
		reduced[a] = true
	}
	first := rank - len(axes)
	for i := first; i < rank; i++ {
		if !isSized(x, i) || !reduced[i] {
			return 0, false
		}
	}
	return first, true
}

// quotient returns the call that computes x/root, which no other reads the root
// of: a quotient, or a product with 1/root.
func (m *idiomFinder) quotient(x *ir.Value, root *ir.Call) *ir.Call {
	r := root.Results[0]
	if c := m.only(r, "div"); c != nil && c.Args[1].Value == r {
		if c.Args[0].Value == x && m.keepsType(c, 0) {
			return c
		}
		if !m.isScalar(c.Args[0].Value, 1) {
			return nil
		}
		r = c.Results[0]
	} else if c := m.only(r, "reciprocal"); c != nil {
		r = c.Results[0]
	} else {
		return nil
	}
	if c := m.only(r, "mul"); c != nil && other(c, r) == x && m.keepsType(c, argOf(c, x)) {
		return c
	}
	return nil
}

// affine takes in the product with a scale and the sum with a bias that follow,
// and puts the normalisation in place of the last of them.
func (m *idiomFinder) affine(last *ir.Call, x *ir.Value, name string, axis int, epsilon float64) {
	args := []*ir.Value{x, nil}
	if c, scale := m.alongRow(last, "mul", axis); c != nil {
		last, args[1] = c, scale
		if c, bias := m.alongRow(last, "add", axis); c != nil && name == "layer_normalization" {
			last, args = c, append(args, bias)
		}
	}
	if args[1] == nil {
		if args[1] = m.ones(x, axis); args[1] == nil {
			return
		}
	}
	m.put(last, name, op.Attrs(nil).With("axis", int64(axis)).With("epsilon", epsilon), args...)
}

// alongRow returns the named call that alone reads the result of c, with a
// constant along the axes from one on.
func (m *idiomFinder) alongRow(c *ir.Call, name string, axis int) (*ir.Call, *ir.Value) {
	v := c.Results[0]
	next := m.only(v, name)
	if next == nil {
		return nil, nil
	}
	k := other(next, v)
	if k == nil || k.Kind != ir.Weight || k.Type.DType != v.Type.DType || !m.keepsType(next, argOf(next, v)) {
		return nil, nil
	}
	if !m.ctx.is(alongRow, k, v, axis, 0) {
		return nil, nil
	}
	return next, k
}

// ones is a scale of f32 that changes nothing.
func (m *idiomFinder) ones(x *ir.Value, axis int) *ir.Value {
	if x.Type.DType != dtype.F32 {
		return nil
	}
	n := 1
	if last := rank(x) - 1; axis == last {
		n = max(0, m.ctx.size(x, last))
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = 1
	}
	v, err := m.ctx.addFloats("ones", data, n)
	if err != nil {
		return nil
	}
	return v
}
