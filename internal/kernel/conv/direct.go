package conv

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// A direct convolution multiplies packed weights, a vector of output channels
// wide, with input elements broadcast from where they lie: no patches are
// gathered. Only what padding or a prologue changes is copied, plane by plane,
// with zeros around. The sums of a tile are rows of channels in scratch; at the
// end they are transposed into planes, on the way to which bias, residual and
// activation are added.

const (
	directDepth     = 384 // products per block, if a channel has no more taps
	directPositions = 196 // per tile of the worker pool, about
	directSums      = 28 << 10
	directCopy      = 24 << 10 // floats of copied planes, about
	directFar       = 2 << 10  // floats of a plane that is far from the next one
	directReads     = 64       // output channels that make a copy cheap
)

// MostChannelStep bounds the distance of channels with gaps: those of a block
// are within the offsets of a table.
const MostChannelStep = math.MaxInt32 / 4 / directDepth

// directConv is how a direct convolution is cut.
type directConv struct {
	inPlace            bool
	block              int     // channels per block
	offsets            []int32 // of a block's products
	rows, cols         int     // of output positions per tile; cols is a whole row where rows is more than 1
	rowParts, colParts int     // parts of a plane
	height, width      int     // of a copied plane's rows
	planes             int     // floats of scratch for them
}

// prepareDirect fits a tile's sums and planes into a second-level cache.
func (c *Conv) prepareDirect() {
	w, d := &c.view, &c.direct
	for range w.units() {
		c.resView.dropUnit()
	}
	w.DropUnits()
	d.inPlace = c.panels.taps > 0 || !c.ScaleShift && !c.PrologueRelu && w.StaysInside()
	// Strided taps of many channels far apart touch two or three lines of each:
	// lines of a copy follow each other.
	if d.inPlace && c.panels.taps == 0 && c.taps > 1 && w.stride[2] > 1 && w.inArea >= directFar && c.perGroup >= directReads {
		d.inPlace = false
	}
	d.block = max(1, directDepth/c.taps)
	if d.inPlace && c.panels.taps == 0 && d.block*w.inArea >= math.MaxInt32/4 {
		d.inPlace = false
	}
	d.cols = kernel.EvenTile(w.out[2], directPositions, 1)
	d.rows = 1
	if d.cols == w.out[2] {
		d.rows = min(w.out[1], max(1, directPositions/d.cols))
	}
	c.rowTile = min(kernel.CeilDiv(c.perGroup, 2*c.v.Conv.Lanes)*2*c.v.Conv.Lanes, max(2*c.v.Conv.Lanes, directSums/(d.rows*d.cols)/(2*c.v.Conv.Lanes)*2*c.v.Conv.Lanes))
}

// finishDirect is the preparation after the tile's positions are decided.
func (c *Conv) finishDirect() {
	w, d := &c.view, &c.direct
	if c.panels.taps > 0 {
		c.finishTaps()
		return
	}
	d.height, d.width = (d.rows-1)*w.stride[1]+w.reach(1), (d.cols-1)*w.stride[2]+w.reach(2)
	plane := w.kernel[0] * d.height * d.width
	channels := c.InChannels / c.Group
	if !d.inPlace {
		d.block = min(d.block, max(1, directCopy/plane))
	}
	d.block = min(d.block, channels)
	strides := [MaxSpatial]int{w.InSteps.Plane * w.dilation[0], w.InSteps.Row * w.dilation[1], w.dilation[2]}
	channel := w.InSteps.Channel
	if !d.inPlace {
		strides = [MaxSpatial]int{d.height * d.width, d.width * w.dilation[1], w.dilation[2]}
		channel = plane
		d.planes = d.block*plane + c.v.Conv.Lanes
	}
	d.offsets = slices.Grow(d.offsets[:0], d.block*c.taps)
	for ch := range d.block {
		for z := range w.kernel[0] {
			for y := range w.kernel[1] {
				for x := range w.kernel[2] {
					d.offsets = append(d.offsets, int32(4*(ch*channel+z*strides[0]+y*strides[1]+x*strides[2])))
				}
			}
		}
	}
}

// tileDirect cuts a whole convolution: fewer channels per tile first, then
// fewer rows, until there are enough tiles.
func (c *Conv) tileDirect() {
	c.prepareDirect()
	w, d := &c.view, &c.direct
	tiles := func() int {
		return c.Batch * c.Group * kernel.CeilDiv(c.perGroup, c.rowTile) * w.out[0] * kernel.CeilDiv(w.out[1], d.rows) * kernel.CeilDiv(w.out[2], d.cols)
	}
	fewerChannels := func(least int) {
		for tiles() < c.WantedTiles && c.rowTile > least {
			c.rowTile = kernel.CeilDiv(c.rowTile, 4*c.v.Conv.Lanes) * 2 * c.v.Conv.Lanes
		}
	}
	fewerChannels(4 * c.v.Conv.Lanes)
	// Weights are widened again for each part of the positions.
	for tiles() < c.WantedTiles && d.rows > 2 && !c.isHalf() {
		d.rows = kernel.CeilDiv(d.rows, 2)
	}
	for tiles() < c.WantedTiles && !c.isHalf() && d.rows == 1 && d.cols > 2*c.v.Conv.Positions {
		d.cols = kernel.EvenTile(w.out[2], kernel.CeilDiv(d.cols, 2), 1)
	}
	if d.inPlace || c.isHalf() { // else each part copies the same planes
		fewerChannels(2 * c.v.Conv.Lanes)
	}
	d.rows = kernel.EvenTile(w.out[1], d.rows, 1)
	d.rowParts, d.colParts = kernel.CeilDiv(w.out[1], d.rows), kernel.CeilDiv(w.out[2], d.cols)
	c.rowTiles, c.colTiles = kernel.CeilDiv(c.perGroup, c.rowTile), w.out[0]*d.rowParts*d.colParts
	c.finishDirect()
	c.packB, c.region, c.packA = d.planes, c.directSums(), c.wideBlock()
}

// directSums is the scratch for the sums of a tile.
func (c *Conv) directSums() int {
	w, d := &c.view, &c.direct
	n := min(c.rowTile, kernel.CeilDiv(c.perGroup, c.v.Conv.Lanes)*c.v.Conv.Lanes) * c.sumRows(d.rows*d.cols)
	if c.Pool == nil && (w.OutSteps.Row != d.cols || c.Residual && c.resView.Row != d.cols) {
		n += c.behindRows(d.rows, d.cols)
	}
	return n
}

// behindRows is the scratch behind the sums of rows that leave one by one. The
// last row is read in whole vectors of positions, and may begin anywhere.
func (c *Conv) behindRows(rows, cols int) int {
	return max(0, (rows-1)*cols+c.sumRows(cols)-c.sumRows(rows*cols)) * 2 * c.v.Conv.Lanes
}

// sumRows is the capacity of a panel of sums, in positions.
func (c *Conv) sumRows(positions int) int {
	return kernel.CeilDiv(positions, c.v.Conv.Lanes) * c.v.Conv.Lanes
}

// outputArea is a block of output positions of a plane: whole rows, or a part
// of one.
type outputArea struct{ z, y, x, rows, cols int }

// planesOut is where the planes of a tile go: that of its first channel begins
// at at, the others step apart, and rows are row apart; likewise the
// residual's.
type planesOut struct {
	data                      []float32
	at, step, row             int
	residual, resStep, resRow int
}

func (c *Conv) directTile(batch, group, row, part int, scratch []float32, args *Args) {
	w, d := &c.view, &c.direct
	a := outputArea{
		z: part / d.colParts / d.rowParts, y: part / d.colParts % d.rowParts * d.rows, x: part % d.colParts * d.cols,
	}
	a.rows, a.cols = min(d.rows, w.out[1]-a.y), min(d.cols, w.out[2]-a.x)
	m := group*c.perGroup + row
	to, from := &w.OutSteps, &c.resView
	c.directArea(batch, group, row, a, scratch, args, planesOut{
		data: args.Out, at: batch*to.Batch + m*to.Channel + to.at(a.z, a.y, a.x), step: to.Channel, row: to.Row,
		residual: batch*from.Batch + m*from.Channel + from.at(a.z, a.y, a.x), resStep: from.Channel, resRow: from.Row,
	})
}

// directArea computes an area of output positions for up to rowTile channels of
// a group from row on.
func (c *Conv) directArea(batch, group, row int, a outputArea, scratch []float32, args *Args, out planesOut) {
	d := &c.direct
	planes, sums := scratch[:d.planes], scratch[d.planes:]
	capacity := c.sumRows(a.rows * a.cols)
	end := min(row+c.rowTile, c.perGroup)
	switch {
	case c.panels.winograd > 0:
		c.winogradSums(batch, group, row, end, a, planes, sums, args)
	case c.panels.taps > 0:
		c.tapSums(batch, group, row, end, a, sums, args)
	default:
		c.blockSums(batch, group, row, end, a, planes, sums, args)
	}
	n := a.rows * a.cols // positions that leave together
	if a.rows > 1 && (out.row != a.cols || c.Residual && out.resRow != a.cols) {
		n = a.cols
	}
	for p := row; p < end; p += c.v.Conv.Lanes {
		panel := (p - row) / (2 * c.v.Conv.Lanes) * 2 * c.v.Conv.Lanes
		step := c.vectorsAt(row+panel) * c.v.Conv.Lanes
		for i := 0; i*n < a.rows*a.cols; i++ {
			part := out
			part.at, part.residual = out.at+(p-row)*out.step+i*out.row, out.residual+(p-row)*out.resStep+i*out.resRow
			c.leave(p, min(c.v.Conv.Lanes, end-p), group, 4*step, sums[panel*capacity+(p-row-panel)+i*n*step:], n, args, part)
		}
	}
}

// blockSums computes the sums of an area, a block of input channels after the
// other.
func (c *Conv) blockSums(batch, group, row, end int, a outputArea, planes, sums []float32, args *Args) {
	d := &c.direct
	capacity := c.sumRows(a.rows * a.cols)
	for k := 0; k < c.depth; k += d.block * c.taps {
		call := kernel.ConvTile{Depth: min(d.block*c.taps, c.depth-k), Offsets: &d.offsets[0]}
		if k > 0 {
			call.Add = 1
		}
		x := c.directInput(planes, batch, group, k/c.taps, call.Depth/c.taps, a, args)
		for p := row; p < end; p += 2 * c.v.Conv.Lanes {
			at, step := c.panels.at(group, p, k)
			vectors := c.vectorsAt(p)
			weights := c.weights(args, at, (call.Depth-1)*step+vectors*c.v.Conv.Lanes)
			call.Weights, call.WeightStep, call.SumStep = &weights[0], 4*step, 4*vectors*c.v.Conv.Lanes
			c.directPanel(&call, vectors, a, a.cols, x, sums[(p-row)*capacity:])
		}
	}
}

// vectorsAt is the number of vectors of the channels of a group that a tile
// takes from p on.
func (c *Conv) vectorsAt(p int) int {
	if c.perGroup-p > c.v.Conv.Lanes {
		return 2
	}
	return 1
}

// directInput returns the input of the area's first position and a block of
// channels, copied if it must be.
func (c *Conv) directInput(planes []float32, batch, group, channel, channels int, a outputArea, args *Args) []float32 {
	w, d := &c.view, &c.direct
	first := group*(c.InChannels/c.Group) + channel
	in := args.In[batch*w.InSteps.Batch+first*w.InSteps.Channel:]
	if d.inPlace {
		return in[w.InSteps.at(a.z*w.stride[0], a.y*w.stride[1], a.x*w.stride[2]):]
	}
	height, width := (a.rows-1)*w.stride[1]+w.reach(1), (a.cols-1)*w.stride[2]+w.reach(2)
	for i := range channels {
		c.copyPlane(planes[i*w.kernel[0]*d.height*d.width:], in[i*w.InSteps.Channel:], a, height, width, c.rowChange(first+i, args))
	}
	return planes
}

// copyPlane copies the elements of one channel that the area reads, through the
// prologue, with zeros for the padding.
func (c *Conv) copyPlane(dst, in []float32, a outputArea, height, width int, change rowChange) {
	w, d := &c.view, &c.direct
	x, y := a.x*w.stride[2]-w.padBegin[2], a.y*w.stride[1]-w.padBegin[1]
	left := min(max(0, -x), width)
	n := min(width, w.in[2]-x) - left
	lo, hi := min(max(0, -y), height), max(0, min(height, w.in[1]-y))
	for tz := range w.kernel[0] {
		plane := dst[tz*d.height*d.width:]
		z := a.z*w.stride[0] - w.padBegin[0] + tz*w.dilation[0]
		if z < 0 || z >= w.in[0] || lo >= hi || n <= 0 {
			clear(plane[:height*d.width])
			continue
		}
		clear(plane[:lo*d.width])
		from := in[w.InSteps.at(z, y+lo, x+left):]
		_, _ = from[(hi-lo-1)*w.InSteps.Row+n-1], plane[hi*d.width+c.v.Conv.Lanes-1]
		call := kernel.PadCall{
			Src: &from[0], SrcStep: 4 * w.InSteps.Row, Dst: &plane[lo*d.width], DstStep: 4 * d.width, Rows: hi - lo, N: n, Left: left, Width: width,
			Scale: change.scale, Shift: change.shift, Floor: float32(math.Inf(-1)),
		}
		kind := kernel.PadPlain
		if change.affine || change.relu {
			kind = kernel.PadAffine
		}
		if change.relu {
			call.Floor = 0
		}
		padRows(c.v, kind, call)
		clear(plane[hi*d.width : height*d.width])
	}
}

// directPanel runs the tiles of an area for one panel of channels. The sums of
// its rows are pitch positions apart.
func (c *Conv) directPanel(call *kernel.ConvTile, vectors int, a outputArea, pitch int, x, sums []float32) {
	w, d := &c.view, &c.direct
	rowStep := w.stride[1] * d.width
	if d.inPlace {
		rowStep = w.stride[1] * w.InSteps.Row
	}
	last := (a.rows-1)*rowStep + (a.cols-1)*w.stride[2] + int(d.offsets[call.Depth-1])/4
	_, _ = x[last], sums[((a.rows-1)*pitch+a.cols-1)*call.SumStep/4]
	call.Step = 4 * w.stride[2]
	c.positionTiles(call, vectors, a.rows, a.cols, pitch, w.stride[2], rowStep, x, sums)
}

// positionTiles runs tiles for rows of positions, which are step elements apart
// in a row of x and whose rows are rowStep apart. The sums of rows are pitch
// positions apart. Two short rows are one tile if they follow each other.
func (c *Conv) positionTiles(call *kernel.ConvTile, vectors, rows, cols, pitch, step, rowStep int, x, sums []float32) {
	if 2*cols <= c.v.Conv.Positions && pitch == cols {
		for r := 0; r < rows; r += 2 {
			n := cols
			call.Jump = (n + 1) / 2 * call.Step
			if r+1 < rows {
				n, call.Jump = 2*cols, 4*rowStep
			}
			call.X, call.Sums = &x[r*rowStep], &sums[r*cols*call.SumStep/4]
			c.v.Conv.Tiles(*call, vectors, n)
		}
		return
	}
	size := kernel.EvenTile(cols, c.v.Conv.Positions, 1)
	for r := range rows {
		for i := 0; i < cols; i += size {
			n := min(size, cols-i)
			call.Jump = (n + 1) / 2 * call.Step
			call.X, call.Sums = &x[r*rowStep+i*step], &sums[(r*pitch+i)*call.SumStep/4]
			c.v.Conv.Tiles(*call, vectors, n)
		}
	}
}

// leave writes n positions of up to a vector of channels, from channel p of the
// group on.
func (c *Conv) leave(p, channels, group, sumStep int, sums []float32, n int, args *Args, out planesOut) {
	at := out.at
	_ = out.data[at+(channels-1)*out.step+n-1]
	call := kernel.ConvLeave{
		Sums: &sums[0], SumStep: sumStep, Positions: n, Out: &out.data[at], OutStep: 4 * out.step, Channels: channels}
	if c.Residual {
		from := out.residual
		_ = args.Residual[from+(channels-1)*out.resStep+n-1]
		call.Residual, call.ResidualStep = &args.Residual[from], 4*out.resStep
	}
	if c.Bias != gemm.NoBias {
		bias := args.Bias[group*c.perGroup+p:][:channels]
		call.Bias = &bias[0]
	}
	var clamped bool
	call.Low, call.High, clamped = c.Act.Clamp()
	c.v.Conv.Leave(call)
	switch {
	case clamped:
	case out.step == n:
		c.Act.Apply(c.v, out.data[at:][:channels*n])
	default:
		for ch := range channels {
			c.Act.Apply(c.v, out.data[at+ch*out.step:][:n])
		}
	}
}
