package quantised

import "github.com/tenure-go/tenure/internal/kernel"

// Convolutions by blocks: a tile writes the image of some places and multiplies
// it with some panels of filters. A panel of places is as many of them as the
// kernels compute at once, one after the other in the image: at the end of a
// row of places come some that are none, whose results are not used.

// imageLimit bounds an image, and leavePanels the panels of results that wait
// until they are copied to their places.
const (
	imageLimit  = 256 << 10
	leavePanels = 32
)

// blockSizes says how places and filters are cut into blocks.
type blockSizes struct {
	rows, cols, panels                 int // of a block: places, and panels of filters
	rowBlocks, colBlocks, filterBlocks int
	direct                             bool // the results of a block follow each other
}

func (b *blockSizes) count() int { return b.rowBlocks * b.colBlocks * b.filterBlocks }

// prepareBlocks chooses the blocks by the cycles that they are likely to take.
func (c *IntConv) prepareBlocks() {
	c.setAxes()
	b, y, x := &c.block, &c.axes[1], &c.axes[2]
	outer := c.Batch * c.Group * c.axes[0].out
	*b = blockSizes{rows: y.out, cols: x.out, panels: c.filters.panels()}
	if y.out == 1 || c.imageBytes(c.imageOf(1, x.out)) > 2*imageLimit {
		b.rows = 1
		width := c.v.Bytes.Width
		limit := x.out / kernel.CeilDiv(kernel.WantedTiles, outer*y.out) / width * width
		for limit > 2*width && c.imageBytes(c.imageOf(1, limit)) > imageLimit {
			limit = kernel.CeilDiv(limit, 2*width) * width
		}
		limit = min(x.out, max(limit, 2*width))
		b.cols = kernel.EvenTile(x.out, limit, c.v.Bytes.Width)
	} else {
		b.rows = c.bestRows(outer)
	}
	b.rowBlocks, b.colBlocks = kernel.CeilDiv(y.out, b.rows), kernel.CeilDiv(x.out, b.cols)
	b.direct = x.reach == 0 && (b.rows == 1 || b.cols == x.out)
	// Blocks of filters write the same image again.
	write, multiply := c.cycles(b.rows, b.cols)
	parts := kernel.CeilDiv(kernel.WantedTiles, outer*b.rowBlocks*b.colBlocks)
	for parts > 1 && (parts > b.panels || 12*write*(parts-1) > multiply) {
		parts--
	}
	b.panels = kernel.CeilDiv(c.filters.panels(), parts)
	b.filterBlocks = kernel.CeilDiv(c.filters.panels(), b.panels)
}

// cycles estimates the time to write an image, and to multiply it.
func (c *IntConv) cycles(rows, cols int) (write, multiply int) {
	m, p := c.imageOf(rows, cols), &c.filters
	planes := c.axes[0].kernel * p.channelGroups()
	write = planes * (100 + m.plane/m.pitch*(10+6*kernel.CeilDiv(m.pitch, interleaved)))
	part := c.v.Bytes.Width
	if c.v.Bytes.QuarterFilters != nil {
		part /= 4
	}
	places := kernel.CeilDiv((rows-1)*m.pitch+cols, part) * part
	calls := 1
	for rest := places % c.v.Bytes.Width / part; rest > 0; rest &= rest - 1 {
		calls++
	}
	return write, p.panels() * (calls*200 + places*(2*p.rows*p.depth()+10*p.rows+40)/c.v.Bytes.Width)
}

// bestRows returns the rows of a block: those that take the least time, unless
// fewer, which make more tiles, take little more.
func (c *IntConv) bestRows(outer int) int {
	const candidates = 64
	out := c.axes[1].out
	time := func(rows int) int {
		write, multiply := c.cycles(rows, c.axes[2].out)
		n := out / rows * (write + multiply)
		if rest := out % rows; rest > 0 {
			write, multiply = c.cycles(rest, c.axes[2].out)
			n += write + multiply
		}
		return n
	}
	best, least := 1, 0
	for rows := 1; rows <= min(out, candidates); rows++ {
		if rows > 1 && c.imageBytes(c.imageOf(rows, c.axes[2].out)) > imageLimit {
			break
		}
		if t := time(rows); least == 0 || t <= least {
			best, least = rows, t
		}
	}
	for rows := best; rows > 0; rows-- {
		if outer*kernel.CeilDiv(out, rows) >= kernel.WantedTiles && 20*time(rows) <= 21*least {
			return rows
		}
	}
	return best
}

// blockLayout says where the parts of a scratch are, in bytes.
type blockLayout struct {
	offsets, add, scale, out, ones, columns, from, weights, bytes int // the image is the first
}

func (c *IntConv) layout() (l blockLayout) {
	p, v := &c.filters, &c.v.Bytes
	at := 0
	take := func(n int) (from int) {
		from = at
		at += (n + 63) / 64 * 64
		return from
	}
	take(c.imageBytes(c.imageOf(c.block.rows, c.block.cols)))
	filters := min(p.count, c.block.panels*p.rows)
	l.offsets, l.add, l.scale = take(4*p.depth()), take(4*filters), take(4*filters)
	l.out = take(p.rows * leavePanels * v.Width)
	l.ones, l.columns, l.from = take(p.filterBytes()), take(4*v.Width), take(4*p.rows*v.Width)
	if !c.PackedW {
		l.weights = take(filters * (p.filterBytes() + 4))
	}
	l.bytes = at
	return l
}

// convArgs are the operands of a convolution.
type convArgs struct {
	dst, x, w    []byte
	zeroX, zeroW Numbers
	bias         []int32
	narrow       bool // the results are those of r
	r            Requant
}

// convBlock is a block under way.
type convBlock struct {
	c             *IntConv
	args          convArgs
	l             blockLayout
	scratch       []byte
	call          kernel.ByteConvTile
	m             image
	rows, cols    int // places of the block
	filter, count int // filters of the block
	at            int // the block's first place in the plane of a filter
	plane         int // of the first filter in the result
	weights       []byte
	add           []int32
	scale         []float32
	size          int // of a result
	asymmetric    bool
	portable      bool // factors are not finite
}

// blockTile computes part t.
func (c *IntConv) blockTile(t int, args convArgs, scratch []byte) {
	s := &c.block
	k := convBlock{c: c, args: args, l: c.layout(), scratch: scratch, size: 4}
	if args.narrow {
		k.size = 1
	}
	part := t % s.filterBlocks
	col := t / s.filterBlocks % s.colBlocks * s.cols
	row := t / s.filterBlocks / s.colBlocks % s.rowBlocks * s.rows
	t /= s.count()
	z := t % c.axes[0].out
	batch, group := t/c.axes[0].out/c.Group, t/c.axes[0].out%c.Group
	k.rows, k.cols = min(s.rows, c.axes[1].out-row), min(s.cols, c.axes[2].out-col)
	k.at = (z*c.axes[1].out+row)*c.axes[2].out + col
	k.m = c.imageOf(k.rows, k.cols)

	pad := byte(0)
	if len(args.zeroX.Data) > 0 {
		pad = args.zeroX.Data[0]
	}
	c.writeImage(scratch, k.m, args.x, (batch*c.Group+group)*c.Channels, z, row, col, pad)
	offsets := kernel.View[int32](scratch[k.l.offsets:][:4*c.filters.depth()])
	c.offsets(offsets, k.m)

	first := part * s.panels * c.filters.rows
	k.count = min(c.filters.count-first, s.panels*c.filters.rows)
	k.filter = group*c.filters.count + first
	k.plane = ((batch*c.Group + group) * c.Filters) + first
	k.addends()
	k.call.Offsets, k.call.Depth = &offsets[0], len(offsets)
	for i := 0; i < k.count; i += c.filters.rows {
		k.panel(i, min(c.filters.rows, k.count-i))
	}
}

// addends sets the addend and the factor of each filter of the block, and its
// weights.
func (k *convBlock) addends() {
	c, p, a := k.c, &k.c.filters, &k.args
	var totals []int32
	if c.PackedW {
		k.weights = a.w[k.filter*p.filterBytes():]
		totals = kernel.View[int32](a.w[p.groups*p.count*p.filterBytes():][:4*p.groups*p.count])[k.filter:]
	} else {
		k.weights = k.scratch[k.l.weights:][:k.count*p.filterBytes()]
		totals = kernel.View[int32](k.scratch[k.l.weights+len(k.weights):][:4*k.count])
		for i := 0; i < k.count; i += p.rows {
			p.packPanel(k.weights[i*p.filterBytes():], totals[i:], a.w, k.filter+i, min(p.rows, k.count-i))
		}
	}
	zx, size := int32(one(a.zeroX, 0)), int32(p.channels*p.taps)
	if c.SignedX {
		zx += 128
	}
	k.add = kernel.View[int32](k.scratch[k.l.add:][:4*k.count])
	if a.bias != nil {
		copy(k.add, a.bias[k.filter:])
	} else {
		clear(k.add)
	}
	for i, total := range totals[:k.count] {
		k.add[i] -= zx * total
	}
	if k.asymmetric = k.hasZeros(); k.asymmetric {
		for i := range k.add {
			k.add[i] += zx * size * k.zeroOfW(i)
		}
	}
	if k.asymmetric {
		k.packOnes()
	}
	if a.narrow {
		k.factors()
	}
}

// hasZeros reports whether a filter of the block has another zero than 0, moved
// as its weights are.
func (k *convBlock) hasZeros() bool {
	z, none := k.args.zeroW.Data, byte(0)
	if len(z) <= 1 {
		return k.zeroOfW(0) != 0
	}
	if !k.c.SignedW {
		none = 0x80
	}
	for _, b := range z[k.filter:][:k.count] {
		if b != none {
			return true
		}
	}
	return false
}

// zeroOfW is the zero of a filter of the block, moved as its weights are.
func (k *convBlock) zeroOfW(i int) int32 {
	z, flip := k.args.zeroW.Data, byte(0)
	if !k.c.SignedW {
		flip = 0x80
	}
	switch len(z) {
	case 0:
		return int32(int8(flip))
	case 1:
		return int32(int8(z[0] ^ flip))
	}
	return int32(int8(z[k.filter+i] ^ flip))
}

// factors sets the factors of the filters, and the range of the results.
func (k *convBlock) factors() {
	r := &k.args.r
	k.scale = kernel.View[float32](k.scratch[k.l.scale:][:4*k.count])
	r.factors(k.scale, k.filter)
	for _, f := range k.scale {
		k.portable = k.portable || f-f != 0
	}
	k.call.Move, k.call.Flip = r.words()
}

// packOnes packs a filter of ones, whose sums are those of the input.
func (k *convBlock) packOnes() {
	p := &k.c.filters
	ones := k.scratch[k.l.ones:][:p.filterBytes()]
	clear(ones)
	plane, groups := p.taps/p.tapsZ, p.channelGroups()
	for z := range p.tapsZ {
		for ch := range p.channels {
			to := (z*groups+ch/p.step)*plane*4 + ch%p.step*(4/p.step)
			for i := range plane {
				ones[to+4*i] = 1
			}
		}
	}
}

// panel computes n filters of the block from the first on.
func (k *convBlock) panel(first, n int) {
	c := k.c
	k.call.Weights = &k.weights[first*c.filters.filterBytes()]
	k.call.Add = &k.add[first]
	size := k.size
	if k.portable {
		size = 4
	} else if k.scale != nil {
		k.call.Scale = &k.scale[first]
	}
	places, done := (k.rows-1)*k.m.pitch+k.cols, 0
	if c.block.direct && !k.portable {
		k.call.OutStep = c.outArea * size
		done = k.tiles(k.args.dst[((k.plane+first)*c.outArea+k.at)*size:], first, n, 0, places, size, true)
	}
	k.leave(first, n, done, places, size)
}

// leave computes the places [from, to) of n filters in the scratch, and copies
// those that are results.
func (k *convBlock) leave(first, n, from, to, size int) {
	width, pitch := k.c.v.Bytes.Width, k.m.pitch
	out := k.scratch[k.l.out:][:k.c.filters.rows*leavePanels*width]
	cols := leavePanels * width / size
	whole := from%pitch == 0 && pitch <= cols && !k.portable
	step := cols
	if whole {
		step = cols / pitch * pitch
	}
	for ; from < to; from += step {
		end := min(to, from+step)
		k.call.OutStep = cols * size
		k.tiles(out, first, n, from, end, size, false)
		if whole {
			dst := (k.plane+first)*k.c.outArea + k.at + from/pitch*k.c.axes[2].out
			rows := kernel.CeilDiv(end-from, pitch)
			_ = k.args.dst[(dst+(n-1)*k.c.outArea+(rows-1)*k.c.axes[2].out+k.cols)*size-1]
			k.c.v.Bytes.CopyRows(n, rows, k.cols*size, &k.args.dst[dst*size], k.c.outArea*size, k.c.axes[2].out*size, &out[0], cols*size, pitch*size)
			continue
		}
		for row := from / pitch; row*pitch < end; row++ {
			lo, hi := max(from-row*pitch, 0), min(end-row*pitch, k.cols)
			if lo >= hi {
				continue
			}
			src := out[(row*pitch+lo-from)*size:]
			dst := (k.plane+first)*k.c.outArea + k.at + row*k.c.axes[2].out + lo
			for i := range n {
				k.copyRow(dst+i*k.c.outArea, hi-lo, src[i*cols*size:], first+i)
			}
		}
	}
}

// copyRow copies n results of a filter of the block to their places in the
// result.
func (k *convBlock) copyRow(to, n int, src []byte, filter int) {
	if !k.portable {
		copy(k.args.dst[to*k.size:], src[:n*k.size])
		return
	}
	r := &k.args.r
	lo, hi := IntRange(r.Zero.DType)
	zero := one(r.Zero, 0)
	for j, sum := range kernel.View[int32](src[:4*n]) {
		k.args.dst[to+j] = byte(saturate(float32(sum)*k.scale[filter], zero, lo, hi))
	}
}
