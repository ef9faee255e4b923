package op

import "github.com/tenure-go/tenure/dtype"

// bitwiseOps work on the bits of integers, element by element.
var bitwiseOps = []*Def{
	binaryDef("bitwise_and", "BitwiseAnd", "the bits set in both x and y, broadcast", integers, dtype.Invalid),
	binaryDef("bitwise_or", "BitwiseOr", "the bits set in x or y, broadcast", integers, dtype.Invalid),
	binaryDef("bitwise_xor", "BitwiseXor", "the bits set in either x or y, broadcast", integers, dtype.Invalid),
	unaryDef("bitwise_not", "BitwiseNot", "the bits not set in x", integers),
	{
		Name: "bit_shift", ONNX: "BitShift", Doc: "x with its bits moved by y places to the LEFT or the RIGHT, broadcast; the sign fills from the left",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{needed("direction", String)}, Infer: inferBitShift, Alias: SameAs(0, 1),
	},
}

func inferBitShift(s *Sig) error {
	if _, err := s.wantOneOf("direction", "LEFT", "RIGHT"); err != nil {
		return err
	}
	return inferBroadcast(s, integers, dtype.Invalid)
}
