package ptx

import (
	"math"
	"math/bits"
	"unsafe"
)

type integer interface {
	uint16 | uint32 | uint64 | int16 | int32 | int64
}

// put returns a value as a register of its size holds it.
func put[T integer](v T) uint64 {
	switch unsafe.Sizeof(v) {
	case 2:
		return uint64(uint16(v))
	case 4:
		return uint64(uint32(v))
	}
	return uint64(v)
}

type (
	oneFunc   = func(a uint64) uint64
	twoFunc   = func(a, b uint64) uint64
	threeFunc = func(a, b, c uint64) uint64
	testFunc  = func(a, b uint64) bool
)

// sizes lists an operation that does not depend on the sign.
func sizes[F any](of16, of32, of64 F) map[typ]F {
	return map[typ]F{b16: of16, u16: of16, s16: of16, b32: of32, u32: of32, s32: of32, b64: of64, u64: of64, s64: of64}
}

// signs lists one that does.
func signs[F any](ofU16, ofU32, ofU64, ofS16, ofS32, ofS64 F) map[typ]F {
	return map[typ]F{b16: ofU16, u16: ofU16, s16: ofS16, b32: ofU32, u32: ofU32, s32: ofS32, b64: ofU64, u64: ofU64, s64: ofS64}
}

func addInt[T integer](a, b uint64) uint64       { return put(T(a) + T(b)) }
func subInt[T integer](a, b uint64) uint64       { return put(T(a) - T(b)) }
func mulInt[T integer](a, b uint64) uint64       { return put(T(a) * T(b)) }
func madInt[T integer](a, b, c uint64) uint64    { return put(T(a)*T(b) + T(c)) }
func divInt[T integer](a, b uint64) uint64       { return put(T(a) / T(b)) }
func remInt[T integer](a, b uint64) uint64       { return put(T(a) % T(b)) }
func minInt[T integer](a, b uint64) uint64       { return put(min(T(a), T(b))) }
func maxInt[T integer](a, b uint64) uint64       { return put(max(T(a), T(b))) }
func negInt[T integer](a uint64) uint64          { return put(-T(a)) }
func notInt[T integer](a uint64) uint64          { return put(^T(a)) }
func shlInt[T integer](a, b uint64) uint64       { return put(T(a) << b) } // Go gives 0 where b is too large
func shrInt[T integer](a, b uint64) uint64       { return put(T(a) >> b) } // and fills with the sign
func equal[T integer](a, b uint64) bool          { return T(a) == T(b) }
func unequal[T integer](a, b uint64) bool        { return T(a) != T(b) }
func less[T integer](a, b uint64) bool           { return T(a) < T(b) }
func lessOrEqual[T integer](a, b uint64) bool    { return T(a) <= T(b) }
func greater[T integer](a, b uint64) bool        { return T(a) > T(b) }
func greaterOrEqual[T integer](a, b uint64) bool { return T(a) >= T(b) }

func absInt[T integer](a uint64) uint64 {
	if T(a) < 0 {
		return put(-T(a))
	}
	return a
}

// wideMul multiplies to twice the size.
func wideMul[T, Wide integer](a, b uint64) uint64 { return put(Wide(T(a)) * Wide(T(b))) }

func wideMad[T, Wide integer](a, b, c uint64) uint64 {
	return put(Wide(T(a))*Wide(T(b)) + Wide(c))
}

// highMul returns the upper half of the product.
func highMul[T integer](a, b uint64) uint64 {
	x, y := T(a), T(b)
	if unsafe.Sizeof(x) < 8 {
		return put(T(int64(x) * int64(y) >> (8 * unsafe.Sizeof(x)))) // the product has at most 64 bits, whose sign does not matter
	}
	h, _ := bits.Mul64(uint64(x), uint64(y))
	if x < 0 {
		h -= uint64(y)
	}
	if y < 0 {
		h -= uint64(x)
	}
	return h
}

func highMad[T integer](a, b, c uint64) uint64 { return put(T(highMul[T](a, b)) + T(c)) }

func addSaturated(a, b uint64) uint64 { return clampInt32(int64(int32(a)) + int64(int32(b))) }
func subSaturated(a, b uint64) uint64 { return clampInt32(int64(int32(a)) - int64(int32(b))) }

func clampInt32(v int64) uint64 {
	return put(int32(min(max(v, math.MinInt32), math.MaxInt32)))
}

func andBits(a, b uint64) uint64 { return a & b }
func orBits(a, b uint64) uint64  { return a | b }
func xorBits(a, b uint64) uint64 { return a ^ b }

// extract is bfe: the bits of a from position b, c of them, or fewer where a
// ends.
func extract[T integer](a, b, c uint64) uint64 {
	width := uint64(8 * unsafe.Sizeof(T(0)))
	pos, n := b&0xff, c&0xff
	if n == 0 {
		return 0
	}
	if pos >= width {
		if ^T(0) > 0 {
			return 0
		}
		return put(T(a) >> (width - 1)) // the sign
	}
	n = min(n, width-pos)
	v := T(a) << (width - pos - n)
	return put(v >> (width - n))
}

// insert is bfi: b with the lower d bits of a at position c.
func insert[T integer](a, b, c, d uint64) uint64 {
	width := uint64(8 * unsafe.Sizeof(T(0)))
	pos, n := c&0xff, d&0xff
	if pos >= width || n == 0 {
		return b
	}
	n = min(n, width-pos)
	m := mask(8) >> (64 - n) << pos
	return b&^m | a<<pos&m
}

// permute is prmt in its default mode.
func permute(a, b, c uint64) uint64 {
	source := b<<32 | a
	var r uint64
	for i := range 4 {
		sel := c >> (4 * i) & 0xf
		v := source >> (8 * (sel & 7)) & 0xff
		if sel&8 != 0 {
			v = uint64(uint8(int8(v) >> 7))
		}
		r |= v << (8 * i)
	}
	return r
}

func ones(a uint64) uint64           { return uint64(bits.OnesCount64(a)) }
func leadingZeros32(a uint64) uint64 { return uint64(bits.LeadingZeros32(uint32(a))) }
func leadingZeros64(a uint64) uint64 { return uint64(bits.LeadingZeros64(a)) }
func reverse32(a uint64) uint64      { return uint64(bits.Reverse32(uint32(a))) }
func reverse64(a uint64) uint64      { return bits.Reverse64(a) }
