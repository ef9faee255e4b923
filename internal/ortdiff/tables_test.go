package ortdiff_test

import (
	"maps"
	"slices"
)

// generators draw a model of the operator in the opset that is set. Models of
// an operator without a generator are drawn from its cases ([fromCases]).
var generators = map[string]func(*drawer){}

// never are operators that ONNX Runtime knows and does not run in any form that
// Tenure has.
var never = map[string]bool{"SequenceMap": true, "SwiGLU": true, contribDomain + "::BiasDropout": true, contribDomain + "::BitmaskDropout": true,
	contribDomain + "::BitmaskBiasDropout": true, contribDomain + "::BiasAdd": true, contribDomain + "::BiasSoftmax": true,
	contribDomain + "::BiasSplitGelu": true, contribDomain + "::GatedRelativePositionBias": true, contribDomain + "::GemmFastGelu": true,
	contribDomain + "::GroupNorm": true, contribDomain + "::SkipGroupNorm": true, contribDomain + "::NhwcConv": true,
	contribDomain + "::PackedAttention": true, contribDomain + "::PackedMultiHeadAttention": true, contribDomain + "::RelativePositionBias": true,
	contribDomain + "::RemovePadding": true, contribDomain + "::RestorePadding": true, contribDomain + "::SwiGLU": true,
	contribDomain + "::NhwcFusedConv": true, contribDomain + "::QLinearReduceMean": true, "Scale": true}

// random are operators whose results ONNX Runtime draws otherwise.
// TestRandomOperators of package acceptance compares their distributions.
var random = map[string]bool{"RandomNormal": true, "RandomNormalLike": true, "RandomUniform": true, "RandomUniformLike": true, "Bernoulli": true,
	"Multinomial": true}

// wild are operators that take any numbers: no sums and products of them, or
// those of two alone.
var wild = slices.Concat(slices.Collect(maps.Keys(unaries)), slices.Collect(maps.Keys(binaries)), []string{"Max", "Min", "Mod", "Where", "Clip", "PRelu",
	"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split", "Slice", "Tile", "Expand", "DepthToSpace", "SpaceToDepth",
	"ReverseSequence", "Trilu", "CenterCropPad", "Pad", "Gather", "GatherElements", "GatherND", "Scatter", "TensorScatter", "OneHot", "Compress",
	"NonZero", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "TopK", "ConstantOfShape", "Constant", "EyeLike", "Cast", "CastLike", "BitCast", "Dropout",
	"If"})

// calm are operators in which an infinity or a NaN goes where a weight of zero
// happens to multiply it, or a running sum to pass.
var calm = []string{contribDomain + "::GridSample", "LRN", "DeformConv", "GridSample", "Det", "Resize", "Upsample", "RoiAlign", "LpPool", "AveragePool", "AffineGrid", "GroupNormalization",
	"InstanceNormalization", "DFT", "STFT", "DynamicQuantizeLinear", "Attention", "LayerNormalization", "SoftmaxCrossEntropyLoss", "Softmax", "LogSoftmax"}

// tolerances are how far results of an operator may be apart; of those that are
// not here they must be equal.
var tolerances = map[string]tolerance{}
