package lift

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// Region imports a nested graph without inputs, with at least as many
// outputs as the node.
func (n *Node) Region(g *wire.Graph, name string) *ir.Block {
	s := n.NestedScope(g, name, &ir.Block{})
	if n.Err == nil && len(g.Inputs) > 0 {
		n.Err = fmt.Errorf("%s: %w", name, wire.Corruptf("got %d inputs, want none", len(g.Inputs)))
	}
	if n.Err != nil {
		return s.Block
	}
	results, err := s.Nested(g, len(n.Proto.Outputs))
	if err != nil {
		n.Fail("%s: %w", name, err)
	}
	s.Block.Results = results
	return s.Block
}

// NestedScope is the scope of a graph in an attribute of the node.
func (n *Node) NestedScope(g *wire.Graph, name string, block *ir.Block) *Scope {
	return &Scope{importer: n.importer, parent: n.Scope, opsets: n.opsets, Block: block, Values: map[string]*Binding{},
		used: usedNames(g), Path: n.CallPath() + name + "/", fn: n.fn}
}

// Nested imports a nested graph and returns the values of its outputs.
func (s *Scope) Nested(g *wire.Graph, outputs int) ([]*ir.Value, error) {
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
		if s.IsText[v] {
			err = fmt.Errorf("strings as a result of a nested graph: %w", op.ErrUnsupported)
		}
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", g.Outputs[i].Name, err)
		}
		values = append(values, v)
	}
	return values, nil
}
