package onnx

import "github.com/tenure-go/tenure/ir"

var reduceTable = map[string]operator{
	"ReduceSum":       lifted(0, liftReduceSum),
	"ReduceMean":      lifted(0, liftReduce),
	"ReduceMax":       lifted(0, liftReduce),
	"ReduceMin":       lifted(0, liftReduce),
	"ReduceProd":      lifted(0, liftReduce),
	"ReduceL1":        lifted(0, liftReduce),
	"ReduceL2":        lifted(0, liftReduce),
	"ReduceLogSum":    lifted(0, liftReduce),
	"ReduceLogSumExp": lifted(0, liftReduce),
	"ReduceSumSquare": lifted(0, liftReduce),
	"ArgMax":          since(0),
	"ArgMin":          since(0),
	"CumSum":          since(11),
	"CumProd":         since(26),
}

// liftReduce makes an operand of the axes that are an attribute before opset
// 18.
func liftReduce(n *node) { n.reduceAxes(18) }

// liftReduceSum is liftReduce for the one that had the operand from 13 on.
func liftReduceSum(n *node) { n.reduceAxes(13) }

func (n *node) reduceAxes(operandFrom int64) {
	if n.opset < operandFrom {
		n.axesOperand()
	}
	plain(n)
}

// axesOperand moves the attribute axes, if it is there and names any, behind
// the operands.
func (n *node) axesOperand() {
	axes, ok := take[[]int64](n, "axes")
	if len(n.args) != 1 {
		n.fail("got %d operands, want 1", len(n.args))
		return
	}
	if ok && len(axes) > 0 {
		n.args = []*ir.Value{n.args[0], n.ints(axes)}
	}
}
