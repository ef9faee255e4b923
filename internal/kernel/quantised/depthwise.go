package quantised

import (
	"encoding/binary"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Convolutions of one channel per group and filter: a tile copies the rows that
// some rows of places read, with pads, and computes vectors of places from
// them. Weights less their zeros need more than eight bits; kernels that take
// bytes add up parts of them.

// depthwise is how depthwise convolutions are computed.
type depthwise struct {
	y, x       convAxis
	rows       int // of places that a unit computes
	blocks     int // of a plane
	units      int // of a tile
	pitch      int // bytes of a row of the copy
	taps       int // that one number of weights has
	perRow     int // numbers of weights of a row of taps
	mostPasses int
}

// isDepthwise reports whether there are kernels for a depthwise convolution. It
// depends on the shape of the weights, the attributes and the variant.
func (c *IntConv) isDepthwise(v *kernel.Variant) bool {
	n := len(c.Kernel)
	if v.Bytes.Depthwise == nil || c.Channels != 1 || c.Filters != 1 || n < 1 || n > 2 || kernel.Product(c.Kernel) == 0 {
		return false
	}
	stride, dilation := c.Stride[n-1], c.Dilation[n-1]
	if v.Bytes.Step == 4 { // lanes of four places and four taps
		return stride+dilation <= 5
	}
	return 7*stride+dilation <= 15 // eight places and two taps
}

// depthwiseImage bounds the copy of rows, unless one row needs more, and
// depthwiseWork the products of a tile.
const (
	depthwiseImage = 32 << 10
	depthwiseWork  = 1 << 18
)

func (c *IntConv) prepareDepthwise() {
	d, n := &c.deep, len(c.In)
	axis := func(i int) convAxis {
		return convAxis{in: c.In[i], out: c.Out[i], kernel: c.Kernel[i], stride: c.Stride[i], dilation: c.Dilation[i], pad: c.Pad[i]}
	}
	*d = depthwise{x: axis(n - 1), y: convAxis{in: 1, out: 1, kernel: 1, stride: 1, dilation: 1}, taps: c.v.Bytes.Step, mostPasses: 1}
	if n == 2 {
		d.y = axis(0)
	}
	if d.taps == 4 {
		d.mostPasses = 3 // of numbers between -255 and 255
	}
	d.perRow = kernel.CeilDiv(d.x.kernel, d.taps)
	d.pitch = (d.x.out-1)*d.x.stride + (d.x.kernel-1)*d.x.dilation + 1
	rows := d.y.out
	for rows > 1 && d.copyRows(rows)*d.pitch > depthwiseImage {
		rows = kernel.CeilDiv(rows, 2)
	}
	d.rows = kernel.EvenTile(d.y.out, rows, 1)
	d.blocks = kernel.CeilDiv(d.y.out, d.rows)
	units := c.Batch * c.Group * d.blocks
	d.units = max(1, min(depthwiseWork/max(1, d.rows*d.x.out*c.taps), units/kernel.WantedTiles))
	if c.picks = c.prepareTaps(); c.picks {
		d.units = c.picked.planes * d.blocks
	}
}

// copyRows is the number of rows that rows of places read.
func (d *depthwise) copyRows(rows int) int {
	return (rows-1)*d.y.stride + (d.y.kernel-1)*d.y.dilation + 1
}

func (d *depthwise) tiles(planes int) int { return kernel.CeilDiv(planes*d.blocks, d.units) }

// vectors is the number of vectors of a row of places.
func (d *depthwise) vectors(lanes int) int { return kernel.CeilDiv(d.x.out, lanes) }

// depth is the number of numbers of weights.
func (d *depthwise) depth() int { return d.y.kernel * d.perRow }

// deepLayout says where the parts of a scratch are, in bytes: the copy is the
// first.
type deepLayout struct{ offsets, weights, picks, out, numbers, x, results, bytes int }

func (c *IntConv) deepLayout() (l deepLayout) {
	d, lanes := &c.deep, c.v.Bytes.Lanes
	take := func(n int) (from int) {
		from = l.bytes
		l.bytes += (n + 63) / 64 * 64
		return from
	}
	// Whole vectors of places are computed, and 64 bytes read for each.
	take(d.copyRows(d.rows)*d.pitch + lanes*d.x.stride + d.taps*d.x.dilation + 64)
	l.offsets, l.weights = take(4*d.depth()*d.mostPasses), take(4*d.depth()*d.mostPasses)
	l.picks, l.out = take(8*lanes), take(4*lanes*d.vectors(lanes))
	if p := &c.picked; c.picks {
		l.numbers = take(4 * p.planes * (p.depth + 2))
		if p.beyondX {
			l.x = take(c.area + pickWindow)
		}
		if p.beyond {
			l.results = take(c.outArea + pickLanes)
		}
	}
	return l
}

// setPicks fills the vectors that lay the taps of places side by side.
func (d *depthwise) setPicks(dst []byte, lanes int) {
	s, dil := d.x.stride, d.x.dilation
	words, bytes := kernel.View[int32](dst[:4*lanes]), dst[4*lanes:][:4*lanes]
	for place := range lanes {
		for i := range 4 {
			if d.taps == 4 {
				bytes[4*place+i] = byte(place%4*s + i*dil)
			} else if bytes[4*place+i] = 0x80; i%2 == 0 { // two of 16 bits
				bytes[4*place+i] = byte(place*s + i/2*dil)
			}
		}
		words[place] = int32(place/4*s + place%4)
	}
}

// setWeights sets the weights of a filter, each less the zero, in numbers of
// four taps, and where their taps lie. It returns how many there are, and the
// sum.
func (c *IntConv) setWeights(dst []byte, offsets []int32, w []byte, zero int32) (n int, total int32) {
	d := &c.deep
	part := func(v int32) int32 { return min(max(v, -128), 127) }
	for pass := range d.mostPasses {
		rest := false
		for ty := range d.y.kernel {
			for g := range d.perRow {
				offsets[n] = int32(ty*d.y.dilation*d.pitch + g*d.taps*d.x.dilation)
				word := dst[4*n:][:4]
				clear(word)
				for i, b := range w[ty*d.x.kernel+g*d.taps : min((ty+1)*d.x.kernel, ty*d.x.kernel+(g+1)*d.taps)] {
					v := int32(b)
					if c.SignedW {
						v = int32(int8(b))
					}
					v -= zero
					for range pass {
						v -= part(v)
					}
					p := part(v)
					total += p
					rest = rest || p != v
					word[i] = byte(p)
				}
				n++
			}
		}
		if !rest {
			break
		}
	}
	return n, total
}

// setPairs is setWeights for numbers of two taps, whose places setOffsets sets.
func (c *IntConv) setPairs(dst, w []byte, zero int32) (total int32) {
	tap := func(b byte) int32 {
		if c.SignedW {
			return int32(int8(b)) - zero
		}
		return int32(b) - zero
	}
	for width := c.deep.x.kernel; len(w) > 0; w = w[width:] {
		for i := 0; i < width; i += 2 {
			v, next := tap(w[i]), int32(0)
			if i+1 < width {
				next = tap(w[i+1])
			}
			total += v + next
			binary.LittleEndian.PutUint32(dst, uint32(uint16(v))|uint32(next)<<16)
			dst = dst[4:]
		}
	}
	return total
}

// setOffsets sets where the numbers of weights begin that one pass has.
func (d *depthwise) setOffsets(dst []int32) {
	for i := range d.depth() {
		dst[i] = int32(i/d.perRow*d.y.dilation*d.pitch + i%d.perRow*d.taps*d.x.dilation)
	}
}

// copyInput copies the rows that places from row on read, each byte with flip
// taken. Where the pads are there already they stay.
func (c *IntConv) copyInput(dst, plane []byte, row, rows int, pad, flip byte, padded bool) {
	d := &c.deep
	left, skip := min(max(0, d.x.pad), d.pitch), max(0, -d.x.pad)
	mid := max(0, min(d.pitch-left, d.x.in-skip))
	first := row*d.y.stride - d.y.pad
	for i := range d.copyRows(rows) {
		to := dst[i*d.pitch:][:d.pitch]
		y := first + i
		if !padded {
			if y < 0 || y >= d.y.in {
				fill(to, pad^flip)
				continue
			}
			fill(to[:left], pad^flip)
			fill(to[left+mid:], pad^flip)
		}
		switch {
		case mid == 0 || y < 0 || y >= d.y.in:
		case flip == 0:
			copy(to[left:left+mid], plane[y*d.x.in+skip:])
		default:
			flipped(to[left:left+mid], plane[y*d.x.in+skip:][:mid], flip)
		}
	}
}

// flipped copies bytes and takes flip of each.
func flipped(dst, src []byte, flip byte) {
	i := 0
	for ; i+8 <= len(dst); i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:])^uint64(flip)*0x0101010101010101)
	}
	for ; i < len(dst); i++ {
		dst[i] = src[i] ^ flip
	}
}

// depthwiseTile computes part t.
func (c *IntConv) depthwiseTile(t int, a *convArgs, scratch []byte) {
	if c.picks && c.tapsTile(t, a, scratch) {
		return
	}
	d, l := &c.deep, c.deepLayout()
	d.setPicks(scratch[l.picks:], c.v.Bytes.Lanes)
	planes := c.Batch * c.Group
	call := kernel.ByteDepthwise{
		Offsets: &kernel.View[int32](scratch[l.offsets:][:4])[0], X: &scratch[0], XStep: c.v.Bytes.Lanes * d.x.stride, RowStep: d.y.stride * d.pitch,
		Vectors: d.vectors(c.v.Bytes.Lanes), Weights: &scratch[l.weights], Picks: &scratch[l.picks],
	}
	if d.taps == 2 {
		d.setOffsets(kernel.View[int32](scratch[l.offsets:l.weights]))
	} else if c.SignedX {
		call.Flip = 0x8080808080808080
	}
	for u := t * d.units; u < min((t+1)*d.units, planes*d.blocks); u++ {
		plane, row := u/d.blocks, u%d.blocks*d.rows
		c.depthwiseUnit(&call, a, plane, row, min(d.rows, d.y.out-row), scratch, &l, d.blocks == 1 && u > t*d.units)
	}
}

// unitWeights sets the weights of a filter, and the addend of its sums.
func (c *IntConv) unitWeights(call *kernel.ByteDepthwise, a *convArgs, filter int, scratch []byte, l *deepLayout) {
	zx, zw, total := int32(one(a.zeroX, 0)), int32(one(a.zeroW, filter)), int32(0)
	if c.SignedX {
		zx += 128
	}
	to, w := scratch[l.weights:l.picks], a.w[filter*c.taps:][:c.taps]
	if c.deep.taps == 2 {
		call.Depth, total = c.deep.depth(), c.setPairs(to, w, zw)
	} else {
		call.Depth, total = c.setWeights(to, kernel.View[int32](scratch[l.offsets:l.weights]), w, zw)
	}
	call.Add = -zx * total
	if a.bias != nil {
		call.Add += a.bias[filter]
	}
}

// depthwiseUnit computes some rows of places of a plane. Where padded is set
// the unit before it left its pads for this one.
func (c *IntConv) depthwiseUnit(call *kernel.ByteDepthwise, a *convArgs, plane, row, rows int, scratch []byte, l *deepLayout, padded bool) {
	d, filter, pad, flip := &c.deep, plane%c.Group, byte(0), byte(0)
	if len(a.zeroX.Data) > 0 {
		pad = a.zeroX.Data[0]
	}
	if c.SignedX && d.taps == 2 {
		flip = 0x80
	}
	c.unitWeights(call, a, filter, scratch, l)
	size, narrow := 4, a.narrow
	var factor [1]float32
	var lo, hi, zero float64
	if a.narrow {
		size = 1
		a.r.factors(factor[:], filter)
		lo, hi = IntRange(a.r.Zero.DType)
		zero = one(a.r.Zero, 0)
		call.Scale, call.Low, call.High, call.Zero = factor[0], float32(lo-zero), float32(hi-zero), int32(zero)
		narrow = factor[0]-factor[0] == 0
	}
	c.copyInput(scratch, a.x[plane*c.area:][:c.area], row, rows, pad, flip, padded)
	call.X, call.Narrow, call.OutStep = &scratch[0], 0, d.x.out*size
	if narrow {
		call.Narrow = 1
	}
	// Rows are stored whole: what one writes too much the next overwrites. The
	// last ones go through the scratch, and all whose factor is not finite.
	last := kernel.CeilDiv(call.Vectors*c.v.Bytes.Lanes, d.x.out) - 1
	if a.narrow && !narrow {
		last = rows
	}
	dst := a.dst[(plane*c.outArea+row*d.x.out)*size:][:rows*d.x.out*size]
	if call.Rows = rows - last; call.Rows > 0 {
		call.Out = &dst[0]
		c.v.Bytes.Depthwise(*call)
	}
	for i := max(0, rows-last); i < rows; i++ {
		out := scratch[l.out:]
		call.Rows, call.X, call.Out = 1, &scratch[i*d.y.stride*d.pitch], &out[0]
		c.v.Bytes.Depthwise(*call)
		to := dst[i*d.x.out*size:][:d.x.out*size]
		if narrow == a.narrow {
			copy(to, out)
			continue
		}
		for j, sum := range kernel.View[int32](out[:4*d.x.out]) {
			to[j] = byte(saturate(float32(sum)*factor[0], zero, lo, hi))
		}
	}
}
