package randomprogram_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// TestRandomPrograms draws programs and runs each by the interpreter, call by
// call in fresh bytes, and through all passes, a proved plan and one arena.
//
// Numbers are small integers as far as the operators keep them so, and sums of
// them are exact in any order: such values must agree to the last bit, even
// where convolutions were fused. Every drawn value carries how far it may be
// off otherwise.
func TestRandomPrograms(t *testing.T) {
	seen := compareRandom(t, 2000, false)
	for _, what := range []string{"fused_conv", "fused_chain", "residual", "prologue", "pool", "if", "in place", "state in place", "copies", "folded", "exact after fusing", "non_zero", "unpromised", "loop", "bytes moved as planned", "loop in place", "branch in place"} {
		if seen[what] == 0 && !testing.Short() { // a few programs do not have everything
			t.Errorf("got no program with %s, want some", what)
		}
	}
}

// TestRandomDynamicPrograms draws programs of values whose size depends on
// data, which are viewed at offsets, carried, branched, stacked, nested and
// returned, also twice. Each is run to its end, then once more until it is
// stopped, fails or panics somewhere, and once more after that. At the end the
// same objects are live as before.
func TestRandomDynamicPrograms(t *testing.T) {
	memorytest.Check(t)
	seen := compareRandom(t, 500, true)
	for _, what := range []string{"if", "loop", "non_zero", "slice", "copies", "unpromised", "dynamic output", "zero elements", "a view at an offset", "stopped", "panicked", "no memory", "same output twice", "branch of two shapes", "several shapes in the arena", "output of several shapes"} {
		if seen[what] == 0 && !testing.Short() {
			t.Errorf("got no program with %s, want some", what)
		}
	}
}

// compareRandom draws as many programs as -rapid.checks says, by default the
// same ones in every run, and returns counts of their features.
func compareRandom(t *testing.T, programs int, dynamic bool) map[string]int {
	return forRandom(t, programs, func(t *rapid.T, pool *compute.Pool, seen map[string]int) *ir.Program {
		d := drawRandom(t, dynamic)
		d.compare(t, pool, seen)
		return d.program
	})
}

// forRandom draws as many times as -rapid.checks says, by default the same in
// every run, and returns the counts. do returns the program that it drew, after
// which as many bytes are held as before.
func forRandom(t *testing.T, programs int, do func(t *rapid.T, pool *compute.Pool, seen map[string]int) *ir.Program) map[string]int {
	if invariant.Race {
		programs /= 10
	}
	for name, value := range map[string]int{"checks": programs, "seed": 1} {
		if f := flag.Lookup("rapid." + name); f.Value.String() == f.DefValue {
			if err := flag.Set(f.Name, strconv.Itoa(value)); err != nil {
				t.Fatal(err)
			}
			defer flag.Set(f.Name, f.DefValue)
		}
	}
	pool := compute.NewPool(2)
	defer pool.Close()
	defer memory.SetLimit(memory.SetLimit(memory.Stats().Total.Current + mostHeld))
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		before := memory.Stats().Total
		program := do(t, pool, seen)
		if now := memory.Stats().Total; now.Current != before.Current || now.Buffers != before.Buffers || exec.Leftover() != 0 {
			t.Fatalf("got %d bytes in %d buffers held and %d holds left over, want %d in %d and none\n%s", now.Current, now.Buffers, exec.Leftover(), before.Current, before.Buffers, program)
		}
	})
	t.Logf("seen: %v", seen)
	return seen
}

// randomProgram is a program as a model file would give it, and its inputs.
type randomProgram struct {
	program     *ir.Program
	weights     ir.WeightMap
	bounds      map[*ir.Value]bound
	dynamic     bool        // it has values whose size depends on data, mostly
	leastMemory bool        // the plan has values in place although that may take longer
	apart       bool        // the plan puts no operand into the bytes of a result that it is a part of
	open        []int       // per parameter: bits of the axes whose size the file leaves open
	inputs      [2][][]byte // for two runs
}

// words returns n bytes aligned for any element, filled with a byte.
func words(n int, fill byte) []byte {
	w := make([]uint64, n/8+9)
	skip := int(-uintptr(unsafe.Pointer(&w[0])) & 63)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*len(w))[skip : skip+n : skip+n]
	for i := range b {
		b[i] = fill
	}
	return b
}

func sizeOf(t op.Type) int {
	n, err := t.Bytes()
	if err != nil {
		panic(err)
	}
	return n
}

// mostDrawn bounds the bytes of a value, and mostHeld those of a run: a drawn
// loop may double a value in every round.
const mostDrawn, mostHeld = 16 << 20, 1 << 30

// interpret runs a program the plain way. Values whose size depends on data
// may have sizes that do not fit: then there is an error.
func (d *randomProgram) interpret(inputs [][]byte) ([]op.Arg, error) {
	args := make([]op.Arg, len(inputs))
	for i, v := range d.program.Body.Params {
		args[i] = op.Arg{Type: v.Type, Data: inputs[i]}
	}
	return (&ir.Interpreter{Eval: compute.Eval, Weights: d.weights, MaxBytes: mostDrawn}).Run(d.program, args...)
}

// prepare takes the program through the passes and the compiler, with the
// verifier after every pass. It returns nil for a program in which the passes
// find sizes that do not fit: those of dynamic values may not, where constants
// make them known.
func (d *randomProgram) prepare(t *rapid.T, seen map[string]int) *exec.Executable {
	constants := &weights.Overlay{Base: d.weights}
	p, types := d.program.Clone(), make([]op.Type, len(d.open))
	for i, v := range p.Body.Params {
		types[i] = v.Type
		v.Type.Shape = opened(v.Type.Shape, d.open[i])
	}
	verify := func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(constants)) }
	loading := &pass.Context{Program: p, Constants: constants, MaxFold: 1 << 10}
	if err := pass.Run(loading, pass.Load, verify); err != nil {
		d.refuse(t, "load", err, p, seen)
		return nil
	}
	ctx := &pass.Context{Program: p.Clone(), Constants: &weights.Overlay{Base: constants}, MaxFold: 1 << 10}
	constants = ctx.Constants.(*weights.Overlay)
	if err := ctx.Program.Bind(types...); err != nil {
		t.Fatal(err)
	}
	if err := pass.Run(ctx, pass.Specialise, verify); err != nil {
		d.refuse(t, "specialise", err, ctx.Program, seen)
		return nil
	}
	e, err := exec.Compile(context.Background(), ctx.Program, constants, exec.Options{Threads: 2, Effort: -1, Apart: d.apart, LeastMemory: d.leastMemory})
	if err != nil {
		t.Fatalf("compile: %v\n%s\nwas\n%s", err, ctx.Program, d.program)
	}
	document, err := e.Plan()
	if err != nil {
		t.Fatalf("plan: %v\n%s\nwas\n%s", err, ctx.Program, d.program)
	}
	d.count(ctx, e, document, seen)
	return e
}

// refuse fails on programs that the passes must not refuse.
func (d *randomProgram) refuse(t *rapid.T, stage string, err error, p *ir.Program, seen map[string]int) {
	if !d.dynamic || !errors.Is(err, shape.ErrShape) {
		t.Fatalf("%s: %v\n%s\nwas\n%s", stage, err, p, d.program)
	}
	seen["refused by the passes"]++
}

// opened puts a symbol in the place of some sizes, the same for equal ones.
func opened(s *shape.Shape, axes int) *shape.Shape {
	dims := s.Dims()
	for i := range dims {
		if axes>>i&1 != 0 {
			dims[i] = shape.Sym(fmt.Sprint("n", s.Size(i)))
		}
	}
	out, err := shape.FromDims(dims...)
	if err != nil {
		panic(err)
	}
	return out
}

// count records the results of the passes and the planner for a program.
func (d *randomProgram) count(ctx *pass.Context, e *exec.Executable, document *plan.Plan, seen map[string]int) {
	calls := func(p *ir.Program) (n int) {
		p.Walk(func(*ir.Block, *ir.Call) { n++ })
		return n
	}
	if calls(ctx.Program) < calls(d.program) {
		seen["folded"]++
	}
	inArena := map[string]bool{}
	for _, v := range document.Values {
		inArena[v.Name] = v.Space == plan.SpaceArena
		if v.Space == plan.SpaceOutput && v.Size > 0 && strings.Contains(v.Type, "?") {
			seen["output of several shapes"]++
		}
	}
	fused, overwrites := false, map[string]bool{}
	for _, x := range document.InPlace {
		overwrites[x.Value] = x.Kind != plan.AliasPart
	}
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		seen[c.Op.Name]++
		for _, r := range c.Results {
			if c.Op.Loop && r != nil && overwrites[r.Name] {
				seen["loop in place"]++
			}
		}
		for _, region := range c.Regions {
			if c.Op.Branch && slices.ContainsFunc(region.Results, func(v *ir.Value) bool { return overwrites[v.Name] }) {
				seen["branch in place"]++
			}
		}
		if r := c.Results[0]; r != nil && !r.Type.IsStatic() && inArena[r.Name] && c.Op.Bound == nil {
			seen["several shapes in the arena"]++
			if c.Op.Branch {
				seen["branch of two shapes"]++
			}
		}
		if (c.Op.Name == "slice" || c.Op.Name == "split") && !c.Args[0].Value.Type.IsStatic() {
			seen["a view at an offset"]++
		}
		if c.Op.Name != "fused_conv" {
			return
		}
		fused = true
		if c.Args[3].Value != nil {
			seen["residual"]++
		}
		if c.Args[4].Value != nil {
			seen["prologue"]++
		}
		if c.Sig(nil).Str("pool") != "" {
			seen["pool"]++
		}
	})
	for i, v := range d.program.Body.Results {
		if b := d.bounds[v]; fused && b.fusible && b.off == 0 {
			seen["exact after fusing"]++
		}
		if e.OutputInInput(i) >= 0 {
			seen["state in place"]++
		}
	}
	seen["in place"] += len(document.InPlace)
	seen["unpromised"] += len(document.Unpromised)
	seen["copies"] += len(ctx.Copies)
}

// compare runs the executable twice in one arena, which holds rubbish before
// each run, with other inputs, and once more after a run that did not end well.
func (d *randomProgram) compare(t *rapid.T, pool *compute.Pool, seen map[string]int) {
	exe := d.prepare(t, seen)
	if exe == nil {
		return
	}
	runner, err := exe.NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	weights := map[string]string{}
	for name, data := range d.weights {
		weights[name] = string(data)
	}
	for round, rubbish := range []byte{0xCC, 0xFF} { // 0xFF: NaN
		r := &randomRun{randomProgram: d, exe: exe, runner: runner, round: round}
		r.attach(rubbish)
		r.countMoved(t, seen)
		r.compare(t, pool, seen)
		runner.Watch = nil
	}
	if len(modeltest.Must(exe.Plan()).Unpromised) > 0 {
		r := &randomRun{randomProgram: d, exe: exe, runner: runner}
		r.attach(0xCC)
		r.spoil(t, pool, seen)
		r.attach(0xCC)
		r.compare(t, pool, seen)
	}
	for name, data := range d.weights {
		if string(data) != weights[name] {
			t.Fatalf("weight %q was written\n%s", name, exe.Program)
		}
	}
}

// bound is the known range of a drawn value's elements.
type bound struct {
	size    float64 // none is larger
	off     float64 // none may be further from the reference; 0: they are equal
	frac    bool    // they may be no integers, or too large to be added exactly
	fusible bool    // another kernel may have computed them: a fused convolution, or swish for x*sigmoid(x)
}

func (b bound) differs(want op.Arg, got []byte) string {
	if bytes.Equal(want.Data, got) {
		return ""
	}
	if want.DType != dtype.F32 && want.DType != dtype.F64 {
		return fmt.Sprintf("got % x, want % x", got, want.Data)
	}
	// Numbers, because the sign of a zero depends on the order of a sum, and of
	// the operands of min and max.
	size := want.DType.Size()
	for i := 0; i < len(got); i += size {
		x, y := floatAt(got[i:i+size]), floatAt(want.Data[i:i+size])
		if x == y || math.IsNaN(x) && math.IsNaN(y) || b.fusible && math.Abs(x-y) <= b.off {
			continue
		}
		return fmt.Sprintf("element %d: got %v, want %v", i/size, x, y)
	}
	return ""
}

func floatAt(b []byte) float64 {
	if len(b) == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
