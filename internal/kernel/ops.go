package kernel

// UnaryOp is an elementwise function of one operand, with up to two scalar parameters a and b. All may run in place.
type UnaryOp uint8

const (
	Identity        UnaryOp = iota // x
	Relu                           // max(x, 0)
	LeakyRelu                      // x < 0 ? a*x : x
	ThresholdedRelu                // x > a ? x : 0
	Clip                           // min(max(x, a), b)
	Sigmoid                        // 1/(1+exp(-x))
	HardSigmoid                    // min(max(a*x+b, 0), 1)
	HardSwish                      // x*min(max(x/6+1/2, 0), 1)
	Silu                           // x*sigmoid(x)
	Swish                          // x*sigmoid(a*x)
	Gelu                           // x/2*(1+erf(x/sqrt(2))); of -Inf NaN as written, or its limit 0
	GeluTanh                       // x/2*(1+tanh(sqrt(2/pi)*(x+0.044715*x^3)))
	Elu                            // x < 0 ? a*(exp(x)-1) : x
	Selu                           // b*(x <= 0 ? a*exp(x)-a : x)
	Celu                           // max(x, 0) + min(0, a*(exp(x/a)-1))
	Softplus                       // log(1+exp(x))
	Softsign                       // x/(1+|x|)
	Mish                           // x*tanh(softplus(x))
	Shrink                         // x < -a ? x+b : x > a ? x-b : 0
	Abs
	Neg
	Sign // -1, 0, 1; NaN stays
	Floor
	Ceil
	Round // halves to even
	Sqrt
	Reciprocal
	Exp
	Log
	Erf
	PowScalar // x^a
	Affine    // a*x+b
	Sin
	Cos
	Tan
	Asin
	Acos
	Atan
	Sinh
	Cosh
	Tanh
	Asinh
	Acosh
	Atanh
	NumUnary
)

var unaryNames = [NumUnary]string{
	"identity", "relu", "leaky_relu", "thresholded_relu", "clip", "sigmoid", "hard_sigmoid", "hard_swish", "silu", "swish", "gelu",
	"gelu_tanh", "elu", "selu", "celu", "softplus", "softsign", "mish", "shrink", "abs", "neg", "sign", "floor", "ceil", "round", "sqrt",
	"reciprocal", "exp", "log", "erf", "pow_scalar", "affine", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
	"acosh", "atanh",
}

func (op UnaryOp) String() string { return unaryNames[op] }

// UnaryOps lists all functions.
func UnaryOps() []UnaryOp {
	all := make([]UnaryOp, NumUnary)
	for i := range all {
		all[i] = UnaryOp(i)
	}
	return all
}

// BinaryOp is an elementwise function of two operands of one type. Where an operand has the output's shape it may be the output.
type BinaryOp uint8

const (
	Add BinaryOp = iota
	Sub
	Mul
	Div   // integers: toward zero; x/0 is 0
	Min   // NaN if either is
	Max   // NaN if either is
	Mod   // sign of the divisor; integers: x mod 0 is 0
	FMod  // sign of the dividend, as in C; integers: x mod 0 is 0
	Pow   // integers: by squaring, wraps; a negative exponent truncates toward zero
	PRelu // a < 0 ? a*b : a
	BitAnd
	BitOr
	BitXor
	ShiftLeft  // 0 where the count is the width or more
	ShiftRight // 0, or -1 for negative numbers, where the count is the width or more
	numBinary
)

var binaryNames = [numBinary]string{
	"add", "sub", "mul", "div", "min", "max", "mod", "fmod", "pow", "prelu", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right",
}

func (op BinaryOp) String() string { return binaryNames[op] }

// OnFloats tells whether op is defined on floating point operands; all are on integers.
func (op BinaryOp) OnFloats() bool { return op < BitAnd }

// BinaryOps lists all functions.
func BinaryOps() []BinaryOp {
	all := make([]BinaryOp, numBinary)
	for i := range all {
		all[i] = BinaryOp(i)
	}
	return all
}

// PredicateOp is an elementwise test of two operands. Its result, like every bool tensor here, is one byte per element: 0 is false, any
// other value is true, and what kernels write is 0 or 1.
type PredicateOp uint8

const (
	Equal PredicateOp = iota
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
	And // operands that are not 0 count as true
	Or
	Xor
	numPredicate
)

var predicateNames = [numPredicate]string{"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "xor"}

func (op PredicateOp) String() string { return predicateNames[op] }

// PredicateOps lists all tests.
func PredicateOps() []PredicateOp {
	all := make([]PredicateOp, numPredicate)
	for i := range all {
		all[i] = PredicateOp(i)
	}
	return all
}
