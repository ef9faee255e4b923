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
	"MatMulNBits":              lift.Lifted(1, liftMatMulNBits),
	"DynamicQuantizeMatMul":    lift.Lifted(1, liftDynamicQuantizeMatMul),
	"MatMulIntegerToFloat":     lift.Lifted(1, liftMatMulIntegerToFloat),
	"QLinearAdd":               lift.Lifted(1, func(n *lift.Node) { quantizedBinary(n, "add") }),
	"QLinearMul":               lift.Lifted(1, func(n *lift.Node) { quantizedBinary(n, "mul") }),
	"QLinearSigmoid":           lift.Lifted(1, func(n *lift.Node) { quantizedUnary(n, "sigmoid") }),
	"QLinearLeakyRelu":         lift.Lifted(1, liftQLinearLeakyRelu),
	"QLinearGlobalAveragePool": lift.Lifted(1, liftQLinearGlobalPool),
	"QLinearConcat":            lift.Lifted(1, liftQLinearConcat),
}

// number is operand i as a float, by the scale and the zero after it.
func number(n *lift.Node, i int) *ir.Value {
	return n.Call("dequantize_linear", []*ir.Value{n.Args[i], n.Args[i+1], n.Arg(i + 2)})
}

// quantizedBinary is an operator of two quantised operands and a quantised
// result, each with its scale and its zero.
func quantizedBinary(n *lift.Node, name string) {
	n.NoMoreAttrs()
	if n.Operands(7, 8) {
		quantized(n, n.Call(name, []*ir.Value{number(n, 0), number(n, 3)}), n.Args[6], n.Arg(7), n.Args[0].Type.DType)
	}
}

// quantized ends the node with a value quantised; without a zero it is that of
// the given type.
func quantized(n *lift.Node, x, scale, zero *ir.Value, dt dtype.DType) {
	n.Finish("quantize_linear", []*ir.Value{x, scale, zero}, op.Attr{Name: "output_dtype", Value: dt})
}

// quantizedUnary is an operator of one quantised operand.
func quantizedUnary(n *lift.Node, name string, attrs ...op.Attr) {
	n.NoMoreAttrs()
	if n.Operands(4, 5) {
		quantized(n, n.Call(name, []*ir.Value{number(n, 0)}, attrs...), n.Args[3], n.Arg(4), n.Args[0].Type.DType)
	}
}

func liftQLinearLeakyRelu(n *lift.Node) {
	quantizedUnary(n, "leaky_relu", op.Attr{Name: "alpha", Value: float64(lift.TakeOr(n, "alpha", float32(0.01)))})
}

func liftQLinearGlobalPool(n *lift.Node) {
	if lift.TakeOr(n, "channels_last", int64(0)) != 0 {
		n.Unsupported("channels_last 1")
	}
	quantizedUnary(n, "global_average_pool")
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

// liftDynamicQuantizeMatMul quantises a by its range, and multiplies integers.
func liftDynamicQuantizeMatMul(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(3, 5) {
		return
	}
	names := make([]string, 3)
	for i := range names {
		names[i] = n.Fresh(n.Path + n.Proto.Outputs[0] + ".dynamic_quantize_linear")
	}
	a := n.Emit("dynamic_quantize_linear", n.Args[:1], nil, names)
	integerProduct(n, a[0], n.Args[1], a[1], n.Args[2], a[2], n.Arg(3), n.Arg(4))
}

// liftMatMulIntegerToFloat multiplies integers and scales the result.
func liftMatMulIntegerToFloat(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(4, 7) {
		integerProduct(n, n.Args[0], n.Args[1], n.Args[2], n.Args[3], n.Arg(4), n.Arg(5), n.Arg(6))
	}
}

// integerProduct is (a - aZero) * (b - bZero) * aScale * bScale + bias.
func integerProduct(n *lift.Node, a, b, aScale, bScale, aZero, bZero, bias *ir.Value) {
	product := n.Call("matmul_integer", []*ir.Value{a, b, aZero, bZero})
	if n.Err != nil {
		return
	}
	y := n.Call("cast", []*ir.Value{product}, op.Attr{Name: "to", Value: aScale.Type.DType})
	scale := n.Call("mul", []*ir.Value{aScale, bScale})
	if bias == nil {
		n.Finish("mul", []*ir.Value{y, scale})
		return
	}
	n.Finish("add", []*ir.Value{n.Call("mul", []*ir.Value{y, scale}), bias})
}
