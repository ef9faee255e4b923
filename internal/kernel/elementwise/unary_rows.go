package elementwise

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// UnaryRow computes a float32 function over a row. Loops over vectors are for
// parameters that are numbers.
func UnaryRow(v *kernel.Variant, op kernel.UnaryOp, dst, src []float32, a, b float32) {
	r := &v.Rows
	if r.Bytes == 0 {
		portableUnaryRows[op](dst, src, a, b)
		return
	}
	if l := &r.Unary[op]; l.Short != nil {
		l.Run(dst, src)
		return
	}
	if l := &r.UnaryS[op]; l.Short != nil && a == a {
		l.Run(dst, src, a)
		return
	}
	if l := &r.UnaryST[op]; l.Short != nil && a == a && b == b {
		l.Run(dst, src, a, b)
		return
	}
	if op == kernel.PowScalar {
		powRow(v, dst, src, a)
		return
	}
	portableUnaryRows[op](dst, src, a, b)
}

// powRow computes x^a. Those that are made of square roots are not what these
// are for numbers that are not positive, so that a piece that has some goes
// number by number.
func powRow(v *kernel.Variant, dst, src []float32, a float32) {
	r := &v.Rows
	if r.Cube == nil {
		powScalarRow(dst, src, a, 0)
		return
	}
	switch a {
	case 2:
		r.BinaryVV[kernel.Mul].Short.Run(dst, src, src)
	case 3:
		r.Cube.Run(dst, src)
	case -1:
		r.BinarySV[kernel.Div].Short.Run(dst, src, 1)
	case 0.5:
		rootRow(v, r.Unary[kernel.Sqrt].Short, dst, src, func(r float32) float32 { return r }, a)
	case 0.75: // of local response normalisations
		rootRow(v, r.ThreeQuarters, dst, src, func(r float32) float32 { return r * root32(r) }, a)
	default:
		powScalarRow(dst, src, a, 0)
	}
}

// rootRow computes such powers; after makes the power from the root, to the
// same bits as f does.
func rootRow(v *kernel.Variant, f kernel.RowFunc, dst, src []float32, after func(r float32) float32, a float32) {
	dst = dst[:len(src)]
	for len(src) > 0 {
		n := min(len(src), kernel.SumElements)
		if v.Rows.Min(n, &src[0], 1) > 0 {
			f(n, &dst[0], &src[0])
		} else {
			for i, x := range src[:n] {
				if x > 0 {
					dst[i] = after(root32(x))
				} else {
					dst[i] = float32(math.Pow(float64(x), float64(a)))
				}
			}
		}
		dst, src = dst[n:], src[n:]
	}
}

func root32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// powScalarRow has loops for the exponents that models use; a root of -Inf or
// -0 is not its square root, so 1/2 goes the general way.
func powScalarRow(dst, src []float32, a, _ float32) {
	dst = dst[:len(src)]
	switch a {
	case 1:
		copy(dst, src)
	case 2:
		for i, x := range src {
			dst[i] = x * x
		}
	case 3:
		for i, x := range src {
			d := float64(x)
			dst[i] = float32(d * d * d)
		}
	case -1:
		reciprocalRow(dst, src, 0, 0)
	default:
		for i, x := range src {
			dst[i] = float32(math.Pow(float64(x), float64(a)))
		}
	}
}
