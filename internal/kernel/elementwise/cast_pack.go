package elementwise

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
)

func copyBools(dst, src []uint8) {
	for i, x := range src {
		dst[i] = bit(x != 0)
	}
}

func toBool(dst []uint8, src []byte, from dtype.DType) {
	switch from {
	case dtype.F32:
		notZero(dst, kernel.View[float32](src))
	case dtype.F64:
		notZero(dst, kernel.View[float64](src))
	case dtype.I8, dtype.U8:
		notZero(dst, src)
	case dtype.I16, dtype.U16:
		notZero(dst, kernel.View[uint16](src))
	case dtype.I32, dtype.U32:
		notZero(dst, kernel.View[uint32](src))
	case dtype.I64, dtype.U64:
		notZero(dst, kernel.View[uint64](src))
	default:
		kernel.Bug("cast: bool from %s", from)
	}
}

func notZero[S kernel.Number](dst []uint8, src []S) {
	for i, x := range src {
		dst[i] = bit(x != 0)
	}
}

// castOdd converts to float32 on the way to a narrower float. What does not fit
// is rounded to odd (cut off, the last bit set), so that the rounding that
// follows sees on which side of its midpoint the number lay.
func castOdd(dst []float32, src []byte, from dtype.DType) {
	switch from {
	case dtype.F64:
		for i, x := range kernel.View[float64](src) {
			dst[i] = roundOdd(x)
		}
	case dtype.I32:
		for i, x := range kernel.View[int32](src) {
			dst[i] = roundOdd(float64(x))
		}
	case dtype.U32:
		for i, x := range kernel.View[uint32](src) {
			dst[i] = roundOdd(float64(x))
		}
	case dtype.I64:
		for i, x := range kernel.View[int64](src) {
			mag := uint64(x)
			if x < 0 {
				mag = -mag
			}
			dst[i] = roundOdd(math.Copysign(cutFloat64(mag), float64(x)))
		}
	case dtype.U64:
		for i, x := range kernel.View[uint64](src) {
			dst[i] = roundOdd(cutFloat64(x))
		}
	default:
		castNative(kernel.BytesOf(dst), dtype.F32, src, from)
	}
}

func roundOdd(x float64) float32 {
	f := float32(x)
	if float64(f) == x || x != x {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(x) {
		b--
	}
	return math.Float32frombits(b | 1)
}

// cutFloat64 is x as a float64 whose last bit also stands for all bits that did
// not fit.
func cutFloat64(x uint64) float64 {
	const spare = 64 - 53
	if x>>53 == 0 {
		return float64(x)
	}
	lost := x & (1<<spare - 1)
	x >>= spare
	if lost != 0 {
		x |= 1
	}
	return float64(x) * (1 << spare)
}

// Unpack reads elements [lo, lo+n) into the type that Carrier names.
func Unpack(v *kernel.Variant, dst, src []byte, from dtype.DType, lo, n int) {
	switch from {
	case dtype.Bool:
		copyBools(dst, src[lo:lo+n])
		return
	case dtype.U4, dtype.U2:
		for i := range dst {
			dst[i] = from.PackedAt(src, lo+i)
		}
		return
	case dtype.I4, dtype.I2:
		shift := 8 - from.Bits()
		for i := range dst {
			dst[i] = uint8(int8(from.PackedAt(src, lo+i)<<shift) >> shift)
		}
		return
	}
	f := kernel.View[float32](dst)
	switch from {
	case dtype.F16, dtype.BF16:
		Widen(v, from, f, kernel.View[uint16](src), lo, 1)
	case dtype.F4E2M1:
		for i := range f {
			f[i] = dtype.Float4E2M1FromBits(from.PackedAt(src, lo+i)).Float32()
		}
	case dtype.F6E2M3FN:
		for i := range f {
			f[i] = dtype.Float6E2M3FNFromBits(from.PackedAt(src, lo+i)).Float32()
		}
	case dtype.F6E3M2FN:
		for i := range f {
			f[i] = dtype.Float6E3M2FNFromBits(from.PackedAt(src, lo+i)).Float32()
		}
	default:
		unpackF8(f, src[lo:lo+n], from)
	}
}

func unpackF8(dst []float32, src []uint8, from dtype.DType) {
	var decode func(x uint8) float32
	switch from {
	case dtype.F8E4M3FN:
		decode = func(x uint8) float32 { return dtype.Float8E4M3FN(x).Float32() }
	case dtype.F8E4M3FNUZ:
		decode = func(x uint8) float32 { return dtype.Float8E4M3FNUZ(x).Float32() }
	case dtype.F8E5M2:
		decode = func(x uint8) float32 { return dtype.Float8E5M2(x).Float32() }
	case dtype.F8E5M2FNUZ:
		decode = func(x uint8) float32 { return dtype.Float8E5M2FNUZ(x).Float32() }
	case dtype.F8E8M0:
		decode = func(x uint8) float32 { return dtype.Float8E8M0(x).Float32() }
	case dtype.F8E3M4:
		decode = func(x uint8) float32 { return dtype.Float8E3M4(x).Float32() }
	case dtype.F8E4M3:
		decode = func(x uint8) float32 { return dtype.Float8E4M3(x).Float32() }
	case dtype.F8E4M3B11FNUZ:
		decode = func(x uint8) float32 { return dtype.Float8E4M3B11FNUZ(x).Float32() }
	default:
		kernel.Bug("cast: unpack %s", from)
	}
	for i, x := range src {
		dst[i] = decode(x)
	}
}

// pack writes n elements given in the type that Carrier names from element lo
// on.
func pack(v *kernel.Variant, dst []byte, to dtype.DType, lo, n int, src []byte, mode CastMode) {
	switch to {
	case dtype.I4, dtype.I2, dtype.U4, dtype.U2:
		for i, x := range src {
			to.PackedPut(dst, lo+i, x)
		}
		return
	}
	f := kernel.View[float32](src)
	switch to {
	case dtype.F16, dtype.BF16:
		Narrow(v, to, kernel.View[uint16](dst), lo, 1, f)
	case dtype.F4E2M1:
		for i, x := range f {
			to.PackedPut(dst, lo+i, dtype.Float4E2M1FromFloat32(x).Bits())
		}
	case dtype.F6E2M3FN:
		for i, x := range f {
			to.PackedPut(dst, lo+i, dtype.Float6E2M3FNFromFloat32(x).Bits())
		}
	case dtype.F6E3M2FN:
		for i, x := range f {
			to.PackedPut(dst, lo+i, dtype.Float6E3M2FNFromFloat32(x).Bits())
		}
	default:
		packF8(dst[lo:lo+n], to, f, mode)
	}
}

func packF8(dst []uint8, to dtype.DType, src []float32, mode CastMode) {
	var encode func(x float32) uint8
	sat := mode.Saturate
	switch to {
	case dtype.F8E4M3FN:
		encode = func(x float32) uint8 { return uint8(dtype.Float8E4M3FNFromFloat32(x, sat)) }
	case dtype.F8E4M3FNUZ:
		encode = func(x float32) uint8 { return uint8(dtype.Float8E4M3FNUZFromFloat32(x, sat)) }
	case dtype.F8E5M2:
		encode = func(x float32) uint8 { return uint8(dtype.Float8E5M2FromFloat32(x, sat)) }
	case dtype.F8E5M2FNUZ:
		encode = func(x float32) uint8 { return uint8(dtype.Float8E5M2FNUZFromFloat32(x, sat)) }
	case dtype.F8E8M0:
		encode = func(x float32) uint8 { return uint8(dtype.Float8E8M0FromFloat32(x, mode.Round, sat)) }
	case dtype.F8E3M4:
		encode = func(x float32) uint8 { return uint8(dtype.Float8E3M4FromFloat32(x, sat)) }
	case dtype.F8E4M3:
		encode = func(x float32) uint8 { return uint8(dtype.Float8E4M3FromFloat32(x, sat)) }
	case dtype.F8E4M3B11FNUZ:
		encode = func(x float32) uint8 { return uint8(dtype.Float8E4M3B11FNUZFromFloat32(x, sat)) }
	default:
		kernel.Bug("cast: pack %s", to)
	}
	for i, x := range src {
		dst[i] = encode(x)
	}
}
