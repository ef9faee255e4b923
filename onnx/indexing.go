package onnx

import (
	"github.com/tenure-go/tenure/ir"
)

var indexingTable = map[string]operator{
	"Gather":          since(0),
	"GatherElements":  since(11),
	"GatherND":        since(11),
	"Scatter":         {from: 9, till: 10, lift: liftScatter},
	"ScatterElements": since(11),
	"ScatterND":       since(11),
	"TensorScatter":   since(24),
	"OneHot":          since(9),
	"Trilu":           since(14),
	"Slice":           lifted(0, liftSlice),
	"TopK":            lifted(0, liftTopK),
}

// liftScatter renames what opset 11 calls ScatterElements.
func liftScatter(n *node) { n.finishAs("ScatterElements", n.args) }

// liftSlice makes operands of the bounds that are attributes before opset 10.
func liftSlice(n *node) {
	if n.opset < 10 {
		n.boundsOperands()
	}
	plain(n)
}

func (n *node) boundsOperands() {
	starts, hasStarts := take[[]int64](n, "starts")
	ends, hasEnds := take[[]int64](n, "ends")
	axes, hasAxes := take[[]int64](n, "axes")
	if !hasStarts || !hasEnds || len(n.args) != 1 {
		n.fail("got %d operands, want 1 and the attributes starts and ends", len(n.args))
		return
	}
	n.args = []*ir.Value{n.args[0], n.ints(starts), n.ints(ends)}
	if hasAxes {
		n.args = append(n.args, n.ints(axes))
	}
}

// liftTopK makes an operand of the count that is an attribute before opset 10.
func liftTopK(n *node) {
	if n.opset < 10 {
		k, ok := take[int64](n, "k")
		if !ok || len(n.args) != 1 {
			n.fail("got %d operands, want 1 and the attribute k", len(n.args))
			return
		}
		n.args = []*ir.Value{n.args[0], n.ints([]int64{k})}
	}
	plain(n)
}
