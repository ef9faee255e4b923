package op

import (
	"slices"

	"github.com/tenure-go/tenure/shape"
)

// padOps is the family of pad.
var padOps = []*Def{{
	Name: "pad", ONNX: "Pad", Doc: "adds elements at both ends of each axis of x; negative numbers remove elements",
	MinArgs: 2, MaxArgs: 4, Attrs: []AttrDef{stringAttr("mode", "constant")}, Infer: inferPad,
	Alias: Aliases(Rule{Kind: View, When: padsNothing}).OfParts(padParts),
}}

// Pads returns how many elements a call of pad adds at the two ends of each
// axis of its operand, whose rank is given; ok is false when that is not
// known. Negative numbers take elements away.
func (s *Sig) Pads(rank int) (begin, end []int, ok bool, err error) {
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	if s.Has(3) {
		list, known := s.KnownInts(3)
		if !known {
			return nil, nil, false, nil
		}
		if axes, err = axesOf(list, rank); err != nil {
			return nil, nil, false, err
		}
	}
	if n, counted := s.listLen(1); counted && n != 2*len(axes) {
		return nil, nil, false, badShape("pads: got %d numbers for %d axes, want %d", n, len(axes), 2*len(axes))
	}
	list, known := s.KnownInts(1)
	if !known || len(list) != 2*len(axes) {
		return nil, nil, false, nil
	}
	begin, end = make([]int, rank), make([]int, rank)
	for i, a := range axes {
		for _, v := range []int64{list[i], list[i+len(axes)]} {
			if v < -maxSize || v > maxSize {
				return nil, nil, false, badShape("pads: got %d, want -2^58 to 2^58", v)
			}
		}
		begin[a], end[a] = int(list[i]), int(list[i+len(axes)])
	}
	return begin, end, true, nil
}

func inferPad(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, stored); err != nil {
		return err
	}
	if err := s.wantList(1, int64s, 1); err != nil {
		return err
	}
	if err := s.wantLike(2, 0); err != nil {
		return err
	}
	if err := s.wantOne(2); err != nil {
		return err
	}
	if err := s.wantList(3, indices, 1); err != nil {
		return err
	}
	mode, err := s.wantOneOf("mode", "constant", "reflect", "edge", "wrap")
	if err != nil {
		return err
	}
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	begin, end, ok, err := s.Pads(x.Shape.Rank())
	if err != nil {
		return err
	}
	if !ok {
		return s.giveRank(0, x.DType, x.Shape.Rank())
	}
	dims := x.Shape.Dims()
	for a := range dims {
		if dims[a], err = padded(dims[a], begin[a], end[a], mode); err != nil {
			return err
		}
	}
	return s.give(0, x.DType, dims...)
}

// padded is one dimension with its pads.
func padded(d shape.Dim, begin, end int, mode string) (shape.Dim, error) {
	if begin == 0 && end == 0 {
		return d, nil
	}
	n, ok := d.Size()
	if !ok {
		return shape.Unknown, nil
	}
	size := n + begin + end
	left := n + min(begin, 0) + min(end, 0) // elements that are not removed; below 0, some of the added ones are
	added := max(begin, end)
	switch {
	case size < 0 || left < 0 && mode != "constant":
		return d, badShape("pads: got %d and %d for a size of %d, want no more taken away than there is", begin, end, n)
	case mode != "constant" && added > 0 && left == 0:
		return d, badShape("pads: got %d and %d for a size of %d, want an element to take values from in mode %q", begin, end, n, mode)
	case mode == "reflect" && added > 0 && added >= left:
		return d, badShape("pads: got %d and %d for a size of %d, want less than the size in mode %q", begin, end, n, mode)
	}
	return shape.N(size), nil
}

func padsNothing(s *Sig) bool {
	if !s.Args[0].IsStatic() {
		return false
	}
	begin, end, ok, err := s.Pads(s.Args[0].Shape.Rank())
	for i := range begin {
		if begin[i] != 0 || end[i] != 0 {
			return false
		}
	}
	return ok && err == nil
}

// padParts finds the operand in the result, if the call adds a constant around
// it and takes nothing away.
func padParts(s *Sig, at []int) (ok bool) {
	x := s.Args[0].Shape
	begin, end, ok, err := s.Pads(x.Rank())
	if err != nil || !ok || s.Str("mode") != "constant" || slices.Min(begin) < 0 || slices.Min(end) < 0 {
		return false
	}
	for i := range at {
		at[i] = -1
	}
	copy(at, begin)
	return true
}
