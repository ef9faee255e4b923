package contrib

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// weightTable has the operators whose weights alone are quantised.
var weightTable = map[string]lift.Operator{
	"MatMulBnb4":           lift.Lifted(1, liftMatMulBnb4),
	"MatMulNBits":          lift.Lifted(1, liftMatMulNBits),
	"GatherBlockQuantized": lift.Lifted(1, liftGatherBlocks),
	"DynamicQuantizeLSTM":  lift.Lifted(1, liftDynamicQuantizeLSTM),
}

// dequantized is (x - zero) * scale of operands of the node, which broadcast.
// scale is a float already; zero is nil where there is none.
func dequantized(n *lift.Node, x, scale, zero *ir.Value) *ir.Value {
	if n.Err != nil {
		return nil
	}
	to := op.Attr{Name: "to", Value: scale.Type.DType}
	y := n.Call("cast", []*ir.Value{x}, to)
	if zero != nil {
		y = n.Call("sub", []*ir.Value{y, n.Call("cast", []*ir.Value{zero}, to)})
	}
	return n.Call("mul", []*ir.Value{y, scale})
}

// liftDynamicQuantizeLSTM is an LSTM whose weights are integers, [directions,
// inputs, 4 * hidden], with a scale per direction or per column. ONNX Runtime
// quantises the operands of its products too; here they stay floats.
func liftDynamicQuantizeLSTM(n *lift.Node) {
	if !n.Operands(3, 12) {
		return
	}
	const first, zeros = 8, 9 // scale and zero of W, then those of R
	args := []*ir.Value{n.Args[0], nil, nil, n.Arg(3), n.Arg(4), n.Arg(5), n.Arg(6), n.Arg(7)}
	for i := range 2 {
		w, scale, zero := n.Args[1+i], n.Arg(first+2*i), n.Arg(zeros+2*i)
		if scale == nil || zero == nil {
			n.Fail("operand %d or %d is absent, want a scale and a zero of operand %d", first+2*i, zeros+2*i, 1+i)
			return
		}
		if rank, known := n.Rank(1 + i); known && rank != 3 {
			n.Fail("operand %d: got %s, want 3 dimensions: %w", 1+i, w.Type, shape.ErrShape)
			return
		}
		y := dequantized(n, w, perDirection(n, scale), perDirection(n, zero))
		args[1+i] = n.Call("transpose", []*ir.Value{y}, lift.IntsAttr("perm", []int64{0, 2, 1}))
	}
	n.FinishAs("LSTM", args)
}

// perDirection is a scale or zero [directions] or [directions, columns] as it
// broadcasts with [directions, rows, columns].
func perDirection(n *lift.Node, x *ir.Value) *ir.Value {
	switch {
	case n.Err != nil:
		return nil
	case x.Type.Shape != nil && x.Type.Shape.Rank() == 1:
		return n.Call("unsqueeze", []*ir.Value{x, n.Ints([]int64{1, 2})})
	case x.Type.Shape != nil && x.Type.Shape.Rank() == 2:
		return n.Call("unsqueeze", []*ir.Value{x, n.Ints([]int64{1})})
	}
	n.Unsupported("a scale or zero of %s, want 1 or 2 dimensions", x.Type)
	return nil
}
