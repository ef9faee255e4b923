package standard

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
)

var quantizeTable = map[string]lift.Operator{
	"QuantizeLinear":        lift.Lifted(10, liftQuantize),
	"DequantizeLinear":      lift.Lifted(10, liftQuantize),
	"DynamicQuantizeLinear": lift.Since(11),
	"MatMulInteger":         lift.Since(10),
	"QLinearMatMul":         lift.Lifted(10, liftQLinearMatMul),
	"ConvInteger":           lift.Since(10),
	"QLinearConv":           lift.Since(10),
}

// liftQLinearMatMul refuses a bias, which the operator has and ONNX lacks.
func liftQLinearMatMul(n *lift.Node) {
	if n.Operands(8, 8) {
		lift.Plain(n)
	}
}

// liftQuantize drops attributes that say what holds anyway: an element type of
// 0 is that of the operands. From opset 23 on the quotient has the type of the
// scale unless the attribute precision names another one; before, it is in f32,
// as ONNX Runtime has it.
func liftQuantize(n *lift.Node) {
	if i := n.AttrIndex("output_dtype"); i >= 0 && n.Attrs[i].Value == int64(dtype.Invalid) {
		n.Ignore("output_dtype")
	}
	if n.OpName != "QuantizeLinear" || n.Opset < 23 {
		lift.Plain(n)
		return
	}
	precision := dtype.DType(0)
	switch p := lift.TakeOr(n, "precision", int64(0)); {
	case p == 0 && n.Arg(1) != nil:
		precision = n.Args[1].Type.DType
	case p != 0:
		var err error
		if precision, err = dtype.FromONNX(int32(min(max(p, 0), 1<<20))); err != nil || precision == dtype.F64 {
			n.Unsupported("precision %d", p)
			return
		}
	}
	if precision == dtype.F16 || precision == dtype.BF16 {
		n.Attrs = append(n.Attrs, wire.Attribute{Name: "precision", Value: int64(precision.ONNX())})
	}
	lift.Plain(n)
}
