package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// elementwiseOps are the elementwise operators that do not follow from a row of
// package elementwise. Element k of their result, and of that of functionOps,
// needs only element k of each operand, after broadcasting. All of them may
// overwrite an operand of the result's shape and element size, one of them per
// call. A kernel with more than two operands therefore reads element k of all
// of them before it writes element k; it may not accumulate operand by operand
// over the whole result.
var elementwiseOps = []*Def{
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
	{
		Name: "where", ONNX: "Where", Doc: "selects the element of x where condition is true and that of y elsewhere, with broadcasting",
		MinArgs: 3, MaxArgs: 3, Infer: inferWhere, Alias: SameAs(1, 2),
	},
	unaryDef("not", "Not", "returns the logical negation of each element of x", boolean),
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

// binaryDef declares an operator whose result has the operands' element type,
// or the given one.
func binaryDef(name, onnx, doc string, types dtypes, result dtype.DType) *Def {
	alias := SameAs(0, 1)
	if result != dtype.Invalid && types != setOf(result) {
		alias = NarrowTo(0, 1)
	}
	return &Def{
		Name: name, ONNX: onnx, Doc: doc, MinArgs: 2, MaxArgs: 2, Alias: alias,
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
