package lift

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// NestedScope is the scope of a graph in an attribute of the node.
func (n *Node) NestedScope(g *wire.Graph, name string, block *ir.Block) *Scope {
	return &Scope{importer: n.importer, parent: n.Scope, opsets: n.opsets, Block: block, Values: map[string]*Binding{},
		used: usedNames(g), Path: n.CallPath() + name + "/", fn: n.fn}
}

// Nested imports a nested graph and returns the values of its outputs, which
// must be tensors.
func (s *Scope) Nested(g *wire.Graph, outputs int) ([]*ir.Value, error) {
	bound, err := s.NestedBindings(g, outputs)
	if err != nil {
		return nil, err
	}
	var values []*ir.Value
	for i, b := range bound {
		what := ""
		if b.List != nil {
			what = "a sequence or optional"
		} else if s.IsText[b.Value] {
			what = "strings"
		}
		if what != "" {
			return nil, fmt.Errorf("output %q: %s as a result of a nested graph: %w", g.Outputs[i].Name, what, op.ErrUnsupported)
		}
		values = append(values, b.Value)
	}
	return values, nil
}

// NestedBindings imports a nested graph and returns what its outputs are:
// tensors, sequences and optionals.
func (s *Scope) NestedBindings(g *wire.Graph, outputs int) ([]*Binding, error) {
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
	var bound []*Binding
	for i := range g.Outputs[:outputs] {
		b, err := s.find(g.Outputs[i].Name)
		if err == nil && b.Value == nil && b.List == nil {
			err = wire.Corruptf("it is an absent operand of the function around")
		}
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", g.Outputs[i].Name, err)
		}
		bound = append(bound, b)
	}
	return bound, nil
}
