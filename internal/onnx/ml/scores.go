package ml

import (
	"slices"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
)

// Functions of scores, of which each row belongs to one sample.

// transforms are the values of the attribute post_transform, with the numbers
// that TreeEnsemble of opset 5 has for them.
var transforms = []string{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}

// takeTransform takes the attribute post_transform.
func takeTransform(n *lift.Node) string {
	kind := lift.TakeOr(n, "post_transform", "NONE")
	if !slices.Contains(transforms, kind) {
		n.Fail("attribute \"post_transform\": got %.80q, want one of %q", kind, transforms)
	}
	return kind
}

// postTransform applies the function of the attribute post_transform to scores
// [N,classes].
func postTransform(n *lift.Node, kind string, y *ir.Value) *ir.Value {
	if n.Err != nil {
		return nil
	}
	switch kind {
	case "NONE":
		return y
	case "SOFTMAX":
		return n.Call("softmax", []*ir.Value{y}, lift.IntAttr("axis", -1))
	case "LOGISTIC":
		return n.Call("sigmoid", []*ir.Value{y})
	case "SOFTMAX_ZERO":
		return softmaxZero(n, y)
	case "PROBIT":
		return probit(n, y)
	}
	panic("BUG: onnx/ml: no function " + kind)
}

// softmaxZero is softmax that leaves scores of zero out.
func softmaxZero(n *lift.Node, y *ir.Value) *ir.Value {
	dt := y.Type.DType
	last := n.Ints([]int64{-1})
	most := n.Call("reduce_max", []*ir.Value{y, last})
	counts := n.WithNumber("greater", n.Call("abs", []*ir.Value{y}), float64(float32(1e-7)), dt)
	e := n.Call("exp", []*ir.Value{n.Call("sub", []*ir.Value{y, most})})
	zero := n.Call("mul", []*ir.Value{y, n.Call("exp", []*ir.Value{n.Call("neg", []*ir.Value{most})})})
	e = n.Call("where", []*ir.Value{counts, e, zero})
	return n.Call("div", []*ir.Value{e, n.Call("reduce_sum", []*ir.Value{e, last})})
}

// probit is the inverse of the distribution function of the normal
// distribution, sqrt(2) * erfinv(2*y - 1), by Winitzki's approximation of the
// inverse error function with 0.147 as its constant. ONNX Runtime's steps are
// these, and the approximation is coarse: other steps have other results.
func probit(n *lift.Node, y *ir.Value) *ir.Value {
	dt := y.Type.DType
	x := n.WithNumber("sub", n.WithNumber("mul", y, 2, dt), 1, dt)
	one := n.Scalar(dt, 1)
	w := n.Call("mul", []*ir.Value{n.Call("sub", []*ir.Value{one, x}), n.Call("add", []*ir.Value{one, x})})
	log := n.Call("log", []*ir.Value{w})
	const a = float32(0.147)
	v := n.WithNumber("add", n.WithNumber("mul", log, 0.5, dt), float64(2/(float32(3.14159)*a)), dt)
	v2 := n.WithNumber("mul", log, float64(1/a), dt)
	root := n.Call("sqrt", []*ir.Value{n.Call("sub", []*ir.Value{n.Call("mul", []*ir.Value{v, v}), v2})})
	size := n.Call("sqrt", []*ir.Value{n.Call("sub", []*ir.Value{root, v})})
	sign := n.Call("where", []*ir.Value{n.WithNumber("less", x, 0, dt), n.Scalar(dt, -1), one})
	return n.WithNumber("mul", n.Call("mul", []*ir.Value{sign, size}), float64(float32(1.41421356)), dt)
}
