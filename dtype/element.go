package dtype

import "reflect"

// Element is a Go type whose slices have the memory form of a DType. Types
// whose size depends on the platform (int, uint) and types of less than a byte
// are not elements.
type Element interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~bool | ~complex64 | ~complex128
}

// Of returns the DType of T: for a float type of this package its own, for any
// other type that of its underlying Go type: a caller's `type celsius float32`
// is F32, and a caller's `type half Float16` is U16, because its format is not
// known here.
func Of[T Element]() DType {
	var zero T
	if d := ownType(zero); d != Invalid {
		return d
	}
	d := byKind[reflect.TypeFor[T]().Kind()]
	if d == Invalid {
		panic("BUG: dtype.Of: Element admits " + reflect.TypeFor[T]().String() + ", which has no DType")
	}
	return d
}

// OfType is [Of] for a type that is known only at run time. It is Invalid for
// one that is no [Element].
func OfType(t reflect.Type) DType {
	if t == nil {
		return Invalid
	}
	if d := ownType(reflect.Zero(t).Interface()); d != Invalid {
		return d
	}
	return byKind[t.Kind()]
}

// ownType is the DType of a float type of this package.
func ownType(zero any) DType {
	switch zero.(type) {
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
	case Float8E3M4:
		return F8E3M4
	case Float8E4M3:
		return F8E4M3
	case Float8E4M3B11FNUZ:
		return F8E4M3B11FNUZ
	}
	return Invalid
}

var byKind = [...]DType{
	reflect.Float32:       F32,
	reflect.Float64:       F64,
	reflect.Int8:          I8,
	reflect.Int16:         I16,
	reflect.Int32:         I32,
	reflect.Int64:         I64,
	reflect.Uint8:         U8,
	reflect.Uint16:        U16,
	reflect.Uint32:        U32,
	reflect.Uint64:        U64,
	reflect.Bool:          Bool,
	reflect.Complex64:     C64,
	reflect.Complex128:    C128,
	reflect.UnsafePointer: Invalid, // the last kind: makes the array cover them all
}
