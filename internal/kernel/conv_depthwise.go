package kernel

// A depthwise convolution has too few products per patch to gather patches or to transpose its sums: its vectors are neighbours of one channel.

// prepareDepthwise makes a tile of rows of one channel, many enough that what it copies is little more than what it computes, or of
// several whole channels.
func (c *Conv) prepareDepthwise() {
	c.rowTile, c.colTile = 1, 1
	c.rowTiles, c.colTiles = c.perGroup, 0
	c.planes = 1
	if c.outArea == 0 {
		return
	}
	work := c.out[2] * c.taps
	c.colTile = evenTile(c.out[1], min(max(1, 4*RangeElements/work), c.out[1]), 1)
	// A tile's rows lie in one plane of the output.
	c.colTiles = c.out[0] * CeilDiv(c.out[1], c.colTile)
	if c.colTiles == 1 {
		c.planes = min(max(1, RangeElements/(work*c.out[1])), CeilDiv(c.Batch*c.Group, wantedTiles))
	}
	c.rows.prepare(c.v, &c.Window, c.colTile, 0)
	c.region = c.rows.floats
}

// depthwiseTile computes one run of colTile rows of one output channel per group, for a few groups.
func (c *Conv) depthwiseTile(first, row, part int, scratch []float32, args *ConvArgs) {
	perPlane := CeilDiv(c.out[1], c.colTile)
	z, y := part/perPlane, part%perPlane*c.colTile
	rows := min(c.colTile, c.out[1]-y)
	for i := first; i < min(first+c.planes, c.Batch*c.Group); i++ {
		c.depthwiseRows(i/c.Group, i%c.Group, row, z, y, rows, scratch, args)
	}
}

func (c *Conv) depthwiseRows(batch, group, row, z, y, rows int, scratch []float32, args *ConvArgs) {
	c.rows.copy(c.v, scratch, args.In[batch*c.InBatchStride+group*c.inArea:][:c.inArea], 0, z, y, rows, c.rowChange(group, args))
	m := group*c.perGroup + row
	n := rows * c.out[2]
	at := m*c.outArea + (z*c.out[1]+y)*c.out[2]
	out, weights := args.Out[batch*c.OutBatchStride+at:][:n], args.Weights[m*c.taps:][:c.taps]
	call := c.rows.call(c.v, scratch, rows)
	call.out, call.weights = &out[0], &weights[0]
	if c.Residual {
		residual := args.Residual[batch*c.ResidualBatchStride+at:][:n]
		call.residual, call.residualStep = &residual[0], call.outStep
	}
	if c.Bias != NoBias {
		call.bias = args.Bias[m]
	}
	var clamped bool
	call.low, call.high, clamped = c.Act.clamp()
	windowRows(c.v, WindowSum, call)
	if !clamped {
		c.Act.apply(c.v, out)
	}
}
