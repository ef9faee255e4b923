package conv

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// Where there are few products per output, or few output channels, transposing
// sums into planes costs more than it saves. Then neighbouring positions of a
// row are the vectors, and packed weights are what is broadcast, some channels
// of a panel at a time. The input lies as for a depthwise convolution, a copy
// per channel of a block, or is read in place if every output reads the element
// of its own place.

// rowStrides is the largest stride of which copies of rows have a loop of their
// own.
const rowStrides = 2

// rowConv is how such a convolution is cut.
type rowConv struct {
	flat         bool    // the input is read in place
	rows, cols   int     // of output positions per tile
	block, plane int     // channels per block, floats of scratch for one
	offsets      []int32 // of a block's products
	parts        []rowPart
}

// rowPart is a part of a panel of weights: channels of a group that are
// computed together.
type rowPart struct {
	channel, n  int
	panel, step int // the first channel of their panel, and the distance of the weights of a product from those of the next
}

// byRows reports whether vectors of positions are likely to be faster.
func (c *Conv) byRows() bool {
	if !c.mayRows(c.v) {
		return false
	}
	width := c.Window.out[2]
	if c.pointwise() {
		width = c.outArea
	}
	return c.panels.rowsPay(float64(kernel.CeilDiv(width, c.v.Conv.Lanes)*c.v.Conv.Lanes) / float64(width))
}

// mayRows reports whether vectors of positions are possible.
func (c *Conv) mayRows(v *kernel.Variant) bool {
	n := len(c.Window.Stride)
	return v.Conv.RowTiles != nil && c.Pool == nil && (n == 0 || c.Window.Stride[n-1] <= rowStrides)
}

func (c *Conv) prepareRows() {
	w, r := &c.view, &c.byRow
	r.flat = c.pointwise() && !c.ScaleShift && !c.PrologueRelu && directDepth*w.inArea < math.MaxInt32/4
	c.rowTile, c.rowTiles = c.perGroup, 1
	r.rows, r.cols = min(w.out[1], max(1, directPositions/w.out[2])), w.out[2]
	if r.flat {
		w.flatten()
		r.rows, r.cols = 1, min(w.inArea, 4*2*c.v.Conv.Lanes)
	}
	tiles := func() int {
		return c.Batch * c.Group * w.out[0] * kernel.CeilDiv(w.out[1], r.rows) * kernel.CeilDiv(w.out[2], r.cols)
	}
	for tiles() < c.WantedTiles && r.rows > 2 {
		r.rows = kernel.CeilDiv(r.rows, 2)
	}
	r.rows = kernel.EvenTile(w.out[1], r.rows, 1)
	c.cutPanels()
	channels := c.InChannels / c.Group
	r.block = min(channels, max(1, directDepth/c.taps))
	one := [1]int32{}
	taps, plane := one[:], w.InSteps.Channel
	if !r.flat {
		c.rows.prepare(c.v, w, r.rows, 0)
		taps, plane = c.rows.offsets, c.rows.floats
		r.block = min(r.block, max(1, directCopy/plane))
		r.plane = plane
	}
	r.offsets = slices.Grow(r.offsets[:0], r.block*len(taps))
	for ch := range r.block {
		for _, o := range taps {
			r.offsets = append(r.offsets, int32(4*ch*plane)+o)
		}
	}
	c.colTiles = w.out[0] * kernel.CeilDiv(w.out[1], r.rows) * kernel.CeilDiv(w.out[2], r.cols)
	c.packB = r.block * r.plane
	if c.isHalf() {
		c.packA = r.block * c.taps * c.panels.stored
	}
}

// cutPanels lists the parts of the panels.
func (c *Conv) cutPanels() {
	r := &c.byRow
	r.parts = r.parts[:0]
	for first := 0; first < c.perGroup; first += c.panels.width {
		channels := min(c.panels.width, c.perGroup-first)
		most := kernel.EvenTile(channels, c.v.Conv.Channels, 1)
		for i := 0; i < channels; i += most {
			_, step := c.panels.at(0, first, 0)
			r.parts = append(r.parts, rowPart{channel: first + i, n: min(most, channels-i), panel: first, step: step})
		}
	}
}

// rowsTile computes a part of the positions for all channels of a group.
func (c *Conv) rowsTile(batch, group, part int, scratch []float32, args *Args) {
	w, r := &c.view, &c.byRow
	parts := kernel.CeilDiv(w.out[2], r.cols)
	x, part := part%parts*r.cols, part/parts
	perPlane := kernel.CeilDiv(w.out[1], r.rows)
	z, y := part/perPlane, part%perPlane*r.rows
	a := outputArea{z: z, y: y, x: x, rows: min(r.rows, w.out[1]-y), cols: min(r.cols, w.out[2]-x)}
	m := group * c.perGroup
	out := args.Out[batch*c.OutSteps.Batch+m*c.OutSteps.Channel:]
	call := kernel.ConvRowTile{Offsets: &r.offsets[0], OutStep: 4 * c.OutSteps.Channel, Low: float32(math.Inf(-1)), High: float32(math.Inf(1))}
	var residual []float32
	if c.Residual {
		residual = args.Residual[batch*c.ResidualSteps.Batch+m*c.ResidualSteps.Channel:]
	}
	channels := c.InChannels / c.Group
	for k := 0; k < channels; k += r.block {
		n := min(r.block, channels-k)
		call.Depth = n * c.taps
		src := args.In[batch*w.InSteps.Batch+(group*channels+k)*w.InSteps.Channel:]
		if !r.flat {
			for i := range n {
				c.rows.copy(c.v, scratch[i*r.plane:], src[i*w.InSteps.Channel:], 0, z, y, a.rows, c.rowChange(group*channels+k+i, args))
			}
			src = scratch
		}
		add, addSteps := residual, &c.ResidualSteps
		if k > 0 {
			add, addSteps = out, &c.OutSteps
		}
		last := k+n == channels
		if last {
			call.Low, call.High, _ = c.Act.Clamp()
		}
		call.AddStep = 4 * addSteps.Channel
		weights := c.weightsOfRows(args, group, k*c.taps, call.Depth)
		for done := 0; done < a.rows*a.cols; {
			s := c.segment(&a, done, addSteps)
			c.rowPanels(call, weights, src[s.in:], out[s.out:], add, s.add, s.n, m, last, args)
			done += s.n
		}
	}
	if _, _, clamped := c.Act.Clamp(); !clamped {
		for ch := range c.perGroup {
			for done := 0; done < a.rows*a.cols; {
				s := c.segment(&a, done, &c.OutSteps)
				c.Act.Apply(c.v, out[ch*c.OutSteps.Channel+s.out:][:s.n])
				done += s.n
			}
		}
	}
}

// rowSegment is some output positions that follow each other: where they begin
// in a plane of what is read (copied rows where there are such), of the output
// and of what is added.
type rowSegment struct{ in, out, add, n int }

// segment returns those of an area that begin after so many others. Rows of a
// flat area are those of the image where they do not follow each other.
func (c *Conv) segment(a *outputArea, done int, add *Steps) rowSegment {
	w := &c.view
	switch {
	case !c.byRow.flat:
		row := done / a.cols
		return rowSegment{in: row * w.stride[1] * c.rows.rowSize, out: c.OutSteps.at(a.z, a.y+row, a.x), add: add.at(a.z, a.y+row, a.x), n: a.cols}
	case c.inWhole && c.outWhole:
		return rowSegment{in: a.x, out: a.x, add: a.x, n: a.cols}
	}
	in, n := c.piece(&c.InSteps, a.x+done, a.cols-done)
	out, _ := c.piece(&c.OutSteps, a.x+done, n)
	from, _ := c.piece(add, a.x+done, n)
	return rowSegment{in: in, out: out, add: from, n: n}
}

// rowWeights are the panels of a group's weights, which are depth rows apart,
// for the products from k on.
type rowWeights struct {
	panels   []float32
	depth, k int
}

// weightsOfRows returns the weights of a group for some products from k on.
func (c *Conv) weightsOfRows(args *Args, group, k, depth int) rowWeights {
	first, n := group*c.panels.groupFloats(), c.panels.groupFloats()
	if !c.isHalf() {
		return rowWeights{args.Weights[first:], c.depth, k}
	}
	for panel := 0; panel < c.perGroup; panel += c.panels.width {
		at, step := c.panels.at(group, panel, k)
		elementwise.Widen(c.v, c.WeightType, args.wide[panel*depth:][:depth*step], args.HalfWeights[at:first+n], 0, 1)
	}
	return rowWeights{args.wide, depth, 0}
}

// rowPanels computes a row of positions for the channels of a group, whose
// first is m.
func (c *Conv) rowPanels(call kernel.ConvRowTile, of rowWeights, src, out, add []float32, addAt, cols, m int, last bool, args *Args) {
	r := &c.byRow
	_ = src[int(r.offsets[call.Depth-1])/4+cols-1]
	for x := 0; x < cols; x += 2 * c.v.Conv.Lanes {
		call.Cols = min(2*c.v.Conv.Lanes, cols-x)
		call.X = &src[x]
		for i := range r.parts {
			p, n, panel, step := r.parts[i].channel, r.parts[i].n, r.parts[i].panel, r.parts[i].step
			weights := of.panels[panel*of.depth+of.k*step+p-panel:][:(call.Depth-1)*step+n]
			call.Weights, call.WeightStep = &weights[0], 4*step
			to := out[p*call.OutStep/4+x:][:(n-1)*call.OutStep/4+call.Cols]
			call.Out = &to[0]
			if add != nil {
				from := add[addAt+p*call.AddStep/4+x:][:(n-1)*call.AddStep/4+call.Cols]
				call.Add = &from[0]
			}
			if last && c.Bias != gemm.NoBias {
				bias := args.Bias[m+p:][:n]
				call.Bias = &bias[0]
			}
			c.v.Conv.RowTiles(call, kernel.CeilDiv(call.Cols, c.v.Conv.Lanes), n)
		}
	}
}
