package onnx

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
)

var controlTable = map[string]operator{
	"If": lifted(0, liftIf),
}

// liftIf imports both branches as regions. They see the values around them.
func liftIf(n *node) {
	then, _ := take[*wire.Graph](n, "then_branch")
	otherwise, _ := take[*wire.Graph](n, "else_branch")
	n.noMoreAttrs()
	if n.err == nil && (then == nil || otherwise == nil) {
		n.err = wire.Corruptf("got one branch, want then_branch and else_branch")
	}
	if n.err != nil {
		return
	}
	blocks := []*ir.Block{n.region(then, "then"), n.region(otherwise, "else")}
	n.bind(n.proto.Outputs, func(names []string) []*ir.Value { return n.emit("if", n.args, nil, names, blocks...) })
}

// region imports a nested graph without inputs, which gives at least as many
// outputs as the node.
func (n *node) region(g *wire.Graph, name string) *ir.Block {
	s := n.nestedScope(g, name, &ir.Block{})
	if n.err == nil && len(g.Inputs) > 0 {
		n.err = fmt.Errorf("%s: %w", name, wire.Corruptf("got %d inputs, want none", len(g.Inputs)))
	}
	if n.err != nil {
		return s.block
	}
	results, err := s.nested(g, len(n.proto.Outputs))
	if err != nil {
		n.fail("%s: %w", name, err)
	}
	s.block.Results = results
	return s.block
}

// nestedScope is the scope of a graph in an attribute of the node.
func (n *node) nestedScope(g *wire.Graph, name string, block *ir.Block) *scope {
	return &scope{importer: n.importer, parent: n.scope, opsets: n.opsets, block: block, values: map[string]*binding{},
		used: usedNames(g), path: n.callPath() + name + "/", fn: n.fn}
}

// nested imports a nested graph and returns the values of its outputs.
func (s *scope) nested(g *wire.Graph, outputs int) ([]*ir.Value, error) {
	if len(g.Outputs) < outputs {
		return nil, wire.Corruptf("got %d outputs, want %d as the node has", len(g.Outputs), outputs)
	}
	if err := s.initializers(g); err != nil {
		return nil, err
	}
	if err := s.body(g.Nodes); err != nil {
		return nil, err
	}
	if err := s.compare(g); err != nil {
		return nil, err
	}
	var values []*ir.Value
	for i := range g.Outputs[:outputs] {
		v, err := s.lookup(g.Outputs[i].Name)
		if err == nil && v == nil {
			err = wire.Corruptf("it is an absent operand of the function around")
		}
		if s.text[v] {
			err = fmt.Errorf("strings as a result of a nested graph: %w", op.ErrUnsupported)
		}
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", g.Outputs[i].Name, err)
		}
		values = append(values, v)
	}
	return values, nil
}
