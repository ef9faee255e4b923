package elementwise

// activations are the functions of neural networks. Formulas of several
// steps stand below the table.
var activations = []*Function{
	{
		Name: "identity", Doc: "returns each element of x",
		Types:   Floats,
		Formula: identity,
	},
	{
		Name: "relu", ONNX: "Relu", Doc: "computes max(x, 0) of each element of x",
		Types: Signed, Chained: true, Cell: "Relu",
		Formula: step((*Builder).Relu),
	},
	{
		Name: "leaky_relu", ONNX: "LeakyRelu", Doc: "multiplies the negative elements of x by alpha and keeps the others",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 0.01, Min: 0.1, Max: 3}},
		MaxError: Bound{Ulps: 2}, Chained: true, Cell: "LeakyRelu",
		Formula: leakyRelu,
	},
	{
		Name: "thresholded_relu", ONNX: "ThresholdedRelu", Since: 10, Doc: "keeps the elements of x above alpha and replaces the others by 0",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 1, Min: 0.1, Max: 3}},
		Chained: true, Cell: "ThresholdedRelu",
		Formula: thresholdedRelu,
	},
	{ // the bounds of the operator are operands
		Name: "clip", Doc: "clamps each element of x to the range min to max",
		Types: Floats, Params: []Param{{Name: "min", Default: -1, Min: -3, Max: 0}, {Name: "max", Default: 1, Min: 0, Max: 3}},
		Chained: true,
		Formula: clip,
	},
	{
		Name: "sigmoid", ONNX: "Sigmoid", Doc: "computes 1 / (1 + exp(-x)) of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true, Cell: "Sigmoid",
		Formula: step((*Builder).Sigmoid),
	},
	{
		Name: "hard_sigmoid", ONNX: "HardSigmoid", Doc: "clamps alpha * x + beta of each element of x to the range 0 to 1",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 0.2, Min: 0.1, Max: 3}, {Name: "beta", Default: 0.5, Min: 0.1, Max: 3}},
		MaxError: Bound{Ulps: 2, Absolute: 0x1p-22}, Chained: true, Cell: "HardSigmoid",
		Formula: hardSigmoid,
	},
	{
		Name: "hard_swish", ONNX: "HardSwish", Since: 14, Doc: "computes x * hard_sigmoid(x) of each element of x, with alpha 1/6 and beta 1/2",
		Types: Floats, MaxError: Bound{Ulps: 2, Absolute: 0x1p-22}, Chained: true,
		Formula: hardSwish,
	},
	{
		Name: "silu", Doc: "computes x * sigmoid(x) of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 4, Absolute: 0x1p-138}, Chained: true,
		Formula: silu,
	},
	{
		Name: "swish", ONNX: "Swish", Since: 24, Doc: "computes x * sigmoid(alpha * x) of each element of x: SiLU where alpha is 1",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 1, Min: 0.1, Max: 2}}, AtDefaults: "silu",
		MaxError: Bound{Ulps: 4, PerX: 2, Absolute: 0x1p-138}, Chained: true,
		Formula: swish,
	},
	{ // the operator has an attribute that chooses between this and the next
		Name: "gelu", Doc: "multiplies each element of x by the standard normal distribution function of it",
		Types: Floats, MaxError: Bound{Ulps: 5, PerSquare: 2}, Chained: true,
		Formula: step((*Builder).TimesPhi),
	},
	{
		Name: "gelu_tanh", Doc: "computes x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 5, PerSquare: 2}, Chained: true,
		Formula: geluTanh,
	},
	{
		Name: "elu", ONNX: "Elu", Doc: "computes alpha * (exp(x) - 1) of the negative elements of x and keeps the others",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 1, Min: 0.1, Max: 3}},
		MaxError: Bound{Ulps: 2}, Chained: true, Cell: "Elu",
		Formula: elu,
	},
	{
		Name: "selu", ONNX: "Selu", Doc: "computes gamma * x of the positive elements of x and gamma * alpha * (exp(x) - 1) of the others",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 1.67326319217681884765625, Min: 0.1, Max: 3}, {Name: "gamma", Default: 1.05070102214813232421875, Min: 0.1, Max: 3}},
		MaxError: Bound{Ulps: 2}, Chained: true,
		Formula: selu,
	},
	{
		Name: "celu", ONNX: "Celu", Since: 12, Doc: "computes max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)) of each element of x",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 1, Min: 0.1, Max: 3}},
		MaxError: Bound{Ulps: 2, Absolute: 0x1p-145}, Chained: true,
		Formula: celu,
	},
	{
		Name: "softplus", ONNX: "Softplus", Doc: "computes log(1 + exp(x)) of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 4}, Chained: true, Cell: "Softplus",
		Formula: step((*Builder).Softplus),
	},
	{
		Name: "softsign", ONNX: "Softsign", Doc: "computes x / (1 + |x|) of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 2}, Chained: true, Cell: "Softsign",
		Formula: softsign,
	},
	{
		Name: "mish", ONNX: "Mish", Since: 18, Doc: "computes x * tanh(log(1 + exp(x))) of each element of x",
		Types: Floats, MaxError: Bound{Ulps: 4, Absolute: 0x1p-138}, Chained: true,
		Formula: mish,
	},
	{
		Name: "shrink", ONNX: "Shrink", Since: 9,
		Doc:   "computes x + bias of the elements of x below -lambd and x - bias of those above lambd, and replaces the others by 0",
		Types: Numbers, Params: []Param{{Name: "lambd", Default: 0.5, Min: 0.1, Max: 3}, {Name: "bias", Min: 0.1, Max: 3}},
		MaxError: Bound{Ulps: 2, Absolute: 0x1p-22},
		Formula:  shrink,
	},
}

func identity(_ *Builder, x Value, _ []Value) Value { return x }

func leakyRelu(b *Builder, x Value, p []Value) Value {
	return b.Select(b.Less(x, b.Const(0)), b.Mul(x, p[0]), x)
}

func thresholdedRelu(b *Builder, x Value, p []Value) Value {
	return b.Select(b.Less(p[0], x), x, b.Const(0))
}

// clip takes the upper bound where the lower one is above it.
func clip(b *Builder, x Value, p []Value) Value { return b.Min(b.Max(x, p[0]), p[1]) }

// unit is x within 0 and 1.
func unit(b *Builder, x Value) Value { return b.Min(b.Max(x, b.Const(0)), b.Const(1)) }

func hardSigmoid(b *Builder, x Value, p []Value) Value { return unit(b, b.MulAdd(x, p[0], p[1])) }

func hardSwish(b *Builder, x Value, _ []Value) Value {
	return b.Mul(x, unit(b, b.MulAdd(x, b.Const(1.0/6), b.Const(0.5))))
}

func silu(b *Builder, x Value, _ []Value) Value { return b.Mul(x, b.Sigmoid(x)) }

func swish(b *Builder, x Value, p []Value) Value { return b.Mul(x, b.Sigmoid(b.Mul(p[0], x))) }

// geluTanh takes (1+tanh(u))/2 as sigmoid(2u): the sum would cancel for
// negative u.
func geluTanh(b *Builder, x Value, _ []Value) Value {
	const scale, cube = 0.7978845608028654, 0.044715 // the first is sqrt(2/pi)
	u := b.MulAdd(b.Mul(x, x), b.Const(2*scale*cube), b.Const(2*scale))
	return b.Mul(x, b.Sigmoid(b.Mul(x, u)))
}

func elu(b *Builder, x Value, p []Value) Value {
	zero := b.Const(0)
	return b.Select(b.Less(x, zero), b.Mul(p[0], b.Expm1(b.Min(x, zero))), x)
}

func selu(b *Builder, x Value, p []Value) Value {
	zero := b.Const(0)
	negative := b.Mul(b.Mul(p[1], p[0]), b.Expm1(b.Min(x, zero)))
	return b.Select(b.Less(zero, x), b.Mul(p[1], x), negative)
}

// celu is meant for a positive alpha, and its bound holds for these. A negative
// one is computed too, but then exp grows with x/alpha and multiplies the
// rounding of that quotient: the relative error is about |x/alpha| units in the
// last place.
func celu(b *Builder, x Value, p []Value) Value {
	zero := b.Const(0)
	return b.Add(b.Max(x, zero), b.Min(b.Mul(p[0], b.Expm1(b.Div(x, p[0]))), zero))
}

func softsign(b *Builder, x Value, _ []Value) Value { return b.Div(x, b.Add(b.Const(1), b.Abs(x))) }

// mish takes tanh(log(1+e)) as q/(q+2) with q = e*(e+2), which is 1 from x = 20
// on.
func mish(b *Builder, x Value, _ []Value) Value {
	two := b.Const(2)
	e := b.Exp(b.Min(x, b.Const(20)))
	q := b.Mul(e, b.Add(e, two))
	return b.Mul(x, b.Div(q, b.Add(q, two)))
}

func shrink(b *Builder, x Value, p []Value) Value {
	lambda, bias := p[0], p[1]
	above := b.Select(b.Less(lambda, x), b.Sub(x, bias), b.Const(0))
	return b.Select(b.Less(x, b.Neg(lambda)), b.Add(x, bias), above)
}
