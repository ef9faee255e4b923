package onnx

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/onnx/internal/wire"
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
// 0 is that of the operands. From opset 23 on the quotient has the type of the
// scale unless the attribute precision gives another one; before, it is in f32,
// as ONNX Runtime has it.
func liftQuantize(n *node) {
	if i := n.attrIndex("output_dtype"); i >= 0 && n.attrs[i].Value == int64(dtype.Invalid) {
		n.ignore("output_dtype")
	}
	if n.opName != "QuantizeLinear" || n.opset < 23 {
		plain(n)
		return
	}
	precision := dtype.DType(0)
	switch p := takeOr(n, "precision", int64(0)); {
	case p == 0 && n.arg(1) != nil:
		precision = n.args[1].Type.DType
	case p != 0:
		var err error
		if precision, err = dtype.FromONNX(int32(min(max(p, 0), 1<<20))); err != nil || precision == dtype.F64 {
			n.unsupported("precision %d", p)
			return
		}
	}
	if precision == dtype.F16 || precision == dtype.BF16 {
		n.attrs = append(n.attrs, wire.Attribute{Name: "precision", Value: int64(precision.ONNX())})
	}
	plain(n)
}
