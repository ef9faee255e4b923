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
	binaryDef("add", "Add", "adds x and y element by element, with broadcasting", numeric, dtype.Invalid),
	binaryDef("sub", "Sub", "subtracts y from x element by element, with broadcasting", numeric, dtype.Invalid),
	binaryDef("mul", "Mul", "multiplies x and y element by element, with broadcasting", numeric, dtype.Invalid),
	binaryDef("div", "Div", "divides x by y element by element, with broadcasting; integer quotients are truncated towards zero", numeric, dtype.Invalid),
	{
		Name: "pow", ONNX: "Pow", Doc: "raises x to the power y element by element, with broadcasting; the result has the element type of x",
		MinArgs: 2, MaxArgs: 2, Infer: inferPow, Alias: SameAs(0, 1),
	},
	{
		Name: "mod", ONNX: "Mod", Doc: "returns the remainder of x / y, with broadcasting: with the sign of y, or of x where fmod is 1",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("fmod", 0)}, Infer: inferMod, Alias: SameAs(0, 1),
	},

	variadicDef("max", "Max", "returns the element-by-element maximum of the operands, with broadcasting", numeric),
	variadicDef("min", "Min", "returns the element-by-element minimum of the operands, with broadcasting", numeric),
	variadicDef("sum", "Sum", "returns the element-by-element sum of the operands, with broadcasting", floats),
	variadicDef("mean", "Mean", "returns the element-by-element mean of the operands, with broadcasting", floats),

	binaryDef("equal", "Equal", "reports for each pair of elements whether x == y, with broadcasting", numeric|boolean, dtype.Bool),
	binaryDef("greater", "Greater", "reports for each pair of elements whether x > y, with broadcasting", numeric, dtype.Bool),
	binaryDef("less", "Less", "reports for each pair of elements whether x < y, with broadcasting", numeric, dtype.Bool),
	binaryDef("greater_or_equal", "GreaterOrEqual", "reports for each pair of elements whether x >= y, with broadcasting", numeric, dtype.Bool),
	binaryDef("less_or_equal", "LessOrEqual", "reports for each pair of elements whether x <= y, with broadcasting", numeric, dtype.Bool),
	binaryDef("and", "And", "returns the logical AND of x and y, with broadcasting", boolean, dtype.Bool),
	binaryDef("or", "Or", "returns the logical OR of x and y, with broadcasting", boolean, dtype.Bool),
	binaryDef("xor", "Xor", "returns the logical exclusive OR of x and y, with broadcasting", boolean, dtype.Bool),
	{
		Name: "where", ONNX: "Where", Doc: "selects the element of x where condition is true and that of y elsewhere, with broadcasting",
		MinArgs: 3, MaxArgs: 3, Infer: inferWhere, Alias: SameAs(1, 2),
	},

	unaryDef("not", "Not", "returns the logical negation of each element of x", boolean),
	unaryDef("abs", "Abs", "returns the absolute value of each element of x", numeric),
	unaryDef("neg", "Neg", "negates each element of x", floats|signed),
	unaryDef("sign", "Sign", "returns the sign of each element of x: -1, 0 or 1", numeric),
	unaryDef("floor", "Floor", "rounds each element of x down to an integer", floats),
	unaryDef("ceil", "Ceil", "rounds each element of x up to an integer", floats),
	unaryDef("round", "Round", "rounds each element of x to the nearest integer, ties to even", floats),
	unaryDef("exp", "Exp", "computes exp(x) of each element of x", floats),
	unaryDef("log", "Log", "computes the natural logarithm of each element of x", floats),
	unaryDef("sqrt", "Sqrt", "computes the square root of each element of x", floats),
	unaryDef("reciprocal", "Reciprocal", "computes 1 / x of each element of x", floats),
	unaryDef("erf", "Erf", "computes the error function of each element of x", floats),
	unaryDef("sin", "Sin", "computes the sine of each element of x, an angle in radians", floats),
	unaryDef("cos", "Cos", "computes the cosine of each element of x, an angle in radians", floats),
	unaryDef("tan", "Tan", "computes the tangent of each element of x, an angle in radians", floats),
	unaryDef("asin", "Asin", "computes the inverse sine of each element of x, in radians from -pi/2 to pi/2", floats),
	unaryDef("acos", "Acos", "computes the inverse cosine of each element of x, in radians from 0 to pi", floats),
	unaryDef("atan", "Atan", "computes the inverse tangent of each element of x, in radians from -pi/2 to pi/2", floats),
	unaryDef("sinh", "Sinh", "computes the hyperbolic sine of each element of x", floats),
	unaryDef("cosh", "Cosh", "computes the hyperbolic cosine of each element of x", floats),
	unaryDef("asinh", "Asinh", "computes the inverse hyperbolic sine of each element of x", floats),
	unaryDef("acosh", "Acosh", "computes the non-negative inverse hyperbolic cosine of each element of x", floats),
	unaryDef("atanh", "Atanh", "computes the inverse hyperbolic tangent of each element of x", floats),
	unaryDef("tanh", "Tanh", "computes the hyperbolic tangent of each element of x", floats),
	unaryDef("sigmoid", "Sigmoid", "computes 1 / (1 + exp(-x)) of each element of x", floats),

	unaryDef("relu", "Relu", "computes max(x, 0) of each element of x", floats|signed),
	unaryDef("leaky_relu", "LeakyRelu", "multiplies the negative elements of x by alpha and keeps the others", floats, floatAttr("alpha", 0.01)),
	unaryDef("elu", "Elu", "computes alpha * (exp(x) - 1) of the negative elements of x and keeps the others", floats, floatAttr("alpha", 1)),
	unaryDef("selu", "Selu", "computes gamma * x of the positive elements of x and gamma * alpha * (exp(x) - 1) of the others", floats,
		floatAttr("alpha", 1.67326319217681884765625), floatAttr("gamma", 1.05070102214813232421875)),
	unaryDef("softplus", "Softplus", "computes log(1 + exp(x)) of each element of x", floats),
	unaryDef("softsign", "Softsign", "computes x / (1 + |x|) of each element of x", floats),
	unaryDef("hard_sigmoid", "HardSigmoid", "clamps alpha * x + beta of each element of x to the range 0 to 1", floats, floatAttr("alpha", 0.2), floatAttr("beta", 0.5)),
	unaryDef("hard_swish", "HardSwish", "computes x * hard_sigmoid(x) of each element of x, with alpha 1/6 and beta 1/2", floats),
	unaryDef("swish", "Swish", "computes x * sigmoid(alpha * x) of each element of x: SiLU where alpha is 1", floats, floatAttr("alpha", 1)),
	{
		Name: "gelu", ONNX: "Gelu", Doc: `multiplies each element of x by the standard normal distribution function of it, computed by erf ("none") or approximated by "tanh"`,
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{stringAttr("approximate", "none")}, Infer: inferGelu, Alias: SameAs(0),
	},
	{
		Name: "clip", ONNX: "Clip", Doc: "clamps each element of x to the range min to max, both scalars and optional",
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

// binaryDef declares an operator whose result has the operands' element type, or the given one.
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
