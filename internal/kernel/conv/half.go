package conv

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// Half is a convolution of 16-bit floats, with all that Conv takes. A tile is a
// part of a smaller convolution of float32: of a box of the input, which is
// widened into scratch, as the residual is. Its results are rounded once.
type Half struct {
	Type dtype.DType

	v        *kernel.Variant // of Prepare
	whole    *Conv
	outputs  [MaxSpatial]int // sizes of the results
	outSteps Steps
	axes     [MaxSpatial]axisCuts
	parts    []Conv // by the kind of the cut of each axis, innermost fastest
	pools    []Pool // of parts
	perGroup int    // output channels
	perInput int    // input channels of a group
	groups   int    // per tile
	direct   bool   // weights are not transformed
	rowParts int    // tiles that share a box: each computes some of the channels
	place    halfPlaces
}

// HalfArgs are the operands. Out may be Residual.
type HalfArgs struct {
	Out, In, Weights, Bias, Residual []uint16
	Scale, Shift                     []float32
}

// halfPlaces says where a tile's parts of scratch begin, in floats: the box of
// the input, that of the residual, if results do not lie there, that of the
// results, the bias, the weights of a narrow convolution, and the scratch of
// the float32 convolution.
type halfPlaces struct{ residual, out, bias, weights, part, end int }

// cut is a run of outputs along one axis, and what they read: of the input, of
// the convolution under the pool if there is one.
type cut struct {
	out, conv, in, pool axisRun
	kind                int
}

// axisRun is some places that follow each other, and the padding before and
// behind them.
type axisRun struct{ at, n, before, after int }

// axisCuts are the cuts of an axis. Cuts of one kind differ in where they begin
// alone.
type axisCuts struct {
	cuts  []cut
	kinds []cut // the first cut of each kind
}

const (
	// halfFloats is about how many floats of results, or of the input, a tile
	// has in scratch.
	halfFloats = 32 << 10
	// halfProducts are enough products for a tile with few channels.
	halfProducts = 4 << 20
	// halfChannels are output channels that share a box at least, and
	// halfPositions outputs that share widened weights.
	halfChannels  = 32
	halfPositions = 48
)

// Prepare works out the tiles of a convolution, which is not prepared, but for
// its sizes, and whose weights have the type. It keeps it.
func (h *Half) Prepare(v *kernel.Variant, c *Conv) {
	h.v, h.whole = v, c
	panels, _ := c.WeightPanels(v)
	h.direct = panels.winograd == 0
	c.Resolve()
	c.InSteps.setBatch(c.InChannels)
	c.ResidualSteps.orElse(c.out)
	c.ResidualSteps.setBatch(c.OutChannels)
	h.outputs = c.out
	if c.Pool != nil {
		c.Pool.Window.In = append(c.Pool.Window.In[:0], c.Window.Out...)
		c.Pool.Resolve()
		h.outputs = c.Pool.out
	}
	h.outSteps = c.OutSteps
	if c.Pool != nil {
		h.outSteps = c.Pool.OutSteps
	}
	h.outSteps.setBatch(c.OutChannels)
	h.perGroup, h.perInput = c.OutChannels/c.Group, c.InChannels/c.Group
	h.cutAxes(h.tileSizes())
	h.prepareParts()
}

// tileSizes chooses how many outputs a tile has along each axis, and how many
// groups. There are fewer where there would be less than enough tiles.
func (h *Half) tileSizes() (sizes [MaxSpatial]int) {
	c, out := h.whole, &h.outputs
	perOutput := max(1, h.perInput*c.taps*h.perGroup)
	positions := max(directPositions, min(halfProducts/perOutput, halfFloats/max(1, h.perInput, h.perGroup)))
	if !h.direct { // boxes are transformed, with what is around them
		positions = max(positions, 2*halfFloats/max(h.perInput, h.perGroup))
	}
	if p := c.Pool; p != nil {
		positions = max(1, positions/kernel.Product(p.stride[:]))
	}
	sizes = *out
	if out[2] > 2*positions {
		sizes[2] = kernel.EvenTile(out[2], positions, 1)
	}
	sizes[1] = kernel.EvenTile(out[1], min(max(1, out[1]), max(1, positions/max(1, out[2]))), 1)
	sizes[0] = kernel.EvenTile(out[0], min(max(1, out[0]), max(1, positions/max(1, out[1]*out[2]))), 1)
	perGroup := max(1, kernel.Product(sizes[:])*max(h.perInput*kernel.Product(c.stride[:]), h.perGroup))
	h.groups = max(1, min(c.Group, halfFloats/2/perGroup))
	for h.tileCount(&sizes)*max(1, h.perGroup/halfChannels) < kernel.WantedTiles {
		switch {
		case h.groups > 1:
			h.groups = kernel.CeilDiv(h.groups, 2)
		case sizes[0] > 1:
			sizes[0] = kernel.CeilDiv(sizes[0], 2)
		case kernel.Product(sizes[:]) < 2*halfPositions:
			return h.evenSizes(sizes)
		case sizes[1] > 1:
			sizes[1] = kernel.CeilDiv(sizes[1], 2)
		case sizes[2] > 1:
			sizes[2] = kernel.CeilDiv(sizes[2], 2)
		default:
			return h.evenSizes(sizes)
		}
	}
	return h.evenSizes(sizes)
}

// evenSizes makes tiles nearly equal, and all of as many groups.
func (h *Half) evenSizes(sizes [MaxSpatial]int) [MaxSpatial]int {
	for h.whole.Group%h.groups != 0 {
		h.groups--
	}
	for i := range sizes {
		unit := 1
		if !h.direct && i > 0 && h.outputs[i] > 2 { // whole tiles of the algorithm
			unit = 2
		}
		sizes[i] = min(max(1, h.outputs[i]), kernel.EvenTile(h.outputs[i], max(1, sizes[i]), unit))
	}
	return sizes
}

// tileCount is the number of boxes.
func (h *Half) tileCount(sizes *[MaxSpatial]int) int {
	n := h.whole.Batch * kernel.CeilDiv(h.whole.Group, h.groups)
	for i, size := range sizes {
		n *= kernel.CeilDiv(h.outputs[i], max(1, size))
	}
	return n
}

// cutAxes cuts the outputs of each axis into runs.
func (h *Half) cutAxes(sizes [MaxSpatial]int) {
	for i := range h.axes {
		a := &h.axes[i]
		if !h.cutAxis(a, i, sizes[i]) {
			h.cutAxis(a, i, max(1, h.outputs[i]))
		}
	}
}

// cutAxis cuts one axis. It reports false if a run reads nothing of the input:
// then the axis is to be left whole.
func (h *Half) cutAxis(a *axisCuts, axis, size int) bool {
	a.cuts, a.kinds = a.cuts[:0], a.kinds[:0]
	regular := true
	for at := 0; at < h.outputs[axis]; at += size {
		k := h.cutAt(axis, at, min(size, h.outputs[axis]-at))
		regular = regular && k.in.n > 0 && k.conv.n > 0
		k.kind = slices.IndexFunc(a.kinds, func(other cut) bool { return k.alike(&other) })
		if k.kind < 0 {
			k.kind = len(a.kinds)
			a.kinds = append(a.kinds, k)
		}
		a.cuts = append(a.cuts, k)
	}
	return regular
}

// alike reports whether two runs differ in where they begin alone.
func (k cut) alike(other *cut) bool {
	k.out.at, k.conv.at, k.in.at, k.pool.at, k.kind = other.out.at, other.conv.at, other.in.at, other.pool.at, other.kind
	return k == *other
}

// cutAt returns what n outputs from one on read.
func (h *Half) cutAt(axis, at, n int) cut {
	c := h.whole
	k := cut{out: axisRun{at: at, n: n}, conv: axisRun{at: at, n: n}}
	if n == h.outputs[axis] { // all of it, as it is
		k.in = axisRun{n: c.in[axis], before: c.padBegin[axis], after: c.padEnd[axis]}
		if k.conv.n = c.out[axis]; c.Pool != nil {
			k.pool = axisRun{before: c.Pool.padBegin[axis], after: c.Pool.padEnd[axis]}
		}
		return k
	}
	if p := c.Pool; p != nil {
		begin := at*p.stride[axis] - p.padBegin[axis]
		k.conv = inside(begin, (n-1)*p.stride[axis]+p.reach(axis), c.out[axis])
		// Of what lies behind, an average counts the padding alone.
		k.pool = axisRun{before: k.conv.before, after: min(k.conv.after, p.padEnd[axis])}
		k.conv.before, k.conv.after = 0, 0
	}
	k.in = inside(k.conv.at*c.stride[axis]-c.padBegin[axis], (k.conv.n-1)*c.stride[axis]+c.reach(axis), c.in[axis])
	return k
}

// inside returns the part of n places from one on that lies in [0, size), and
// what lies outside as padding.
func inside(at, n, size int) axisRun {
	lo, hi := min(max(at, 0), size), min(max(at+n, 0), size)
	return axisRun{at: lo, n: hi - lo, before: lo - at, after: at + n - hi}
}

// prepareParts prepares the float32 convolutions.
func (h *Half) prepareParts() {
	n := 1
	for i := range h.axes {
		n *= len(h.axes[i].kinds)
	}
	h.parts = slices.Grow(h.parts[:0], n)[:n]
	h.pools = slices.Grow(h.pools[:0], n)[:n]
	var sizes [MaxSpatial]int
	for i := range h.axes {
		for _, k := range h.axes[i].kinds {
			sizes[i] = max(sizes[i], k.out.n)
		}
	}
	wanted := max(1, kernel.CeilDiv(kernel.WantedTiles, max(1, h.tileCount(&sizes))))
	h.rowParts, h.place = 0, halfPlaces{}
	in, residual, out, scratch := 0, 0, 0, 0
	for i := range h.parts {
		var cuts [MaxSpatial]cut
		for axis, left := MaxSpatial-1, i; axis >= 0; axis-- {
			kinds := h.axes[axis].kinds
			cuts[axis], left = kinds[left%len(kinds)], left/len(kinds)
		}
		h.setPart(i, &cuts, wanted)
		part := &h.parts[i]
		h.rowParts = max(h.rowParts, part.rowTiles)
		in = max(in, part.InChannels*part.inArea)
		if residual = max(residual, part.OutChannels*part.outArea); part.Pool == nil {
			out = residual
		} else {
			out = max(out, part.OutChannels*part.Pool.outArea)
		}
		scratch = max(scratch, part.ScratchBytes()/4)
	}
	if h.whole.Pool == nil || !h.whole.Residual {
		residual = 0
	}
	align := func(n int) int { return kernel.CeilDiv(n, 16) * 16 }
	p := &h.place
	p.residual = align(in + h.v.Conv.Lanes) // whole vectors are read
	p.out = p.residual + align(residual)
	p.bias = p.out + align(out)
	p.weights = p.bias + align(h.groups*h.perGroup)
	if p.part = p.weights; h.narrow() {
		p.part += align(h.groups * h.perGroup * h.whole.taps)
	}
	p.end = p.part + scratch
}

// setPart prepares a float32 convolution of boxes of one kind.
func (h *Half) setPart(i int, cuts *[MaxSpatial]cut, wanted int) {
	c, part := h.whole, &h.parts[i]
	skip := MaxSpatial - len(c.Window.Kernel) // axes that the convolution has not
	w := &part.Window
	to := Conv{
		Batch: 1, Group: h.groups, InChannels: h.groups * h.perInput, OutChannels: h.groups * h.perGroup,
		Window: Window{
			In: w.In[:0], Out: w.Out[:0], Kernel: append(w.Kernel[:0], c.kernel[skip:]...), Stride: append(w.Stride[:0], c.stride[skip:]...),
			Dilation: append(w.Dilation[:0], c.dilation[skip:]...), PadBegin: w.PadBegin[:0], PadEnd: w.PadEnd[:0],
		},
		ScaleShift: c.ScaleShift, PrologueRelu: c.PrologueRelu, PackedWeights: c.PackedWeights, Direct: h.direct,
		WantedTiles: wanted, Epilogue: c.Epilogue,
	}
	if !h.narrow() {
		to.WeightType = h.Type
	}
	w = &to.Window
	for _, k := range cuts[skip:] {
		w.In, w.Out = append(w.In, k.in.n), append(w.Out, k.conv.n)
		w.PadBegin, w.PadEnd = append(w.PadBegin, k.in.before), append(w.PadEnd, k.in.after)
	}
	if p := c.Pool; p != nil {
		of := &h.pools[i]
		w := &of.Window
		pool := Pool{Kind: p.Kind, Window: Window{
			In: w.In[:0], Out: w.Out[:0], Kernel: append(w.Kernel[:0], p.kernel[skip:]...), Stride: append(w.Stride[:0], p.stride[skip:]...),
			Dilation: append(w.Dilation[:0], p.dilation[skip:]...), PadBegin: w.PadBegin[:0], PadEnd: w.PadEnd[:0],
		}}
		w = &pool.Window
		for _, k := range cuts[skip:] {
			w.Out = append(w.Out, k.out.n)
			w.PadBegin, w.PadEnd = append(w.PadBegin, k.pool.before), append(w.PadEnd, k.pool.after)
		}
		of.Reset(pool)
		to.Pool = of
	}
	part.Reset(to)
	part.Prepare(h.v)
}

// ScratchBytes returns the size of the scratch that Tile needs, per worker.
func (h *Half) ScratchBytes() int { return 4 * h.place.end }

// Tiles returns the number of tiles.
func (h *Half) Tiles() int {
	n := h.whole.Batch * (h.whole.Group / h.groups) * h.rowParts
	for i := range h.axes {
		n *= len(h.axes[i].cuts)
	}
	return n
}

// halfTile is what a tile computes: channels [row, row+rows) of each of some
// groups, for a box of outputs.
type halfTile struct {
	batch, group int // the first group
	cuts         [MaxSpatial]*cut
	row, rows    int
}

// Tile computes part t. scratch holds at least ScratchBytes()/4 floats.
func (h *Half) Tile(t int, scratch []float32, args *HalfArgs) {
	var tile halfTile
	rowPart := t % h.rowParts
	t /= h.rowParts
	kind, step := 0, 1
	for axis := MaxSpatial - 1; axis >= 0; axis-- {
		a := &h.axes[axis]
		tile.cuts[axis] = &a.cuts[t%len(a.cuts)]
		t /= len(a.cuts)
		kind += tile.cuts[axis].kind * step
		step *= len(a.kinds)
	}
	groups := h.whole.Group / h.groups
	tile.batch, tile.group = t/groups, t%groups*h.groups
	part := &h.parts[kind]
	first, end := rowPart*part.rowTiles/h.rowParts, (rowPart+1)*part.rowTiles/h.rowParts
	if tile.row, tile.rows = first*part.rowTile, min(end*part.rowTile, h.perGroup)-first*part.rowTile; tile.rows <= 0 {
		return
	}
	with := h.bring(&tile, part, scratch, args)
	perRow := part.colTiles
	for i := 0; i < part.Tiles(); i += part.rowTiles * perRow {
		for j := first * perRow; j < end*perRow; j++ {
			part.Tile(i+j, scratch[h.place.part:], &with)
		}
	}
	h.leave(&tile, with.Out, args.Out)
}

// bring widens the operands of a tile.
func (h *Half) bring(t *halfTile, part *Conv, scratch []float32, args *HalfArgs) (with Args) {
	c, p := h.whole, &h.place
	firstIn, firstOut := t.group*h.perInput, t.group*h.perGroup
	box := boxOf(t, func(k *cut) axisRun { return k.in })
	box.widen(h.v, h.Type, scratch, args.In[t.batch*c.InSteps.Batch+firstIn*c.InSteps.Channel:], &c.InSteps, 0, part.InChannels)
	with.In, with.Out = scratch[:p.residual], scratch[p.out:p.bias]
	if c.Residual {
		with.Residual = with.Out
		if c.Pool != nil {
			with.Residual = scratch[p.residual:p.out]
		}
		box := boxOf(t, func(k *cut) axisRun { return k.conv })
		from := args.Residual[t.batch*c.ResidualSteps.Batch+firstOut*c.ResidualSteps.Channel:]
		for g := range h.groups {
			box.widen(h.v, h.Type, with.Residual, from, &c.ResidualSteps, g*h.perGroup+t.row, t.rows)
		}
	}
	if c.Bias != gemm.NoBias {
		with.Bias = scratch[p.bias:p.weights][:part.OutChannels]
		elementwise.Widen(h.v, h.Type, with.Bias, args.Bias[firstOut:], 0, 1)
	}
	if c.ScaleShift {
		with.Scale, with.Shift = args.Scale[firstIn:], args.Shift[firstIn:]
	}
	switch {
	case c.PackedWeights:
		with.HalfWeights = args.Weights[t.group*part.panels.groupFloats():]
	case h.narrow():
		with.Weights = scratch[p.weights:p.part][:part.OutChannels*part.depth]
		elementwise.Widen(h.v, h.Type, with.Weights, args.Weights[firstOut*part.depth:], 0, 1)
	default:
		with.HalfWeights = args.Weights[firstOut*part.depth:]
	}
	return with
}

// narrow reports whether a group has one input channel. Then the weights of a
// tile are few, and are widened once.
func (h *Half) narrow() bool { return h.perInput == 1 && !h.whole.PackedWeights }

// leave rounds the results of a tile.
func (h *Half) leave(t *halfTile, from []float32, out []uint16) {
	box := boxOf(t, func(k *cut) axisRun { return k.out })
	out = out[t.batch*h.outSteps.Batch+t.group*h.perGroup*h.outSteps.Channel:]
	for g := range h.groups {
		box.round(h.v, h.Type, out, from, &h.outSteps, g*h.perGroup+t.row, t.rows)
	}
}

func boxOf(t *halfTile, run func(k *cut) axisRun) (b halfBox) {
	for i, k := range t.cuts {
		r := run(k)
		b.at[i], b.n[i] = r.at, r.n
	}
	return b
}
