package op

import "github.com/tenure-go/tenure/dtype"

// bitwiseOps work on the bits of integers, element by element.
var bitwiseOps = []*Def{
	unaryDef("bitwise_not", "BitwiseNot", "inverts the bits of each element of x", integers),
	{
		Name: "bit_shift", ONNX: "BitShift", Doc: "shifts the bits of x by y places to the LEFT or the RIGHT, with broadcasting; a shift to the RIGHT copies the sign",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{needed("direction", String)}, Infer: inferBitShift, Alias: SameAs(0, 1),
	},
}

func inferBitShift(s *Sig) error {
	if _, err := s.wantOneOf("direction", "LEFT", "RIGHT"); err != nil {
		return err
	}
	return inferBroadcast(s, integers, dtype.Invalid)
}
