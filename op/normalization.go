package op

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// Normalisations declare [Same] although an element of the result needs its
// whole row, or its neighbours. Their kernels read what they need of a row, a
// group or a column before they overwrite it, and split work between those, so
// that the operand's bytes may be the result's.
var normalizationOps = []*Def{
	{
		Name: "softmax", ONNX: "Softmax", Doc: "divides exp(x) by its sum along an axis",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{intAttr("axis", -1)}, Infer: inferSoftmax, Alias: SameAs(0),
	},
	{
		Name: "log_softmax", ONNX: "LogSoftmax", Doc: "computes the logarithm of softmax along an axis",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{intAttr("axis", -1)}, Infer: inferSoftmax, Alias: SameAs(0),
	},
	{
		Name: "layer_normalization", ONNX: "LayerNormalization",
		Doc:     "normalises x over the axes from the given one on, multiplies by scale and adds bias; optionally returns mean and 1 / standard deviation",
		MinArgs: 2, MaxArgs: 3, MinResults: 1, MaxResults: 3,
		Attrs: []AttrDef{intAttr("axis", -1), floatAttr("epsilon", 1e-5), intAttr("stash_type", 1)},
		Infer: inferLayerNorm, Alias: SameAs(0),
	},
	{
		Name: "batch_normalization", ONNX: "BatchNormalization",
		Doc:     "normalises x [N,C,...] by a mean and a variance per channel; in training mode by those of x, which it returns too",
		MinArgs: 5, MaxArgs: 5, MinResults: 1, MaxResults: 3,
		Attrs: []AttrDef{floatAttr("epsilon", 1e-5), floatAttr("momentum", 0.9), intAttr("training_mode", 0)},
		Infer: inferBatchNorm,
		Alias: Aliases(Rule{Kind: Same}, Rule{Arg: 3, Result: 1, Kind: Same}, Rule{Arg: 4, Result: 2, Kind: Same}),
	},
	{
		Name: "instance_normalization", ONNX: "InstanceNormalization", Doc: "normalises x [N,C,...] within each channel, multiplies by scale [C] and adds bias [C]",
		MinArgs: 3, MaxArgs: 3, Attrs: []AttrDef{floatAttr("epsilon", 1e-5)}, Infer: inferInstanceNorm, Alias: SameAs(0),
	},
	{
		Name: "group_normalization", ONNX: "GroupNormalization", Doc: "normalises x [N,C,...] within each group of channels, multiplies by scale [C] and adds bias [C]",
		MinArgs: 3, MaxArgs: 3,
		Attrs: []AttrDef{needed("num_groups", Int), floatAttr("epsilon", 1e-5), intAttr("stash_type", 1)},
		Infer: inferGroupNorm, Alias: SameAs(0),
	},
	{
		Name: "lrn", ONNX: "LRN", Doc: "divides each element of x [N,C,D,...] by (bias + alpha/size * s)^beta, with the sum s of the squares of the size channels around its own",
		MinArgs: 1, MaxArgs: 1,
		Attrs: []AttrDef{floatAttr("alpha", 1e-4), floatAttr("beta", 0.75), floatAttr("bias", 1), needed("size", Int)},
		Infer: inferLRN, Alias: SameAs(0),
	},
}

func inferSoftmax(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if sh := s.Args[0].Shape; sh != nil {
		if _, err := axisOf(s.Int("axis"), sh.Rank()); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}

// stashType is the element type that statistics are kept in.
func (s *Sig) stashType() (dtype.DType, error) {
	dt, err := dtype.FromONNX(int32(min(max(s.Int("stash_type"), 0), 1<<20)))
	if err != nil || dt != dtype.F32 && dt != dtype.BF16 {
		return dt, badDType("stash_type: got %d, want 1 for f32 or 16 for bf16", s.Int("stash_type"))
	}
	return dt, nil
}

func inferLayerNorm(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, floats); err != nil {
		return err
	}
	for i := 1; i < len(s.Args); i++ {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	stash, err := s.stashType()
	if err != nil {
		return err
	}
	s.Results[0] = x
	for i := 1; i < len(s.Results); i++ {
		s.Results[i] = Type{DType: stash}
	}
	if x.Shape == nil {
		return nil
	}
	axis, err := axisOf(s.Int("axis"), x.Shape.Rank())
	if err != nil {
		return err
	}
	dims := x.Shape.Dims()
	row, err := shape.FromDims(dims[axis:]...)
	if err != nil {
		return err
	}
	for i := 1; i < len(s.Args); i++ {
		if err := s.wantSpread(i, row); err != nil {
			return err
		}
	}
	for i := axis; i < len(dims); i++ {
		dims[i] = shape.N(1)
	}
	for i := 1; i < len(s.Results); i++ {
		if err := s.give(i, stash, dims...); err != nil {
			return err
		}
	}
	return nil
}

// channelOps checks x [N,C,...] of the given least rank and the operands after
// it, which hold one number per channel, and returns C as far as it is known.
func (s *Sig) channelOps(minRank int) (shape.Dim, error) {
	channels := shape.Unknown
	for i := range s.Args {
		if err := s.want(i, floats); err != nil {
			return channels, err
		}
	}
	if err := s.wantRank(0, minRank, -1); err != nil {
		return channels, err
	}
	if sh := s.Args[0].Shape; sh != nil {
		if channels = shape.N(1); sh.Rank() > 1 {
			channels = sh.Dim(1)
		}
	}
	for i := 1; i < len(s.Args); i++ {
		if err := s.wantVector(i, channels, "channel"); err != nil {
			return channels, err
		}
		if sh := s.Args[i].Shape; sh != nil {
			channels, _ = unify(channels, sh.Dim(0))
		}
	}
	return channels, nil
}

func inferBatchNorm(s *Sig) error {
	channels, err := s.channelOps(1)
	if err != nil {
		return err
	}
	for _, pair := range [][2]int{{2, 1}, {4, 3}} {
		if err := s.wantLike(pair[0], pair[1]); err != nil {
			return err
		}
	}
	training, err := s.wantFlag("training_mode")
	if err != nil {
		return err
	}
	if !training && len(s.Results) > 1 {
		return badShape("got %d results, want 1 unless training_mode is 1", len(s.Results))
	}
	for i := 1; i < len(s.Results); i++ {
		if err := s.give(i, s.Args[3].DType, channels); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}

func inferInstanceNorm(s *Sig) error {
	if _, err := s.channelOps(3); err != nil {
		return err
	}
	for i := 1; i < 3; i++ {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}

func inferGroupNorm(s *Sig) error {
	channels, err := s.channelOps(2)
	if err != nil {
		return err
	}
	for i := 1; i < 3; i++ {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	if _, err := s.stashType(); err != nil {
		return err
	}
	groups := s.Int("num_groups")
	if groups < 1 {
		return badShape("num_groups: got %d, want 1 or more", groups)
	}
	if c, ok := channels.Size(); ok && int64(c)%groups != 0 {
		return badShape("num_groups: got %d for %s, want a divisor of its %d channels", groups, s.Args[0], c)
	}
	return s.giveLike(0)
}

func inferLRN(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if err := s.wantRank(0, 3, -1); err != nil {
		return err
	}
	if n := s.Int("size"); n < 1 || n > math.MaxInt32 {
		return badShape("got size %d, want 1 to %d", n, math.MaxInt32)
	}
	return s.giveLike(0)
}
