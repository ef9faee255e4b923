package onnx

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
)

var elementwiseTable = map[string]operator{
	"Add": lifted(0, liftBinary), "Sub": lifted(0, liftBinary), "Mul": lifted(0, liftBinary), "Div": lifted(0, liftBinary), "Pow": lifted(0, liftBinary), "Mod": since(10),
	"Max": since(0), "Min": since(0), "Sum": since(0), "Mean": since(0),
	"Equal": lifted(0, liftBinary), "Greater": lifted(0, liftBinary), "Less": lifted(0, liftBinary), "GreaterOrEqual": since(12), "LessOrEqual": since(12),
	"And": lifted(0, liftBinary), "Or": lifted(0, liftBinary), "Xor": lifted(0, liftBinary), "Not": since(0), "Where": since(9),

	"Abs": since(0), "Neg": since(0), "Sign": since(9), "Floor": since(0), "Ceil": since(0), "Round": since(11),
	"Exp": since(0), "Log": since(0), "Sqrt": since(0), "Reciprocal": since(0), "Erf": since(9),
	"Sin": since(0), "Cos": since(0), "Tanh": since(0), "Tan": since(7),
	"Asin": since(7), "Acos": since(7), "Atan": since(7), "Sinh": since(9), "Cosh": since(9), "Asinh": since(9), "Acosh": since(9), "Atanh": since(9),
	"BitwiseAnd": since(18), "BitwiseOr": since(18), "BitwiseXor": since(18), "BitwiseNot": since(18), "BitShift": since(11),
	"IsNaN": since(9), "IsInf": since(10),

	"Relu": since(0), "LeakyRelu": since(0), "Elu": since(0), "Selu": since(0),
	"Sigmoid": since(0), "HardSigmoid": since(0), "HardSwish": since(14), "Swish": since(24), "Gelu": since(20),
	"Softplus": since(0), "Softsign": since(0),
	"Celu": since(12), "Mish": since(18), "Shrink": since(9), "ThresholdedRelu": since(10), "PRelu": lifted(0, liftPRelu),

	"Clip":     lifted(0, liftClip),
	"Cast":     since(0),
	"CastLike": lifted(15, liftCastLike),
	"Dropout":  lifted(0, liftDropout),
}

// liftClip makes operands of the bounds that are attributes before opset 11.
func liftClip(n *node) {
	if n.opset >= 11 {
		plain(n)
		return
	}
	low, hasLow := take[float32](n, "min")
	high, hasHigh := take[float32](n, "max")
	x := n.arg(0)
	args := []*ir.Value{x, nil, nil}
	if x != nil && !x.Type.IsZero() {
		if hasLow {
			args[1] = n.scalar(x.Type.DType, float64(low))
		}
		if hasHigh {
			args[2] = n.scalar(x.Type.DType, float64(high))
		}
	}
	n.finishNewest(args)
}

// liftCastLike casts to the element type of an operand, which is known.
func liftCastLike(n *node) {
	like := n.arg(1)
	if like == nil {
		n.err = wire.Corruptf("operand 1 is absent, want a value")
		return
	}
	if like.Type.IsZero() {
		n.giveUp()
		return
	}
	n.finishAs("Cast", n.args[:1], op.Attr{Name: "to", Value: like.Type.DType})
}

// liftDropout drops the dropping: outside of training it is the identity.
func liftDropout(n *node) {
	n.ignore("ratio", "seed")
	if n.opset < 7 && takeOr(n, "is_test", int64(0)) == 0 {
		n.unsupported("is_test 0")
	}
	n.noMoreAttrs()
	if training := n.arg(2); training != nil {
		on, known := n.model.Weights.Bytes(training)
		if !known || len(on) != 1 || on[0] != 0 {
			n.unsupported("training_mode that is not the constant false")
			return
		}
	}
	if n.wanted(1) {
		n.keepAll()
		return
	}
	n.finish("identity", n.args[:min(1, len(n.args))])
}

// keepAll gives x, and a mask that drops nothing.
func (n *node) keepAll() {
	if n.opset < 10 {
		n.unsupported("output 1, the mask")
		return
	}
	x := n.arg(0)
	if x == nil || len(n.proto.Outputs) > 2 {
		n.fail("got %d operands and %d outputs, want an operand and 1 or 2", len(n.args), len(n.proto.Outputs))
		return
	}
	if n.proto.Outputs[0] != "" {
		n.bind(n.proto.Outputs[:1], func(names []string) []*ir.Value { return n.emit("identity", n.args[:1], nil, names) })
	}
	n.bind(n.proto.Outputs[1:], func(names []string) []*ir.Value {
		yes := n.call("cast", []*ir.Value{n.scalar(dtype.I64, 1)}, op.Attr{Name: "to", Value: dtype.Bool})
		return n.emit("expand", []*ir.Value{yes, n.shapeOf(x)}, nil, names)
	})
}
