package pass

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
)

const (
	// mostDepthwiseTaps bounds the taps along an axis of a depthwise
	// convolution that is fused: with more, rows that are computed twice take
	// longer than a result in memory.
	mostDepthwiseTaps = 5
	// mostProducts bounds the products per element of the convolution before
	// it, for windows of more than one tap.
	mostProducts = 512
)

// fuseDepthwise fuses a depthwise convolution, and its activation, into the
// convolution of one group that it alone reads. The first result, often the
// largest of a network, is never a value: its rows are computed where the
// depthwise convolution needs them.
func (f *fuser) fuseDepthwise(conv *ir.Call, local map[*ir.Call]bool) {
	if !isPlanar(conv) || !f.feedsDepthwise(conv) {
		return
	}
	next := f.nextOf(conv, local)
	if next == nil || !isPlanar(next) || next.Args[argX].Value != conv.Results[0] || !f.isDepthwise(next) {
		return
	}
	bias := arg(next, argBias)
	if bias != nil && !f.exists(bias, conv) {
		return
	}
	sig, weights := attrsOf(next), next.Args[argW].Value
	fused(conv)
	attrs := conv.Attrs.With("pool", "depthwise").With("pool_kernel", []int64{int64(f.ctx.size(weights, 2)), int64(f.ctx.size(weights, 3))})
	attrs = attrs.With("pool_strides", orOnes(sig.Ints("strides"), 2)).With("pool_pads", orZeros(sig.Ints("pads"), 4))
	if next.Op == fusedConvOp {
		attrs = attrs.With("pool_activation", sig.Str("activation")).With("pool_alpha", sig.Float("alpha")).With("pool_beta", sig.Float("beta"))
	}
	conv.Attrs = attrs
	conv.Args = append(conv.Args, next.Args[argW])
	if bias != nil {
		conv.Args = append(conv.Args, ir.Operand{Value: bias})
	}
	f.take(conv, next)
}

// isPlanar reports whether a call is a convolution of pictures of float32 by
// constant weights that has neither a residual nor a pool.
func isPlanar(c *ir.Call) bool {
	if c.Op.Name != "conv" && c.Op != fusedConvOp {
		return false
	}
	r, w := c.Results[0], c.Args[argW].Value
	if r.Type.DType != dtype.F32 || !isStatic(r) || rank(r) != 4 || w.Kind != ir.Weight || !isStatic(w) {
		return false
	}
	return c.Op != fusedConvOp || attrsOf(c).Str("pool") == "" && arg(c, argResidual) == nil
}

// feedsDepthwise reports whether rows of a convolution may be computed twice:
// it has one group, and few products per element.
func (f *fuser) feedsDepthwise(c *ir.Call) bool {
	w := c.Args[argW].Value
	taps := f.ctx.size(w, 2) * f.ctx.size(w, 3)
	return attrsOf(c).Int("group") == 1 && (taps == 1 || taps*f.ctx.size(w, 1) <= mostProducts)
}

// isDepthwise reports whether a convolution has one output channel for each
// input channel and a small window, and nothing is fused before it.
func (f *fuser) isDepthwise(c *ir.Call) bool {
	sig, w := attrsOf(c), c.Args[argW].Value
	if f.ctx.size(w, 1) != 1 || int64(f.ctx.size(w, 0)) != sig.Int("group") || !allOnes(sig.Ints("dilations")) || !explicitPads(sig.Str("auto_pad")) {
		return false
	}
	for i, stride := range orOnes(sig.Ints("strides"), 2) {
		if n := f.ctx.size(w, 2+i); n > mostDepthwiseTaps || int64(n) < stride {
			return false
		}
	}
	return c.Op != fusedConvOp || sig.Int("pre_relu") == 0 && arg(c, argPreScale) == nil && arg(c, argPreShift) == nil
}

// arg returns an operand of a call, nil if it has none.
func arg(c *ir.Call, i int) *ir.Value {
	if i >= len(c.Args) {
		return nil
	}
	return c.Args[i].Value
}
