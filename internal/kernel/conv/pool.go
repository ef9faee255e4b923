package conv

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// PoolKind is the function of a pool.
type PoolKind uint8

const (
	PoolMax     PoolKind = iota // NaN if any element is
	PoolAverage                 // of the elements inside
	// PoolAveragePadded divides by the elements inside the padded input.
	PoolAveragePadded
	// PoolDepthwise is a depthwise convolution in the place of a pool. Only
	// convolutions compute it.
	PoolDepthwise
)

// Pool reduces windows of each of Planes (N*C) planes, of which Channels are
// those of a sample; 0 if samples lie like channels.
type Pool struct {
	Kind             PoolKind
	Planes, Channels int
	Window

	ColumnMajor bool // indices count the first spatial axis fastest

	Act gemm.Activation // of a depthwise convolution

	v        *kernel.Variant // of Prepare
	rows     int             // rows of output per tile, of one plane of the outermost axis
	rowTiles int             // tiles per plane
	perTile  int             // planes per tile where a tile is whole planes
	plain    bool            // one output after the other
	copied   copiedRows
}

// Reset makes p the problem to, which is not prepared, and keeps the lists of p
// for it.
func (p *Pool) Reset(to Pool) {
	to.copied.offsets = p.copied.offsets
	*p = to
}

// Prepare works out the tiles.
func (p *Pool) Prepare(v *kernel.Variant) {
	p.v = v
	p.prepare(v, 4*kernel.RangeElements)
	work := max(1, p.outArea*p.taps)
	p.rowTiles, p.perTile = p.out[0]*kernel.CeilDiv(p.out[1], p.rows), 1
	if p.rowTiles == 1 {
		p.perTile = min(max(1, 2*kernel.RangeElements/work), max(1, kernel.CeilDiv(p.Planes, kernel.WantedTiles)))
	}
}

// prepare prepares a pool whose rows another kernel computes: some rows are
// computed at a time, so that there are about limit products of outputs and
// taps.
func (p *Pool) prepare(v *kernel.Variant, limit int) {
	p.v = v
	p.Resolve()
	p.InSteps.setBatch(p.Channels)
	p.OutSteps.setBatch(p.Channels)
	p.rows = 1
	p.plain = !p.copyable()
	if p.plain || p.outArea == 0 || p.inArea == 0 {
		return
	}
	p.rows = kernel.EvenTile(p.out[1], min(p.out[1], max(1, limit/(p.out[2]*p.taps))), 1)
	fill := float32(0)
	if p.Kind == PoolMax {
		fill = float32(math.Inf(-1))
	}
	p.copied.prepare(v, &p.Window, p.rows, fill)
	p.copied.floats += p.out[2] // factors of an average
}

// ScratchBytes returns the size of the scratch that Tile needs, per worker.
func (p *Pool) ScratchBytes() int { return 4 * p.copied.floats }

// Tiles returns the number of tiles.
func (p *Pool) Tiles() int { return kernel.CeilDiv(p.Planes, p.perTile) * p.rowTiles }

// Tile computes part t. scratch holds at least ScratchBytes()/4 floats.
func (p *Pool) Tile(t int, scratch, dst, src []float32) {
	if p.outArea == 0 {
		return
	}
	first := t / p.rowTiles * p.perTile
	row := t % p.rowTiles
	perPlane := kernel.CeilDiv(p.out[1], p.rows)
	z, y := row/perPlane, row%perPlane*p.rows
	for plane := first; plane < min(first+p.perTile, p.Planes); plane++ {
		in, out := p.plane(plane)
		p.compute(scratch, dst[out+p.OutSteps.at(z, y, 0):], src[in:], 0, z, y, min(p.rows, p.out[1]-y), poolChannel{})
	}
}

// plane returns where a plane begins in the input, and in the output.
func (p *Pool) plane(i int) (in, out int) {
	if p.Channels == 0 {
		return i * p.InSteps.Channel, i * p.OutSteps.Channel
	}
	sample, channel := i/p.Channels, i%p.Channels
	return sample*p.InSteps.Batch + channel*p.InSteps.Channel, sample*p.OutSteps.Batch + channel*p.OutSteps.Channel
}

// poolChannel is what a depthwise convolution has for a channel.
type poolChannel struct {
	weights []float32
	bias    float32
}

// compute makes rows [y, y+rows) of plane z of the output, at most p.rows,
// which begin at out. src is a plane of the input from row origin, Over both
// outer axes, on.
func (p *Pool) compute(scratch, out, src []float32, origin, z, y, rows int, channel poolChannel) {
	switch {
	case p.inArea == 0:
		for i := range rows {
			p.empty(out[i*p.OutSteps.Row:][:p.out[2]], channel)
		}
		return
	case p.plain && p.Kind == PoolDepthwise:
		p.depthwisePlain(out, src, origin, z, y, rows, channel)
		return
	case p.plain:
		p.computePlain(out, src, origin, z, y, rows)
		return
	}
	p.copied.copy(p.v, scratch[p.out[2]:], src, origin, z, y, rows, rowChange{})
	call := p.copied.call(p.v, scratch[p.out[2]:], rows)
	call.Out = &out[:(rows-1)*p.OutSteps.Row+p.out[2]][0]
	switch p.Kind {
	case PoolMax:
		windowRows(p.v, kernel.WindowMax, call)
		return
	case PoolDepthwise:
		p.depthwise(call, out, rows, channel)
		return
	}
	// Rows with the same number of elements along the outer axes share the
	// factors of their columns.
	factors := scratch[:p.out[2]]
	call.Scale = &factors[0]
	for at := 0; at < rows; {
		count, n := p.count(1, y+at), 1
		for at+n < rows && p.count(1, y+at+n) == count {
			n++
		}
		count *= p.count(0, z)
		for x := range factors {
			factors[x] = 0
			if all := count * p.count(2, x); all > 0 {
				factors[x] = 1 / float32(all)
			}
		}
		part := call
		part.Rows = n
		part.Src = &scratch[p.out[2]+at*p.stride[1]*p.copied.rowSize]
		part.Out = &out[at*p.OutSteps.Row]
		windowRows(p.v, kernel.WindowMean, part)
		at += n
	}
}

// computePlain is compute for windows whose rows cannot be copied.
func (p *Pool) computePlain(out, src []float32, origin, z, y, rows int) {
	for i := range rows * p.out[2] {
		largest, sum := float32(math.Inf(-1)), 0.0
		row, x := y+i/p.out[2], i%p.out[2]
		p.eachTap(z, row, x, func(_, at int) {
			v := src[at-origin*p.InSteps.Row]
			largest = max(largest, v)
			sum += float64(v)
		})
		to := &out[(row-y)*p.OutSteps.Row+x]
		switch count := p.count(0, z) * p.count(1, row) * p.count(2, x); {
		case p.Kind == PoolMax:
			*to = largest
		case count == 0:
			*to = 0
		default:
			*to = float32(sum / float64(count))
		}
	}
}

// count is how many elements of one axis an average is taken of.
func (p *Pool) count(axis, o int) int {
	if p.Kind == PoolAveragePadded {
		return p.padded(axis, o)
	}
	lo, hi := p.span(axis, o)
	return max(0, hi-lo)
}

// empty is a pool's result for no elements.
func (p *Pool) empty(out []float32, channel poolChannel) {
	v := channel.bias
	if p.Kind == PoolMax {
		v = float32(math.Inf(-1))
	}
	kernel.Repeat(out, v)
	if p.Kind == PoolDepthwise {
		p.Act.Apply(p.v, out)
	}
}

// padded counts the taps of one axis that lie inside the padded input.
func (p *Pool) padded(axis, o int) int {
	start := o * p.stride[axis]
	span := p.in[axis] + p.padBegin[axis] + p.padEnd[axis] - start
	return min(p.kernel[axis], max(0, kernel.CeilDiv(span, p.dilation[axis])))
}

// TileIndices is Tile for a maximum of planes that follow each other, with the
// number of each maximum's element among all elements of src: the first one if
// several are equal.
func (p *Pool) TileIndices(t int, dst []float32, indices []int64, src []float32) {
	if p.outArea == 0 {
		return
	}
	first := t / p.rowTiles * p.perTile
	part, perPlane := t%p.rowTiles, kernel.CeilDiv(p.out[1], p.rows)
	y := part % perPlane * p.rows
	row := part/perPlane*p.out[1] + y
	for plane := first; plane < min(first+p.perTile, p.Planes); plane++ {
		from := src[plane*p.inArea:][:p.inArea]
		for r := row; r < row+min(p.rows, p.out[1]-y); r++ {
			for x := range p.out[2] {
				v, at := p.argMax(from, r/p.out[1], r%p.out[1], x)
				to := plane*p.outArea + r*p.out[2] + x
				dst[to], indices[to] = v, int64(plane*p.inArea+p.number(at))
			}
		}
	}
}

// number turns the position of an element in its plane into its number in the
// order of the pool.
func (p *Pool) number(at int) int {
	if !p.ColumnMajor {
		return at
	}
	x, y, z := at%p.in[2], at/p.in[2]%p.in[1], at/p.in[2]/p.in[1]
	return (x*p.in[1]+y)*p.in[0] + z
}

func (p *Pool) argMax(src []float32, z, y, x int) (float32, int) {
	best, where := float32(math.Inf(-1)), -1
	zlo, zhi := p.span(0, z)
	ylo, yhi := p.span(1, y)
	xlo, xhi := p.span(2, x)
	for tz := zlo; tz < zhi; tz++ {
		for ty := ylo; ty < yhi; ty++ {
			for tx := xlo; tx < xhi; tx++ {
				iz := z*p.stride[0] - p.padBegin[0] + tz*p.dilation[0]
				iy := y*p.stride[1] - p.padBegin[1] + ty*p.dilation[1]
				ix := x*p.stride[2] - p.padBegin[2] + tx*p.dilation[2]
				at := (iz*p.in[1]+iy)*p.in[2] + ix
				if v := src[at]; where < 0 || v > best || v != v && best == best {
					best, where = v, at
				}
			}
		}
	}
	return best, max(where, 0)
}
