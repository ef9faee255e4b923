package compute

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// intAt returns element i of an integer or bool operand; an unsigned one over
// the range of int64 wraps.
func intAt(a *op.Arg, i int) int64 {
	size := a.DType.Size()
	b := a.Data[i*size : (i+1)*size]
	switch a.DType {
	case dtype.I8:
		return int64(int8(b[0]))
	case dtype.U8, dtype.Bool:
		return int64(b[0])
	case dtype.I16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case dtype.U16:
		return int64(binary.LittleEndian.Uint16(b))
	case dtype.I32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case dtype.U32:
		return int64(binary.LittleEndian.Uint32(b))
	case dtype.I64, dtype.U64:
		return int64(binary.LittleEndian.Uint64(b))
	}
	panic("BUG: compute: element of " + a.Type.String() + " read as an integer")
}

// floatAt returns element i of a float or integer operand.
func floatAt(a *op.Arg, i int) float64 {
	size := a.DType.Size()
	switch a.DType {
	case dtype.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[i*size:])))
	case dtype.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(a.Data[i*size:]))
	case dtype.F16:
		return float64(dtype.Float16(binary.LittleEndian.Uint16(a.Data[i*size:])).Float32())
	case dtype.BF16:
		return float64(dtype.BFloat16(binary.LittleEndian.Uint16(a.Data[i*size:])).Float32())
	case dtype.U64:
		return float64(binary.LittleEndian.Uint64(a.Data[i*size:]))
	}
	return float64(intAt(a, i))
}
