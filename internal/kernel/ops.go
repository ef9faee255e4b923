package kernel

// UnaryOp is an elementwise function of one operand, with up to two scalar parameters a and b. All may run in place. They are declared in
// package internal/elementwise; Identity is the first.
type UnaryOp uint8

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
	"add", "sub", "mul", "div", "min", "max", "mod", "fmod", "pow", "prelu", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right",
}

func (op BinaryOp) String() string { return binaryNames[op] }

// OnFloats reports whether op is defined on floating point operands; all are on integers.
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

var predicateNames = [numPredicate]string{"equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal", "and", "or", "xor"}

func (op PredicateOp) String() string { return predicateNames[op] }

// PredicateOps lists all tests.
func PredicateOps() []PredicateOp {
	all := make([]PredicateOp, numPredicate)
	for i := range all {
		all[i] = PredicateOp(i)
	}
	return all
}
