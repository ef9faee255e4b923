package conv

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// Weights of 16 bits are widened block by block, just before they are
// multiplied: a block is read many times from the cache, and float32 weights of
// the whole convolution never exist.

// isHalf reports whether the weights have 16 bits.
func (c *Conv) isHalf() bool { return c.WeightType != dtype.Invalid }

// weights returns n weights from one on.
func (c *Conv) weights(args *Args, at, n int) []float32 {
	if !c.isHalf() {
		return args.Weights[at:][:n]
	}
	wide := args.wide[:n]
	elementwise.Widen(c.v, c.WeightType, wide, args.HalfWeights[at:at+n], 0, 1)
	if c.panels.winograd > 0 && args.HalfWeights[len(args.HalfWeights)-1] != 0 {
		for i := range wide {
			wide[i] *= halfFactor
		}
	}
	return wide
}

// wideBlock is the scratch for the weights that a direct convolution widens at
// once.
func (c *Conv) wideBlock() int {
	if !c.isHalf() {
		return 0
	}
	depth := c.direct.block
	if c.panels.winograd > 0 {
		return depth * 2 * c.v.Conv.Lanes
	}
	if c.panels.taps == 0 {
		depth *= c.taps
	}
	return depth * max(c.panels.width, 2*c.v.Conv.Lanes)
}

// widenRows widens columns [k, k+depth) of the weights of a rectangle's
// channels, row after row. Those of a packed row are brought together behind
// the rows.
func (c *Conv) widenRows(r *gemm.Rect, k, depth int, args *Args) {
	for i := range r.Rows {
		to := args.wide[i*depth:][:depth]
		if c.PackedWeights {
			row := kernel.View[uint16](kernel.BytesOf(args.wide[r.Rows*depth:][:depth]))[:depth]
			panelRow(&c.panels, row, args.HalfWeights, r.Row+i, k)
			elementwise.Widen(c.v, c.WeightType, to, row, 0, 1)
			continue
		}
		elementwise.Widen(c.v, c.WeightType, to, args.HalfWeights[(r.Row+i)*c.depth+k:], 0, 1)
	}
}
