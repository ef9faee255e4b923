package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/standard"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var fusedTable = map[string]lift.Operator{
	"Gelu":      lift.Lifted(1, func(n *lift.Node) { gelu(n, "none") }),
	"BiasGelu":  lift.Lifted(1, func(n *lift.Node) { gelu(n, "none") }),
	"FastGelu":  lift.Lifted(1, func(n *lift.Node) { gelu(n, "tanh") }),
	"QuickGelu": lift.Lifted(1, liftQuickGelu),

	"FusedMatMul":     lift.Lifted(1, liftFusedMatMul),
	"TransposeMatMul": lift.Lifted(1, liftFusedMatMul), // an older name
	"GemmFastGelu":    lift.Lifted(1, liftGemmFastGelu),
	"FusedConv":       lift.Lifted(1, liftFusedConv),
	"FusedGemm":       lift.Lifted(1, liftFusedGemm),
	"BiasSoftmax":     lift.Lifted(1, liftBiasSoftmax),
	"CDist":           lift.Lifted(1, liftCDist),

	"Trilu":      lift.Lifted(1, liftAsStandard),
	"GatherND":   lift.Lifted(1, liftAsStandard),
	"Pad":        lift.Lifted(1, liftAsStandard),
	"ExpandDims": lift.Lifted(1, liftExpandDims),
	"Range":      lift.Lifted(1, liftRange),

	"SimplifiedLayerNormalization":     lift.Lifted(1, standard.LiftLayerNorm),
	"SkipLayerNormalization":           lift.Lifted(1, liftSkipNorm),
	"SkipSimplifiedLayerNormalization": lift.Lifted(1, liftSkipNorm),
}

// liftAsStandard is an operator that ONNX has under the same name.
func liftAsStandard(n *lift.Node) { n.FinishAs(n.Proto.OpType, n.Args) }

// gelu is gelu(x + bias).
func gelu(n *lift.Node, form string) {
	n.NoMoreAttrs()
	if n.Operands(1, 2) {
		n.Finish("gelu", []*ir.Value{n.Add(n.Args[0], n.Arg(1))}, op.Attr{Name: "approximate", Value: form})
	}
}

func liftQuickGelu(n *lift.Node) {
	alpha := lift.TakeOr(n, "alpha", float32(1.702))
	n.NoMoreAttrs()
	n.Finish("swish", n.Args, op.Attr{Name: "alpha", Value: float64(alpha)})
}

// liftFusedMatMul is alpha * a * b, with the matrices transposed first, and
// before that the first axis moved behind the others of the batch.
func liftFusedMatMul(n *lift.Node) {
	alpha := lift.TakeOr(n, "alpha", float32(1))
	transpose := []bool{lift.TakeOr(n, "transA", int64(0)) != 0, lift.TakeOr(n, "transB", int64(0)) != 0}
	batch := []bool{lift.TakeOr(n, "transBatchA", int64(0)) != 0, lift.TakeOr(n, "transBatchB", int64(0)) != 0}
	n.NoMoreAttrs()
	if !n.Operands(2, 2) {
		return
	}
	args := []*ir.Value{n.Args[0], n.Args[1]}
	for i := range args {
		if transpose[i] || batch[i] {
			args[i] = transposed(n, i, transpose[i], batch[i])
		}
	}
	if alpha == 1 {
		n.Finish("matmul", args)
		return
	}
	n.Finish("mul", []*ir.Value{n.Call("matmul", args), n.Scalar(n.Args[0].Type.DType, float64(alpha))})
}

// transposed is operand i with the first axis moved in front of the last one,
// then the last two exchanged; a vector stays.
func transposed(n *lift.Node, i int, last, first bool) *ir.Value {
	rank, known := n.Rank(i)
	if !known {
		n.Unsupported("an operand of unknown rank")
		return nil
	}
	if rank < 2 {
		return n.Args[i]
	}
	perm := make([]int64, rank)
	for k := range perm {
		perm[k] = int64(k)
	}
	if first {
		copy(perm, perm[1:rank-1])
		perm[rank-2] = 0
	}
	if last {
		perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	}
	return n.Call("transpose", []*ir.Value{n.Args[i]}, lift.IntsAttr("perm", perm))
}

// liftFusedConv is activation(conv(x, w) + bias + residual).
func liftFusedConv(n *lift.Node) {
	if !n.Operands(2, 4) {
		return
	}
	y := n.Add(n.Call("conv", []*ir.Value{n.Args[0], n.Args[1], n.Arg(2)}, taken(n, convAttrs...)...), n.Arg(3))
	y = activateByList(n, y)
	n.NoMoreAttrs()
	n.Finish("identity", []*ir.Value{y})
}

// liftFusedGemm is activation(gemm(a, b, c)).
func liftFusedGemm(n *lift.Node) {
	if !n.Operands(2, 3) {
		return
	}
	attrs := []op.Attr{
		{Name: "alpha", Value: float64(lift.TakeOr(n, "alpha", float32(1)))}, {Name: "beta", Value: float64(lift.TakeOr(n, "beta", float32(1)))},
		lift.IntAttr("transA", lift.TakeOr(n, "transA", int64(0))), lift.IntAttr("transB", lift.TakeOr(n, "transB", int64(0))),
	}
	y := activateByName(n, n.Call("gemm", n.Args, attrs...))
	n.NoMoreAttrs()
	n.Finish("identity", []*ir.Value{y})
}

// liftSkipNorm normalises x + skip + bias, whose output 3 is that sum.
func liftSkipNorm(n *lift.Node) {
	simplified := n.Proto.OpType == "SkipSimplifiedLayerNormalization"
	epsilon := op.Attr{Name: "epsilon", Value: float64(lift.TakeOr(n, "epsilon", float32(1e-12)))}
	n.NoMoreAttrs()
	for i := 1; i <= 2; i++ {
		if n.Wanted(i) {
			n.Unsupported("output %d", i)
		}
	}
	if !n.Operands(3, 5) {
		return
	}
	scale, beta, bias := n.Args[2], n.Arg(3), n.Arg(4)
	if simplified {
		beta, bias = nil, n.Arg(3)
	}
	sum := n.Add(n.Add(n.Args[0], n.Args[1]), bias)
	n.Output(3, "identity", []*ir.Value{sum})
	if simplified {
		n.Output(0, "rms_normalization", []*ir.Value{sum, scale}, epsilon)
		return
	}
	n.Output(0, "layer_normalization", []*ir.Value{sum, scale, beta}, epsilon)
}

// liftGemmFastGelu is gelu(x * w + bias).
func liftGemmFastGelu(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(2, 3) {
		y := n.Add(n.Call("matmul", n.Args[:2]), n.Arg(2))
		n.Finish("gelu", []*ir.Value{y}, op.Attr{Name: "approximate", Value: "tanh"})
	}
}

// liftBiasSoftmax is a softmax of x + bias over all axes from one on.
// Broadcasting is that of an addition whatever is_inner_broadcast says.
func liftBiasSoftmax(n *lift.Node) {
	axis := lift.TakeOr(n, "axis", int64(1))
	n.Ignore("is_inner_broadcast")
	n.NoMoreAttrs()
	if n.Operands(2, 2) {
		n.Finish("identity", []*ir.Value{softmaxFrom(n, n.Add(n.Args[0], n.Args[1]), axis)})
	}
}

// liftCDist are the distances of the rows of two matrices, by their squares
// and a product.
func liftCDist(n *lift.Node) {
	metric := lift.TakeOr(n, "metric", "sqeuclidean")
	n.NoMoreAttrs()
	if metric != "sqeuclidean" && metric != "euclidean" {
		n.Unsupported("metric %q", metric)
	}
	if !n.Operands(2, 2) {
		return
	}
	dt := n.Args[0].Type.DType
	squares := func(x *ir.Value, keep int64) *ir.Value {
		return n.Call("reduce_sum_square", []*ir.Value{x, n.Ints([]int64{1})}, lift.IntAttr("keepdims", keep))
	}
	product := n.Call("gemm", n.Args, lift.IntAttr("transB", 1), op.Attr{Name: "alpha", Value: -2.0})
	y := n.Add(n.Add(product, squares(n.Args[0], 1)), squares(n.Args[1], 0))
	y = n.WithNumber("max", y, 0, dt) // a rounding error may be below
	if metric == "euclidean" {
		y = n.Call("sqrt", []*ir.Value{y})
	}
	n.Finish("identity", []*ir.Value{y})
}

// liftExpandDims adds an axis of size 1 where a scalar says.
func liftExpandDims(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(2, 2) {
		axis := n.Call("cast", []*ir.Value{n.Args[1]}, op.Attr{Name: "to", Value: dtype.I64})
		n.Finish("unsqueeze", []*ir.Value{n.Args[0], n.Call("reshape", []*ir.Value{axis, n.Ints([]int64{1})})})
	}
}

// liftRange has a step of 1 where none is given.
func liftRange(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(2, 3) {
		return
	}
	step := n.Arg(2)
	if step == nil {
		step = n.Scalar(n.Args[0].Type.DType, 1)
	}
	n.Finish("range", []*ir.Value{n.Args[0], n.Args[1], step})
}
