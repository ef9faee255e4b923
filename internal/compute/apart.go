package compute

import (
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// The axes along which calls fall apart, by operator. An operator that stands
// neither here nor among the walkers takes contiguous operands and results
// only.

// elementwiseApart: all axes of the result, with the operands broadcast to
// them.
var elementwiseApart = &apart{
	loops: func(s *op.Sig) int { return s.Results[0].Shape.Rank() },
	axis: func(s *op.Sig, isResult bool, i, loop int) int {
		if isResult {
			return loop
		}
		return alignedAxis(s.Args[i].Shape, s.Results[0].Shape, loop)
	},
}

// alignedAxis returns the axis of a shape that meets an axis of the result, to
// which it is broadcast; -1 if it has none, or one of size 1.
func alignedAxis(x, y *shape.Shape, loop int) int {
	axis := loop + x.Rank() - y.Rank()
	if axis < 0 || x.Size(axis) != y.Size(loop) {
		return -1
	}
	return axis
}

// powApart: an exponent of another type is read in another way where there is
// only one.
var powApart = &apart{
	loops: func(s *op.Sig) int {
		if s.Args[0].DType != s.Args[1].DType && s.Args[1].Shape.NumElements() != 1 {
			return 0
		}
		return elementwiseApart.loops(s)
	},
	axis: elementwiseApart.axis,
}

var _ = registerApart(powApart, "pow")

var _ = registerApart(elementwiseApart,
	"mod", "max", "min", "sum", "mean", "where", "not", "gelu", "clip", "cast", "prelu", "is_nan", "is_inf", "bitwise_not", "bit_shift", "fused_chain")

// leading are the first axes of all results and of some operands. The others
// are needed as a whole.
func leading(loops func(s *op.Sig) int, args ...int) *apart {
	along := uint64(0)
	for _, i := range args {
		along |= 1 << i
	}
	return &apart{
		loops: loops,
		axis: func(_ *op.Sig, isResult bool, i, loop int) int {
			if isResult || along>>i&1 != 0 {
				return loop
			}
			return -1
		},
	}
}

// first is for operators of which n axes are leading.
func first(n int) func(*op.Sig) int { return func(*op.Sig) int { return n } }

// beforeAxis is for operators with the attribute axis: all axes before it.
func beforeAxis(s *op.Sig) int {
	axis := int(s.Int("axis"))
	if axis < 0 {
		axis += s.Args[0].Shape.Rank()
	}
	return axis
}

var (
	_ = registerApart(leading(beforeAxis, 0), "softmax", "log_softmax", "hardmax", "layer_normalization", "rms_normalization", "arg_max", "arg_min", "top_k", "gather")
	_ = registerApart(leading(first(1), 0, 3), "conv", "fused_conv")
	_ = registerApart(leading(first(1), 0), "conv_integer", "lrn", "group_normalization", "row_distance")
	_ = registerApart(leading(first(1), 0), "qlinear_conv")
	_ = registerApart(leading(first(1), 0, 1), "grid_sample")
	_ = registerApart(leading(first(1), 0, 2, 4), "deform_conv")
	_ = registerApart(leading(first(1), 0, 1, 2, 3, 4, 5), "linear_attention")
	_ = registerApart(leading(first(1), 0), "affine_grid", "col2im", "couple_pairs")
	_ = registerApart(leading(first(1), 1), "max_roi_pool")
	_ = registerApart(leading(first(1), 1, 2), "roi_align")
	_ = registerApart(leading(first(2), 0), "average_pool", "global_average_pool", "global_max_pool")
	_ = registerApart(leading(valuesOnly, 0), "max_pool")
	_ = registerApart(leading(matrices, 0), "trilu", "det", "inverse")
	_ = registerApart(leading(kept, 0),
		"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_l1", "reduce_l2", "reduce_sum_square", "reduce_log_sum", "reduce_log_sum_exp")
	_ = registerApart(scaledApart, "quantize_linear", "dequantize_linear")
	_ = registerApart(channelsApart(first(2), 1, 2), "instance_normalization")
	_ = registerApart(channelsApart(inferred, 1, 2, 3, 4), "batch_normalization")
	_ = registerApart(attentionApart, "attention")
	_ = registerApart(rotaryApart, "rotary_embedding")
	_ = registerApart(productApart, "matmul_integer", "qlinear_matmul")
)

// valuesOnly is for pools: their indices count the elements of all planes.
func valuesOnly(s *op.Sig) int {
	if len(s.Results) > 1 && !s.Results[1].IsZero() {
		return 0
	}
	return 2
}

// matrices is for operators on the last two axes.
func matrices(s *op.Sig) int { return s.Args[0].Shape.Rank() - 2 }

// kept is for reductions: the axes before the first one that is reduced.
func kept(s *op.Sig) int {
	var buf [op.MaxRank]int
	axes, known, err := s.AppendReduceAxes(buf[:0], s.Args[0].Shape.Rank())
	if err != nil || !known {
		return 0
	}
	n := s.Args[0].Shape.Rank()
	for _, a := range axes {
		n = min(n, a)
	}
	return n
}

// scaledApart are the axes before the one that scales belong to, all axes if
// there is one scale. Scales of blocks have those axes, too.
var scaledApart = &apart{
	loops: unscaled,
	axis: func(s *op.Sig, isResult bool, i, loop int) int {
		if !isResult && i > 0 && s.Args[i].Shape.Rank() < 2 {
			return -1
		}
		return loop
	},
}

func unscaled(s *op.Sig) int {
	scales, err := s.Scales()
	switch {
	case err != nil:
		return 0
	case scales.Groups != 0 && (scales.Groups != 1 || scales.Blocked):
		return scales.Axis
	}
	return s.Args[0].Shape.Rank()
}

// inferred is for a normalisation by statistics that are operands.
func inferred(s *op.Sig) int {
	if s.Int("training_mode") != 0 {
		return 0
	}
	return s.Args[0].Shape.Rank()
}

// channelsApart are samples, and channels, which are axis 0 of some operands.
func channelsApart(loops func(*op.Sig) int, perChannel ...int) *apart {
	along := uint64(0)
	for _, i := range perChannel {
		along |= 1 << i
	}
	return &apart{
		loops: loops,
		axis: func(_ *op.Sig, isResult bool, i, loop int) int {
			switch {
			case isResult || i == 0:
				return loop
			case loop == 1 && along>>i&1 != 0:
				return 0
			}
			return -1
		},
	}
}

// attentionApart are samples. A mask has an axis of them or is broadcast.
var attentionApart = &apart{
	loops: first(1),
	axis: func(s *op.Sig, isResult bool, i, _ int) int {
		if !isResult && i == 3 {
			if mask := s.Args[3].Shape; mask.Rank() < 4 || mask.Size(0) == 1 {
				return -1
			}
		}
		return 0
	},
}

// rotaryApart are samples. Angles are per sample, unless positions choose them.
var rotaryApart = &apart{
	loops: first(1),
	axis: func(s *op.Sig, isResult bool, i, _ int) int {
		if !isResult && (i == 1 || i == 2) && s.Has(3) {
			return -1
		}
		return 0
	},
}

// productApart are the axes of batches, with the two matrices broadcast to
// them.
var productApart = &apart{
	loops: func(s *op.Sig) int {
		for _, t := range s.Args {
			if !t.IsZero() && t.Shape.Rank() < 2 && t.Shape.NumElements() > 1 {
				return 0
			}
		}
		return s.Results[0].Shape.Rank() - 2
	},
	axis: func(s *op.Sig, isResult bool, i, loop int) int {
		if isResult {
			return loop
		}
		if s.Def.Name == "matmul_integer" && i > 1 || s.Def.Name == "qlinear_matmul" && i != 0 && i != 3 {
			return -1
		}
		return alignedAxis(s.Args[i].Shape, s.Results[0].Shape, loop)
	},
}
