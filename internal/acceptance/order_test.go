package acceptance_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// drawnNode is a node of a drawn graph: a Sub of two earlier values or, if
// inner is not empty, an If whose branches compute it with nodes of their own.
type drawnNode struct {
	a, b  string
	inner []drawnNode
}

// drawNodes draws nodes v0, v1, ... under a prefix that read values before
// them.
func drawNodes(t *rapid.T, prefix string, known []string, depth int) (nodes []drawnNode, names []string) {
	known = slices.Clone(known)
	for i := range rapid.IntRange(1, 8).Draw(t, prefix+"nodes") {
		what := fmt.Sprint(prefix, "v", i)
		n := drawnNode{a: rapid.SampledFrom(known).Draw(t, what+" a"), b: rapid.SampledFrom(known).Draw(t, what+" b")}
		if depth > 0 && rapid.IntRange(0, 4).Draw(t, what+" nests") == 0 {
			n.inner, _ = drawNodes(t, what+"/", known, depth-1)
		}
		nodes, known, names = append(nodes, n), append(known, what), append(names, what)
	}
	return nodes, names
}

// write adds the nodes to a graph, in the order that shuffle returns.
func write(g *onnxtest.Graph, prefix string, nodes []drawnNode, shuffle func(n int) []int) {
	for _, i := range shuffle(len(nodes)) {
		n, out := nodes[i], fmt.Sprint(prefix, "v", i)
		if n.inner == nil {
			g.Node("Sub", []string{n.a, n.b}, []string{out})
			continue
		}
		var then, other onnxtest.Graph
		write(&then, out+"/", n.inner, shuffle)
		then.Output(fmt.Sprint(out, "/v", len(n.inner)-1))
		other.Node("Sub", []string{n.b, n.a}, []string{out + "/other"})
		other.Output(out + "/other")
		g.Node("If", []string{"c"}, []string{out}, onnxtest.Subgraph("then_branch", &then), onnxtest.Subgraph("else_branch", &other))
	}
}

// TestAnyOrder draws graphs with nested ones, and holds their results with
// nodes in any order to those with nodes in the order that ONNX wants.
func TestAnyOrder(t *testing.T) {
	memorytest.Check(t)
	rapid.Check(t, func(t *rapid.T) {
		nodes, names := drawNodes(t, "", []string{"x", "z"}, 2)
		last := names[len(names)-1]
		run := func(shuffle func(n int) []int) []float32 {
			var g onnxtest.Graph
			g.Input("x", onnxtest.F32, 2)
			g.Input("z", onnxtest.F32, 2)
			g.Input("c", onnxtest.Bool)
			write(&g, "", nodes, shuffle)
			g.Output(last)
			s := modeltest.Session(t, modeltest.LoadBytes(t, g.File()))
			in := tenure.Inputs{"x": modeltest.Of(t, []float32{1, 5}, 2), "z": modeltest.Of(t, []float32{3, 4}, 2), "c": modeltest.Of(t, []bool{true})}
			return slices.Clone(modeltest.Values(t, modeltest.Run(t, s, in)[last]))
		}
		inOrder := func(n int) []int {
			list := make([]int, n)
			for i := range list {
				list[i] = i
			}
			return list
		}
		want := run(inOrder)
		count := 0
		got := run(func(n int) []int {
			count++
			return rapid.Permutation(inOrder(n)).Draw(t, fmt.Sprint("order ", count))
		})
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
