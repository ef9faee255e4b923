package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// filterOps give what data picks out: how much that is, is known when it is
// computed. Each bounds its results, and its kernel sets their types.
var filterOps = []*Def{
	{
		Name: "non_zero", ONNX: "NonZero", Doc: "the places of the elements of x [d1,...,dr] that are not zero, as i64 [r,n] in row-major order",
		MinArgs: 1, MaxArgs: 1, Infer: inferNonZero, Bound: boundNonZero, Alias: Fresh(),
	},
}

func inferNonZero(s *Sig) error {
	if err := s.want(0, numeric|boolean); err != nil {
		return err
	}
	rank := shape.Unknown
	if x := s.Args[0].Shape; x != nil {
		rank = shape.N(x.Rank())
	}
	return s.give(0, dtype.I64, rank, shape.Unknown)
}

func boundNonZero(s *Sig) error {
	x := s.Args[0].Shape
	return s.give(0, dtype.I64, shape.N(x.Rank()), shape.N(x.NumElements()))
}
