package ref

import (
	"math"
	"math/big"
)

// Unary is the function of that name, with its scalar parameters.
func Unary(name string, x, a, b float64) float64 {
	f := UnaryOf(name)
	if f == nil {
		panic("ref: no function " + name)
	}
	return f(x, a, b)
}

// UnaryOf returns the function of that name, nil if there is none. The
// functions are written from their definitions and know nothing of the formulas
// that kernels are made of.
func UnaryOf(name string) func(x, a, b float64) float64 {
	if f := plain[name]; f != nil {
		return func(x, _, _ float64) float64 { return f(x) }
	}
	return withParameters[name]
}

// plain are the functions of x alone.
var plain = map[string]func(x float64) float64{
	"identity": func(x float64) float64 { return x },
	"relu":     func(x float64) float64 { return math.Max(x, 0) },
	"sigmoid":  sigmoid,
	"hard_swish": func(x float64) float64 {
		return x * math.Max(0, math.Min(1, x/6+0.5))
	},
	"silu": func(x float64) float64 { return x * sigmoid(x) },
	"gelu": func(x float64) float64 {
		if math.IsInf(x, -1) {
			return 0 // the limit
		}
		return 0.5 * x * math.Erfc(-x/math.Sqrt2) // erfc(-z) is 1+erf(z) without the cancellation
	},
	"gelu_tanh": func(x float64) float64 { // (1+tanh(u))/2 is sigmoid(2u)
		return x * sigmoid(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))
	},
	"softplus": softplus,
	"softsign": func(x float64) float64 { return x / (1 + math.Abs(x)) },
	"mish":     func(x float64) float64 { return x * math.Tanh(softplus(x)) },
	"sign": func(x float64) float64 {
		if x > 0 {
			return 1
		}
		if x < 0 {
			return -1
		}
		return x
	},
	"neg":        func(x float64) float64 { return -x },
	"reciprocal": func(x float64) float64 { return 1 / x },

	"abs": math.Abs, "floor": math.Floor, "ceil": math.Ceil, "round": math.RoundToEven, "sqrt": math.Sqrt, "exp": math.Exp, "log": math.Log,
	"erf": math.Erf, "sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
}

// withParameters are the functions of x with parameters a and b.
var withParameters = map[string]func(x, a, b float64) float64{
	"leaky_relu": func(x, a, _ float64) float64 {
		if x < 0 {
			return a * x
		}
		return x
	},
	"thresholded_relu": func(x, a, _ float64) float64 {
		if x > a {
			return x
		}
		return 0
	},
	"clip":         func(x, a, b float64) float64 { return math.Min(math.Max(x, a), b) },
	"hard_sigmoid": func(x, a, b float64) float64 { return math.Max(0, math.Min(1, a*x+b)) },
	"swish":        func(x, a, _ float64) float64 { return x * sigmoid(a*x) },
	"elu": func(x, a, _ float64) float64 {
		if x < 0 {
			return a * math.Expm1(x)
		}
		return x
	},
	"selu": func(x, a, b float64) float64 {
		if x > 0 {
			return b * x
		}
		return b * a * math.Expm1(x)
	},
	"celu": func(x, a, _ float64) float64 { return math.Max(0, x) + math.Min(0, a*math.Expm1(x/a)) },
	"shrink": func(x, a, b float64) float64 {
		if x < -a {
			return x + b
		}
		if x > a {
			return x - b
		}
		return 0
	},
	"pow_scalar": func(x, a, _ float64) float64 { return math.Pow(x, a) },
	"affine":     func(x, a, b float64) float64 { return a*x + b },
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x float64) float64 {
	if x > 100 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

// Binary is the function of two operands of that name on floats.
func Binary(name string, x, y float64) float64 {
	f := BinaryOf(name)
	if f == nil {
		panic("ref: no binary function " + name)
	}
	return f(x, y)
}

// BinaryOf returns the function of two operands of that name on floats, nil if
// there is none. As those of UnaryOf, the functions are written from their
// definitions.
func BinaryOf(name string) func(x, y float64) float64 { return ofTwo[name] }

// ofTwo are the functions of two operands on floats.
var ofTwo = map[string]func(x, y float64) float64{
	"add":  func(x, y float64) float64 { return x + y },
	"sub":  func(x, y float64) float64 { return x - y },
	"mul":  func(x, y float64) float64 { return x * y },
	"div":  func(x, y float64) float64 { return x / y },
	"min":  func(x, y float64) float64 { return orNaN(x, y, math.Min(x, y)) },
	"max":  func(x, y float64) float64 { return orNaN(x, y, math.Max(x, y)) },
	"fmod": math.Mod,
	"mod": func(x, y float64) float64 {
		r := math.Mod(x, y)
		if r*y < 0 {
			r += y
		}
		return r
	},
	"pow": math.Pow,
	"prelu": func(x, y float64) float64 {
		if x < 0 {
			return x * y
		}
		return x
	},
}

// orNaN returns r, or NaN if x or y is NaN.
func orNaN(x, y, r float64) float64 {
	if x != x || y != y {
		return math.NaN()
	}
	return r
}

// BinaryInt is the function of that name on integers of width bits: the true
// result, of which the lower bits are kept.
func BinaryInt(name string, x, y *big.Int, width uint) *big.Int {
	zero := new(big.Int)
	switch name {
	case "add":
		return zero.Add(x, y)
	case "sub":
		return zero.Sub(x, y)
	case "mul":
		return zero.Mul(x, y)
	case "bitwise_and":
		return zero.And(x, y)
	case "bitwise_or":
		return zero.Or(x, y)
	case "bitwise_xor":
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

// Predicate is the test of that name; cmp is -1, 0 or 1 as x is less than,
// equal to or greater than y, and 2 if they cannot be compared. xTrue and yTrue
// say that the operands are not zero.
func Predicate(name string, cmp int, xTrue, yTrue bool) bool {
	switch name {
	case "equal":
		return cmp == 0
	case "not_equal":
		return cmp != 0
	case "less":
		return cmp == -1
	case "less_or_equal":
		return cmp == -1 || cmp == 0
	case "greater":
		return cmp == 1
	case "greater_or_equal":
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
