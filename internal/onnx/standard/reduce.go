package standard

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
)

var reduceTable = map[string]lift.Operator{
	"ReduceSum":       lift.Lifted(0, liftReduceSum),
	"ReduceMean":      lift.Lifted(0, liftReduce),
	"ReduceMax":       lift.Lifted(0, liftReduce),
	"ReduceMin":       lift.Lifted(0, liftReduce),
	"ReduceProd":      lift.Lifted(0, liftReduce),
	"ReduceL1":        lift.Lifted(0, liftReduce),
	"ReduceL2":        lift.Lifted(0, liftReduce),
	"ReduceLogSum":    lift.Lifted(0, liftReduce),
	"ReduceLogSumExp": lift.Lifted(0, liftReduce),
	"ReduceSumSquare": lift.Lifted(0, liftReduce),
	"ArgMax":          lift.Since(0),
	"ArgMin":          lift.Since(0),
	"CumSum":          lift.Since(11),
	"CumProd":         lift.Since(26),
}

// liftReduce makes an operand of the axes that are an attribute before opset
// 18.
func liftReduce(n *lift.Node) { reduceAxes(n, 18) }

// liftReduceSum is liftReduce for the one that had the operand from 13 on.
func liftReduceSum(n *lift.Node) { reduceAxes(n, 13) }

func reduceAxes(n *lift.Node, operandFrom int64) {
	if n.Opset < operandFrom {
		axesOperand(n)
	}
	lift.Plain(n)
}

// axesOperand moves the attribute axes, if it is there and names any, behind
// the operands.
func axesOperand(n *lift.Node) {
	axes, ok := lift.Take[[]int64](n, "axes")
	if len(n.Args) != 1 {
		n.Fail("got %d operands, want 1", len(n.Args))
		return
	}
	if ok && len(axes) > 0 {
		n.Args = []*ir.Value{n.Args[0], n.Ints(axes)}
	}
}
