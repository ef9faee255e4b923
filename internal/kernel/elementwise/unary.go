package elementwise

import "github.com/tenure-go/tenure/internal/kernel"

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

// UnaryInt serves the integers: Identity, Relu, Abs, Neg and Sign. Abs and Neg
// of the smallest number wrap to itself.
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

// Clamp computes dst[i] = min(max(src[i], lo), hi); where lo > hi that is hi.
// NaN stays. dst may be src exactly.
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
