package standard

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
)

var controlTable = map[string]lift.Operator{
	"If": lift.Lifted(0, liftIf),
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
	b := n.ImportBranches([]*wire.Graph{then, otherwise}, []string{"then", "else"})
	n.BindBranches(b, func(names []string) []*ir.Value { return n.Emit("if", n.Args, nil, names, b.Blocks...) })
}
