package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// selectionOps pick elements by class, by rank or by bits.
var selectionOps = []*Def{
	{
		Name: "nll_loss", ONNX: "NegativeLogLikelihoodLoss",
		Doc:     "returns -x [N,C,...] at the class that each target [N,...] names, times the class's weight; summed, or averaged by weight",
		MinArgs: 2, MaxArgs: 3, Attrs: []AttrDef{{Name: "ignore_index", Kind: Int}, stringAttr("reduction", "mean")},
		Infer: inferNLLLoss, Alias: Fresh(),
	},
	{
		Name: "top_k", ONNX: "TopK", Doc: "returns the k largest or smallest elements along an axis, in order, and their indices as i64",
		MinArgs: 2, MaxArgs: 2, MinResults: 2, MaxResults: 2,
		Attrs: []AttrDef{intAttr("axis", -1), intAttr("largest", 1), intAttr("sorted", 1)}, Infer: inferTopK, Alias: Fresh(),
	},
	{
		Name: "bit_cast", ONNX: "BitCast", Doc: "reinterprets the bytes of x as elements of another type of the same size",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{needed("to", DTypeKind)}, Infer: inferBitCast, Alias: ViewOf(0),
	},
	{
		Name: "hardmax", ONNX: "Hardmax", Doc: "returns 1 at the first maximum along an axis and 0 elsewhere",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{intAttr("axis", -1)}, Infer: inferSoftmax, Alias: SameAs(0),
	},
}

func inferNLLLoss(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if err := s.want(1, indices); err != nil {
		return err
	}
	if err := s.wantLike(2, 0); err != nil {
		return err
	}
	reduction, err := s.wantOneOf("reduction", "none", "sum", "mean")
	if err != nil {
		return err
	}
	if err := s.wantRank(0, 2, -1); err != nil {
		return err
	}
	dt := s.Args[0].DType
	x, target := s.Args[0].Shape, s.Args[1].Shape
	if x != nil {
		if err := s.wantVector(2, x.Dim(1), "class"); err != nil {
			return err
		}
	}
	s.Results[0] = Type{dt, target}
	if x != nil && target != nil {
		if target.Rank() != x.Rank()-1 {
			return badShape("operand 1: got %s, want the dimensions of %s without the second", s.Args[1], s.Args[0])
		}
		dims := target.Dims()
		for i := range dims {
			d := x.Dim(i + min(i, 1)) // without the classes, on axis 1
			if err := s.meet("dimension of target and x", &dims[i], &d); err != nil {
				return err
			}
		}
		if err := s.give(0, dt, dims...); err != nil {
			return err
		}
	}
	if reduction != "none" {
		return s.give(0, dt)
	}
	return nil
}

func inferTopK(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, numeric); err != nil {
		return err
	}
	if err := s.want(1, int64s); err != nil {
		return err
	}
	if err := s.wantOne(1); err != nil {
		return err
	}
	for _, flag := range []string{"largest", "sorted"} {
		if _, err := s.wantFlag(flag); err != nil {
			return err
		}
	}
	s.Results[0], s.Results[1] = Type{DType: x.DType}, Type{DType: dtype.I64}
	if x.Shape == nil {
		return nil
	}
	axis, err := axisOf(s.Int("axis"), x.Shape.Rank())
	if err != nil {
		return err
	}
	dims := x.Shape.Dims()
	size, sized := dims[axis].Size()
	dims[axis] = shape.Unknown
	if k, ok := s.KnownInts(1); ok && len(k) == 1 {
		n, err := sizeOf(k[0], "k")
		if err != nil {
			return err
		}
		if sized && n > size {
			return badShape("k: got %d, want at most the %d elements on axis %d of %s", n, size, axis, x)
		}
		dims[axis] = shape.N(n)
	}
	if err := s.give(0, x.DType, dims...); err != nil {
		return err
	}
	return s.give(1, dtype.I64, dims...)
}

func inferBitCast(s *Sig) error {
	if err := s.want(0, plain|float8); err != nil {
		return err
	}
	to := s.DType("to")
	if !(plain | float8).has(to) || to.Bits() != s.Args[0].DType.Bits() {
		return badDType("to: got %s, want a type of the size of %s", to, s.Args[0])
	}
	s.Results[0] = Type{to, s.Args[0].Shape}
	return nil
}
