package op

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// fusedOps have no model format: passes make them out of several operators.
var fusedOps = []*Def{{
	Name: "fused_conv",
	Doc: "computes conv(relu?(x * pre_scale + pre_shift), w) + bias + residual, then an activation, then a pooling, or a depthwise convolution " +
		"by pool_w with pool_bias and an activation; operands x, w, bias, residual, pre_scale, pre_shift, pool_w, pool_bias, those of pre_ of f32 " +
		"where x has 16 bits, those of pool_ of f32, as x is then",
	MinArgs: 2, MaxArgs: 8,
	Attrs: append([]AttrDef{
		intAttr("pre_relu", 0),
		// one of convActivations; leaky_relu has alpha, clip goes from alpha to
		// beta
		stringAttr("activation", ""), floatAttr("alpha", 0), floatAttr("beta", 0),
		// "", max, average or depthwise, over the activated result
		stringAttr("pool", ""), intsAttr("pool_kernel"), intsAttr("pool_strides"), intsAttr("pool_pads"),
		intAttr("pool_ceil", 0), intAttr("count_include_pad", 0),
		// of a depthwise convolution
		stringAttr("pool_activation", ""), floatAttr("pool_alpha", 0), floatAttr("pool_beta", 0),
	}, convAttrs...),
	Infer: inferFusedConv,
	Alias: Aliases(Rule{Arg: 3, Kind: Accumulate, When: func(s *Sig) bool { return s.Str("pool") == "" }}),
}, {
	Name: "fused_matmul",
	Doc: "computes a * b + bias + residual, then an activation: the product of matmul, with the last two axes of b swapped first if transB, " +
		"and a bias of one number per column; operands a, b, bias, residual",
	MinArgs: 2, MaxArgs: 4,
	Attrs: []AttrDef{
		intAttr("transB", 0),
		// "", relu, leaky_relu (alpha), sigmoid, tanh, clip (from alpha to
		// beta), gelu, gelu_tanh or silu
		stringAttr("activation", ""), floatAttr("alpha", 0), floatAttr("beta", 0),
	},
	Infer: inferFusedMatMul,
	Alias: Aliases(Rule{Arg: 3, Kind: Accumulate}),
}, fusedAttention}

// convActivations are the activations of fused_conv.
var convActivations = []string{"", "relu", "leaky_relu", "sigmoid", "tanh", "clip", "silu", "hard_swish", "gelu", "gelu_tanh"}

func inferFusedMatMul(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	for i := 1; i < 4; i++ {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	swap, err := s.wantFlag("transB")
	if err != nil {
		return err
	}
	if _, err := s.wantOneOf("activation", "", "relu", "leaky_relu", "sigmoid", "tanh", "clip", "gelu", "gelu_tanh", "silu"); err != nil {
		return err
	}
	for i := range 2 {
		if err := s.wantRank(i, 2, -1); err != nil {
			return err
		}
	}
	if err := s.giveProduct(s.Args[0].DType, 0, 1, swap); err != nil || s.Results[0].Shape == nil {
		return err
	}
	var buf [fewDims]shape.Dim
	dims := appendDims(buf[:0], s.Results[0].Shape)
	if err := s.wantVector(2, dims[len(dims)-1], "column"); err != nil {
		return err
	}
	return s.wantDims(3, dims)
}

func inferFusedConv(s *Sig) error {
	for _, flag := range []string{"pre_relu", "pool_ceil", "count_include_pad"} {
		if _, err := s.wantFlag(flag); err != nil {
			return err
		}
	}
	for _, name := range []string{"activation", "pool_activation"} {
		if _, err := s.wantOneOf(name, convActivations...); err != nil {
			return err
		}
	}
	pool, err := s.wantOneOf("pool", "", "max", "average", "depthwise")
	if err != nil {
		return err
	}
	if err := s.wantConvTypes(); err != nil {
		return err
	}
	_, dims, err := s.conv()
	if err != nil {
		return err
	}
	dt := s.Args[0].DType
	if dims == nil {
		return s.giveAny(0, dt)
	}
	for i := 4; i < 6; i++ {
		channels := shape.Unknown
		if sh := s.Args[0].Shape; sh != nil {
			channels = sh.Dim(1)
		}
		if err := s.wantVector(i, channels, "input channel"); err != nil {
			return err
		}
	}
	if err := s.wantDims(3, dims); err != nil {
		return err
	}
	if err := s.wantPoolOperands(pool, dims[1]); err != nil {
		return err
	}
	if pool != "" {
		if _, dims, err = s.fusedPool(dims); err != nil {
			return err
		}
	}
	return s.give(0, dt, dims...)
}

// wantPoolOperands checks what a depthwise convolution in the place of a
// pooling has, and others do not.
func (s *Sig) wantPoolOperands(pool string, channels shape.Dim) error {
	const weights, bias = 6, 7
	if pool != "depthwise" {
		switch {
		case s.Has(weights) || s.Has(bias):
			return badShape("operands %d and %d: got weights of a depthwise convolution, want none for pool %q", weights, bias, pool)
		case s.Str("pool_activation") != "":
			return fmt.Errorf("attribute %q: got %q, want none for pool %q: %w", "pool_activation", s.Str("pool_activation"), pool, ErrUnsupported)
		}
		return nil
	}
	for _, i := range []int{0, weights} {
		if err := s.want(i, setOf(dtype.F32)); err != nil {
			return err
		}
	}
	switch {
	case !s.Has(weights):
		return badShape("operand %d: got none, want the weights of the depthwise convolution", weights)
	case s.Int("pool_ceil") != 0 || s.Int("count_include_pad") != 0:
		return fmt.Errorf("attributes \"pool_ceil\" and \"count_include_pad\": got %d and %d, want 0 for a depthwise convolution: %w", s.Int("pool_ceil"), s.Int("count_include_pad"), ErrUnsupported)
	}
	w, err := s.fusedPoolWindow(s.Args[0].Shape.Rank() - 2)
	if err != nil {
		return err
	}
	if err := s.wantDims(weights, append([]shape.Dim{channels, shape.N(1)}, w.kernel...)); err != nil {
		return err
	}
	return s.wantVector(bias, channels, "output channel")
}

// wantDims checks that an operand, if present, has the given dimensions.
func (s *Sig) wantDims(arg int, dims []shape.Dim) error {
	if err := s.wantRank(arg, len(dims), len(dims)); err != nil || !s.Has(arg) || s.Args[arg].Shape == nil {
		return err
	}
	for i, d := range dims {
		if _, ok := unify(d, s.Args[arg].Shape.Dim(i)); !ok {
			return badShape("operand %d: got %s, want %v", arg, s.Args[arg], slices.Clone(dims))
		}
	}
	return nil
}

// fusedPool is the pooling over the convolution's result.
func (s *Sig) fusedPool(conv []shape.Dim) ([]WindowAxis, []shape.Dim, error) {
	w, err := s.fusedPoolWindow(len(conv) - 2)
	if err != nil {
		return nil, nil, err
	}
	return w.slide(conv[2:], conv[:2:2])
}

// fusedPoolWindow returns the window of a fused pooling over n axes.
func (s *Sig) fusedPoolWindow(n int) (window, error) {
	w := window{ceil: s.Int("pool_ceil") == 1, pooling: s.Str("pool") != "depthwise", kernel: make([]shape.Dim, n)}
	sizes, err := s.perAxis("pool_kernel", n, 1, 0)
	if err != nil {
		return w, err
	}
	for i, k := range sizes {
		if k == 0 {
			return w, badShape("pool_kernel: got none, want %d numbers", n)
		}
		w.kernel[i] = shape.N(k)
	}
	if w.strides, err = s.perAxis("pool_strides", n, 1, 1); err != nil {
		return w, err
	}
	if w.pads, err = s.perAxis("pool_pads", 2*n, 0, 0); err != nil {
		return w, err
	}
	w.dilations = make([]int, n)
	for i := range w.dilations {
		w.dilations[i] = 1
	}
	return w, nil
}

// FusedPoolSlide is FusedPoolAxes for results of the convolution of any spatial
// sizes. The call has a pooling.
func (s *Sig) FusedPoolSlide() (Slide, error) {
	if err := s.wantStatic(0); err != nil {
		return Slide{}, err
	}
	w, err := s.fusedPoolWindow(s.Args[0].Shape.Rank() - 2)
	return Slide{w}, err
}

// FusedPoolAxes returns the spatial axes of the pooling of a call of
// fused_conv with static operands, nil without one.
func (s *Sig) FusedPoolAxes() ([]WindowAxis, error) {
	if err := s.wantStatic(0, 1); err != nil || s.Str("pool") == "" {
		return nil, err
	}
	_, dims, err := s.conv()
	if err != nil {
		return nil, err
	}
	axes, _, err := s.fusedPool(dims)
	return axes, err
}
