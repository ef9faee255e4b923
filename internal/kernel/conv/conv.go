package conv

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// Conv is a convolution of [N, C, spatial...] by weights [M, C/Group,
// kernel...], as ONNX defines it, with what usually stands around it:
//
//	out = pool(act(conv(prologue(in)) + bias + residual))
//
// No matrix of patches is ever built: a tile gathers the patches of its own
// output positions, block by block, into scratch, and multiplies them with the
// weights where they lie, or it reads the input in place, a tap after the
// other. Padding is zero after the prologue. The bias is per
// output channel. With a pool, a tile computes the rows of the convolution that
// it needs in scratch, and writes only the pool's results. The input, the
// output and the residual may be boxes of larger tensors, whose rows lie in one
// piece: InSteps, OutSteps (of a pool, that of its window) and ResidualSteps
// say how. What is computed does not depend on them. Under a pool, the planes
// of a residual lie in one piece.
type Conv struct {
	Batch, Group            int
	InChannels, OutChannels int
	Window

	ResidualSteps Steps // zero if the elements follow each other

	ScaleShift   bool // prologue: x*Scale[c] + Shift[c] ...
	PrologueRelu bool // ... then max(x, 0)

	PackedWeights bool        // the weights are what WeightPanels.Pack wrote, or PackHalf
	Direct        bool        // they are not transformed for fewer multiplications
	FixedPictures int         // they are for so many pictures or more of these sizes alone, and their form may depend on them; 0 for any sizes
	WeightType    dtype.DType // that of Args.HalfWeights, which are read instead of Weights; Invalid if they are float32

	// WantedTiles is how many tiles there should be at least: more than so many
	// are not cut for the sake of their number. 0 is kernel.WantedTiles.
	WantedTiles int

	gemm.Epilogue
	Pool *Pool // Planes, In and its derivatives are filled in by Prepare

	v        *kernel.Variant // of Prepare
	kind     convKind
	depth    int    // C/Group * taps: the products of one output
	block    int    // of depth that is packed at once: whole channels if their taps are few
	perGroup int    // M/Group
	view     Window // the window the patches are gathered through: one long row for a pointwise convolution
	resView  Steps  // of the residual, for the axes of view
	inWhole  bool   // planes of the input lie in one piece,
	outWhole bool   // and those of the output and the residual
	panels   WeightPanels

	rowTile, colTile   int // output channels per tile, and positions (depthwise: rows; pooled: steps of the pool)
	rowTiles, colTiles int
	packB, region      int // floats of scratch: patches, convolution under the pool ...
	packA              int // ... and weights that lie badly or are packed
	nr                 int
	direct             directConv
	fewer              winogradConv
	apart              separableConv
	pooledDirect       bool // the convolution under the pool is a direct one
	byRow              rowConv
	rows               copiedRows // of a depthwise convolution, or one by rows
	planes             int        // groups per tile of one
}

type convKind uint8

const (
	convPanels convKind = iota
	convDepthwise
	convPooled
	convSeparable
	convDirect
	convByRows
)

// Args are the operands. Out may be Residual.
type Args struct {
	Out, In, Weights, Bias, Residual []float32
	Scale, Shift                     []float32
	HalfWeights                      []uint16
	PoolWeights, PoolBias            []float32 // of a depthwise convolution in the place of the pool

	wide []float32 // scratch for a block of weights
}

const (
	convCols = 128
	// pooledRegion bounds the rows of the convolution that a tile keeps for the
	// pool, in floats: half of a second-level cache.
	pooledRegion = 64 << 10
)

// Prepare works out the tiles. Window.Out and Pool.Out, the spatial sizes, are
// known afterwards.
func (c *Conv) Prepare(v *kernel.Variant) {
	c.v = v
	if c.WantedTiles == 0 {
		c.WantedTiles = kernel.WantedTiles
	}
	c.BiasFactor = 1
	if c.Bias != gemm.NoBias {
		c.Bias = gemm.BiasRow
	}
	c.Resolve()
	c.nr = v.Gemm.Width
	channels := c.InChannels / c.Group
	c.depth, c.perGroup = channels*c.taps, c.OutChannels/c.Group
	c.block = gemm.BlockDepth
	if c.taps > 0 && c.taps <= gemm.BlockDepth {
		c.block = gemm.BlockDepth / c.taps * c.taps
	}
	c.view = c.Window
	if c.PackedWeights {
		c.packed()
	}
	c.prepareSteps()
	copyable := c.outArea > 0 && (c.panels.taps > 0 || c.panels.winograd > 0 || c.Window.copyable())
	switch {
	case c.Pool != nil:
		c.kind = convPooled
		c.pooledDirect = c.PackedWeights && copyable
		c.preparePool()
		return
	case c.panels.winograd > 0 && copyable:
		c.kind = convDirect
		c.tileWinograd()
	case channels == 1 && c.perGroup <= depthwiseChannels && c.Window.copyable():
		c.kind = convDepthwise
		c.prepareDepthwise()
	case c.PackedWeights && copyable && c.panels.taps == 0 && c.byRows():
		c.kind = convByRows
		c.prepareRows()
	case c.PackedWeights && copyable:
		c.kind = convDirect
		if c.pointwise() && c.inWhole && c.outWhole {
			c.view.flatten()
		}
		c.tileDirect()
	default:
		c.kind = convPanels
		if c.pointwise() && c.inWhole {
			c.view.flatten()
		}
		c.preparePanels()
	}
}

// prepareSteps sets how operands and results lie.
func (c *Conv) prepareSteps() {
	c.ResidualSteps.orElse(c.out)
	c.InSteps.setBatch(c.InChannels)
	c.OutSteps.setBatch(c.OutChannels)
	c.ResidualSteps.setBatch(c.OutChannels)
	c.view.InSteps, c.view.OutSteps, c.resView = c.InSteps, c.OutSteps, c.ResidualSteps
	c.inWhole = c.InSteps.isWhole(c.in)
	c.outWhole = c.OutSteps.isWhole(c.out) && (!c.Residual || c.ResidualSteps.isWhole(c.out))
}

// Reset makes c the problem to, which is not prepared, and keeps the lists of c
// for it.
func (c *Conv) Reset(to Conv) {
	to.apart.offsets = c.apart.offsets
	to.direct.offsets, to.byRow.offsets, to.byRow.parts, to.rows.offsets = c.direct.offsets, c.byRow.offsets, c.byRow.parts, c.rows.offsets
	*c = to
}

// packed sets the panels of packed weights.
func (c *Conv) packed() {
	var ok bool
	if c.panels, ok = c.WeightPanels(c.v); !ok {
		kernel.Bug("convolution: packed weights for %d of %d output channels, which are read as they are", c.perGroup, c.OutChannels)
	}
}

// pointwise reports whether every output reads exactly the input element of its
// own place.
func (c *Conv) pointwise() bool {
	for i := range MaxSpatial {
		if c.kernel[i] != 1 || c.stride[i] != 1 || c.padBegin[i] != 0 || c.out[i] != c.in[i] {
			return false
		}
	}
	return true
}

// flatten makes one axis of a pointwise window's three.
func (w *Window) flatten() {
	w.in = [MaxSpatial]int{1, 1, w.inArea}
	w.out = w.in
	w.padEnd = [MaxSpatial]int{}
	w.InSteps.Plane, w.InSteps.Row = w.inArea, w.inArea
	w.OutSteps.Plane, w.OutSteps.Row = w.inArea, w.inArea
}

func (c *Conv) preparePanels() {
	c.rowTile, c.colTile = gemm.TileRows, convCols
	for c.rowTile > 16 && c.Batch*c.Group*kernel.CeilDiv(c.perGroup, c.rowTile)*kernel.CeilDiv(c.outArea, c.colTile) < c.WantedTiles {
		c.rowTile /= 2
	}
	c.rowTile = kernel.EvenTile(c.perGroup, c.rowTile, 1)
	c.colTile = kernel.EvenTile(c.outArea, c.colTile, c.nr)
	c.rowTiles, c.colTiles = kernel.CeilDiv(c.perGroup, c.rowTile), kernel.CeilDiv(c.outArea, c.colTile)
	c.packB = c.colTile * min(c.depth, c.block)
	switch {
	case c.PackedWeights && c.isHalf():
		c.packA = (c.rowTile + 1) * min(c.depth, c.block) // one row before it is widened
	case c.PackedWeights || c.isHalf():
		c.packA = c.rowTile * min(c.depth, c.block)
	case c.colTile > c.nr:
		c.packA = gemm.CrowdedFloats(c.rowTile, min(c.depth, c.block), c.depth)
	}
	if !c.outWhole {
		c.region = c.rowTile * c.colTile
	}
}

// ScratchBytes returns the size of the scratch that Tile needs, per worker.
func (c *Conv) ScratchBytes() int { return 4 * (c.packB + c.region + c.packA) }

// Tiles returns the number of tiles.
func (c *Conv) Tiles() int {
	if c.kind == convDepthwise {
		return kernel.CeilDiv(c.Batch*c.Group, c.planes) * c.rowTiles * c.colTiles
	}
	return c.Batch * c.Group * c.rowTiles * c.colTiles
}

// Tile computes part t. scratch holds at least ScratchBytes()/4 floats.
func (c *Conv) Tile(t int, scratch []float32, args *Args) {
	if c.isHalf() {
		with := *args
		with.wide = scratch[c.packB+c.region:][:c.packA]
		args = &with
	}
	part := t % c.colTiles
	row := t / c.colTiles % c.rowTiles * c.rowTile
	t = t / c.colTiles / c.rowTiles
	group, batch := t%c.Group, t/c.Group
	switch c.kind {
	case convDepthwise:
		c.depthwiseTile(t*c.planes, row, part, scratch, args)
	case convByRows:
		c.rowsTile(batch, group, part, scratch, args)
	case convDirect:
		c.directTile(batch, group, row, part, scratch, args)
	case convSeparable:
		c.separableTile(batch, group, row, part, scratch, args)
	case convPooled:
		c.pooledTile(batch, group, row, part*c.colTile, scratch, args)
	default:
		c.panelTile(batch, group, row, part*c.colTile, scratch, args)
	}
}

// panelTile computes positions [col, col+colTile) for a block of channels.
func (c *Conv) panelTile(batch, group, row, col int, scratch []float32, args *Args) {
	first := group*c.perGroup + row
	r := gemm.Rect{
		At: batch*c.OutSteps.Batch + first*c.OutSteps.Channel + col, Ld: c.OutSteps.Channel,
		Res: batch*c.ResidualSteps.Batch + first*c.ResidualSteps.Channel + col, ResLD: c.ResidualSteps.Channel,
		Rows: min(c.rowTile, c.perGroup-row), Cols: min(c.colTile, c.outArea-col),
		Row: first, Col: col, Width: c.outArea,
	}
	out, residual := args.Out, args.Residual
	if !c.outWhole {
		out, residual = c.bringResidual(&r, scratch, batch, residual), nil
		if c.Residual {
			residual = out
		}
	}
	acc := c.Begin(c.v, &r, out, nil, residual)
	c.multiply(&r, batch, group, acc, scratch, out, args)
	c.End(c.v, &r, out, args.Bias)
	if !c.outWhole {
		c.putRows(&r, out, args.Out[batch*c.OutSteps.Batch:])
	}
}

// bringResidual moves a rectangle into scratch, with the residual if there is
// one.
func (c *Conv) bringResidual(r *gemm.Rect, scratch []float32, batch int, residual []float32) []float32 {
	r.At, r.Ld, r.Res, r.ResLD = 0, r.Cols, 0, r.Cols
	region := scratch[c.packB:][:r.Rows*r.Cols]
	if !c.Residual {
		return region
	}
	residual = residual[batch*c.ResidualSteps.Batch:]
	for done := 0; done < r.Cols; {
		at, n := c.piece(&c.ResidualSteps, r.Col+done, r.Cols-done)
		for i := range r.Rows {
			copy(region[i*r.Cols+done:][:n], residual[(r.Row+i)*c.ResidualSteps.Channel+at:])
		}
		done += n
	}
	return region
}

// putRows copies a rectangle in scratch to the rows of a sample of the output.
func (c *Conv) putRows(r *gemm.Rect, region, out []float32) {
	for done := 0; done < r.Cols; {
		at, n := c.piece(&c.OutSteps, r.Col+done, r.Cols-done)
		for i := range r.Rows {
			copy(out[(r.Row+i)*c.OutSteps.Channel+at:], region[i*r.Cols+done:][:n])
		}
		done += n
	}
}

// piece returns where output position pos lies in its channel, and how many of
// n positions from it on are in its row.
func (c *Conv) piece(s *Steps, pos, n int) (at, inRow int) {
	x, width := pos%c.out[2], c.out[2]
	return s.at(pos/width/c.out[1], pos/width%c.out[1], x), min(n, width-x)
}

// multiply adds the products of weights and patches to a rectangle of channels
// and positions of c's output.
func (c *Conv) multiply(r *gemm.Rect, batch, group int, acc bool, scratch, dst []float32, args *Args) {
	if c.depth == 0 {
		if !acc {
			gemm.ZeroRect(r, dst)
		}
		return
	}
	for k := 0; k < c.depth; k += c.block {
		depth := min(c.block, c.depth-k)
		c.gather(scratch, batch, group, k, depth, r.Col, r.Cols, args)
		rows, ld := c.rowsOfWeights(r, scratch[c.packB+c.region:], k, depth, args)
		gemm.MultiplyPanels(c.v, r, depth, rows, ld, scratch, dst, acc)
		acc = true
	}
}

// rowsOfWeights returns columns [k, k+depth) of the weights of a rectangle's
// channels, where they lie or copied into scratch.
func (c *Conv) rowsOfWeights(r *gemm.Rect, scratch []float32, k, depth int, args *Args) (rows []float32, ld int) {
	switch {
	case c.isHalf():
		c.widenRows(r, k, depth, args)
		return args.wide, depth
	case c.PackedWeights:
		for i := range r.Rows {
			panelRow(&c.panels, scratch[i*depth:][:depth], args.Weights, r.Row+i, k)
		}
		return scratch, depth
	}
	rows = args.Weights[r.Row*c.depth+k:]
	if c.packA > 0 {
		return gemm.SpreadRows(scratch, rows, r.Rows, depth, c.depth)
	}
	return rows, c.depth
}
