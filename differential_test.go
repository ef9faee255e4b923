package tenure_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/exec"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/pass"
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
	checks := "2000"
	if invariant.Race {
		checks = "200"
	}
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := flag.Set("rapid.checks", checks); err != nil {
			t.Fatal(err)
		}
		defer flag.Set("rapid.checks", f.DefValue)
	}
	pool := compute.NewPool(2)
	defer pool.Close()
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		d := drawRandom(t)
		d.compare(t, pool, seen)
	})
	t.Logf("seen: %v", seen)
	for _, what := range []string{"fused_conv", "fused_chain", "residual", "prologue", "pool", "if", "in place", "state in place", "copies", "folded", "exact after fusing", "non_zero", "unpromised", "loop"} {
		if seen[what] == 0 && !testing.Short() { // a few programs do not have everything
			t.Errorf("got no program with %s, want some", what)
		}
	}
}

// randomProgram is a program as a model file would give it, and its inputs.
type randomProgram struct {
	program *ir.Program
	weights ir.WeightMap
	bounds  map[*ir.Value]bound
	open    []int       // per parameter: bits of the axes whose size the file leaves open
	inputs  [2][][]byte // for two runs
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

// interpret runs a program the plain way.
func (d *randomProgram) interpret(t *rapid.T, p *ir.Program, inputs [][]byte) []op.Arg {
	args := make([]op.Arg, len(inputs))
	for i, v := range p.Body.Params {
		args[i] = op.Arg{Type: v.Type, Data: inputs[i]}
	}
	out, err := (&ir.Interpreter{Eval: compute.Eval, Weights: d.weights}).Run(p, args...)
	if err != nil {
		t.Fatalf("interpreter: %v\n%s", err, p)
	}
	return out
}

// prepare takes the program through the passes and the compiler, with the
// verifier after every pass.
func (d *randomProgram) prepare(t *rapid.T, seen map[string]int) *exec.Executable {
	constants := &pass.Overlay{Base: d.weights}
	p, types := d.program.Clone(), make([]op.Type, len(d.open))
	for i, v := range p.Body.Params {
		types[i] = v.Type
		v.Type.Shape = opened(v.Type.Shape, d.open[i])
	}
	verify := func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(constants)) }
	loading := &pass.Context{Program: p, Constants: constants, MaxFold: 1 << 10}
	if err := pass.Run(loading, pass.Load, verify); err != nil {
		t.Fatalf("load: %v\n%s\nwas\n%s", err, p, d.program)
	}
	ctx := &pass.Context{Program: p.Clone(), Constants: &pass.Overlay{Base: constants}, MaxFold: 1 << 10}
	constants = ctx.Constants.(*pass.Overlay)
	if err := ctx.Program.Bind(types...); err != nil {
		t.Fatal(err)
	}
	if err := pass.Run(ctx, pass.Specialise, verify); err != nil {
		t.Fatalf("specialise: %v\n%s\nwas\n%s", err, ctx.Program, d.program)
	}
	e, err := exec.Compile(context.Background(), ctx.Program, constants, exec.Options{Threads: 2, Effort: -1})
	if err != nil {
		t.Fatalf("compile: %v\n%s\nwas\n%s", err, ctx.Program, d.program)
	}
	d.count(ctx, e, seen)
	return e
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

// count notes what a program made of the passes and the planner.
func (d *randomProgram) count(ctx *pass.Context, e *exec.Executable, seen map[string]int) {
	calls := func(p *ir.Program) (n int) {
		p.Walk(func(*ir.Block, *ir.Call) { n++ })
		return n
	}
	if calls(ctx.Program) < calls(d.program) {
		seen["folded"]++
	}
	fused := false
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		seen[c.Op.Name]++
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
	seen["in place"] += len(e.Plan.InPlace)
	seen["unpromised"] += len(e.Plan.Unpromised)
	seen["copies"] += len(ctx.Copies)
}

// compare runs the executable twice in one arena, which holds rubbish before
// each run, with other inputs.
func (d *randomProgram) compare(t *rapid.T, pool *compute.Pool, seen map[string]int) {
	exe := d.prepare(t, seen)
	runner, err := exe.NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	weights := map[string]string{}
	for name, data := range d.weights {
		weights[name] = string(data)
	}
	for round, rubbish := range []byte{0xCC, 0xFF} { // 0xFF: NaN
		want := d.interpret(t, d.program, d.inputs[round])
		runner.Attach(words(int(exe.Plan.ArenaBytes), rubbish), words(int(exe.Plan.ScratchBytes), rubbish))
		var given, outputs [][]byte
		for _, data := range d.inputs[round] {
			in := words(len(data), 0)
			copy(in, data)
			given = append(given, in)
		}
		for i, v := range exe.Program.Body.Results {
			if in := exe.OutputInInput(i); in >= 0 {
				outputs = append(outputs, given[in][:sizeOf(v.Type)])
				continue
			}
			outputs = append(outputs, words(sizeOf(v.Type), rubbish))
		}
		if err := runner.Run(pool, nil, given, outputs); err != nil {
			t.Fatalf("run: %v\n%s", err, exe.Program)
		}
		for i, v := range d.program.Body.Results {
			if at := d.bounds[v].differs(want[i], outputs[i]); at != "" {
				t.Fatalf("round %d, output %d, %s %s (%+v): %s\n%s\nwas\n%s", round, i, v, v.Type, d.bounds[v], at, exe.Program, d.program)
			}
		}
		for i, data := range d.inputs[round] {
			if !exe.TakesInput(i) && !bytes.Equal(data, given[i]) {
				t.Fatalf("round %d: input %d was written\n%s", round, i, exe.Program)
			}
		}
	}
	for name, data := range d.weights {
		if string(data) != weights[name] {
			t.Fatalf("weight %q was written\n%s", name, exe.Program)
		}
	}
}

// bound is what is known of a drawn value's elements.
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
	// Numbers, because the sign of a zero depends on the order of a sum, and of the operands of min and max.
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
