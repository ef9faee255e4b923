package elementwise

import "math"

// The transcendental functions of portable float32 kernels are computed in
// float64: on the scalar units that costs the same, and a polynomial that is
// good to 1e-9 then rounds to the nearest float32 but for one case in fifty.
// Range ends, NaN and subnormal results come out of the final conversion, with
// no code of their own.

const (
	log2e     = 1 / math.Ln2
	roundBias = 0x1.8p52 // adding and subtracting it rounds to an integer
	expMax    = 709      // beyond it 2^n has no float64; every float32 function here has long reached its limit
)

// expParts writes exp(x) as 2^n * (1+m): scale is 2^n. x must lie in
// [-expMax+1, expMax].
func expParts(x float64) (scale, m float64) {
	n := (x*log2e + roundBias) - roundBias
	r := x - n*math.Ln2
	// Taylor series of (exp(r)-1) on |r| <= ln2/2: the first term left out is
	// below 3e-10 of the result.
	p := r * (1.0/6 + r*(1.0/24+r*(1.0/120+r*(1.0/720+r*(1.0/5040+r*(1.0/40320))))))
	m = r + r*r*(0.5+p)
	return math.Float64frombits(uint64(int64(n)+1023) << 52), m
}

func exp64(x float64) float64 {
	if x > expMax {
		return math.Inf(1)
	}
	if x < -expMax+1 {
		return 0
	}
	s, m := expParts(x)
	return s + s*m
}

// expm1 keeps its relative accuracy near 0: for small x the scale is 1 and
// nothing cancels.
func expm1(x float64) float64 {
	if x > expMax {
		return math.Inf(1)
	}
	if x < -60 {
		return -1
	}
	s, m := expParts(x)
	return s*m + (s - 1)
}

func tanh64(x float64) float64 {
	if math.Abs(x) > 20 {
		return math.Copysign(1, x)
	}
	e := expm1(2 * math.Abs(x))
	return math.Copysign(e/(e+2), x)
}

// erfc64 is 1-erf(z) for z >= 0, relatively accurate where it is tiny:
// exp(-z*z) times a polynomial in 1/(1+z/2), fitted at Chebyshev nodes for z in
// [0, 10.4] to 9e-10; beyond that the result is 0 in float32.
func erfc64(z float64) float64 {
	if z > 10.4 {
		return 0
	}
	t := 1 / (1 + 0.5*z)
	p := -0.03195434353644973
	p = p*t + 0.23713428373375847
	p = p*t - 0.752550663413937
	p = p*t + 1.2940798173831172
	p = p*t - 1.2481344237028051
	p = p*t + 0.6595103194976087
	p = p*t - 0.2984544093074751
	p = p*t + 0.1673293665803194
	p = p*t + 0.1601292576973674
	p = p*t + 0.24886535896530138
	p = p*t + 0.2819458232676612
	p = p*t + 0.28209961277122847
	return t * p * exp64(-z*z)
}

func erf64(x float64) float64 {
	z := math.Abs(x)
	if z > 0.5 {
		return math.Copysign(1-erfc64(z), x)
	}
	// Taylor series: 1-erfc would lose small results.
	t := z * z
	p := 1.0/685440 - t*(1.0/6894720)
	p = 1.0/9360 - t*(1.0/75600-t*p)
	p = 1.0/10 - t*(1.0/42-t*(1.0/216-t*(1.0/1320-t*p)))
	return x * (2 / math.SqrtPi) * (1 - t*(1.0/3-t*p))
}

// timesPhi64 is x times the distribution function of the normal distribution,
// and its limit 0 at negative infinity; 1+erf would cancel for negative x.
func timesPhi64(x float64) float64 {
	e := 0.5 * erfc64(math.Abs(x)*(1/math.Sqrt2))
	if x > 0 {
		return x * (1 - e)
	}
	return max(x, -math.MaxFloat64) * e
}

func softplus64(x float64) float64 { return max(x, 0) + math.Log1p(exp64(-math.Abs(x))) }

// Exp32 is exp(x). The loops of other functions are generated in this form: see
// internal/kernel/gen.
func Exp32(x float32) float32 { return exp32(x) }

// Functions of formulas that package math does not have, to full accuracy.

func exactSoftplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func exactTimesPhi(x float64) float64 {
	return max(x, -math.MaxFloat64) * (0.5 * math.Erfc(-x/math.Sqrt2))
}
