package contrib

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var expertTable = map[string]lift.Operator{
	"MoE":  lift.Lifted(1, liftMoE),
	"QMoE": lift.Lifted(1, liftQMoE),
}

// experts are networks of which k work on each token: those with the highest
// probabilities. Every expert computes every token here, in one product of a
// batch of matrices. What those compute that are not chosen is left out: the
// memory of a run does not depend on the choice.
type experts struct {
	*lift.Node
	k          int64
	activation string
	fusion     int64 // where the gate and the other half of a gated activation are: 0 two products, 1 in turns, 2 one after the other
	gating     gating
	normalize  bool
	quantised  bool
	dt         dtype.DType // of the products
	batch      int         // axes of the tokens in front of the last one
}

// product is one product of each expert, x * weights^T + bias.
type product struct {
	weights, bias *ir.Value // [experts, rows, columns] and [experts, rows]
}

// of is the product with x [1 or experts, ..., tokens, columns].
func (p product) of(e *experts, x *ir.Value) *ir.Value {
	w, bias := e.Call("transpose", []*ir.Value{p.weights}, lift.IntsAttr("perm", []int64{0, 2, 1})), p.bias
	axes := []int64{1}
	if e.batch == 1 {
		w = e.Call("unsqueeze", []*ir.Value{w, e.Ints(axes)})
		axes = []int64{1, 2}
	}
	y := e.Call("matmul", []*ir.Value{x, w})
	if bias == nil {
		return y
	}
	return e.Add(y, e.Call("unsqueeze", []*ir.Value{bias, e.Ints(axes)}))
}

// readExperts takes the attributes that both operators share.
func readExperts(n *lift.Node) *experts {
	e := &experts{Node: n, k: lift.TakeOr(n, "k", int64(1)), activation: lift.TakeOr(n, "activation_type", "relu"),
		fusion: lift.TakeOr(n, "swiglu_fusion", int64(0)), normalize: lift.TakeOr(n, "normalize_routing_weights", int64(0)) != 0}
	e.gating = gating{alpha: lift.TakeOr(n, "activation_alpha", float32(1)), beta: lift.TakeOr(n, "activation_beta", float32(0))}
	if limit, ok := lift.Take[float32](n, "swiglu_limit"); ok && !math.IsInf(float64(limit), 1) {
		e.gating.limit, e.gating.limited = limit, true
	}
	only(n, 0, "use_sparse_mixer", "swiglu_limit_after_activation")
	switch {
	case e.k < 1 || e.k > 1<<20:
		n.Fail("k: got %d, want 1 or more", e.k)
	case e.fusion < 0 || e.fusion > 2:
		n.Fail("swiglu_fusion: got %d, want 0, 1 or 2", e.fusion)
	}
	return e
}

func liftMoE(n *lift.Node) {
	e := readExperts(n)
	n.NoMoreAttrs()
	if !n.Operands(3, 8) || !e.wantOperands(2, 4) {
		return
	}
	e.dt = n.Args[0].Type.DType
	var third *product
	if w := n.Arg(6); w != nil {
		third = &product{w, n.Arg(7)}
	}
	e.finish(product{n.Args[2], n.Arg(3)}, product{n.Args[4], n.Arg(5)}, third, nil)
}

// wantOperands checks that operands are there.
func (e *experts) wantOperands(list ...int) bool {
	for _, i := range list {
		if e.Arg(i) == nil {
			e.Fail("operand %d is absent, want a value", i)
		}
	}
	return e.Err == nil
}

// Operands of QMoE.
const (
	qmoeFirst, qmoeSecond, qmoeThird = 2, 5, 8 // weights, scales and bias of each product
	qmoeZeros                        = 11      // of the three products
	qmoeAggregation                  = 14
	qmoeOperands                     = 21
)

// liftQMoE is a MoE whose weights are integers of 2, 4 or 8 bits, with a scale
// and perhaps a zero for each row, or for blocks of a row.
func liftQMoE(n *lift.Node) {
	e := readExperts(n)
	e.quantised = true
	block, bits := lift.TakeOr(n, "block_size", int64(0)), lift.TakeOr(n, "expert_weight_bits", int64(4))
	widths := [3]int64{}
	for i, name := range []string{"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"} {
		widths[i] = lift.TakeOr(n, name, bits)
	}
	if kind := lift.TakeOr(n, "quant_type", "int"); kind != "int" {
		n.Unsupported("quant_type %s", lift.Printable(kind))
	}
	if packed := lift.TakeOr(n, "weights_prepacked", int64(-1)); packed == 1 {
		n.Unsupported("weights packed for a device")
	}
	n.Ignore("accuracy_level")
	n.NoMoreAttrs()
	if !n.Operands(3, qmoeOperands) || !e.wantOperands(qmoeFirst, qmoeFirst+1, qmoeSecond, qmoeSecond+1) {
		return
	}
	for i := qmoeAggregation + 1; i < qmoeOperands; i++ {
		if n.Arg(i) != nil {
			n.Unsupported("operand %d, a scale of floats", i)
		}
	}
	e.dt = n.Arg(qmoeFirst + 1).Type.DType
	var third *product
	first, second := e.dequantized(qmoeFirst, widths[0], block), e.dequantized(qmoeSecond, widths[1], block)
	if n.Arg(qmoeThird) != nil && e.wantOperands(qmoeThird+1) {
		p := e.dequantized(qmoeThird, widths[2], block)
		third = &p
	}
	e.finish(first, second, third, n.Arg(qmoeAggregation))
}

// dequantized reads the weights of operand at, their scales and their bias.
func (e *experts) dequantized(at int, bits, block int64) product {
	typ, scales := e.Arg(at).Type, e.Arg(at+1).Type
	if e.Err == nil && (!typ.IsStatic() || typ.Shape.Rank() != 3 || typ.Shape.Size(0) < 1 || typ.Shape.Size(1) < 1 || typ.Shape.Size(2) < 1) {
		e.Unsupported("operand %d of %s, want weights [experts,rows,bytes] that are known at load", at, typ)
	}
	w := &nbits{weights: at, zeros: qmoeZeros + (at-qmoeFirst)/3, bits: bits, block: block}
	if e.Err != nil || !w.findType(e.Node) {
		return product{}
	}
	count, rows := int64(typ.Shape.Size(0)), int64(typ.Shape.Size(1))
	w.rows, w.k = count*rows, int64(typ.Shape.Size(2))*8/bits
	if block <= 0 {
		w.block = w.k
	}
	w.blocks = (w.k + w.block - 1) / w.block
	if scales.DType != e.dt {
		e.Fail("operand %d: got %s, want scales of one type, %s", at+1, scales, e.dt)
	}
	w.scale = e.Call("reshape", []*ir.Value{e.Arg(at + 1), e.Ints([]int64{w.rows, w.blocks})})
	zero := e.Arg(w.zeros)
	if block <= 0 && zero != nil { // the zeros of an expert's rows share bytes
		perByte := 8 / bits
		zero = bitRows(e.Node, &nbits{dt: w.dt, bits: bits, rows: count}, w.zeros, (rows+perByte-1)/perByte*perByte, rows)
		zero = e.Call("reshape", []*ir.Value{zero, e.Ints([]int64{w.rows, 1})})
	} else {
		zero = zeroRows(e.Node, w, zero)
	}
	weights := bitRows(e.Node, w, at, w.k, w.k)
	y := e.Call("dequantize_linear", []*ir.Value{weights, w.scale, zero}, lift.IntAttr("axis", 1), lift.IntAttr("block_size", w.block))
	return product{e.Call("reshape", []*ir.Value{y, e.Ints([]int64{count, rows, w.k})}), as(e.Node, e.Arg(at+2), e.dt)}
}

// finish ends the node. weights are how often the experts count where these
// are no probabilities.
func (e *experts) finish(first, second product, third *product, weights *ir.Value) {
	if e.Err != nil {
		return
	}
	x := e.Args[0]
	rank, known := e.Rank(0)
	if !known || rank != 2 && rank != 3 {
		e.Unsupported("operand 0 of %s, want 2 or 3 dimensions", x.Type)
		return
	}
	share := e.Call("transpose", []*ir.Value{e.shares(weights)}) // [experts, tokens]
	if rank == 3 {
		of := func(v *ir.Value, end int64) *ir.Value {
			return e.Call("shape", []*ir.Value{v}, lift.IntAttr("end", end))
		}
		to := e.Call("concat", []*ir.Value{of(share, 1), of(x, 2)}, lift.IntAttr("axis", 0))
		share = e.Call("reshape", []*ir.Value{share, to}, lift.IntAttr("allowzero", 1))
	}
	share = e.Call("unsqueeze", []*ir.Value{as(e.Node, share, e.dt), e.Ints([]int64{-1})})
	e.batch = rank - 2
	y := second.of(e, e.activated(e.Call("unsqueeze", []*ir.Value{as(e.Node, x, e.dt), e.Ints([]int64{0})}), first, third))
	y = e.Call("mul", []*ir.Value{y, share})
	if e.Err != nil {
		return
	}
	// An expert that is not chosen may have infinite results.
	zero := e.Scalar(e.dt, 0)
	y = e.Call("where", []*ir.Value{e.Call("equal", []*ir.Value{share, zero}), zero, y})
	y = e.Call("reduce_sum", []*ir.Value{y, e.Ints([]int64{0})}, lift.IntAttr("keepdims", 0))
	e.Finish("identity", []*ir.Value{as(e.Node, y, x.Type.DType)})
}

// shares are how often each expert counts for each token, [tokens, experts]: 0
// for those that are not chosen. Without weights of their own the experts of
// quantised networks share 1 by a softmax of the chosen ones, the others have
// their part of a softmax of all, which normalize makes 1 together.
func (e *experts) shares(weights *ir.Value) *ir.Value {
	scores := inSingle(e.Node, e.Args[1])
	if e.Err != nil {
		return nil
	}
	base := e.Path + e.Proto.Outputs[0]
	names := []string{e.Fresh(base + ".top"), e.Fresh(base + ".chosen")}
	top := e.Emit("top_k", []*ir.Value{scores, e.Ints([]int64{e.k})}, nil, names)
	if e.Err != nil {
		return nil
	}
	last := e.Ints([]int64{-1})
	part, at := top[0], top[1]
	switch {
	case weights != nil:
		part = e.Call("gather_elements", []*ir.Value{inSingle(e.Node, weights), at}, lift.IntAttr("axis", 1))
		if e.normalize {
			part = e.Call("div", []*ir.Value{part, e.Call("reduce_sum", []*ir.Value{part, last})})
		}
	case e.quantised || e.normalize:
		part = e.Call("softmax", []*ir.Value{part}, lift.IntAttr("axis", -1))
	default:
		part = e.Call("gather_elements", []*ir.Value{e.Call("softmax", []*ir.Value{scores}, lift.IntAttr("axis", -1)), at}, lift.IntAttr("axis", 1))
	}
	none := inSingle(e.Node, e.Call("less", []*ir.Value{scores, scores})) // zeros
	return e.Call("scatter_elements", []*ir.Value{none, at, part}, lift.IntAttr("axis", 1))
}

// activated is what the second product reads.
func (e *experts) activated(x *ir.Value, first product, third *product) *ir.Value {
	y := first.of(e, x)
	if e.Err != nil {
		return nil
	}
	if e.activation == "swiglu" || e.activation == "geglu" {
		gate, up := e.halves(x, y, third)
		if e.activation == "swiglu" {
			return e.gating.gated(e.Node, gate, up)
		}
		return e.Call("mul", []*ir.Value{e.plain("gelu", gate), up})
	}
	y = e.plain(e.activation, y)
	if third != nil {
		y = e.Call("mul", []*ir.Value{y, third.of(e, x)})
	}
	return y
}

// halves are the gate and the other half of a gated activation of y.
func (e *experts) halves(x, y *ir.Value, third *product) (gate, up *ir.Value) {
	if e.fusion == 0 {
		if third == nil {
			e.Fail("got activation_type %s, swiglu_fusion 0 and no third product, want one: %w", e.activation, shape.ErrShape)
			return nil, nil
		}
		return y, third.of(e, x)
	}
	if third != nil {
		e.Fail("got activation_type %s, swiglu_fusion %d and a third product, want none: %w", e.activation, e.fusion, shape.ErrShape)
		return nil, nil
	}
	size, ok := e.LastSize(y)
	if !ok || !e.WantDivides("rows of the first product", size, 2) {
		return nil, nil
	}
	if e.fusion == 2 {
		halves := split(e.Node, y, -1, size/2, size/2)
		return halves[0], halves[1]
	}
	every := func(from int64) *ir.Value {
		return e.Call("slice", []*ir.Value{y, e.Ints([]int64{from}), e.Ints([]int64{size}), e.Ints([]int64{-1}), e.Ints([]int64{2})})
	}
	return every(0), every(1)
}

// plain is the activation of that name, which reads one operand.
func (e *experts) plain(name string, x *ir.Value) *ir.Value {
	switch name {
	case "identity":
		return x
	case "relu":
		return e.Call("relu", []*ir.Value{x})
	case "relu2":
		y := e.Call("relu", []*ir.Value{x})
		return e.Call("mul", []*ir.Value{y, y})
	case "gelu":
		return e.Call("gelu", []*ir.Value{x}, op.Attr{Name: "approximate", Value: "tanh"})
	case "silu":
		return e.Call("swish", []*ir.Value{x})
	}
	e.Unsupported("activation_type %s", lift.Printable(name))
	return nil
}
