package pass_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// drawer draws programs whose parameters have open dimensions, out of what
// passes look for. A call that a shape rule refuses is dropped.
type drawer struct {
	t       *rapid.T
	program *ir.Program
	block   *ir.Block
	weights ir.WeightMap
	visible []*ir.Value // f32
	dims    []*ir.Value // i64[1]: numbers that were computed from sizes
}

// symbols are the open dimensions. A file may give two of them one name.
var symbols = []string{"a", "b", "c"}

func drawOpen(t *rapid.T) *drawer {
	d := &drawer{t: t, block: &ir.Block{}, weights: ir.WeightMap{}}
	d.program = &ir.Program{Name: "open", Body: d.block}
	for i := range d.n(1, 3) {
		dims := make([]shape.Dim, d.pick(1, 2, 2, 3, 3, 4, 4))
		for axis := range dims {
			dims[axis] = shape.Sym(symbols[d.n(0, 2)])
			if len(dims) == 4 && axis == 1 || d.one(4) {
				dims[axis] = shape.N(d.pick(1, 2, 3, 4))
			} else if d.one(5) {
				dims[axis] = shape.Unknown
			}
		}
		s, err := shape.FromDims(dims...)
		if err != nil {
			t.Fatal(err)
		}
		p := d.program.NewValue(ir.Param, fmt.Sprintf("p%d", i), op.Type{DType: dtype.F32, Shape: s})
		p.Index, p.Donated = i, d.one(2)
		d.block.Params, d.visible = append(d.block.Params, p), append(d.visible, p)
	}
	for range d.n(2, 14) {
		d.call(0)
	}
	for range d.n(1, 3) {
		d.block.Results = append(d.block.Results, d.recent())
	}
	return d
}

func (d *drawer) n(lo, hi int) int       { return rapid.IntRange(lo, hi).Draw(d.t, "n") }
func (d *drawer) one(of int) bool        { return d.n(1, of) == 1 }
func (d *drawer) pick(of ...int) int     { return rapid.SampledFrom(of).Draw(d.t, "pick") }
func (d *drawer) recent() *ir.Value      { return d.visible[max(0, len(d.visible)-1-d.n(0, 3))] }
func (d *drawer) any() *ir.Value         { return d.visible[d.n(0, len(d.visible)-1)] }
func (d *drawer) rank(v *ir.Value) int   { return v.Type.Shape.Rank() }
func (d *drawer) axis(v *ir.Value) int64 { return int64(d.n(0, max(0, d.rank(v)-1))) }

// like returns another value of as many dimensions, if there is one.
func (d *drawer) like(x *ir.Value) *ir.Value {
	for i := len(d.visible) - 1; i >= 0; i-- {
		if y := d.visible[i]; y != x && d.rank(y) == d.rank(x) && !d.one(3) {
			return y
		}
	}
	return x
}

func (d *drawer) weight(t op.Type, data []byte) *ir.Value {
	w := d.program.NewValue(ir.Weight, "", t)
	w.Name = fmt.Sprintf("w%d", w.ID)
	d.program.Weights, d.weights[w.Name] = append(d.program.Weights, w), data
	return w
}

func (d *drawer) ints(list ...int64) *ir.Value {
	var data []byte
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return d.weight(op.Type{DType: dtype.I64, Shape: shape.MustOf(len(list))}, data)
}

func (d *drawer) number(x float64) *ir.Value {
	return d.weight(op.Type{DType: dtype.F32, Shape: shape.Scalar()}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x))))
}

func (d *drawer) floats(dims ...int) *ir.Value {
	t := op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)}
	return d.weight(t, smallFloats(t, len(d.weights)))
}

// smallFloats are numbers from -3 to 3.
func smallFloats(t op.Type, seed int) (data []byte) {
	for i := range t.Shape.NumElements() {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32((i*5+seed*3)%7-3)))
	}
	return data
}

func (d *drawer) known(v *ir.Value) ([]byte, bool) { return ir.Known(d.weights)(v) }

// emit adds a call if its shape rule accepts it, and returns its first result.
func (d *drawer) emit(name string, attrs op.Attrs, args ...*ir.Value) *ir.Value {
	results := d.emitCall(&ir.Call{Op: op.Builtin().Lookup(name), Attrs: attrs, Results: make([]*ir.Value, 1)}, args...)
	if results == nil {
		return nil
	}
	return results[0]
}

func (d *drawer) emitCall(c *ir.Call, args ...*ir.Value) []*ir.Value {
	for _, v := range args {
		c.Args = append(c.Args, ir.Operand{Value: v})
	}
	sig := c.Sig(d.known)
	for i := range sig.Results {
		sig.Results[i] = op.Type{DType: dtype.F32} // wanted
	}
	if err := op.InferTypes(sig); err != nil {
		return nil
	}
	for i, t := range sig.Results {
		if t.Shape == nil {
			return nil
		}
		c.Results[i] = nil
	}
	for i, t := range sig.Results {
		v := d.program.NewValue(ir.Result, "", t)
		v.Def, v.Index, c.Results[i] = c, i, v
		if t.DType == dtype.F32 {
			d.visible = append(d.visible, v)
		}
	}
	d.block.Calls = append(d.block.Calls, c)
	return c.Results
}

func ints(name string, values ...int64) op.Attrs { return op.Attrs(nil).With(name, values) }

// call draws one call or a few that belong together.
func (d *drawer) call(depth int) {
	x := d.recent()
	switch d.n(0, 11) {
	case 0:
		d.emit([]string{"relu", "abs", "neg", "sigmoid", "identity", "tanh"}[d.n(0, 5)], nil, x)
	case 1, 2:
		d.emit([]string{"add", "mul", "sub", "max"}[d.n(0, 3)], nil, x, d.like(x))
	case 3:
		d.emit("add", nil, x, d.floats([]int{1, 2, 3, 4}[:d.n(0, 1)+1][0]))
	case 4:
		d.size(x)
	case 5, 6:
		d.bySize(x)
	case 7:
		d.move(x)
	case 8:
		d.product(x)
	case 9:
		d.idiom(x)
	case 10:
		d.network(x)
	default:
		if depth < 2 {
			d.branch(x, depth)
		}
	}
}

// size computes a number from sizes.
func (d *drawer) size(x *ir.Value) {
	s := d.emit("shape", nil, x)
	if s == nil {
		return
	}
	n := d.emit("gather", op.Attrs(nil).With("axis", int64(0)), s, d.ints(d.axis(x)))
	if n == nil {
		return
	}
	if len(d.dims) > 0 && d.one(2) {
		n = d.emit([]string{"add", "mul", "sub", "max"}[d.n(0, 3)], nil, n, d.dims[d.n(0, len(d.dims)-1)])
	} else if d.one(3) {
		n = d.emit([]string{"add", "div"}[d.n(0, 1)], nil, n, d.ints(int64(d.n(1, 2))))
	}
	if n != nil {
		d.dims = append(d.dims, n)
	}
}

func (d *drawer) dim() *ir.Value {
	if len(d.dims) == 0 || d.one(3) {
		return d.ints(int64(d.pick(-1, 0, 1, 1, 2, 3, 4)))
	}
	return d.dims[d.n(0, len(d.dims)-1)]
}

// bySize draws a call to which a number is given that may come from sizes.
func (d *drawer) bySize(x *ir.Value) {
	concat := op.Attrs(nil).With("axis", int64(0))
	switch d.n(0, 7) {
	case 0, 1, 2:
		target := make([]*ir.Value, d.n(1, 4))
		for i := range target {
			target[i] = d.dim()
		}
		if s := d.emit("concat", concat, target...); s != nil {
			d.emit("reshape", nil, x, s)
		}
	case 3:
		if s := d.emit("shape", nil, d.any()); s != nil {
			d.emit([]string{"reshape", "expand"}[d.n(0, 1)], nil, x, s)
		}
	case 4, 5:
		d.emit("slice", nil, x, d.dim(), d.dim(), d.ints(d.axis(x)))
	case 6:
		w := d.floats(4, 3)
		if w = d.emit("slice", nil, w, d.ints(int64(d.n(0, 1))), d.dim(), d.ints(int64(d.n(0, 1)))); w != nil {
			d.emit("add", nil, x, w)
		}
	default:
		if s := d.emit("shape", nil, x); s != nil {
			if f := d.emit("cast", op.Attrs(nil).With("to", dtype.F32), s); f != nil {
				if f = d.emit("gather", concat, f, d.ints(d.axis(x))); f != nil {
					d.emit("mul", nil, x, f)
				}
			}
		}
	}
}

func (d *drawer) move(x *ir.Value) {
	rank := d.rank(x)
	switch d.n(0, 7) {
	case 0:
		perm := make([]int64, rank)
		for i, p := range rapid.Permutation(upTo(rank)).Draw(d.t, "perm") {
			perm[i] = int64(p)
		}
		d.emit("transpose", ints("perm", perm...), x)
	case 1:
		d.emitCall(&ir.Call{Op: op.Builtin().Lookup("split"), Attrs: op.Attrs(nil).With("axis", d.axis(x)).With("num_outputs", int64(2)), Results: make([]*ir.Value, 2)}, x)
	case 2:
		d.emit("concat", op.Attrs(nil).With("axis", d.axis(x)), x, d.like(x))
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
		d.emit("reduce_mean", op.Attrs(nil).With("keepdims", int64(d.n(0, 1))), x, d.ints(d.axis(x)))
	default:
		d.emit("softmax", op.Attrs(nil).With("axis", int64(-1)), x)
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
func (d *drawer) product(x *ir.Value) {
	rank := d.rank(x)
	if rank < 2 {
		return
	}
	y := d.like(x)
	if d.one(2) {
		n := x.Type.Shape.Size(rank - 1)
		y = d.floats(max(1, n), d.n(1, 3))
	} else if rank > 1 {
		perm := make([]int64, rank)
		for i := range perm {
			perm[i] = int64(i)
		}
		perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
		y = d.emit("transpose", ints("perm", perm...), y)
	}
	if y == nil {
		return
	}
	z := d.emit("matmul", nil, x, y)
	if z == nil {
		return
	}
	if d.one(2) {
		z = d.emit("add", nil, z, d.like(z))
	} else if w := z.Type.Shape.Size(d.rank(z) - 1); w > 0 {
		z = d.emit("add", nil, z, d.floats(w))
	}
	if z != nil && d.one(2) {
		d.emit("relu", nil, z)
	}
}

// idiom draws what is computed by one kernel where all types agree.
func (d *drawer) idiom(x *ir.Value) {
	switch d.n(0, 2) {
	case 0:
		keep := op.Attrs(nil).With("keepdims", int64(1))
		axes := d.ints(-1)
		mean := d.emit("reduce_mean", keep, x, axes)
		diff := d.emit("sub", nil, x, mean)
		if diff == nil {
			return
		}
		square := d.emit("mul", nil, diff, diff)
		variance := d.emit("reduce_mean", keep, square, axes)
		sum := d.emit("add", nil, variance, d.number(1))
		root := d.emit("sqrt", nil, sum)
		y := d.emit("div", nil, diff, root)
		if y != nil && d.one(2) {
			d.emit("mul", nil, y, d.any())
		}
	case 1:
		s := d.emit("sigmoid", nil, x)
		d.emit("mul", nil, x, s)
	default:
		scaled := d.emit("div", nil, x, d.number(math.Sqrt2))
		e := d.emit("erf", nil, scaled)
		plus := d.emit("add", nil, e, d.number(1))
		y := d.emit("mul", nil, x, plus)
		d.emit("mul", nil, y, d.number(0.5))
	}
}

// network draws a convolution with what may be fused with it.
func (d *drawer) network(x *ir.Value) {
	if d.rank(x) != 4 || x.Type.Shape.Size(1) < 1 {
		return
	}
	c := x.Type.Shape.Size(1)
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
	if y != nil && d.one(2) {
		y = d.emit("relu", nil, y)
	}
	if y != nil && d.one(3) {
		d.emit("max_pool", ints("kernel_shape", 2, 2), y)
	}
}

// branch draws an `if` whose condition is a comparison of sizes, or of data.
func (d *drawer) branch(x *ir.Value, depth int) {
	var cond *ir.Value
	if len(d.dims) > 0 && d.one(2) {
		cond = d.emit([]string{"equal", "less"}[d.n(0, 1)], nil, d.dims[d.n(0, len(d.dims)-1)], d.dim())
	} else if r := d.emit("reduce_max", op.Attrs(nil).With("keepdims", int64(0)), x); r != nil {
		cond = d.emit("greater", nil, r, d.number(1))
	}
	if cond == nil {
		return
	}
	if d.rank(cond) > 0 {
		if cond = d.emit("squeeze", nil, cond, d.ints(0)); cond == nil {
			return
		}
	}
	outer, visible, dims := d.block, d.visible, d.dims
	c := &ir.Call{Op: op.Builtin().Lookup("if"), Results: make([]*ir.Value, 1), Regions: []*ir.Block{{}, {}}}
	for _, r := range c.Regions {
		d.block = r
		for range d.n(0, 3) {
			d.call(depth + 1)
		}
		last := x
		for _, v := range d.visible {
			if v.Type == x.Type && v.Type.Shape != nil {
				last = v
			}
		}
		r.Results = []*ir.Value{last}
		d.block, d.visible, d.dims = outer, visible, dims
	}
	d.emitCall(c, cond)
}
