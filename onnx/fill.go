package onnx

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var constantTable = map[string]operator{
	"Constant":        lifted(0, liftConstant),
	"ConstantOfShape": lifted(9, liftConstantOfShape),
	"Range":           since(11),
}

// liftConstant binds the output to a weight, like an initializer.
func liftConstant(n *node) {
	if len(n.args) != 0 || len(n.proto.Outputs) != 1 || n.proto.Outputs[0] == "" || len(n.attrs) != 1 {
		n.fail("got %d operands, %d outputs and %d attributes, want one output and one value", len(n.args), len(n.proto.Outputs), len(n.attrs))
		return
	}
	out := n.proto.Outputs[0]
	if t, ok := take[*wire.Tensor](n, "value"); ok {
		init, err := newInitializer(t)
		if n.err = err; err == nil {
			n.values[out] = &binding{init: init}
		}
		return
	}
	var data []byte
	typ := op.Type{DType: dtype.I64, Shape: shape.Scalar()}
	if v, ok := take[int64](n, "value_int"); ok {
		data = binary.LittleEndian.AppendUint64(nil, uint64(v))
	} else if v, ok := take[float32](n, "value_float"); ok {
		typ.DType = dtype.F32
		data = binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	} else if list, ok := take[[]int64](n, "value_ints"); ok {
		typ, data = intList(list)
	} else if list, ok := take[[]float32](n, "value_floats"); ok {
		typ, data = floatList(list)
	} else if s, ok := take[string](n, "value_string"); ok {
		n.textConstant(out, []string{s})
		return
	} else if list, ok := take[[]string](n, "value_strings"); ok {
		n.textConstant(out, list, len(list))
		return
	}
	n.noMoreAttrs()
	if n.err == nil {
		n.values[out] = &binding{value: n.weight(n.valueName(out), typ, data)}
	}
}

// liftConstantOfShape makes numbers of the attribute that is a tensor of one
// element.
func liftConstantOfShape(n *node) {
	t, ok := take[*wire.Tensor](n, "value")
	if !ok {
		plain(n)
		return
	}
	d, err := t.Check()
	if err == nil && d.Text {
		n.unsupported("attribute \"value\" of strings")
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
		n.err = err
		return
	}
	attrs := []op.Attr{{Name: "dtype", Value: d.Type.DType}}
	if v, ok := decodeFloat(d.Type.DType, data); ok {
		attrs = append(attrs, op.Attr{Name: "value", Value: v})
	} else if v, ok := decodeInt(d.Type.DType, data); ok {
		attrs = append(attrs, op.Attr{Name: "ints", Value: []int64{v}})
	} else {
		n.unsupported("attribute \"value\" of element type %s", d.Type.DType)
	}
	n.finishNewest(n.args, attrs...)
}
