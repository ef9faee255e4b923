package tenure_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/exec"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// picked begins a graph with %p, the elements of x that keep marks, and %v,
// those twice, in a buffer of its own.
func picked() *graph {
	g := new(graph)
	g.input("x", i64Type, 4)
	g.input("keep", boolType, 4)
	g.input("c", boolType)
	g.ints("i0", 0)
	g.ints("i1", 1)
	g.ints("i3", 3)
	g.ints("flat", -1)
	for name, n := range map[string]byte{"none": 0, "once": 1, "thrice": 3} {
		g.weight(name, i64Type, []byte{n, 0, 0, 0, 0, 0, 0, 0})
	}
	g.node("Compress", []string{"x", "keep"}, one("p"), attrInt("axis", 0))
	g.node("Concat", []string{"p", "p"}, one("v"), attrInt("axis", 0))
	return g
}

// roundOf begins the body of a loop that carries s.
func roundOf() *graph {
	body := new(graph)
	body.input("i", i64Type)
	body.input("again", boolType)
	body.input("s", i64Type, "")
	body.node("Identity", one("again"), one("again2"))
	body.output("again2")
	return body
}

// TestPassedOn runs models that pass values of unknown size on as views, around
// loops and out of branches, a few times. Every output has bytes of its own
// whose others nobody can see, and at the end nothing is left.
func TestPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		build func(g *graph)
		want  map[string][]int64
		shape map[string][]int
	}{
		"a branch gives a part": {func(g *graph) {
			var a, b graph
			a.node("Slice", []string{"v", "i1", "i3", "i0"}, one("a1"))
			a.output("a1")
			b.node("Neg", one("v"), one("b1"))
			b.output("b1")
			g.node("If", one("c"), one("w"), attrGraph("then_branch", &a), attrGraph("else_branch", &b))
			g.output("w")
		}, map[string][]int64{"w": {20, 30}}, nil},
		"a loop carries a part": {func(g *graph) {
			body := roundOf()
			body.node("Slice", []string{"s", "i1", "i3", "i0"}, one("s2"))
			body.output("s2")
			g.node("Loop", []string{"once", "", "v"}, one("w"), attrGraph("body", body))
			g.output("w")
		}, map[string][]int64{"w": {20, 30}}, nil},
		"a branch gives a view of an output": {func(g *graph) {
			var a, b graph
			a.node("Reshape", []string{"v", "flat"}, one("a1"))
			a.output("a1")
			b.node("Neg", one("v"), one("b1"))
			b.output("b1")
			g.node("If", one("c"), one("w"), attrGraph("then_branch", &a), attrGraph("else_branch", &b))
			g.output("w")
			g.output("v")
		}, map[string][]int64{"w": {10, 20, 30, 40, 10, 20, 30, 40}, "v": {10, 20, 30, 40, 10, 20, 30, 40}}, nil},
		"a loop of no rounds gives an output": {func(g *graph) {
			body := roundOf()
			body.node("Neg", one("s"), one("s2"))
			body.output("s2")
			g.node("Loop", []string{"none", "", "v"}, one("w"), attrGraph("body", body))
			g.output("w")
			g.output("v")
		}, map[string][]int64{"w": {10, 20, 30, 40, 10, 20, 30, 40}, "v": {10, 20, 30, 40, 10, 20, 30, 40}}, nil},
		"a loop stacks views of what it carries": {func(g *graph) {
			body := roundOf()
			body.node("Neg", one("s"), one("s2"))
			body.node("Unsqueeze", []string{"s", "i0"}, one("part"))
			body.output("s2")
			body.output("part")
			g.node("Slice", []string{"p", "i1", "i3", "i0"}, one("q"))
			g.node("Loop", []string{"thrice", "", "q"}, []string{"w", "stack"}, attrGraph("body", body))
			g.output("stack")
		}, map[string][]int64{"stack": {20, 30, -20, -30, 20, 30}}, map[string][]int{"stack": {3, 1, 2}}},
		"a loop of no rounds stacks what the body declares": {func(g *graph) {
			body := roundOf()
			body.node("Slice", []string{"s", "i1", "i3", "i0"}, one("s2"))
			body.node("Reshape", []string{"s", "to"}, one("part"))
			body.output("s2")
			body.outputs = body.outputs.bytes(12, value("part", i64Type, 2, "n", 5))
			g.node("Shape", one("v"), one("len"))
			g.node("Concat", []string{"len", "i1", "i1"}, one("to"), attrInt("axis", 0))
			g.node("Loop", []string{"none", "", "v"}, []string{"w", "stack"}, attrGraph("body", body))
			g.output("stack")
		}, map[string][]int64{"stack": {}}, map[string][]int{"stack": {0, 2, 0, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			g := picked()
			c.build(g)
			s := session(t, loadBytes(t, g.file()))
			x, yes := of(t, []int64{10, 20, 30, 40}, 4), of(t, []bool{true})
			keep := of(t, []bool{true, true, true, true}, 4)
			var before memory.Figures
			for round := range 4 {
				out := run(t, s, tenure.Inputs{"x": x, "keep": keep, "c": yes})
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
						t.Fatalf("%s: got an output that somebody else holds", name)
					}
				}
				out.Release()
				if now := memory.Stats(); round == 0 {
					before = now
				} else if now.Total.Current != before.Total.Current || now.Total.Buffers != before.Total.Buffers {
					t.Fatalf("run %d: got %d bytes in %d buffers, want %d in %d as after the first", round,
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
