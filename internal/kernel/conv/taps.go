package conv

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
)

// With much dilation, the taps of a block of positions lie far apart: a copied
// plane would be mostly elements that no tap reads, and at the borders most
// taps lie in the padding. If there are enough channels, the products of one
// tap are deep enough for a call of their own. Then each tap reads the input in
// place, for those positions for which it lies inside, and adds to their sums.

const (
	// tapChannels is the least number of input channels of a group: fewer do
	// not outweigh that each tap loads and stores the sums.
	tapChannels = 128
	// tapDilation is the least dilation: with less, copied planes are small,
	// and stay in the first-level cache, in which planes in place may meet in
	// few sets.
	tapDilation = 6
)

// mayTaps reports whether taps are computed one after the other. It follows
// from attributes and the shape of the weights, because the order of packed
// weights does.
func (c *Conv) mayTaps(inputs, taps int) bool {
	if inputs < tapChannels || c.Pool != nil || c.ScaleShift || c.PrologueRelu {
		return false
	}
	for i, d := range c.Window.Dilation {
		if d >= tapDilation && c.Window.Kernel[i] > 1 {
			return taps > 1
		}
	}
	return false
}

// finishTaps makes the offsets of the channels of a block, which are the same
// for each tap.
func (c *Conv) finishTaps() {
	d, channel := &c.direct, c.view.InSteps.Channel
	d.block = min(directDepth, c.InChannels/c.Group, max(1, math.MaxInt32/4/max(channel, 1)))
	d.planes = 0
	d.offsets = slices.Grow(d.offsets[:0], d.block)
	for ch := range d.block {
		d.offsets = append(d.offsets, int32(4*ch*channel))
	}
}

// tapSums computes the sums of an area for channels [row, end) of a group, a
// tap after the other. Sums that no tap reaches are zero.
func (c *Conv) tapSums(batch, group, row, end int, a outputArea, sums []float32, args *Args) {
	w := &c.view
	channels := c.InChannels / c.Group
	for p := row; p < end; p += 2 * c.v.Conv.Lanes {
		clear(sums[(p-row)*c.sumRows(a.rows*a.cols):][:a.rows*a.cols*c.vectorsAt(p)*c.v.Conv.Lanes])
	}
	in := args.In[batch*w.InSteps.Batch+group*channels*w.InSteps.Channel:]
	for tap := range c.taps {
		lo, hi, shift := w.overlap(tap)
		if a.z < lo[0] || a.z >= hi[0] {
			continue
		}
		part := outputArea{z: a.z, y: max(a.y, lo[1]), x: max(a.x, lo[2])}
		part.rows, part.cols = min(a.y+a.rows, hi[1])-part.y, min(a.x+a.cols, hi[2])-part.x
		if part.rows <= 0 || part.cols <= 0 {
			continue
		}
		x := in[w.InSteps.at(part.z*w.stride[0]+shift[0], part.y*w.stride[1]+shift[1], part.x*w.stride[2]+shift[2]):]
		c.tapBlocks(group, row, end, tap, a, part, x, sums, args)
	}
}

// tapBlocks adds the products of one tap to the sums of a part of an area. x
// begins with the input of the part's first position.
func (c *Conv) tapBlocks(group, row, end, tap int, a, part outputArea, x, sums []float32, args *Args) {
	d, channels := &c.direct, c.InChannels/c.Group
	capacity := c.sumRows(a.rows * a.cols)
	skipped := (part.y-a.y)*a.cols + part.x - a.x
	for ch := 0; ch < channels; ch += d.block {
		call := kernel.ConvTile{Depth: min(d.block, channels-ch), Offsets: &d.offsets[0], Add: 1}
		for p := row; p < end; p += 2 * c.v.Conv.Lanes {
			at, step := c.panels.at(group, p, tap*channels+ch)
			vectors := c.vectorsAt(p)
			weights := c.weights(args, at, (call.Depth-1)*step+vectors*c.v.Conv.Lanes)
			call.Weights, call.WeightStep, call.SumStep = &weights[0], 4*step, 4*vectors*c.v.Conv.Lanes
			c.directPanel(&call, vectors, part, a.cols, x[ch*c.view.InSteps.Channel:], sums[(p-row)*capacity+skipped*call.SumStep/4:])
		}
	}
}
