package standard

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// liftDropout drops the dropping: outside of training, and where nothing is
// dropped, it is the identity.
func liftDropout(n *lift.Node) {
	n.Ignore("ratio")
	seed, seeded := lift.Take[int64](n, "seed")
	wantInference(n)
	n.NoMoreAttrs()
	training := n.Arg(2)
	if on, known := constantFlag(n, training); training != nil && !(known && !on) && !dropsNothing(n) {
		if n.Operands(1, 3) {
			dropSome(n, known, seed, seeded)
		}
		return
	}
	if n.Wanted(1) {
		keepAll(n)
		return
	}
	n.Finish("identity", n.Args[:min(1, len(n.Args))])
}

// wantInference takes the attribute is_test, which operators have before opset
// 7. Where a file leaves it out, its default means training; exporters that do
// so mean inference, and ONNX's converter to opset 7 takes them so.
func wantInference(n *lift.Node) {
	if n.Opset >= 7 {
		return
	}
	switch test, given := lift.Take[int64](n, "is_test"); {
	case !given:
		n.Note(n.OpName + " of opset 6 without is_test is taken as in inference")
	case test == 0:
		n.Unsupported("is_test 0, which is training; set it to 1 for inference")
	}
}

// constantFlag returns the value of a constant of one bool.
func constantFlag(n *lift.Node, v *ir.Value) (on, known bool) {
	if v == nil {
		return false, false
	}
	data, ok := n.Store.Bytes(v)
	return ok && len(data) == 1 && data[0] != 0, ok && len(data) == 1
}

// dropSome keeps the elements for which a number that is drawn from 0 to 1 is
// not below the ratio, one half if it is absent, and divides them by the share
// that is kept. Where training_mode is not a constant, the ratio is 0 unless it
// is true.
func dropSome(n *lift.Node, trains bool, seed int64, seeded bool) {
	x, ratio := n.Args[0], n.Arg(1)
	const single = dtype.F32
	if ratio == nil {
		ratio = n.Scalar(single, 0.5)
	} else if ratio.Type.DType != single {
		ratio = n.Call("cast", []*ir.Value{ratio}, op.Attr{Name: "to", Value: single})
	}
	if !trains {
		ratio = n.Call("where", []*ir.Value{n.Arg(2), ratio, n.Scalar(single, 0)})
	}
	attrs := []op.Attr{{Name: "dtype", Value: single}}
	if seeded {
		attrs = append(attrs, op.Attr{Name: "seed", Value: float64(seed)})
	}
	drawn := n.Call("random_uniform", []*ir.Value{n.ShapeOf(x)}, attrs...)
	keep := n.Call("greater_or_equal", []*ir.Value{drawn, ratio})
	factor := n.Call("div", []*ir.Value{n.Scalar(single, 1), n.Call("sub", []*ir.Value{n.Scalar(single, 1), ratio})})
	if x.Type.DType != single {
		factor = n.Call("cast", []*ir.Value{factor}, op.Attr{Name: "to", Value: x.Type.DType})
	}
	n.Output(0, "where", []*ir.Value{keep, n.Call("mul", []*ir.Value{x, factor}), n.Scalar(x.Type.DType, 0)})
	n.Output(1, "identity", []*ir.Value{keep})
}

// dropsNothing reports whether the ratio of a Dropout is the constant 0.
func dropsNothing(n *lift.Node) bool {
	ratio := n.Arg(1)
	if ratio == nil {
		return false // one half
	}
	data, known := n.Store.Bytes(ratio)
	if !known || len(data) != ratio.Type.DType.Size() {
		return false
	}
	v, ok := lift.DecodeFloat(ratio.Type.DType, data)
	return ok && v == 0
}

// keepAll binds the outputs to x and to a mask that drops nothing. Before opset
// 10 the mask has the element type of x.
func keepAll(n *lift.Node) {
	x := n.Arg(0)
	if x == nil || len(n.Proto.Outputs) > 2 {
		n.Fail("got %d operands and %d outputs, want an operand and 1 or 2", len(n.Args), len(n.Proto.Outputs))
		return
	}
	if n.Proto.Outputs[0] != "" {
		n.Bind(n.Proto.Outputs[:1], func(names []string) []*ir.Value { return n.Emit("identity", n.Args[:1], nil, names) })
	}
	n.Bind(n.Proto.Outputs[1:], func(names []string) []*ir.Value {
		var yes *ir.Value
		if n.Opset < 10 {
			yes = n.Scalar(x.Type.DType, 1)
		} else {
			yes = n.Call("cast", []*ir.Value{n.Scalar(dtype.I64, 1)}, op.Attr{Name: "to", Value: dtype.Bool})
		}
		return n.Emit("expand", []*ir.Value{yes, n.ShapeOf(x)}, nil, names)
	})
}
