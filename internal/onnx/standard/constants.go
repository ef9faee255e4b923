package standard

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var constantTable = map[string]lift.Operator{
	"Constant":        lift.Lifted(0, liftConstant),
	"ConstantOfShape": lift.Lifted(9, liftConstantOfShape),
	"Range":           lift.Since(11),

	"EyeLike": lift.Lifted(9, liftEyeLike),
}

// liftConstant binds the output to a weight, like an initializer.
func liftConstant(n *lift.Node) {
	if len(n.Args) != 0 || len(n.Proto.Outputs) != 1 || n.Proto.Outputs[0] == "" || len(n.Attrs) != 1 {
		n.Fail("got %d operands, %d outputs and %d attributes, want one output and one value", len(n.Args), len(n.Proto.Outputs), len(n.Attrs))
		return
	}
	out := n.Proto.Outputs[0]
	if t, ok := lift.Take[*wire.Tensor](n, "value"); ok {
		n.BindTensor(out, t)
		return
	}
	if t, ok := lift.Take[*wire.Sparse](n, "sparse_value"); ok {
		n.BindSparse(out, t)
		return
	}
	var data []byte
	typ := op.Type{DType: dtype.I64, Shape: shape.Scalar()}
	if v, ok := lift.Take[int64](n, "value_int"); ok {
		data = binary.LittleEndian.AppendUint64(nil, uint64(v))
	} else if v, ok := lift.Take[float32](n, "value_float"); ok {
		typ.DType = dtype.F32
		data = binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	} else if list, ok := lift.Take[[]int64](n, "value_ints"); ok {
		typ, data = lift.IntList(list)
	} else if list, ok := lift.Take[[]float32](n, "value_floats"); ok {
		typ, data = lift.FloatList(list)
	} else if s, ok := lift.Take[string](n, "value_string"); ok {
		textConstant(n, out, []string{s})
		return
	} else if list, ok := lift.Take[[]string](n, "value_strings"); ok {
		textConstant(n, out, list, len(list))
		return
	}
	n.NoMoreAttrs()
	if n.Err == nil {
		n.Values[out] = &lift.Binding{Value: n.Weight(n.ValueName(out), typ, data)}
	}
}

// liftConstantOfShape makes numbers of the attribute that is a tensor of one
// element.
func liftConstantOfShape(n *lift.Node) {
	t, ok := lift.Take[*wire.Tensor](n, "value")
	if !ok {
		lift.Plain(n)
		return
	}
	d, err := t.Check()
	if err == nil && d.Text {
		n.Unsupported("attribute \"value\" of strings")
		return
	}
	if err == nil && d.Type.Shape.NumElements() != 1 {
		err = wire.Corruptf("attribute \"value\": got %s, want one element", d.Type)
	}
	var data []byte
	if err == nil {
		data, err = t.Elements(d)
	}
	if err != nil {
		n.Err = err
		return
	}
	attrs := []op.Attr{{Name: "dtype", Value: d.Type.DType}}
	if v, ok := lift.DecodeFloat(d.Type.DType, data); ok {
		attrs = append(attrs, op.Attr{Name: "value", Value: v})
	} else if v, ok := lift.DecodeInt(d.Type.DType, data); ok {
		attrs = append(attrs, op.Attr{Name: "ints", Value: []int64{v}})
	} else if d.Type.DType == dtype.U64 { // above the integers of an attribute
		if n.NoMoreAttrs(); n.Operand(1) != nil {
			n.Finish("expand", []*ir.Value{n.Weight(n.Fresh("value"), op.Type{DType: dtype.U64, Shape: shape.Scalar()}, data), n.Args[0]})
		}
		return
	} else {
		n.Unsupported("attribute \"value\" of element type %s", d.Type.DType)
	}
	n.FinishNewest(n.Args, attrs...)
}

// liftEyeLike cuts everything but a diagonal from a matrix of ones.
func liftEyeLike(n *lift.Node) {
	diagonal := n.Scalar(dtype.I64, 0)
	if k := lift.TakeOr(n, "k", int64(0)); k != 0 {
		diagonal = n.Call("squeeze", []*ir.Value{n.Ints([]int64{k})})
	}
	code, given := lift.Take[int64](n, "dtype")
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	dt := x.Type.DType
	if given {
		v, err := lift.ConvertAttr(code, op.DTypeKind)
		if err != nil {
			n.Fail("attribute %q: %w", "dtype", err)
			return
		}
		dt = v.(dtype.DType)
	}
	ones := n.Call("expand", []*ir.Value{n.Scalar(dt, 1), n.ShapeOf(x)})
	upper := n.Call("trilu", []*ir.Value{ones, diagonal})
	n.Finish("trilu", []*ir.Value{upper, diagonal}, lift.IntAttr("upper", 0))
}
