package onnx

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
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
		names[i] = n.fresh(n.path + n.proto.outputs[0] + ".dynamic_quantize_linear")
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

// liftMatMulNBits multiplies by weights of 4 bits in blocks, which are taken
// apart when the model is read: [N, blocks, block/2] bytes are [N, K] elements.
func liftMatMulNBits(n *node) {
	k, rows := takeOr(n, "K", int64(0)), takeOr(n, "N", int64(0))
	bits, block := takeOr(n, "bits", int64(4)), takeOr(n, "block_size", int64(0))
	n.ignore("accuracy_level")
	n.noMoreAttrs()
	if !n.operands(3, 6) {
		return
	}
	if bits != 4 || n.arg(4) != nil {
		n.unsupported("bits %d, or groups by index", bits)
		return
	}
	if k < 1 || rows < 1 || block < 2 || k > 1<<40 || rows > 1<<40 || !n.wantDivides("K", k, block) {
		n.fail("got K %d, N %d and block_size %d, want 1 or more", k, rows, block)
		return
	}
	blocks := k / block
	weights := n.nibbles(1, rows, k)
	scale := n.call("reshape", []*ir.Value{n.args[2], n.ints([]int64{rows, blocks})})
	var zero *ir.Value
	if z := n.arg(3); z != nil && z.Type.DType == dtype.U8 {
		if blocks%2 != 0 {
			n.unsupported("packed zeros of %d blocks", blocks)
			return
		}
		zero = n.nibbles(3, rows, blocks)
	} else if z != nil {
		n.unsupported("zeros of %s", z.Type)
		return
	}
	if n.err != nil {
		return
	}
	if zero == nil {
		middle := make([]byte, (rows*blocks+1)/2)
		for i := range middle {
			middle[i] = 0x88
		}
		if rows*blocks%2 != 0 {
			middle[len(middle)-1] = 0x08
		}
		zero = n.weight(n.fresh(n.name+".zeros"), op.Type{DType: dtype.U4, Shape: shape.MustOf(int(rows), int(blocks))}, middle)
	}
	b := n.call("dequantize_linear", []*ir.Value{weights, scale, zero}, intAttr("axis", 1), intAttr("block_size", block))
	b = n.call("transpose", []*ir.Value{b})
	if bias := n.arg(5); bias != nil {
		n.finish("add", []*ir.Value{n.call("matmul", []*ir.Value{n.args[0], b}), bias})
		return
	}
	n.finish("matmul", []*ir.Value{n.args[0], b})
}

// nibbles is the weight of operand i, whose bytes hold two elements each, as
// [rows, cols] of them. The lower half of a byte comes first, as in ours.
func (n *node) nibbles(i int, rows, cols int64) *ir.Value {
	v := n.args[i]
	data, known := n.model.Weights.Bytes(v)
	if n.err != nil {
		return nil
	}
	if !known {
		n.unsupported("operand %d that is not known at load", i)
		return nil
	}
	if v.Type.DType != dtype.U8 || cols%2 != 0 || int64(len(data)) != rows*cols/2 {
		n.fail("operand %d: got %s, want %d by %d elements of 4 bits in bytes: %w", i, v.Type, rows, cols, shape.ErrShape)
		return nil
	}
	return n.weight(n.fresh(v.Name+".u4"), op.Type{DType: dtype.U4, Shape: shape.MustOf(int(rows), int(cols))}, data)
}
