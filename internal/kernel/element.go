package kernel

import (
	"fmt"
	"unsafe"
)

// Signed, Unsigned, Integer, Float and Number list the types that arithmetic is
// defined on. They name the predeclared types themselves, not their kin (~), so
// that a slice of dtype.Float16 is not taken for one of uint16.
type Signed interface {
	int8 | int16 | int32 | int64
}

type Unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

type Integer interface {
	Signed | Unsigned
}

type Float interface {
	float32 | float64
}

type Number interface {
	Integer | Float
}

// Index is the type of gather and scatter indices. A negative index counts from
// the end of its axis.
type Index interface {
	int32 | int64
}

// Word16 is an element of 16 bytes (complex128).
type Word16 [2]uint64

// Word is an element whose bytes are moved and never looked at.
type Word interface {
	uint8 | uint16 | uint32 | uint64 | Word16
}

// View reads bytes as elements of T. The caller hands over whole, aligned
// elements.
func View[T any](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b) == 0 {
		return nil
	}
	// As a number, so that the bytes of a stack buffer do not escape into the
	// panic's arguments.
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); len(b)%size != 0 || at%unsafe.Alignof(zero) != 0 {
		Bug("view: %d bytes at %#x are no whole aligned elements of %d bytes", len(b), at, size)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// BytesOf returns the bytes of s, the inverse of View.
func BytesOf[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// IsAligned reports whether View takes b as elements of T.
func IsAligned[T any](b []byte) bool {
	var zero T
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%unsafe.Alignof(zero) == 0
}

// Bug reports a fault of the caller: kernels are handed checked arguments only.
func Bug(format string, args ...any) {
	panic("BUG: kernel: " + fmt.Sprintf(format, args...))
}

// SameLen panics if a result and its operand differ in length.
func SameLen(what string, dst, src int) {
	if dst != src {
		Bug("%s: dst has %d elements, src %d", what, dst, src)
	}
}

// BadElem panics: no element has that many bytes.
func BadElem(what string, bytes int) {
	Bug("%s: no element has %d bytes", what, bytes)
}

// CeilDiv returns a/b, rounded up.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// Product returns the product of dims, 1 of none.
func Product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Largest returns the largest number of an integer type.
func Largest[T Number]() T {
	n := T(1)
	for n+n+1 > n {
		n = n + n + 1
	}
	return n
}

// Smallest returns the smallest number of an integer type.
func Smallest[T Number]() T {
	if zero := T(0); zero-1 > zero {
		return 0
	}
	return -Largest[T]() - 1
}

// Repeat sets all elements of d to v.
func Repeat[T Number](d []T, v T) {
	for i := range d {
		d[i] = v
	}
}
