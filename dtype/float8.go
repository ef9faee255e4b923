package dtype

import "math"

// Float8E4M3FN has 4 exponent bits (bias 7), 3 mantissa bits, no infinity, and
// NaN at S.1111.111; its largest number is 448.
type Float8E4M3FN uint8

// Float8E4M3FNUZ has 4 exponent bits (bias 8), 3 mantissa bits, no infinity, no
// negative zero, and its NaN at 0x80; its largest number is 240.
type Float8E4M3FNUZ uint8

// Float8E5M2 has 5 exponent bits (bias 15), 2 mantissa bits, and infinities and
// NaNs as IEEE 754 has them; its largest number is 57344.
type Float8E5M2 uint8

// Float8E5M2FNUZ has 5 exponent bits (bias 16), 2 mantissa bits, no infinity,
// no negative zero, and its NaN at 0x80; its largest number is 57344.
type Float8E5M2FNUZ uint8

// Float8E3M4 has 3 exponent bits (bias 3), 4 mantissa bits, and infinities and
// NaNs as IEEE 754 has them; its largest number is 15.5.
type Float8E3M4 uint8

// Float8E4M3 has 4 exponent bits (bias 7), 3 mantissa bits, and infinities and
// NaNs as IEEE 754 has them; its largest number is 240.
type Float8E4M3 uint8

// Float8E4M3B11FNUZ has 4 exponent bits (bias 11), 3 mantissa bits, no
// infinity, no negative zero, and its NaN at 0x80; its largest number is 30.
type Float8E4M3B11FNUZ uint8

var (
	decodedE4M3FN   = miniE4M3FN.decoded()
	decodedE4M3FNUZ = miniE4M3FNUZ.decoded()
	decodedE5M2     = miniE5M2.decoded()
	decodedE5M2FNUZ = miniE5M2FNUZ.decoded()
	decodedE3M4     = miniE3M4.decoded()
	decodedE4M3     = miniE4M3.decoded()
	decodedE4M3B11  = miniE4M3B11.decoded()
)

// Float8E4M3FNFromFloat32 rounds to nearest, ties to even; the package comment
// has the table of special values.
func Float8E4M3FNFromFloat32(f float32, saturate bool) Float8E4M3FN {
	return Float8E4M3FN(miniE4M3FN.encode(f, saturate))
}

// Float32 is exact.
func (x Float8E4M3FN) Float32() float32 { return decodedE4M3FN[x] }

// Float8E4M3FNUZFromFloat32 rounds to nearest, ties to even; the package
// comment has the table of special values.
func Float8E4M3FNUZFromFloat32(f float32, saturate bool) Float8E4M3FNUZ {
	return Float8E4M3FNUZ(miniE4M3FNUZ.encode(f, saturate))
}

// Float32 is exact.
func (x Float8E4M3FNUZ) Float32() float32 { return decodedE4M3FNUZ[x] }

// Float8E5M2FromFloat32 rounds to nearest, ties to even; the package comment
// has the table of special values.
func Float8E5M2FromFloat32(f float32, saturate bool) Float8E5M2 {
	return Float8E5M2(miniE5M2.encode(f, saturate))
}

// Float32 is exact.
func (x Float8E5M2) Float32() float32 { return decodedE5M2[x] }

// Float8E5M2FNUZFromFloat32 rounds to nearest, ties to even; the package
// comment has the table of special values.
func Float8E5M2FNUZFromFloat32(f float32, saturate bool) Float8E5M2FNUZ {
	return Float8E5M2FNUZ(miniE5M2FNUZ.encode(f, saturate))
}

// Float32 is exact.
func (x Float8E5M2FNUZ) Float32() float32 { return decodedE5M2FNUZ[x] }

// Float8E3M4FromFloat32 rounds to nearest, ties to even; the package comment
// has the table of special values.
func Float8E3M4FromFloat32(f float32, saturate bool) Float8E3M4 {
	return Float8E3M4(miniE3M4.encode(f, saturate))
}

// Float32 is exact.
func (x Float8E3M4) Float32() float32 { return decodedE3M4[x] }

// Float8E4M3FromFloat32 rounds to nearest, ties to even; the package comment
// has the table of special values.
func Float8E4M3FromFloat32(f float32, saturate bool) Float8E4M3 {
	return Float8E4M3(miniE4M3.encode(f, saturate))
}

// Float32 is exact.
func (x Float8E4M3) Float32() float32 { return decodedE4M3[x] }

// Float8E4M3B11FNUZFromFloat32 rounds to nearest, ties to even; the package
// comment has the table of special values.
func Float8E4M3B11FNUZFromFloat32(f float32, saturate bool) Float8E4M3B11FNUZ {
	return Float8E4M3B11FNUZ(miniE4M3B11.encode(f, saturate))
}

// Float32 is exact.
func (x Float8E4M3B11FNUZ) Float32() float32 { return decodedE4M3B11[x] }

// Float8E8M0 is the power of two 2^(value-127), from 2^-127 to 2^127; 0xff is
// NaN. It has no zero, no sign and no infinity: it is the scale of a block of
// smaller numbers.
type Float8E8M0 uint8

// RoundMode is the direction in which a number between two powers of two goes.
// Its zero value is ONNX's default.
type RoundMode uint8

const (
	RoundUp      RoundMode = iota // to the larger power
	RoundDown                     // to the smaller power
	RoundNearest                  // to the nearer power; halfway goes up
)

const nanE8M0 = 0xff

// Float8E8M0FromFloat32 follows ONNX's Cast. What lies outside 2^-127 to 2^127,
// zero and infinity included, becomes the nearer end (saturate) or NaN. NaN
// stays NaN, and a number below zero, for which ONNX leaves the result open,
// becomes NaN.
func Float8E8M0FromFloat32(f float32, mode RoundMode, saturate bool) Float8E8M0 {
	const smallest, largest = 0x1p-127, 0x1p127
	switch {
	case !(f >= 0):
		return nanE8M0
	case f < smallest && saturate:
		return 0
	case f > largest && saturate:
		return 0xfe
	case f < smallest || f > largest:
		return nanE8M0
	}
	b := math.Float32bits(f)
	exp, fraction, half := b>>23, b&0x007f_ffff, uint32(1)<<22
	if exp == 0 {
		// 2^-127 is itself a subnormal float32: the bit below the exponent
		// stands for it, and the bits below that one are the fraction.
		fraction, half = b&0x003f_ffff, 1<<21
	}
	if mode == RoundUp && fraction > 0 || mode == RoundNearest && fraction >= half {
		exp++
	}
	return Float8E8M0(exp)
}

// Float32 is exact.
func (x Float8E8M0) Float32() float32 {
	switch x {
	case 0:
		return 0x1p-127
	case nanE8M0:
		return float32(math.NaN())
	}
	return math.Float32frombits(uint32(x) << 23)
}
