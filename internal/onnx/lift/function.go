package lift

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/internal/onnx/wire"
)

// Functions that call each other, or that have long names, are bounded in two
// ways beside the bytes that they expand to.
const (
	maxNesting = 64  // calls within each other
	MaxPath    = 200 // bytes of the names of calls around a value, which are part of its name
)

type functionKey struct{ domain, name, overload string }

func (k functionKey) String() string {
	s := k.domain + "::" + k.name
	if k.overload != "" {
		s += ":" + k.overload
	}
	return Printable(s)
}

// inlining is one call of a function whose body is being imported.
type inlining struct {
	key     functionKey
	outer   *inlining
	attrs   map[string]any    // values of the function's attributes
	outputs map[string]string // names in the program of its results
}

// functionsOf returns the functions of a model by what calls them.
func functionsOf(list []wire.Function) (map[functionKey]*wire.Function, error) {
	functions := make(map[functionKey]*wire.Function, len(list))
	for i := range list {
		f := &list[i]
		key := functionKey{DomainOf(f.Domain), f.Name, f.Overload}
		if functions[key] != nil {
			return nil, wire.Corruptf("function %s: got a second one of that name", key)
		}
		functions[key] = f
	}
	return functions, nil
}

// inline imports the body of a function in place of the node that calls it.
func (n *Node) inline(key functionKey, f *wire.Function) {
	call := &inlining{key: key, outer: n.fn, outputs: map[string]string{}}
	depth := 0
	for at := n.fn; at != nil; at = at.outer {
		if at.key == key {
			n.Err = wire.Corruptf("function %s calls itself: %s", key, callChain(call))
			return
		}
		if depth++; depth >= maxNesting {
			n.Err = tooMuchf("functions call each other deeper than %d: %s", maxNesting, callChain(call))
			return
		}
	}
	if n.inlined += bodySize(f); n.inlined > n.maxInlined {
		n.Err = tooMuchf("the functions of the model expand to more than %d bytes", n.maxInlined)
		return
	}
	if len(n.Args) > len(f.Inputs) || len(n.Proto.Outputs) > len(f.Outputs) {
		n.Err = wire.Corruptf("function %s: got %d operands and %d outputs, want at most %d and %d",
			key, len(n.Args), len(n.Proto.Outputs), len(f.Inputs), len(f.Outputs))
		return
	}
	n.functionAttrs(call, f)
	opsets, err := n.opsetsOf(f.Opsets)
	if err != nil {
		n.Fail("function %s: %w", key, err)
	}
	if n.Err != nil {
		return
	}
	for domain, version := range n.result.Opsets {
		if _, ok := opsets[domain]; !ok {
			opsets[domain] = version
		}
	}
	body := &Scope{importer: n.importer, opsets: opsets, Block: n.Block, Values: map[string]*Binding{}, used: map[string]bool{}, Path: n.CallPath(), fn: call}
	for i, name := range f.Inputs {
		if body.Values[name] != nil {
			n.Err = wire.Corruptf("function %s: got input %q twice", key, name)
			return
		}
		body.Values[name] = &Binding{Value: n.Arg(i)}
		if i < len(n.Lists) {
			body.Values[name].List = n.Lists[i]
		}
	}
	markUsed(body.used, f.Nodes)
	for i, out := range n.Proto.Outputs {
		if out != "" {
			call.outputs[f.Outputs[i]] = n.ValueName(out)
			body.used[f.Outputs[i]] = body.used[f.Outputs[i]] || n.used[out]
		}
	}
	if err := body.body(f.Nodes); err != nil {
		n.Fail("function %s: %w", key, err)
		return
	}
	n.functionOutputs(body, f)
}

// CallPath is the prefix of names in a body.
func (n *Node) CallPath() string {
	if len(n.Name) <= MaxPath {
		return n.Name + "/"
	}
	return fmt.Sprintf("call#%d/", n.inlined) // a number that grows with every call
}

// bodySize is about what one copy of the body takes.
func bodySize(f *wire.Function) int {
	size := 256
	for _, list := range [][]string{f.Inputs, f.Outputs, f.Attrs} {
		size += 64 * len(list)
	}
	return size + 64*len(f.Defaults) + ExpandedSize(f.Nodes)
}

func ExpandedSize(nodes []wire.Node) int {
	size := 0
	for i := range nodes {
		n := &nodes[i]
		size += 256 + len(n.Name)
		for _, list := range [][]string{n.Inputs, n.Outputs} {
			for _, name := range list {
				size += 256 + len(name)
			}
		}
		for j := range n.Attrs {
			size += 64
			if g, ok := n.Attrs[j].Value.(*wire.Graph); ok {
				size += 256*(len(g.Initializers)+len(g.Values)+len(g.Outputs)) + ExpandedSize(g.Nodes)
			}
		}
	}
	return size
}

// functionOutputs binds the outputs of the node to values of the body.
func (n *Node) functionOutputs(body *Scope, f *wire.Function) {
	for i, out := range n.Proto.Outputs {
		if out == "" {
			continue
		}
		b, err := body.find(f.Outputs[i])
		if err == nil && b.Value == nil && b.List == nil && n.used[out] {
			err = wire.Corruptf("it is an absent operand")
		}
		if err != nil {
			n.Fail("output %q of function %s: %w", f.Outputs[i], body.fn.key, err)
			return
		}
		n.Values[out] = &Binding{Value: b.Value, List: b.List}
	}
}

// functionAttrs sets the function's attributes to the values of the node or,
// without one, their defaults. Nodes of the body may refer to an attribute that
// the function does not list.
func (n *Node) functionAttrs(call *inlining, f *wire.Function) {
	call.attrs = map[string]any{}
	for _, name := range f.Attrs {
		if v, ok := n.TakeAny(name); ok {
			call.attrs[name] = v
		}
	}
	for i := range f.Defaults {
		a := &f.Defaults[i]
		call.attrs[a.Name] = a.Value
		if v, ok := n.TakeAny(a.Name); ok {
			call.attrs[a.Name] = v
		}
	}
	for _, a := range n.Attrs {
		n.Note(fmt.Sprintf("function %s does not list the attribute %q", call.key, a.Name))
		call.attrs[a.Name] = a.Value
	}
	n.Attrs = nil
}

// callChain names the last calls that led here.
func callChain(c *inlining) string {
	var names []string
	for ; c != nil && len(names) < 5; c = c.outer {
		names = append([]string{c.key.String()}, names...)
	}
	return strings.Join(names, " calls ")
}

// usedNames returns the names that nodes of a graph, graphs nested in it, or
// its outputs read.
func usedNames(g *wire.Graph) map[string]bool {
	used := map[string]bool{}
	markGraph(used, g)
	return used
}

func markGraph(used map[string]bool, g *wire.Graph) {
	markUsed(used, g.Nodes)
	for i := range g.Outputs {
		used[g.Outputs[i].Name] = true
	}
}

func markUsed(used map[string]bool, nodes []wire.Node) {
	for i := range nodes {
		for _, name := range nodes[i].Inputs {
			used[name] = true
		}
		for j := range nodes[i].Attrs {
			if g, ok := nodes[i].Attrs[j].Value.(*wire.Graph); ok {
				markGraph(used, g)
			}
		}
	}
}
