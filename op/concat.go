package op

import (
	"slices"

	"github.com/tenure-go/tenure/shape"
)

// concatOps put values together along an axis and take them apart again.
var concatOps = []*Def{
	{
		Name: "concat", ONNX: "Concat", Doc: "concatenates the operands along an axis",
		MinArgs: 1, MaxArgs: Variadic, Attrs: []AttrDef{needed("axis", Int)}, Infer: inferConcat,
		// A cache starts empty: one of two operands is then all there is.
		Alias: Aliases(Rule{Arg: 0, Kind: View, When: onlyNonEmpty(0)}, Rule{Arg: 1, Kind: View, When: onlyNonEmpty(1)}).OfParts(concatParts),
	},
	{
		Name: "split", ONNX: "Split", Doc: "splits x along an axis into parts of the given sizes, or of equal ones",
		MinArgs: 1, MaxArgs: 2, MinResults: 1, MaxResults: Variadic,
		Attrs: []AttrDef{intAttr("axis", 0), {Name: "num_outputs", Kind: Int}}, Infer: inferSplit,
		Alias: Aliases(Rule{Result: EveryResult, Kind: View, Offset: splitOffset}).OfBoxes(splitBox),
	},
}

func inferConcat(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, plain); err != nil {
		return err
	}
	var buf, alongBuf [fewDims]shape.Dim
	var dims []shape.Dim // of the result, once an operand's rank is known
	axis := 0
	for i, a := range s.Args {
		if a.IsZero() {
			return errAbsent(i)
		}
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
		if a.Shape == nil {
			continue
		}
		if dims == nil {
			var err error
			if axis, err = axisOf(s.Int("axis"), a.Shape.Rank()); err != nil {
				return err
			}
			dims = appendDims(buf[:0], a.Shape)
		}
		if a.Shape.Rank() != len(dims) {
			return badShape("operand %d: got %s, want %d dimensions as the operands before it", i, a, len(dims))
		}
		for j := range dims {
			both, ok := unify(dims[j], a.Shape.Dim(j))
			if !ok && j != axis {
				return badShape("operand %d: got %s, want %s in dimension %d as the operands before it", i, a, dims[j], j)
			}
			dims[j] = both
		}
	}
	if dims == nil {
		return s.giveAny(0, x.DType)
	}
	along := alongBuf[:0]
	for _, a := range s.Args {
		d := shape.Unknown
		if a.Shape != nil {
			d = a.Shape.Dim(axis)
		}
		along = append(along, d)
	}
	var err error
	if dims[axis], err = total(along); err != nil {
		return err
	}
	return s.give(0, x.DType, dims...)
}

// onlyNonEmpty: every operand of the call but one has no elements.
func onlyNonEmpty(arg int) func(*Sig) bool {
	return func(s *Sig) bool {
		if arg >= len(s.Args) {
			return false
		}
		for i, a := range s.Args {
			if !a.IsStatic() || i != arg && a.Shape.NumElements() != 0 {
				return false
			}
		}
		return true
	}
}

// concatParts finds the operands in the result: they follow one another along
// the axis.
func concatParts(s *Sig, at []int) (ok bool) {
	rank := s.Results[0].Shape.Rank()
	axis, err := axisOf(s.Int("axis"), rank)
	if err != nil {
		return false
	}
	clear(at)
	start := 0
	for i, a := range s.Args {
		at[i*rank+axis] = start
		start += a.Shape.Size(axis)
	}
	return true
}

// splitSizes returns the sizes of the parts of a dimension, in a list that it
// appends to none.
func splitSizes(none []shape.Dim, s *Sig, whole shape.Dim) ([]shape.Dim, error) {
	parts := slices.Grow(none, len(s.Results))[:len(s.Results)]
	clear(parts)
	if s.Attrs.Has("num_outputs") {
		if s.Has(1) {
			return nil, badShape("got both sizes and num_outputs, want one of them")
		}
		if got := s.Int("num_outputs"); got != int64(len(parts)) {
			return nil, badShape("num_outputs: got %d for a call with %d results, want as many", got, len(parts))
		}
	}
	if !s.Has(1) {
		return parts, splitEvenly(parts, whole)
	}
	if n, ok := s.listLen(1); ok && n != len(parts) {
		return nil, badShape("operand 1: got %d sizes for a call with %d results, want as many", n, len(parts))
	}
	var ints [fewDims]int64
	list, ok := s.AppendKnownInts(ints[:0], 1)
	if !ok || len(list) != len(parts) {
		return parts, nil
	}
	for i, v := range list {
		n, err := sizeOf(v, "split")
		if err != nil {
			return nil, err
		}
		parts[i] = shape.N(n)
	}
	sum, err := total(parts)
	if err != nil {
		return nil, err
	}
	if _, ok := unify(sum, whole); !ok {
		return nil, badShape("split: got sizes %v, want a sum of %s", slices.Clone(list), whole)
	}
	return parts, nil
}

func splitEvenly(parts []shape.Dim, whole shape.Dim) error {
	count := len(parts)
	size, ok := whole.Size()
	switch {
	case count == 1:
		parts[0] = whole
		return nil
	case !ok:
		return nil
	}
	// The parts are as large as the largest must be, until nothing is left: 5
	// in 4 parts is 2, 2, 1, 0.
	chunk := (size + count - 1) / count
	for i := range parts {
		n := min(chunk, size)
		parts[i] = shape.N(n)
		size -= n
	}
	return nil
}

func inferSplit(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.wantList(1, int64s, 1); err != nil {
		return err
	}
	if x.Shape == nil {
		for i := range s.Results {
			s.Results[i] = Type{DType: x.DType}
		}
		return nil
	}
	axis, err := axisOf(s.Int("axis"), x.Shape.Rank())
	if err != nil {
		return err
	}
	var partsBuf, buf [fewDims]shape.Dim
	parts, err := splitSizes(partsBuf[:0], s, x.Shape.Dim(axis))
	if err != nil {
		return err
	}
	dims := appendDims(buf[:0], x.Shape)
	for i := range s.Results {
		dims[axis] = parts[i]
		if err := s.give(i, x.DType, dims...); err != nil {
			return err
		}
	}
	return nil
}

// splitBox finds a part in the operand: the parts follow one another along the
// axis.
func splitBox(s *Sig, result int, at []int) (arg int, ok bool) {
	axis, start, ok := splitStart(s, result)
	if !ok {
		return -1, false
	}
	clear(at)
	at[axis] = start
	return 0, true
}

// splitStart returns where a part starts along the axis that is split.
func splitStart(s *Sig, result int) (axis, start int, ok bool) {
	x := s.Args[0]
	if !x.IsStatic() {
		return 0, 0, false
	}
	axis, err := axisOf(s.Int("axis"), x.Shape.Rank())
	if err != nil {
		return 0, 0, false
	}
	var buf [fewDims]shape.Dim
	parts, err := splitSizes(buf[:0], s, x.Shape.Dim(axis))
	if err != nil {
		return 0, 0, false
	}
	for _, p := range parts[:result] {
		n, known := p.Size()
		if !known {
			return 0, 0, false
		}
		start += n
	}
	return axis, start, true
}

// splitOffset returns the start of a part that lies in one piece: all axes
// before the split one are of size 1.
func splitOffset(s *Sig, result int) (int, bool) {
	axis, start, ok := splitStart(s, result)
	if !ok {
		return 0, false
	}
	x := s.Args[0]
	for _, n := range x.Shape.Sizes()[:axis] {
		if n != 1 {
			return 0, false
		}
	}
	if x.Shape.NumElements() == 0 {
		return 0, true // no elements lie anywhere
	}
	return start * x.Shape.Strides()[axis] * x.DType.Size(), true
}
