package randomprogram

import (
	"math"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// constant draws a call with a constant, which may be one of the sizes of x, or
// be computed of others.
func (d *opener) constant(x *ir.Value) {
	k := d.floats(d.pick(1, 1, 2, 3, 4))
	if d.one(3) {
		k = d.emit(d.name("exp", "neg", "abs"), nil, k)
	}
	d.emit(d.name("add", "mul"), nil, x, k)
}

// size computes a number from sizes.
func (d *opener) size(x *ir.Value) {
	if rank(x) == 0 {
		return
	}
	s := d.emit("shape", nil, x)
	n := d.emit("gather", along(0), s, d.ints(d.axis(x)))
	if n == nil {
		return
	}
	if len(d.dims) > 0 && d.one(2) {
		n = d.emit(d.name("add", "mul", "sub", "max"), nil, n, d.dims[d.n(0, len(d.dims)-1)])
	} else if d.one(3) {
		n = d.emit(d.name("add", "div", "sub"), nil, n, d.ints(int64(d.n(1, 3))))
	}
	if n != nil {
		d.dims = append(d.dims, n)
	}
}

// dim draws a number: one that was computed from sizes, mostly.
func (d *opener) dim() *ir.Value {
	if len(d.numbers) > 0 && d.one(4) {
		return d.numbers[d.n(0, len(d.numbers)-1)]
	}
	if len(d.dims) == 0 || d.one(3) {
		return d.ints(int64(d.pick(-1, 0, 1, 1, 2, 3, 4)))
	}
	return d.dims[d.n(0, len(d.dims)-1)]
}

// bySize draws a call to which a number is given that may come from sizes.
func (d *opener) bySize(x *ir.Value) {
	switch d.n(0, 8) {
	case 0, 1, 2:
		target := make([]*ir.Value, d.n(1, 4))
		for i := range target {
			target[i] = d.dim()
		}
		s := d.emit("concat", along(0), target...)
		if d.one(2) {
			x = d.emit("reshape", nil, x, d.ints([][]int64{{-1}, {-1, 1}, {1, -1}}[d.n(0, 2)]...))
		}
		x = d.emit("reshape", nil, x, s)
		if x != nil && d.one(3) {
			d.emit("softmax", along(-1), x)
		}
	case 3:
		s := d.emit("shape", nil, d.any())
		d.emit(d.name("reshape", "expand"), nil, x, s)
	case 4:
		d.emit("slice", nil, x, d.dim(), d.dim(), d.ints(d.axis(x)))
	case 5:
		d.parts(x)
	case 6:
		w := d.emit("slice", nil, d.floats(4, 3), d.ints(int64(d.n(0, 1))), d.dim(), d.ints(int64(d.n(0, 1))))
		d.emit("add", nil, x, w)
	case 7:
		d.filled(x)
	default:
		if rank(x) == 0 {
			return
		}
		s := d.emit("shape", nil, x)
		f := d.emit("cast", op.Attrs(nil).With("to", dtype.F32), s)
		f = d.emit("gather", along(0), f, d.ints(d.axis(x)))
		d.emit("mul", nil, x, f)
	}
}

// parts draws two parts of one value, which may overlap, and what may be
// written into one of them.
func (d *opener) parts(x *ir.Value) {
	axis := d.axis(x)
	a := d.emit("slice", nil, x, d.ints(0), d.dim(), d.ints(axis))
	b := d.emit("slice", nil, x, d.dim(), d.ints(1<<40), d.ints(axis))
	d.emit("relu", nil, a)
	d.emit("softmax", along(-1), b)
}

// filled draws a constant whose sizes come from sizes, and values that are
// computed from it and from constants that do not.
func (d *opener) filled(x *ir.Value) {
	s := d.emit("shape", nil, x)
	k := d.emit("expand", nil, d.floats(1), s)
	if d.one(2) {
		k = d.emit(d.name("neg", "abs"), nil, k)
	}
	d.emit(d.name("add", "max"), nil, x, k)
	if d.one(2) {
		w := d.emit(d.name("exp", "neg"), nil, d.floats(d.n(1, 40), d.pick(1, 2, 3)))
		d.emit("reduce_sum", op.Attrs(nil).With("keepdims", int64(0)), w, d.ints(0))
	}
}

func (d *opener) move(x *ir.Value) {
	rank := rank(x)
	switch d.n(0, 7) {
	case 0:
		perm := make([]int64, rank)
		for i, p := range rapid.Permutation(upTo(rank)).Draw(d.t, "perm") {
			perm[i] = int64(p)
		}
		d.emit("transpose", ints("perm", perm...), x)
	case 1:
		d.emitCall(&ir.Call{Op: op.Builtin().Lookup("split"), Attrs: along(d.axis(x)).With("num_outputs", int64(2)), Results: make([]*ir.Value, 2)}, x)
	case 2:
		d.emit("concat", along(d.axis(x)), x, d.like(x))
	case 3:
		if d.one(3) {
			d.emit("squeeze", nil, x)
		} else {
			d.emit("unsqueeze", nil, x, d.ints(int64(d.n(0, rank))))
		}
	case 4:
		d.emit("reshape", nil, x, d.ints([][]int64{{-1}, {0, -1}, {2, -1}, {1, 2, -1}, {0, 0, -1}, {-1, 1}}[d.n(0, 5)]...))
	case 5:
		d.emit("slice", nil, x, d.ints(int64(d.n(-2, 2))), d.ints(int64(d.n(-1, 5))), d.ints(d.axis(x)))
	case 6:
		d.emit(d.name("reduce_mean", "reduce_sum", "reduce_max"), op.Attrs(nil).With("keepdims", int64(d.n(0, 1))), x, d.ints(d.axis(x)))
	default:
		d.emit("softmax", along(-1), x)
	}
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// product draws a product, of which the right side may be transposed, with what
// may be fused with it.
func (d *opener) product(x *ir.Value) {
	last := rank(x) - 1
	if last < 1 {
		return
	}
	y := d.like(x)
	if d.one(2) {
		y = d.floats(max(1, x.Type.Shape.Size(last)), d.n(1, 3))
	} else {
		perm := make([]int64, last+1)
		for i := range perm {
			perm[i] = int64(i)
		}
		perm[last], perm[last-1] = perm[last-1], perm[last]
		y = d.emit("transpose", ints("perm", perm...), y)
	}
	z := d.emit("matmul", nil, x, y)
	if z == nil {
		return
	}
	switch d.n(0, 3) {
	case 0, 1:
		z = d.emit("add", nil, z, d.like(z))
	case 2:
		if v := d.any(); rank(v) == 1 {
			z = d.emit("add", nil, z, v)
		}
	default:
		if n := z.Type.Shape.Size(rank(z) - 1); n > 0 {
			z = d.emit("add", nil, z, d.floats(n))
		}
	}
	if d.one(2) {
		d.emit("relu", nil, z)
	}
}

// idiom draws calls that one kernel computes if all types agree.
func (d *opener) idiom(x *ir.Value) {
	switch d.n(0, 2) {
	case 0:
		keep := op.Attrs(nil).With("keepdims", int64(1))
		axes := d.ints(-1)
		diff := d.emit("sub", nil, x, d.emit("reduce_mean", keep, x, axes))
		variance := d.emit("reduce_mean", keep, d.emit("mul", nil, diff, diff), axes)
		root := d.emit("sqrt", nil, d.emit("add", nil, variance, d.number(1)))
		y := d.emit("div", nil, diff, root)
		switch d.n(0, 2) {
		case 0:
			d.emit("mul", nil, y, d.any())
		case 1:
			y = d.emit("mul", nil, y, d.floats(d.pick(1, 2, 3, 4)))
			if d.one(2) {
				d.emit("add", nil, y, d.floats(d.pick(1, 2, 3, 4)))
			}
		}
	case 1:
		d.emit("mul", nil, x, d.emit("sigmoid", nil, x))
	default:
		scaled := d.emit("div", nil, x, d.number(math.Sqrt2))
		plus := d.emit("add", nil, d.emit("erf", nil, scaled), d.number(1))
		d.emit("mul", nil, d.emit("mul", nil, x, plus), d.number(0.5))
	}
}

// network draws a convolution with what may be fused with it.
func (d *opener) network(x *ir.Value) {
	if rank(x) != 4 {
		return
	}
	c := x.Type.Shape.Size(1)
	if c < 0 { // an open size may be that of the weights
		c = d.n(1, 3)
	}
	if c == 0 {
		return
	}
	if d.one(3) {
		x = d.emit("mul", nil, x, d.floats(c, 1, 1))
		x = d.emit("relu", nil, x)
	}
	k := d.pick(1, 1, 3)
	p := int64(k / 2)
	y := d.emit("conv", ints("pads", p, p, p, p), x, d.floats(c, c, k, k))
	if y == nil {
		return
	}
	if d.one(2) {
		y = d.emit("add", nil, y, d.like(y))
	}
	if d.one(2) {
		y = d.emit("relu", nil, y)
	}
	if d.one(3) {
		d.emit("max_pool", ints("kernel_shape", 2, 2), y)
	}
}
