package picture

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/tensor"
)

// limits are the smallest and largest elements of each supported type.
var limits = map[dtype.DType]struct{ low, high float64 }{
	dtype.F16:  {-65504, 65504},
	dtype.BF16: {-0x1.fep127, 0x1.fep127},
	dtype.F32:  {-math.MaxFloat32, math.MaxFloat32},
	dtype.F64:  {-math.MaxFloat64, math.MaxFloat64},
	dtype.U8:   {0, math.MaxUint8},
	dtype.U16:  {0, math.MaxUint16},
	dtype.U32:  {0, math.MaxUint32},
	dtype.U64:  {0, 1 << 53}, // every whole number up to here is a float64
	dtype.I8:   {math.MinInt8, math.MaxInt8},
	dtype.I16:  {math.MinInt16, math.MaxInt16},
	dtype.I32:  {math.MinInt32, math.MaxInt32},
	dtype.I64:  {-1 << 53, 1 << 53},
}

// writer returns access to the elements of a new tensor. put reports false for
// a number that the type does not hold.
func writer(t *tensor.Tensor) (put func(i int, v float64) bool, end func(), err error) {
	switch t.DType() {
	case dtype.F16:
		return elements(t, func(v float64) dtype.Float16 { return dtype.Float16FromFloat32(dtype.RoundToOdd(v)) })
	case dtype.BF16:
		return elements(t, func(v float64) dtype.BFloat16 { return dtype.BFloat16FromFloat32(dtype.RoundToOdd(v)) })
	case dtype.F32:
		return elements(t, func(v float64) float32 { return float32(v) })
	case dtype.F64:
		return elements(t, func(v float64) float64 { return v })
	case dtype.U8:
		return elements(t, func(v float64) uint8 { return uint8(v) })
	case dtype.U16:
		return elements(t, func(v float64) uint16 { return uint16(v) })
	case dtype.U32:
		return elements(t, func(v float64) uint32 { return uint32(v) })
	case dtype.U64:
		return elements(t, func(v float64) uint64 { return uint64(v) })
	case dtype.I8:
		return elements(t, func(v float64) int8 { return int8(v) })
	case dtype.I16:
		return elements(t, func(v float64) int16 { return int16(v) })
	case dtype.I32:
		return elements(t, func(v float64) int32 { return int32(v) })
	case dtype.I64:
		return elements(t, func(v float64) int64 { return int64(v) })
	}
	panic("BUG: picture: elements of " + t.DType().String())
}

// elements is writer for one Go type. Numbers for integers are rounded before
// they are compared with the limits.
func elements[T dtype.Element](t *tensor.Tensor, convert func(float64) T) (put func(i int, v float64) bool, end func(), err error) {
	view, err := tensor.Write[T](t)
	if err != nil {
		return nil, nil, err
	}
	limit, whole := limits[t.DType()], !t.DType().IsFloat()
	put = func(i int, v float64) bool {
		if whole {
			v = math.Round(v)
		}
		if !(limit.low <= v && v <= limit.high) {
			return false
		}
		view.Data[i] = convert(v)
		return true
	}
	return put, func() { view.Release() }, nil
}
