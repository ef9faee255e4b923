package elementwise

// step is the formula of a function that is a primitive itself.
func step(f func(b *Builder, x Value) Value) Formula {
	return func(b *Builder, x Value, _ []Value) Value { return f(b, x) }
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

// geluTanh takes (1+tanh(u))/2 as sigmoid(2u): the sum would cancel for negative u.
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

func celu(b *Builder, x Value, p []Value) Value {
	zero := b.Const(0)
	return b.Add(b.Max(x, zero), b.Min(b.Mul(p[0], b.Expm1(b.Div(x, p[0]))), zero))
}

func softsign(b *Builder, x Value, _ []Value) Value { return b.Div(x, b.Add(b.Const(1), b.Abs(x))) }

// mish takes tanh(log(1+e)) as q/(q+2) with q = e*(e+2), which is 1 from x = 20 on.
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

// sign adds 0 to what is neither positive nor negative: NaN stays, -0 becomes 0.
func sign(b *Builder, x Value, _ []Value) Value {
	zero := b.Const(0)
	negative := b.Select(b.Less(x, zero), b.Const(-1), b.Add(x, zero))
	return b.Select(b.Less(zero, x), b.Const(1), negative)
}

func reciprocal(b *Builder, x Value, _ []Value) Value { return b.Div(b.Const(1), x) }

func powScalar(b *Builder, x Value, p []Value) Value { return b.Pow(x, p[0]) }

func affine(b *Builder, x Value, p []Value) Value { return b.FMA(x, p[0], p[1]) }
