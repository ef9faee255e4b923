package op

import "github.com/tenure-go/tenure/shape"

// controlOps run nested blocks. The results of a block are copied out unless
// the block made them, so a result of an if lies in bytes of its own.
var controlOps = []*Def{{
	Name: "if", ONNX: "If", Doc: "the results of the first region where the condition holds, else those of the second",
	MinArgs: 1, MaxArgs: 1, MinResults: 1, MaxResults: Variadic, Regions: 2, Branch: true,
	Infer: inferIf, Alias: Fresh(),
}}

func inferIf(s *Sig) error {
	if err := s.want(0, boolean); err != nil {
		return err
	}
	if err := s.wantOne(0); err != nil {
		return err
	}
	for r, types := range s.Regions {
		if len(types) != len(s.Results) {
			return badShape("region %d: got %d results, want %d", r, len(types), len(s.Results))
		}
	}
	for i := range s.Results {
		a, b := s.Regions[0][i], s.Regions[1][i]
		if a.DType != b.DType || a.IsZero() {
			return badDType("result %d: got %s and %s from the regions, want one element type", i, a, b)
		}
		t, err := either(a, b)
		if err != nil {
			return err
		}
		s.Results[i] = t
	}
	return nil
}

// either is what is known of a value that has one type or the other.
func either(a, b Type) (Type, error) {
	if a.Shape == b.Shape {
		return a, nil
	}
	if a.Shape == nil || b.Shape == nil || a.Shape.Rank() != b.Shape.Rank() {
		return Type{DType: a.DType}, nil
	}
	dims := a.Shape.Dims()
	for i := range dims {
		if dims[i] != b.Shape.Dim(i) {
			dims[i] = shape.Unknown
		}
	}
	sh, err := shape.FromDims(dims...)
	return Type{a.DType, sh}, err
}
