package standard

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
)

var indexingTable = map[string]lift.Operator{
	"Gather":          lift.Since(0),
	"GatherElements":  lift.Since(11),
	"GatherND":        lift.Since(11),
	"Scatter":         {From: 9, Till: 10, Lift: liftScatter},
	"ScatterElements": lift.Since(11),
	"ScatterND":       lift.Since(11),
	"TensorScatter":   lift.Since(24),
	"OneHot":          lift.Since(9),
	"Trilu":           lift.Since(14),
	"Slice":           lift.Lifted(0, liftSlice),
	"TopK":            lift.Lifted(0, liftTopK),
}

// liftScatter renames what opset 11 calls ScatterElements.
func liftScatter(n *lift.Node) { n.FinishAs("ScatterElements", n.Args) }

// liftSlice makes operands of the bounds that are attributes before opset 10.
func liftSlice(n *lift.Node) {
	if n.Opset < 10 {
		boundsOperands(n)
	}
	lift.Plain(n)
}

func boundsOperands(n *lift.Node) {
	starts, hasStarts := lift.Take[[]int64](n, "starts")
	ends, hasEnds := lift.Take[[]int64](n, "ends")
	axes, hasAxes := lift.Take[[]int64](n, "axes")
	if !hasStarts || !hasEnds || len(n.Args) != 1 {
		n.Fail("got %d operands, want 1 and the attributes starts and ends", len(n.Args))
		return
	}
	n.Args = []*ir.Value{n.Args[0], n.Ints(starts), n.Ints(ends)}
	if hasAxes {
		n.Args = append(n.Args, n.Ints(axes))
	}
}

// liftTopK makes an operand of the count that is an attribute before opset 10.
func liftTopK(n *lift.Node) {
	if n.Opset < 10 {
		k, ok := lift.Take[int64](n, "k")
		if !ok || len(n.Args) != 1 {
			n.Fail("got %d operands, want 1 and the attribute k", len(n.Args))
			return
		}
		n.Args = []*ir.Value{n.Args[0], n.Ints([]int64{k})}
	}
	lift.Plain(n)
}
