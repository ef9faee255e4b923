package onnx

import (
	"github.com/tenure-go/tenure/dtype"
)

var quantizeTable = map[string]operator{
	"QuantizeLinear":        lifted(10, liftQuantize),
	"DequantizeLinear":      lifted(10, liftQuantize),
	"DynamicQuantizeLinear": since(11),
	"MatMulInteger":         since(10),
	"QLinearMatMul":         since(10),
	"ConvInteger":           since(10),
	"QLinearConv":           since(10),
}

// liftQuantize drops attributes that say what holds anyway: an element type of
// 0 is that of the operands, and a division is in f32.
func liftQuantize(n *node) {
	if i := n.attrIndex("output_dtype"); i >= 0 && n.attrs[i].value == int64(dtype.Invalid) {
		n.ignore("output_dtype")
	}
	if p := takeOr(n, "precision", int64(0)); p != 0 && p != 1 {
		n.unsupported("precision %d", p)
	}
	plain(n)
}
