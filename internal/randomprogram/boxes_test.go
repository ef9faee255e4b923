package randomprogram_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// TestRandomBoxes draws programs that put values together and take them apart
// along any axis, and compute with what has strides then.
func TestRandomBoxes(t *testing.T) {
	seen := forRandom(t, 1000, func(t *rapid.T, pool *compute.Pool, seen map[string]int) *ir.Program {
		d := drawBoxes(t)
		d.countBoxes(t, seen)
		d.compare(t, pool, seen)
		return d.program
	})
	for _, what := range []string{"strided concat", "strided split", "strided slice", "strided pad", "strided reshape", "strided part of an output", "copied"} {
		if seen[what] == 0 && !testing.Short() {
			t.Errorf("got no program with a %s, want some", what)
		}
	}
	if in, out := seen["bytes in place"], seen["bytes copied that need not be"]; 20*out > in+out {
		t.Errorf("got %d bytes copied that could lie in place, and %d in place, want at most 5 of 100 copied", out, in)
	}
	if seen["without proof"]*100 > seen["programs"] {
		t.Errorf("got no proof of the strides of %d programs of %d, want at most one in a hundred", seen["without proof"], seen["programs"])
	}
}

// drawBoxes draws a program of values with a few short axes.
func drawBoxes(t *rapid.T) *randomProgram {
	d := &drawer{t: t, block: &ir.Block{}, boxes: true, dynamics: dynamics{doublings: 8, times: 1}}
	d.randomProgram = &randomProgram{leastMemory: true, program: &ir.Program{Name: "boxes", Body: d.block}, weights: ir.WeightMap{}, bounds: map[*ir.Value]bound{}}
	sizes := []int{d.n(1, 3), d.n(1, 4), d.n(1, 4), d.n(1, 3)}[:d.n(2, 4)]
	for i := range d.n(1, 3) {
		sizes[d.n(0, len(sizes)-1)] = d.n(1, 4)
		p := d.program.NewValue(ir.Param, fmt.Sprintf("p%d", i), op.Type{DType: dtype.F32, Shape: shape.MustOf(sizes...)})
		p.Index, p.Donated = i, d.one(3)
		d.open = append(d.open, 0)
		d.block.Params = append(d.block.Params, p)
		d.visible = append(d.visible, p)
		d.bounds[p] = bound{size: 4}
		for round := range d.inputs {
			d.inputs[round] = append(d.inputs[round], d.smallFloats(p.Type))
		}
	}
	for range d.n(2, 20) {
		if d.one(8) {
			d.call(0)
		} else {
			d.boxCall()
		}
	}
	for range d.n(1, 4) {
		d.block.Results = append(d.block.Results, d.recent())
	}
	if err := ir.VerifyKnown(d.program, ir.Known(d.weights)); err != nil {
		t.Fatalf("drawn: %v\n%s", err, d.program)
	}
	return d.randomProgram
}

// boxCall draws a call that makes boxes, or computes with them.
func (d *drawer) boxCall() {
	x := d.recent()
	if x.Type.DType != dtype.F32 {
		d.emit(d.bounds[x], "cast", op.Attrs{attr("to", dtype.F32)}, 1, x)
		return
	}
	b, rank := d.bounds[x], x.Type.Shape.Rank()
	axis := d.n(0, max(0, rank-1))
	switch d.n(0, 14) {
	case 0, 1, 2:
		d.concatAlong(x, axis)
	case 3, 4:
		d.emit(b, "split", op.Attrs{attr("axis", int64(axis)), attr("num_outputs", int64(d.n(2, 3)))}, 2+d.n(0, 1), x)
	case 5:
		d.emit(b, "slice", nil, 1, x, d.ints(d.i64(0, 2)), d.ints(d.i64(1, 5)), d.ints(int64(axis)))
	case 6:
		d.emit(b, "pad", nil, 1, x, d.ints(d.list(2*rank, 0, 1)...))
	case 7:
		d.emit(b, "reshape", nil, 1, x, d.ints(rapid.SampledFrom([][]int64{{-1}, {0, -1}, {0, 0, -1}, {2, -1}, {1, 0, -1}, {0, 1, -1}}).Draw(d.t, "target")...))
	case 8, 9, 10:
		d.unary(x)
	case 11:
		d.binary(x)
	case 12:
		d.reduce(x)
	case 13:
		d.stack(x)
	default:
		d.move(x)
	}
}

// stack takes the elements of a value along an axis, or of its transpose, as
// models do with queries, keys and values of one product, and puts some of them
// into another order.
func (d *drawer) stack(x *ir.Value) {
	b, rank := d.bounds[x], x.Type.Shape.Rank()
	if rank < 2 {
		return
	}
	transpose := func(x *ir.Value) *ir.Value {
		perm := make([]int64, x.Type.Shape.Rank())
		for i, p := range rapid.Permutation(rangeOf(len(perm))).Draw(d.t, "perm") {
			perm[i] = int64(p)
		}
		if made := d.emit(b, "transpose", op.Attrs{attr("perm", perm)}, 1, x); made != nil {
			return made[0]
		}
		return x
	}
	if !d.one(4) {
		x = transpose(x)
	}
	axis := d.n(0, rank-1)
	n := x.Type.Shape.Size(axis)
	along := op.Attrs{attr("axis", int64(axis))}
	var made []*ir.Value
	if n > 0 && d.one(2) {
		for _, r := range d.emit(b, "split", along.With("num_outputs", int64(n)), n, x) {
			made = append(made, d.emit(b, "squeeze", nil, 1, r, d.ints(int64(axis)))...)
		}
	} else {
		for i := range n {
			data := words(8, 0)
			data[0] = byte(i)
			index := d.weight(op.Type{DType: dtype.I64, Shape: shape.MustOf()}, data, bound{})
			made = append(made, d.emit(b, "gather", along, 1, x, index)...)
		}
	}
	for _, v := range made {
		if d.one(2) {
			transpose(v)
		}
	}
}

// concatAlong puts visible values together that differ along one axis alone,
// and results of functions of x.
func (d *drawer) concatAlong(x *ir.Value, axis int) {
	args, b := []*ir.Value{x}, d.bounds[x]
	for range d.n(1, 3) {
		y := d.like(x, func(y *ir.Value) bool {
			if y.Type.DType != x.Type.DType || y.Type.Shape.Rank() != x.Type.Shape.Rank() {
				return false
			}
			for i, n := range y.Type.Shape.Sizes() {
				if i != axis && n != x.Type.Shape.Size(i) {
					return false
				}
			}
			return true
		})
		if y == x && !d.one(4) {
			made := d.unary(x)
			if made == nil {
				continue
			}
			y = made[0]
		}
		c := d.bounds[y]
		b = bound{max(b.size, c.size), max(b.off, c.off), b.frac || c.frac, b.fusible || c.fusible}
		if d.one(2) {
			args = append(args, y)
		} else {
			args = append([]*ir.Value{y}, args...)
		}
	}
	d.emit(b, "concat", op.Attrs{attr("axis", int64(axis))}, 1, args...)
}

// movers are the operators of which operands or results are boxes.
var movers = []string{"concat", "split", "slice", "pad"}

// hasToBeCopied are the reasons for copies that every plan makes: a value lies
// in one place only, an output in a buffer of its own, an input where the
// caller has it, and some kernels take no strides.
var hasToBeCopied = []string{"an output needs", "another part of the same bytes", "a part of others", "not donated", "more than the input's",
	"its bytes are needed for", "needs it in one piece"}

// countBoxes counts what the plan says of values with strides.
func (d *randomProgram) countBoxes(t *rapid.T, seen map[string]int) {
	e := d.prepare(t, map[string]int{})
	if e == nil {
		return
	}
	document, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	d.apart = true
	whole := d.prepare(t, map[string]int{})
	d.apart = false
	seen["arena"] += int(document.ArenaBytes)
	seen["arena if all is copied"] += int(whole.ArenaBytes)
	if most := modeltest.Must(whole.Bytes()).LowerBound; document.LowerBoundBytes > most {
		t.Fatalf("got %d bytes that live at one time, want at most %d as where all is copied\n%s", document.LowerBoundBytes, most, e.Program)
	}
	if whole.ArenaBytes < e.ArenaBytes {
		seen["larger arena"]++
	}
	values := map[string]*plan.Value{}
	for i := range document.Values {
		values[document.Values[i].Name] = &document.Values[i]
	}
	for _, x := range document.InPlace {
		name, part := document.Steps[x.Call].Op, values[x.Value]
		if x.Kind == plan.AliasPart {
			part = values[x.Of]
		}
		if slices.Contains(movers, name) {
			seen["bytes in place"] += int(x.Bytes)
		}
		if part.Strides == nil {
			continue
		}
		if seen["strided "+name]++; part.Space == plan.SpaceOutput {
			seen["strided part of an output"]++
		}
	}
	seen["programs"]++
	if slices.ContainsFunc(document.Declined, func(x plan.Declined) bool { return strings.Contains(x.Reason, "no proof") }) {
		seen["without proof"]++
	}
	for _, x := range document.Declined {
		if slices.Contains(movers, x.Op) {
			seen["copied"]++
			seen["bytes copied"] += int(x.Bytes)
			if !slices.ContainsFunc(hasToBeCopied, func(reason string) bool { return strings.Contains(x.Reason, reason) }) {
				seen["bytes copied that need not be"] += int(x.Bytes)
				seen["bytes copied, "+x.Reason] += int(x.Bytes)
			}
		}
	}
}
