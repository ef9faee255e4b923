package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/onnx/wire"
)

// ErrNoValue is the error of a requested output that is no value of the model.
var ErrNoValue = errors.New("no value of the model")

// choose makes the values of the given names the outputs of a graph, in that
// order, and drops the nodes that nothing of them needs. It returns how many
// nodes it has dropped.
func choose(g *wire.Graph, names []string) (dropped int, err error) {
	if err := CheckChosen(names, slices.Values(valueNames(g))); err != nil {
		return 0, err
	}
	declared := map[string]wire.Value{}
	for _, list := range [][]wire.Value{g.Values, g.Inputs, g.Outputs} {
		for _, v := range list {
			declared[v.Name] = v
		}
	}
	outputs := make([]wire.Value, len(names))
	needed := map[string]bool{}
	for i, name := range names {
		outputs[i] = declared[name]
		outputs[i].Name = name
		needed[name] = true
	}
	g.Outputs = outputs
	kept := len(g.Nodes)
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if !slices.ContainsFunc(n.Outputs, func(name string) bool { return needed[name] }) {
			continue
		}
		markRead(needed, &n)
		kept--
		g.Nodes[kept] = n
	}
	g.Nodes = g.Nodes[kept:]
	return kept, nil
}

// markRead marks the values that a node reads, in its subgraphs too.
func markRead(needed map[string]bool, n *wire.Node) {
	for _, name := range n.Inputs {
		needed[name] = true
	}
	for i := range n.Attrs {
		g, ok := n.Attrs[i].Value.(*wire.Graph)
		if !ok {
			continue
		}
		for j := range g.Nodes {
			markRead(needed, &g.Nodes[j])
		}
		for j := range g.Outputs {
			needed[g.Outputs[j].Name] = true
		}
	}
}

// valueNames lists the values of a graph that outputs can be: those of its
// subgraphs exist only while these run.
func valueNames(g *wire.Graph) []string {
	var names []string
	for i := range g.Inputs {
		names = append(names, g.Inputs[i].Name)
	}
	for i := range g.Initializers {
		names = append(names, g.Initializers[i].Name)
	}
	for i := range g.Nodes {
		names = append(names, g.Nodes[i].Outputs...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// CheckChosen returns an error unless the names are names of values, each named
// once. It lists values of similar names for one that is none, and is of kind
// ErrNoValue then.
func CheckChosen(names []string, values func(func(string) bool)) error {
	if len(names) == 0 {
		return fmt.Errorf("outputs: got no name, want one or more: %w", ErrNoValue)
	}
	known := map[string]bool{}
	for name := range values {
		known[name] = true
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("outputs: got %q twice, want each once: %w", name, ErrNoValue)
		}
		if !known[name] {
			return fmt.Errorf("outputs: got %q, which is %w%s", name, ErrNoValue, suggestion(name, known))
		}
	}
	return nil
}

// suggestion lists the few names that are the most similar to one.
func suggestion(name string, known map[string]bool) string {
	const few = 5
	type candidate struct {
		name string
		far  int
	}
	var list []candidate
	for other := range known {
		list = append(list, candidate{other, difference(name, other)})
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name)) })
	var near []string
	for _, c := range list[:min(few, len(list))] {
		near = append(near, strconv.Quote(c.name))
	}
	if len(near) == 0 {
		return ""
	}
	return ", want one such as " + strings.Join(near, ", ")
}

// difference returns how far apart two names are: the number of characters to
// insert, delete or replace, where those around a name that contains the other
// count little, and upper and lower case are the same.
func difference(a, b string) int {
	const most = 256 // bytes that are compared: names of graphs can be long
	a, b = strings.ToLower(a[:min(len(a), most)]), strings.ToLower(b[:min(len(b), most)])
	if a != "" && b != "" && (strings.Contains(a, b) || strings.Contains(b, a)) {
		return (max(len(a), len(b)) - min(len(a), len(b)) + 7) / 8
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row above, one to the left
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			change := before
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above+1, row[j]+1)
			before = above
		}
	}
	return row[len(b)]
}
