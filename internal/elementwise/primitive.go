package elementwise

import "math"

// Op is a primitive: the operation of one step of a formula.
type Op uint8

// The primitives. The Builder's method of each documents its result.
const (
	X Op = iota // the operand of the function
	Parameter
	Constant
	Add
	Sub
	Mul
	Div
	MulAdd
	FMA
	Min
	Max
	Relu
	Neg
	Abs
	CopySign
	Sqrt
	Floor
	Ceil
	Round
	Select
	Exp
	Expm1
	Log
	Log1p
	Tanh
	Erf
	Sigmoid
	Softplus
	TimesPhi
	Pow
	Sin
	Cos
	Tan
	Asin
	Acos
	Atan
	Sinh
	Cosh
	Asinh
	Acosh
	Atanh
	numOps
)

// primitives has the number of values that each takes, and its result in
// float64; Expression.Eval computes the first three and Select.
var primitives = [numOps]struct {
	name  string
	arity int
	eval  func(x, y, z float64) float64
}{
	X:         {"x", 0, nil},
	Parameter: {"parameter", 0, nil},
	Constant:  {"constant", 0, nil},
	Select:    {"select", 4, nil},
	Add:       {"add", 2, func(x, y, _ float64) float64 { return x + y }},
	Sub:       {"sub", 2, func(x, y, _ float64) float64 { return x - y }},
	Mul:       {"mul", 2, func(x, y, _ float64) float64 { return x * y }},
	Div:       {"div", 2, func(x, y, _ float64) float64 { return x / y }},
	MulAdd:    {"mul_add", 3, func(x, y, z float64) float64 { return x*y + z }},
	FMA:       {"fma", 3, func(x, y, z float64) float64 { return x*y + z }},
	Min:       {"min", 2, func(x, y, _ float64) float64 { return min(x, y) }},
	Max:       {"max", 2, func(x, y, _ float64) float64 { return max(x, y) }},
	CopySign:  {"copy_sign", 2, func(x, y, _ float64) float64 { return math.Copysign(x, y) }},
	Pow:       {"pow", 2, func(x, y, _ float64) float64 { return math.Pow(x, y) }},
	Relu:      unary("relu", func(x float64) float64 { return max(x, 0) }),
	Neg:       unary("neg", func(x float64) float64 { return -x }),
	Abs:       unary("abs", math.Abs),
	Sqrt:      unary("sqrt", math.Sqrt),
	Floor:     unary("floor", math.Floor),
	Ceil:      unary("ceil", math.Ceil),
	Round:     unary("round", math.RoundToEven),
	Exp:       unary("exp", math.Exp),
	Expm1:     unary("expm1", math.Expm1),
	Log:       unary("log", math.Log),
	Log1p:     unary("log1p", math.Log1p),
	Tanh:      unary("tanh", math.Tanh),
	Erf:       unary("erf", math.Erf),
	Sigmoid:   unary("sigmoid", func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	Softplus:  unary("softplus", func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }),
	TimesPhi:  unary("times_phi", func(x float64) float64 { return max(x, -math.MaxFloat64) * (0.5 * math.Erfc(-x/math.Sqrt2)) }),
	Sin:       unary("sin", math.Sin),
	Cos:       unary("cos", math.Cos),
	Tan:       unary("tan", math.Tan),
	Asin:      unary("asin", math.Asin),
	Acos:      unary("acos", math.Acos),
	Atan:      unary("atan", math.Atan),
	Sinh:      unary("sinh", math.Sinh),
	Cosh:      unary("cosh", math.Cosh),
	Asinh:     unary("asinh", math.Asinh),
	Acosh:     unary("acosh", math.Acosh),
	Atanh:     unary("atanh", math.Atanh),
}

type primitive = struct {
	name  string
	arity int
	eval  func(x, y, z float64) float64
}

func unary(name string, f func(float64) float64) primitive {
	return primitive{name, 1, func(x, _, _ float64) float64 { return f(x) }}
}

func (op Op) String() string { return primitives[op].name }

// Arity is how many values a step takes.
func (op Op) Arity() int { return primitives[op].arity }

// IsArithmetic says whether op is a few instructions on any machine.
func (op Op) IsArithmetic() bool { return op <= Select }
