package onnx

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// contribDomain is the domain of operators that ONNX Runtime adds. Its
// optimiser and its exporters write them into files; here they are put
// together from ours.
const contribDomain = "com.microsoft"

var contribTable = map[string]operator{
	"Gelu":      lifted(1, func(n *node) { n.contribGelu("none") }),
	"BiasGelu":  lifted(1, func(n *node) { n.contribGelu("none") }),
	"FastGelu":  lifted(1, func(n *node) { n.contribGelu("tanh") }),
	"QuickGelu": lifted(1, liftQuickGelu),
	"BiasAdd":   lifted(1, liftBiasAdd),

	"FusedMatMul": lifted(1, liftFusedMatMul),
	"FusedConv":   lifted(1, liftFusedConv),
	"FusedGemm":   lifted(1, liftFusedGemm),
	"Trilu":       lifted(1, liftAsStandard),

	"SimplifiedLayerNormalization":     lifted(1, liftSimplifiedNorm),
	"SkipLayerNormalization":           lifted(1, liftSkipNorm),
	"SkipSimplifiedLayerNormalization": lifted(1, liftSkipNorm),
	"EmbedLayerNormalization":          lifted(1, liftEmbedNorm),
}

// operands checks that the node has lo to hi operands, of which the first lo
// are there, and that the types of all are known. It reports false where not:
// then the node has ended.
func (n *node) operands(lo, hi int) bool {
	if n.err != nil {
		return false
	}
	if len(n.args) < lo || len(n.args) > hi {
		n.fail("got %d operands, want %d to %d", len(n.args), lo, hi)
		return false
	}
	for i, v := range n.args {
		switch {
		case v == nil && i < lo:
			n.fail("operand %d is absent, want a value", i)
			return false
		case v != nil && v.Type.IsZero():
			n.giveUp()
			return false
		}
	}
	return true
}

// output binds output i to what a call gives; nobody may want it.
func (n *node) output(i int, name string, args []*ir.Value, attrs ...op.Attr) {
	if i < len(n.proto.Outputs) && n.proto.Outputs[i] != "" && (i == 0 || n.wanted(i)) {
		n.bind(n.proto.Outputs[i:i+1], func(names []string) []*ir.Value { return n.emit(name, args, attrs, names) })
	}
}

// noOutputs refuses outputs that training reads, from the given one on.
func (n *node) noOutputs(from int) {
	for i := from; i < len(n.proto.Outputs); i++ {
		if n.wanted(i) {
			n.unsupported("output %d", i)
		}
	}
}

func (n *node) add(x, y *ir.Value) *ir.Value {
	if y == nil {
		return x
	}
	return n.call("add", []*ir.Value{x, y})
}

// liftAsStandard is an operator that ONNX has under the same name.
func liftAsStandard(n *node) { n.finishAs(n.proto.OpType, n.args) }

// contribGelu is gelu(x + bias).
func (n *node) contribGelu(form string) {
	n.noMoreAttrs()
	if n.operands(1, 2) {
		n.finish("gelu", []*ir.Value{n.add(n.args[0], n.arg(1))}, op.Attr{Name: "approximate", Value: form})
	}
}

func liftQuickGelu(n *node) {
	alpha := takeOr(n, "alpha", float32(1.702))
	n.noMoreAttrs()
	n.finish("swish", n.args, op.Attr{Name: "alpha", Value: float64(alpha)})
}

// liftBiasAdd is x + bias + skip.
func liftBiasAdd(n *node) {
	n.noMoreAttrs()
	if n.operands(3, 3) {
		n.finish("add", []*ir.Value{n.add(n.args[0], n.args[1]), n.args[2]})
	}
}

// liftFusedMatMul is alpha * a * b, with the matrices transposed first.
func liftFusedMatMul(n *node) {
	alpha := takeOr(n, "alpha", float32(1))
	turn := []bool{takeOr(n, "transA", int64(0)) != 0, takeOr(n, "transB", int64(0)) != 0}
	if takeOr(n, "transBatchA", int64(0)) != 0 || takeOr(n, "transBatchB", int64(0)) != 0 {
		n.unsupported("transBatchA or transBatchB 1")
	}
	n.noMoreAttrs()
	if !n.operands(2, 2) {
		return
	}
	args := []*ir.Value{n.args[0], n.args[1]}
	for i := range args {
		if turn[i] {
			args[i] = n.transposed(i)
		}
	}
	if alpha == 1 {
		n.finish("matmul", args)
		return
	}
	n.finish("mul", []*ir.Value{n.call("matmul", args), n.scalar(n.args[0].Type.DType, float64(alpha))})
}

// transposed is operand i with its last two axes exchanged; a vector stays.
func (n *node) transposed(i int) *ir.Value {
	rank, known := n.rank(i)
	if !known {
		n.unsupported("an operand of unknown rank")
		return nil
	}
	if rank < 2 {
		return n.args[i]
	}
	perm := make([]int64, rank)
	for k := range perm {
		perm[k] = int64(k)
	}
	perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	return n.call("transpose", []*ir.Value{n.args[i]}, intsAttr("perm", perm))
}

// activate applies the activation that an attribute names.
func (n *node) activate(x *ir.Value) *ir.Value {
	name := takeOr(n, "activation", "")
	params := takeOr(n, "activation_params", []float32(nil))
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
		return n.call(n.reg.LookupONNX(name).Name, []*ir.Value{x})
	case "LeakyRelu":
		return n.call("leaky_relu", []*ir.Value{x}, parameter(0, 0.01))
	case "HardSigmoid":
		return n.call("hard_sigmoid", []*ir.Value{x}, parameter(0, 0.2), parameter(1, 0.5))
	case "Clip":
		if len(params) == 2 && x != nil {
			dt := x.Type.DType
			return n.call("clip", []*ir.Value{x, n.scalar(dt, float64(params[0])), n.scalar(dt, float64(params[1]))})
		}
	}
	n.unsupported("activation %q with %d parameters", name, len(params))
	return x
}

// liftFusedConv is activation(conv(x, w) + bias + residual).
func liftFusedConv(n *node) {
	if !n.operands(2, 4) {
		return
	}
	def := n.def("conv")
	var attrs []op.Attr
	for _, name := range []string{"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"} {
		if v, ok := n.takeAny(name); ok {
			attrs = append(attrs, op.Attr{Name: name, Value: v})
		}
	}
	y := n.add(n.call(def.Name, []*ir.Value{n.args[0], n.args[1], n.arg(2)}, attrs...), n.arg(3))
	y = n.activate(y)
	n.noMoreAttrs()
	n.finish("identity", []*ir.Value{y})
}

// liftFusedGemm is activation(gemm(a, b, c)).
func liftFusedGemm(n *node) {
	if !n.operands(2, 3) {
		return
	}
	attrs := []op.Attr{
		{Name: "alpha", Value: float64(takeOr(n, "alpha", float32(1)))}, {Name: "beta", Value: float64(takeOr(n, "beta", float32(1)))},
		intAttr("transA", takeOr(n, "transA", int64(0))), intAttr("transB", takeOr(n, "transB", int64(0))),
	}
	y := n.call("gemm", n.args, attrs...)
	for i, name := range []string{"activation_alpha", "activation_beta"} {
		if _, ok := take[float32](n, name); ok {
			n.unsupported("activation parameter %d", i)
		}
	}
	y = n.activate(y)
	n.noMoreAttrs()
	n.finish("identity", []*ir.Value{y})
}

// liftSimplifiedNorm is a normalisation by the mean square.
func liftSimplifiedNorm(n *node) {
	n.ignore("stash_type")
	attrs := []op.Attr{intAttr("axis", takeOr(n, "axis", int64(-1))), {Name: "epsilon", Value: float64(takeOr(n, "epsilon", float32(1e-5)))}}
	n.noMoreAttrs()
	n.noOutputs(1)
	if n.operands(2, 2) {
		n.output(0, "rms_normalization", n.args, attrs...)
	}
}

// liftSkipNorm normalises x + skip + bias, and may give that sum as output 3.
func liftSkipNorm(n *node) {
	simplified := n.proto.OpType == "SkipSimplifiedLayerNormalization"
	epsilon := op.Attr{Name: "epsilon", Value: float64(takeOr(n, "epsilon", float32(1e-12)))}
	n.noMoreAttrs()
	for i := 1; i <= 2; i++ {
		if n.wanted(i) {
			n.unsupported("output %d", i)
		}
	}
	if !n.operands(3, 5) {
		return
	}
	scale, beta, bias := n.args[2], n.arg(3), n.arg(4)
	if simplified {
		beta, bias = nil, n.arg(3)
	}
	sum := n.add(n.add(n.args[0], n.args[1]), bias)
	n.output(3, "identity", []*ir.Value{sum})
	if simplified {
		n.output(0, "rms_normalization", []*ir.Value{sum, scale}, epsilon)
		return
	}
	n.output(0, "layer_normalization", []*ir.Value{sum, scale, beta}, epsilon)
}

// liftEmbedNorm normalises the sum of the embeddings of words, positions and
// segments. Output 1 says how many ones a mask has per sample.
func liftEmbedNorm(n *node) {
	epsilon := op.Attr{Name: "epsilon", Value: float64(takeOr(n, "epsilon", float32(1e-12)))}
	n.ignore("mask_index_type")
	n.noMoreAttrs()
	if !n.operands(1, 9) {
		return
	}
	if n.arg(2) == nil || n.arg(3) == nil {
		n.fail("operand 2 or 3 is absent, want a value")
		return
	}
	ids, segments, words, places, segmentTable := n.args[0], n.arg(1), n.arg(2), n.arg(3), n.arg(4)
	gamma, beta, positions := n.arg(5), n.arg(6), n.arg(8)
	if gamma == nil || beta == nil || segments != nil && segmentTable == nil {
		n.fail("operand 4, 5 or 6 is absent, want a value")
		return
	}
	sum := n.call("gather", []*ir.Value{words, ids})
	if positions != nil {
		sum = n.add(sum, n.call("gather", []*ir.Value{places, positions}))
	} else {
		length := n.call("squeeze", []*ir.Value{n.call("shape", []*ir.Value{ids}, intAttr("start", 1), intAttr("end", 2))})
		order := n.call("range", []*ir.Value{n.scalar(dtype.I64, 0), length, n.scalar(dtype.I64, 1)})
		sum = n.add(sum, n.call("gather", []*ir.Value{places, order}))
	}
	if segments != nil {
		sum = n.add(sum, n.call("gather", []*ir.Value{segmentTable, segments}))
	}
	n.output(2, "identity", []*ir.Value{sum})
	if mask := n.arg(7); mask != nil && n.wanted(1) {
		ones := n.call("cast", []*ir.Value{n.with("equal", mask, 1, mask.Type.DType)}, op.Attr{Name: "to", Value: dtype.I32})
		n.output(1, "reduce_sum", []*ir.Value{ones, n.ints([]int64{1})}, intAttr("keepdims", 0))
	} else if n.wanted(1) {
		batch := n.call("shape", []*ir.Value{ids}, intAttr("end", 1))
		n.output(1, "constant_of_shape", []*ir.Value{batch}, op.Attr{Name: "dtype", Value: dtype.I32})
	}
	n.output(0, "layer_normalization", []*ir.Value{sum, gamma, beta}, epsilon)
}

// lastSize returns the size of the last axis of a value, which must be known.
func (n *node) lastSize(v *ir.Value) (int64, bool) {
	if sh := v.Type.Shape; sh != nil && sh.Rank() > 0 {
		if size, ok := sh.Dim(sh.Rank() - 1).Size(); ok {
			return int64(size), true
		}
	}
	n.unsupported("an operand of %s, whose last size is not known at load", v.Type)
	return 0, false
}

// wantDivides ends the node unless size is made of so many equal parts.
func (n *node) wantDivides(what string, size, parts int64) bool {
	if parts < 1 || size%parts != 0 {
		n.fail("%s: got %d, want a multiple of %d: %w", what, size, parts, shape.ErrShape)
		return false
	}
	return true
}
