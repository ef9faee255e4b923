package randomprogram_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// TestRandomInstances draws programs, specialises each for several sizes of its
// inputs, and compiles every final program: from the start, and, where its
// structure is that of one before, as an instance of that one. Both have one
// plan, but for the offsets in the arena, and compute the same bits, run in
// changing order in one slot.
func TestRandomInstances(t *testing.T) {
	for _, dynamic := range []bool{false, true} {
		seen := forRandom(t, 150, func(t *rapid.T, pool *compute.Pool, seen map[string]int) *ir.Program {
			d := drawRandom(t, dynamic)
			d.instances(t, pool, seen)
			return d.program
		})
		for _, what := range []string{"instance", "structure", "run", "zero", "in place", "if", "loop"} {
			if seen[what] == 0 && !testing.Short() {
				t.Errorf("dynamic %v: got no %s, want some", dynamic, what)
			}
		}
	}
}

// compiled is a program for one set of sizes, compiled from the start and as an
// instance.
type compiled struct {
	fresh, instance *exec.Executable
	inputs          [][]byte
}

func (d *randomProgram) instances(t *rapid.T, pool *compute.Pool, seen map[string]int) {
	loaded, constants := d.loadOpen(t)
	if loaded == nil {
		return
	}
	var structures []*exec.Executable
	var all []compiled
	for range 5 {
		if c, ok := d.sized(t, loaded, constants, &structures, seen); ok {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return
	}
	var slot exec.Slot
	defer slot.Release()
	for range 2 * len(all) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "run")]
		var own exec.Slot
		want, wantErr := c.run(t, &own, c.fresh, pool)
		own.Release()
		got, gotErr := c.run(t, &slot, c.instance, pool)
		seen["run"]++
		if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
			t.Fatalf("got the error %v, want %v\n%s", gotErr, wantErr, d.program)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("output %d: got % x, want % x as when compiled from the start\n%s", i, got[i], want[i], d.program)
			}
		}
	}
}

// loadOpen takes the program, with symbols for some sizes, through the passes
// of loading; nil where they refuse it.
func (d *randomProgram) loadOpen(t *rapid.T) (*ir.Program, *weights.Overlay) {
	p, constants := d.program.Clone(), &weights.Overlay{Base: d.weights}
	for i, v := range p.Body.Params {
		axes := d.open[i]
		if rapid.Bool().Draw(t, "open") {
			axes = 1<<v.Type.Shape.Rank() - 1
		}
		v.Type.Shape = opened(v.Type.Shape, axes)
	}
	c := &pass.Context{Program: p, Constants: constants, MaxFold: 1 << 10}
	if pass.Run(c, pass.Load, nil) != nil {
		return nil, nil
	}
	return p, constants
}

// sized compiles the program for drawn sizes, if they fit.
func (d *randomProgram) sized(t *rapid.T, loaded *ir.Program, constants *weights.Overlay, structures *[]*exec.Executable, seen map[string]int) (c compiled, ok bool) {
	p, sizes := loaded.Clone(), map[shape.Dim]int{}
	types := make([]op.Type, len(p.Body.Params))
	for i, v := range p.Body.Params {
		types[i] = v.Type
		list := make([]int, v.Type.Shape.Rank())
		for axis, dim := range v.Type.Shape.Dims() {
			n, static := dim.Size()
			if !static {
				if n, static = sizes[dim]; !static {
					own := d.program.Body.Params[i].Type.Shape.Size(axis)
					n = rapid.SampledFrom([]int{own, own, own + 1, 2 * own, 3 * own, 0, 1, 2, 3, 5, 7, 13}).Draw(t, "size")
					sizes[dim] = n
				}
			}
			list[axis] = n
		}
		s, err := shape.Of(list...)
		if err != nil || s.NumElements() > 1<<16 {
			return c, false
		}
		types[i].Shape = s
		data := make([]byte, sizeOf(types[i]))
		fillDrawn(types[i].DType, data, byte(7*len(sizes)+i))
		c.inputs = append(c.inputs, data)
	}
	table := &weights.Overlay{Base: constants}
	ctx := &pass.Context{Program: p, Constants: table, MaxFold: 1 << 10}
	if p.Bind(types...) != nil || pass.Run(ctx, pass.Specialise, nil) != nil || ir.VerifyKnown(p, ir.Known(table)) != nil {
		return c, false
	}
	options := exec.Options{Threads: 2, Effort: 1 << 16}
	var err error
	if c.fresh, err = exec.Compile(context.Background(), p, table, options); err != nil {
		return c, false // too large, mostly
	}
	for i, e := range *structures {
		if !sameStructure(e.Program, p) {
			continue
		}
		c.instance, err = e.Instance(context.Background(), ir.TypesOf(p), table)
		if errors.Is(err, exec.ErrStructure) {
			// One program has two structures where an alias rule does not say
			// the same: at one size a call returns its operand.
			seen["same program, other calls"]++
			continue
		}
		if err != nil {
			t.Fatalf("instance: %v\n%s\nof\n%s", err, p, e.Program)
		}
		seen["instance"]++
		(*structures)[i] = c.instance // instances are made of instances
		samePlan(t, c, seen)
		return c, true
	}
	seen["structure"]++
	if c.instance, err = exec.Compile(context.Background(), p, table, options); err != nil {
		t.Fatal(err)
	}
	*structures = append(*structures, c.instance)
	return c, true
}

// fillDrawn fills the bytes with small numbers.
func fillDrawn(dt dtype.DType, data []byte, seed byte) {
	switch dt {
	case dtype.F32:
		for i := 0; i+4 <= len(data); i += 4 { // 0, 1, 2, 4, 8
			copy(data[i:], [][]byte{{0, 0, 0, 0}, {0, 0, 128, 63}, {0, 0, 0, 64}, {0, 0, 128, 192}, {0, 0, 0, 65}}[(i/4+int(seed))%5])
		}
	case dtype.Bool:
		for i := range data {
			data[i] = (byte(i) + seed) % 2
		}
	default:
		size := dt.Size()
		for i := 0; i+size <= len(data); i += size {
			data[i] = (byte(i/size) + seed) % 3
		}
	}
}

// sameStructure reports whether two final programs differ in the types of their
// values alone.
func sameStructure(p, q *ir.Program) bool {
	if p.NumIDs() != q.NumIDs() || !slices.Equal(idsOf(p), idsOf(q)) {
		return false
	}
	return p.With(ir.TypesOf(q)).String() == q.String()
}

func idsOf(p *ir.Program) (ids []int) {
	add := func(list []*ir.Value) {
		for _, v := range list {
			if v == nil {
				ids = append(ids, 0)
			} else {
				ids = append(ids, v.ID)
			}
		}
	}
	add(p.Body.Params)
	add(p.Weights)
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		ids = append(ids, c.OperandIDs()...)
		add(c.Results)
		for _, r := range c.Regions {
			add(r.Params)
			add(r.Results)
		}
	})
	return ids
}

// samePlan compares the plan of the program that was compiled from the start
// with that of the instance.
func samePlan(t *rapid.T, c compiled, seen map[string]int) {
	want, err := c.fresh.Plan()
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.instance.Plan()
	if err != nil {
		t.Fatalf("instance: %v\n%s", err, c.fresh.Program)
	}
	if float64(got.ArenaBytes) > 1.05*float64(want.ArenaBytes) {
		t.Fatalf("got %d bytes of arena, want at most 1.05 of %d\n%s", got.ArenaBytes, want.ArenaBytes, c.fresh.Program)
	}
	plain := func(d *plan.Plan) string {
		same := *d
		same.ArenaBytes = 1 << 40
		same.Values = slices.Clone(d.Values)
		for i := range same.Values {
			if v := &same.Values[i]; v.Space == plan.SpaceArena {
				v.Offset = 0
			}
		}
		text, err := same.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if a, b := plain(got), plain(want); a != b {
		t.Fatalf("the plan of the instance:\n%s\nwant, but for offsets:\n%s\n%s", a, b, c.fresh.Program)
	}
	seen["in place"] += len(got.InPlace)
	if slices.ContainsFunc(got.Values, func(v plan.Value) bool { return v.Size == 0 }) {
		seen["zero"]++
	}
	c.fresh.Program.Walk(func(_ *ir.Block, c *ir.Call) { seen[c.Op.Name]++ })
}

// run runs an executable in the slot and returns its outputs.
func (c *compiled) run(t *rapid.T, slot *exec.Slot, e *exec.Executable, pool *compute.Pool) (outputs [][]byte, err error) {
	runner, err := slot.Runner(e)
	if err != nil {
		t.Fatal(err)
	}
	var given [][]byte
	for _, data := range c.inputs {
		in := words(len(data), 0)
		copy(in, data)
		given = append(given, in)
	}
	outputs = make([][]byte, len(e.Program.Body.Results))
	for i := range outputs {
		switch typ := e.ResultType(i); {
		case !typ.IsStatic():
		case e.OutputInInput(i) >= 0:
			outputs[i] = given[e.OutputInInput(i)]
		default:
			outputs[i] = words(sizeOf(typ), 0xCC)
		}
	}
	err = runner.Run(pool, nil, given, outputs)
	for i := range outputs {
		if err != nil || e.ResultType(i).IsStatic() {
			continue
		}
		buf, typ := runner.TakeDynamic(i)
		outputs[i] = []byte(typ.String())
		if buf != nil {
			outputs[i] = append(outputs[i], buf.Bytes()[:sizeOf(typ)]...)
			if err := buf.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	runner.End()
	if errors.Is(err, memory.ErrLimit) {
		err = memory.ErrLimit // its text says how many bytes others hold
	}
	return outputs, err
}
