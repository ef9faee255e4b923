package elementwise

// binaries are the functions of two operands. Kernels compute those without a
// formula, and prelu, on integers, even if the operator takes none. The
// operators of those without a name in models are declared by hand: max, min,
// sum and mean take any number of operands, mod and bit_shift choose a function
// by an attribute, pow takes operands of two types, prelu broadcasts in one
// direction.
var binaries = []*Binary{
	{Name: "add", ONNX: "Add", Doc: "adds x and y element by element, with broadcasting", Types: Numbers, Chained: true},
	{Name: "sub", ONNX: "Sub", Doc: "subtracts y from x element by element, with broadcasting", Types: Numbers, Chained: true},
	{Name: "mul", ONNX: "Mul", Doc: "multiplies x and y element by element, with broadcasting", Types: Numbers, Chained: true},
	{
		Name: "div", ONNX: "Div", Doc: "divides x by y element by element, with broadcasting; integer quotients are truncated towards zero",
		Types: Numbers, Nonzero: true, Chained: true,
	},
	{Name: "min", Doc: "returns the smaller element of x and y, or NaN if either is", Types: Numbers, Chained: true},
	{Name: "max", Doc: "returns the larger element of x and y, or NaN if either is", Types: Numbers, Chained: true},
	{Name: "mod", Doc: "returns the remainder of x / y with the sign of y; of integers and 0 it is 0", Types: Numbers},
	{Name: "fmod", Doc: "returns the remainder of x / y with the sign of x; of integers and 0 it is 0", Types: Numbers},
	{
		Name: "pow", Doc: "raises x to the power y element by element, with broadcasting; powers of integers wrap, and are truncated towards zero",
		Types: Numbers, Chained: true,
	},
	{
		Name: "prelu", Doc: "multiplies the negative elements of x by y and keeps the others", Types: Numbers,
		Formula: prelu, MaxError: Bound{Ulps: 1},
	},
	{Name: "bitwise_and", ONNX: "BitwiseAnd", Since: 18, Doc: "returns the bitwise AND of x and y, with broadcasting", Types: Integers},
	{Name: "bitwise_or", ONNX: "BitwiseOr", Since: 18, Doc: "returns the bitwise OR of x and y, with broadcasting", Types: Integers},
	{Name: "bitwise_xor", ONNX: "BitwiseXor", Since: 18, Doc: "returns the bitwise exclusive OR of x and y, with broadcasting", Types: Integers},
	{Name: "shift_left", Doc: "shifts x to the left by y bits; the result is 0 from the width of x on", Types: Integers},
	{Name: "shift_right", Doc: "shifts x to the right by y bits; the result is 0 from the width of x on, or -1 if x is negative", Types: Integers},

	{
		Name: "equal", ONNX: "Equal", Doc: "reports for each pair of elements whether x == y, with broadcasting",
		Types: Numbers | Bools, Predicate: true,
	},
	{Name: "not_equal", Doc: "reports for each pair of elements whether x != y", Types: Numbers | Bools, Predicate: true},
	{
		Name: "greater", ONNX: "Greater", Doc: "reports for each pair of elements whether x > y, with broadcasting",
		Types: Numbers, Predicate: true,
	},
	{
		Name: "less", ONNX: "Less", Doc: "reports for each pair of elements whether x < y, with broadcasting",
		Types: Numbers, Predicate: true,
	},
	{
		Name: "greater_or_equal", ONNX: "GreaterOrEqual", Since: 12, Doc: "reports for each pair of elements whether x >= y, with broadcasting",
		Types: Numbers, Predicate: true,
	},
	{
		Name: "less_or_equal", ONNX: "LessOrEqual", Since: 12, Doc: "reports for each pair of elements whether x <= y, with broadcasting",
		Types: Numbers, Predicate: true,
	},
	{Name: "and", ONNX: "And", Doc: "returns the logical AND of x and y, with broadcasting", Types: Bools, Predicate: true},
	{Name: "or", ONNX: "Or", Doc: "returns the logical OR of x and y, with broadcasting", Types: Bools, Predicate: true},
	{Name: "xor", ONNX: "Xor", Doc: "returns the logical exclusive OR of x and y, with broadcasting", Types: Bools, Predicate: true},
}

func prelu(b *Builder, x, y Value) Value {
	return b.Select(b.Less(x, b.Const(0)), b.Mul(x, y), x)
}
