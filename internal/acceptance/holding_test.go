package acceptance_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// picked begins a graph with %p, the elements of x that keep marks, and %v,
// those twice, in a buffer of its own.
func picked() *onnxtest.Graph {
	g := new(onnxtest.Graph)
	g.Input("x", onnxtest.I64, 4)
	g.Input("keep", onnxtest.Bool, 4)
	g.Input("c", onnxtest.Bool)
	g.Ints("i0", 0)
	g.Ints("i1", 1)
	g.Ints("i3", 3)
	g.Ints("flat", -1)
	for name, n := range map[string]byte{"none": 0, "once": 1, "thrice": 3} {
		g.Weight(name, onnxtest.I64, []byte{n, 0, 0, 0, 0, 0, 0, 0})
	}
	g.Node("Compress", []string{"x", "keep"}, []string{"p"}, onnxtest.Int("axis", 0))
	g.Node("Concat", []string{"p", "p"}, []string{"v"}, onnxtest.Int("axis", 0))
	return g
}

// roundOf begins the body of a loop that carries s.
func roundOf() *onnxtest.Graph {
	body := new(onnxtest.Graph)
	body.Input("i", onnxtest.I64)
	body.Input("again", onnxtest.Bool)
	body.Input("s", onnxtest.I64, "")
	body.Node("Identity", []string{"again"}, []string{"again2"})
	body.Output("again2")
	return body
}

// TestPassedOn runs models that pass values of unknown size on as views, around
// loops and out of branches, a few times. Every output has bytes of its own
// that no other output shows, and at the end nothing is left.
func TestPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		build func(g *onnxtest.Graph)
		want  map[string][]int64
		shape map[string][]int
	}{
		"a branch gives a part": {func(g *onnxtest.Graph) {
			var a, b onnxtest.Graph
			a.Node("Slice", []string{"v", "i1", "i3", "i0"}, []string{"a1"})
			a.Output("a1")
			b.Node("Neg", []string{"v"}, []string{"b1"})
			b.Output("b1")
			g.Node("If", []string{"c"}, []string{"w"}, onnxtest.Subgraph("then_branch", &a), onnxtest.Subgraph("else_branch", &b))
			g.Output("w")
		}, map[string][]int64{"w": {20, 30}}, nil},
		"a loop carries a part": {func(g *onnxtest.Graph) {
			body := roundOf()
			body.Node("Slice", []string{"s", "i1", "i3", "i0"}, []string{"s2"})
			body.Output("s2")
			g.Node("Loop", []string{"once", "", "v"}, []string{"w"}, onnxtest.Subgraph("body", body))
			g.Output("w")
		}, map[string][]int64{"w": {20, 30}}, nil},
		"a branch gives a view of an output": {func(g *onnxtest.Graph) {
			var a, b onnxtest.Graph
			a.Node("Reshape", []string{"v", "flat"}, []string{"a1"})
			a.Output("a1")
			b.Node("Neg", []string{"v"}, []string{"b1"})
			b.Output("b1")
			g.Node("If", []string{"c"}, []string{"w"}, onnxtest.Subgraph("then_branch", &a), onnxtest.Subgraph("else_branch", &b))
			g.Output("w")
			g.Output("v")
		}, map[string][]int64{"w": {10, 20, 30, 40, 10, 20, 30, 40}, "v": {10, 20, 30, 40, 10, 20, 30, 40}}, nil},
		"a loop of no iterations gives an output": {func(g *onnxtest.Graph) {
			body := roundOf()
			body.Node("Neg", []string{"s"}, []string{"s2"})
			body.Output("s2")
			g.Node("Loop", []string{"none", "", "v"}, []string{"w"}, onnxtest.Subgraph("body", body))
			g.Output("w")
			g.Output("v")
		}, map[string][]int64{"w": {10, 20, 30, 40, 10, 20, 30, 40}, "v": {10, 20, 30, 40, 10, 20, 30, 40}}, nil},
		"a loop stacks views of what it carries": {func(g *onnxtest.Graph) {
			body := roundOf()
			body.Node("Neg", []string{"s"}, []string{"s2"})
			body.Node("Unsqueeze", []string{"s", "i0"}, []string{"part"})
			body.Output("s2")
			body.Output("part")
			g.Node("Slice", []string{"p", "i1", "i3", "i0"}, []string{"q"})
			g.Node("Loop", []string{"thrice", "", "q"}, []string{"w", "stack"}, onnxtest.Subgraph("body", body))
			g.Output("stack")
		}, map[string][]int64{"stack": {20, 30, -20, -30, 20, 30}}, map[string][]int{"stack": {3, 1, 2}}},
		"a loop of no iterations stacks what the body declares": {func(g *onnxtest.Graph) {
			body := roundOf()
			body.Node("Slice", []string{"s", "i1", "i3", "i0"}, []string{"s2"})
			body.Node("Reshape", []string{"s", "to"}, []string{"part"})
			body.Output("s2")
			body.Outputs = body.Outputs.Bytes(12, onnxtest.ValueInfo("part", onnxtest.I64, 2, "n", 5))
			g.Node("Shape", []string{"v"}, []string{"len"})
			g.Node("Concat", []string{"len", "i1", "i1"}, []string{"to"}, onnxtest.Int("axis", 0))
			g.Node("Loop", []string{"none", "", "v"}, []string{"w", "stack"}, onnxtest.Subgraph("body", body))
			g.Output("stack")
		}, map[string][]int64{"stack": {}}, map[string][]int{"stack": {0, 2, 0, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			g := picked()
			c.build(g)
			s := modeltest.Session(t, modeltest.LoadBytes(t, g.File()))
			x, yes := modeltest.Of(t, []int64{10, 20, 30, 40}, 4), modeltest.Of(t, []bool{true})
			keep := modeltest.Of(t, []bool{true, true, true, true}, 4)
			var before memory.Figures
			for run := range 4 {
				out := modeltest.Run(t, s, tenure.Inputs{"x": x, "keep": keep, "c": yes})
				seen := map[*byte]string{}
				for name, want := range c.want {
					got, err := tensor.Values[int64](out[name])
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("%s: got %v, %v, want %v", name, got, err, want)
					}
					if sizes := c.shape[name]; sizes != nil && !slices.Equal(out[name].Shape().Sizes(), sizes) {
						t.Fatalf("%s: got shape %s, want %v", name, out[name].Shape(), sizes)
					}
					data, _ := out[name].UnsafeBytes()
					if at := unsafe.SliceData(data); len(data) > 0 && seen[at] != "" {
						t.Fatalf("%s and %s have one address", name, seen[at])
					} else {
						seen[at] = name
					}
					if !out[name].IsExclusive() {
						t.Fatalf("%s: got an output that has another holder", name)
					}
				}
				out.Release()
				if now := memory.Stats(); run == 0 {
					before = now
				} else if now.Total.Current != before.Total.Current || now.Total.Buffers != before.Total.Buffers {
					t.Fatalf("run %d: got %d bytes in %d buffers, want %d in %d as after the first", run,
						now.Total.Current, now.Total.Buffers, before.Total.Current, before.Total.Buffers)
				}
			}
			for limit, failed := before.Total.Current, true; failed; limit += 16 { // an allocation more from time to time
				old := memory.SetLimit(limit)
				out, err := s.Run(context.Background(), tenure.Inputs{"x": x, "keep": keep, "c": yes})
				memory.SetLimit(old)
				if failed = err != nil; failed && !errors.Is(err, tenure.ErrLimit) {
					t.Fatalf("limit %d: got %v, want ErrLimit", limit, err)
				}
				out.Release()
				if now := memory.Stats(); now.Total.Current != before.Total.Current || now.Total.Buffers != before.Total.Buffers {
					t.Fatalf("limit %d: got %d bytes in %d buffers, want %d in %d as before", limit,
						now.Total.Current, now.Total.Buffers, before.Total.Current, before.Total.Buffers)
				}
			}
			if n := exec.Leftover(); n != 0 {
				t.Fatalf("got %d holds left over", n)
			}
		})
	}
}
