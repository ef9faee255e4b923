package ortdiff_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
)

var printDrawn = flag.Bool("drawn", false, "print how often each operator and element type was drawn")

// census counts what models have.
type census struct {
	models, nodes, most          int
	operators, types, properties map[string]int
}

func newCensus() *census {
	return &census{operators: map[string]int{}, types: map[string]int{}, properties: map[string]int{}}
}

// add counts a model.
func (c *census) add(m *model) {
	c.models++
	names := m.graph.operators()
	for _, f := range m.functions {
		names = append(names, (&graph{nodes: f.nodes}).operators()...)
	}
	c.nodes, c.most = c.nodes+len(names), max(c.most, len(names))
	for _, name := range names {
		c.operators[name]++
	}
	c.properties[fmt.Sprintf("opset %02d", m.opset)]++
	has := map[string]bool{"functions": m.functions != nil}
	types := map[dtype.DType]bool{}
	for _, v := range m.values {
		types[v.dt] = true
		has["constants among the inputs"] = has["constants among the inputs"] || v.listed
		has["open sizes"] = has["open sizes"] || v.written != nil
		for _, o := range m.graph.outputs {
			has["an output that is an input or a constant"] = has["an output that is an input or a constant"] || o.name == v.name
		}
	}
	c.graph(&m.graph, types, has)
	for _, f := range m.functions {
		c.graph(&graph{nodes: f.nodes}, types, has)
	}
	for dt := range types {
		c.types[dt.String()]++
	}
	for name, ok := range has {
		if ok {
			c.properties[name]++
		}
	}
}

// graph notes the element types and properties of the nodes of a graph.
func (c *census) graph(g *graph, types map[dtype.DType]bool, has map[string]bool) {
	for _, n := range g.nodes {
		if to, ok := n.get("to").(int64); ok {
			if dt, err := dtype.FromONNX(int32(to)); err == nil {
				types[dt] = true
			}
		}
		for _, inner := range n.nested() {
			has["nested graphs"] = true
			own := []string{}
			for _, p := range inner.params {
				own = append(own, p.name)
			}
			for _, v := range inner.values {
				own = append(own, v.name)
				has["nested graphs with constants"] = true
			}
			for _, name := range outside(inner.nodes, inner.outputs) {
				if !slices.Contains(own, name) {
					has["captured values"] = true
				}
			}
			for _, deep := range inner.nodes {
				has["nested graphs in nested graphs"] = has["nested graphs in nested graphs"] || len(deep.nested()) > 0
			}
			c.graph(inner, types, has)
		}
	}
}

// log prints the counts, if they are asked for.
func (c *census) log(t *testing.T) {
	if !*printDrawn {
		return
	}
	t.Logf("%d models of %d nodes, at most %d", c.models, c.nodes, c.most)
	for _, counts := range []map[string]int{c.properties, c.types, c.operators} {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
		}
		t.Log(strings.Join(parts, ", "))
	}
}
