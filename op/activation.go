package op

import "github.com/tenure-go/tenure/dtype"

// activationOps are prelu, whose slope broadcasts in one direction, and the
// operators that report the class of a float.
var activationOps = []*Def{
	{
		Name: "prelu", ONNX: "PRelu", Doc: "multiplies the negative elements of x by slope, which broadcasts to x, and keeps the others",
		MinArgs: 2, MaxArgs: 2, Infer: inferPRelu, Alias: SameAs(0, 1),
	},
	{
		Name: "is_nan", ONNX: "IsNaN", Doc: "reports for each element of x whether it is NaN",
		MinArgs: 1, MaxArgs: 1, Infer: inferClass, Alias: NarrowTo(0),
	},
	{
		Name: "is_inf", ONNX: "IsInf", Doc: "reports for each element of x whether it is an infinity of a detected sign",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{intAttr("detect_negative", 1), intAttr("detect_positive", 1)}, Infer: inferInf, Alias: NarrowTo(0),
	},
}

func inferPRelu(s *Sig) error {
	if err := s.want(0, wide); err != nil {
		return err
	}
	if err := s.wantLike(1, 0); err != nil {
		return err
	}
	if sh := s.Args[0].Shape; sh != nil {
		if err := s.wantSpread(1, sh); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}

func inferClass(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	s.Results[0] = Type{dtype.Bool, s.Args[0].Shape}
	return nil
}

func inferInf(s *Sig) error {
	for _, attr := range []string{"detect_negative", "detect_positive"} {
		if _, err := s.wantFlag(attr); err != nil {
			return err
		}
	}
	return inferClass(s)
}
