package conv

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// The sums of a direct convolution are rows of channels. A depthwise
// convolution can read them so: a vector of its taps is for neighbouring
// channels, and no vector is partly empty, however narrow pictures are. The
// rows that a tile reads lie in scratch with zeros around; its own sums are
// transposed into planes.

// separableConv is how a convolution is cut whose result only a depthwise one
// reads.
type separableConv struct {
	cols, colParts int        // columns of a tile, and parts of a row
	pitch          int        // positions of a row of the first result, with those around it
	height         int        // rows of a tile
	channels       int        // of a tile that are computed together
	leaving        int        // rows of the second result that leave together
	offsets        [2][]int32 // of taps, for one vector of channels and for two
	sums           int        // floats of scratch for the second result's sums
}

// separable reports whether the depthwise convolution reads rows of channels.
func (c *Conv) separable() bool {
	p := c.Pool
	return p.Kind == PoolDepthwise && c.pooledDirect && !c.Residual && !c.isHalf() && c.view.units() == 0 && c.v.Conv.DepthTiles != nil && c.panels.winograd == 0 && c.panels.taps == 0 &&
		c.out[0] == 1 && p.out[0] == 1 && p.kernel[0] == 1 && p.padBegin[0] == 0 && p.taps <= copiedTaps && !p.plain && p.inArea > 0
}

// prepareSeparable sizes tiles.
func (c *Conv) prepareSeparable() {
	p, s, d := c.Pool, &c.apart, &c.direct
	c.kind = convSeparable
	lanes := c.v.Conv.Lanes
	s.channels = lanes * c.vectorsAt(0)
	c.tileSeparable()
	s.colParts = kernel.CeilDiv(p.out[2], s.cols)
	s.height, s.pitch = p.readBy(1, c.colTile), p.readBy(2, s.cols)
	s.leaving = kernel.EvenTile(c.colTile, max(1, directPositions/max(1, s.cols)), 1)
	c.rowTiles, c.colTiles = kernel.CeilDiv(c.perGroup, c.rowTile), kernel.CeilDiv(p.out[1], c.colTile)*s.colParts
	rowTile := c.rowTile
	c.prepareDirect()
	c.rowTile = rowTile
	d.cols = kernel.EvenTile(min(s.pitch, p.in[2]), directPositions, 1)
	d.rows = min(s.height, p.in[1], max(1, directPositions/d.cols))
	c.finishDirect()
	for i := range s.offsets {
		s.offsets[i] = s.offsets[i][:0]
		for y := range p.kernel[1] {
			for x := range p.kernel[2] {
				s.offsets[i] = append(s.offsets[i], int32(4*(i+1)*lanes*(y*p.dilation[1]*s.pitch+x*p.dilation[2])))
			}
		}
	}
	s.sums = c.sumRows(s.leaving*s.cols) * s.channels
	if p.OutSteps.Row != s.cols {
		s.sums += c.behindRows(s.leaving, s.cols)
	}
	c.packB, c.packA = d.planes, 0
	c.region = (s.height*s.pitch+p.taps+1)*s.channels + s.sums
}

// tileSeparable chooses the channels and the area of a tile. The first result
// of a tile stays in a second-level cache, unless too much would be computed
// twice, and in little scratch in any case.
func (c *Conv) tileSeparable() {
	p, s, unit := c.Pool, &c.apart, 2*c.v.Conv.Lanes
	c.colTile, s.cols = max(1, p.out[1]), max(1, p.out[2])
	floats := func() int { return p.readBy(1, c.colTile) * p.readBy(2, s.cols) * s.channels }
	fewest := func(axis int) int {
		return max(0, p.reach(axis)-p.stride[axis]) * depthwiseOverlap * max(1, c.depth/depthwiseDepth)
	}
	for floats() > depthwiseRegion && (c.colTile > 1 || s.cols > 1) {
		rows, cols := kernel.CeilDiv(c.colTile, 2), kernel.CeilDiv(s.cols, 2)
		switch {
		case c.colTile > 1 && rows*p.stride[1] >= fewest(1):
			c.colTile = rows
		case s.cols > 1 && cols*p.stride[2] >= fewest(2):
			s.cols = cols
		case floats() <= depthwiseMost:
			c.moreTiles(unit, 2*fewest(1))
			return
		case c.colTile > s.cols:
			c.colTile = rows
		default:
			s.cols = cols
		}
	}
	c.moreTiles(unit, 2*fewest(1))
}

// moreTiles cuts tiles until there are enough: first into parts of the
// channels, then into some rows, at least so many.
func (c *Conv) moreTiles(unit, rows int) {
	p := c.Pool
	// Tiles of several panels of channels copy their input once.
	c.rowTile = kernel.CeilDiv(c.perGroup, unit) * unit
	tiles := func() int {
		return c.Batch * c.Group * kernel.CeilDiv(c.perGroup, c.rowTile) * kernel.CeilDiv(p.out[1], c.colTile) * kernel.CeilDiv(p.out[2], c.apart.cols)
	}
	for c.rowTile > unit && tiles() < c.WantedTiles {
		c.rowTile = kernel.CeilDiv(c.rowTile/unit, 2) * unit
	}
	for c.colTile > 4 && c.colTile*p.stride[1] > rows && tiles() < c.WantedTiles {
		c.colTile = kernel.CeilDiv(c.colTile, 2)
	}
}

// readBy is how many elements of the input n neighbouring outputs read along an
// axis, with those around it.
func (w *Window) readBy(axis, n int) int { return (n-1)*w.stride[axis] + w.reach(axis) }

// separableTile computes a part of the second result for some channels from
// channel on.
func (c *Conv) separableTile(batch, group, channel, part int, scratch []float32, args *Args) {
	p, s, lanes := c.Pool, &c.apart, c.v.Conv.Lanes
	planes, region := scratch[:c.direct.planes], scratch[c.packB:]
	sums := region[s.height*s.pitch*s.channels:]
	weights := sums[s.sums:]
	bias := weights[p.taps*s.channels:]
	a := outputArea{y: part / s.colParts * c.colTile, x: part % s.colParts * s.cols}
	a.rows, a.cols = min(c.colTile, p.out[1]-a.y), min(s.cols, p.out[2]-a.x)
	for at := channel; at < min(channel+c.rowTile, c.perGroup); at += 2 * lanes {
		vectors := c.vectorsAt(at)
		first, n := group*c.perGroup+at, min(vectors*lanes, c.perGroup-at)
		c.firstArea(batch, group, at, vectors, a, planes, region, bias, args)
		c.turnTaps(weights, vectors*lanes, first, n, args)
		for done := 0; done < a.rows; done += s.leaving {
			some := min(s.leaving, a.rows-done)
			for i := range some {
				x := region[(done+i)*p.stride[1]*s.pitch*vectors*lanes:]
				call := kernel.DepthTile{
					X: &x[0], Step: 4 * p.stride[2] * vectors * lanes, Offsets: &s.offsets[vectors-1][0], Taps: p.taps,
					Weights: &weights[0], Sums: &sums[i*a.cols*vectors*lanes], Positions: a.cols,
				}
				_ = x[((p.reach(1)-1)*s.pitch+p.readBy(2, a.cols))*vectors*lanes-1]
				c.v.Conv.DepthTiles(call, vectors)
			}
			for v := range vectors {
				c.leaveSecond(batch, first+v*lanes, min(lanes, n-v*lanes), outputArea{y: a.y + done, x: a.x, rows: some, cols: a.cols}, 4*vectors*lanes, sums[v*lanes:], args)
			}
		}
	}
}

// firstArea computes what an area of the second result reads of the first,
// which may lie outside of it, for a panel of channels of a group.
func (c *Conv) firstArea(batch, group, channel, vectors int, of outputArea, planes, region, bias []float32, args *Args) {
	p, s, d := c.Pool, &c.apart, &c.direct
	step := vectors * c.v.Conv.Lanes
	top, end := p.insideOf(1, of.y, of.rows)
	left, right := p.insideOf(2, of.x, of.cols)
	if left == right {
		end = top
	}
	clear(region[:top*s.pitch*step])
	clear(region[end*s.pitch*step : p.readBy(1, of.rows)*s.pitch*step])
	fromY, fromX := of.y*p.stride[1]-p.padBegin[1], of.x*p.stride[2]-p.padBegin[2]
	for y := top; y < end; y += d.rows {
		for x := left; x < right; x += d.cols {
			a := outputArea{y: fromY + y, x: fromX + x, rows: min(d.rows, end-y), cols: min(d.cols, right-x)}
			c.panelSums(batch, group, channel, vectors, a, planes, region[(y*s.pitch+x)*step:], args)
		}
	}
	clear(bias[:step])
	if c.Bias != gemm.NoBias {
		copy(bias[:step], args.Bias[group*c.perGroup+channel:][:min(step, c.perGroup-channel)])
	}
	low, high, clamped := c.Act.Clamp()
	for y := top; y < end; y++ {
		row := region[y*s.pitch*step:][:s.pitch*step]
		inside := row[left*step : right*step]
		c.v.Conv.SumBiases(kernel.SumBias{Sums: &inside[0], Positions: right - left, Bias: &bias[0], Low: low, High: high}, vectors)
		if !clamped {
			c.Act.Apply(c.v, inside)
		}
		clear(row[:left*step])
		clear(row[right*step:])
	}
}

// insideOf returns which of the elements that n outputs from one on read along
// an axis lie inside: [lo, hi) of readBy.
func (w *Window) insideOf(axis, at, n int) (lo, hi int) {
	from, size := at*w.stride[axis]-w.padBegin[axis], w.readBy(axis, n)
	lo = min(max(0, -from), size)
	return lo, max(lo, min(size, w.in[axis]-from))
}

// panelSums computes the sums of an area for a panel of channels, with rows a
// pitch apart.
func (c *Conv) panelSums(batch, group, channel, vectors int, a outputArea, planes, sums []float32, args *Args) {
	d := &c.direct
	for k := 0; k < c.depth; k += d.block * c.taps {
		call := kernel.ConvTile{Depth: min(d.block*c.taps, c.depth-k), Offsets: &d.offsets[0], SumStep: 4 * vectors * c.v.Conv.Lanes}
		if k > 0 {
			call.Add = 1
		}
		x := c.directInput(planes, batch, group, k/c.taps, call.Depth/c.taps, a, args)
		at, step := c.panels.at(group, channel, k)
		weights := c.weights(args, at, (call.Depth-1)*step+vectors*c.v.Conv.Lanes)
		call.Weights, call.WeightStep = &weights[0], 4*step
		c.directPanel(&call, vectors, a, c.apart.pitch, x, sums)
	}
}

// turnTaps writes the weights of n channels of the depthwise convolution as
// rows of channels, a row for each tap. Sums of channels behind them do not
// leave.
func (c *Conv) turnTaps(dst []float32, step, first, n int, args *Args) {
	taps := c.Pool.taps
	weights := args.PoolWeights[first*taps:][:n*taps]
	for t := range taps {
		row := dst[t*step:][:n]
		for ch := range row {
			row[ch] = weights[ch*taps+t]
		}
	}
}

// leaveSecond writes an area of the second result for up to a vector of
// channels.
func (c *Conv) leaveSecond(batch, first, channels int, a outputArea, sumStep int, sums []float32, args *Args) {
	p := c.Pool
	call := kernel.ConvLeave{Sums: &sums[0], SumStep: sumStep, Positions: a.cols, OutStep: 4 * p.OutSteps.Channel, Channels: channels}
	if args.PoolBias != nil {
		call.Bias = &args.PoolBias[first:][:channels][0]
	}
	var clamped bool
	call.Low, call.High, clamped = p.Act.Clamp()
	parts := a.rows
	if p.OutSteps.Row == a.cols {
		parts, call.Positions = 1, a.rows*a.cols
	}
	for i := range parts {
		out := args.Out[batch*p.OutSteps.Batch+first*p.OutSteps.Channel+p.OutSteps.at(0, a.y+i, a.x):]
		_ = out[(channels-1)*p.OutSteps.Channel+call.Positions-1]
		call.Out, call.Sums = &out[0], &sums[i*a.cols*sumStep/4]
		c.v.Conv.Leave(call)
		if clamped {
			continue
		}
		for ch := range channels {
			p.Act.Apply(c.v, out[ch*p.OutSteps.Channel:][:call.Positions])
		}
	}
}
