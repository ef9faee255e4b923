package tenure_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(prefix, i)
	}
	return list
}

func one(name string) []string { return []string{name} }

// deepIf has an If in each branch of an If, to a depth.
func deepIf(g *graph, depth int, name string) {
	if depth == 0 {
		g.node("Relu", one("x"), one(name))
		g.output(name)
		return
	}
	var then, otherwise graph
	deepIf(&then, depth-1, name+"t")
	otherwise.node("Neg", one("x"), one(name+"e"))
	otherwise.output(name + "e")
	g.node("If", one("c"), one(name), attrGraph("then_branch", &then), attrGraph("else_branch", &otherwise))
	g.output(name)
}

// large are generated files of many parts. Nothing in the way from file to run
// may take more than in proportion to their number, or the tests hang.
var large = map[string]func(g *graph){
	"chain": func(g *graph) {
		last := "x"
		for i := range 20_000 {
			next := fmt.Sprint("v", i)
			if i%2 == 0 {
				g.node("Relu", one(last), one(next))
			} else {
				g.node("Add", []string{last, "x"}, one(next))
			}
			last = next
		}
		g.output(last)
	},
	"chain of identities": func(g *graph) {
		last := "x"
		for i := range 20_000 {
			next := fmt.Sprint("v", i)
			g.node("Identity", one(last), one(next))
			last = next
		}
		g.output(last)
	},
	"chain of views": func(g *graph) {
		g.ints("flat", -1)
		g.ints("row", 1, -1)
		last := "x"
		for i := range 5_000 {
			mid, next := fmt.Sprint("m", i), fmt.Sprint("v", i)
			g.node("Relu", one(last), one(mid))
			g.node("Reshape", []string{mid, []string{"flat", "row"}[i%2]}, one(next))
			last = next
		}
		g.output(last)
	},
	"many values at once": func(g *graph) {
		list := names("v", 2_000)
		for i, name := range list {
			g.node([]string{"Relu", "Neg", "Abs", "Exp"}[i%4], one([]string{"x", "v0", "v1", "v2", "v3"}[min(i, 4)]), one(name), nil...)
		}
		g.node("Concat", list, one("y"), attrInt("axis", 0))
		g.output("y")
	},
	"wide and live": func(g *graph) {
		list := names("v", 2_000)
		for i, name := range list {
			w := fmt.Sprint("w", i)
			g.floats(w, float32(i))
			g.node("Add", []string{"x", w}, one(name))
		}
		g.node("Sum", list, one("y"))
		g.output("y")
	},
	"wide split": func(g *graph) {
		g.node("Concat", func() (l []string) {
			for range 125 {
				l = append(l, "x")
			}
			return
		}(), one("big"), attrInt("axis", 0))
		parts := names("p", 1_000)
		g.node("Split", one("big"), parts, attrInt("num_outputs", 1_000), attrInt("axis", 0))
		for i, p := range parts {
			g.node("Relu", one(p), one(fmt.Sprint("r", i)))
		}
		g.node("Concat", names("r", 1_000), one("y"), attrInt("axis", 0))
		g.output("y")
	},
	"many outputs": func(g *graph) {
		for i, name := range names("v", 5_000) {
			w := fmt.Sprint("w", i)
			g.floats(w, float32(i))
			g.node("Add", []string{"x", w}, one(name))
			g.output(name)
		}
	},
	"many inputs": func(g *graph) {
		for i, name := range names("i", 5_000) {
			g.input(name, f32Type, 8)
			g.node("Add", []string{"x", name}, one(fmt.Sprint("v", i)))
		}
		g.node("Sum", names("v", 5_000), one("y"))
		g.output("y")
	},
	"constants": func(g *graph) {
		g.floats("w", 1, 2, 3, 4, 5, 6, 7, 8)
		last := "w"
		for i := range 10_000 {
			next := fmt.Sprint("v", i)
			g.node("Add", []string{last, "w"}, one(next))
			last = next
		}
		g.node("Add", []string{"x", last}, one("y"))
		g.output("y")
	},
	"one reader each": func(g *graph) { // a long-lived value and many short ones
		g.node("Relu", one("x"), one("v0"))
		for i := range 5_000 {
			g.node("Exp", one(fmt.Sprint("v", i)), one(fmt.Sprint("e", i)))
			g.node("Sub", []string{fmt.Sprint("e", i), "v0"}, one(fmt.Sprint("v", i+1)))
		}
		g.output("v5000")
	},
	"nested ifs": func(g *graph) {
		g.input("c", boolType)
		deepIf(g, 30, "y") // messages nest to 100, three for each
	},
	"many ifs": func(g *graph) {
		g.input("c", boolType)
		last := "x"
		for i := range 1_000 {
			var then, otherwise graph
			then.node("Relu", one(last), one(fmt.Sprint("t", i)))
			then.output(fmt.Sprint("t", i))
			otherwise.node("Neg", one(last), one(fmt.Sprint("e", i)))
			otherwise.output(fmt.Sprint("e", i))
			next := fmt.Sprint("v", i)
			g.node("If", one("c"), one(next), attrGraph("then_branch", &then), attrGraph("else_branch", &otherwise))
			last = next
		}
		g.output(last)
	},
}

func TestLargeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: large programs take long in race builds")
	}
	memorytest.Check(t)
	for name, build := range large {
		t.Run(name, func(t *testing.T) {
			var g graph
			g.input("x", f32Type, 8)
			build(&g)
			if o := try(t, name, g.file()); o.stage != "done" {
				t.Errorf("got %s: %.500v, want a run", o.stage, o.err)
			}
		})
	}
}
