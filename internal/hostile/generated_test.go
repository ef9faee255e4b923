package hostile_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(prefix, i)
	}
	return list
}

// deepIf has an If in each branch of an If, to a depth.
func deepIf(g *onnxtest.Graph, depth int, name string) {
	if depth == 0 {
		g.Node("Relu", []string{"x"}, []string{name})
		g.Output(name)
		return
	}
	var then, otherwise onnxtest.Graph
	deepIf(&then, depth-1, name+"t")
	otherwise.Node("Neg", []string{"x"}, []string{name + "e"})
	otherwise.Output(name + "e")
	g.Node("If", []string{"c"}, []string{name}, onnxtest.Subgraph("then_branch", &then), onnxtest.Subgraph("else_branch", &otherwise))
	g.Output(name)
}

// large are generated files of many parts. Nothing in the way from file to run
// may take more than in proportion to their number, or the tests hang.
var large = map[string]func(g *onnxtest.Graph){
	"chain": func(g *onnxtest.Graph) {
		last := "x"
		for i := range 20_000 {
			next := fmt.Sprint("v", i)
			if i%2 == 0 {
				g.Node("Relu", []string{last}, []string{next})
			} else {
				g.Node("Add", []string{last, "x"}, []string{next})
			}
			last = next
		}
		g.Output(last)
	},
	"chain of identities": func(g *onnxtest.Graph) {
		last := "x"
		for i := range 20_000 {
			next := fmt.Sprint("v", i)
			g.Node("Identity", []string{last}, []string{next})
			last = next
		}
		g.Output(last)
	},
	"chain of views": func(g *onnxtest.Graph) {
		g.Ints("flat", -1)
		g.Ints("row", 1, -1)
		last := "x"
		for i := range 5_000 {
			mid, next := fmt.Sprint("m", i), fmt.Sprint("v", i)
			g.Node("Relu", []string{last}, []string{mid})
			g.Node("Reshape", []string{mid, []string{"flat", "row"}[i%2]}, []string{next})
			last = next
		}
		g.Output(last)
	},
	"many values at once": func(g *onnxtest.Graph) {
		list := names("v", 2_000)
		for i, name := range list {
			g.Node([]string{"Relu", "Neg", "Abs", "Exp"}[i%4], []string{[]string{"x", "v0", "v1", "v2", "v3"}[min(i, 4)]}, []string{name}, nil...)
		}
		g.Node("Concat", list, []string{"y"}, onnxtest.Int("axis", 0))
		g.Output("y")
	},
	"wide and live": func(g *onnxtest.Graph) {
		list := names("v", 2_000)
		for i, name := range list {
			w := fmt.Sprint("w", i)
			g.Floats(w, float32(i))
			g.Node("Add", []string{"x", w}, []string{name})
		}
		g.Node("Sum", list, []string{"y"})
		g.Output("y")
	},
	"wide split": func(g *onnxtest.Graph) {
		g.Node("Concat", func() (l []string) {
			for range 125 {
				l = append(l, "x")
			}
			return
		}(), []string{"big"}, onnxtest.Int("axis", 0))
		parts := names("p", 1_000)
		g.Node("Split", []string{"big"}, parts, onnxtest.Int("num_outputs", 1_000), onnxtest.Int("axis", 0))
		for i, p := range parts {
			g.Node("Relu", []string{p}, []string{fmt.Sprint("r", i)})
		}
		g.Node("Concat", names("r", 1_000), []string{"y"}, onnxtest.Int("axis", 0))
		g.Output("y")
	},
	"many outputs": func(g *onnxtest.Graph) {
		for i, name := range names("v", 5_000) {
			w := fmt.Sprint("w", i)
			g.Floats(w, float32(i))
			g.Node("Add", []string{"x", w}, []string{name})
			g.Output(name)
		}
	},
	"many inputs": func(g *onnxtest.Graph) {
		for i, name := range names("i", 5_000) {
			g.Input(name, onnxtest.F32, 8)
			g.Node("Add", []string{"x", name}, []string{fmt.Sprint("v", i)})
		}
		g.Node("Sum", names("v", 5_000), []string{"y"})
		g.Output("y")
	},
	"constants": func(g *onnxtest.Graph) {
		g.Floats("w", 1, 2, 3, 4, 5, 6, 7, 8)
		last := "w"
		for i := range 10_000 {
			next := fmt.Sprint("v", i)
			g.Node("Add", []string{last, "w"}, []string{next})
			last = next
		}
		g.Node("Add", []string{"x", last}, []string{"y"})
		g.Output("y")
	},
	"one reader each": func(g *onnxtest.Graph) { // a long-lived value and many short ones
		g.Node("Relu", []string{"x"}, []string{"v0"})
		for i := range 5_000 {
			g.Node("Exp", []string{fmt.Sprint("v", i)}, []string{fmt.Sprint("e", i)})
			g.Node("Sub", []string{fmt.Sprint("e", i), "v0"}, []string{fmt.Sprint("v", i+1)})
		}
		g.Output("v5000")
	},
	"nested ifs": func(g *onnxtest.Graph) {
		g.Input("c", onnxtest.Bool)
		deepIf(g, 30, "y") // messages nest to 100, three for each
	},
	"many ifs": func(g *onnxtest.Graph) {
		g.Input("c", onnxtest.Bool)
		last := "x"
		for i := range 1_000 {
			var then, otherwise onnxtest.Graph
			then.Node("Relu", []string{last}, []string{fmt.Sprint("t", i)})
			then.Output(fmt.Sprint("t", i))
			otherwise.Node("Neg", []string{last}, []string{fmt.Sprint("e", i)})
			otherwise.Output(fmt.Sprint("e", i))
			next := fmt.Sprint("v", i)
			g.Node("If", []string{"c"}, []string{next}, onnxtest.Subgraph("then_branch", &then), onnxtest.Subgraph("else_branch", &otherwise))
			last = next
		}
		g.Output(last)
	},
}

func TestLargeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: large programs take long in race builds")
	}
	memorytest.Check(t)
	for name, build := range large {
		t.Run(name, func(t *testing.T) {
			var g onnxtest.Graph
			g.Input("x", onnxtest.F32, 8)
			build(&g)
			if o := try(t, name, g.File()); o.stage != "done" {
				t.Errorf("got %s: %.500v, want a run", o.stage, o.err)
			}
		})
	}
}
