package elementwise

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// UnaryRow computes a float32 function over a row. Loops over vectors are for parameters that are numbers.
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

// powRow computes x^a. Those that are made of square roots are not what these are for numbers that are not positive, so that a piece that
// has some goes number by number.
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

// rootRow computes such powers; after makes the power from the root, to the same bits as f does.
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

// portableUnaryRows has a loop of its own for what is cheap or frequent; the rest is computed by unaryScalar, in float64.
var portableUnaryRows = func() (rows [kernel.NumUnary]func(dst, src []float32, a, b float32)) {
	for op, f := range unaryScalar {
		rows[op] = func(dst, src []float32, a, b float32) {
			for i, x := range src {
				dst[i] = float32(f(float64(x), float64(a), float64(b)))
			}
		}
	}
	rows[kernel.Identity] = func(dst, src []float32, _, _ float32) { copy(dst, src) }
	rows[kernel.Relu] = reluRow
	rows[kernel.LeakyRelu] = leakyReluRow
	rows[kernel.Clip] = clipRow
	rows[kernel.Sigmoid] = sigmoidRow
	rows[kernel.HardSigmoid] = hardSigmoidRow
	rows[kernel.HardSwish] = hardSwishRow
	rows[kernel.Silu] = siluRow
	rows[kernel.Swish] = swishRow
	rows[kernel.Gelu] = geluRow
	rows[kernel.GeluTanh] = geluTanhRow
	rows[kernel.Elu] = eluRow
	rows[kernel.Selu] = seluRow
	rows[kernel.Celu] = celuRow
	rows[kernel.Softplus] = softplusRow
	rows[kernel.Mish] = mishRow
	rows[kernel.Abs] = absRow
	rows[kernel.Neg] = negRow
	rows[kernel.Floor] = floorRow
	rows[kernel.Ceil] = ceilRow
	rows[kernel.Round] = roundRow
	rows[kernel.Sqrt] = sqrtRow
	rows[kernel.Reciprocal] = reciprocalRow
	rows[kernel.Exp] = expRow
	rows[kernel.Tanh] = tanhRow
	rows[kernel.Erf] = erfRow
	rows[kernel.PowScalar] = powScalarRow
	rows[kernel.Affine] = linearRow
	return rows
}()

func reluRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = max(x, 0)
	}
}

func leakyReluRow(dst, src []float32, a, _ float32) {
	dst = dst[:len(src)]
	if a > 0 && a <= 1 { // without a branch on the sign, which is as good as random
		for i, x := range src {
			dst[i] = max(x, a*x)
		}
		return
	}
	for i, x := range src {
		if x < 0 {
			x *= a
		}
		dst[i] = x
	}
}

func clipRow(dst, src []float32, a, b float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = min(max(x, a), b)
	}
}

func sigmoidRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = sigmoid32(x)
	}
}

func hardSigmoidRow(dst, src []float32, a, b float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = min(max(a*x+b, 0), 1)
	}
}

func hardSwishRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = x * min(max(x*(1.0/6)+0.5, 0), 1)
	}
}

func siluRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = silu32(x)
	}
}

func swishRow(dst, src []float32, a, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = swish32(x, a)
	}
}

func geluRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = gelu32(x)
	}
}

func geluTanhRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = geluTanh32(x)
	}
}

func eluRow(dst, src []float32, a, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		if x < 0 {
			x = scaledExpm1(a, x, 1)
		}
		dst[i] = x
	}
}

func seluRow(dst, src []float32, a, b float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		if x <= 0 {
			dst[i] = scaledExpm1(a, x, b)
		} else {
			dst[i] = b * x
		}
	}
}

func celuRow(dst, src []float32, a, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = max(x, 0) + float32(min(0, float64(a)*expm1(float64(x)/float64(a))))
	}
}

func softplusRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = softplus32(x)
	}
}

func mishRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = mish32(x)
	}
}

func absRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	}
}

func negRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = -x
	}
}

func floorRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = float32(math.Floor(float64(x)))
	}
}

func ceilRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = float32(math.Ceil(float64(x)))
	}
}

func roundRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = float32(math.RoundToEven(float64(x)))
	}
}

func sqrtRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = float32(math.Sqrt(float64(x)))
	}
}

func reciprocalRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = 1 / x
	}
}

func expRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = Exp32(x)
	}
}

func tanhRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = tanh32(x)
	}
}

func erfRow(dst, src []float32, _, _ float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = erf32(x)
	}
}

// powScalarRow has loops for the exponents that models use; a root of -Inf or -0 is not its square root, so 1/2 goes the general way.
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

func linearRow(dst, src []float32, a, b float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = float32(float64(a)*float64(x) + float64(b))
	}
}
