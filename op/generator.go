package op

import (
	"math"
	"math/bits"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// generatorOps make values out of attributes and of numbers about shapes.
var generatorOps = []*Def{
	{
		Name: "constant", Doc: "returns the given numbers in the given dimensions, or one number everywhere; integers and bools come from ints",
		Attrs: []AttrDef{{Name: "dtype", Kind: DTypeKind, Default: dtype.F32}, intsAttr("dims"), {Name: "floats", Kind: Floats}, intsAttr("ints")},
		Infer: inferConstant, Alias: Fresh(),
	},
	{
		Name: "constant_of_shape", ONNX: "ConstantOfShape",
		Doc:     "fills the shape that an operand holds with one number: value, or for integers and bools the one in ints, else 0",
		MinArgs: 1, MaxArgs: 1,
		Attrs: []AttrDef{{Name: "dtype", Kind: DTypeKind, Default: dtype.F32}, floatAttr("value", 0), intsAttr("ints")},
		Infer: inferConstantOfShape, Alias: Fresh(),
	},
	{
		Name: "range", ONNX: "Range", Doc: "returns the numbers from start in steps of delta up to, but not including, limit",
		MinArgs: 3, MaxArgs: 3, Attrs: []AttrDef{intAttr("stash_type", 1)}, Infer: inferRange, Alias: Fresh(),
	},
}

func inferConstant(s *Sig) error {
	dt, err := s.constantType()
	if err != nil {
		return err
	}
	given := len(s.Ints("ints"))
	if dt.IsFloat() {
		given = len(s.Attrs.Floats("floats"))
	}
	dims := make([]shape.Dim, 0, MaxRank)
	for i, v := range s.Ints("dims") {
		if i == MaxRank {
			return badShape("dims: got %d numbers, want at most %d", len(s.Ints("dims")), MaxRank)
		}
		n, err := sizeOf(v, "dims")
		if err != nil {
			return err
		}
		dims = append(dims, shape.N(n))
	}
	count, err := product(dims)
	if err != nil {
		return err
	}
	if given != 1 && !isSize(count, given) {
		return badShape("got %d numbers for the dimensions %v, want 1 or %s", given, dims, count)
	}
	return s.give(0, dt, dims...)
}

// constantType checks the attribute dtype and that the numbers given are of
// its kind.
func (s *Sig) constantType() (dtype.DType, error) {
	dt := s.DType("dtype")
	types := stored &^ complexes
	if !types.has(dt) {
		return dt, badDType("attribute \"dtype\": got %s, want %s", dt, types)
	}
	for _, attr := range []string{"value", "floats"} {
		if !dt.IsFloat() && s.Attrs.Has(attr) {
			return dt, badDType("attribute %q: got numbers for %s, want them in \"ints\"", attr, dt)
		}
	}
	if dt.IsFloat() && s.Attrs.Has("ints") {
		return dt, badDType("attribute \"ints\": got integers for %s, want floats", dt)
	}
	return dt, nil
}

func inferConstantOfShape(s *Sig) error {
	dt, err := s.constantType()
	if err != nil {
		return err
	}
	if got := s.Ints("ints"); len(got) > 1 {
		return badShape("ints: got %d numbers, want at most 1", len(got))
	}
	return s.giveListed(dt)
}

// giveListed sets result 0 to a type of the shape that operand 0 lists.
func (s *Sig) giveListed(dt dtype.DType) error {
	if err := s.wantList(0, int64s, 1); err != nil {
		return err
	}
	list, known := s.KnownInts(0)
	if !known {
		if n, ok := s.listLen(0); ok {
			return s.giveRank(0, dt, n)
		}
		return s.giveAny(0, dt)
	}
	if len(list) > MaxRank {
		return s.giveRank(0, dt, len(list))
	}
	dims := make([]shape.Dim, len(list))
	for i, v := range list {
		n, err := sizeOf(v, "shape")
		if err != nil {
			return err
		}
		dims[i] = shape.N(n)
	}
	return s.give(0, dt, dims...)
}

func inferRange(s *Sig) error {
	if err := s.want(0, floats|setOf(dtype.I16, dtype.I32, dtype.I64)); err != nil {
		return err
	}
	if _, err := s.stashType(); err != nil {
		return err
	}
	for i := range 3 {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
		if err := s.wantOne(i); err != nil {
			return err
		}
	}
	n, known, err := s.RangeLen()
	if err != nil {
		return err
	}
	if !known {
		return s.giveRank(0, s.Args[0].DType, 1)
	}
	return s.give(0, s.Args[0].DType, shape.N(n))
}

// RangeLen returns the number of elements of a call of range; false when its
// operands are not known.
func (s *Sig) RangeLen() (int, bool, error) {
	if s.Args[0].DType.IsFloat() {
		var v [3]float64
		for i := range v {
			one, ok := s.KnownFloats(i)
			if !ok || len(one) != 1 {
				return 0, false, nil
			}
			v[i] = one[0]
		}
		n := math.Ceil((v[1] - v[0]) / v[2])
		if v[2] == 0 || math.IsNaN(n) || n > maxSize {
			return 0, false, badShape("got start %v, limit %v and delta %v, want a range of 0 to 2^58 elements", v[0], v[1], v[2])
		}
		return int(max(n, 0)), true, nil
	}
	var v [3]int64
	for i := range v {
		one, ok := s.KnownInts(i)
		if !ok || len(one) != 1 {
			return 0, false, nil
		}
		v[i] = one[0]
	}
	n, ok := rangeLen(v[0], v[1], v[2])
	if !ok {
		return 0, false, badShape("got start %d, limit %d and delta %d, want a range of 0 to 2^58 elements", v[0], v[1], v[2])
	}
	return n, true, nil
}

// rangeLen counts in uint64, where the distance of any two int64 is exact.
func rangeLen(start, limit, delta int64) (int, bool) {
	distance, step := uint64(limit)-uint64(start), uint64(delta)
	if delta < 0 {
		distance, step = -distance, -step
	}
	switch {
	case delta == 0:
		return 0, false
	case delta > 0 && start >= limit, delta < 0 && start <= limit:
		return 0, true
	}
	n, carry := bits.Add64((distance-1)/step, 1, 0)
	return int(n), carry == 0 && n <= maxSize
}
