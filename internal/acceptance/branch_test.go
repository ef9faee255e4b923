package acceptance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// twoSizes begins a model of x: f32[16] with conditions c and d, whether the
// sum of x is above 0 and above 10, and two branches: a1, an f32[2], and b1,
// which has all 16 elements.
func twoSizes() (g *onnxtest.Graph, small, large *onnxtest.Graph) {
	g, small, large = new(onnxtest.Graph), new(onnxtest.Graph), new(onnxtest.Graph)
	g.Input("x", onnxtest.F32, 16)
	for i := range 11 {
		g.Ints(fmt.Sprint("i", i), int64(i))
	}
	g.Floats("zero", 0)
	g.Floats("ten", 10)
	g.Node("ReduceSum", []string{"x"}, []string{"sum"}, onnxtest.Int("keepdims", 1))
	g.Node("Greater", []string{"sum", "zero"}, []string{"c"})
	g.Node("Greater", []string{"sum", "ten"}, []string{"d"})
	small.Node("Slice", []string{"x", "i1", "i3", "i0"}, []string{"a1"})
	small.Output("a1")
	large.Node("Neg", []string{"x"}, []string{"b1"})
	large.Output("b1")
	return g, small, large
}

func branches(then, otherwise *onnxtest.Graph) []onnxtest.Message {
	return []onnxtest.Message{onnxtest.Subgraph("then_branch", then), onnxtest.Subgraph("else_branch", otherwise)}
}

// branchModels are models with branches whose results differ in shape, with the
// values that the plan does not promise.
func branchModels() map[string]func() (file []byte, unpromised []string) {
	scale := func(g *onnxtest.Graph, in, out string) { g.Node("Mul", []string{in, in}, []string{out}) }
	return map[string]func() ([]byte, []string){
		"an output": func() ([]byte, []string) {
			g, a, b := twoSizes()
			g.Node("If", []string{"c"}, []string{"w"}, branches(a, b)...)
			g.Output("w")
			return g.File(), nil
		},
		"read by later steps": func() ([]byte, []string) {
			g, a, b := twoSizes()
			g.Node("If", []string{"c"}, []string{"w"}, branches(a, b)...)
			scale(g, "w", "v")
			g.Node("Exp", []string{"v"}, []string{"u"})
			g.Node("Add", []string{"u", "w"}, []string{"t"})
			g.Node("ReduceSum", []string{"t"}, []string{"s"}, onnxtest.Int("keepdims", 0))
			g.Output("t")
			g.Output("s")
			return g.File(), nil
		},
		"read by steps with scratch": func() ([]byte, []string) {
			g, a, b := twoSizes()
			g.Node("If", []string{"c"}, []string{"w"}, branches(a, b)...)
			g.Node("Softmax", []string{"w"}, []string{"v"}, onnxtest.Int("axis", 0))
			g.Node("TopK", []string{"v", "i1"}, []string{"most", "where"})
			g.Ints("row", 1, -1)
			g.Ints("column", -1, 1)
			g.Node("Reshape", []string{"w", "row"}, []string{"wr"})
			g.Node("Reshape", []string{"w", "column"}, []string{"wc"})
			g.Node("MatMul", []string{"wc", "wr"}, []string{"square"})
			g.Node("ReduceSum", []string{"square"}, []string{"s"}, onnxtest.Int("keepdims", 0))
			g.Output("where")
			g.Output("s")
			return g.File(), nil
		},
		"of no elements": func() ([]byte, []string) {
			g, a, _ := twoSizes()
			var b onnxtest.Graph
			b.Node("Slice", []string{"x", "i1", "i1", "i0"}, []string{"b0"})
			b.Node("Unsqueeze", []string{"b0", "i0"}, []string{"b1"})
			b.Output("b1")
			a.Nodes = nil
			a.Node("Slice", []string{"x", "i2", "i2", "i0"}, []string{"a1"})
			g.Node("If", []string{"c"}, []string{"w"}, branches(a, &b)...)
			g.Node("Neg", []string{"w"}, []string{"v"})
			g.Output("w")
			g.Output("v")
			return g.File(), nil
		},
		"of two ranks": func() ([]byte, []string) {
			g, a, b := twoSizes()
			g.Ints("square", 4, 4)
			b.Node("Reshape", []string{"b1", "square"}, []string{"b2"})
			b.Outputs = nil
			b.Output("b2")
			g.Node("If", []string{"c"}, []string{"w"}, branches(a, b)...)
			scale(g, "w", "v")
			g.Output("v")
			g.Node("ReduceMax", []string{"w"}, []string{"m"}, onnxtest.Int("keepdims", 0))
			g.Output("m")
			return g.File(), nil
		},
		"several results": func() ([]byte, []string) {
			g, a, b := twoSizes()
			a.Node("Exp", []string{"x"}, []string{"a2"})
			a.Node("Size", []string{"a1"}, []string{"a3"})
			b.Node("Slice", []string{"x", "i1", "i2", "i0"}, []string{"b2"})
			b.Node("Size", []string{"b1"}, []string{"b3"})
			for _, name := range []string{"2", "3"} {
				a.Output("a" + name)
				b.Output("b" + name)
			}
			g.Node("If", []string{"c"}, []string{"p", "q", "r"}, branches(a, b)...)
			scale(g, "p", "p2")
			scale(g, "q", "q2")
			g.Node("Concat", []string{"p2", "q2"}, []string{"both"}, onnxtest.Int("axis", 0))
			g.Output("both")
			g.Output("r")
			return g.File(), nil
		},
		"nested": func() ([]byte, []string) {
			g, a, b := twoSizes()
			var inner, outer onnxtest.Graph
			inner.Node("Slice", []string{"x", "i2", "i9", "i0"}, []string{"n1"})
			inner.Output("n1")
			outer.Node("If", []string{"d"}, []string{"o1"}, branches(&inner, a)...)
			outer.Output("o1")
			g.Node("If", []string{"c"}, []string{"w"}, branches(&outer, b)...)
			scale(g, "w", "v")
			g.Output("v")
			return g.File(), nil
		},
		"a value from outside": func() ([]byte, []string) {
			g, a, _ := twoSizes()
			var b onnxtest.Graph
			b.Node("Identity", []string{"x"}, []string{"b1"})
			b.Output("b1")
			g.Node("If", []string{"c"}, []string{"w"}, branches(a, &b)...)
			g.Node("If", []string{"d"}, []string{"w2"}, branches(rename(a, "a1", "k1"), rename(&b, "b1", "l1"))...)
			g.Node("Exp", []string{"w"}, []string{"v"})
			g.Node("Neg", []string{"w2"}, []string{"v2"})
			g.Output("v")
			g.Output("v2")
			return g.File(), nil
		},
		"in a loop": func() ([]byte, []string) {
			g, a, b := twoSizes()
			var body onnxtest.Graph
			body.Input("i", onnxtest.I64)
			body.Input("again", onnxtest.Bool)
			body.Input("s", onnxtest.F32, 1)
			body.Node("Identity", []string{"again"}, []string{"again2"})
			body.Node("Add", []string{"s", "sum"}, []string{"s2"})
			body.Node("Greater", []string{"s2", "ten"}, []string{"e"})
			body.Node("If", []string{"e"}, []string{"w"}, branches(a, b)...)
			body.Node("ReduceMean", []string{"w"}, []string{"m"}, onnxtest.Int("keepdims", 1))
			body.Node("Add", []string{"m", "s2"}, []string{"s3"})
			body.Output("again2")
			body.Output("s3")
			g.Weight("iterations", onnxtest.I64, []byte{3, 0, 0, 0, 0, 0, 0, 0})
			g.Node("Loop", []string{"iterations", "", "zero"}, []string{"y"}, onnxtest.Subgraph("body", &body))
			g.Output("y")
			return g.File(), nil
		},
		"carried by a loop":                  func() ([]byte, []string) { return carriedBranch(3) },
		"carried by a loop of no iterations": func() ([]byte, []string) { return carriedBranch(0) },
	}
}

func carriedBranch(iterations byte) (file []byte, unpromised []string) {
	g, a, b := twoSizes()
	var body onnxtest.Graph
	body.Input("i", onnxtest.I64)
	body.Input("again", onnxtest.Bool)
	body.Input("s", onnxtest.F32, "")
	body.Node("Identity", []string{"again"}, []string{"again2"})
	body.Node("Add", []string{"s", "zero"}, []string{"s2"})
	body.Output("again2")
	body.Output("s2")
	g.Node("If", []string{"c"}, []string{"w"}, branches(a, b)...)
	g.Weight("iterations", onnxtest.I64, []byte{iterations, 0, 0, 0, 0, 0, 0, 0})
	g.Node("Loop", []string{"iterations", "", "w"}, []string{"y"}, onnxtest.Subgraph("body", &body))
	g.Output("y")
	return g.File(), []string{"y", "Loop of y/body/s", "s2"}
}

// rename returns a graph of one node with another name of its result.
func rename(g *onnxtest.Graph, from, to string) *onnxtest.Graph {
	swap := func(w onnxtest.Message) onnxtest.Message { return bytes.ReplaceAll(w, []byte(from), []byte(to)) }
	return &onnxtest.Graph{Nodes: swap(g.Nodes), Outputs: swap(g.Outputs)}
}

// A branch whose regions give values of different shapes is in one plan, which
// promises memory for either: another condition compiles nothing, answers are
// those of the interpreter, and the bytes are those of the plan.
func TestBranchesOfDifferentShapes(t *testing.T) {
	for name, model := range branchModels() {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			file, unpromised := model()
			s := modeltest.Session(t, modeltest.LoadBytes(t, file), tenure.WithThreads(2), tenure.WithPlans(1))
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
				data := modeltest.Ramp(16)
				data[0] = first - 15
				promise := p
				if len(unpromised) > 0 {
					promise = nil
				}
				runBranch(t, s, file, data, promise)
				x := modeltest.Of(t, data, 16)
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

// Outputs are counted as outputs, in whichever way they were made: when a run
// is over, only the arena is left of the rest.
func TestDynamicOutputsAreCounted(t *testing.T) {
	for name, model := range branchModels() {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			file, _ := model()
			s := modeltest.Session(t, modeltest.LoadBytes(t, file))
			for _, first := range []float32{-100, 1, 100} {
				data := modeltest.Ramp(16)
				data[0] = first
				x := modeltest.Of(t, data, 16)
				modeltest.Must(0, modeltest.Run(t, s, tenure.Inputs{"x": x}).Release()) // it makes the arena
				before := memory.Stats()
				out := modeltest.Run(t, s, tenure.Inputs{"x": x})
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
				modeltest.Must(0, out.Release())
			}
		})
	}
}

// runBranch makes one run and compares its results with the interpreter's, and
// the bytes that it takes with the promise.
func runBranch(t *testing.T, s *tenure.Session, file []byte, data []float32, promise *plan.Plan) {
	t.Helper()
	before := memory.Stats()
	x := modeltest.Of(t, data, 16)
	memory.ResetPeak()
	out := modeltest.Run(t, s, tenure.Inputs{"x": x})
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

// compareWithInterpreter compares outputs with those of the file's program,
// computed call by call.
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
