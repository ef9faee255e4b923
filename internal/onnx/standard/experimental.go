package standard

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// experimentalTable has operators that ONNX tried out and gave up before opset
// 10, and that converters of that time wrote; ONNX Runtime still has them.
var experimentalTable = map[string]lift.Operator{
	"Affine":             {Till: 9, Lift: liftAffine},
	"Scale":              {Till: 9, Lift: liftScale},
	"ImageScaler":        {Till: 9, Lift: liftImageScaler},
	"Crop":               {Till: 9, Lift: liftCrop},
	"ParametricSoftplus": {Till: 9, Lift: func(n *lift.Node) { liftScaled(n, "softplus") }},
	"ScaledTanh":         {Till: 9, Lift: func(n *lift.Node) { liftScaled(n, "tanh") }},
	"DynamicSlice":       {Till: 9, Lift: func(n *lift.Node) { n.FinishAs("Slice", n.Args) }},
}

// affine ends the node with alpha * x + beta, where beta is a value or nil.
func affine(n *lift.Node, alpha float64, beta *ir.Value) {
	y := n.WithNumber("mul", n.Args[0], alpha, n.Args[0].Type.DType)
	if beta == nil {
		n.Finish("identity", []*ir.Value{y})
		return
	}
	n.Finish("add", []*ir.Value{y, beta})
}

func liftAffine(n *lift.Node) {
	alpha, beta := lift.TakeOr(n, "alpha", float32(1)), lift.TakeOr(n, "beta", float32(0))
	n.NoMoreAttrs()
	if x := n.Operand(1); x != nil {
		affine(n, float64(alpha), n.Scalar(x.Type.DType, float64(beta)))
	}
}

func liftScale(n *lift.Node) {
	scale := lift.TakeOr(n, "scale", float32(1))
	n.NoMoreAttrs()
	if n.Operand(1) != nil {
		affine(n, float64(scale), nil)
	}
}

// liftImageScaler adds a number for each channel to scale * x.
func liftImageScaler(n *lift.Node) {
	scale, bias := lift.TakeOr(n, "scale", float32(1)), lift.TakeOr(n, "bias", []float32(nil))
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	if rank, known := n.Rank(0); known && rank != 4 || len(bias) == 0 {
		n.Fail("got %s with %d numbers of bias, want 4 dimensions and a number for each channel: %w", x.Type, len(bias), shape.ErrShape)
		return
	}
	if size, known := channelsOf(x); known && size != len(bias) {
		n.Fail("bias: got %d numbers, want %d as %s has channels: %w", len(bias), size, x.Type, shape.ErrShape)
		return
	}
	each := n.Call("unsqueeze", []*ir.Value{n.Floats(bias), n.Ints([]int64{1, 2})})
	affine(n, float64(scale), n.Call("cast", []*ir.Value{each}, op.Attr{Name: "to", Value: x.Type.DType}))
}

// channelsOf returns the size of axis 1, false if it is not known.
func channelsOf(x *ir.Value) (int, bool) {
	if x.Type.Shape == nil || x.Type.Shape.Rank() < 2 {
		return 0, false
	}
	return x.Type.Shape.Dim(1).Size()
}

// liftCrop cuts a border from pictures: on all sides (left, top, right,
// bottom), or so that a size is left after the left and the top one.
func liftCrop(n *lift.Node) {
	border, size := lift.TakeOr(n, "border", []int64(nil)), lift.TakeOr(n, "scale", []int64(nil))
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	if rank, known := n.Rank(0); known && rank != 4 || len(border) != 4 || len(size) != 0 && len(size) != 2 {
		n.Fail("got %s with border %v and scale %v, want 4 dimensions, 4 borders, and none or 2 sizes: %w", x.Type, border, size, shape.ErrShape)
		return
	}
	for _, list := range [][]int64{border, size} {
		for _, v := range list {
			if v < 0 || v > 1<<40 {
				n.Fail("got border %v and scale %v, want 0 or more: %w", border, size, shape.ErrShape)
				return
			}
		}
	}
	begin := n.Ints([]int64{border[1], border[0]})
	var end *ir.Value
	if len(size) == 2 {
		end = n.Ints([]int64{border[1] + size[0], border[0] + size[1]})
	} else {
		sizes := n.Call("shape", []*ir.Value{x}, lift.IntAttr("start", 2), lift.IntAttr("end", 4))
		end = n.Call("sub", []*ir.Value{sizes, n.Ints([]int64{border[3], border[2]})})
	}
	n.Finish("slice", []*ir.Value{x, begin, end, n.Ints([]int64{2, 3}), n.Ints([]int64{1, 1})})
}

// liftScaled is alpha * f(beta * x).
func liftScaled(n *lift.Node, f string) {
	alpha, ok1 := lift.Take[float32](n, "alpha")
	beta, ok2 := lift.Take[float32](n, "beta")
	n.NoMoreAttrs()
	if !ok1 || !ok2 {
		n.Fail("attribute \"alpha\" or \"beta\" is missing")
	}
	x := n.Operand(1)
	if x == nil {
		return
	}
	dt := x.Type.DType
	y := n.Call(f, []*ir.Value{n.WithNumber("mul", x, float64(beta), dt)})
	n.Finish("mul", []*ir.Value{y, n.Scalar(dt, float64(alpha))})
}
