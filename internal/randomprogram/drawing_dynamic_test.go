package randomprogram_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// dynamics is a drawer's knowledge of values whose size depends on data, and
// of values computed from them. They are exact: integers, or floats that no
// sum rounds.
type dynamics struct {
	picked    []*ir.Value // visible
	doublings int         // how often values may still double in size
	times     int         // how often the block that is drawn may run
}

// spend takes n doublings for a call that makes a value up to 2^n times as
// large, if they are left.
func (d *drawer) spend(n int) bool {
	n *= d.times
	if d.doublings < n {
		return false
	}
	d.doublings -= n
	return true
}

// dynamic draws a value whose size depends on data, or a call with such
// values, which goes on to others: a chain of views and results in place, a
// branch, a loop, a number that static calls go on with.
func (d *drawer) dynamic(depth int) {
	if len(d.picked) == 0 || d.one(6) {
		if !d.pick(d.recent()) {
			return
		}
	}
	for range d.n(1, 4) {
		x := d.pickedValue()
		switch kind := d.n(0, 15); {
		case kind < 8:
			d.dynamicMove(x)
		case kind < 10:
			d.dynamicMath(x)
		case kind == 10:
			d.read(x)
		case kind < 13:
			if depth < 3 {
				d.dynamicBranch(x, depth)
			}
		default:
			if depth < 3 {
				d.dynamicLoop(depth)
			}
		}
	}
}

// pick draws the places at which a value is not zero. Their size has a bound.
func (d *drawer) pick(x *ir.Value) bool {
	if b := d.bounds[x]; b.fusible || b.off > 0 {
		return false
	}
	return d.give("non_zero", nil, 1, x) != nil
}

func (d *drawer) pickedValue() *ir.Value {
	if d.one(3) {
		return rapid.SampledFrom(d.picked).Draw(d.t, "picked")
	}
	return d.picked[max(0, len(d.picked)-1-d.n(0, 2))]
}

// pickedLike draws a value of an element type, x if there is no other.
func (d *drawer) pickedLike(x *ir.Value) *ir.Value {
	for range 4 {
		if y := d.pickedValue(); y.Type.DType == x.Type.DType {
			return y
		}
	}
	return x
}

// give adds a call whose results may have any type, if the operator table
// accepts it.
func (d *drawer) give(name string, attrs op.Attrs, results int, args ...*ir.Value) []*ir.Value {
	return d.giveCall(&ir.Call{Op: op.Builtin().Lookup(name), Attrs: sorted(attrs), Results: make([]*ir.Value, results)}, args...)
}

func (d *drawer) giveCall(c *ir.Call, args ...*ir.Value) []*ir.Value {
	for _, a := range args {
		c.Args = append(c.Args, ir.Operand{Value: a})
	}
	if c.Op.Loop {
		if err := ir.InferLoop(c, d.known); err != nil {
			return nil
		}
	}
	sig := c.Sig(d.known)
	if err := op.InferTypes(sig); err != nil {
		return nil
	}
	for i, t := range sig.Results {
		if len(c.Regions) > 0 && d.one(8) {
			continue // it is unused
		}
		v := d.program.NewValue(ir.Result, "", t)
		v.Def, v.Index = c, i
		c.Results[i] = v
		d.bounds[v] = bound{size: 1 << 40, frac: true}
		d.picked = append(d.picked, v)
	}
	d.block.Calls = append(d.block.Calls, c)
	return c.Results
}

// dynamicMove draws what moves elements: mostly views, whole or at an offset.
func (d *drawer) dynamicMove(x *ir.Value) {
	at := func(lo, hi int) *ir.Value { return d.ints(d.i64(lo, hi)) }
	switch d.n(0, 9) {
	case 0:
		d.give("reshape", nil, 1, x, d.ints(rapid.SampledFrom([][]int64{{-1}, {-1}, {1, -1}, {-1, 1}}).Draw(d.t, "target")...))
	case 1:
		d.give("transpose", nil, 1, x)
	case 2, 3, 4:
		d.give("slice", nil, 1, x, at(0, 3), at(1, 9), d.ints(0), d.ints(rapid.SampledFrom([]int64{1, 1, 1, 1, 2, -1}).Draw(d.t, "step")))
	case 5:
		d.give("split", op.Attrs{attr("axis", int64(0)), attr("num_outputs", int64(2))}, 2, x)
	case 6:
		d.give("unsqueeze", nil, 1, x, at(0, 1))
	case 7:
		y := x
		if d.one(4) {
			y = d.pickedLike(x) // other sizes may not fit
		}
		if d.spend(1) {
			d.give("concat", op.Attrs{attr("axis", int64(0))}, 1, x, y)
		}
	case 8:
		d.give(rapid.SampledFrom([]string{"identity", "copy"}).Draw(d.t, "same"), nil, 1, x)
	default:
		if d.spend(2) {
			d.give("non_zero", nil, 1, x)
		}
	}
}

// dynamicMath draws what computes element by element, in place where it may.
func (d *drawer) dynamicMath(x *ir.Value) {
	switch d.n(0, 5) {
	case 0:
		d.give("cast", op.Attrs{attr("to", rapid.SampledFrom([]dtype.DType{dtype.I64, dtype.F32, dtype.I32}).Draw(d.t, "type"))}, 1, x)
	case 1:
		if y := d.pickedLike(x); y.Type == x.Type || d.one(8) && d.spend(4) {
			d.give("max", nil, 1, x, y) // mostly of the same size: others that do not broadcast are refused
		}
	case 2:
		d.give("abs", nil, 1, x)
	case 3:
		d.give("max", nil, 1, x, x)
	default:
		d.give("neg", nil, 1, x)
	}
}

// read draws a number that is made of a value, for static calls to go on with.
func (d *drawer) read(x *ir.Value) {
	n := d.number(x)
	if n == nil {
		return
	}
	d.emit(bound{size: exactly}, "cast", op.Attrs{attr("to", dtype.F32)}, 1, n)
}

// number draws a small integer that is made of a value: what its size or its
// elements leave.
func (d *drawer) number(x *ir.Value) *ir.Value {
	picked := d.picked
	defer func() { d.picked = picked }()
	n := d.give("size", nil, 1, x)
	if d.one(2) && x.Type.DType != dtype.F32 {
		if sum := d.give("cast", op.Attrs{attr("to", dtype.I64)}, 1, x); sum != nil {
			if sum = d.give("reduce_sum", op.Attrs{attr("keepdims", int64(0))}, 1, sum[0]); sum != nil {
				n = sum
			}
		}
	}
	four := d.ints(4)
	four.Type.Shape = shape.Scalar()
	if n = d.give("mod", nil, 1, n[0], four); n == nil {
		return nil
	}
	return n[0]
}

// condition draws a condition that is made of a value.
func (d *drawer) condition(x *ir.Value) *ir.Value {
	picked := d.picked
	defer func() { d.picked = picked }()
	n, limit := d.number(x), d.ints(d.i64(0, 2))
	if limit.Type.Shape = shape.Scalar(); n == nil {
		return nil
	}
	c := d.give("greater", nil, 1, n, limit)
	if c == nil {
		return nil
	}
	return c[0]
}

// inRegion draws a region. What it makes is not visible after it.
func (d *drawer) inRegion(b *ir.Block, times int, draw func()) {
	outer, visible, picked, before := d.block, len(d.visible), len(d.picked), d.times
	d.block, d.times = b, before*times
	draw()
	d.block, d.times = outer, before
	d.visible, d.picked = d.visible[:visible:visible], d.picked[:picked:picked]
}

// few draws calls of a region.
func (d *drawer) few(depth int) {
	for range d.n(0, 3) {
		if d.one(4) {
			d.call(depth)
		} else {
			d.dynamic(depth)
		}
	}
}

// dynamicBranch draws an `if` that yields values made in its regions, values
// from outside, one value twice, and views.
func (d *drawer) dynamicBranch(x *ir.Value, depth int) {
	cond := d.condition(x)
	if cond == nil {
		return
	}
	of := make([]*ir.Value, d.n(1, 3))
	sliced := make([]bool, len(of)) // each region yields a part of it, which may be of another size
	for i := range of {
		of[i] = d.pickedValue()
		if x := d.recent(); d.one(3) && !d.bounds[x].fusible && d.bounds[x].off == 0 {
			of[i], sliced[i] = x, true
		}
	}
	c := &ir.Call{Op: op.Builtin().Lookup("if"), Results: make([]*ir.Value, len(of)), Regions: []*ir.Block{{}, {}}}
	for _, r := range c.Regions {
		d.inRegion(r, 1, func() {
			d.few(depth + 1)
			for i, x := range of {
				y := x
				if !sliced[i] {
					y = d.pickedLike(x)
				} else if part := d.give("slice", nil, 1, x, d.ints(d.i64(0, 1)), d.ints(d.i64(1, 4)), d.ints(0)); part != nil {
					y = d.give(rapid.SampledFrom([]string{"identity", "neg", "copy"}).Draw(d.t, "of the part"), nil, 1, part[0])[0]
				}
				r.Results = append(r.Results, y)
			}
		})
	}
	d.giveCall(c, cond)
}

// dynamicLoop draws a loop that carries values whose size may change, one of
// them twice, or in the place of another one, and stacks some.
func (d *drawer) dynamicLoop(depth int) {
	body, rounds, inLoop := &ir.Block{}, d.n(0, 3), d.inLoop
	limit := d.ints(int64(rounds))
	limit.Type.Shape = shape.Scalar()
	if d.one(3) {
		if n := d.number(d.pickedValue()); n != nil {
			limit, rounds = n, 3
		}
	}
	stacks := d.n(0, 2)
	if !d.spend(2 * stacks) {
		stacks = 0
	}
	args := []*ir.Value{limit, nil}
	param := func(t op.Type) *ir.Value {
		v := d.program.NewValue(ir.Param, "", t)
		v.Name, v.Index = fmt.Sprintf("q%d_%d", depth, v.ID), len(body.Params)
		body.Params = append(body.Params, v)
		return v
	}
	round := param(op.Type{DType: dtype.I64, Shape: shape.Scalar()})
	again := param(op.Type{DType: dtype.Bool, Shape: shape.Scalar()})
	d.inLoop = true
	d.inRegion(body, max(rounds, 1), func() {
		for range d.n(1, 3) {
			x := d.pickedValue()
			args = append(args, x)
		}
		for _, x := range args[ir.LoopArgs:] {
			p := param(x.Type.Open())
			d.bounds[p] = bound{size: 1 << 40, frac: true}
			d.picked = append(d.picked, p)
		}
		d.few(depth + 1)
		body.Results = []*ir.Value{again}
		if d.one(4) { // it may end before the limit
			last := d.ints(d.i64(0, 2))
			last.Type.Shape = shape.Scalar()
			if c := d.give("less", nil, 1, round, last); c != nil {
				body.Results[0] = c[0]
				d.picked = d.picked[:len(d.picked)-1]
			}
		}
		for _, x := range args[ir.LoopArgs:] {
			body.Results = append(body.Results, d.pickedLike(x))
		}
		for range stacks {
			body.Results = append(body.Results, d.pickedValue())
		}
	})
	d.inLoop = inLoop
	d.giveCall(&ir.Call{Op: op.Builtin().Lookup("loop"), Results: make([]*ir.Value, len(body.Results)-1), Regions: []*ir.Block{body}}, args...)
}
