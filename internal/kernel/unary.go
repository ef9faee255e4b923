package kernel

import "math"

// UnaryF32 computes dst[i] = op(src[i]). dst may be src exactly.
func UnaryF32(v *Variant, op UnaryOp, dst, src []float32, a, b float32) {
	sameLen(op.String(), len(dst), len(src))
	unaryRow(v, op, dst, src, a, b)
}

// UnaryF64 is UnaryF32 in float64.
func UnaryF64(v *Variant, op UnaryOp, dst, src []float64, a, b float64) {
	sameLen(op.String(), len(dst), len(src))
	done := unaryLoop(v, op, dst, src)
	if op == Clip && a == a && b == b {
		done = clampLoop(v, dst, src, a, b)
	}
	dst, src = dst[done:], src[done:]
	f := unaryScalar[op]
	for i, x := range src {
		dst[i] = f(x, a, b)
	}
}

// UnaryInt serves the integers: Identity, Relu, Abs, Neg and Sign. Abs and Neg of the smallest number wrap to itself.
func UnaryInt[T Integer](v *Variant, op UnaryOp, dst, src []T) {
	sameLen(op.String(), len(dst), len(src))
	done := unaryLoop(v, op, dst, src)
	dst, src = dst[done:], src[done:]
	switch op {
	case Identity:
		copy(dst, src)
	case Relu:
		for i, x := range src {
			dst[i] = max(x, 0)
		}
	case Abs:
		for i, x := range src {
			if x < 0 {
				x = -x
			}
			dst[i] = x
		}
	case Neg:
		for i, x := range src {
			dst[i] = -x
		}
	case Sign:
		for i, x := range src {
			dst[i] = 0
			if x > 0 {
				dst[i] = 1
			}
			if x < 0 {
				dst[i]--
			}
		}
	default:
		Bug("%s is not defined on integers", op)
	}
}

// BitNot computes dst[i] = ^src[i]. dst may be src exactly.
func BitNot[T Integer](dst, src []T) {
	sameLen("bit_not", len(dst), len(src))
	for i, x := range src {
		dst[i] = ^x
	}
}

// Clamp computes dst[i] = min(max(src[i], lo), hi); where lo > hi that is hi. NaN stays. dst may be src exactly.
func Clamp[T Number](v *Variant, dst, src []T, lo, hi T) {
	sameLen("clamp", len(dst), len(src))
	if lo == lo && hi == hi {
		done := clampLoop(v, dst, src, lo, hi)
		dst, src = dst[done:], src[done:]
	}
	for i, x := range src {
		dst[i] = min(max(x, lo), hi)
	}
}

// unaryScalar defines every function on one float64 to full accuracy.
var unaryScalar = [numUnary]func(x, a, b float64) float64{
	Identity:        func(x, _, _ float64) float64 { return x },
	Relu:            func(x, _, _ float64) float64 { return max(x, 0) },
	LeakyRelu:       leakyRelu[float64],
	ThresholdedRelu: thresholdedRelu[float64],
	Clip:            func(x, a, b float64) float64 { return min(max(x, a), b) },
	Sigmoid:         func(x, _, _ float64) float64 { return 1 / (1 + math.Exp(-x)) },
	HardSigmoid:     func(x, a, b float64) float64 { return min(max(a*x+b, 0), 1) },
	HardSwish:       func(x, _, _ float64) float64 { return x * min(max(x/6+0.5, 0), 1) },
	Silu:            func(x, _, _ float64) float64 { return x / (1 + math.Exp(-x)) },
	Swish:           func(x, a, _ float64) float64 { return x / (1 + math.Exp(-a*x)) },
	Gelu:            func(x, _, _ float64) float64 { return x * (0.5 * math.Erfc(-x/math.Sqrt2)) },
	GeluTanh:        func(x, _, _ float64) float64 { return x / (1 + math.Exp(-2*geluScale*(x+geluCube*x*x*x))) },
	Elu: func(x, a, _ float64) float64 {
		if x < 0 {
			return a * math.Expm1(x)
		}
		return x
	},
	Selu: func(x, a, b float64) float64 {
		if x <= 0 {
			return b * (a * math.Expm1(x))
		}
		return b * x
	},
	Celu:       func(x, a, _ float64) float64 { return max(x, 0) + min(0, a*math.Expm1(x/a)) },
	Softplus:   func(x, _, _ float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
	Softsign:   func(x, _, _ float64) float64 { return x / (1 + math.Abs(x)) },
	Mish:       func(x, _, _ float64) float64 { return x * math.Tanh(math.Log1p(math.Exp(x))) },
	Shrink:     shrink[float64],
	Abs:        func(x, _, _ float64) float64 { return math.Abs(x) },
	Neg:        func(x, _, _ float64) float64 { return -x },
	Sign:       func(x, _, _ float64) float64 { return sign(x) },
	Floor:      func(x, _, _ float64) float64 { return math.Floor(x) },
	Ceil:       func(x, _, _ float64) float64 { return math.Ceil(x) },
	Round:      func(x, _, _ float64) float64 { return math.RoundToEven(x) },
	Sqrt:       func(x, _, _ float64) float64 { return math.Sqrt(x) },
	Reciprocal: func(x, _, _ float64) float64 { return 1 / x },
	Exp:        func(x, _, _ float64) float64 { return math.Exp(x) },
	Log:        func(x, _, _ float64) float64 { return math.Log(x) },
	Erf:        func(x, _, _ float64) float64 { return math.Erf(x) },
	PowScalar:  func(x, a, _ float64) float64 { return math.Pow(x, a) },
	Affine:     func(x, a, b float64) float64 { return a*x + b },
	Sin:        func(x, _, _ float64) float64 { return math.Sin(x) },
	Cos:        func(x, _, _ float64) float64 { return math.Cos(x) },
	Tan:        func(x, _, _ float64) float64 { return math.Tan(x) },
	Asin:       func(x, _, _ float64) float64 { return math.Asin(x) },
	Acos:       func(x, _, _ float64) float64 { return math.Acos(x) },
	Atan:       func(x, _, _ float64) float64 { return math.Atan(x) },
	Sinh:       func(x, _, _ float64) float64 { return math.Sinh(x) },
	Cosh:       func(x, _, _ float64) float64 { return math.Cosh(x) },
	Tanh:       func(x, _, _ float64) float64 { return math.Tanh(x) },
	Asinh:      func(x, _, _ float64) float64 { return math.Asinh(x) },
	Acosh:      func(x, _, _ float64) float64 { return math.Acosh(x) },
	Atanh:      func(x, _, _ float64) float64 { return math.Atanh(x) },
}

func leakyRelu[T Float](x, a, _ T) T {
	if x < 0 {
		return a * x
	}
	return x
}

func thresholdedRelu[T Float](x, a, _ T) T {
	if x > a {
		return x
	}
	return 0
}

func shrink[T Float](x, lambda, bias T) T {
	switch {
	case x < -lambda:
		return x + bias
	case x > lambda:
		return x - bias
	}
	return 0
}

func sign[T Float](x T) T {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	case x == 0:
		return 0
	}
	return x
}
