package dtype

import "math"

// Float16 is the IEEE 754 binary16 format: 1 sign bit, 5 exponent bits, 10
// mantissa bits.
type Float16 uint16

// BFloat16 is the upper half of a float32: 1 sign bit, 8 exponent bits, 7
// mantissa bits.
type BFloat16 uint16

// Float16FromFloat32 rounds to nearest, ties to even. Magnitudes of 65520 and
// more become infinite, subnormals are exact, a NaN keeps its sign and the
// upper bits of its payload and becomes quiet: bit for bit as the conversion
// instructions of amd64 and arm64 do.
func Float16FromFloat32(f float32) Float16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	mag := b & 0x7fff_ffff
	switch {
	case mag > 0x7f80_0000: // NaN
		return Float16(sign | 0x7e00 | uint16(mag>>13&0x03ff))
	case mag >= 0x4780_0000: // 2^16 and up
		return Float16(sign | 0x7c00)
	case mag < 0x3880_0000: // below 2^-14: subnormal in f16
		// Adding 0.5 makes the unit in the last place 2^-24, that of an f16
		// subnormal, so the addition itself rounds as wanted.
		sum := math.Float32frombits(mag) + 0.5
		return Float16(sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5)))
	}
	const rebias = (127 - 15) << 23
	// Half a unit less one, plus the last kept bit: the carry rounds to nearest
	// even, up into the exponent and to infinity.
	return Float16(sign | uint16((mag-rebias+0x0fff+mag>>13&1)>>13))
}

// Float32 is exact. A signalling NaN becomes quiet.
func (h Float16) Float32() float32 {
	sign := uint32(h&0x8000) << 16
	exp, man := uint32(h>>10&0x1f), uint32(h&0x03ff)
	switch exp {
	case 0:
		return math.Float32frombits(math.Float32bits(float32(man)*0x1p-24) | sign)
	case 0x1f:
		if man != 0 {
			man |= 0x0200
		}
		return math.Float32frombits(sign | 0x7f80_0000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | man<<13)
}

// BFloat16FromFloat32 rounds to nearest, ties to even. Magnitudes that round
// past the largest number become infinite, subnormals are kept, a NaN keeps its
// sign and the upper bits of its payload and becomes quiet.
func BFloat16FromFloat32(f float32) BFloat16 {
	b := math.Float32bits(f)
	if b&0x7fff_ffff > 0x7f80_0000 {
		return BFloat16(b>>16 | 0x0040)
	}
	return BFloat16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 is exact, and keeps the bits of a NaN.
func (h BFloat16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// RoundToOdd drops the bits of f that a float32 cannot hold and, if any of them
// was set, sets the lowest bit that is kept. Rounding the result to any
// narrower format equals f rounded directly; an ordinary conversion first would
// round twice and can be wrong in the last place:
// Float16FromFloat32(RoundToOdd(f)) is right, Float16FromFloat32(float32(f)) is
// not always.
func RoundToOdd(f float64) float32 {
	r := float32(f)
	if float64(r) == f || r != r {
		return r
	}
	b := math.Float32bits(r)
	if math.Abs(float64(r)) > math.Abs(f) {
		b-- // the conversion went away from zero: step back, for a truncated magnitude
	}
	return math.Float32frombits(b | 1)
}
