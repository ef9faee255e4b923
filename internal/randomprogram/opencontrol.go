package randomprogram

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// inRegion draws a region. What it makes is not visible after it.
func (d *opener) inRegion(r *ir.Block, draw func()) {
	was := *d
	d.block = r
	draw()
	*d = was
	d.visible, d.dims, d.numbers = d.visible[:len(d.visible):len(d.visible)], d.dims[:len(d.dims):len(d.dims)], d.numbers[:len(d.numbers):len(d.numbers)]
}

// condition draws a comparison of sizes, or of data that no kernel rounds in
// another way.
func (d *opener) condition(x *ir.Value) *ir.Value {
	if len(d.dims) > 0 && d.one(2) {
		c := d.emit(d.name("equal", "less"), nil, d.dims[d.n(0, len(d.dims)-1)], d.dim())
		return d.emit("squeeze", nil, c, d.ints(0))
	}
	if d.Rounded[x] {
		return nil
	}
	visible := d.visible
	r := d.emit("reduce_max", op.Attrs(nil).With("keepdims", int64(0)), x)
	d.visible = visible
	return d.emit("greater", nil, r, d.number(1))
}

// branch draws an `if` whose condition is a comparison of sizes, or of data.
// Its regions return values of one type, or, where sizes may depend on data, of
// two.
func (d *opener) branch(x *ir.Value, depth int) {
	cond := d.condition(x)
	if cond == nil {
		return
	}
	c := &ir.Call{Op: op.Builtin().Lookup("if"), Results: make([]*ir.Value, d.pick(1, 1, 2)), Regions: []*ir.Block{{}, {}}}
	two := d.control && d.one(3)
	for _, r := range c.Regions {
		d.inRegion(r, func() {
			for range d.n(0, 3) {
				d.call(depth + 1)
			}
			for range c.Results {
				last := x
				for _, v := range d.visible {
					if v.Type == x.Type || two && rank(v) == rank(x) {
						if last == x || d.one(2) {
							last = v
						}
					}
				}
				r.Results = append(r.Results, last)
			}
		})
	}
	d.emitCall(c, cond)
}

// numbered draws a number that only a run knows: a parameter, or a value that
// is computed from data.
func (d *opener) numbered(x *ir.Value) {
	var n *ir.Value
	for _, p := range d.Program.Body.Params {
		if p.Type.DType == dtype.I64 && d.one(2) {
			n = p
			if size := p.Type.Shape.Size(0); size < 0 || size > 1 && d.one(3) {
				n = d.emit(d.name("reduce_max", "reduce_sum"), op.Attrs(nil).With("keepdims", int64(1)), n, d.ints(0))
			} else if size > 1 {
				n = d.emit("gather", along(0), n, d.ints(int64(d.n(0, size-1))))
			}
		}
	}
	if n == nil && !d.Rounded[x] {
		visible := d.visible
		r := d.emit("reduce_max", op.Attrs(nil).With("keepdims", int64(0)), x)
		n = d.emit("reshape", nil, d.emit("cast", op.Attrs(nil).With("to", dtype.I64), r), d.ints(1))
		d.visible = visible
	}
	if d.one(2) {
		n = d.emit("mod", nil, n, d.ints(int64(d.n(2, 6))))
	}
	if n == nil {
		return
	}
	d.numbers = append(d.numbers, n)
	switch d.n(0, 4) {
	case 0:
		d.emit("expand", nil, x, d.emit("concat", along(0), n, d.ints(1)))
	case 1:
		scalar := d.emit("squeeze", nil, n, d.ints(0))
		r := d.emit("range", nil, d.scalar(0), scalar, d.scalar(1))
		f := d.emit("cast", op.Attrs(nil).With("to", dtype.F32), r)
		d.emit("mul", nil, f, d.number(0.5))
	case 2:
		d.emit("slice", nil, x, d.ints(0), n, d.ints(d.axis(x)))
	case 3:
		d.emit("reshape", nil, x, d.emit("concat", along(0), d.ints(-1), n))
	}
}

// picked draws values whose size depends on data.
func (d *opener) picked(x *ir.Value) {
	if d.Rounded[x] || d.rounds > 4 {
		return
	}
	if d.one(2) {
		f := d.emit("cast", op.Attrs(nil).With("to", dtype.F32), d.emit("non_zero", nil, x))
		d.emit("reduce_sum", op.Attrs(nil).With("keepdims", int64(d.n(0, 1))), f, d.ints(int64(d.n(0, 1))))
		return
	}
	visible := d.visible
	flat := d.emit("reshape", nil, x, d.ints(-1))
	cond := d.emit("greater", nil, flat, d.number(float64(d.n(-1, 2))))
	d.visible = visible
	d.emit("compress", nil, x, cond)
}

// loop draws a loop. Its limit is a constant, a number of a run or a size; it
// carries values, of one type or growing ones, and stacks others. One kind
// reads a slice of a value in each round, as a scan does.
func (d *opener) loop(x *ir.Value, depth int) {
	if d.Rounded[x] || d.rounds > 4 || rank(x) == 0 {
		return
	}
	limit, rounds, scan := d.scalar(int64(d.n(0, 4))), 4, false
	switch n := d.dim(); d.n(0, 3) {
	case 0:
		if len(d.numbers) > 0 && d.one(2) {
			n = d.numbers[len(d.numbers)-1]
		}
		limit = d.emit("squeeze", nil, d.emit("mod", nil, n, d.ints(int64(d.n(2, 5)))), d.ints(0))
	case 1:
		limit, scan = d.emit("gather", along(0), d.emit("shape", nil, x), d.scalar(0)), true
		rounds, d.scans = 5, true // mostly
	}
	body, args := &ir.Block{}, []*ir.Value{limit, nil}
	param := func(t op.Type) *ir.Value {
		v := d.Program.NewValue(ir.Param, "", t)
		v.Name, v.Index = fmt.Sprintf("q%d", v.ID), len(body.Params)
		body.Params = append(body.Params, v)
		return v
	}
	round := param(op.Type{DType: dtype.I64, Shape: shape.Scalar()})
	again := param(op.Type{DType: dtype.Bool, Shape: shape.Scalar()})
	d.inRegion(body, func() {
		d.inLoop, d.rounds = true, d.rounds*rounds
		exact := d.visible[:0:0]
		for _, v := range d.visible {
			if !d.Rounded[v] {
				exact = append(exact, v)
			}
		}
		d.visible = exact
		var carried []*ir.Value
		for range d.n(0, 2) {
			carried = append(carried, d.recent())
		}
		grows := d.one(3)
		for _, v := range carried {
			t := v.Type
			if grows {
				t = t.Open()
			}
			args = append(args, v)
			d.visible = append(d.visible, param(t))
		}
		if scan {
			d.emit("gather", along(0), x, round)
		}
		for range d.n(0, 4) {
			d.call(depth + 1)
		}
		body.Results = []*ir.Value{d.goOn(again, round)}
		for i := range carried {
			body.Results = append(body.Results, d.next(body.Params[ir.LoopArgs+i], grows))
		}
		for range d.n(0, 2) {
			body.Results = append(body.Results, d.recent())
		}
	})
	if results := len(body.Results) - 1; results > 0 {
		d.emitCall(&ir.Call{Op: op.Builtin().Lookup("loop"), Results: make([]*ir.Value, results), Regions: []*ir.Block{body}}, args...)
	}
}

// goOn draws the condition under which a loop goes on.
func (d *opener) goOn(again, round *ir.Value) *ir.Value {
	if d.one(3) {
		if c := d.emit("less", nil, round, d.scalar(int64(d.n(0, 3)))); c != nil {
			return c
		}
	}
	return again
}

// next draws the value that a loop carries on in the place of p.
func (d *opener) next(p *ir.Value, grows bool) *ir.Value {
	if grows {
		if v := d.emit("concat", along(d.axis(p)), p, p); v != nil && d.one(2) {
			return v
		}
	}
	for i := len(d.visible) - 1; i >= 0; i-- {
		if v := d.visible[i]; v.Type == p.Type && !d.one(4) {
			return v
		}
	}
	return p
}
