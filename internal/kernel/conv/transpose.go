package conv

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// TransposeAxis is one spatial axis.
type TransposeAxis struct {
	In, Out, Kernel, Stride, Dilation, PadBefore int
}

// Transpose is a transposed convolution of float32 [Batch, InChannels,
// spatial...] by weights [InChannels, OutChannels/Group, kernel...], plus a
// bias per output channel, with an activation: input i of an axis adds to
// outputs i*Stride - PadBefore + k*Dilation.
//
// The products of all taps of a block of output channels with a run of input
// positions are one matrix product, of the weights as they lie, transposed,
// with the input as it lies. A tile adds them to its own output channels, so no
// two tiles meet.
type Transpose struct {
	Batch, Group            int
	InChannels, OutChannels int
	Axes                    []TransposeAxis
	Act                     gemm.Activation
	InSteps, OutSteps       Steps       // zero if the elements follow each other
	WeightType              dtype.DType // that of TransposeArgs.HalfWeights, which are read instead of Weights; Invalid if they are float32

	v         *kernel.Variant // of Prepare
	axes      [MaxSpatial]TransposeAxis
	in, out   int  // areas ...
	inWhole   bool // ... and whether a plane lies in one piece
	outWhole  bool
	taps      int
	channels  int // output channels per tile
	blocks    int // tiles per group
	depth     int // input channels per group ...
	packRows  int // ... and floats of scratch for the weights, the input, and their product
	packPanel int
	product   int
	packWide  int // weights of 16 bits that are widened
}

// TransposeArgs are the operands. Bias may be nil.
type TransposeArgs struct {
	Out, In, Weights, Bias []float32
	HalfWeights            []uint16
}

const (
	transposeRows = 128 // taps times channels of a tile
	transposeCols = 128 // input positions at a time
)

// Prepare works out the tiles.
func (c *Transpose) Prepare(v *kernel.Variant) {
	c.v = v
	if len(c.Axes) > MaxSpatial {
		kernel.Bug("conv_transpose: %d spatial axes, at most %d", len(c.Axes), MaxSpatial)
	}
	for i := range c.axes {
		c.axes[i] = TransposeAxis{In: 1, Out: 1, Kernel: 1, Stride: 1, Dilation: 1}
	}
	copy(c.axes[MaxSpatial-len(c.Axes):], c.Axes)
	c.in, c.out, c.taps = 1, 1, 1
	for _, a := range c.axes {
		c.in, c.out, c.taps = c.in*a.In, c.out*a.Out, c.taps*a.Kernel
	}
	z, y, x := &c.axes[0], &c.axes[1], &c.axes[2]
	in, out := [MaxSpatial]int{z.In, y.In, x.In}, [MaxSpatial]int{z.Out, y.Out, x.Out}
	c.InSteps.orElse(in)
	c.OutSteps.orElse(out)
	c.InSteps.setBatch(c.InChannels)
	c.OutSteps.setBatch(c.OutChannels)
	c.inWhole, c.outWhole = c.InSteps.isWhole(in), c.OutSteps.isWhole(out)
	perGroup := c.OutChannels / c.Group
	c.depth = c.InChannels / c.Group
	c.channels = max(1, min(perGroup, transposeRows/max(1, c.taps)))
	for c.channels > 1 && c.Batch*c.Group*kernel.CeilDiv(perGroup, c.channels) < kernel.WantedTiles {
		c.channels = kernel.CeilDiv(c.channels, 2)
	}
	c.blocks = kernel.CeilDiv(perGroup, c.channels)
	rows, depth := c.channels*c.taps, min(c.depth, gemm.BlockDepth)
	c.packRows, c.packPanel, c.product, c.packWide = rows*depth, transposeCols*depth, rows*transposeCols, 0
	if c.WeightType != dtype.Invalid {
		c.packWide = rows * depth
	}
}

// ScratchBytes returns the size of the scratch that Tile needs, per worker.
func (c *Transpose) ScratchBytes() int {
	return 4 * (c.packRows + c.packPanel + c.product + c.packWide)
}

// Tiles returns the number of tiles.
func (c *Transpose) Tiles() int {
	if c.out == 0 {
		return 0
	}
	return c.Batch * c.Group * c.blocks
}

// Tile computes part t. scratch holds at least ScratchBytes()/4 floats.
func (c *Transpose) Tile(t int, scratch []float32, args *TransposeArgs) {
	block := t % c.blocks
	group, batch := t/c.blocks%c.Group, t/c.blocks/c.Group
	perGroup := c.OutChannels / c.Group
	m := block * c.channels
	channels := min(c.channels, perGroup-m)
	first := group*perGroup + m
	out := args.Out[batch*c.OutSteps.Batch+first*c.OutSteps.Channel:]
	for i := range channels {
		var v float32
		if args.Bias != nil {
			v = args.Bias[first+i]
		}
		c.eachRow(out[i*c.OutSteps.Channel:], func(row []float32) { kernel.Repeat(row, v) })
	}
	if c.depth > 0 && c.in > 0 {
		c.accumulate(scratch, out, args.In[batch*c.InSteps.Batch+group*c.depth*c.InSteps.Channel:], args, (group*c.depth*perGroup+m)*c.taps, channels)
	}
	for i := range channels {
		c.eachRow(out[i*c.OutSteps.Channel:], func(row []float32) { c.Act.Apply(c.v, row) })
	}
}

// eachRow calls f with the rows of a plane of results, or all of a plane that
// lies in one piece.
func (c *Transpose) eachRow(plane []float32, f func(row []float32)) {
	if c.outWhole {
		f(plane[:c.out])
		return
	}
	for z := range c.axes[0].Out {
		for y := range c.axes[1].Out {
			f(plane[c.OutSteps.at(z, y, 0):][:c.axes[2].Out])
		}
	}
}

// accumulate adds the products of a whole input with the weights from one on,
// of the channels whose planes are out.
func (c *Transpose) accumulate(scratch, out, in []float32, args *TransposeArgs, weights, channels int) {
	rows := channels * c.taps
	product := scratch[c.packRows+c.packPanel:]
	for at := 0; at < c.in; at += transposeCols {
		n := min(transposeCols, c.in-at)
		c.multiply(scratch, in, at, args, weights, rows, n)
		for r := range rows {
			c.spread(out[r/c.taps*c.OutSteps.Channel:], product[r*transposeCols:][:n], r%c.taps, at)
		}
	}
}

// multiply computes the product of rows taps and n input positions from at on.
func (c *Transpose) multiply(scratch, in []float32, at int, args *TransposeArgs, weights, rows, n int) {
	packed, panels, product := scratch[:c.packRows], scratch[c.packRows:][:c.packPanel], scratch[c.packRows+c.packPanel:]
	r := gemm.Rect{Ld: transposeCols, Rows: rows, Cols: n}
	ld := c.OutChannels / c.Group * c.taps
	for k := 0; k < c.depth; k += gemm.BlockDepth {
		depth := min(gemm.BlockDepth, c.depth-k)
		c.packWeights(scratch, packed, args, weights+k*ld, depth, rows)
		for j := 0; j < n; j += c.v.Gemm.Width {
			c.pack(panels[j*depth:(j+c.v.Gemm.Width)*depth], in[k*c.InSteps.Channel:], at+j, depth, min(c.v.Gemm.Width, n-j))
		}
		gemm.MultiplyPanels(c.v, &r, depth, packed, depth, panels, product, k > 0)
	}
}

// packWeights packs the weights of rows taps, from one on, for depth input
// channels.
func (c *Transpose) packWeights(scratch, packed []float32, args *TransposeArgs, from, depth, rows int) {
	ld := c.OutChannels / c.Group * c.taps
	if c.WeightType == dtype.Invalid {
		gemm.PackColumns(packed, args.Weights[from:], ld, depth, rows)
		return
	}
	wide := scratch[c.packRows+c.packPanel+c.product:][:depth*rows]
	for k := range depth {
		elementwise.Widen(c.v, c.WeightType, wide[k*rows:][:rows], args.HalfWeights[from+k*ld:][:rows], 0, 1)
	}
	gemm.PackColumns(packed, wide, rows, depth, rows)
}

// pack packs n input positions from at on of depth channels.
func (c *Transpose) pack(dst, in []float32, at, depth, n int) {
	width := c.v.Gemm.Width
	if c.inWhole {
		gemm.PackPanel(dst, in[at:], c.InSteps.Channel, depth, n, width)
		return
	}
	row := c.axes[2].In
	for col := 0; col < n; {
		x, y, z := (at+col)%row, (at+col)/row%c.axes[1].In, (at+col)/row/c.axes[1].In
		piece := min(n-col, row-x)
		from := c.InSteps.at(z, y, x)
		for k := range depth {
			copy(dst[k*width+col:][:piece], in[k*c.InSteps.Channel+from:])
		}
		col += piece
	}
	for k := range depth {
		clear(dst[k*width+n : (k+1)*width])
	}
}

// spread adds the products of one tap with input positions at, at+1, ... to the
// outputs that they reach.
func (c *Transpose) spread(out, product []float32, tap, at int) {
	az, ay, ax := &c.axes[0], &c.axes[1], &c.axes[2]
	shiftX := tap%ax.Kernel*ax.Dilation - ax.PadBefore
	shiftY := tap/ax.Kernel%ay.Kernel*ay.Dilation - ay.PadBefore
	shiftZ := tap/ax.Kernel/ay.Kernel*az.Dilation - az.PadBefore
	for len(product) > 0 {
		x := at % ax.In
		y := at/ax.In%ay.In*ay.Stride + shiftY
		z := at/ax.In/ay.In*az.Stride + shiftZ
		n := min(len(product), ax.In-x)
		if z >= 0 && z < az.Out && y >= 0 && y < ay.Out {
			row := out[c.OutSteps.at(z, y, 0):][:ax.Out]
			to := x*ax.Stride + shiftX
			for _, v := range product[:n] {
				if uint(to) < uint(len(row)) {
					row[to] += v
				}
				to += ax.Stride
			}
		}
		product, at = product[n:], at+n
	}
}
