package onnx

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var contribQuantizeTable = map[string]operator{
	"QuantizeLinear":           lifted(1, liftAsStandard),
	"DequantizeLinear":         lifted(1, liftAsStandard),
	"MatMulNBits":              lifted(1, liftMatMulNBits),
	"DynamicQuantizeMatMul":    lifted(1, liftDynamicQuantizeMatMul),
	"MatMulIntegerToFloat":     lifted(1, liftMatMulIntegerToFloat),
	"QLinearAdd":               lifted(1, func(n *node) { n.quantizedBinary("add") }),
	"QLinearMul":               lifted(1, func(n *node) { n.quantizedBinary("mul") }),
	"QLinearSigmoid":           lifted(1, func(n *node) { n.quantizedUnary("sigmoid") }),
	"QLinearLeakyRelu":         lifted(1, liftQLinearLeakyRelu),
	"QLinearGlobalAveragePool": lifted(1, liftQLinearGlobalPool),
	"QLinearConcat":            lifted(1, liftQLinearConcat),
}

// number is operand i as a float, by the scale and the zero after it.
func (n *node) number(i int) *ir.Value {
	return n.call("dequantize_linear", []*ir.Value{n.args[i], n.args[i+1], n.arg(i + 2)})
}

// quantizedBinary is an operator of two quantised operands and a quantised
// result, each with its scale and its zero.
func (n *node) quantizedBinary(name string) {
	n.noMoreAttrs()
	if n.operands(7, 8) {
		n.quantized(n.call(name, []*ir.Value{n.number(0), n.number(3)}), n.args[6], n.arg(7), n.args[0].Type.DType)
	}
}

// quantized ends the node with a value quantised; without a zero it is that of
// the given type.
func (n *node) quantized(x, scale, zero *ir.Value, dt dtype.DType) {
	n.finish("quantize_linear", []*ir.Value{x, scale, zero}, op.Attr{Name: "output_dtype", Value: dt})
}

// quantizedUnary is an operator of one quantised operand.
func (n *node) quantizedUnary(name string, attrs ...op.Attr) {
	n.noMoreAttrs()
	if n.operands(4, 5) {
		n.quantized(n.call(name, []*ir.Value{n.number(0)}, attrs...), n.args[3], n.arg(4), n.args[0].Type.DType)
	}
}

func liftQLinearLeakyRelu(n *node) {
	n.quantizedUnary("leaky_relu", op.Attr{Name: "alpha", Value: float64(takeOr(n, "alpha", float32(0.01)))})
}

func liftQLinearGlobalPool(n *node) {
	if takeOr(n, "channels_last", int64(0)) != 0 {
		n.unsupported("channels_last 1")
	}
	n.quantizedUnary("global_average_pool")
}

// liftQLinearConcat has the result's scale and zero first, then each operand
// with its own.
func liftQLinearConcat(n *node) {
	axis, ok := take[int64](n, "axis")
	n.noMoreAttrs()
	if !ok || len(n.args) < 5 || len(n.args)%3 != 2 {
		n.fail("got %d operands, want an axis, the result's scale and zero, and three for each part", len(n.args))
		return
	}
	if !n.operands(len(n.args), len(n.args)) {
		return
	}
	var parts []*ir.Value
	for i := 2; i < len(n.args); i += 3 {
		parts = append(parts, n.number(i))
	}
	n.quantized(n.call("concat", parts, intAttr("axis", axis)), n.args[0], n.args[1], n.args[2].Type.DType)
}

// liftDynamicQuantizeMatMul quantises a by its range, and multiplies integers.
func liftDynamicQuantizeMatMul(n *node) {
	n.noMoreAttrs()
	if !n.operands(3, 5) {
		return
	}
	names := make([]string, 3)
	for i := range names {
		names[i] = n.fresh(n.path + n.proto.Outputs[0] + ".dynamic_quantize_linear")
	}
	a := n.emit("dynamic_quantize_linear", n.args[:1], nil, names)
	n.integerProduct(a[0], n.args[1], a[1], n.args[2], a[2], n.arg(3), n.arg(4))
}

// liftMatMulIntegerToFloat multiplies integers and scales the result.
func liftMatMulIntegerToFloat(n *node) {
	n.noMoreAttrs()
	if n.operands(4, 7) {
		n.integerProduct(n.args[0], n.args[1], n.args[2], n.args[3], n.arg(4), n.arg(5), n.arg(6))
	}
}

// integerProduct is (a - aZero) * (b - bZero) * aScale * bScale + bias.
func (n *node) integerProduct(a, b, aScale, bScale, aZero, bZero, bias *ir.Value) {
	product := n.call("matmul_integer", []*ir.Value{a, b, aZero, bZero})
	if n.err != nil {
		return
	}
	y := n.call("cast", []*ir.Value{product}, op.Attr{Name: "to", Value: aScale.Type.DType})
	scale := n.call("mul", []*ir.Value{aScale, bScale})
	if bias == nil {
		n.finish("mul", []*ir.Value{y, scale})
		return
	}
	n.finish("add", []*ir.Value{n.call("mul", []*ir.Value{y, scale}), bias})
}
