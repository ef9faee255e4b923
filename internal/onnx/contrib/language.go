package contrib

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/standard"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// languageTable has what builders of language models write between attentions
// and products.
var languageTable = map[string]lift.Operator{
	"BranchwiseRMSNorm":   lift.Lifted(1, liftBranchNorm),
	"CausalConvWithState": lift.Lifted(1, liftCausalConv),
	"GatedAdd":            lift.Lifted(1, liftGatedAdd),
	"GatedRMSNorm":        lift.Lifted(1, liftGatedNorm),
	"LinearAttention":     lift.Lifted(1, liftLinearAttention),
	"LinearAttentionGate": lift.Lifted(1, liftLinearGate),
	"NGramRepeatBlock":    lift.Lifted(1, liftNGramBlock),
	"ScaledSiLU":          lift.Lifted(1, liftScaledSiLU),
	"SwiGLU":              lift.Lifted(1, liftSwiGLU),
}

// inSingle is x in single precision.
func inSingle(n *lift.Node, x *ir.Value) *ir.Value { return as(n, x, dtype.F32) }

// as is x in a type, x itself where it has that.
func as(n *lift.Node, x *ir.Value, dt dtype.DType) *ir.Value {
	if n.Err != nil || x == nil || x.Type.DType == dt {
		return x
	}
	return n.Call("cast", []*ir.Value{x}, op.Attr{Name: "to", Value: dt})
}

// finishAs ends the node with y in a type.
func finishAs(n *lift.Node, y *ir.Value, dt dtype.DType) {
	n.Finish("identity", []*ir.Value{as(n, y, dt)})
}

// only refuses attributes with another value than the given one.
func only(n *lift.Node, value int64, names ...string) {
	for _, name := range names {
		if v := lift.TakeOr(n, name, value); v != value {
			n.Unsupported("%s %d", name, v)
		}
	}
}

// liftScaledSiLU is the swish of x times a number: an operand, or an attribute.
func liftScaledSiLU(n *lift.Node) {
	alpha := lift.TakeOr(n, "alpha", float32(1))
	n.NoMoreAttrs()
	if !n.Operands(1, 2) {
		return
	}
	x, dt := n.Args[0], n.Args[0].Type.DType
	scale := as(n, n.Arg(1), dt)
	if scale == nil {
		scale = n.Scalar(dt, float64(alpha))
	}
	n.Finish("swish", []*ir.Value{n.Call("mul", []*ir.Value{x, scale})})
}

// liftGatedAdd is x + y * gate.
func liftGatedAdd(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(3, 4) {
		return
	}
	if n.Arg(3) != nil {
		n.Unsupported("a gate that the operator computes by weights (operand 3)")
	}
	n.Finish("add", []*ir.Value{n.Args[0], n.Call("mul", n.Args[1:3])})
}

// liftGatedNorm normalises groups of as many elements as scale has, along the
// last axis, and multiplies by an activation of the gate.
func liftGatedNorm(n *lift.Node) {
	activation := lift.TakeOr(n, "activation", "silu")
	epsilon := op.Attr{Name: "epsilon", Value: float64(lift.TakeOr(n, "epsilon", float32(1e-5)))}
	n.NoMoreAttrs()
	name := map[string]string{"silu": "swish", "swish": "swish", "sigmoid": "sigmoid"}[activation]
	if name == "" {
		n.Unsupported("activation %q", activation)
	}
	if !n.Operands(3, 3) {
		return
	}
	size, ok := n.LastSize(n.Args[1])
	if !ok {
		return
	}
	x := n.Args[0]
	y := n.Call("rms_normalization", []*ir.Value{grouped(n, inSingle(n, x), size), inSingle(n, n.Args[1])}, epsilon)
	y = ungrouped(n, y, x)
	finishAs(n, n.Call("mul", []*ir.Value{y, n.Call(name, []*ir.Value{inSingle(n, n.Args[2])})}), x.Type.DType)
}

// grouped is x [..., groups * size] as [..., groups, size].
func grouped(n *lift.Node, x *ir.Value, size int64) *ir.Value {
	if n.Err != nil {
		return nil
	}
	if x.Type.Shape == nil || x.Type.Shape.Rank() < 1 {
		n.Unsupported("an operand of %s, want a rank that is known at load, 1 or more", x.Type)
		return nil
	}
	to := make([]int64, x.Type.Shape.Rank()+1)
	to[len(to)-2], to[len(to)-1] = -1, size
	return n.Call("reshape", []*ir.Value{x, n.Ints(to)})
}

// ungrouped is y [..., groups, size] in the shape of like [..., groups * size].
func ungrouped(n *lift.Node, y, like *ir.Value) *ir.Value {
	if n.Err != nil {
		return nil
	}
	size, ok := n.LastSize(like)
	if !ok {
		return nil
	}
	to := make([]int64, like.Type.Shape.Rank())
	to[len(to)-1] = size
	return n.Call("reshape", []*ir.Value{y, n.Ints(to)})
}

// liftBranchNorm normalises each branch [size] of x [..., branches, size], or
// of [..., branches * size] with their number in an attribute.
func liftBranchNorm(n *lift.Node) {
	branches := lift.TakeOr(n, "num_branches", int64(0))
	epsilon := float64(lift.TakeOr(n, "epsilon", float32(1e-5)))
	n.NoMoreAttrs()
	if !n.Operands(1, 2) {
		return
	}
	x := inSingle(n, n.Args[0])
	size, ok := n.LastSize(n.Args[0])
	if !ok {
		return
	}
	if branches > 0 {
		if !n.WantDivides("last size of x", size, branches) {
			return
		}
		size /= branches
		x = grouped(n, x, size)
	}
	mean := n.Call("reduce_mean", []*ir.Value{n.Call("mul", []*ir.Value{x, x}), n.Ints([]int64{-1})})
	y := n.Call("div", []*ir.Value{x, n.Call("sqrt", []*ir.Value{n.WithNumber("add", mean, epsilon, dtype.F32)})})
	if scale := inSingle(n, n.Arg(1)); scale != nil {
		if all, ok := n.LastSize(scale); ok && all != size && n.WantDivides("last size of scale", all, size) {
			scale = grouped(n, scale, size)
		}
		y = n.Call("mul", []*ir.Value{y, scale})
	}
	if branches > 0 {
		y = ungrouped(n, y, n.Args[0])
	}
	finishAs(n, y, n.Args[0].Type.DType)
}

// liftLinearGate computes how fast a linear attention forgets and learns:
// scale * softplus(a + bias), and the sigmoid of b.
func liftLinearGate(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(3, 4) {
		return
	}
	dt := n.Args[0].Type.DType
	decay := n.Call("softplus", []*ir.Value{n.Add(inSingle(n, n.Args[0]), n.Args[1])})
	n.Output(0, "identity", []*ir.Value{as(n, n.Call("mul", []*ir.Value{decay, n.Args[2]}), dt)})
	if !n.Wanted(1) {
		return
	}
	if n.Arg(3) == nil {
		n.Fail("operand 3 is absent, want a value for output 1")
		return
	}
	n.Output(1, "sigmoid", n.Args[3:4])
}

// liftCausalConv is that of ONNX, with a dilation.
func liftCausalConv(n *lift.Node) {
	only(n, 0, "channels_last", "state_window", "state_length", "state_update_capacity", "input_channel_offset", "input_channels")
	only(n, 1, "ndim")
	only(n, -1, "state_channels_last")
	n.NoOutputs(2)
	standard.LiftCausalConv(n, lift.TakeOr(n, "dilation", int64(1)))
}

// liftLinearAttention is that of ONNX.
func liftLinearAttention(n *lift.Node) {
	only(n, 0, "state_window")
	n.Ignore("chunk_size")
	liftAsStandard(n)
}

// liftSwiGLU is the gate's swish times the other half plus a number, with both
// halves limited first.
func liftSwiGLU(n *lift.Node) {
	g := gating{alpha: lift.TakeOr(n, "activation_alpha", float32(1)), beta: lift.TakeOr(n, "activation_beta", float32(0))}
	if limit := lift.TakeOr(n, "limit", float32(0)); limit > 0 {
		g.limit, g.limited = limit, true
	}
	n.Ignore("round_activation") // it says where a half is rounded
	n.NoMoreAttrs()
	if !n.Operands(1, 2) {
		return
	}
	gate, up := n.Args[0], n.Arg(1)
	if up == nil {
		size, ok := n.LastSize(gate)
		if !ok || !n.WantDivides("last size of the gate", size, 2) {
			return
		}
		halves := split(n, gate, -1, size/2, size/2)
		gate, up = halves[0], halves[1]
	}
	finishAs(n, g.gated(n, inSingle(n, gate), inSingle(n, up)), n.Args[0].Type.DType)
}

// gating are the numbers of a gated activation.
type gating struct {
	alpha, beta, limit float32
	limited            bool
}

// gated is swish(gate) * (up + beta).
func (g gating) gated(n *lift.Node, gate, up *ir.Value) *ir.Value {
	if n.Err != nil {
		return nil
	}
	dt := gate.Type.DType
	if g.limited {
		most := n.Scalar(dt, float64(g.limit))
		gate = n.Call("min", []*ir.Value{gate, most})
		up = n.Call("clip", []*ir.Value{up, n.Scalar(dt, -float64(g.limit)), most})
	}
	if g.beta != 0 {
		up = n.WithNumber("add", up, float64(g.beta), dt)
	}
	gate = n.Call("swish", []*ir.Value{gate}, op.Attr{Name: "alpha", Value: float64(g.alpha)})
	return n.Call("mul", []*ir.Value{gate, up})
}

// liftNGramBlock sets the score of a word to negative infinity where the word
// would make a sequence of words that is there already, [batch, words]. Each
// place begins a sequence; where all but its last word are the last words, its
// last word is refused. The others write positive infinity, which no minimum
// takes.
func liftNGramBlock(n *lift.Node) {
	size := lift.TakeOr(n, "ngram_size", int64(0))
	n.NoMoreAttrs()
	if size < 1 || size > 1<<20 {
		n.Fail("ngram_size: got %d, want 1 or more", size)
	}
	if !n.Operands(2, 2) {
		return
	}
	ids, scores := n.Args[0], n.Args[1]
	zero, one := n.Scalar(dtype.I64, 0), n.Scalar(dtype.I64, 1)
	steps := n.Call("range", []*ir.Value{zero, n.Scalar(dtype.I64, float64(size-1)), one})
	first := n.WithNumber("sub", sizeOf(n, ids, 1), float64(size-1), dtype.I64) // of the last words
	starts := n.Call("range", []*ir.Value{zero, n.Call("max", []*ir.Value{first, zero}), one})
	at := func(places *ir.Value) *ir.Value {
		return n.Call("gather", []*ir.Value{ids, places}, lift.IntAttr("axis", 1))
	}
	word := at(n.WithNumber("add", starts, float64(size-1), dtype.I64))
	same := n.Call("equal", []*ir.Value{word, word})
	if size > 1 {
		last := at(n.Call("max", []*ir.Value{n.Add(steps, first), zero}))
		rows := at(n.Add(n.Call("unsqueeze", []*ir.Value{starts, n.Ints([]int64{1})}), steps)) // [batch, starts, size-1]
		equal := n.Call("equal", []*ir.Value{rows, n.Call("unsqueeze", []*ir.Value{last, n.Ints([]int64{1})})})
		same = n.Call("reduce_min", []*ir.Value{equal, n.Ints([]int64{-1})}, lift.IntAttr("keepdims", 0))
	}
	words := n.Call("where", []*ir.Value{same, word, zero})
	inf := func(sign int) *ir.Value { return n.Scalar(scores.Type.DType, math.Inf(sign)) }
	n.Finish("scatter_elements", []*ir.Value{scores, words, n.Call("where", []*ir.Value{same, inf(-1), inf(1)})},
		lift.IntAttr("axis", 1), op.Attr{Name: "reduction", Value: "min"})
}
