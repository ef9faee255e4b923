package elementwise

import (
	"math"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
)

// CastMode holds what only the 8-bit floats need: whether numbers that are too
// large become the largest one (else infinity or NaN), and how F8E8M0 rounds.
type CastMode struct {
	Saturate bool
	Round    dtype.RoundMode
}

// CastChunk elements are converted at a time where a type has to be unpacked or
// packed.
const CastChunk = 128

// Cast converts elements [lo, hi) of src to the same elements of dst, as ONNX's
// Cast does: integers wrap; to bool is x != 0; floats round once, to nearest
// even; floats to integers drop the fraction, or are rounded to nearest even
// for integers of less than a byte. What is then out of range, which ONNX
// leaves open, saturates at 32 bits, or 64 for a wider type, and keeps its
// lower bits; below zero an unsigned type saturates as the signed one does. NaN
// is 0. Where elements of less than a byte are written, lo must start a byte.
// dst may be src exactly when both types have one size.
func Cast(v *kernel.Variant, dst []byte, to dtype.DType, src []byte, from dtype.DType, lo, hi int, mode CastMode) {
	if castHalves(v, dst, to, src, from, lo, hi) {
		return
	}
	lo += castLoop(v, dst, to, src, from, lo, hi)
	if lo < hi {
		CastElements(v, dst, to, src, from, lo, hi, mode)
	}
}

// CastElements is Cast without a Loop, so that buffers of its callers stay on
// their stacks.
func CastElements(v *kernel.Variant, dst []byte, to dtype.DType, src []byte, from dtype.DType, lo, hi int, mode CastMode) {
	if unpacked, packed := Carrier(from), Carrier(to); unpacked == from && packed == to {
		castNative(Part(dst, to, lo, hi), to, Part(src, from, lo, hi), from)
		return
	}
	if from == dtype.Bool && to == dtype.Bool {
		copyBools(dst[lo:hi], src[lo:hi])
		return
	}
	var in, near, out [CastChunk]uint64
	for ; lo < hi; lo += CastChunk {
		n := min(hi-lo, CastChunk)
		at, x := Carrier(from), kernel.BytesOf(in[:])
		if at == from {
			x = Part(src, from, lo, lo+n)
		} else {
			x = x[:n*at.Size()]
			Unpack(v, x, src, from, lo, n)
		}
		if to.IsInt() && to.Bits() < 8 && at.IsFloat() {
			rounded := kernel.BytesOf(near[:])[:n*at.Size()]
			roundEven(rounded, x, at)
			x = rounded
		}
		switch wide := Carrier(to); {
		case to == dtype.Bool:
			toBool(dst[lo:lo+n], x, at)
		case wide == to:
			castNative(Part(dst, to, lo, lo+n), to, x, at)
		default:
			y := kernel.BytesOf(out[:])[:n*wide.Size()]
			if wide == dtype.F32 {
				castOdd(kernel.View[float32](y), x, at)
			} else {
				castNative(y, wide, x, at)
			}
			pack(v, dst, to, lo, n, y, mode)
		}
	}
}

// roundEven rounds floats to integers.
func roundEven(dst, src []byte, dt dtype.DType) {
	if dt == dtype.F64 {
		y := kernel.View[float64](dst)
		for i, x := range kernel.View[float64](src) {
			y[i] = math.RoundToEven(x)
		}
		return
	}
	y := kernel.View[float32](dst)
	for i, x := range kernel.View[float32](src) {
		y[i] = float32(math.RoundToEven(float64(x)))
	}
}

// Carrier is the type that elements of dt are computed in: dt itself for the
// types that Go has.
func Carrier(dt dtype.DType) dtype.DType {
	switch dt {
	case dtype.F32, dtype.F64, dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.U16, dtype.U32, dtype.U64:
		return dt
	case dtype.I4, dtype.I2:
		return dtype.I8
	case dtype.U4, dtype.U2, dtype.Bool:
		return dtype.U8
	case dtype.F16, dtype.BF16, dtype.F8E4M3FN, dtype.F8E4M3FNUZ, dtype.F8E5M2, dtype.F8E5M2FNUZ, dtype.F8E8M0, dtype.F8E3M4,
		dtype.F8E4M3, dtype.F8E4M3B11FNUZ, dtype.F4E2M1, dtype.F6E2M3FN, dtype.F6E3M2FN:
		return dtype.F32
	}
	kernel.Bug("cast: %s cannot be converted", dt)
	return dtype.Invalid
}

// Castable reports whether Cast takes dt.
func Castable(dt dtype.DType) bool {
	switch dt {
	case dtype.Invalid, dtype.String, dtype.C64, dtype.C128, dtype.C32, dtype.BC32, dtype.Opaque:
		return false
	}
	return dt.IsValid()
}

func Part(b []byte, dt dtype.DType, lo, hi int) []byte { return b[lo*dt.Size() : hi*dt.Size()] }

func castNative(dst []byte, to dtype.DType, src []byte, from dtype.DType) {
	switch from {
	case dtype.F32:
		castFloat(dst, to, kernel.View[float32](src))
	case dtype.F64:
		castFloat(dst, to, kernel.View[float64](src))
	case dtype.I8:
		castInt(dst, to, kernel.View[int8](src))
	case dtype.I16:
		castInt(dst, to, kernel.View[int16](src))
	case dtype.I32:
		castInt(dst, to, kernel.View[int32](src))
	case dtype.I64:
		castInt(dst, to, kernel.View[int64](src))
	case dtype.U8:
		castInt(dst, to, src)
	case dtype.U16:
		castInt(dst, to, kernel.View[uint16](src))
	case dtype.U32:
		castInt(dst, to, kernel.View[uint32](src))
	case dtype.U64:
		castInt(dst, to, kernel.View[uint64](src))
	default:
		kernel.Bug("cast: from %s", from)
	}
}

func castFloat[S kernel.Float](dst []byte, to dtype.DType, src []S) {
	switch to {
	case dtype.F32:
		convert(kernel.View[float32](dst), src)
	case dtype.F64:
		convert(kernel.View[float64](dst), src)
	case dtype.I8:
		truncate(kernel.View[int8](dst), src)
	case dtype.I16:
		truncate(kernel.View[int16](dst), src)
	case dtype.I32:
		truncate(kernel.View[int32](dst), src)
	case dtype.I64:
		truncate(kernel.View[int64](dst), src)
	case dtype.U8:
		truncate(dst, src)
	case dtype.U16:
		truncate(kernel.View[uint16](dst), src)
	case dtype.U32:
		truncate(kernel.View[uint32](dst), src)
	case dtype.U64:
		truncate(kernel.View[uint64](dst), src)
	default:
		kernel.Bug("cast: to %s", to)
	}
}

func castInt[S kernel.Integer](dst []byte, to dtype.DType, src []S) {
	switch to {
	case dtype.F32:
		convert(kernel.View[float32](dst), src)
	case dtype.F64:
		convert(kernel.View[float64](dst), src)
	case dtype.I8:
		convert(kernel.View[int8](dst), src)
	case dtype.I16:
		convert(kernel.View[int16](dst), src)
	case dtype.I32:
		convert(kernel.View[int32](dst), src)
	case dtype.I64:
		convert(kernel.View[int64](dst), src)
	case dtype.U8:
		convert(dst, src)
	case dtype.U16:
		convert(kernel.View[uint16](dst), src)
	case dtype.U32:
		convert(kernel.View[uint32](dst), src)
	case dtype.U64:
		convert(kernel.View[uint64](dst), src)
	default:
		kernel.Bug("cast: to %s", to)
	}
}

func convert[D, S kernel.Number](dst []D, src []S) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = D(x)
	}
}

// truncate does not depend on Go's conversion of numbers out of range, whose
// result depends on the machine.
func truncate[D kernel.Integer, S kernel.Float](dst []D, src []S) {
	dst = dst[:len(src)]
	signed := ^D(0) < 0
	if unsafe.Sizeof(D(0)) == 8 {
		for i, x := range src {
			dst[i] = D(truncate64(float64(x), signed))
		}
		return
	}
	limit := 0x1p32 - 1
	if signed {
		limit = 0x1p31 - 1
	}
	for i, x := range src {
		v := min(max(float64(x), -0x1p31), limit)
		if v != v {
			v = 0
		}
		dst[i] = D(int64(v))
	}
}

func truncate64(x float64, signed bool) uint64 {
	switch {
	case x >= 0x1p63 && signed:
		return math.MaxInt64
	case x >= 0x1p64:
		return math.MaxUint64
	case x >= 0x1p63:
		return uint64(int64(x-0x1p63)) + 1<<63
	case x >= -0x1p63:
		return uint64(int64(x))
	case x < 0:
		return 1 << 63
	}
	return 0
}
