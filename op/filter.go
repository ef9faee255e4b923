package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// filterOps select elements by data: the size of the result is known when it is
// computed. Each bounds its results, and its kernel sets their types.
var filterOps = []*Def{
	{
		Name: "non_zero", ONNX: "NonZero", Doc: "returns the indices of the non-zero elements of x [d1,...,dr], as i64 [r,n] in row-major order",
		MinArgs: 1, MaxArgs: 1, Infer: inferNonZero, Bound: boundNonZero, Alias: Fresh(),
	},
	{
		Name: "compress", ONNX: "Compress", Doc: "returns the slices of x along an axis, or its elements, for which a condition is true",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{{Name: "axis", Kind: Int}}, Infer: inferCompress, Bound: boundCompress, Alias: Fresh(),
	},
	{
		Name: "unique", ONNX: "Unique",
		Doc:     "returns the distinct slices of x along an axis, or its distinct elements; optionally the index of each one's first occurrence, for each slice of x the index of its distinct one, and the counts",
		MinArgs: 1, MaxArgs: 1, MinResults: 1, MaxResults: 4, Attrs: []AttrDef{{Name: "axis", Kind: Int}, intAttr("sorted", 1)},
		Infer: inferUnique, Bound: boundUnique, Alias: Fresh(),
	},
	{
		Name: "non_max_suppression", ONNX: "NonMaxSuppression",
		Doc: "selects boxes [N,boxes,4] of highest score [N,classes,boxes] that overlap no selected one too much, and returns batch, class and box index of each; " +
			"operands boxes, scores, most per class, overlap and score thresholds",
		MinArgs: 2, MaxArgs: 5, Attrs: []AttrDef{intAttr("center_point_box", 0)},
		Infer: inferNonMaxSuppression, Bound: boundNonMaxSuppression, Alias: Fresh(),
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

// filterAxis is the axis that compress and unique work along in the operand's
// own dimensions; without one the operand is one row of elements.
func (s *Sig) filterAxis() (axis int, rows shape.Dim, err error) {
	x := s.Args[0].Shape
	if !s.Attrs.Has("axis") {
		if x == nil {
			return 0, shape.Unknown, nil
		}
		rows, err = product(x.Dims())
		return 0, rows, err
	}
	if x == nil {
		return 0, shape.Unknown, nil
	}
	if axis, err = axisOf(s.Int("axis"), x.Rank()); err != nil {
		return 0, rows, err
	}
	return axis, x.Dim(axis), nil
}

// giveFiltered sets result 0 to operand 0 with so many elements along the axis.
func (s *Sig) giveFiltered(axis int, count shape.Dim) error {
	x := s.Args[0]
	switch {
	case !s.Attrs.Has("axis"):
		return s.give(0, x.DType, count)
	case x.Shape == nil:
		return s.giveAny(0, x.DType)
	}
	dims := x.Shape.Dims()
	dims[axis] = count
	return s.give(0, x.DType, dims...)
}

func inferCompress(s *Sig) error {
	axis, err := s.compress()
	if err != nil {
		return err
	}
	count := shape.Unknown
	if data, ok := s.known(1); ok {
		n := 0
		for _, b := range data {
			if b != 0 {
				n++
			}
		}
		count = shape.N(n)
	}
	return s.giveFiltered(axis, count)
}

// compress checks the operands and returns the axis.
func (s *Sig) compress() (int, error) {
	if err := s.want(0, plain); err != nil {
		return 0, err
	}
	if err := s.want(1, boolean); err != nil {
		return 0, err
	}
	if err := s.wantRank(0, 1, -1); err != nil {
		return 0, err
	}
	if err := s.wantRank(1, 1, 1); err != nil {
		return 0, err
	}
	axis, rows, err := s.filterAxis()
	if err != nil {
		return 0, err
	}
	if n, ok := s.listLen(1); ok {
		if m, sized := rows.Size(); sized && n > m {
			return 0, badShape("operand 1: got %s for %s, want at most %d conditions", s.Args[1], s.Args[0], m)
		}
	}
	return axis, nil
}

func boundCompress(s *Sig) error {
	axis, err := s.compress()
	if err != nil {
		return err
	}
	return s.giveFiltered(axis, s.Args[1].Shape.Dim(0))
}

func inferUnique(s *Sig) error { return s.unique(shape.Unknown) }

func boundUnique(s *Sig) error {
	_, rows, err := s.filterAxis()
	if err != nil {
		return err
	}
	return s.unique(rows)
}

// unique sets the results for so many different slices.
func (s *Sig) unique(count shape.Dim) error {
	if err := s.want(0, numeric|boolean); err != nil {
		return err
	}
	if _, err := s.wantFlag("sorted"); err != nil {
		return err
	}
	axis, rows, err := s.filterAxis()
	if err != nil {
		return err
	}
	for i := range s.Results {
		switch i {
		case 0:
			err = s.giveFiltered(axis, count)
		case 2:
			err = s.give(i, dtype.I64, rows)
		default:
			err = s.give(i, dtype.I64, count)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func inferNonMaxSuppression(s *Sig) error {
	if _, _, err := s.suppression(); err != nil {
		return err
	}
	return s.give(0, dtype.I64, shape.Unknown, shape.N(3))
}

// suppression checks the operands and returns the dimensions of the scores,
// and how many boxes per class may be chosen, which may be unknown.
func (s *Sig) suppression() (scores []shape.Dim, most shape.Dim, err error) {
	for i, set := range []dtypes{setOf(dtype.F32), setOf(dtype.F32), int64s, setOf(dtype.F32), setOf(dtype.F32)} {
		if err := s.want(i, set); err != nil {
			return nil, most, err
		}
		if i >= 2 {
			if err := s.wantOne(i); err != nil {
				return nil, most, err
			}
		}
	}
	if _, err := s.wantFlag("center_point_box"); err != nil {
		return nil, most, err
	}
	boxes, err := s.dimsOf(0, 3)
	if err != nil {
		return nil, most, err
	}
	if scores, err = s.dimsOf(1, 3); err != nil {
		return nil, most, err
	}
	if err := s.meet("batch of boxes and scores", &boxes[0], &scores[0]); err != nil {
		return nil, most, err
	}
	if err := s.meet("number of boxes and scores", &boxes[1], &scores[2]); err != nil {
		return nil, most, err
	}
	if _, ok := unify(boxes[2], shape.N(4)); !ok {
		return nil, most, badShape("operand 0: got %s, want 4 numbers per box", s.Args[0])
	}
	if !s.Has(2) {
		return scores, shape.N(0), nil
	}
	if list, ok := s.KnownInts(2); ok && len(list) == 1 {
		return scores, shape.N(int(min(max(list[0], 0), maxSize))), nil
	}
	return scores, shape.Unknown, nil
}

func boundNonMaxSuppression(s *Sig) error {
	scores, most, err := s.suppression()
	if err != nil {
		return err
	}
	each := scores[2]
	if n, ok := most.Size(); ok {
		if boxes, _ := each.Size(); n < boxes {
			each = most
		}
	}
	count, err := product([]shape.Dim{scores[0], scores[1], each})
	if err != nil {
		return err
	}
	return s.give(0, dtype.I64, count, shape.N(3))
}
