package conv

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// A depthwise convolution has too few products per patch to gather patches or
// to transpose its sums: its vectors are neighbours of one channel.

// depthwiseChannels is the most output channels of a group of one input channel
// that are computed in this way.
const depthwiseChannels = 2

// prepareDepthwise makes a tile of rows of one channel, many enough that what
// it copies is little more than what it computes, or of several whole channels.
func (c *Conv) prepareDepthwise() {
	c.rowTile, c.colTile = 1, 1
	c.rowTiles, c.colTiles = c.perGroup, 0
	c.planes = 1
	if c.outArea == 0 {
		return
	}
	work := c.out[2] * c.taps
	c.colTile = kernel.EvenTile(c.out[1], min(max(1, 4*kernel.RangeElements/work), c.out[1]), 1)
	// A tile's rows lie in one plane of the output.
	c.colTiles = c.out[0] * kernel.CeilDiv(c.out[1], c.colTile)
	if c.colTiles == 1 {
		c.planes = min(max(1, kernel.RangeElements/(work*c.out[1])), kernel.CeilDiv(c.Batch*c.Group, kernel.WantedTiles))
	}
	c.rows.prepare(c.v, &c.Window, c.colTile, 0)
	c.region = c.rows.floats
}

// depthwiseTile computes one run of colTile rows of one output channel per
// group, for a few groups.
func (c *Conv) depthwiseTile(first, row, part int, scratch []float32, args *Args) {
	perPlane := kernel.CeilDiv(c.out[1], c.colTile)
	z, y := part/perPlane, part%perPlane*c.colTile
	rows := min(c.colTile, c.out[1]-y)
	for i := first; i < min(first+c.planes, c.Batch*c.Group); i++ {
		c.depthwiseRows(i/c.Group, i%c.Group, row, z, y, rows, scratch, args)
	}
}

func (c *Conv) depthwiseRows(batch, group, row, z, y, rows int, scratch []float32, args *Args) {
	c.rows.copy(c.v, scratch, args.In[batch*c.InSteps.Batch+group*c.InSteps.Channel:], 0, z, y, rows, c.rowChange(group, args))
	m := group*c.perGroup + row
	n := (rows-1)*c.OutSteps.Row + c.out[2]
	out, weights := args.Out[batch*c.OutSteps.Batch+m*c.OutSteps.Channel+c.OutSteps.at(z, y, 0):][:n], args.Weights[m*c.taps:][:c.taps]
	call := c.rows.call(c.v, scratch, rows)
	call.Out, call.Weights = &out[0], &weights[0]
	if c.Residual {
		s := &c.ResidualSteps
		residual := args.Residual[batch*s.Batch+m*s.Channel+s.at(z, y, 0):][:(rows-1)*s.Row+c.out[2]]
		call.Residual, call.ResidualStep = &residual[0], 4*s.Row
	}
	if c.Bias != gemm.NoBias {
		call.Bias = args.Bias[m]
	}
	var clamped bool
	call.Low, call.High, clamped = c.Act.Clamp()
	c.rows.sum(c.v, call)
	switch {
	case clamped:
	case c.outWhole:
		c.Act.Apply(c.v, out)
	default:
		for i := range rows {
			c.Act.Apply(c.v, out[i*c.OutSteps.Row:][:c.out[2]])
		}
	}
}
