package ptx

import (
	"math"
	"math/big"
	"math/bits"
)

// rounding is the direction in which an inexact result is rounded.
type rounding uint8

const (
	nearest rounding = iota // ties to even
	zero
	down
	up
)

var roundings = map[string]rounding{"rn": nearest, "rz": zero, "rm": down, "rp": up,
	"rni": nearest, "rzi": zero, "rmi": down, "rpi": up}

// format is a binary floating-point format of IEEE 754's kind.
type format struct{ mantissa, exponent int }

var formats = map[typ]format{f16: {10, 5}, bf16: {7, 8}, f32: {23, 8}, f64: {52, 11}}

func (f format) bias() int        { return 1<<(f.exponent-1) - 1 }
func (f format) infinity() uint64 { return (1<<f.exponent - 1) << f.mantissa }
func (f format) sign(neg bool) uint64 {
	if neg {
		return 1 << (f.mantissa + f.exponent)
	}
	return 0
}

// nan is the NaN that a GPU makes. That of f64 is Go's, as PTX leaves it open.
func (f format) nan() uint64 {
	if f.mantissa == 52 {
		return math.Float64bits(math.NaN())
	}
	return f.sign(true) - 1
}

// round returns the bits of the number that is mag times 2 to the exp, or
// slightly more where sticky is set, with the sign.
func (f format) round(neg bool, mag uint64, exp int, sticky bool, mode rounding) uint64 {
	if mag == 0 {
		return f.sign(neg)
	}
	shift := bits.LeadingZeros64(mag)
	mag <<= shift
	e := exp - shift + 63 // mag is a fraction from 1 to 2, times 2 to the e
	drop := 63 - f.mantissa
	if low := 1 - f.bias(); e < low {
		drop += min(low-e, 66)
	}
	var kept, lost uint64 // lost has the bits that are dropped at its upper end
	switch {
	case drop < 64:
		kept, lost = mag>>drop, mag<<(64-drop)
	case drop == 64:
		lost = mag
	default:
		lost, sticky = mag>>min(drop-64, 63), true
	}
	kept += increment(kept, lost, sticky, neg, mode)
	if e >= 1-f.bias() {
		kept += uint64(e+f.bias()-1) << f.mantissa // the leading bit adds 1 to the exponent
	}
	if e > f.bias() || kept >= f.infinity() {
		kept = f.infinity()
		if mode == zero || mode == down && !neg || mode == up && neg {
			kept-- // the largest number
		}
	}
	return f.sign(neg) | kept
}

// increment is 1 where the magnitude is rounded up.
func increment(kept, lost uint64, sticky, neg bool, mode rounding) uint64 {
	if lost == 0 && !sticky {
		return 0
	}
	const half = 1 << 63
	away := false
	switch mode {
	case nearest:
		away = lost > half || lost == half && (sticky || kept&1 == 1)
	case down:
		away = neg
	case up:
		away = !neg
	}
	if away {
		return 1
	}
	return 0
}

// fromFloat rounds x, which may be infinite, zero or NaN.
func (f format) fromFloat(x float64, mode rounding) uint64 {
	neg := math.Signbit(x)
	switch {
	case x != x:
		return f.nan()
	case math.IsInf(x, 0):
		return f.sign(neg) | f.infinity()
	}
	frac, exp := math.Frexp(math.Abs(x))
	return f.round(neg, uint64(frac*0x1p53), exp-53, false, mode)
}

// toFloat is exact.
func (f format) toFloat(b uint64) float64 {
	neg := b&f.sign(true) != 0
	b &= f.sign(true) - 1
	e := int(b >> f.mantissa)
	m := b & (1<<f.mantissa - 1)
	var x float64
	switch {
	case e == 1<<f.exponent-1 && m != 0:
		return math.NaN()
	case e == 1<<f.exponent-1:
		x = math.Inf(1)
	case e == 0:
		x = math.Ldexp(float64(m), 1-f.bias()-f.mantissa)
	default:
		x = math.Ldexp(float64(m|1<<f.mantissa), e-f.bias()-f.mantissa)
	}
	if neg {
		x = -x
	}
	return x
}

// fromBig rounds x, which is finite and not zero, once.
func (f format) fromBig(x *big.Float, mode rounding) uint64 {
	frac := new(big.Float)
	exp := x.MantExp(frac)
	neg := x.Signbit()
	frac.SetMantExp(frac.Abs(frac), 64)
	mag, acc := frac.Uint64()
	return f.round(neg, mag, exp-64, acc != big.Exact, mode)
}

// exactBits hold the sum of a product of two f64 and a third, whatever their
// exponents.
const exactBits = 4400

func exact(x float64) *big.Float { return new(big.Float).SetPrec(exactBits).SetFloat64(x) }

// fma returns a*b+c, rounded once, for finite operands and in any mode. A zero
// result that is not the sum of two zeros of one sign is negative only when
// rounding down.
func (f format) fma(a, b, c float64, mode rounding) uint64 {
	product := exact(a)
	product.Mul(product, exact(b))
	sum := new(big.Float).SetPrec(exactBits).Add(product, exact(c))
	if sum.Sign() != 0 {
		return f.fromBig(sum, mode)
	}
	productNeg, cNeg := math.Signbit(a) != math.Signbit(b), math.Signbit(c)
	if product.Sign() == 0 && c == 0 && productNeg == cNeg {
		return f.sign(cNeg)
	}
	return f.sign(mode == down)
}

// quotient returns a/b for finite operands that are not zero. A quotient is at
// least 2^-110 of itself away from every number that it is not equal to and
// where rounding changes its mind, so that 200 bits decide.
func (f format) quotient(a, b float64, mode rounding) uint64 {
	q := new(big.Float).SetPrec(200).SetMode(big.ToZero)
	return f.fromBig(q.Quo(big.NewFloat(a), big.NewFloat(b)), mode)
}

// root returns the square root of a positive finite number; 200 bits decide as
// they do for a quotient.
func (f format) root(a float64, mode rounding) uint64 {
	return f.fromBig(new(big.Float).SetPrec(200).Sqrt(big.NewFloat(a)), mode)
}
