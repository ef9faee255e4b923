package op

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// shapeOps change or return the shape and leave the elements where they are.
var shapeOps = []*Def{
	{Name: "identity", ONNX: "Identity", Doc: "returns x", MinArgs: 1, MaxArgs: 1, Infer: inferIdentity, Alias: ViewOf(0)},
	{Name: "copy", Doc: "copies the elements of x", MinArgs: 1, MaxArgs: 1, Infer: inferIdentity, Alias: SameAs(0)},
	{
		Name: "reshape", ONNX: "Reshape", Doc: "reshapes x to the shape that an operand holds; -1 stands for what remains, 0 for the size of x at that position",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("allowzero", 0)}, Infer: inferReshape, Alias: ViewOf(0),
	},
	{
		Name: "squeeze", ONNX: "Squeeze", Doc: "removes the given axes of size 1 from x, or all such axes",
		MinArgs: 1, MaxArgs: 2, Infer: inferSqueeze, Alias: ViewOf(0),
	},
	{
		Name: "unsqueeze", ONNX: "Unsqueeze", Doc: "inserts axes of size 1 into x; axes are positions in the result",
		MinArgs: 2, MaxArgs: 2, Infer: inferUnsqueeze, Alias: ViewOf(0),
	},
	{
		Name: "flatten", ONNX: "Flatten", Doc: "reshapes x to a matrix: rows are the axes before the given one, columns the others",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{intAttr("axis", 1)}, Infer: inferFlatten, Alias: ViewOf(0),
	},
	{
		Name: "shape", ONNX: "Shape", Doc: "returns the shape of x as i64, from axis start to end",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{intAttr("start", 0), {Name: "end", Kind: Int}}, Infer: inferShape, Alias: Fresh(),
	},
	{Name: "size", ONNX: "Size", Doc: "returns the number of elements of x as i64", MinArgs: 1, MaxArgs: 1, Infer: inferSize, Alias: Fresh()},
}

func inferIdentity(s *Sig) error {
	if err := s.want(0, stored); err != nil {
		return err
	}
	return s.giveLike(0)
}

// wantList checks an operand that is a list of integers: of rank 1, and of
// rank 0 where a list of one may stand without its dimension.
func (s *Sig) wantList(arg int, types dtypes, minRank int) error {
	if err := s.want(arg, types); err != nil {
		return err
	}
	return s.wantRank(arg, minRank, 1)
}

// listLen returns the number of elements of such an operand.
func (s *Sig) listLen(arg int) (int, bool) {
	if t := s.Args[arg]; t.IsStatic() {
		return t.Shape.NumElements(), true
	}
	return 0, false
}

func inferReshape(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, stored); err != nil {
		return err
	}
	if err := s.wantList(1, int64s, 1); err != nil {
		return err
	}
	keepZero, err := s.wantFlag("allowzero")
	if err != nil {
		return err
	}
	var ints [fewDims]int64
	target, ok := s.AppendKnownInts(ints[:0], 1)
	if !ok {
		if n, ok := s.listLen(1); ok {
			return s.giveRank(0, x.DType, n)
		}
		return s.giveAny(0, x.DType)
	}
	var buf [fewDims]shape.Dim
	dims, err := reshaped(buf[:0], x.Shape, target, keepZero)
	if err != nil {
		return err
	}
	return s.give(0, x.DType, dims...)
}

// reshaped returns the dimensions of x, whose shape may be nil, under target,
// in a list that it appends to none.
func reshaped(none []shape.Dim, x *shape.Shape, target []int64, keepZero bool) ([]shape.Dim, error) {
	if len(target) > MaxRank {
		return nil, badShape("shape: got %d dimensions, want at most %d", len(target), MaxRank)
	}
	dims := slices.Grow(none, len(target))[:len(target)]
	clear(dims)
	var copied [MaxRank]bool // the dimensions of x that stay where they are
	hole := -1
	for i, v := range target {
		switch {
		case v == -1 && hole >= 0:
			return nil, badShape("shape: got %v, want -1 at most once", slices.Clone(target))
		case v == -1:
			hole = i
		case v == 0 && !keepZero && x == nil:
		case v == 0 && !keepZero:
			if i >= x.Rank() {
				return nil, badShape("shape: got %v with a 0 at %d, want the operand %s to have that dimension", slices.Clone(target), i, x)
			}
			dims[i], copied[i] = x.Dim(i), true
		default:
			n, err := sizeOf(v, "shape")
			if err != nil {
				return nil, err
			}
			dims[i] = shape.N(n)
		}
	}
	if hole >= 0 && slices.Contains(dims, shape.N(0)) {
		return nil, badShape("shape: got %v with -1 beside a size of 0, want no -1 where it could be anything", slices.Clone(target))
	}
	switch {
	case x == nil:
		return dims, nil
	case x.IsStatic():
		return dims, fillStatic(x, target, dims, hole)
	case hole >= 0:
		return dims, fillHole(x, target, dims, copied[:], hole)
	}
	return dims, nil
}

// fillStatic checks that dims hold as many elements as x and sets dims[hole].
func fillStatic(x *shape.Shape, target []int64, dims []shape.Dim, hole int) error {
	if hole >= 0 {
		dims[hole] = shape.N(1)
	}
	all, err := product(dims)
	if err != nil {
		return err
	}
	have := x.NumElements()
	want, _ := all.Size()
	if hole < 0 && have != want || hole >= 0 && have%want != 0 {
		return badShape("shape: got operand %s of %d elements for the target %v, want as many elements on both sides", x, have, slices.Clone(target))
	}
	if hole >= 0 {
		dims[hole] = shape.N(have / want)
	}
	return nil
}

// fillHole sets dims[hole] as far as the known sizes determine it: copied
// dimensions are factors on both sides, even if they are unknown.
func fillHole(x *shape.Shape, target []int64, dims []shape.Dim, copied []bool, hole int) error {
	var from, own []shape.Dim
	for i := range x.Rank() {
		if !copied[i] {
			from = append(from, x.Dim(i))
		}
	}
	for i, d := range dims {
		if i != hole && !copied[i] {
			own = append(own, d)
		}
	}
	have, err := product(from)
	if err != nil {
		return err
	}
	want, err := product(own)
	if err != nil {
		return err
	}
	n, sized := have.Size()
	m, _ := want.Size() // the target's own dimensions are sizes
	switch {
	case sized && n%m != 0:
		return badShape("shape: got operand %s for the target %v, want a multiple of the target's elements", x, slices.Clone(target))
	case sized:
		dims[hole] = shape.N(n / m)
	case m == 1:
		dims[hole] = have
	}
	return nil
}

func inferSqueeze(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, stored); err != nil {
		return err
	}
	if err := s.wantList(1, int64s, 0); err != nil {
		return err
	}
	var ints [fewDims]int64
	list, known := s.AppendKnownInts(ints[:0], 1)
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	rank := x.Shape.Rank()
	if s.Has(1) && !known {
		if n, ok := s.listLen(1); ok {
			return s.giveRank(0, x.DType, rank-n)
		}
		return s.giveAny(0, x.DType)
	}
	var drop [MaxRank]bool
	if s.Has(1) {
		var axesBuf [fewDims]int
		axes, err := appendAxes(axesBuf[:0], list, rank)
		if err != nil {
			return err
		}
		for _, a := range axes {
			if n, ok := x.Shape.Dim(a).Size(); ok && n != 1 {
				return badShape("axes: got %v for %s, want axes of size 1", slices.Clone(list), x)
			}
			drop[a] = true
		}
	} else {
		for a := range rank {
			n, ok := x.Shape.Dim(a).Size()
			if !ok {
				return s.giveAny(0, x.DType)
			}
			drop[a] = n == 1
		}
	}
	var buf [fewDims]shape.Dim
	dims := buf[:0]
	for a := range rank {
		if !drop[a] {
			dims = append(dims, x.Shape.Dim(a))
		}
	}
	return s.give(0, x.DType, dims...)
}

func inferUnsqueeze(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, stored); err != nil {
		return err
	}
	if err := s.wantList(1, int64s, 0); err != nil {
		return err
	}
	n, counted := s.listLen(1)
	if x.Shape == nil || !counted {
		return s.giveAny(0, x.DType)
	}
	rank := x.Shape.Rank()
	var ints [fewDims]int64
	list, known := s.AppendKnownInts(ints[:0], 1)
	if !known || n > MaxRank-rank {
		return s.giveRank(0, x.DType, rank+min(n, MaxRank+1))
	}
	var axesBuf [fewDims]int
	axes, err := appendAxes(axesBuf[:0], list, rank+n)
	if err != nil {
		return err
	}
	var buf [fewDims]shape.Dim
	dims, next := buf[:0], 0
	for i := range rank + n {
		if slices.Contains(axes, i) {
			dims = append(dims, shape.N(1))
			continue
		}
		dims = append(dims, x.Shape.Dim(next))
		next++
	}
	return s.give(0, x.DType, dims...)
}

func inferFlatten(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, stored); err != nil {
		return err
	}
	if x.Shape == nil {
		return s.giveRank(0, x.DType, 2)
	}
	rank, axis := x.Shape.Rank(), s.Int("axis")
	if axis < int64(-rank) || axis > int64(rank) {
		return badShape("axis: got %d for %s, want %d to %d", axis, x, -rank, rank)
	}
	if axis < 0 {
		axis += int64(rank)
	}
	var buf [fewDims]shape.Dim
	dims := appendDims(buf[:0], x.Shape)
	rows, err := product(dims[:axis])
	if err != nil {
		return err
	}
	cols, err := product(dims[axis:])
	if err != nil {
		return err
	}
	return s.give(0, x.DType, rows, cols)
}

func inferShape(s *Sig) error {
	if err := s.want(0, stored); err != nil {
		return err
	}
	if s.Args[0].Shape == nil {
		return s.giveRank(0, dtype.I64, 1)
	}
	lo, hi := s.ShapeRange()
	return s.give(0, dtype.I64, shape.N(hi-lo))
}

// ShapeRange returns which dimensions of its operand, whose rank is known, a
// call of shape returns.
func (s *Sig) ShapeRange() (start, end int) {
	rank := int64(s.Args[0].Shape.Rank())
	clamp := func(v int64) int64 {
		if v < 0 {
			v = max(v, -rank) + rank
		}
		return min(v, rank)
	}
	lo, hi := clamp(s.Int("start")), rank
	if s.Attrs.Has("end") {
		hi = clamp(s.Int("end"))
	}
	return int(lo), int(max(lo, hi))
}

func inferSize(s *Sig) error {
	if err := s.want(0, stored); err != nil {
		return err
	}
	return s.give(0, dtype.I64)
}
