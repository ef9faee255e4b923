package elementwise

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// UnaryF32 computes dst[i] = op(src[i]). dst may be src exactly.
func UnaryF32(v *kernel.Variant, op kernel.UnaryOp, dst, src []float32, a, b float32) {
	kernel.SameLen(op.String(), len(dst), len(src))
	UnaryRow(v, op, dst, src, a, b)
}

// UnaryF64 is UnaryF32 in float64.
func UnaryF64(v *kernel.Variant, op kernel.UnaryOp, dst, src []float64, a, b float64) {
	kernel.SameLen(op.String(), len(dst), len(src))
	done := unaryLoop(v, op, dst, src)
	if op == kernel.Clip && a == a && b == b {
		done = clampLoop(v, dst, src, a, b)
	}
	dst, src = dst[done:], src[done:]
	f := unaryScalar[op]
	for i, x := range src {
		dst[i] = f(x, a, b)
	}
}

// UnaryInt serves the integers: Identity, Relu, Abs, Neg and Sign. Abs and Neg of the smallest number wrap to itself.
func UnaryInt[T kernel.Integer](v *kernel.Variant, op kernel.UnaryOp, dst, src []T) {
	kernel.SameLen(op.String(), len(dst), len(src))
	done := unaryLoop(v, op, dst, src)
	dst, src = dst[done:], src[done:]
	switch op {
	case kernel.Identity:
		copy(dst, src)
	case kernel.Relu:
		for i, x := range src {
			dst[i] = max(x, 0)
		}
	case kernel.Abs:
		for i, x := range src {
			if x < 0 {
				x = -x
			}
			dst[i] = x
		}
	case kernel.Neg:
		for i, x := range src {
			dst[i] = -x
		}
	case kernel.Sign:
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
		kernel.Bug("%s is not defined on integers", op)
	}
}

// BitNot computes dst[i] = ^src[i]. dst may be src exactly.
func BitNot[T kernel.Integer](dst, src []T) {
	kernel.SameLen("bit_not", len(dst), len(src))
	for i, x := range src {
		dst[i] = ^x
	}
}

// Clamp computes dst[i] = min(max(src[i], lo), hi); where lo > hi that is hi. NaN stays. dst may be src exactly.
func Clamp[T kernel.Number](v *kernel.Variant, dst, src []T, lo, hi T) {
	kernel.SameLen("clamp", len(dst), len(src))
	if lo == lo && hi == hi {
		done := clampLoop(v, dst, src, lo, hi)
		dst, src = dst[done:], src[done:]
	}
	for i, x := range src {
		dst[i] = min(max(x, lo), hi)
	}
}

// unaryScalar defines every function on one float64 to full accuracy.
var unaryScalar = [kernel.NumUnary]func(x, a, b float64) float64{
	kernel.Identity:        func(x, _, _ float64) float64 { return x },
	kernel.Relu:            func(x, _, _ float64) float64 { return max(x, 0) },
	kernel.LeakyRelu:       leakyRelu[float64],
	kernel.ThresholdedRelu: thresholdedRelu[float64],
	kernel.Clip:            func(x, a, b float64) float64 { return min(max(x, a), b) },
	kernel.Sigmoid:         func(x, _, _ float64) float64 { return 1 / (1 + math.Exp(-x)) },
	kernel.HardSigmoid:     func(x, a, b float64) float64 { return min(max(a*x+b, 0), 1) },
	kernel.HardSwish:       func(x, _, _ float64) float64 { return x * min(max(x/6+0.5, 0), 1) },
	kernel.Silu:            func(x, _, _ float64) float64 { return x / (1 + math.Exp(-x)) },
	kernel.Swish:           func(x, a, _ float64) float64 { return x / (1 + math.Exp(-a*x)) },
	kernel.Gelu:            func(x, _, _ float64) float64 { return x * (0.5 * math.Erfc(-x/math.Sqrt2)) },
	kernel.GeluTanh:        func(x, _, _ float64) float64 { return x / (1 + math.Exp(-2*geluScale*(x+geluCube*x*x*x))) },
	kernel.Elu: func(x, a, _ float64) float64 {
		if x < 0 {
			return a * math.Expm1(x)
		}
		return x
	},
	kernel.Selu: func(x, a, b float64) float64 {
		if x <= 0 {
			return b * (a * math.Expm1(x))
		}
		return b * x
	},
	kernel.Celu:       func(x, a, _ float64) float64 { return max(x, 0) + min(0, a*math.Expm1(x/a)) },
	kernel.Softplus:   func(x, _, _ float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
	kernel.Softsign:   func(x, _, _ float64) float64 { return x / (1 + math.Abs(x)) },
	kernel.Mish:       func(x, _, _ float64) float64 { return x * math.Tanh(math.Log1p(math.Exp(x))) },
	kernel.Shrink:     shrink[float64],
	kernel.Abs:        func(x, _, _ float64) float64 { return math.Abs(x) },
	kernel.Neg:        func(x, _, _ float64) float64 { return -x },
	kernel.Sign:       func(x, _, _ float64) float64 { return sign(x) },
	kernel.Floor:      func(x, _, _ float64) float64 { return math.Floor(x) },
	kernel.Ceil:       func(x, _, _ float64) float64 { return math.Ceil(x) },
	kernel.Round:      func(x, _, _ float64) float64 { return math.RoundToEven(x) },
	kernel.Sqrt:       func(x, _, _ float64) float64 { return math.Sqrt(x) },
	kernel.Reciprocal: func(x, _, _ float64) float64 { return 1 / x },
	kernel.Exp:        func(x, _, _ float64) float64 { return math.Exp(x) },
	kernel.Log:        func(x, _, _ float64) float64 { return math.Log(x) },
	kernel.Erf:        func(x, _, _ float64) float64 { return math.Erf(x) },
	kernel.PowScalar:  func(x, a, _ float64) float64 { return math.Pow(x, a) },
	kernel.Affine:     func(x, a, b float64) float64 { return a*x + b },
	kernel.Sin:        func(x, _, _ float64) float64 { return math.Sin(x) },
	kernel.Cos:        func(x, _, _ float64) float64 { return math.Cos(x) },
	kernel.Tan:        func(x, _, _ float64) float64 { return math.Tan(x) },
	kernel.Asin:       func(x, _, _ float64) float64 { return math.Asin(x) },
	kernel.Acos:       func(x, _, _ float64) float64 { return math.Acos(x) },
	kernel.Atan:       func(x, _, _ float64) float64 { return math.Atan(x) },
	kernel.Sinh:       func(x, _, _ float64) float64 { return math.Sinh(x) },
	kernel.Cosh:       func(x, _, _ float64) float64 { return math.Cosh(x) },
	kernel.Tanh:       func(x, _, _ float64) float64 { return math.Tanh(x) },
	kernel.Asinh:      func(x, _, _ float64) float64 { return math.Asinh(x) },
	kernel.Acosh:      func(x, _, _ float64) float64 { return math.Acosh(x) },
	kernel.Atanh:      func(x, _, _ float64) float64 { return math.Atanh(x) },
}

func leakyRelu[T kernel.Float](x, a, _ T) T {
	if x < 0 {
		return a * x
	}
	return x
}

func thresholdedRelu[T kernel.Float](x, a, _ T) T {
	if x > a {
		return x
	}
	return 0
}

func shrink[T kernel.Float](x, lambda, bias T) T {
	switch {
	case x < -lambda:
		return x + bias
	case x > lambda:
		return x - bias
	}
	return 0
}

func sign[T kernel.Float](x T) T {
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
