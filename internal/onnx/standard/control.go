package standard

import (
	"slices"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
)

var controlTable = map[string]lift.Operator{
	"If": lift.Lifted(0, liftIf),
}

// one makes scalars of the first operands, numbers and conditions, where they
// have two axes or more: of one element, ONNX Runtime takes any.
func one(n *lift.Node, args []*ir.Value, count int) []*ir.Value {
	args = slices.Clone(args)
	for i, v := range args[:min(count, len(args))] {
		if v != nil && !v.Type.IsZero() && (v.Type.Shape == nil || v.Type.Shape.Rank() > 1) {
			args[i] = n.Call("reshape", []*ir.Value{v, n.Ints(nil)})
		}
	}
	return args
}

// liftIf imports both branches as regions. They see the values around them.
func liftIf(n *lift.Node) {
	then, _ := lift.Take[*wire.Graph](n, "then_branch")
	otherwise, _ := lift.Take[*wire.Graph](n, "else_branch")
	n.NoMoreAttrs()
	if n.Err == nil && (then == nil || otherwise == nil) {
		n.Err = wire.Corruptf("got one branch, want then_branch and else_branch")
	}
	if n.Err != nil {
		return
	}
	n.Args = one(n, n.Args, 1)
	b := n.ImportBranches([]*wire.Graph{then, otherwise}, []string{"then", "else"})
	n.BindBranches(b, func(names []string) []*ir.Value { return n.Emit("if", n.Args, nil, names, b.Blocks...) })
}
