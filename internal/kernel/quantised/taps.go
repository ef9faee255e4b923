package quantised

import (
	"bytes"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Depthwise convolutions whose taps are picked from vectors of the input: see
// kernel.ByteTaps. Which taps share a number of weights does not matter, as
// long as those of all places of a vector lie within 64 bytes.

const (
	pickLanes  = 16 // places of a vector
	pickWindow = 64 // bytes that a vector picks from

	// The most places of a plane whose rows are shorter than a vector, which is
	// computed as one row; the most of any plane, which is one tile; and the
	// most numbers of a program.
	mostDense    = 1 << 12
	mostTapsArea = 1 << 17
	mostProgram  = 1 << 15
)

// taps is how a depthwise convolution is computed by picking.
type taps struct {
	flat     bool // numbers of weights go on in the next row of taps
	depth    int
	planes   int // of a tile
	segments []kernel.ByteSegment
	program  []int32
	patterns []byte
	beyondX  bool // bytes behind a plane are read
	beyond   bool // results are written behind a plane

	vectors []pickedVector // of the row that is prepared
	chunk   []int32        // its program
	most    int            // how far its input reaches, from the row's; -1 where the next row's is another
}

// pickedVector is some places of a row.
type pickedVector struct{ first, count int }

// pickedRow is places that a program is for: a row of a plane, or all of it.
type pickedRow struct {
	first, places int
	base          int // of its input
}

// prepareTaps makes the program. It is false where there is none.
func (c *IntConv) prepareTaps() bool {
	p, d := &c.picked, &c.deep
	*p = taps{segments: p.segments[:0], program: p.program[:0], patterns: p.patterns[:0], vectors: p.vectors[:0], chunk: p.chunk[:0]}
	dense := d.x.out < pickLanes
	if c.v.Bytes.Taps == nil || c.outArea > mostTapsArea || dense && c.outArea > mostDense || d.y.stride*d.x.in*d.y.out > 1<<30 {
		return false
	}
	middle := c.pickedRow(d.y.out/2, dense)
	byRow := c.setTaps(false) * c.pickVectors(middle)
	if flat := c.setTaps(true) * c.pickVectors(middle); flat == 0 || byRow != 0 && byRow < flat {
		c.setTaps(false)
	}
	rows := d.y.out
	if dense {
		rows = 1
	}
	for r := range rows {
		if !c.pickRow(c.pickedRow(r, dense), r, dense) || len(p.program) > mostProgram {
			return false
		}
	}
	p.segments = append(p.segments, kernel.ByteSegment{})
	planes := c.Batch * c.Group
	p.planes = max(1, min(4*depthwiseWork/max(1, c.outArea*c.taps), planes/kernel.WantedTiles))
	return true
}

// setTaps sets how taps share numbers of weights, and returns how many of these
// there are.
func (c *IntConv) setTaps(flat bool) int {
	p, d := &c.picked, &c.deep
	p.flat, p.depth = flat, d.y.kernel*d.perRow
	if flat {
		p.depth = kernel.CeilDiv(c.taps, 4)
	}
	return p.depth
}

func (c *IntConv) pickedRow(r int, dense bool) pickedRow {
	if dense {
		return pickedRow{places: c.outArea}
	}
	d := &c.deep
	return pickedRow{first: r * d.x.out, places: d.x.out, base: r * d.y.stride * d.x.in}
}

// tap is where tap i of number n of weights lies in the input of a place; -1
// for a pad, and for none.
func (c *IntConv) tap(place, n, i int) int {
	p, d := &c.picked, &c.deep
	ty, tx := n/d.perRow, n%d.perRow*4+i
	if p.flat {
		ty, tx = (4*n+i)/d.x.kernel, (4*n+i)%d.x.kernel
	}
	if tx >= d.x.kernel || ty >= d.y.kernel {
		return -1
	}
	y := place/d.x.out*d.y.stride - d.y.pad + ty*d.y.dilation
	x := place%d.x.out*d.x.stride - d.x.pad + tx*d.x.dilation
	if y < 0 || y >= d.y.in || x < 0 || x >= d.x.in {
		return -1
	}
	return y*d.x.in + x
}

// span returns the first and the last byte of the input that number n of
// weights meets in some places, and whether there is any.
func (c *IntConv) span(v pickedVector, n int) (first, last int, any bool) {
	for place := v.first; place < v.first+v.count; place++ {
		for i := range 4 {
			at := c.tap(place, n, i)
			if at < 0 {
				continue
			}
			if !any {
				first, last, any = at, at, true
			}
			first, last = min(first, at), max(last, at)
		}
	}
	return first, last, any
}

// fits reports whether places can be one vector.
func (c *IntConv) fits(v pickedVector) bool {
	for n := range c.picked.depth {
		if first, last, any := c.span(v, n); any && last-first >= pickWindow {
			return false
		}
	}
	return true
}

// pickVectors cuts a row into vectors, and returns how many there are: 0 where
// it cannot. The last one begins earlier if it can be a whole vector then.
func (c *IntConv) pickVectors(r pickedRow) int {
	p := &c.picked
	p.vectors = p.vectors[:0]
	end := r.first + r.places
	for at := r.first; at < end; {
		v := pickedVector{at, min(pickLanes, end-at)}
		if whole := (pickedVector{end - pickLanes, pickLanes}); v.count < pickLanes && r.places >= pickLanes && c.fits(whole) {
			v = whole
		}
		for v.count > 0 && !c.fits(v) {
			v.count--
		}
		if v.count == 0 {
			return 0
		}
		p.vectors = append(p.vectors, v)
		at = v.first + v.count
	}
	return len(p.vectors)
}

// pickRow adds a row to the program: to the segment before, if it is like that.
func (c *IntConv) pickRow(r pickedRow, index int, dense bool) bool {
	p, d := &c.picked, &c.deep
	step, outStep := d.y.stride*d.x.in, d.x.out
	if len(p.segments) > 0 {
		last := &p.segments[len(p.segments)-1]
		if p.most >= 0 && c.isInner(index) && r.base+p.most+pickWindow <= c.area {
			last.Rows++
			return true
		}
	}
	if c.pickVectors(r) == 0 {
		return false
	}
	p.chunk, p.most = p.chunk[:0], 0
	for i := 0; i < len(p.vectors); {
		n := 4
		if i+n > len(p.vectors) {
			n = 1
		}
		some := p.vectors[i : i+n]
		for k := range p.depth {
			for _, v := range some {
				at, pattern := c.pattern(r, v, k)
				p.chunk = append(p.chunk, int32(at), int32(pattern))
			}
		}
		for _, v := range some {
			p.chunk = append(p.chunk, int32(v.first-r.first))
			p.beyond = p.beyond || v.first+pickLanes > r.first+r.places
		}
		if n == 1 {
			p.chunk = append(p.chunk, 0)
		}
		i += n
	}
	if dense || !c.isInner(index) {
		p.most = -1
	}
	fours := len(p.vectors) / 4
	s := kernel.ByteSegment{Rows: 1, Fours: fours, Ones: len(p.vectors) - 4*fours, X: r.base, Out: r.first, XStep: step, OutStep: outStep, Program: len(p.program)}
	p.segments, p.program = append(p.segments, s), append(p.program, p.chunk...)
	return true
}

// isInner reports whether no tap of a row of places is in the pads above or
// below.
func (c *IntConv) isInner(row int) bool {
	y := &c.deep.y
	first := row*y.stride - y.pad
	return first >= 0 && first+(y.kernel-1)*y.dilation < y.in
}

// pattern returns where the input begins that number n of weights picks from in
// a vector, from the row's, and where the pattern lies.
func (c *IntConv) pattern(r pickedRow, v pickedVector, n int) (at, pattern int) {
	p := &c.picked
	first, last, any := c.span(v, n)
	if !any {
		first, last = 0, 0
	}
	base := first
	if base+pickWindow > c.area {
		base = max(0, last-pickWindow+1)
		p.beyondX = p.beyondX || base+pickWindow > c.area
		p.most = -1
	} else if p.most >= 0 {
		p.most = max(p.most, base-r.base)
	}
	var picks [pickWindow]byte
	for lane := range pickLanes {
		place := v.first + min(lane, v.count-1)
		for i := range 4 {
			if at := c.tap(place, n, i); at >= 0 {
				picks[4*lane+i] = byte(pickWindow + at - base)
			}
		}
	}
	for i := 0; i < len(p.patterns); i += pickWindow {
		if bytes.Equal(p.patterns[i:i+pickWindow], picks[:]) {
			return base - r.base, i
		}
	}
	p.patterns = append(p.patterns, picks[:]...)
	return base - r.base, len(p.patterns) - pickWindow
}

// tapsTile computes part t, some planes. It is false where the weights or the
// factors are none that the kernel takes; nothing is written then.
func (c *IntConv) tapsTile(t int, a *convArgs, scratch []byte) bool {
	p, l := &c.picked, c.deepLayout()
	first := t * p.planes
	n := min(p.planes, c.Batch*c.Group-first)
	if !a.narrow || !c.setTapWeights(scratch[l.numbers:], a, first, n) {
		return false
	}
	const ones = 0x0101010101010101
	call := kernel.ByteTaps{XStep: c.area, OutStep: c.outArea, Segments: &p.segments[0], Program: &p.program[0], Patterns: &p.patterns[0], Weights: &scratch[l.numbers], Depth: p.depth}
	if len(a.zeroX.Data) > 0 {
		call.Pad = uint64(a.zeroX.Data[0]) * ones
	}
	if c.SignedX {
		call.Flip = 0x80 * ones
	}
	call.Move, call.FlipOut = a.r.words()
	// The last planes are computed apart where bytes behind all of them would
	// be read or written: several where planes are smaller than what is.
	x, dst := a.x[first*c.area:][:n*c.area], a.dst[first*c.outArea:][:n*c.outArea]
	apart := 0
	if p.beyondX {
		behind := c.Batch*c.Group - first - n // planes of later tiles
		apart = max(0, kernel.CeilDiv(pickWindow, c.area)-1-behind)
	}
	readApart := apart > 0
	if p.beyond {
		apart = max(apart, kernel.CeilDiv(c.outArea+pickLanes-1, c.outArea)-1)
	}
	together := n - min(apart, n)
	if together > 0 {
		call.Planes, call.X, call.Out = together, &x[0], &dst[0]
		c.v.Bytes.Taps(call)
	}
	call.Planes = 1
	for i := together; i < n; i++ {
		call.X, call.Out, call.Weights = &x[i*c.area], &dst[i*c.outArea], &scratch[l.numbers+i*4*(p.depth+2)]
		if readApart {
			call.X = &scratch[l.x]
			copy(scratch[l.x:], x[i*c.area:][:c.area])
		}
		if p.beyond {
			call.Out = &scratch[l.results]
		}
		c.v.Bytes.Taps(call)
		if p.beyond {
			copy(dst[i*c.outArea:][:c.outArea], scratch[l.results:])
		}
	}
	return true
}

// setTapWeights sets the numbers of weights of n planes, their addends and
// factors.
func (c *IntConv) setTapWeights(dst []byte, a *convArgs, first, n int) bool {
	p := &c.picked
	zx := int32(one(a.zeroX, 0))
	if c.SignedX {
		zx += 128
	}
	size := 4 * (p.depth + 2)
	clear(dst[:n*size])
	for i := range n {
		filter := (first + i) % c.Group
		to := dst[i*size:][:size]
		total, ok := c.tapNumbers(to, a.w[filter*c.taps:][:c.taps], int32(one(a.zeroW, filter)))
		if !ok {
			return false
		}
		end := kernel.View[int32](to[size-8:])
		if end[0] = -zx * total; a.bias != nil {
			end[0] += a.bias[filter]
		}
		factor := kernel.View[float32](to[size-4:])
		if a.r.factors(factor, filter); factor[0]-factor[0] != 0 {
			return false
		}
	}
	return true
}

// tapNumbers sets the numbers of weights of a filter, and returns their sum. It
// is false where a weight less the zero has more than eight bits.
func (c *IntConv) tapNumbers(dst, w []byte, zero int32) (total int32, ok bool) {
	p, width := &c.picked, c.deep.x.kernel
	if !p.flat {
		for y := range c.deep.y.kernel {
			sum, ok := c.tapBytes(dst[4*c.deep.perRow*y:], w[y*width:][:width], zero)
			if !ok {
				return 0, false
			}
			total += sum
		}
		return total, true
	}
	return c.tapBytes(dst, w, zero)
}

func (c *IntConv) tapBytes(dst, w []byte, zero int32) (total int32, ok bool) {
	dst = dst[:len(w)]
	if c.SignedW && zero == 0 {
		for i, b := range w {
			dst[i] = b
			total += int32(int8(b))
		}
		return total, true
	}
	for i, b := range w {
		v := int32(b)
		if c.SignedW {
			v = int32(int8(b))
		}
		if v -= zero; v != int32(int8(v)) {
			return 0, false
		}
		dst[i] = byte(v)
		total += v
	}
	return total, true
}
