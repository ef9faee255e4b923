package op

var castOps = []*Def{{
	Name: "cast", ONNX: "Cast", Doc: "converts x to another element type",
	MinArgs: 1, MaxArgs: 1,
	Attrs: []AttrDef{needed("to", DTypeKind), intAttr("saturate", 1), stringAttr("round_mode", "up")},
	Infer: inferCast,
	Alias: NarrowTo(0), // where the result is of the same width, or narrower
}}

func inferCast(s *Sig) error {
	types := stored &^ complexes
	if err := s.want(0, types); err != nil {
		return err
	}
	to := s.DType("to")
	if !types.has(to) {
		return badDType("attribute \"to\": got %s, want %s", to, types)
	}
	if _, err := s.wantFlag("saturate"); err != nil {
		return err
	}
	if _, err := s.wantOneOf("round_mode", "up", "down", "nearest"); err != nil {
		return err
	}
	s.Results[0] = Type{to, s.Args[0].Shape}
	return nil
}
