package conv

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// preparePool sizes tiles for a convolution under a pool. A tile is a block of
// channels and a run of output rows of the pool, along the outermost axis that
// has more than one; the rows of the convolution that they read are computed in
// scratch.
func (c *Conv) preparePool() {
	p := c.Pool
	p.Planes = c.Batch * c.OutChannels
	p.Window.In, p.InSteps = append(p.Window.In[:0], c.Window.Out...), Steps{}
	p.prepare(c.v, kernel.RangeElements/4)
	p.OutSteps.setBatch(c.OutChannels)
	if c.separable() {
		c.prepareSeparable()
		return
	}
	if c.pointwise() && c.inWhole {
		c.view.flatten()
	}
	total := p.out[c.poolAxis()]
	if p.Kind == PoolDepthwise {
		c.tileDepthwise(total)
	} else {
		c.tilePool(total)
	}
	unit := 1
	if c.pooledDirect {
		unit = 2 * c.v.Conv.Lanes
	}
	if c.panels.winograd > 0 {
		c.colTile = c.wholeTiles(c.colTile)
	}
	c.rowTile = kernel.EvenTile(c.perGroup, kernel.CeilDiv(c.rowTile, unit)*unit, unit)
	c.rowTiles, c.colTiles = kernel.CeilDiv(c.perGroup, c.rowTile), kernel.CeilDiv(total, c.colTile)
	c.packB = convCols * min(c.depth, c.block)
	switch depth := min(c.depth, c.block); {
	case c.pooledDirect:
	case c.PackedWeights && c.isHalf():
		c.packA = (c.rowTile + 1) * depth // one row before it is widened
	case c.PackedWeights || c.isHalf():
		c.packA = c.rowTile * depth
	}
	if c.pooledDirect {
		rowTile := c.rowTile
		if c.panels.winograd > 0 {
			c.pooledWinograd()
		} else {
			c.prepareDirect()
			c.rowTile = rowTile
			c.finishDirect()
		}
		c.packB, c.packA = c.direct.planes+c.directSums(), c.wideBlock()
	}
	c.region = c.rowTile*c.regionRows(c.colTile)*c.rowArea() + p.copied.floats
}

// tilePool chooses the channels and the steps of a tile.
func (c *Conv) tilePool(total int) {
	// The region holds as many steps of the pool as fit. For more tiles, first
	// take fewer channels: steps that overlap cost more.
	c.rowTile, c.colTile = min(64, c.perGroup), max(1, total)
	for c.colTile > 1 && c.rowTile*c.regionRows(c.colTile)*c.rowArea() > pooledRegion {
		c.colTile = kernel.CeilDiv(c.colTile, 2)
	}
	tiles := func() int {
		return c.Batch * c.Group * kernel.CeilDiv(c.perGroup, c.rowTile) * kernel.CeilDiv(total, c.colTile)
	}
	for c.rowTile > 16 && tiles() < c.WantedTiles {
		c.rowTile /= 2
	}
	for c.colTile > 4 && tiles() < c.WantedTiles {
		c.colTile = kernel.CeilDiv(c.colTile, 2)
	}
}

// poolAxis is the axis along which a pooled convolution is cut. A pool with
// pads may have several steps where the convolution has one.
func (c *Conv) poolAxis() int {
	if c.out[0] > 1 || c.Pool.out[0] > 1 {
		return 0
	}
	return 1
}

// rowArea is the size of one step along that axis in the convolution's output.
func (c *Conv) rowArea() int {
	if c.poolAxis() == 0 {
		return c.out[1] * c.out[2]
	}
	return c.out[2]
}

// regionRows bounds the steps of the convolution that n steps of the pool read.
func (c *Conv) regionRows(n int) int {
	axis := c.poolAxis()
	p := c.Pool
	return min(c.out[axis], (n-1)*p.stride[axis]+(p.kernel[axis]-1)*p.dilation[axis]+1)
}

// pooledTile computes steps [col, col+colTile) of the pool for a block of
// channels. The residual, if any, has the convolution's shape.
func (c *Conv) pooledTile(batch, group, row, col int, scratch []float32, args *Args) {
	p, axis := c.Pool, c.poolAxis()
	end := min(col+c.colTile, p.out[axis])
	lo := max(0, col*p.stride[axis]-p.padBegin[axis])
	hi := min(p.in[axis], (end-1)*p.stride[axis]-p.padBegin[axis]+(p.kernel[axis]-1)*p.dilation[axis]+1)
	area := c.rowArea()
	size := max(0, hi-lo) * area
	channels := min(c.rowTile, c.perGroup-row)
	first := group*c.perGroup + row

	region, copied := scratch[c.packB:], scratch[c.packB+c.region-p.copied.floats:]
	if c.pooledDirect {
		c.directRegion(region, batch, group, row, lo*area, size, scratch, args)
	} else {
		c.panelRegion(region, batch, first, channels, lo*area, size, scratch, args)
	}

	// Rows of the region count over both outer axes.
	firstZ, lastZ, firstY, lastY, origin := 0, 1, col, end, lo
	if axis == 0 {
		firstZ, lastZ, firstY, lastY, origin = col, end, 0, p.out[1], lo*p.in[1]
	}
	for ch := range channels {
		taps := c.poolChannel(first+ch, args)
		from := region[ch*size:][:size]
		to := args.Out[batch*p.OutSteps.Batch+(first+ch)*p.OutSteps.Channel:]
		for z := firstZ; z < lastZ; z++ {
			for y := firstY; y < lastY; y += p.rows {
				p.compute(copied, to[p.OutSteps.at(z, y, 0):], from, origin, z, y, min(p.rows, lastY-y), taps)
			}
		}
	}
}

// poolChannel returns what the depthwise convolution, if there is one, has for
// a channel.
func (c *Conv) poolChannel(channel int, args *Args) (of poolChannel) {
	if c.Pool.Kind != PoolDepthwise {
		return of
	}
	of.weights = args.PoolWeights[channel*c.Pool.taps:][:c.Pool.taps]
	if args.PoolBias != nil {
		of.bias = args.PoolBias[channel]
	}
	return of
}

// panelRegion computes size positions from one on, for some channels whose
// first is the whole tensor's.
func (c *Conv) panelRegion(region []float32, batch, first, channels, from, size int, scratch []float32, args *Args) {
	for at := 0; at < size; at += convCols {
		r := gemm.Rect{
			At: at, Ld: size, Res: batch*c.ResidualSteps.Batch + first*c.ResidualSteps.Channel + from + at, ResLD: c.ResidualSteps.Channel,
			Rows: channels, Cols: min(convCols, size-at), Row: first, Col: from + at, Width: c.outArea,
		}
		acc := c.Begin(c.v, &r, region, nil, args.Residual)
		c.multiply(&r, batch, first/c.perGroup, acc, scratch, region, args)
		c.End(c.v, &r, region, args.Bias)
	}
}

// directRegion does the same in areas, from channel row of a group on.
func (c *Conv) directRegion(region []float32, batch, group, row, from, size int, scratch []float32, args *Args) {
	w, d := &c.view, &c.direct
	width := w.out[2]
	for at := 0; at < size; {
		pos := from + at
		a := outputArea{z: pos / width / w.out[1], y: pos / width % w.out[1], x: pos % width, rows: 1}
		end := min(width, a.x+size-at)
		if end-a.x == width {
			a.rows = min(d.rows, w.out[1]-a.y, (size-at)/width)
		}
		for x := a.x; x < end; x += d.cols {
			a.x, a.cols = x, min(d.cols, end-x)
			c.directArea(batch, group, row, a, scratch, args, planesOut{
				data: region, at: pos - from + x - pos%width, step: size, row: width,
				residual: batch*c.ResidualSteps.Batch + (group*c.perGroup+row)*c.ResidualSteps.Channel + pos + x - pos%width, resStep: c.ResidualSteps.Channel, resRow: width,
			})
		}
		at += (a.rows-1)*width + end - pos%width
	}
}
