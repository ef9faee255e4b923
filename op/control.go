package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// controlOps run nested blocks. The results of a block are copied out unless
// the block made them. Those of a branch are fresh, but lie where each of its
// blocks computes them, which may be in the bytes of another value. The state
// of a loop may lie in the bytes of its first value.
var controlOps = []*Def{{
	Name: "if", ONNX: "If", Doc: "runs the first region if the condition is true and the second otherwise, and returns the results of that region",
	MinArgs: 1, MaxArgs: 1, MinResults: 1, MaxResults: Variadic, Regions: 2, Branch: true,
	Infer: inferIf, Alias: Fresh(),
}, {
	Name: "loop", ONNX: "Loop", Doc: "runs a region up to a number of iterations and while its condition is true; returns the loop state after the last iteration, and the scan outputs of all iterations stacked",
	MaxArgs: Variadic, MaxResults: Variadic, Regions: 1, Loop: true, Attrs: []AttrDef{intsAttr("parts")},
	Infer: inferLoop, Alias: Aliases(Rule{Arg: 2, Kind: Same, Each: true}),
}}

// inferLoop sets the types of the loop state to those that every iteration
// agrees on.
func inferLoop(s *Sig) error {
	if err := s.want(0, int64s); err != nil {
		return err
	}
	if err := s.want(1, boolean); err != nil {
		return err
	}
	for arg := range min(2, len(s.Args)) {
		if err := s.wantOne(arg); err != nil {
			return err
		}
	}
	body, carried := s.Regions[0], max(0, len(s.Args)-2)
	if len(body) < 1+carried || len(body)-1 != len(s.Results) {
		return badShape("region 0: got %d results, want a condition, what %d operands carry, and the rest of %d results", len(body), carried, len(s.Results))
	}
	if body[0].DType != dtype.Bool {
		return badDType("region 0: got %s as its condition, want bool", body[0])
	}
	if _, err := LoopParts(s.Ints("parts"), len(s.Results)-carried); err != nil {
		return err
	}
	for i, t := range body[1:] {
		if t.IsZero() {
			return badDType("region 0: got no type for result %d", i+1)
		}
		if i >= carried {
			if err := s.giveStack(i, t); err != nil {
				return err
			}
			continue
		}
		first := s.Args[2+i]
		if first.DType != t.DType {
			return badDType("operand %d: got %s, and %s from the region, want one element type", 2+i, first, t)
		}
		joined, err := Either(first, t)
		if err != nil {
			return err
		}
		s.Results[i] = joined
	}
	return nil
}

// LoopParts reads the attribute "parts" of a loop: for each of its stacks the
// rank of the part that one iteration yields, then its sizes, -1 for a rank or
// size that is not declared. The attribute determines the shape of a stack of
// no iterations where nothing else does. LoopParts returns the sizes, nil for a
// rank that is not declared.
func LoopParts(list []int64, stacks int) ([][]int64, error) {
	parts := make([][]int64, stacks)
	if len(list) == 0 {
		return parts, nil
	}
	for i := range parts {
		if len(list) == 0 || list[0] < -1 || list[0] > MaxRank-1 || int(max(list[0], 0)) > len(list)-1 {
			return nil, badShape("parts: got no rank of stack %d with its sizes, want -1 to %d", i, MaxRank-1)
		}
		rank := list[0]
		if list = list[1:]; rank < 0 {
			continue
		}
		parts[i], list = list[:rank:rank], list[rank:]
		for _, n := range parts[i] {
			if n < -1 || n > maxSize {
				return nil, badShape("parts: got size %d of stack %d, want -1 to %d", n, i, int64(maxSize))
			}
		}
	}
	if len(list) > 0 {
		return nil, badShape("parts: got %d numbers too many for %d stacks", len(list), stacks)
	}
	return parts, nil
}

// giveStack sets result i to a stack of one value per iteration.
func (s *Sig) giveStack(i int, t Type) error {
	if t.Shape == nil {
		return s.giveAny(i, t.DType)
	}
	iterations := shape.Unknown
	if n, ok := s.KnownInts(0); ok && len(n) == 1 && s.Endless {
		if n[0] > maxSize {
			return badShape("operand 0: got %d iterations, want at most %d", n[0], int64(maxSize))
		}
		iterations = shape.N(int(max(0, n[0])))
	}
	return s.give(i, t.DType, append([]shape.Dim{iterations}, t.Shape.Dims()...)...)
}

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
		t, err := Either(a, b)
		if err != nil {
			return err
		}
		s.Results[i] = t
	}
	return nil
}

// Either returns the common type of a value that has one type or the other, of
// one element type.
func Either(a, b Type) (Type, error) {
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
