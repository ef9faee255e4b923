package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// elementwiseOps are the operators whose element k of the result needs only
// element k of each operand, after broadcasting. All of them may overwrite an
// operand of the result's shape and element size, one of them per call. A
// kernel with more than two operands therefore reads element k of all of
// them before it writes element k; it may not accumulate operand by operand
// over the whole result.
var elementwiseOps = []*Def{
	binaryDef("add", "Add", "x + y, broadcast", numeric, dtype.Invalid),
	binaryDef("sub", "Sub", "x - y, broadcast", numeric, dtype.Invalid),
	binaryDef("mul", "Mul", "x * y, broadcast", numeric, dtype.Invalid),
	binaryDef("div", "Div", "x / y, broadcast; truncated for integers", numeric, dtype.Invalid),
	{
		Name: "pow", ONNX: "Pow", Doc: "x to the power of y, broadcast; the result has the element type of x",
		MinArgs: 2, MaxArgs: 2, Infer: inferPow, Alias: SameAs(0, 1),
	},
	{
		Name: "mod", ONNX: "Mod", Doc: "the remainder of x / y, broadcast: with the sign of y, or of x where fmod is 1",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("fmod", 0)}, Infer: inferMod, Alias: SameAs(0, 1),
	},

	variadicDef("max", "Max", "the largest of the operands, broadcast", numeric),
	variadicDef("min", "Min", "the smallest of the operands, broadcast", numeric),
	variadicDef("sum", "Sum", "the sum of the operands, broadcast", floats),
	variadicDef("mean", "Mean", "the mean of the operands, broadcast", floats),

	binaryDef("equal", "Equal", "whether x = y, broadcast", numeric|boolean, dtype.Bool),
	binaryDef("greater", "Greater", "whether x > y, broadcast", numeric, dtype.Bool),
	binaryDef("less", "Less", "whether x < y, broadcast", numeric, dtype.Bool),
	binaryDef("greater_or_equal", "GreaterOrEqual", "whether x >= y, broadcast", numeric, dtype.Bool),
	binaryDef("less_or_equal", "LessOrEqual", "whether x <= y, broadcast", numeric, dtype.Bool),
	binaryDef("and", "And", "x and y, broadcast", boolean, dtype.Bool),
	binaryDef("or", "Or", "x or y, broadcast", boolean, dtype.Bool),
	binaryDef("xor", "Xor", "either x or y, broadcast", boolean, dtype.Bool),
	{
		Name: "where", ONNX: "Where", Doc: "x where the condition holds and y elsewhere, broadcast",
		MinArgs: 3, MaxArgs: 3, Infer: inferWhere, Alias: SameAs(1, 2),
	},

	unaryDef("not", "Not", "whether x does not hold", boolean),
	unaryDef("abs", "Abs", "the absolute value", numeric),
	unaryDef("neg", "Neg", "-x", floats|signed),
	unaryDef("sign", "Sign", "-1, 0 or 1", numeric),
	unaryDef("floor", "Floor", "x rounded down", floats),
	unaryDef("ceil", "Ceil", "x rounded up", floats),
	unaryDef("round", "Round", "x rounded to the nearest integer, halves to the even one", floats),
	unaryDef("exp", "Exp", "e to the power of x", floats),
	unaryDef("log", "Log", "the natural logarithm", floats),
	unaryDef("sqrt", "Sqrt", "the square root", floats),
	unaryDef("reciprocal", "Reciprocal", "1 / x", floats),
	unaryDef("erf", "Erf", "the error function", floats),
	unaryDef("sin", "Sin", "the sine", floats),
	unaryDef("cos", "Cos", "the cosine", floats),
	unaryDef("tan", "Tan", "the tangent", floats),
	unaryDef("asin", "Asin", "the angle of a sine", floats),
	unaryDef("acos", "Acos", "the angle of a cosine", floats),
	unaryDef("atan", "Atan", "the angle of a tangent", floats),
	unaryDef("sinh", "Sinh", "the hyperbolic sine", floats),
	unaryDef("cosh", "Cosh", "the hyperbolic cosine", floats),
	unaryDef("asinh", "Asinh", "the number of a hyperbolic sine", floats),
	unaryDef("acosh", "Acosh", "the number, not below 0, of a hyperbolic cosine", floats),
	unaryDef("atanh", "Atanh", "the number of a hyperbolic tangent", floats),
	unaryDef("tanh", "Tanh", "the hyperbolic tangent", floats),
	unaryDef("sigmoid", "Sigmoid", "1 / (1 + exp(-x))", floats),

	unaryDef("relu", "Relu", "max(x, 0)", floats|signed),
	unaryDef("leaky_relu", "LeakyRelu", "x, or alpha * x below 0", floats, floatAttr("alpha", 0.01)),
	unaryDef("elu", "Elu", "x, or alpha * (exp(x) - 1) below 0", floats, floatAttr("alpha", 1)),
	unaryDef("selu", "Selu", "gamma * (x, or alpha * (exp(x) - 1) below 0)", floats,
		floatAttr("alpha", 1.67326319217681884765625), floatAttr("gamma", 1.05070102214813232421875)),
	unaryDef("softplus", "Softplus", "log(1 + exp(x))", floats),
	unaryDef("softsign", "Softsign", "x / (1 + |x|)", floats),
	unaryDef("hard_sigmoid", "HardSigmoid", "alpha * x + beta, held between 0 and 1", floats, floatAttr("alpha", 0.2), floatAttr("beta", 0.5)),
	unaryDef("hard_swish", "HardSwish", "x * hard_sigmoid(x) with alpha 1/6 and beta 1/2", floats),
	unaryDef("swish", "Swish", "x * sigmoid(alpha * x); SiLU where alpha is 1", floats, floatAttr("alpha", 1)),
	{
		Name: "gelu", ONNX: "Gelu", Doc: `x times the normal distribution function of x, by erf ("none") or by "tanh"`,
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{stringAttr("approximate", "none")}, Infer: inferGelu, Alias: SameAs(0),
	},
	{
		Name: "clip", ONNX: "Clip", Doc: "x held between min and max, both scalars and optional",
		MinArgs: 1, MaxArgs: 3, Infer: inferClip, Alias: SameAs(0),
	},
}

func unaryDef(name, onnx, doc string, types dtypes, attrs ...AttrDef) *Def {
	return &Def{
		Name: name, ONNX: onnx, Doc: doc, MinArgs: 1, MaxArgs: 1, Attrs: attrs, Alias: SameAs(0),
		Infer: func(s *Sig) error {
			if err := s.want(0, types); err != nil {
				return err
			}
			return s.giveLike(0)
		},
	}
}

// binaryDef gives results of the operands' element type, or of the given one.
func binaryDef(name, onnx, doc string, types dtypes, result dtype.DType) *Def {
	return &Def{
		Name: name, ONNX: onnx, Doc: doc, MinArgs: 2, MaxArgs: 2, Alias: SameAs(0, 1),
		Infer: func(s *Sig) error { return inferBroadcast(s, types, result) },
	}
}

func variadicDef(name, onnx, doc string, types dtypes) *Def {
	return &Def{
		Name: name, ONNX: onnx, Doc: doc, MinArgs: 1, MaxArgs: Variadic, Alias: Aliases(Rule{Arg: EveryArg, Kind: Same}),
		Infer: func(s *Sig) error { return inferBroadcast(s, types, dtype.Invalid) },
	}
}

// inferBroadcast is the rule of operands of one element type that broadcast
// together.
func inferBroadcast(s *Sig, types dtypes, result dtype.DType) error {
	for i := range s.Args {
		if s.Args[i].IsZero() {
			return errAbsent(i)
		}
		if err := s.want(i, types); err != nil {
			return err
		}
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	if result == dtype.Invalid {
		result = s.Args[0].DType
	}
	return s.giveBroadcast(result, s.Args)
}

// giveBroadcast sets result 0 to the shape that the operands have together.
func (s *Sig) giveBroadcast(dt dtype.DType, args []Type) error {
	sh := args[0].Shape
	for _, a := range args[1:] {
		if a.Shape == nil || sh == nil {
			sh = nil
			break
		}
		var err error
		if sh, err = shape.Broadcast(sh, a.Shape); err != nil {
			return err
		}
	}
	s.Results[0] = Type{dt, sh}
	return nil
}

func inferPow(s *Sig) error {
	if err := s.want(0, floats|setOf(dtype.I32, dtype.I64)); err != nil {
		return err
	}
	if err := s.want(1, numeric); err != nil {
		return err
	}
	return s.giveBroadcast(s.Args[0].DType, s.Args)
}

func inferMod(s *Sig) error {
	if _, err := s.wantFlag("fmod"); err != nil {
		return err
	}
	return inferBroadcast(s, numeric, dtype.Invalid)
}

func inferWhere(s *Sig) error {
	if err := s.want(0, boolean); err != nil {
		return err
	}
	if err := s.want(1, plain); err != nil {
		return err
	}
	if err := s.wantLike(2, 1); err != nil {
		return err
	}
	return s.giveBroadcast(s.Args[1].DType, s.Args)
}

func inferGelu(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if _, err := s.wantOneOf("approximate", "none", "tanh"); err != nil {
		return err
	}
	return s.giveLike(0)
}

func inferClip(s *Sig) error {
	if err := s.want(0, numeric); err != nil {
		return err
	}
	for i := 1; i < len(s.Args); i++ {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
		if err := s.wantOne(i); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}
