package conv

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
)

// A convolution of 3x3 taps without stride or dilation is computed with fewer
// multiplications, if it has enough channels: tiles of Outputs x Outputs
// results, which read tiles of Size x Size elements, are products of
// transformed elements and transformed weights. Weights are transformed when
// they are packed. An area of outputs is computed in three steps: a block of
// input channels is copied, with padding and prologue, taken apart into parts
// whose neighbours belong to neighbouring tiles, and transformed; for each
// element of a tile, the loop of direct convolutions multiplies a matrix of
// tiles and input channels with one of weights; the sums are transformed into
// rows of channels, which leave as those of direct convolutions do.

const (
	winogradChannels = 16        // the least number of input and output channels of a group
	winogradFloats   = 640 << 10 // of transformed weights in the larger of two forms, at most
	winogradTile     = 64        // output channels per tile of the worker pool, about
	winogradWork     = 4 << 20   // operations of a direct convolution below which a tile is not cut
)

// winogradBlocks and winogradTiles are, by algorithm, the input channels that
// are transformed at once and the tiles of an area, about: transformed elements
// and sums stay in a second-level cache. Sums of F(4) over more channels would
// have larger errors.
var (
	winogradBlocks = [...]int{64, 32}
	winogradTiles  = [...]int{56, 28}
)

// winogradPlanes is how many floats of copied planes are taken apart at once,
// about: a part of a first-level cache.
const winogradPlanes = 4 << 10

// winogradConv is how such a convolution is cut.
type winogradConv struct {
	tilesX, tilesY int // of an area, at most
	channels       int // that are copied at once
	part           int // floats of a part of their planes,
	row            int // of the tiles of a channel with those between rows and channels,
	block          int // of those of a block of channels, for one element,
	sums           int // and of their sums for a vector of output channels
}

// winogradReads is, by algorithm, how many products of a transformed weight, or
// of one as it is, take as long as reading it: those of the algorithm for many
// channels come from farther away. One of 16 bits is widened, too.
var winogradReads = [...]int{16, 4}

const widenReads = 24

// winogradForm returns the algorithm, counted from 1, or 0 for none. It follows
// from attributes, the shape of the weights and the variant, because the form
// of packed weights does, and from sizes only where they are fixed.
func (c *Conv) winogradForm(v *kernel.Variant) int {
	if c.Direct || len(c.Window.Kernel) != 2 || v.Conv.Winograd[0].Input == nil {
		return 0
	}
	for i, n := range c.Window.Kernel {
		if n != 3 || c.Window.Stride != nil && c.Window.Stride[i] != 1 || c.Window.Dilation != nil && c.Window.Dilation[i] != 1 {
			return 0
		}
	}
	inputs, channels := c.InChannels/c.Group, c.OutChannels/c.Group
	if inputs < winogradChannels || channels < winogradChannels {
		return 0
	}
	form := 1
	if last := len(kernel.Winograds); !c.isHalf() && inputs*channels*square(kernel.Winograds[last-1].Size()) <= winogradFloats {
		form = last
	}
	if c.FixedPictures > 0 && !c.fewerProducts(form) {
		return 0
	}
	return form
}

// fewerProducts reports whether an algorithm is likely to be faster than a
// direct convolution of these sizes. Of a small picture it computes tiles that
// are mostly outside, and it reads more weights for each.
func (c *Conv) fewerProducts(form int) bool {
	algorithm, reads := kernel.Winograds[form-1], winogradReads[form-1]
	if c.isHalf() {
		reads += widenReads
	}
	w := c.Window
	w.Resolve()
	m, tiles, outputs := algorithm.Outputs, c.FixedPictures, c.FixedPictures
	for _, n := range w.Out {
		tiles *= kernel.CeilDiv(n, m)
		outputs *= n
	}
	return (tiles+reads)*square(algorithm.Size()) < (outputs+reads)*9
}

func square(n int) int { return n * n }

// winograd is the algorithm, its loops, and the channels of a block.
func (c *Conv) winograd() (*kernel.Winograd, *kernel.WinogradLoops, int) {
	i := c.panels.winograd - 1
	return kernel.Winograds[i], &c.v.Conv.Winograd[i], winogradBlocks[i]
}

// tileWinograd cuts a whole convolution.
func (c *Conv) tileWinograd() {
	w, d := &c.view, &c.direct
	algorithm, _, _ := c.winograd()
	m, unit := algorithm.Outputs, 2*c.v.Conv.Lanes
	most := winogradTiles[c.panels.winograd-1]
	d.cols = kernel.EvenTile(w.out[2], most*m, m)
	d.rows = m
	if d.cols >= w.out[2] {
		d.cols = w.out[2]
		d.rows = max(1, most/kernel.CeilDiv(d.cols, m)) * m
	}
	c.rowTile = kernel.EvenTile(c.perGroup, max(winogradTile, unit), unit)
	tiles := func() int {
		return c.Batch * c.Group * kernel.CeilDiv(c.perGroup, c.rowTile) * kernel.CeilDiv(w.out[1], d.rows) * kernel.CeilDiv(w.out[2], d.cols)
	}
	for tiles() < kernel.WantedTiles && d.rows > 2*m && d.rows*d.cols > 2*square(m)*c.v.Conv.Positions {
		d.rows = kernel.EvenTile(min(d.rows, w.out[1]), kernel.CeilDiv(d.rows, 2*m)*m, m)
	}
	// Each tile transforms its input: small ones would do little else.
	work := 18 * c.InChannels / c.Group * min(d.rows, w.out[1]) * d.cols
	for tiles() < kernel.WantedTiles && c.rowTile > unit && work*c.rowTile > winogradWork {
		c.rowTile = kernel.EvenTile(c.rowTile, kernel.CeilDiv(c.rowTile, 2*unit)*unit, unit)
	}
	d.rows = min(w.out[1], kernel.EvenTile(w.out[1], d.rows, m))
	d.rowParts, d.colParts = kernel.CeilDiv(w.out[1], d.rows), kernel.CeilDiv(w.out[2], d.cols)
	c.rowTiles, c.colTiles = kernel.CeilDiv(c.perGroup, c.rowTile), d.rowParts*d.colParts
	c.finishWinograd()
	c.packB, c.region, c.packA = d.planes, c.directSums(), c.wideBlock()
}

// pooledWinograd is the preparation for areas of a convolution under a pool.
func (c *Conv) pooledWinograd() {
	w, d := &c.view, &c.direct
	algorithm, _, _ := c.winograd()
	m, most := algorithm.Outputs, winogradTiles[c.panels.winograd-1]
	d.rows, d.cols = m, kernel.EvenTile(w.out[2], most*m, m)
	if d.cols >= w.out[2] {
		d.cols = w.out[2]
		d.rows = min(kernel.CeilDiv(w.out[1], m), max(1, most/kernel.CeilDiv(d.cols, m))) * m
	}
	c.finishWinograd()
}

// wholeTiles returns a number of steps of the pool, at most n, that read rows
// of which few are in tiles with rows that are not read.
func (c *Conv) wholeTiles(n int) int {
	algorithm, _, _ := c.winograd()
	best, least := n, math.Inf(1)
	for i := n; 2*i > n; i-- {
		tiles := kernel.CeilDiv(c.regionRows(i), algorithm.Outputs)
		if cost := float64(tiles) / float64(i); cost < least {
			best, least = i, cost
		}
	}
	return best
}

// finishWinograd is the preparation after the areas of outputs are decided, of
// at most rows x cols.
func (c *Conv) finishWinograd() {
	d, g := &c.direct, &c.fewer
	algorithm, _, block := c.winograd()
	m, lanes, channels := algorithm.Outputs, c.v.Conv.Lanes, c.InChannels/c.Group
	g.tilesX, g.tilesY = kernel.CeilDiv(d.cols, m), kernel.CeilDiv(d.rows, m)
	d.block = min(block, channels)
	d.height, d.width = m*(g.tilesY+1), m*(g.tilesX+1)
	g.row = (g.tilesY + 1) * (g.tilesX + 1)
	g.channels = min(d.block, max(1, winogradPlanes/(d.height*d.width)))
	vectors := kernel.CeilDiv(g.tilesX+1, lanes)
	// Elements of a tile are an odd number of vectors apart, so that they are
	// in different sets of the first-level cache.
	g.part = (kernel.CeilDiv(g.channels*g.row+g.tilesX+1, lanes) + vectors + 1 | 1) * lanes
	g.block = (kernel.CeilDiv(d.block*g.row, lanes) + 1 | 1) * lanes
	g.sums = (g.tilesX*g.tilesY | 1) * lanes
	d.offsets = slices.Grow(d.offsets[:0], d.block)
	for ch := range d.block {
		d.offsets = append(d.offsets, int32(4*ch*g.row))
	}
	elements := square(algorithm.Size())
	d.planes = c.winogradPlanes() + square(m)*g.part + elements*(lanes+g.block+kernel.CeilDiv(c.rowTile, lanes)*g.sums)
}

// winogradPlanes is the scratch for copied planes. Rows are read and written in
// whole vectors.
func (c *Conv) winogradPlanes() int {
	d, g, lanes := &c.direct, &c.fewer, c.v.Conv.Lanes
	algorithm, _, _ := c.winograd()
	return g.channels*d.height*d.width + algorithm.Outputs*lanes*(kernel.CeilDiv(g.tilesX+1, lanes)+1)
}

// winogradSums computes the sums of an area for channels [row, end) of a group.
func (c *Conv) winogradSums(batch, group, row, end int, a outputArea, scratch, sums []float32, args *Args) {
	d, g := &c.direct, &c.fewer
	algorithm, loops, _ := c.winograd()
	elements, lanes, inputs := square(algorithm.Size()), c.v.Conv.Lanes, c.InChannels/c.Group
	t := winogradArea{
		Winograd: algorithm, loops: loops, x: kernel.CeilDiv(a.cols, algorithm.Outputs), y: kernel.CeilDiv(a.rows, algorithm.Outputs),
	}
	take := func(n int) []float32 {
		part := scratch[:n]
		scratch = scratch[n:]
		return part
	}
	t.planes, t.parts, t.scratch = take(c.winogradPlanes()), take(square(t.Outputs)*g.part), take(elements*lanes)
	transformed := take(elements * g.block)
	for k := 0; k < inputs; k += d.block {
		n := min(d.block, inputs-k)
		for i := 0; i < n; i += g.channels {
			c.transformInput(&t, transformed[i*g.row:], batch, group*inputs+k+i, min(g.channels, n-i), a, args)
		}
		call := kernel.ConvTile{Depth: n, Offsets: &d.offsets[0], Step: 4}
		if k > 0 {
			call.Add = 1
		}
		for p := row; p < end; p += 2 * lanes {
			vectors := c.vectorsAt(p)
			step := vectors * lanes
			at := c.panels.winogradAt(group, p, k)
			call.WeightStep, call.SumStep = 4*step, 4*step
			for e := range elements {
				call.Weights = &c.weights(args, at+e*n*step, n*step)[0]
				c.multiplyTiles(&call, vectors, t.y, t.x, g.tilesX+1, transformed[e*g.block:], scratch[((p-row)/lanes*elements+e*vectors)*g.sums:])
			}
		}
	}
	for p := row; p < end; p += 2 * lanes {
		vectors := c.vectorsAt(p)
		step, plane := vectors*lanes, vectors*g.sums
		for v := 0; v < step; v += lanes {
			from := scratch[(p-row)/lanes*elements*g.sums+v:]
			t.transformOutput(from[:(elements-1)*plane+(t.x*t.y-1)*step+lanes], step, plane, sums[(p-row)*c.sumRows(a.rows*a.cols)+v:], a, lanes)
		}
	}
}

// winogradArea is an area that is being computed: its tiles, and scratch.
type winogradArea struct {
	*kernel.Winograd
	loops                  *kernel.WinogradLoops
	x, y                   int
	planes, parts, scratch []float32
}

// transformInput transforms the tiles of n input channels from one on.
func (c *Conv) transformInput(t *winogradArea, dst []float32, batch, channel, n int, a outputArea, args *Args) {
	w, d, g := &c.view, &c.direct, &c.fewer
	m, lanes, pitch := t.Outputs, c.v.Conv.Lanes, g.tilesX+1
	c.copyPlanes(t, args.In[batch*w.InSteps.Batch+channel*w.InSteps.Channel:], channel, n, a, args)
	split := kernel.WinogradSplit{
		SrcStep: 4 * m * d.width, DstStep: 4 * pitch, Part: 4 * g.part, Rows: n * (g.tilesY + 1), Vectors: kernel.CeilDiv(pitch, lanes),
	}
	for y := range m {
		split.Src, split.Dst = &t.planes[y*d.width], &t.parts[y*m*g.part]
		t.loops.Split(split)
	}
	t.loops.Input(kernel.WinogradTransform{
		Src: &t.parts[0], SrcStep: 4 * pitch, SrcPart: 4 * g.part, Dst: &dst[0], DstPart: 4 * g.block,
		Count: kernel.CeilDiv(n*g.row, lanes), Scratch: &t.scratch[0],
	})
}

// copyPlanes copies what the tiles of an area read, one plane per channel.
func (c *Conv) copyPlanes(t *winogradArea, in []float32, channel, n int, a outputArea, args *Args) {
	w, d := &c.view, &c.direct
	height, width, size := t.Outputs*t.y+2, t.Outputs*t.x+2, d.height*d.width
	y, x := a.y-w.padBegin[1], a.x-w.padBegin[2]
	left := min(max(0, -x), width)
	cols := min(width, w.in[2]-x) - left
	first, end := max(0, -y), min(height, w.in[1]-y)
	// A row of all channels at once, if there are more channels than rows. The
	// vectors of the last row must end before the next channel, whose first
	// rows were written before.
	if c.ScaleShift || n <= end-first || (d.height-end)*d.width+d.width-left-cols < c.v.Conv.Lanes {
		for i := range n {
			c.copyPlane(t.planes[i*size:], in[i*w.InSteps.Channel:], a, height, width, c.rowChange(channel+i, args))
		}
		return
	}
	clear(t.planes[:n*size])
	if cols <= 0 {
		return
	}
	call := kernel.PadCall{
		SrcStep: 4 * w.InSteps.Channel, DstStep: 4 * size, Rows: n, N: cols, Left: left, Width: width, Scale: 1, Floor: float32(math.Inf(-1)),
	}
	kind := kernel.PadPlain
	if c.PrologueRelu {
		kind, call.Floor = kernel.PadAffine, 0
	}
	for i := first; i < end; i++ {
		from := in[w.InSteps.at(0, y+i, x+left):]
		_ = from[(n-1)*w.InSteps.Channel+cols-1]
		call.Src, call.Dst = &from[0], &t.planes[i*d.width]
		padRows(c.v, kind, call)
	}
}

// multiplyTiles sums for rows of tiles, pitch apart, and one panel of channels.
func (c *Conv) multiplyTiles(call *kernel.ConvTile, vectors, rows, cols, pitch int, x, sums []float32) {
	_, _ = x[(rows-1)*pitch+cols-1+int(c.direct.offsets[call.Depth-1])/4], sums[rows*cols*call.SumStep/4-1]
	c.positionTiles(call, vectors, rows, cols, cols, 1, pitch, x, sums)
}

// transformOutput transforms sums, step apart in planes, into those of the
// positions of an area, for one vector of channels. Tiles that extend beyond
// the area are transformed in scratch.
func (t *winogradArea) transformOutput(from []float32, step, plane int, sums []float32, a outputArea, lanes int) {
	m := t.Outputs
	inner, outer := step, a.cols*step // distances of positions
	_ = sums[(a.rows*a.cols-1)*step+lanes-1]
	for y := range t.y {
		rows := min(m, a.rows-y*m)
		whole := a.cols / m
		if rows < m {
			whole = 0
		}
		call := kernel.WinogradTransform{SrcStep: 4 * step, SrcPart: 4 * plane, Scratch: &t.scratch[0]}
		if whole > 0 {
			call.Src, call.Dst = &from[y*t.x*step], &sums[y*m*outer]
			call.DstStep, call.DstPart, call.Count = 4*outer, 4*inner, whole
			t.loops.Output(call)
		}
		for x := whole; x < t.x; x++ {
			cols := min(m, a.cols-x*m)
			tile := t.parts[:m*m*lanes]
			call.Src, call.Dst = &from[(y*t.x+x)*step], &tile[0]
			call.DstStep, call.DstPart, call.Count = 4*m*lanes, 4*lanes, 1
			t.loops.Output(call)
			for i := range rows {
				for j := range cols {
					copy(sums[(y*m+i)*outer+(x*m+j)*inner:][:lanes], tile[(i*m+j)*lanes:])
				}
			}
		}
	}
}
