package ref

import (
	"math"
	"math/big"
)

// Unary is the function of that name, with its scalar parameters.
func Unary(name string, x, a, b float64) float64 {
	switch name {
	case "identity":
		return x
	case "relu":
		return math.Max(x, 0)
	case "leaky_relu":
		if x < 0 {
			return a * x
		}
		return x
	case "thresholded_relu":
		if x > a {
			return x
		}
		return 0
	case "clip":
		return math.Min(math.Max(x, a), b)
	case "sigmoid":
		return 1 / (1 + math.Exp(-x))
	case "hard_sigmoid":
		return math.Max(0, math.Min(1, a*x+b))
	case "hard_swish":
		return x * math.Max(0, math.Min(1, x/6+0.5))
	case "silu":
		return x * Unary("sigmoid", x, 0, 0)
	case "swish":
		return x * Unary("sigmoid", a*x, 0, 0)
	case "gelu": // erfc(-z) is 1+erf(z) without the cancellation
		return 0.5 * x * math.Erfc(-x/math.Sqrt2)
	case "gelu_tanh": // (1+tanh(u))/2 is sigmoid(2u)
		return x * Unary("sigmoid", 2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x), 0, 0)
	case "elu":
		if x < 0 {
			return a * math.Expm1(x)
		}
		return x
	case "selu":
		if x > 0 {
			return b * x
		}
		return b * a * math.Expm1(x)
	case "celu":
		return math.Max(0, x) + math.Min(0, a*math.Expm1(x/a))
	case "softplus":
		if x > 100 {
			return x
		}
		return math.Log1p(math.Exp(x))
	case "softsign":
		return x / (1 + math.Abs(x))
	case "mish":
		return x * math.Tanh(Unary("softplus", x, 0, 0))
	case "shrink":
		if x < -a {
			return x + b
		}
		if x > a {
			return x - b
		}
		return 0
	case "sign":
		if x > 0 {
			return 1
		}
		if x < 0 {
			return -1
		}
		return x
	case "pow_scalar":
		return math.Pow(x, a)
	case "affine":
		return a*x + b
	}
	return plain[name](x)
}

var plain = map[string]func(float64) float64{
	"abs": math.Abs, "neg": func(x float64) float64 { return -x }, "floor": math.Floor, "ceil": math.Ceil, "round": math.RoundToEven,
	"sqrt": math.Sqrt, "reciprocal": func(x float64) float64 { return 1 / x }, "exp": math.Exp, "log": math.Log, "erf": math.Erf,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan, "sinh": math.Sinh,
	"cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
}

// Binary is the function of that name on floats.
func Binary(name string, x, y float64) float64 {
	switch name {
	case "add":
		return x + y
	case "sub":
		return x - y
	case "mul":
		return x * y
	case "div":
		return x / y
	case "min", "max":
		if x != x || y != y {
			return math.NaN()
		}
		if name == "min" {
			return math.Min(x, y)
		}
		return math.Max(x, y)
	case "fmod":
		return math.Mod(x, y)
	case "mod":
		r := math.Mod(x, y)
		if r*y < 0 {
			r += y
		}
		return r
	case "pow":
		return math.Pow(x, y)
	case "prelu":
		if x < 0 {
			return x * y
		}
		return x
	}
	panic("ref: no binary function " + name)
}

// BinaryInt is the function of that name on integers of width bits: the true result, of which the lower bits are kept.
func BinaryInt(name string, x, y *big.Int, width uint) *big.Int {
	zero := new(big.Int)
	switch name {
	case "add":
		return zero.Add(x, y)
	case "sub":
		return zero.Sub(x, y)
	case "mul":
		return zero.Mul(x, y)
	case "bit_and":
		return zero.And(x, y)
	case "bit_or":
		return zero.Or(x, y)
	case "bit_xor":
		return zero.Xor(x, y)
	case "min":
		if x.Cmp(y) < 0 {
			return x
		}
		return y
	case "max":
		if x.Cmp(y) > 0 {
			return x
		}
		return y
	case "prelu":
		if x.Sign() < 0 {
			return zero.Mul(x, y)
		}
		return x
	case "div", "fmod", "mod":
		return divide(name, x, y)
	case "pow":
		if y.Sign() >= 0 {
			return zero.Exp(x, y, nil)
		}
		if x.CmpAbs(big.NewInt(1)) != 0 {
			return zero
		}
		return zero.Exp(x, new(big.Int).Neg(y), nil)
	case "shift_left", "shift_right":
		if y.Sign() < 0 || y.Cmp(big.NewInt(int64(width))) >= 0 {
			y = big.NewInt(int64(width))
		}
		if name == "shift_left" {
			return zero.Lsh(x, uint(y.Int64()))
		}
		return zero.Rsh(x, uint(y.Int64()))
	}
	panic("ref: no integer function " + name)
}

func divide(name string, x, y *big.Int) *big.Int {
	if y.Sign() == 0 {
		return new(big.Int)
	}
	q, r := new(big.Int).QuoRem(x, y, new(big.Int))
	switch {
	case name == "div":
		return q
	case name == "mod" && r.Sign()*y.Sign() < 0:
		return r.Add(r, y)
	}
	return r
}

// Predicate is the test of that name; cmp is -1, 0 or 1 as x is less than, equal to or greater than y, and 2 if they cannot be compared.
// xTrue and yTrue say that the operands are not zero.
func Predicate(name string, cmp int, xTrue, yTrue bool) bool {
	switch name {
	case "equal":
		return cmp == 0
	case "not_equal":
		return cmp != 0
	case "less":
		return cmp == -1
	case "less_equal":
		return cmp == -1 || cmp == 0
	case "greater":
		return cmp == 1
	case "greater_equal":
		return cmp == 1 || cmp == 0
	case "and":
		return xTrue && yTrue
	case "or":
		return xTrue || yTrue
	case "xor":
		return xTrue != yTrue
	}
	panic("ref: no predicate " + name)
}
