package elementwise

import "math"

// arithmetic are the functions of a few operations, and powers. Formulas of
// several steps stand below the table.
var arithmetic = []*Function{
	{
		Name: "abs", ONNX: "Abs", Doc: "returns the absolute value of each element of x",
		Types: Numbers, Chained: true,
		Formula: step((*Builder).Abs),
	},
	{
		Name: "neg", ONNX: "Neg", Doc: "negates each element of x",
		Types: Signed, Chained: true,
		Formula: step((*Builder).Neg),
	},
	{
		Name: "sign", ONNX: "Sign", Since: 9, Doc: "returns the sign of each element of x: -1, 0 or 1",
		Types: Numbers, Chained: true,
		Formula: sign,
	},
	{
		Name: "floor", ONNX: "Floor", Doc: "rounds each element of x down to an integer",
		Types: Floats, Chained: true,
		Formula: step((*Builder).Floor),
	},
	{
		Name: "ceil", ONNX: "Ceil", Doc: "rounds each element of x up to an integer",
		Types: Floats, Chained: true,
		Formula: step((*Builder).Ceil),
	},
	{
		Name: "round", ONNX: "Round", Since: 11, Doc: "rounds each element of x to the nearest integer, ties to even",
		Types: Floats, Chained: true,
		Formula: step((*Builder).Round),
	},
	{
		Name: "sqrt", ONNX: "Sqrt", Doc: "computes the square root of each element of x",
		Types: Floats, Domain: Domain{0, math.Inf(1)}, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Sqrt),
	},
	{
		Name: "reciprocal", ONNX: "Reciprocal", Doc: "computes 1 / x of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: reciprocal,
	},
	{
		Name: "pow_scalar", Doc: "raises each element of x to the power exponent",
		Types: Floats, Params: []Param{{Name: "exponent", Default: 2, Min: -2, Max: 4}}, Domain: Domain{0, math.Inf(1)},
		MaxError: Bound{Ulps: 4},
		Formula:  powScalar,
	},
	{
		Name: "affine", Doc: "computes alpha * x + beta of each element of x",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 1, Min: -3, Max: 3}, {Name: "beta", Min: -3, Max: 3}},
		MaxError: Bound{Ulps: 2, Absolute: 0x1p-22}, Cell: "Affine",
		Formula: affine,
	},
}

// sign adds 0 to elements that are neither positive nor negative: NaN stays, -0
// becomes 0.
func sign(b *Builder, x Value, _ []Value) Value {
	zero := b.Const(0)
	negative := b.Select(b.Less(x, zero), b.Const(-1), b.Add(x, zero))
	return b.Select(b.Less(zero, x), b.Const(1), negative)
}

func reciprocal(b *Builder, x Value, _ []Value) Value { return b.Div(b.Const(1), x) }

func powScalar(b *Builder, x Value, p []Value) Value { return b.Pow(x, p[0]) }

func affine(b *Builder, x Value, p []Value) Value { return b.FMA(x, p[0], p[1]) }
