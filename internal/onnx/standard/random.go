package standard

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// randomTable has the operators that draw numbers. Distributions are those of
// ONNX Runtime, numbers are not.
var randomTable = map[string]lift.Operator{
	"RandomUniform":     lift.Lifted(0, func(n *lift.Node) { liftRandom(n, "random_uniform", false) }),
	"RandomUniformLike": lift.Lifted(0, func(n *lift.Node) { liftRandom(n, "random_uniform", true) }),
	"RandomNormal":      lift.Lifted(0, func(n *lift.Node) { liftRandom(n, "random_normal", false) }),
	"RandomNormalLike":  lift.Lifted(0, func(n *lift.Node) { liftRandom(n, "random_normal", true) }),
	"Bernoulli":         lift.Lifted(15, liftBernoulli),
	"Multinomial":       lift.Lifted(7, liftMultinomial),
}

// seedOf returns the attribute seed if the node has one.
func seedOf(n *lift.Node) []op.Attr {
	if seed, ok := lift.Take[float32](n, "seed"); ok {
		return []op.Attr{{Name: "seed", Value: float64(seed)}}
	}
	return nil
}

// dtypeOf returns the element type of the result: that of an attribute, or
// else usual.
func dtypeOf(n *lift.Node, usual dtype.DType) dtype.DType {
	code, ok := lift.Take[int64](n, "dtype")
	if !ok {
		return usual
	}
	dt, err := lift.ConvertAttr(code, op.DTypeKind)
	if err != nil {
		n.Fail("attribute \"dtype\": %w", err)
		return usual
	}
	return dt.(dtype.DType)
}

// liftRandom draws numbers in a shape that an attribute lists, or in that of an
// operand, and then of its element type.
func liftRandom(n *lift.Node, name string, like bool) {
	attrs := seedOf(n)
	params := []string{"mean", "scale"}
	if name == "random_uniform" {
		params = []string{"low", "high"}
	}
	for _, param := range params {
		if v, ok := lift.Take[float32](n, param); ok {
			attrs = append(attrs, op.Attr{Name: param, Value: float64(v)})
		}
	}
	if !like {
		sizes, ok := lift.Take[[]int64](n, "shape")
		attrs = append(attrs, op.Attr{Name: "dtype", Value: dtypeOf(n, dtype.F32)})
		n.NoMoreAttrs()
		if !ok || len(n.Args) != 0 {
			n.Fail("got %d operands, want none, and an attribute \"shape\"", len(n.Args))
			return
		}
		n.Finish(name, []*ir.Value{n.Ints(sizes)}, attrs...)
		return
	}
	x := n.Operand(1)
	if x == nil {
		return
	}
	attrs = append(attrs, op.Attr{Name: "dtype", Value: dtypeOf(n, x.Type.DType)})
	n.NoMoreAttrs()
	n.Finish(name, []*ir.Value{n.ShapeOf(x)}, attrs...)
}

// liftBernoulli is 1 where a drawn number lies below the operand, a
// probability, and 0 elsewhere.
func liftBernoulli(n *lift.Node) {
	seed := seedOf(n)
	x := n.Operand(1)
	if x == nil {
		return
	}
	to := dtypeOf(n, x.Type.DType)
	n.NoMoreAttrs()
	drawn := n.Call("random_uniform", []*ir.Value{n.ShapeOf(x)}, append(seed, op.Attr{Name: "dtype", Value: dtype.F64})...)
	below := n.Call("less", []*ir.Value{drawn, n.Call("cast", []*ir.Value{x}, op.Attr{Name: "to", Value: dtype.F64})})
	n.Finish("cast", []*ir.Value{below}, op.Attr{Name: "to", Value: to})
}

// liftMultinomial draws classes by the logarithms of what they weigh, [batch,
// classes], so many for each row: the class of a drawn number is how many sums
// of weights, of a class and those before it, are not above the number.
func liftMultinomial(n *lift.Node) {
	seed, count := seedOf(n), lift.TakeOr(n, "sample_size", int64(1))
	to := dtypeOf(n, dtype.I32)
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	if rank, known := n.Rank(0); known && rank != 2 || count < 1 || to != dtype.I32 && to != dtype.I64 {
		n.Fail("got %s with sample_size %d and dtype %s, want [batch, classes], 1 or more, and i32 or i64", x.Type, count, to)
		return
	}
	double := op.Attr{Name: "to", Value: dtype.F64}
	weights := n.Call("softmax", []*ir.Value{n.Call("cast", []*ir.Value{x}, double)}, lift.IntAttr("axis", -1))
	sums := n.Call("cum_sum", []*ir.Value{weights, n.Scalar(dtype.I64, 1)})
	batch := n.Call("shape", []*ir.Value{x}, lift.IntAttr("end", 1))
	sizes := n.Call("concat", []*ir.Value{batch, n.Ints([]int64{count})}, lift.IntAttr("axis", 0))
	drawn := n.Call("random_uniform", []*ir.Value{sizes}, append(seed, op.Attr{Name: "dtype", Value: dtype.F64})...)
	one := n.Ints([]int64{1})
	last := n.Call("slice", []*ir.Value{sums, n.Ints([]int64{-1}), n.Ints([]int64{math.MaxInt64}), one, one})
	drawn = n.Call("unsqueeze", []*ir.Value{n.Call("mul", []*ir.Value{drawn, last}), n.Ints([]int64{2})})
	passed := n.Call("less_or_equal", []*ir.Value{n.Call("unsqueeze", []*ir.Value{sums, one}), drawn})
	passed = n.Call("cast", []*ir.Value{passed}, op.Attr{Name: "to", Value: to})
	n.Finish("reduce_sum", []*ir.Value{passed, n.Ints([]int64{2})}, lift.IntAttr("keepdims", 0))
}
