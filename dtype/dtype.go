package dtype

import (
	"errors"
	"fmt"
	"math"
)

// ErrDType is the kind of every error about an element type: unknown, not
// supported where it stands, or not the one wanted.
var ErrDType = errors.New("element type does not fit")

// ErrUnsupported is the kind of every error about something legal that is not
// supported. It stands here, in the package below all others, because the
// operator table and tensors share it and nothing else.
var ErrUnsupported = errors.New("not supported")

// DType is an element type. The zero value is Invalid.
type DType uint8

// The element types. Their values are not stable between versions: files and
// other libraries use ONNX or DLPack codes, text uses names.
const (
	Invalid DType = iota
	F32
	F64
	F16
	BF16
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	Bool   // one byte, 0 or 1
	C64    // two f32: real, imaginary
	C128   // two f64: real, imaginary
	String // no fixed size: never stored in a buffer
	F8E4M3FN
	F8E4M3FNUZ
	F8E5M2
	F8E5M2FNUZ
	F8E8M0 // a power of two: exponent only, no sign
	F4E2M1
	I4
	U4
	I2
	U2
	F6E2M3FN
	F6E3M2FN

	// The types below have a DLPack code and no ONNX code.

	F8E3M4
	F8E4M3
	F8E4M3B11FNUZ
	C32    // two f16: real, imaginary
	BC32   // two bf16: real, imaginary
	Opaque // a 64-bit handle that only its producer understands

	count // number of types, Invalid included
)

// Bits returns the size of one element in bits: 0 for Invalid and String.
func (d DType) Bits() int { return int(d.info().bits) }

// Size returns the size of one element in bytes: 0 for Invalid, String and
// every type whose size is not a whole number of bytes. The length of n
// elements of any type is ByteLen(n).
func (d DType) Size() int {
	if b := d.info().bits; b%8 == 0 {
		return int(b / 8)
	}
	return 0
}

// String returns the short lower-case name that Parse reads: "f32", "i64",
// "f8e4m3fn".
func (d DType) String() string {
	if d >= count {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return d.info().name
}

// IsValid reports whether d is one of the types above, Invalid not counted.
func (d DType) IsValid() bool { return d != Invalid && d < count }

// IsFloat reports whether d is a real floating-point type of any width.
func (d DType) IsFloat() bool { return d.info().class == classFloat }

// IsInt reports whether d is an integer type, signed or not. Bool is not an
// integer.
func (d DType) IsInt() bool { c := d.info().class; return c == classInt || c == classUint }

// IsSigned reports whether d can hold negative numbers: signed integers,
// complex numbers and all floats but F8E8M0.
func (d DType) IsSigned() bool {
	c := d.info().class
	return c == classInt || c == classComplex || c == classFloat && d != F8E8M0
}

// IsComplex reports whether d is a complex type.
func (d DType) IsComplex() bool { return d.info().class == classComplex }

// ByteLen returns the number of bytes that n elements take in packed form:
// elements of less than a byte follow each other without gaps from the lowest
// bit up, and only the last byte is padded. A type without a fixed size is
// ErrDType; a negative n and a length over the range of int are errors of the
// count, not of the type.
func (d DType) ByteLen(n int) (int, error) {
	bits := d.Bits()
	if bits == 0 {
		return 0, fmt.Errorf("dtype.ByteLen: got %v, want a type with a fixed size: %w", d, ErrDType)
	}
	if n < 0 {
		return 0, fmt.Errorf("dtype.ByteLen: got %d elements of %v, want 0 or more", n, d)
	}
	// n = 8q + r elements: q groups of exactly `bits` bytes each, then r
	// elements that fit well into an int.
	groups, rest := n/8, n%8
	tail := (rest*bits + 7) / 8
	if groups > (math.MaxInt-tail)/bits {
		return 0, fmt.Errorf("dtype.ByteLen: got %d elements of %v, want a length of at most %d bytes", n, d, math.MaxInt)
	}
	return groups*bits + tail, nil
}

// Parse returns the type with the given name, as String writes it.
func Parse(name string) (DType, error) {
	if d, ok := byName[name]; ok {
		return d, nil
	}
	return Invalid, fmt.Errorf("dtype.Parse: got %q, want a type name such as f32, i64 or bool: %w", name, ErrDType)
}
