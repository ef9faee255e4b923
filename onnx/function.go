package onnx

import (
	"fmt"
	"strings"
)

// Functions that call each other twice, or that have long names, would grow a
// small file beyond all memory.
const (
	minExpansion = 16 << 20 // bytes that functions may always expand to, roughly
	maxExpansion = 128      // and how many times the file beyond that
	maxNesting   = 64       // calls within each other
	maxPath      = 200      // bytes of the names of calls around a value, which are part of its name
)

type functionKey struct{ domain, name, overload string }

func (k functionKey) String() string {
	s := k.domain + "::" + k.name
	if k.overload != "" {
		s += ":" + k.overload
	}
	return printable(s)
}

// inlining is one call of a function whose body is being imported.
type inlining struct {
	key     functionKey
	outer   *inlining
	attrs   map[string]any    // values of the function's attributes
	outputs map[string]string // names in the program of the values that it gives
}

// functionsOf returns the functions of a model by what calls them.
func functionsOf(list []functionProto) (map[functionKey]*functionProto, error) {
	functions := make(map[functionKey]*functionProto, len(list))
	for i := range list {
		f := &list[i]
		key := functionKey{domainOf(f.domain), f.name, f.overload}
		if functions[key] != nil {
			return nil, corruptf("function %s: got a second one of that name", key)
		}
		functions[key] = f
	}
	return functions, nil
}

// inline imports the body of a function in place of the node that calls it.
func (n *node) inline(key functionKey, f *functionProto) {
	call := &inlining{key: key, outer: n.fn, outputs: map[string]string{}}
	depth := 0
	for at := n.fn; at != nil; at = at.outer {
		if at.key == key {
			n.err = corruptf("function %s calls itself: %s", key, callChain(call))
			return
		}
		if depth++; depth >= maxNesting {
			n.err = corruptf("functions call each other deeper than %d: %s", maxNesting, callChain(call))
			return
		}
	}
	if n.inlined += f.size(); n.inlined > n.maxInlined {
		n.err = corruptf("the functions of the model expand to more than %d bytes", n.maxInlined)
		return
	}
	if len(n.args) > len(f.inputs) || len(n.proto.outputs) > len(f.outputs) {
		n.err = corruptf("function %s: got %d operands and %d outputs, want at most %d and %d",
			key, len(n.args), len(n.proto.outputs), len(f.inputs), len(f.outputs))
		return
	}
	n.functionAttrs(call, f)
	opsets, err := opsetsOf(f.opsets)
	if err != nil {
		n.fail("function %s: %w", key, err)
	}
	if n.err != nil {
		return
	}
	body := &scope{importer: n.importer, opsets: opsets, block: n.block, values: map[string]*binding{}, used: map[string]bool{}, path: n.callPath(), fn: call}
	for i, name := range f.inputs {
		if body.values[name] != nil {
			n.err = corruptf("function %s: got input %q twice", key, name)
			return
		}
		body.values[name] = &binding{value: n.arg(i)}
		if i < len(n.lists) {
			body.values[name].list = n.lists[i]
		}
	}
	markUsed(body.used, f.nodes)
	for i, out := range n.proto.outputs {
		if out != "" {
			call.outputs[f.outputs[i]] = n.valueName(out)
			body.used[f.outputs[i]] = body.used[f.outputs[i]] || n.used[out]
		}
	}
	if err := body.body(f.nodes); err != nil {
		n.fail("function %s: %w", key, err)
		return
	}
	n.functionOutputs(body, f)
}

// callPath is what stands before the names of a body.
func (n *node) callPath() string {
	if len(n.name) <= maxPath {
		return n.name + "/"
	}
	return fmt.Sprintf("call#%d/", n.inlined) // a number that grows with every call
}

// size is about what one copy of the body takes.
func (f *functionProto) size() int {
	size := 256
	for _, list := range [][]string{f.inputs, f.outputs, f.attrs} {
		size += 64 * len(list)
	}
	return size + 64*len(f.defaults) + sizeOf(f.nodes)
}

func sizeOf(nodes []nodeProto) int {
	size := 0
	for i := range nodes {
		n := &nodes[i]
		size += 256 + len(n.name)
		for _, list := range [][]string{n.inputs, n.outputs} {
			for _, name := range list {
				size += 256 + len(name)
			}
		}
		for j := range n.attrs {
			size += 64
			if g, ok := n.attrs[j].value.(*graphProto); ok {
				size += 256*(len(g.initializers)+len(g.values)+len(g.outputs)) + sizeOf(g.nodes)
			}
		}
	}
	return size
}

// functionOutputs binds the outputs of the node to values of the body.
func (n *node) functionOutputs(body *scope, f *functionProto) {
	for i, out := range n.proto.outputs {
		if out == "" {
			continue
		}
		b, err := body.find(f.outputs[i])
		if err == nil && b.value == nil && b.list == nil && n.used[out] {
			err = corruptf("it is an absent operand")
		}
		if err != nil {
			n.fail("output %q of function %s: %w", f.outputs[i], body.fn.key, err)
			return
		}
		n.values[out] = &binding{value: b.value, list: b.list}
	}
}

// functionAttrs gives the function's attributes the values of the node or,
// without one, their defaults.
func (n *node) functionAttrs(call *inlining, f *functionProto) {
	call.attrs = map[string]any{}
	for _, name := range f.attrs {
		if v, ok := n.takeAny(name); ok {
			call.attrs[name] = v
		}
	}
	for i := range f.defaults {
		a := &f.defaults[i]
		call.attrs[a.name] = a.value
		if v, ok := n.takeAny(a.name); ok {
			call.attrs[a.name] = v
		}
	}
	n.noMoreAttrs()
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
func usedNames(g *graphProto) map[string]bool {
	used := map[string]bool{}
	markGraph(used, g)
	return used
}

func markGraph(used map[string]bool, g *graphProto) {
	markUsed(used, g.nodes)
	for i := range g.outputs {
		used[g.outputs[i].name] = true
	}
}

func markUsed(used map[string]bool, nodes []nodeProto) {
	for i := range nodes {
		for _, name := range nodes[i].inputs {
			used[name] = true
		}
		for j := range nodes[i].attrs {
			if g, ok := nodes[i].attrs[j].value.(*graphProto); ok {
				markGraph(used, g)
			}
		}
	}
}
