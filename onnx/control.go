package onnx

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
)

var controlTable = map[string]operator{
	"If": lifted(0, liftIf),
}

// liftIf imports both branches as regions. They see the values around them.
func liftIf(n *node) {
	then, _ := take[*graphProto](n, "then_branch")
	otherwise, _ := take[*graphProto](n, "else_branch")
	n.noMoreAttrs()
	if n.err == nil && (then == nil || otherwise == nil) {
		n.err = corruptf("got one branch, want then_branch and else_branch")
	}
	if n.err != nil {
		return
	}
	blocks := []*ir.Block{n.region(then, "then"), n.region(otherwise, "else")}
	n.bind(n.proto.outputs, func(names []string) []*ir.Value { return n.emit("if", n.args, nil, names, blocks...) })
}

// region imports a nested graph without inputs, which gives at least as many
// outputs as the node.
func (n *node) region(g *graphProto, name string) *ir.Block {
	s := &scope{importer: n.importer, parent: n.scope, opsets: n.opsets, block: &ir.Block{}, values: map[string]*binding{},
		used: usedNames(g), path: n.callPath() + name + "/", fn: n.fn}
	if n.err != nil {
		return s.block
	}
	if err := s.nested(g, len(n.proto.outputs)); err != nil {
		n.fail("%s: %w", name, err)
	}
	return s.block
}

func (s *scope) nested(g *graphProto, outputs int) error {
	if len(g.inputs) > 0 {
		return corruptf("got %d inputs, want none", len(g.inputs))
	}
	if len(g.outputs) < outputs {
		return corruptf("got %d outputs, want %d as the node has", len(g.outputs), outputs)
	}
	if err := s.initializers(g); err != nil {
		return err
	}
	if err := s.body(g.nodes); err != nil {
		return err
	}
	if err := s.compare(g); err != nil {
		return err
	}
	for i := range g.outputs[:outputs] {
		v, err := s.lookup(g.outputs[i].name)
		if err == nil && v == nil {
			err = corruptf("it is an absent operand of the function around")
		}
		if err != nil {
			return fmt.Errorf("output %q: %w", g.outputs[i].name, err)
		}
		s.block.Results = append(s.block.Results, v)
	}
	return nil
}
