package op

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var reduceOps = []*Def{
	reduceDef("reduce_sum", "ReduceSum", "computes the sum", wide),
	reduceDef("reduce_mean", "ReduceMean", "computes the mean", wide),
	reduceDef("reduce_prod", "ReduceProd", "computes the product", wide),
	reduceDef("reduce_max", "ReduceMax", "returns the maximum", wide|boolean|setOf(dtype.I8, dtype.U8)),
	reduceDef("reduce_min", "ReduceMin", "returns the minimum", wide|boolean|setOf(dtype.I8, dtype.U8)),
	reduceDef("reduce_l1", "ReduceL1", "computes the sum of absolute values", wide),
	reduceDef("reduce_l2", "ReduceL2", "computes the square root of the sum of squares", wide),
	reduceDef("reduce_sum_square", "ReduceSumSquare", "computes the sum of squares", wide),
	reduceDef("reduce_log_sum", "ReduceLogSum", "computes the logarithm of the sum", wide),
	reduceDef("reduce_log_sum_exp", "ReduceLogSumExp", "computes the logarithm of the sum of exp(x)", wide),
	argDef("arg_max", "ArgMax", "returns the index of the maximum along an axis, as i64"),
	argDef("arg_min", "ArgMin", "returns the index of the minimum along an axis, as i64"),
}

func reduceDef(name, onnx, doc string, types dtypes) *Def {
	return &Def{
		Name: name, ONNX: onnx, Doc: doc + " along the given axes of x, or along all", MinArgs: 1, MaxArgs: 2,
		Attrs: []AttrDef{intAttr("keepdims", 1), intAttr("noop_with_empty_axes", 0)}, Alias: Fresh(),
		Infer: func(s *Sig) error {
			if err := s.want(0, types); err != nil {
				return err
			}
			return inferReduce(s)
		},
	}
}

func argDef(name, onnx, doc string) *Def {
	return &Def{
		Name: name, ONNX: onnx, Doc: doc, MinArgs: 1, MaxArgs: 1,
		Attrs: []AttrDef{intAttr("axis", 0), intAttr("keepdims", 1), intAttr("select_last_index", 0)}, Alias: Fresh(),
		Infer: inferArg,
	}
}

// ReduceAxes returns the axes that a reduction with a first operand of the
// given rank runs over, in ascending order; false when they are not known.
func (s *Sig) ReduceAxes(rank int) ([]int, bool, error) { return s.AppendReduceAxes([]int{}, rank) }

// AppendReduceAxes is ReduceAxes that writes into dst, which is empty, where
// that has the capacity.
func (s *Sig) AppendReduceAxes(dst []int, rank int) ([]int, bool, error) {
	var buf [8]int64
	list := buf[:0]
	if s.Has(1) {
		var known bool
		if list, known = s.AppendKnownInts(list, 1); !known {
			return nil, false, nil
		}
	}
	axes, err := appendAxes(dst, list, rank)
	if err != nil {
		return nil, false, err
	}
	if len(axes) == 0 && s.Int("noop_with_empty_axes") == 0 {
		for i := range rank {
			axes = append(axes, i)
		}
	}
	slices.Sort(axes)
	return axes, true, nil
}

func inferReduce(s *Sig) error {
	x := s.Args[0]
	if err := s.wantList(1, int64s, 0); err != nil {
		return err
	}
	keep, err := s.wantFlag("keepdims")
	if err != nil {
		return err
	}
	if _, err := s.wantFlag("noop_with_empty_axes"); err != nil {
		return err
	}
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	rank := x.Shape.Rank()
	var axesBuf [MaxRank]int
	axes, known, err := s.AppendReduceAxes(axesBuf[:0], rank)
	if err != nil {
		return err
	}
	if !known {
		n, counted := s.listLen(1)
		switch {
		case keep:
			return s.giveRank(0, x.DType, rank)
		case counted: // and not empty, which would be known
			return s.giveRank(0, x.DType, rank-n)
		}
		return s.giveAny(0, x.DType)
	}
	var buf [fewDims]shape.Dim
	return s.give(0, x.DType, appendReduced(buf[:0], x.Shape, axes, keep)...)
}

func appendReduced(dims []shape.Dim, x *shape.Shape, axes []int, keep bool) []shape.Dim {
	for i := range x.Rank() {
		switch {
		case !slices.Contains(axes, i):
			dims = append(dims, x.Dim(i))
		case keep:
			dims = append(dims, shape.N(1))
		}
	}
	return dims
}

func inferArg(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, numeric); err != nil {
		return err
	}
	keep, err := s.wantFlag("keepdims")
	if err != nil {
		return err
	}
	if _, err := s.wantFlag("select_last_index"); err != nil {
		return err
	}
	if x.Shape == nil {
		return s.giveAny(0, dtype.I64)
	}
	axis, err := axisOf(s.Int("axis"), x.Shape.Rank())
	if err != nil {
		return err
	}
	if isSize(x.Shape.Dim(axis), 0) {
		return badShape("got %s, want an element along axis %d", x, axis)
	}
	var buf [fewDims]shape.Dim
	return s.give(0, dtype.I64, appendReduced(buf[:0], x.Shape, []int{axis}, keep)...)
}
