package lift

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Constants that lifting makes are weights named by their value, one for each
// value: the text of a program shows what its calls are given.

// maxNameNumbers is how many numbers a constant's name may list.
const maxNameNumbers = 16

// Ints returns the constant list of i64.
func (n *Node) Ints(list []int64) *ir.Value {
	typ, data := IntList(list)
	return n.list(typ, data, fmt.Sprint(list))
}

// Floats returns the constant list of f32.
func (n *Node) Floats(list []float32) *ir.Value {
	typ, data := FloatList(list)
	return n.list(typ, data, fmt.Sprint(list))
}

func (n *Node) list(typ op.Type, data []byte, text string) *ir.Value {
	if typ.Shape.NumElements() > maxNameNumbers {
		return n.Weight(n.Fresh(n.Name+"."+typ.String()), typ, data)
	}
	return n.Constant(typ.DType.String()+strings.ReplaceAll(text, " ", ","), typ, data)
}

// IntList returns the type and the bytes of a list of i64.
func IntList(list []int64) (op.Type, []byte) {
	data := make([]byte, 0, 8*len(list))
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return op.Type{DType: dtype.I64, Shape: shape.MustOf(len(list))}, data
}

// FloatList returns the type and the bytes of a list of f32.
func FloatList(list []float32) (op.Type, []byte) {
	data := make([]byte, 0, 4*len(list))
	for _, v := range list {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return op.Type{DType: dtype.F32, Shape: shape.MustOf(len(list))}, data
}

// Scalar returns the constant scalar of a float or integer type.
func (n *Node) Scalar(dt dtype.DType, v float64) *ir.Value {
	data, err := EncodeNumber(dt, v)
	if err != nil {
		n.Fail("%w", err)
		return nil
	}
	return n.Constant(fmt.Sprintf("%s %g", dt, v), op.Type{DType: dt, Shape: shape.Scalar()}, data)
}

// Constant returns the weight of that name, which says its value, and makes
// it if there is none.
func (n *Node) Constant(name string, typ op.Type, data []byte) *ir.Value {
	v := n.small[name]
	if v == nil && n.Err == nil {
		v = n.Weight(n.Fresh(name), typ, data)
		n.small[name] = v
	}
	return v
}

// Weight makes a weight with a copy of data.
func (n *Node) Weight(name string, typ op.Type, data []byte) *ir.Value {
	v := n.Program.NewValue(ir.Weight, name, typ)
	if err := n.Store.Add(name, typ, data); err != nil {
		n.Fail("%w", err)
		return nil
	}
	n.Program.Weights = append(n.Program.Weights, v)
	return v
}

// EncodeNumber returns v as one element of the type.
func EncodeNumber(dt dtype.DType, v float64) ([]byte, error) {
	b := make([]byte, 8)
	switch dt {
	case dtype.F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
	case dtype.F64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(v))
	case dtype.F16:
		binary.LittleEndian.PutUint16(b, uint16(dtype.Float16FromFloat32(float32(v))))
	case dtype.BF16:
		binary.LittleEndian.PutUint16(b, uint16(dtype.BFloat16FromFloat32(float32(v))))
	default:
		if !dt.IsInt() || dt.Size() == 0 {
			return nil, fmt.Errorf("constant of type %s: %w", dt, op.ErrUnsupported)
		}
		binary.LittleEndian.PutUint64(b, uint64(int64(v)))
	}
	return b[:dt.Size()], nil
}

// DecodeFloat returns the first element of data as a float, false for a type
// of another kind.
func DecodeFloat(dt dtype.DType, data []byte) (float64, bool) {
	switch dt {
	case dtype.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data))), true
	case dtype.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(data)), true
	case dtype.F16:
		return float64(dtype.Float16(binary.LittleEndian.Uint16(data)).Float32()), true
	case dtype.BF16:
		return float64(dtype.BFloat16(binary.LittleEndian.Uint16(data)).Float32()), true
	}
	return 0, false
}

// DecodeInt returns the first element of data as an integer, false for a type
// of another kind and for a number beyond int64.
func DecodeInt(dt dtype.DType, data []byte) (int64, bool) {
	if dt != dtype.Bool && !dt.IsInt() || dt.Size() == 0 {
		return 0, false
	}
	var b [8]byte
	copy(b[:], data[:dt.Size()])
	v := int64(binary.LittleEndian.Uint64(b[:]))
	if dt.IsSigned() {
		shift := 64 - dt.Bits()
		return v << shift >> shift, true
	}
	return v, v >= 0
}
