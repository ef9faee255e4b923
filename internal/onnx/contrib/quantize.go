package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var quantizeTable = map[string]lift.Operator{
	"QuantizeLinear":           lift.Lifted(1, liftAsStandard),
	"DequantizeLinear":         lift.Lifted(1, liftAsStandard),
	"QLinearAdd":               lift.Lifted(1, liftQLinearBinary("qlinear_add")),
	"QLinearMul":               lift.Lifted(1, liftQLinearBinary("qlinear_mul")),
	"QLinearSigmoid":           lift.Lifted(1, func(n *lift.Node) { quantizedUnary(n, "sigmoid") }),
	"QLinearLeakyRelu":         lift.Lifted(1, liftQLinearLeakyRelu),
	"QLinearSoftmax":           lift.Lifted(1, liftQLinearSoftmax),
	"QLinearReduceMean":        lift.Lifted(1, liftQLinearReduceMean),
	"QLinearGlobalAveragePool": lift.Lifted(1, liftQLinearGlobalPool),
	"QLinearAveragePool":       lift.Lifted(1, liftQLinearAveragePool),
	"QLinearConcat":            lift.Lifted(1, liftQLinearConcat),
	"QLinearWhere":             lift.Lifted(1, liftQLinearWhere),
}

// number is operand i as a float, by the scale and the zero after it.
func number(n *lift.Node, i int) *ir.Value {
	return n.Call("dequantize_linear", []*ir.Value{n.Args[i], n.Args[i+1], n.Arg(i + 2)})
}

// rounded ends the node with numbers of the result's type, rounded and
// saturated: its scale and zero are in them.
func rounded(n *lift.Node, x *ir.Value, dt dtype.DType) {
	if n.Err == nil {
		quantized(n, x, n.Scalar(dtype.F32, 1), n.Scalar(dt, 0), dt)
	}
}

// float is operand i as it is, in single precision, nil if it is absent.
func float(n *lift.Node, i int) *ir.Value {
	if n.Arg(i) == nil {
		return nil
	}
	return n.Call("cast", []*ir.Value{n.Args[i]}, op.Attr{Name: "to", Value: dtype.F32})
}

// liftQLinearBinary is an operator of two quantised operands and a quantised
// result, each with its scale and perhaps a zero.
func liftQLinearBinary(name string) func(*lift.Node) {
	return func(n *lift.Node) {
		n.NoMoreAttrs()
		if !n.Operands(7, 8) {
			return
		}
		args := make([]*ir.Value, 8)
		for i := range args {
			args[i] = n.Arg(i)
		}
		if args[7] == nil {
			args[7] = n.Scalar(n.Args[0].Type.DType, 0)
		}
		n.Finish(name, args)
	}
}

// quantized ends the node with a value quantised; without a zero it is that of
// the given type.
func quantized(n *lift.Node, x, scale, zero *ir.Value, dt dtype.DType) {
	n.Finish("quantize_linear", []*ir.Value{x, scale, zero}, op.Attr{Name: "output_dtype", Value: dt})
}

// quantizedUnary is an operator of one quantised operand.
func quantizedUnary(n *lift.Node, name string, attrs ...op.Attr) {
	overNumbers(n, func(x *ir.Value) *ir.Value { return n.Call(name, []*ir.Value{x}, attrs...) })
}

// overNumbers applies a function of floats to a quantised operand, and
// quantises its result.
func overNumbers(n *lift.Node, f func(x *ir.Value) *ir.Value) {
	n.NoMoreAttrs()
	if n.Operands(4, 5) {
		quantized(n, f(number(n, 0)), n.Args[3], n.Arg(4), n.Args[0].Type.DType)
	}
}

func liftQLinearLeakyRelu(n *lift.Node) {
	quantizedUnary(n, "leaky_relu", op.Attr{Name: "alpha", Value: float64(lift.TakeOr(n, "alpha", float32(0.01)))})
}

// liftQLinearSoftmax is over one axis, or over all from it on, as the opset in
// an attribute has Softmax. ONNX Runtime multiplies by 1 / scale without its
// fraction.
func liftQLinearSoftmax(n *lift.Node) {
	axis, opset := lift.TakeOr(n, "axis", int64(-1)), lift.TakeOr(n, "opset", int64(0))
	n.NoMoreAttrs()
	if opset < 1 {
		n.Fail("opset: got %d, want the opset of the Softmax that was quantised", opset)
	}
	if !n.Operands(4, 5) {
		return
	}
	var y *ir.Value
	if x := number(n, 0); opset >= 13 {
		y = n.Call("softmax", []*ir.Value{x}, lift.IntAttr("axis", axis))
	} else {
		y = softmaxFrom(n, x, axis)
	}
	steps := n.Call("floor", []*ir.Value{n.Call("div", []*ir.Value{n.Scalar(dtype.F32, 1), n.Args[3]})})
	quantized(n, n.Call("mul", []*ir.Value{y, steps}), n.Scalar(dtype.F32, 1), n.Arg(4), n.Args[0].Type.DType)
}

// softmaxFrom is a softmax over all axes from the given one on as if they were
// one.
func softmaxFrom(n *lift.Node, x *ir.Value, axis int64) *ir.Value {
	flat := n.Call("flatten", []*ir.Value{x}, lift.IntAttr("axis", axis))
	y := n.Call("softmax", []*ir.Value{flat}, lift.IntAttr("axis", -1))
	return n.Call("reshape", []*ir.Value{y, n.ShapeOf(x)}, lift.IntAttr("allowzero", 1))
}

func liftQLinearReduceMean(n *lift.Node) {
	axes, some := lift.Take[[]int64](n, "axes")
	keep := lift.IntAttr("keepdims", lift.TakeOr(n, "keepdims", int64(1)))
	overNumbers(n, func(x *ir.Value) *ir.Value {
		if !some {
			return n.Call("reduce_mean", []*ir.Value{x}, keep)
		}
		return n.Call("reduce_mean", []*ir.Value{x, n.Ints(axes)}, keep)
	})
}

// liftQLinearGlobalPool adds integers along the spatial axes, and divides the
// scales by how many there are.
func liftQLinearGlobalPool(n *lift.Node) {
	last := lift.TakeOr(n, "channels_last", int64(0)) != 0
	n.NoMoreAttrs()
	if !n.Operands(4, 5) {
		return
	}
	rank, known := n.Rank(0)
	if !known || rank < 3 {
		n.Unsupported("operand 0 of %s, want 3 dimensions or more", n.Args[0].Type)
		return
	}
	first, end := 2, rank
	if last {
		first, end = 1, rank-1
	}
	var axes []int64
	for i := first; i < end; i++ {
		axes = append(axes, int64(i))
	}
	integer := op.Attr{Name: "to", Value: dtype.I32}
	x := n.Call("cast", n.Args[:1], integer)
	if zero := n.Arg(2); zero != nil {
		x = n.Call("sub", []*ir.Value{x, n.Call("cast", []*ir.Value{zero}, integer)})
	}
	sum := n.Call("reduce_sum", []*ir.Value{x, n.Ints(axes)})
	sizes := n.Call("shape", n.Args[:1], lift.IntAttr("start", int64(first)), lift.IntAttr("end", int64(end)))
	count := n.Call("reduce_prod", []*ir.Value{sizes}, lift.IntAttr("keepdims", 0))
	single := op.Attr{Name: "to", Value: dtype.F32}
	divisor := n.Call("mul", []*ir.Value{n.Args[3], n.Call("cast", []*ir.Value{count}, single)})
	scale := n.Call("div", []*ir.Value{n.Args[1], divisor})
	y := n.Call("mul", []*ir.Value{n.Call("cast", []*ir.Value{sum}, single), scale})
	quantized(n, y, n.Scalar(dtype.F32, 1), n.Arg(4), n.Args[0].Type.DType)
}

// liftQLinearAveragePool pools floats, whose channels may be the last axis.
func liftQLinearAveragePool(n *lift.Node) {
	attrs := taken(n, "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
	last := lift.TakeOr(n, "channels_last", int64(0)) != 0
	n.NoMoreAttrs()
	if !n.Operands(4, 5) {
		return
	}
	x := number(n, 0)
	if last {
		x = channelsFirst(n, x)
	}
	y := n.Call("average_pool", []*ir.Value{x}, attrs...)
	if last {
		y = channelsLast(n, y)
	}
	y = n.Add(n.Call("div", []*ir.Value{y, n.Args[3]}), float(n, 4))
	rounded(n, y, n.Args[0].Type.DType)
}

// liftQLinearWhere takes elements of one of two quantised operands.
func liftQLinearWhere(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(9, 9) {
		y := n.Call("where", []*ir.Value{n.Args[0], number(n, 1), number(n, 4)})
		quantized(n, y, n.Args[7], n.Args[8], n.Args[1].Type.DType)
	}
}

// liftQLinearConcat has the result's scale and zero first, then each operand
// with its own.
func liftQLinearConcat(n *lift.Node) {
	axis, ok := lift.Take[int64](n, "axis")
	n.NoMoreAttrs()
	if !ok || len(n.Args) < 5 || len(n.Args)%3 != 2 {
		n.Fail("got %d operands, want an axis, the result's scale and zero, and three for each part", len(n.Args))
		return
	}
	if !n.Operands(len(n.Args), len(n.Args)) {
		return
	}
	var parts []*ir.Value
	for i := 2; i < len(n.Args); i += 3 {
		parts = append(parts, number(n, i))
	}
	quantized(n, n.Call("concat", parts, lift.IntAttr("axis", axis)), n.Args[0], n.Args[1], n.Args[2].Type.DType)
}
