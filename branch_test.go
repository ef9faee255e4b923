package tenure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/onnx"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// twoSizes begins a model of x: f32[16] with conditions c and d, whether the sum of x is above 0 and above 10, and two
// branches: a1, an f32[2], and b1, which has all 16 elements.
func twoSizes() (g *graph, small, large *graph) {
	g, small, large = new(graph), new(graph), new(graph)
	g.input("x", f32Type, 16)
	for i := range 11 {
		g.ints(fmt.Sprint("i", i), int64(i))
	}
	g.floats("zero", 0)
	g.floats("ten", 10)
	g.node("ReduceSum", one("x"), one("sum"), attrInt("keepdims", 1))
	g.node("Greater", []string{"sum", "zero"}, one("c"))
	g.node("Greater", []string{"sum", "ten"}, one("d"))
	small.node("Slice", []string{"x", "i1", "i3", "i0"}, one("a1"))
	small.output("a1")
	large.node("Neg", one("x"), one("b1"))
	large.output("b1")
	return g, small, large
}

func branches(then, otherwise *graph) []wire {
	return []wire{attrGraph("then_branch", then), attrGraph("else_branch", otherwise)}
}

// branchModels are models with branches whose results differ in shape, with the values that the plan does not promise.
func branchModels() map[string]func() (file []byte, unpromised []string) {
	scale := func(g *graph, in, out string) { g.node("Mul", []string{in, in}, one(out)) }
	return map[string]func() ([]byte, []string){
		"an output": func() ([]byte, []string) {
			g, a, b := twoSizes()
			g.node("If", one("c"), one("w"), branches(a, b)...)
			g.output("w")
			return g.file(), nil
		},
		"read by later steps": func() ([]byte, []string) {
			g, a, b := twoSizes()
			g.node("If", one("c"), one("w"), branches(a, b)...)
			scale(g, "w", "v")
			g.node("Exp", one("v"), one("u"))
			g.node("Add", []string{"u", "w"}, one("t"))
			g.node("ReduceSum", one("t"), one("s"), attrInt("keepdims", 0))
			g.output("t")
			g.output("s")
			return g.file(), nil
		},
		"read by steps with scratch": func() ([]byte, []string) {
			g, a, b := twoSizes()
			g.node("If", one("c"), one("w"), branches(a, b)...)
			g.node("Softmax", one("w"), one("v"), attrInt("axis", 0))
			g.node("TopK", []string{"v", "i1"}, []string{"most", "where"})
			g.ints("row", 1, -1)
			g.ints("column", -1, 1)
			g.node("Reshape", []string{"w", "row"}, one("wr"))
			g.node("Reshape", []string{"w", "column"}, one("wc"))
			g.node("MatMul", []string{"wc", "wr"}, one("square"))
			g.node("ReduceSum", one("square"), one("s"), attrInt("keepdims", 0))
			g.output("where")
			g.output("s")
			return g.file(), nil
		},
		"of no elements": func() ([]byte, []string) {
			g, a, _ := twoSizes()
			var b graph
			b.node("Slice", []string{"x", "i1", "i1", "i0"}, one("b0"))
			b.node("Unsqueeze", []string{"b0", "i0"}, one("b1"))
			b.output("b1")
			a.nodes = nil
			a.node("Slice", []string{"x", "i2", "i2", "i0"}, one("a1"))
			g.node("If", one("c"), one("w"), branches(a, &b)...)
			g.node("Neg", one("w"), one("v"))
			g.output("w")
			g.output("v")
			return g.file(), nil
		},
		"of two ranks": func() ([]byte, []string) {
			g, a, b := twoSizes()
			g.ints("square", 4, 4)
			b.node("Reshape", []string{"b1", "square"}, one("b2"))
			b.outputs = nil
			b.output("b2")
			g.node("If", one("c"), one("w"), branches(a, b)...)
			scale(g, "w", "v")
			g.output("v")
			g.node("ReduceMax", one("w"), one("m"), attrInt("keepdims", 0))
			g.output("m")
			return g.file(), nil
		},
		"several results": func() ([]byte, []string) {
			g, a, b := twoSizes()
			a.node("Exp", one("x"), one("a2"))
			a.node("Size", one("a1"), one("a3"))
			b.node("Slice", []string{"x", "i1", "i2", "i0"}, one("b2"))
			b.node("Size", one("b1"), one("b3"))
			for _, name := range []string{"2", "3"} {
				a.output("a" + name)
				b.output("b" + name)
			}
			g.node("If", one("c"), []string{"p", "q", "r"}, branches(a, b)...)
			scale(g, "p", "p2")
			scale(g, "q", "q2")
			g.node("Concat", []string{"p2", "q2"}, one("both"), attrInt("axis", 0))
			g.output("both")
			g.output("r")
			return g.file(), nil
		},
		"nested": func() ([]byte, []string) {
			g, a, b := twoSizes()
			var inner, outer graph
			inner.node("Slice", []string{"x", "i2", "i9", "i0"}, one("n1"))
			inner.output("n1")
			outer.node("If", one("d"), one("o1"), branches(&inner, a)...)
			outer.output("o1")
			g.node("If", one("c"), one("w"), branches(&outer, b)...)
			scale(g, "w", "v")
			g.output("v")
			return g.file(), nil
		},
		"a value from outside": func() ([]byte, []string) {
			g, a, _ := twoSizes()
			var b graph
			b.node("Identity", one("x"), one("b1"))
			b.output("b1")
			g.node("If", one("c"), one("w"), branches(a, &b)...)
			g.node("If", one("d"), one("w2"), branches(rename(a, "a1", "k1"), rename(&b, "b1", "l1"))...)
			g.node("Exp", one("w"), one("v"))
			g.node("Neg", one("w2"), one("v2"))
			g.output("v")
			g.output("v2")
			return g.file(), nil
		},
		"in a loop": func() ([]byte, []string) {
			g, a, b := twoSizes()
			var body graph
			body.input("i", i64Type)
			body.input("again", boolType)
			body.input("s", f32Type, 1)
			body.node("Identity", one("again"), one("again2"))
			body.node("Add", []string{"s", "sum"}, one("s2"))
			body.node("Greater", []string{"s2", "ten"}, one("e"))
			body.node("If", one("e"), one("w"), branches(a, b)...)
			body.node("ReduceMean", one("w"), one("m"), attrInt("keepdims", 1))
			body.node("Add", []string{"m", "s2"}, one("s3"))
			body.output("again2")
			body.output("s3")
			g.weight("rounds", i64Type, []byte{3, 0, 0, 0, 0, 0, 0, 0})
			g.node("Loop", []string{"rounds", "", "zero"}, one("y"), attrGraph("body", &body))
			g.output("y")
			return g.file(), nil
		},
		"carried by a loop":              func() ([]byte, []string) { return carriedBranch(3) },
		"carried by a loop of no rounds": func() ([]byte, []string) { return carriedBranch(0) },
	}
}

func carriedBranch(rounds byte) (file []byte, unpromised []string) {
	g, a, b := twoSizes()
	var body graph
	body.input("i", i64Type)
	body.input("again", boolType)
	body.input("s", f32Type, "")
	body.node("Identity", one("again"), one("again2"))
	body.node("Add", []string{"s", "zero"}, one("s2"))
	body.output("again2")
	body.output("s2")
	g.node("If", one("c"), one("w"), branches(a, b)...)
	g.weight("rounds", i64Type, []byte{rounds, 0, 0, 0, 0, 0, 0, 0})
	g.node("Loop", []string{"rounds", "", "w"}, one("y"), attrGraph("body", &body))
	g.output("y")
	return g.file(), []string{"y", "Loop of y/body/s", "s2"}
}

// rename returns a graph of one node with another name of its result.
func rename(g *graph, from, to string) *graph {
	swap := func(w wire) wire { return bytes.ReplaceAll(w, []byte(from), []byte(to)) }
	return &graph{nodes: swap(g.nodes), outputs: swap(g.outputs)}
}

// A branch whose regions give values of different shapes is in one plan, which promises room for either: another condition
// compiles nothing, answers are those of the interpreter, and the bytes are those of the plan.
func TestBranchesOfDifferentShapes(t *testing.T) {
	for name, model := range branchModels() {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			file, unpromised := model()
			s := session(t, loadBytes(t, file), tenure.WithThreads(2), tenure.WithPlans(1))
			p, err := s.Plan(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var listed []string
			for _, u := range p.Unpromised {
				listed = append(listed, u.Value)
			}
			if !slices.Equal(listed, unpromised) {
				t.Errorf("unpromised: got %q, want %q", listed, unpromised)
			}
			if err := s.Model().Check(p); err != nil {
				t.Error(err)
			}
			for _, first := range []float32{1, -100, 2, 30, -101, 31, -1, 0} {
				data := ramp(16)
				data[0] = first - 15
				promise := p
				if len(unpromised) > 0 {
					promise = nil
				}
				runBranch(t, s, file, data, promise)
				x := of(t, data, 16)
				if again, err := s.PlanFor(context.Background(), tenure.Inputs{"x": x}); err != nil || again != p {
					t.Fatalf("first element %v: got another plan, %v", first, err)
				}
				if err := x.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Outputs are counted as such, whatever they have gone through: when a run is over, only the arena is left of the rest.
func TestDynamicOutputsAreCounted(t *testing.T) {
	for name, model := range branchModels() {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			file, _ := model()
			s := session(t, loadBytes(t, file))
			for _, first := range []float32{-100, 1, 100} {
				data := ramp(16)
				data[0] = first
				x := of(t, data, 16)
				must(0, run(t, s, tenure.Inputs{"x": x}).Release()) // it makes the arena
				before := memory.Stats()
				out := run(t, s, tenure.Inputs{"x": x})
				now := memory.Stats()
				var want int64
				for _, y := range out {
					want += int64(y.NumElements() * y.DType().Bits() / 8)
				}
				if got := now.Of(memory.IO).Current - before.Of(memory.IO).Current; got != want {
					t.Errorf("first element %v: got %d bytes of outputs, want %d", first, got, want)
				}
				if got := now.Of(memory.Activations).Current - before.Of(memory.Activations).Current; got != 0 {
					t.Errorf("first element %v: got %d bytes of activations more than before, want none", first, got)
				}
				must(0, out.Release())
			}
		})
	}
}

// runBranch makes one run, compares what it gives with the interpreter, and the bytes that it takes with the promise.
func runBranch(t *testing.T, s *tenure.Session, file []byte, data []float32, promise *plan.Plan) {
	t.Helper()
	before := memory.Stats()
	x := of(t, data, 16)
	memory.ResetPeak()
	out := run(t, s, tenure.Inputs{"x": x})
	now := memory.Stats()
	compareWithInterpreter(t, file, x, out)
	if err := errors.Join(out.Release(), x.Release()); err != nil {
		t.Error(err)
	}
	if promise == nil {
		return
	}
	// Runs after the first one have the arena already.
	got := [3]int64{now.Of(memory.Activations).Current, now.Of(memory.Activations).Peak, now.Of(memory.Scratch).Peak}
	if want := [3]int64{promise.ArenaBytes, promise.ArenaBytes, promise.ScratchBytes}; got != want {
		t.Errorf("sum %v: got an arena, its peak and scratch of %v bytes, want %v", data[0]+15, got, want)
	}
	if got := now.Of(memory.IO).Peak - before.Of(memory.IO).Current; got > promise.IOBytes {
		t.Errorf("sum %v: got %d bytes of inputs and outputs, want at most %d", data[0]+15, got, promise.IOBytes)
	}
}

// compareWithInterpreter holds outputs against what the file's program gives, computed call by call.
func compareWithInterpreter(t *testing.T, file []byte, x *tensor.Tensor, out tenure.Outputs) {
	t.Helper()
	m, err := onnx.Parse(file, "", onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	data, _ := x.UnsafeBytes()
	in := ir.Interpreter{Eval: compute.Eval, Weights: m.Weights}
	want, err := in.Run(m.Program, op.Arg{Type: m.Program.Body.Params[0].Type, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range m.Program.Body.Results {
		got := out[v.Name]
		bytesOf, _ := got.UnsafeBytes()
		if want[i].Type != (op.Type{DType: got.DType(), Shape: got.Shape()}) || !bytes.Equal(bytesOf, want[i].Data) {
			t.Errorf("%s: got %v, want %s", v.Name, got, want[i].Type)
		}
	}
}
