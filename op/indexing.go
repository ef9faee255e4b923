package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// indexingOps read or write at positions that an operand holds.
var indexingOps = []*Def{
	{
		Name: "gather", ONNX: "Gather", Doc: "returns the slices of x along axis that indices name",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("axis", 0)}, Infer: inferGather, Alias: Fresh(),
	},
	{
		Name: "gather_elements", ONNX: "GatherElements", Doc: "returns, for each position of indices, the element of x at that position with its coordinate along axis replaced by the index",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("axis", 0)}, Infer: inferGatherElements, Alias: Fresh(),
	},
	{
		Name: "gather_nd", ONNX: "GatherND", Doc: "returns the slices of x that the index tuples in the last axis of indices name",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("batch_dims", 0)}, Infer: inferGatherND, Alias: Fresh(),
	},
	{
		Name: "scatter_nd", ONNX: "ScatterND", Doc: "returns x with updates written into, or combined with, the slices that index tuples name",
		MinArgs: 3, MaxArgs: 3, Attrs: []AttrDef{stringAttr("reduction", "none")}, Infer: inferScatterND,
		Alias: Aliases(Rule{Kind: Update}),
	},
	{
		Name: "scatter_elements", ONNX: "ScatterElements", Doc: "returns x with each update written to, or combined with, the element at the update's position with its coordinate along axis replaced by the index",
		MinArgs: 3, MaxArgs: 3, Attrs: []AttrDef{intAttr("axis", 0), stringAttr("reduction", "none")}, Infer: inferScatterElements,
		Alias: Aliases(Rule{Kind: Update}),
	},
	{
		Name: "tensor_scatter", ONNX: "TensorScatter", Doc: "returns a cache with an update written along its sequence axis, from an index per sample on",
		MinArgs: 2, MaxArgs: 3, Attrs: []AttrDef{intAttr("axis", -2), stringAttr("mode", "linear")}, Infer: inferTensorScatter,
		Alias: Aliases(Rule{Kind: Update}),
	},
	{
		Name: "shift", Doc: "returns the last slices along axis of x followed by rows, as many as x has",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("axis", 0)}, Infer: inferShift,
		Alias: Aliases(Rule{Kind: Update}),
	},
	{
		Name: "trilu", ONNX: "Trilu", Doc: "keeps the upper or lower triangle of the matrices in the last two axes and sets the rest to zero",
		MinArgs: 1, MaxArgs: 2, Attrs: []AttrDef{intAttr("upper", 1)}, Infer: inferTrilu, Alias: SameAs(0),
	},
	{
		Name: "cum_sum", ONNX: "CumSum", Doc: "computes the cumulative sum along an axis, which is an operand",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("exclusive", 0), intAttr("reverse", 0)}, Infer: inferCumSum, Alias: SameAs(0),
	},
	{
		Name: "cum_prod", ONNX: "CumProd", Doc: "computes the cumulative product along an axis, which is an operand",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("exclusive", 0), intAttr("reverse", 0)}, Infer: inferCumSum, Alias: SameAs(0),
	},
	{
		Name: "one_hot", ONNX: "OneHot", Doc: "returns, for each index, depth off-values with the on-value at the index",
		MinArgs: 3, MaxArgs: 3, Attrs: []AttrDef{intAttr("axis", -1)}, Infer: inferOneHot, Alias: Fresh(),
	},
}

func inferGather(s *Sig) error {
	x, at := s.Args[0], s.Args[1]
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.want(1, indices); err != nil {
		return err
	}
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	axis, err := axisOf(s.Int("axis"), x.Shape.Rank())
	if err != nil {
		return err
	}
	if at.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	var buf [8]shape.Dim
	dims := buf[:0]
	for i := range axis {
		dims = append(dims, x.Shape.Dim(i))
	}
	for i := range at.Shape.Rank() {
		dims = append(dims, at.Shape.Dim(i))
	}
	for i := axis + 1; i < x.Shape.Rank(); i++ {
		dims = append(dims, x.Shape.Dim(i))
	}
	return s.give(0, x.DType, dims...)
}

// elementIndex checks x and the indices of gather_elements and
// scatter_elements: of one rank, and no larger than x except along the axis.
func (s *Sig) elementIndex() error {
	x, at := s.Args[0], s.Args[1]
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.want(1, indices); err != nil {
		return err
	}
	if x.Shape == nil {
		return nil
	}
	rank := x.Shape.Rank()
	axis, err := axisOf(s.Int("axis"), rank)
	if err != nil || at.Shape == nil {
		return err
	}
	if at.Shape.Rank() != rank {
		return badShape("indices: got %s for %s, want as many dimensions", at, x)
	}
	for i := range rank {
		n, ok1 := x.Shape.Dim(i).Size()
		m, ok2 := at.Shape.Dim(i).Size()
		if i != axis && ok1 && ok2 && m > n {
			return badShape("indices: got %s for %s, want sizes no larger except along axis %d", at, x, axis)
		}
	}
	return nil
}

func inferGatherElements(s *Sig) error {
	if err := s.elementIndex(); err != nil {
		return err
	}
	s.Results[0] = Type{s.Args[0].DType, s.Args[1].Shape}
	return nil
}

// tupleLen is the length of the index tuples: the last axis of the indices.
// It is 0 when that is not known.
func (s *Sig) tupleLen(batch, rank int) (int, error) {
	at := s.Args[1].Shape
	if at == nil {
		return 0, nil
	}
	n, ok := at.Dim(at.Rank() - 1).Size()
	if !ok {
		return 0, nil
	}
	if n < 1 || n > rank-batch {
		return 0, badShape("indices: got tuples of %d in %s for %s, want 1 to %d", n, s.Args[1], s.Args[0], rank-batch)
	}
	return n, nil
}

func inferGatherND(s *Sig) error {
	x, at := s.Args[0], s.Args[1]
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.want(1, int64s); err != nil {
		return err
	}
	for i := range 2 {
		if err := s.wantRank(i, 1, -1); err != nil {
			return err
		}
	}
	batch := s.Int("batch_dims")
	if batch < 0 || batch >= MaxRank {
		return badShape("batch_dims: got %d, want 0 or more", batch)
	}
	if x.Shape == nil || at.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	b := int(batch)
	if b >= min(x.Shape.Rank(), at.Shape.Rank()) {
		return badShape("batch_dims: got %d for %s and %s, want less dimensions than both have", b, x, at)
	}
	n, err := s.tupleLen(b, x.Shape.Rank())
	if err != nil {
		return err
	}
	if n == 0 {
		return s.giveAny(0, x.DType)
	}
	dims := at.Shape.Dims()[:at.Shape.Rank()-1]
	for i := range b {
		both, ok := unify(dims[i], x.Shape.Dim(i))
		if !ok {
			return badShape("got %s and %s, want equal sizes in the first %d dimensions", x, at, b)
		}
		dims[i] = both
	}
	for i := b + n; i < x.Shape.Rank(); i++ {
		dims = append(dims, x.Shape.Dim(i))
	}
	return s.give(0, x.DType, dims...)
}

// scatterTypes checks element types and reduction of the scatters.
func (s *Sig) scatterTypes(index dtypes) error {
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.want(1, index); err != nil {
		return err
	}
	if err := s.wantLike(2, 0); err != nil {
		return err
	}
	how, err := s.wantOneOf("reduction", "none", "add", "mul", "max", "min")
	if err == nil && how != "none" {
		err = s.want(0, numeric|boolean)
	}
	return err
}

func inferScatterND(s *Sig) error {
	x, at, updates := s.Args[0], s.Args[1], s.Args[2]
	if err := s.scatterTypes(int64s); err != nil {
		return err
	}
	for i := range 2 {
		if err := s.wantRank(i, 1, -1); err != nil {
			return err
		}
	}
	if x.Shape != nil && at.Shape != nil {
		n, err := s.tupleLen(0, x.Shape.Rank())
		if err != nil {
			return err
		}
		if n > 0 {
			dims := at.Shape.Dims()[:at.Shape.Rank()-1]
			for i := n; i < x.Shape.Rank(); i++ {
				dims = append(dims, x.Shape.Dim(i))
			}
			if err := s.wantDims(2, dims); err != nil {
				return badShape("updates: got %s for %s at %s, want %v", updates, x, at, dims)
			}
		}
	}
	return s.giveLike(0)
}

func inferScatterElements(s *Sig) error {
	if err := s.scatterTypes(indices); err != nil {
		return err
	}
	if err := s.elementIndex(); err != nil {
		return err
	}
	if at := s.Args[1].Shape; at != nil {
		if err := s.wantDims(2, at.Dims()); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}

func inferTensorScatter(s *Sig) error {
	cache, update := s.Args[0], s.Args[1]
	if err := s.want(0, stored&^setOf(dtype.I2, dtype.U2)); err != nil {
		return err
	}
	if err := s.wantLike(1, 0); err != nil {
		return err
	}
	if err := s.want(2, int64s); err != nil {
		return err
	}
	mode, err := s.wantOneOf("mode", "linear", "circular")
	if err != nil {
		return err
	}
	if cache.Shape == nil {
		return s.giveLike(0)
	}
	rank := cache.Shape.Rank()
	axis, err := axisOf(s.Int("axis"), rank)
	if err != nil {
		return err
	}
	if axis == 0 {
		return badShape("axis: got %d for %s, want another axis than that of the batch", s.Int("axis"), cache)
	}
	if err := s.wantVector(2, cache.Shape.Dim(0), "sample"); err != nil {
		return err
	}
	dims := cache.Shape.Dims()
	longest, ok1 := dims[axis].Size()
	dims[axis] = shape.Unknown
	if err := s.wantDims(1, dims); err != nil || update.Shape == nil {
		if err != nil {
			return badShape("update: got %s for %s, want the same sizes except along axis %d", update, cache, axis)
		}
		return s.giveLike(0)
	}
	n, ok2 := update.Shape.Dim(axis).Size()
	if ok1 && ok2 && n > longest && (mode == "linear" || longest == 0) {
		return badShape("update: got %s for %s, want at most %d along axis %d", update, cache, longest, axis)
	}
	return s.giveLike(0)
}

func inferShift(s *Sig) error {
	x, rows := s.Args[0], s.Args[1]
	if err := s.want(0, stored&^setOf(dtype.I2, dtype.U2)); err != nil {
		return err
	}
	if err := s.wantLike(1, 0); err != nil {
		return err
	}
	if x.Shape == nil {
		return s.giveLike(0)
	}
	axis, err := axisOf(s.Int("axis"), x.Shape.Rank())
	if err != nil {
		return err
	}
	dims := x.Shape.Dims()
	dims[axis] = shape.Unknown
	if err := s.wantDims(1, dims); err != nil {
		return badShape("rows: got %s for %s, want the same sizes except along axis %d", rows, x, axis)
	}
	return s.giveLike(0)
}

func inferTrilu(s *Sig) error {
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.wantRank(0, 2, -1); err != nil {
		return err
	}
	if err := s.want(1, int64s); err != nil {
		return err
	}
	if err := s.wantOne(1); err != nil {
		return err
	}
	if _, err := s.wantFlag("upper"); err != nil {
		return err
	}
	return s.giveLike(0)
}

func inferCumSum(s *Sig) error {
	if err := s.want(0, wide); err != nil {
		return err
	}
	if err := s.want(1, indices); err != nil {
		return err
	}
	if err := s.wantOne(1); err != nil {
		return err
	}
	for _, flag := range []string{"exclusive", "reverse"} {
		if _, err := s.wantFlag(flag); err != nil {
			return err
		}
	}
	if axis, ok := s.KnownInts(1); ok && len(axis) == 1 && s.Args[0].Shape != nil {
		if _, err := axisOf(axis[0], s.Args[0].Shape.Rank()); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}

func inferOneHot(s *Sig) error {
	at, values := s.Args[0], s.Args[2]
	for i := range 2 {
		if err := s.want(i, numeric&^setOf(dtype.BF16)); err != nil {
			return err
		}
	}
	if err := s.want(2, plain); err != nil {
		return err
	}
	if err := s.wantOne(1); err != nil {
		return err
	}
	if err := s.wantVector(2, shape.N(2), "off-value and on-value"); err != nil {
		return err
	}
	depth := shape.Unknown
	if v, ok := s.KnownFloats(1); ok && len(v) == 1 {
		if !(v[0] >= 1 && v[0] <= maxSize) {
			return badShape("depth: got %v, want 1 to 2^58", v[0])
		}
		depth = shape.N(int(v[0]))
	}
	if at.Shape == nil {
		return s.giveAny(0, values.DType)
	}
	axis, err := axisOf(s.Int("axis"), at.Shape.Rank()+1)
	if err != nil {
		return err
	}
	dims := append(at.Shape.Dims(), shape.Unknown)
	copy(dims[axis+1:], dims[axis:])
	dims[axis] = depth
	return s.give(0, values.DType, dims...)
}
