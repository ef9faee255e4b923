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
	"BiasAdd":   lift.Lifted(1, liftBiasAdd),

	"FusedMatMul": lift.Lifted(1, liftFusedMatMul),
	"FusedConv":   lift.Lifted(1, liftFusedConv),
	"FusedGemm":   lift.Lifted(1, liftFusedGemm),
	"Trilu":       lift.Lifted(1, liftAsStandard),

	"SimplifiedLayerNormalization":     lift.Lifted(1, standard.LiftSimplifiedNorm),
	"SkipLayerNormalization":           lift.Lifted(1, liftSkipNorm),
	"SkipSimplifiedLayerNormalization": lift.Lifted(1, liftSkipNorm),
	"EmbedLayerNormalization":          lift.Lifted(1, liftEmbedNorm),
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

// liftBiasAdd is x + bias + skip.
func liftBiasAdd(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(3, 3) {
		n.Finish("add", []*ir.Value{n.Add(n.Args[0], n.Args[1]), n.Args[2]})
	}
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

// activate applies the activation that an attribute names.
func activate(n *lift.Node, x *ir.Value) *ir.Value {
	name := lift.TakeOr(n, "activation", "")
	params := lift.TakeOr(n, "activation_params", []float32(nil))
	parameter := func(i int, absent float32) op.Attr {
		if i < len(params) {
			absent = params[i]
		}
		return op.Attr{Name: []string{"alpha", "beta"}[i], Value: float64(absent)}
	}
	switch name {
	case "":
		return x
	case "Relu", "Tanh", "Sigmoid":
		return n.Call(n.Registry.LookupONNX(name).Name, []*ir.Value{x})
	case "LeakyRelu":
		return n.Call("leaky_relu", []*ir.Value{x}, parameter(0, 0.01))
	case "HardSigmoid":
		return n.Call("hard_sigmoid", []*ir.Value{x}, parameter(0, 0.2), parameter(1, 0.5))
	case "Clip":
		if len(params) == 2 && x != nil {
			dt := x.Type.DType
			return n.Call("clip", []*ir.Value{x, n.Scalar(dt, float64(params[0])), n.Scalar(dt, float64(params[1]))})
		}
	}
	n.Unsupported("activation %q with %d parameters", name, len(params))
	return x
}

// liftFusedConv is activation(conv(x, w) + bias + residual).
func liftFusedConv(n *lift.Node) {
	if !n.Operands(2, 4) {
		return
	}
	def := n.Def("conv")
	var attrs []op.Attr
	for _, name := range []string{"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"} {
		if v, ok := n.TakeAny(name); ok {
			attrs = append(attrs, op.Attr{Name: name, Value: v})
		}
	}
	y := n.Add(n.Call(def.Name, []*ir.Value{n.Args[0], n.Args[1], n.Arg(2)}, attrs...), n.Arg(3))
	y = activate(n, y)
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
	y := n.Call("gemm", n.Args, attrs...)
	for i, name := range []string{"activation_alpha", "activation_beta"} {
		if _, ok := lift.Take[float32](n, name); ok {
			n.Unsupported("activation parameter %d", i)
		}
	}
	y = activate(n, y)
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

// liftEmbedNorm normalises the sum of the embeddings of words, positions and
// segments. Output 1 says how many ones a mask has per sample.
func liftEmbedNorm(n *lift.Node) {
	epsilon := op.Attr{Name: "epsilon", Value: float64(lift.TakeOr(n, "epsilon", float32(1e-12)))}
	n.Ignore("mask_index_type")
	n.NoMoreAttrs()
	if !n.Operands(1, 9) {
		return
	}
	if n.Arg(2) == nil || n.Arg(3) == nil {
		n.Fail("operand 2 or 3 is absent, want a value")
		return
	}
	ids, segments, words, places, segmentTable := n.Args[0], n.Arg(1), n.Arg(2), n.Arg(3), n.Arg(4)
	gamma, beta, positions := n.Arg(5), n.Arg(6), n.Arg(8)
	if gamma == nil || beta == nil || segments != nil && segmentTable == nil {
		n.Fail("operand 4, 5 or 6 is absent, want a value")
		return
	}
	sum := n.Call("gather", []*ir.Value{words, ids})
	if positions != nil {
		sum = n.Add(sum, n.Call("gather", []*ir.Value{places, positions}))
	} else {
		length := n.Call("squeeze", []*ir.Value{n.Call("shape", []*ir.Value{ids}, lift.IntAttr("start", 1), lift.IntAttr("end", 2))})
		order := n.Call("range", []*ir.Value{n.Scalar(dtype.I64, 0), length, n.Scalar(dtype.I64, 1)})
		sum = n.Add(sum, n.Call("gather", []*ir.Value{places, order}))
	}
	if segments != nil {
		sum = n.Add(sum, n.Call("gather", []*ir.Value{segmentTable, segments}))
	}
	n.Output(2, "identity", []*ir.Value{sum})
	if mask := n.Arg(7); mask != nil && n.Wanted(1) {
		ones := n.Call("cast", []*ir.Value{n.WithNumber("equal", mask, 1, mask.Type.DType)}, op.Attr{Name: "to", Value: dtype.I32})
		n.Output(1, "reduce_sum", []*ir.Value{ones, n.Ints([]int64{1})}, lift.IntAttr("keepdims", 0))
	} else if n.Wanted(1) {
		batch := n.Call("shape", []*ir.Value{ids}, lift.IntAttr("end", 1))
		n.Output(1, "constant_of_shape", []*ir.Value{batch}, op.Attr{Name: "dtype", Value: dtype.I32})
	}
	n.Output(0, "layer_normalization", []*ir.Value{sum, gamma, beta}, epsilon)
}
