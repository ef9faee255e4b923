package kernel

// UnaryOp is an elementwise function of one operand, with up to two scalar
// parameters a and b. All may run in place. They are declared in package
// internal/elementwise; Identity is the first.
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

// BinaryOp is an elementwise function of two operands of one type. Where an
// operand has the output's shape it may be the output.
type BinaryOp uint8

func (op BinaryOp) String() string { return binaryNames[op] }

// BinaryOps lists all functions.
func BinaryOps() []BinaryOp {
	all := make([]BinaryOp, NumBinary)
	for i := range all {
		all[i] = BinaryOp(i)
	}
	return all
}

// PredicateOp is an elementwise test of two operands; And, Or and Xor count
// operands that are not 0 as true. Its result, like every bool tensor here, is
// one byte per element: 0 is false, any other value is true, and what kernels
// write is 0 or 1.
type PredicateOp uint8

func (op PredicateOp) String() string { return predicateNames[op] }

// PredicateOps lists all tests.
func PredicateOps() []PredicateOp {
	all := make([]PredicateOp, NumPredicate)
	for i := range all {
		all[i] = PredicateOp(i)
	}
	return all
}
