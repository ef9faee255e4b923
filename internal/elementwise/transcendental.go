package elementwise

import "math"

// transcendental are exponentials, logarithms, and the functions of angles.
var transcendental = []*Function{
	{
		Name: "exp", ONNX: "Exp", Doc: "computes exp(x) of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Exp),
	},
	{
		Name: "log", ONNX: "Log", Doc: "computes the natural logarithm of each element of x",
		Types: Floats, Domain: Domain{0, math.Inf(1)}, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Log),
	},
	{
		Name: "erf", ONNX: "Erf", Since: 9, Doc: "computes the error function of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Erf),
	},
	{
		Name: "sin", ONNX: "Sin", Doc: "computes the sine of each element of x, an angle in radians",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Sin),
	},
	{
		Name: "cos", ONNX: "Cos", Doc: "computes the cosine of each element of x, an angle in radians",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Cos),
	},
	{
		Name: "tan", ONNX: "Tan", Since: 7, Doc: "computes the tangent of each element of x, an angle in radians",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Tan),
	},
	{
		Name: "asin", ONNX: "Asin", Since: 7, Doc: "computes the inverse sine of each element of x, in radians from -pi/2 to pi/2",
		Types: Floats, Domain: Domain{-1, 1}, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Asin),
	},
	{
		Name: "acos", ONNX: "Acos", Since: 7, Doc: "computes the inverse cosine of each element of x, in radians from 0 to pi",
		Types: Floats, Domain: Domain{-1, 1}, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Acos),
	},
	{
		Name: "atan", ONNX: "Atan", Since: 7, Doc: "computes the inverse tangent of each element of x, in radians from -pi/2 to pi/2",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Atan),
	},
	{
		Name: "sinh", ONNX: "Sinh", Since: 9, Doc: "computes the hyperbolic sine of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Sinh),
	},
	{
		Name: "cosh", ONNX: "Cosh", Since: 9, Doc: "computes the hyperbolic cosine of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Cosh),
	},
	{
		Name: "tanh", ONNX: "Tanh", Doc: "computes the hyperbolic tangent of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true, Cell: "Tanh",
		Formula: step((*Builder).Tanh),
	},
	{
		Name: "asinh", ONNX: "Asinh", Since: 9, Doc: "computes the inverse hyperbolic sine of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Asinh),
	},
	{
		Name: "acosh", ONNX: "Acosh", Since: 9, Doc: "computes the non-negative inverse hyperbolic cosine of each element of x",
		Types: Floats, Domain: Domain{1, math.Inf(1)}, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Acosh),
	},
	{
		Name: "atanh", ONNX: "Atanh", Since: 9, Doc: "computes the inverse hyperbolic tangent of each element of x",
		Types: Floats, Domain: Domain{-1, 1}, MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: step((*Builder).Atanh),
	},
}
