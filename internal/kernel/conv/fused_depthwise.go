package conv

import "github.com/tenure-go/tenure/internal/kernel"

// Of a convolution and the depthwise one that reads its result, a tile computes
// as many channels and rows as stay in a second-level cache, and the depthwise
// convolution of those. Rows at the edges of tiles are computed twice.

const (
	depthwiseRegion  = 64 << 10 // floats of the first result that a tile has, about
	depthwiseMost    = 4 * depthwiseRegion
	depthwiseOverlap = 8   // it computes at most one row more for so many, where
	depthwiseDepth   = 256 // products of a row are this many or fewer
)

// tileDepthwise chooses the channels and the steps of a tile. Small pictures
// are whole; of others, so many rows are computed twice that it costs less than
// the first result would in memory.
func (c *Conv) tileDepthwise(total int) {
	p, axis := c.Pool, c.poolAxis()
	unit := 1
	if c.pooledDirect {
		unit = 2 * c.v.Conv.Lanes
	}
	c.rowTile, c.colTile = min(64, c.perGroup), max(1, total)
	if c.rowTile*c.regionRows(total)*c.rowArea() > depthwiseRegion {
		c.rowTile = min(max(unit, 32), c.perGroup)
	}
	overlap := max(0, (p.kernel[axis]-1)*p.dilation[axis]+1-p.stride[axis])
	fewest := overlap * depthwiseOverlap * max(1, c.depth/depthwiseDepth)
	for c.colTile > 1 && c.rowTile*c.regionRows(c.colTile)*c.rowArea() > depthwiseRegion {
		half := kernel.CeilDiv(c.colTile, 2)
		if half*p.stride[axis] < fewest && c.rowTile*c.regionRows(c.colTile)*c.rowArea() <= depthwiseMost {
			break
		}
		c.colTile = half
	}
	for c.rowTile > unit && c.rowTile*c.regionRows(c.colTile)*c.rowArea() > depthwiseMost {
		c.rowTile = kernel.CeilDiv(c.rowTile, 2)
	}
	tiles := func() int {
		return c.Batch * c.Group * kernel.CeilDiv(c.perGroup, c.rowTile) * kernel.CeilDiv(total, c.colTile)
	}
	for c.rowTile > unit && c.rowTile > 16 && tiles() < c.WantedTiles {
		c.rowTile /= 2
	}
	for c.colTile > 4 && c.colTile*p.stride[axis] > 2*fewest && tiles() < c.WantedTiles {
		c.colTile = kernel.CeilDiv(c.colTile, 2)
	}
}

// depthwise is compute for rows that were copied.
func (p *Pool) depthwise(call kernel.WindowCall, out []float32, rows int, channel poolChannel) {
	call.Weights, call.Bias = &channel.weights[:p.taps][0], channel.bias
	var clamped bool
	call.Low, call.High, clamped = p.Act.Clamp()
	p.copied.sum(p.v, call)
	if clamped {
		return
	}
	if p.OutSteps.Row == p.out[2] {
		p.Act.Apply(p.v, out[:rows*p.out[2]])
		return
	}
	for i := range rows {
		p.Act.Apply(p.v, out[i*p.OutSteps.Row:][:p.out[2]])
	}
}

// depthwisePlain is compute for windows whose rows cannot be copied.
func (p *Pool) depthwisePlain(out, src []float32, origin, z, y, rows int, channel poolChannel) {
	for i := range rows {
		row := out[i*p.OutSteps.Row:][:p.out[2]]
		for x := range row {
			sum := float64(channel.bias)
			p.eachTap(z, y+i, x, func(tap, at int) {
				sum += float64(channel.weights[tap]) * float64(src[at-origin*p.InSteps.Row])
			})
			row[x] = float32(sum)
		}
		p.Act.Apply(p.v, row)
	}
}
