package dtype

import "reflect"

// Element is a Go type whose slices have the memory form of a DType. Types with a size that depends on the platform (int, uint) and
// types of less than a byte are not elements: a slice of them is not the packed form.
type Element interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~bool | ~complex64 | ~complex128
}

// Of returns the DType of T. The float types of this package give their own; any other type gives that of its underlying Go type, so
// that a caller's `type celsius float32` is F32, and a caller's `type half dtype.Float16` is U16: its format is not known.
func Of[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return F32
	case int64:
		return I64
	case Float16:
		return F16
	case BFloat16:
		return BF16
	case Float8E4M3FN:
		return F8E4M3FN
	case Float8E4M3FNUZ:
		return F8E4M3FNUZ
	case Float8E5M2:
		return F8E5M2
	case Float8E5M2FNUZ:
		return F8E5M2FNUZ
	case Float8E8M0:
		return F8E8M0
	}
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Float32:
		return F32
	case reflect.Float64:
		return F64
	case reflect.Int8:
		return I8
	case reflect.Int16:
		return I16
	case reflect.Int32:
		return I32
	case reflect.Int64:
		return I64
	case reflect.Uint8:
		return U8
	case reflect.Uint16:
		return U16
	case reflect.Uint32:
		return U32
	case reflect.Uint64:
		return U64
	case reflect.Bool:
		return Bool
	case reflect.Complex64:
		return C64
	case reflect.Complex128:
		return C128
	}
	panic("BUG: dtype.Of: Element admits " + reflect.TypeFor[T]().String() + ", which has no DType")
}
