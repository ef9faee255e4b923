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
	pitch   int        // positions of a row of the first result, with those around it
	height  int        // rows of a tile
	leaving int        // rows of the second result that leave together
	offsets [2][]int32 // of taps, for one vector of channels and for two
	sums    int        // floats of scratch for the second result's sums
}

// separable reports whether the depthwise convolution reads rows of channels.
func (c *Conv) separable() bool {
	p := c.Pool
	return p.Kind == PoolDepthwise && c.pooledDirect && !c.Residual && !c.isHalf() && c.view.units() == 0 && c.v.Conv.DepthTiles != nil && c.panels.winograd == 0 && c.panels.taps == 0 &&
		c.out[0] == 1 && p.out[0] == 1 && p.kernel[0] == 1 && p.padBegin[0] == 0 && p.taps <= copiedTaps && !p.plain && p.inArea > 0
}

// prepareSeparable sizes tiles.
func (c *Conv) prepareSeparable() {
	p, s := c.Pool, &c.apart
	c.kind = convSeparable
	lanes := c.v.Conv.Lanes
	s.pitch = max(p.padBegin[2]+p.in[2], (p.out[2]-1)*p.stride[2]+p.reach(2))
	c.tileSeparable()
	s.height = (c.colTile-1)*p.stride[1] + p.reach(1)
	s.leaving = kernel.EvenTile(c.colTile, max(1, directPositions/max(1, p.out[2])), 1)
	c.rowTiles, c.colTiles = kernel.CeilDiv(c.perGroup, c.rowTile), kernel.CeilDiv(p.out[1], c.colTile)
	rowTile := c.rowTile
	c.prepareDirect()
	c.rowTile = rowTile
	c.direct.rows = min(c.direct.rows, s.height)
	c.finishDirect()
	for i := range s.offsets {
		s.offsets[i] = s.offsets[i][:0]
		for y := range p.kernel[1] {
			for x := range p.kernel[2] {
				s.offsets[i] = append(s.offsets[i], int32(4*(i+1)*lanes*(y*p.dilation[1]*s.pitch+x*p.dilation[2])))
			}
		}
	}
	s.sums = c.sumRows(s.leaving*p.out[2]) * 2 * lanes
	if p.OutSteps.Row != p.out[2] {
		s.sums += c.behindRows(s.leaving, p.out[2])
	}
	c.packB, c.packA = c.direct.planes, 0
	c.region = (s.height*s.pitch+p.taps+1)*2*lanes + s.sums
}

// tileSeparable chooses the channels and the rows of a tile. The first result
// of a tile stays in a second-level cache, unless too many rows would be
// computed twice.
func (c *Conv) tileSeparable() {
	p, unit := c.Pool, 2*c.v.Conv.Lanes
	c.colTile = max(1, p.out[1])
	floats := func() int { return ((c.colTile-1)*p.stride[1] + p.reach(1)) * c.apart.pitch * unit }
	fewest := max(0, p.reach(1)-p.stride[1]) * depthwiseOverlap * max(1, c.depth/depthwiseDepth)
	for c.colTile > 1 && floats() > depthwiseRegion {
		half := kernel.CeilDiv(c.colTile, 2)
		if half*p.stride[1] < fewest {
			break
		}
		c.colTile = half
	}
	// Tiles of several panels of channels copy their input once.
	c.rowTile = kernel.CeilDiv(c.perGroup, unit) * unit
	tiles := func() int {
		return c.Batch * c.Group * kernel.CeilDiv(c.perGroup, c.rowTile) * kernel.CeilDiv(p.out[1], c.colTile)
	}
	for c.rowTile > unit && tiles() < c.WantedTiles {
		c.rowTile = kernel.CeilDiv(c.rowTile/unit, 2) * unit
	}
	for c.colTile > 4 && c.colTile*p.stride[1] > 2*fewest && tiles() < c.WantedTiles {
		c.colTile = kernel.CeilDiv(c.colTile, 2)
	}
}

// separableTile computes rows [row, row+colTile) of the second result for some
// channels from channel on.
func (c *Conv) separableTile(batch, group, channel, row int, scratch []float32, args *Args) {
	p, s, lanes := c.Pool, &c.apart, c.v.Conv.Lanes
	planes, region := scratch[:c.direct.planes], scratch[c.packB:]
	sums := region[s.height*s.pitch*2*lanes:]
	weights := sums[s.sums:]
	bias := weights[p.taps*2*lanes:]
	rows := min(c.colTile, p.out[1]-row)
	for at := channel; at < min(channel+c.rowTile, c.perGroup); at += 2 * lanes {
		vectors := c.vectorsAt(at)
		first, n := group*c.perGroup+at, min(vectors*lanes, c.perGroup-at)
		c.firstRows(batch, group, at, vectors, row*p.stride[1]-p.padBegin[1], (rows-1)*p.stride[1]+p.reach(1), planes, region, bias, args)
		c.turnTaps(weights, vectors*lanes, first, n, args)
		for done := 0; done < rows; done += s.leaving {
			some := min(s.leaving, rows-done)
			for i := range some {
				x := region[(done+i)*p.stride[1]*s.pitch*vectors*lanes:]
				call := kernel.DepthTile{
					X: &x[0], Step: 4 * p.stride[2] * vectors * lanes, Offsets: &s.offsets[vectors-1][0], Taps: p.taps,
					Weights: &weights[0], Sums: &sums[i*p.out[2]*vectors*lanes], Positions: p.out[2],
				}
				_ = x[((p.reach(1)-1)*s.pitch+(p.out[2]-1)*p.stride[2]+p.reach(2))*vectors*lanes-1]
				c.v.Conv.DepthTiles(call, vectors)
			}
			for v := range vectors {
				c.leaveSecond(batch, first+v*lanes, min(lanes, n-v*lanes), row+done, some, 4*vectors*lanes, sums[v*lanes:], args)
			}
		}
	}
}

// firstRows computes rows of the first result from one on, which may lie
// outside the picture, for a panel of channels of a group.
func (c *Conv) firstRows(batch, group, channel, vectors, from, rows int, planes, region, bias []float32, args *Args) {
	p, s, d := c.Pool, &c.apart, &c.direct
	step := vectors * c.v.Conv.Lanes
	top, end := min(max(0, -from), rows), min(rows, max(0, p.in[1]-from))
	end = max(top, end)
	clear(region[:top*s.pitch*step])
	clear(region[end*s.pitch*step : rows*s.pitch*step])
	for y := top; y < end; y += d.rows {
		for x := 0; x < p.in[2]; x += d.cols {
			a := outputArea{y: from + y, x: x, rows: min(d.rows, end-y), cols: min(d.cols, p.in[2]-x)}
			c.panelSums(batch, group, channel, vectors, a, planes, region[(y*s.pitch+p.padBegin[2]+x)*step:], args)
		}
	}
	clear(bias[:step])
	if c.Bias != gemm.NoBias {
		copy(bias[:step], args.Bias[group*c.perGroup+channel:][:min(step, c.perGroup-channel)])
	}
	low, high, clamped := c.Act.Clamp()
	for y := top; y < end; y++ {
		row := region[y*s.pitch*step:][:s.pitch*step]
		inside := row[p.padBegin[2]*step:][:p.in[2]*step]
		c.v.Conv.SumBiases(kernel.SumBias{Sums: &inside[0], Positions: p.in[2], Bias: &bias[0], Low: low, High: high}, vectors)
		if !clamped {
			c.Act.Apply(c.v, inside)
		}
		clear(row[:p.padBegin[2]*step])
		clear(row[(p.padBegin[2]+p.in[2])*step:])
	}
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

// leaveSecond writes rows of the second result for up to a vector of channels.
func (c *Conv) leaveSecond(batch, first, channels, row, rows, sumStep int, sums []float32, args *Args) {
	p := c.Pool
	call := kernel.ConvLeave{Sums: &sums[0], SumStep: sumStep, Positions: p.out[2], OutStep: 4 * p.OutSteps.Channel, Channels: channels}
	if args.PoolBias != nil {
		call.Bias = &args.PoolBias[first:][:channels][0]
	}
	var clamped bool
	call.Low, call.High, clamped = p.Act.Clamp()
	parts := rows
	if p.OutSteps.Row == p.out[2] {
		parts, call.Positions = 1, rows*p.out[2]
	}
	for i := range parts {
		out := args.Out[batch*p.OutSteps.Batch+first*p.OutSteps.Channel+p.OutSteps.at(0, row+i, 0):]
		_ = out[(channels-1)*p.OutSteps.Channel+call.Positions-1]
		call.Out, call.Sums = &out[0], &sums[i*p.out[2]*sumStep/4]
		c.v.Conv.Leave(call)
		if clamped {
			continue
		}
		for ch := range channels {
			p.Act.Apply(c.v, out[ch*p.OutSteps.Channel:][:call.Positions])
		}
	}
}
