package randomprogram_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// TestRandomParts draws programs that put values together and take them apart:
// nested concats, values that are parts of several results, parts that are
// overwritten, read again or returned. Most parts are computed in place.
func TestRandomParts(t *testing.T) {
	seen := forRandom(t, 1000, func(t *rapid.T, pool *compute.Pool, seen map[string]int) *ir.Program {
		d := drawParts(t)
		d.countParts(t, seen)
		d.compare(t, pool, seen)
		return d.program
	})
	for _, what := range []string{"part", "nested part", "shared part", "part of an output", "copied part", "part in a branch or loop"} {
		if seen[what] == 0 && !testing.Short() {
			t.Errorf("got no program with a %s, want some", what)
		}
	}
}

// drawParts draws a program of values with one row of several channels.
func drawParts(t *rapid.T) *randomProgram {
	d := &drawer{t: t, block: &ir.Block{}, parts: true, dynamics: dynamics{doublings: 8, times: 1}}
	d.randomProgram = &randomProgram{program: &ir.Program{Name: "parts", Body: d.block}, weights: ir.WeightMap{}, bounds: map[*ir.Value]bound{}}
	width := d.n(1, 3)
	for i := range d.n(1, 3) {
		p := d.program.NewValue(ir.Param, fmt.Sprintf("p%d", i), op.Type{DType: dtype.F32, Shape: shape.MustOf(1, d.n(1, 20), width)})
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
		d.partCall()
	}
	for range d.n(1, 4) {
		d.block.Results = append(d.block.Results, d.recent())
	}
	if err := ir.VerifyKnown(d.program, ir.Known(d.weights)); err != nil {
		t.Fatalf("drawn: %v\n%s", err, d.program)
	}
	return d.randomProgram
}

func (d *drawer) partCall() {
	switch x := d.recent(); d.n(0, 12) {
	case 0, 1, 2, 3:
		d.concat(x)
	case 4, 5:
		d.emit(d.bounds[x], "split", op.Attrs{attr("axis", int64(1)), attr("num_outputs", int64(d.n(2, 3)))}, 2+d.n(0, 1), x)
	case 6, 7, 8:
		d.unary(x)
	case 9:
		d.binary(x)
	case 10:
		d.move(x)
	case 11:
		d.branch(0)
	default:
		d.loop(0)
	}
}

// concat puts some visible values together, and may take one of them twice.
func (d *drawer) concat(x *ir.Value) {
	args, b, most := []*ir.Value{x}, d.bounds[x], 96-x.Type.Shape.NumElements() // weights for more channels would take long to draw
	for range d.n(1, 3) {
		y := d.like(x, func(y *ir.Value) bool { return y.Type.DType == x.Type.DType })
		if most -= y.Type.Shape.NumElements(); most < 0 {
			break
		}
		c := d.bounds[y]
		b = bound{max(b.size, c.size), max(b.off, c.off), b.frac || c.frac, b.fusible || c.fusible}
		if d.one(2) {
			args = append(args, y)
		} else {
			args = append([]*ir.Value{y}, args...)
		}
	}
	d.emit(b, "concat", op.Attrs{attr("axis", int64(min(1, max(0, x.Type.Shape.Rank()-1))))}, 1, args...)
}

// countParts counts what the plan says of parts.
func (d *randomProgram) countParts(t *rapid.T, seen map[string]int) {
	e := d.prepare(t, map[string]int{})
	if e == nil {
		return
	}
	document, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	seen["arena"] += int(document.ArenaBytes)
	d.apart = true
	whole := d.prepare(t, map[string]int{})
	d.apart = false
	seen["arena if all parts are copied"] += int(whole.ArenaBytes)
	if whole.ArenaBytes < e.ArenaBytes {
		seen["larger arena"]++
	}
	results, parts := map[string]bool{}, map[string]int{}
	outputs := map[string]bool{}
	for _, v := range document.Values {
		outputs[v.Name] = v.Space == plan.SpaceOutput
	}
	for _, x := range document.InPlace {
		if x.Kind == plan.AliasPart {
			seen["part"]++
			seen["bytes in place"] += int(x.Bytes)
			parts[x.Of]++
			results[x.Value] = true
			if outputs[x.Value] {
				seen["part of an output"]++
			}
		}
	}
	for name, n := range parts {
		if results[name] {
			seen["nested part"]++
		}
		if n > 1 {
			seen["shared part"]++
		}
	}
	for _, x := range document.Declined {
		if x.Op == "concat" {
			seen["copied part"]++
			seen["bytes copied"] += int(x.Bytes)
			seen["copied: "+x.Reason]++
		}
	}
	e.Program.Walk(func(b *ir.Block, c *ir.Call) {
		if b != e.Program.Body && c.Op.Name == "concat" && results[c.Results[0].Name] {
			seen["part in a branch or loop"]++
		}
	})
}
