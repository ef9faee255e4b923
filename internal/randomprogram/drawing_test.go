package randomprogram_test

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

// drawer draws a random program call by call. A call that the operator table
// refuses is dropped: attributes and operands may be anything.
type drawer struct {
	*randomProgram
	t       *rapid.T
	block   *ir.Block
	visible []*ir.Value
	inLoop  bool // in a loop
	parts   bool // calls mostly put values together and take them apart
	boxes   bool // so they do along any axis
	dynamics
}

const exactly = 1 << 22 // integers below it are added without rounding

// drawRandom draws a program of static values mostly, or mostly of those whose
// size depends on data.
func drawRandom(t *rapid.T, dynamic bool) *randomProgram {
	d := &drawer{t: t, block: &ir.Block{}, dynamics: dynamics{doublings: 8, times: 1}}
	d.randomProgram = &randomProgram{dynamic: dynamic, program: &ir.Program{Name: "random", Body: d.block}, weights: ir.WeightMap{}, bounds: map[*ir.Value]bound{}}
	d.leastMemory = d.one(2)
	for i := range d.n(1, 3) {
		p := d.program.NewValue(ir.Param, fmt.Sprintf("p%d", i), d.floatType())
		p.Index, p.Donated = i, d.one(2)
		d.open = append(d.open, rapid.SampledFrom([]int{0, 0, 1, 1 << 3, 1<<5 - 1}).Draw(t, "open axes"))
		d.block.Params = append(d.block.Params, p)
		d.visible = append(d.visible, p)
		d.bounds[p] = bound{size: 4}
		for round := range d.inputs {
			d.inputs[round] = append(d.inputs[round], d.smallFloats(p.Type))
		}
	}
	for range d.n(1, 20) {
		if dynamic && !d.one(4) {
			d.dynamic(0)
		} else {
			d.call(0)
		}
	}
	for range d.n(1, 4) {
		if len(d.picked) > 0 && (dynamic || d.one(4)) && !d.one(4) {
			d.block.Results = append(d.block.Results, d.pickedValue())
		} else {
			d.block.Results = append(d.block.Results, d.recent())
		}
	}
	if err := ir.VerifyKnown(d.program, ir.Known(d.weights)); err != nil {
		t.Fatalf("drawn: %v\n%s", err, d.program)
	}
	return d.randomProgram
}

func (d *drawer) n(lo, hi int) int     { return rapid.IntRange(lo, hi).Draw(d.t, "n") }
func (d *drawer) one(of int) bool      { return d.n(1, of) == 1 }
func (d *drawer) i64(lo, hi int) int64 { return int64(d.n(lo, hi)) }

func (d *drawer) list(n, lo, hi int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = d.i64(lo, hi)
	}
	return out
}

func (d *drawer) floatType() op.Type {
	dims := []int{d.n(1, 2), 2 * d.n(1, 2), d.n(1, 6), d.n(1, 6), d.n(1, 3)}
	return op.Type{DType: dtype.F32, Shape: shape.MustOf(dims[:rapid.SampledFrom([]int{1, 2, 3, 4, 4, 4, 4, 4, 5}).Draw(d.t, "rank")]...)}
}

func (d *drawer) smallFloats(t op.Type) []byte {
	data := words(sizeOf(t), 0)
	for i := 0; i < len(data); i += 4 {
		binary.LittleEndian.PutUint32(data[i:], math.Float32bits(float32(d.n(-4, 4))))
	}
	return data
}

// recent returns a visible value, mostly a recent one: long chains are where
// bytes are reused.
func (d *drawer) recent() *ir.Value {
	if d.one(4) {
		return rapid.SampledFrom(d.visible).Draw(d.t, "value")
	}
	return d.visible[max(0, len(d.visible)-1-d.n(0, 3))]
}

// like returns a visible value that fits, x itself if there is no other.
func (d *drawer) like(x *ir.Value, fits func(*ir.Value) bool) *ir.Value {
	for i := len(d.visible) - 1; i >= 0; i-- {
		if y := d.visible[i]; y != x && fits(y) && !d.one(3) {
			return y
		}
	}
	return x
}

func sameType(x *ir.Value) func(*ir.Value) bool {
	return func(y *ir.Value) bool { return y.Type == x.Type }
}

func (d *drawer) known(v *ir.Value) ([]byte, bool) {
	if v == nil || v.Kind != ir.Weight {
		return nil, false
	}
	return d.weights.Bytes(v)
}

func (d *drawer) weight(t op.Type, data []byte, b bound) *ir.Value {
	w := d.program.NewValue(ir.Weight, "", t)
	w.Name = fmt.Sprintf("w%d", w.ID)
	d.program.Weights = append(d.program.Weights, w)
	d.weights[w.Name], d.bounds[w] = data, b
	return w
}

func (d *drawer) ints(list ...int64) *ir.Value {
	data := words(8*len(list), 0)
	for i, v := range list {
		binary.LittleEndian.PutUint64(data[8*i:], uint64(v))
	}
	return d.weight(op.Type{DType: dtype.I64, Shape: shape.MustOf(len(list))}, data, bound{})
}

func (d *drawer) floats(dims ...int) *ir.Value {
	t := op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)}
	return d.weight(t, d.smallFloats(t), bound{size: 4})
}

// chosen makes a weight of numbers out of a few.
func (d *drawer) chosen(n int, from ...float32) *ir.Value {
	w := d.floats(n)
	for i := range n {
		binary.LittleEndian.PutUint32(d.weights[w.Name][4*i:], math.Float32bits(rapid.SampledFrom(from).Draw(d.t, "number")))
	}
	return w
}

// emit adds a call if the operator table accepts it, and records the known
// range of its results.
func (d *drawer) emit(b bound, name string, attrs op.Attrs, results int, args ...*ir.Value) []*ir.Value {
	return d.emitCall(b, &ir.Call{Op: op.Builtin().Lookup(name), Attrs: sorted(attrs), Results: make([]*ir.Value, results)}, args...)
}

func sorted(attrs op.Attrs) op.Attrs {
	out, err := op.NewAttrs(attrs...)
	if err != nil {
		panic(err)
	}
	return out
}

func (d *drawer) emitCall(b bound, c *ir.Call, args ...*ir.Value) []*ir.Value {
	for _, a := range args {
		c.Args = append(c.Args, ir.Operand{Value: a})
	}
	sig := c.Sig(d.known)
	if err := op.InferTypes(sig); err != nil {
		return nil
	}
	for _, t := range sig.Results {
		if !t.IsStatic() || t.Shape.NumElements() > 4096 {
			return nil
		}
	}
	if b.size > exactly {
		b.frac = true
	}
	if b.fusible && b.frac {
		b.off = max(b.off, 1e-5*b.size)
	}
	for i, t := range sig.Results {
		v := d.program.NewValue(ir.Result, "", t)
		v.Def, v.Index = c, i
		c.Results[i] = v
		d.visible = append(d.visible, v)
		d.bounds[v] = b
	}
	d.block.Calls = append(d.block.Calls, c)
	return c.Results
}

func attr(name string, value any) op.Attr { return op.Attr{Name: name, Value: value} }

func (d *drawer) call(depth int) {
	x := d.recent()
	if x.Type.DType != dtype.F32 {
		d.emit(d.bounds[x], "cast", op.Attrs{attr("to", dtype.F32)}, 1, x)
		return
	}
	switch {
	case d.parts && !d.one(3):
		d.partCall()
		return
	case d.boxes && !d.one(3):
		d.boxCall()
		return
	}
	kind := d.n(0, 17)
	if d.inLoop && kind >= 8 && kind <= 12 {
		kind -= 8 // no convolution: how far it may be off would grow with every round
	}
	switch kind {
	case 0, 1:
		d.unary(x)
	case 2, 3, 4:
		d.binary(x)
	case 5, 6, 7:
		d.move(x)
	case 8, 9, 10, 11, 12:
		d.network(x)
	case 13:
		d.reduce(x)
	case 14:
		d.choose(x)
	case 15:
		d.dynamic(depth)
	case 16:
		if depth < 2 {
			d.loop(depth)
		}
	default:
		if depth < 2 {
			d.branch(depth)
		}
	}
}

// saturate is the bound of a value between -1 and 1 that is no integer. Where
// the operand is fusible, so is it.
func saturate(b bound) bound {
	return bound{size: 1, off: min(b.off, 1), frac: true, fusible: b.fusible}
}

// saturated tells whether the values may be those of a sigmoid.
func (b bound) saturated() bool { return b.frac && b.size <= 1 }

func (d *drawer) unary(x *ir.Value) []*ir.Value {
	b := d.bounds[x]
	switch d.n(0, 5) {
	case 0:
		return d.emit(saturate(b), rapid.SampledFrom([]string{"tanh", "sigmoid"}).Draw(d.t, "saturating"), nil, 1, x)
	case 1:
		b.frac = b.frac || b.size > 0
		return d.emit(b, "leaky_relu", op.Attrs{attr("alpha", 0.25)}, 1, x)
	}
	return d.emit(b, rapid.SampledFrom([]string{"neg", "relu", "relu", "abs", "identity"}).Draw(d.t, "unary"), nil, 1, x)
}

func (d *drawer) binary(x *ir.Value) []*ir.Value {
	var y *ir.Value
	switch d.n(0, 3) {
	case 0:
		y = d.constantFor(x)
	default:
		y = d.like(x, func(y *ir.Value) bool {
			return y.Type.DType == dtype.F32 && (y.Type == x.Type || y.Type.Shape.NumElements() == 1 || y.Type.Shape.Rank() < x.Type.Shape.Rank())
		})
	}
	if d.one(2) {
		x, y = y, x
	}
	a, b := d.bounds[x], d.bounds[y]
	sum := bound{a.size + b.size, a.off + b.off, a.frac || b.frac, a.fusible || b.fusible}
	switch name := rapid.SampledFrom([]string{"add", "add", "add", "sub", "mul", "max", "min", "sum"}).Draw(d.t, "binary"); name {
	case "mul":
		if a.size*b.size > 1<<30 {
			return nil
		}
		if a.saturated() || b.saturated() {
			if d.inLoop {
				return nil
			}
			sum.fusible = true // swish rounds once where sigmoid and mul round twice
		}
		return d.emit(bound{a.size * b.size, a.off*b.size + b.off*a.size, sum.frac, sum.fusible}, "mul", nil, 1, x, y)
	default:
		return d.emit(sum, name, nil, 1, x, y)
	}
}

// constantFor makes an operand that lines up with the channels of x, or a
// scalar.
func (d *drawer) constantFor(x *ir.Value) *ir.Value {
	rank := x.Type.Shape.Rank()
	if rank < 3 || d.one(4) {
		return d.floats()
	}
	dims := make([]int, rank-d.n(0, 1))
	for i := range dims {
		dims[i] = 1
	}
	dims[len(dims)-rank+1] = x.Type.Shape.Size(1)
	return d.floats(dims...)
}

func (d *drawer) move(x *ir.Value) []*ir.Value {
	b, s := d.bounds[x], x.Type.Shape
	rank := s.Rank()
	axis := d.n(0, max(0, rank-1))
	at := func(lo, hi int) *ir.Value { return d.ints(d.i64(lo, hi)) }
	switch d.n(0, 9) {
	case 0:
		return d.emit(b, "reshape", nil, 1, x, d.ints(rapid.SampledFrom([][]int64{{-1}, {0, -1}, {2, -1}, {1, 2, -1}, {1, 2, -1, 1}, {-1, 4, 1}}).Draw(d.t, "target")...))
	case 1:
		if d.one(2) {
			return d.emit(b, "squeeze", nil, 1, x)
		}
		return d.emit(b, "unsqueeze", nil, 1, x, at(0, rank))
	case 2:
		return d.emit(b, "flatten", op.Attrs{attr("axis", int64(axis))}, 1, x)
	case 3:
		perm := make([]int64, rank)
		for i, p := range rapid.Permutation(rangeOf(rank)).Draw(d.t, "perm") {
			perm[i] = int64(p)
		}
		return d.emit(b, "transpose", op.Attrs{attr("perm", perm)}, 1, x)
	case 4:
		return d.emit(b, "slice", nil, 1, x, at(-3, 3), at(-2, 6), d.ints(int64(axis)), d.ints(rapid.SampledFrom([]int64{1, 1, 1, 2, -1}).Draw(d.t, "step")))
	case 5:
		return d.emit(b, "split", op.Attrs{attr("axis", int64(axis)), attr("num_outputs", int64(2))}, 2, x)
	case 6:
		y := d.like(x, sameType(x))
		c := d.bounds[y]
		return d.emit(bound{max(b.size, c.size), max(b.off, c.off), b.frac || c.frac, b.fusible || c.fusible}, "concat", op.Attrs{attr("axis", int64(axis))}, 1, x, y)
	case 7:
		dims := []int64{1, 2, 1, 1, 1, 1}
		return d.emit(b, "expand", nil, 1, x, d.ints(dims[:d.n(1, 4)]...))
	case 8:
		return d.emit(b, "pad", nil, 1, x, d.ints(d.list(2*rank, 0, 1)...))
	default:
		if s.NumElements() == 0 {
			return nil
		}
		return d.emit(b, "gather", op.Attrs{attr("axis", int64(axis))}, 1, x, d.ints(d.list(d.n(1, 3), 0, 0)...))
	}
}

func rangeOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (d *drawer) reduce(x *ir.Value) []*ir.Value {
	b := d.bounds[x]
	n := float64(x.Type.Shape.NumElements())
	axes := d.ints(d.i64(0, max(0, x.Type.Shape.Rank()-1)))
	switch d.n(0, 3) {
	case 0:
		return d.emit(bound{b.size * n, b.off * n, b.frac, b.fusible}, "reduce_sum", op.Attrs{attr("keepdims", d.i64(0, 1))}, 1, x, axes)
	case 1:
		return d.emit(b, "reduce_max", op.Attrs{attr("keepdims", d.i64(0, 1))}, 1, x, axes)
	case 2:
		return d.emit(saturate(b), "softmax", op.Attrs{attr("axis", int64(-1))}, 1, x)
	default:
		size := b.size * b.size * n
		if size > 1<<30 {
			return nil
		}
		return d.emit(bound{size, 2 * b.off * b.size * n, b.frac, b.fusible}, "matmul", nil, 1, x, d.like(x, func(y *ir.Value) bool {
			return y.Type.DType == dtype.F32 && y.Type.Shape.Rank() > 0 && d.bounds[y].size <= b.size && d.bounds[y].off <= b.off && !d.bounds[y].frac && !d.bounds[y].fusible
		}))
	}
}

// choose draws what decides by a value: only where fused and unfused agree
// to the bit.
func (d *drawer) choose(x *ir.Value) []*ir.Value {
	y := d.like(x, sameType(x))
	b, c := d.bounds[x], d.bounds[y]
	if b.off != 0 || c.off != 0 {
		return nil
	}
	if d.one(3) && !b.frac {
		return d.emit(b, "cast", op.Attrs{attr("to", rapid.SampledFrom([]dtype.DType{dtype.F64, dtype.I32}).Draw(d.t, "type"))}, 1, x)
	}
	cond := d.emit(bound{}, rapid.SampledFrom([]string{"greater", "less"}).Draw(d.t, "comparison"), nil, 1, x, y)
	if cond == nil {
		return nil
	}
	d.visible = d.visible[:len(d.visible)-1]
	return d.emit(bound{size: max(b.size, c.size), frac: b.frac || c.frac, fusible: b.fusible || c.fusible}, "where", nil, 1, cond[0], x, y)
}

// network draws what convolutional networks are made of.
func (d *drawer) network(x *ir.Value) []*ir.Value {
	b, s := d.bounds[x], x.Type.Shape
	spatial := s.Rank() - 2
	if spatial < 1 {
		x = d.like(x, func(y *ir.Value) bool { return y.Type.DType == dtype.F32 && y.Type.Shape.Rank() > 2 })
		if b, s = d.bounds[x], x.Type.Shape; s.Rank() < 3 {
			return nil
		}
		spatial = s.Rank() - 2
	}
	if spatial > 3 || s.NumElements() == 0 {
		return nil // more than the kernels have, or nothing
	}
	switch d.n(0, 7) {
	case 0, 1, 2, 3:
		return d.conv(x, spatial)
	case 4:
		if b.size > 1<<20 {
			return nil
		}
		c := s.Size(1)
		return d.emit(bound{16*b.size + 20, 16 * b.off, b.frac, b.fusible}, "batch_normalization", op.Attrs{attr("epsilon", 0.0)}, 1,
			x, d.chosen(c, 1, 2, -1, 4), d.floats(c), d.chosen(c, -2, 0, 1), d.chosen(c, 1, 4, 0.25, 0.0625))
	case 5, 6:
		attrs := op.Attrs{attr("kernel_shape", d.list(spatial, 1, 3)), attr("strides", d.list(spatial, 1, 2)), attr("ceil_mode", d.i64(0, 1))}
		if d.one(2) {
			attrs = append(attrs, attr("pads", d.list(2*spatial, 0, 1)))
		} else if d.one(3) {
			attrs = append(attrs, attr("auto_pad", "SAME_UPPER"))
		}
		if d.one(3) {
			b.frac = true
			return d.emit(b, "average_pool", append(attrs, attr("count_include_pad", d.i64(0, 1))), 1, x)
		}
		return d.emit(b, "max_pool", attrs, 1, x)
	default:
		b.frac = true
		return d.emit(b, "global_average_pool", nil, 1, x)
	}
}

// conv draws a convolution and often what may be fused with it.
func (d *drawer) conv(x *ir.Value, spatial int) []*ir.Value {
	c := x.Type.Shape.Size(1)
	group := rapid.SampledFrom([]int{1, 1, 2, c}).Draw(d.t, "group")
	if c%group != 0 {
		group = 1
	}
	b := d.bounds[x]
	kernel, taps := make([]int, spatial), c/group
	pads := make([]int64, 2*spatial)
	for i := range kernel {
		kernel[i] = rapid.SampledFrom([]int{1, 2, 3, 3}).Draw(d.t, "kernel")
		taps *= kernel[i]
		if !d.one(4) {
			pads[i], pads[spatial+i] = int64((kernel[i]-1)/2), int64(kernel[i]/2)
		} else {
			pads[i], pads[spatial+i] = d.i64(0, 2), d.i64(0, 2)
		}
	}
	out := bound{4*b.size*float64(taps) + 4, 4 * b.off * float64(taps), b.frac, true}
	if out.size > 1<<30 {
		return nil
	}
	args := []*ir.Value{x, d.floats(append([]int{c, c / group}, kernel...)...)}
	if d.one(2) {
		args = append(args, d.floats(c))
	}
	attrs := op.Attrs{attr("group", int64(group)), attr("pads", pads)}
	if d.one(4) {
		attrs = append(attrs, attr("strides", d.list(spatial, 1, 2)))
	}
	if d.one(6) {
		attrs = append(attrs, attr("dilations", d.list(spatial, 1, 2)))
	}
	y := d.emit(out, "conv", attrs, 1, args...)
	for range d.n(0, 2) {
		if y == nil {
			break
		}
		switch d.n(0, 2) {
		case 0:
			y = d.unary(y[0])
		case 1:
			y = d.binary(y[0])
		default:
			y = d.network(y[0])
		}
	}
	return y
}

// branch draws an `if` whose condition is an input's, or is computed.
func (d *drawer) branch(depth int) []*ir.Value {
	x := d.recent()
	if x.Type.DType != dtype.F32 || d.bounds[x].off != 0 || x.Type.Shape.NumElements() == 0 {
		return nil
	}
	first := d.emit(bound{}, "reshape", nil, 1, x, d.ints(-1))
	first = d.emit(bound{}, "gather", nil, 1, first[0], d.ints(d.i64(0, x.Type.Shape.NumElements()-1)))
	cond := d.emit(bound{}, "greater", nil, 1, first[0], d.floats())
	d.visible = d.visible[:len(d.visible)-3]
	of := make([]*ir.Value, d.n(1, 2))
	for i := range of {
		of[i] = d.recent()
	}
	bounds := make([]bound, len(of))
	c := &ir.Call{Op: op.Builtin().Lookup("if"), Results: make([]*ir.Value, len(of)), Regions: []*ir.Block{{}, {}}}
	for _, r := range c.Regions {
		d.inRegion(r, 1, func() {
			for range d.n(0, 4) {
				d.call(depth + 1)
			}
			for i, x := range of {
				y := d.like(x, sameType(x))
				r.Results = append(r.Results, y)
				b, was := d.bounds[y], bounds[i]
				bounds[i] = bound{max(b.size, was.size), max(b.off, was.off), b.frac || was.frac, b.fusible || was.fusible}
			}
		})
	}
	results := d.emitCall(bound{}, c, cond[0])
	for i, r := range results {
		d.bounds[r] = bounds[i]
	}
	return results
}

// loop draws a loop that carries one or two values and stacks one or none.
// Its values, of any magnitude, must agree to the last bit: the same kernels
// compute them.
func (d *drawer) loop(depth int) []*ir.Value {
	visible, inLoop := d.visible, d.inLoop
	var exact []*ir.Value
	for _, v := range visible {
		if b := d.bounds[v]; !b.fusible && b.off == 0 && v.Type.DType == dtype.F32 {
			exact = append(exact, v)
		}
	}
	if len(exact) == 0 {
		return nil
	}
	rounds := d.i64(0, 3)
	limit := d.ints(rounds)
	limit.Type.Shape = shape.Scalar()
	args, body := []*ir.Value{limit, nil}, &ir.Block{}
	param := func(t op.Type) *ir.Value {
		v := d.program.NewValue(ir.Param, "", t)
		v.Name, v.Index = fmt.Sprintf("p%d_%d", depth, v.ID), len(body.Params)
		body.Params = append(body.Params, v)
		return v
	}
	param(op.Type{DType: dtype.I64, Shape: shape.Scalar()})
	again := param(op.Type{DType: dtype.Bool, Shape: shape.Scalar()})
	any := bound{size: 1 << 40, frac: true}
	d.visible, d.inLoop = exact, true
	d.inRegion(body, int(max(rounds, 1)), func() {
		for range d.n(1, 2) {
			x := rapid.SampledFrom(exact).Draw(d.t, "carried")
			args = append(args, x)
			p := param(x.Type)
			d.visible, d.bounds[p] = append(d.visible, p), any
		}
		for range d.n(0, 5) {
			d.call(depth + 1)
		}
		body.Results = []*ir.Value{again}
		for _, x := range args[2:] {
			body.Results = append(body.Results, d.like(x, sameType(x)))
		}
		if d.one(2) {
			body.Results = append(body.Results, d.recent())
		}
	})
	d.visible, d.inLoop = visible, inLoop
	c := &ir.Call{Op: op.Builtin().Lookup("loop"), Results: make([]*ir.Value, len(body.Results)-1), Regions: []*ir.Block{body}}
	return d.emitCall(any, c, args...)
}
