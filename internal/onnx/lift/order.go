package lift

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/onnx/wire"
)

// Order sorts the nodes of a model's graph, of the graphs nested in it, and of
// its functions, so that each node comes after those whose outputs it reads.
// The format wants files sorted, but not all programs that write them do it.
// Nodes that are in order stay where they are; in front of any other come the
// nodes that it needs. Nodes that need each other are an error that names them.
//
// Order also removes the inputs of nested graphs that have an initializer: by
// the format all initializers were inputs before IR version 4, and the operands
// of a node meet the others.
func Order(m *wire.Model) error {
	if err := orderGraph(m.Graph, nil); err != nil {
		return err
	}
	for i := range m.Functions {
		f := &m.Functions[i]
		err := orderNodes(f.Nodes, &names{known: set(f.Inputs)})
		for j := range f.Defaults {
			if g, ok := f.Defaults[j].Value.(*wire.Graph); ok && err == nil {
				err = orderNested(g, nil)
			}
		}
		if err != nil {
			return fmt.Errorf("function %s: %w", functionKey{DomainOf(f.Domain), f.Name, f.Overload}, err)
		}
	}
	return nil
}

// names are the names that nodes of a graph see without reading each other:
// those of the graph's inputs and weights, and all those of the graphs around.
type names struct {
	around *names
	known  map[string]bool
}

// has reports whether a name is known here or in the graphs around, up to the
// given one.
func (n *names) has(name string, until *names) bool {
	for ; n != until; n = n.around {
		if n.known[name] {
			return true
		}
	}
	return false
}

func set(list []string) map[string]bool {
	s := make(map[string]bool, len(list))
	for _, name := range list {
		s[name] = true
	}
	return s
}

// namesOf returns the names of a graph's inputs and weights.
func namesOf(g *wire.Graph, around *names) *names {
	n := &names{around, map[string]bool{}}
	for i := range g.Sparse {
		n.known[g.Sparse[i].Values.Name] = true
	}
	for i := range g.Inputs {
		n.known[g.Inputs[i].Name] = true
	}
	for i := range g.Initializers {
		n.known[g.Initializers[i].Name] = true
	}
	return n
}

func (n *names) addOutputs(nodes []wire.Node) {
	for i := range nodes {
		for _, name := range nodes[i].Outputs {
			n.known[name] = true
		}
	}
}

// eachGraph calls f with each graph in an attribute of a node.
func eachGraph(p *wire.Node, f func(*wire.Graph)) {
	for i := range p.Attrs {
		if g, ok := p.Attrs[i].Value.(*wire.Graph); ok {
			f(g)
		}
	}
}

// orderNested sorts the nodes of a graph in an attribute.
func orderNested(g *wire.Graph, around *names) error {
	isWeight := map[string]bool{}
	for i := range g.Initializers {
		isWeight[g.Initializers[i].Name] = true
	}
	for i := range g.Sparse {
		isWeight[g.Sparse[i].Values.Name] = true
	}
	g.Inputs = slices.DeleteFunc(g.Inputs, func(v wire.Value) bool { return isWeight[v.Name] })
	return orderGraph(g, around)
}

func orderGraph(g *wire.Graph, around *names) error {
	return orderNodes(g.Nodes, namesOf(g, around))
}

// orderNodes sorts nodes that see the names in, and the graphs nested in them.
func orderNodes(nodes []wire.Node, in *names) error {
	o := &ordering{nodes: nodes, in: in, makers: make(map[string]int, len(nodes))}
	for i := range nodes {
		for _, name := range nodes[i].Outputs {
			if _, ok := o.makers[name]; !ok && name != "" {
				o.makers[name] = i
			}
		}
	}
	sorted := true
	for i := 0; i < len(nodes) && sorted; i++ {
		o.eachNeeded(i, func(by int, _ string) { sorted = sorted && by < i })
	}
	if !sorted {
		if err := o.sort(); err != nil {
			return err
		}
	}
	in.addOutputs(nodes)
	var err error
	for i := range nodes {
		eachGraph(&nodes[i], func(g *wire.Graph) {
			if err == nil {
				err = orderNested(g, in)
			}
		})
	}
	return err
}

// ordering sorts the nodes of one graph.
type ordering struct {
	nodes  []wire.Node
	in     *names
	makers map[string]int // the first node that has an output of that name
}

// eachNeeded calls f with the nodes whose outputs node i reads. A name that a
// later node has, too, is that of a value that is there already: the import
// refuses a second one.
func (o *ordering) eachNeeded(i int, f func(by int, name string)) {
	eachRead(&o.nodes[i], o.in, o.in, func(name string) {
		if by, ok := o.makers[name]; ok && (by < i || !o.in.has(name, nil)) {
			f(by, name)
		}
	})
}

// eachRead calls f with the names that a node reads, and the graphs nested in
// it where they do not define them.
func eachRead(p *wire.Node, in, until *names, f func(name string)) {
	read := func(name string) {
		if name != "" && !in.has(name, until) {
			f(name)
		}
	}
	for _, name := range p.Inputs {
		read(name)
	}
	eachGraph(p, func(g *wire.Graph) {
		inside := namesOf(g, in)
		inside.addOutputs(g.Nodes)
		for i := range g.Nodes {
			eachRead(&g.Nodes[i], inside, until, f)
		}
		for i := range g.Outputs {
			if name := g.Outputs[i].Name; name != "" && !inside.has(name, until) {
				f(name)
			}
		}
	})
}

// need is a node that waits for another one, because it reads its output.
type need struct {
	by   int
	name string
}

// sort puts the nodes that a node needs in front of it, depth first: values
// are then made shortly before they are read.
func (o *ordering) sort() error {
	const fresh, begun, done = 0, 1, 2
	state := make([]byte, len(o.nodes))
	order := make([]int, 0, len(o.nodes))
	type visit struct {
		node  int
		needs []need // those that have not been looked at
	}
	var path []visit
	enter := func(i int) {
		state[i] = begun
		v := visit{node: i}
		o.eachNeeded(i, func(by int, name string) { v.needs = append(v.needs, need{by, name}) })
		path = append(path, v)
	}
	waiting := map[int]string{} // what each node of the path reads of the next one
	for i := range o.nodes {
		if state[i] == fresh {
			enter(i)
		}
		for len(path) > 0 {
			top := &path[len(path)-1]
			if len(top.needs) == 0 {
				state[top.node] = done
				order = append(order, top.node)
				path = path[:len(path)-1]
				continue
			}
			next := top.needs[0]
			top.needs = top.needs[1:]
			waiting[top.node] = next.name
			switch state[next.by] {
			case fresh:
				enter(next.by)
			case begun:
				start := slices.IndexFunc(path, func(v visit) bool { return v.node == next.by })
				var cycle []int
				for _, v := range path[start:] {
					cycle = append(cycle, v.node)
				}
				return o.cycleError(cycle, waiting)
			}
		}
	}
	sorted := make([]wire.Node, len(order))
	for i, at := range order {
		sorted[i] = o.nodes[at]
	}
	copy(o.nodes, sorted)
	return nil
}

// cycleError names nodes of which each reads an output of the next one, and the
// last one of the first.
func (o *ordering) cycleError(cycle []int, reads map[int]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "node %q", o.nodeName(cycle[0]))
	for i, at := range cycle[:min(len(cycle), maxNamed)] {
		next := "itself"
		switch {
		case i+1 < len(cycle):
			next = fmt.Sprintf("node %q", o.nodeName(cycle[i+1]))
		case len(cycle) > 1:
			next = fmt.Sprintf("node %q", o.nodeName(cycle[0]))
		}
		if i > 0 {
			b.WriteString(", which")
		}
		fmt.Fprintf(&b, " reads %q of %s", reads[at], next)
	}
	if len(cycle) > maxNamed {
		fmt.Fprintf(&b, ", and so on through %d nodes", len(cycle))
	}
	return wire.Corruptf("the graph has a cycle: %s", b.String())
}

func (o *ordering) nodeName(i int) string {
	if name := o.nodes[i].Name; name != "" {
		return name
	}
	return fmt.Sprintf("%s#%d", o.nodes[i].OpType, i)
}
