package kernel

import "math"

// PoolKind is what a pool makes of its window.
type PoolKind uint8

const (
	PoolMax     PoolKind = iota // NaN if any element is
	PoolAverage                 // of the elements inside
	// PoolAveragePadded divides by the elements inside the padded input.
	PoolAveragePadded
)

// Pool reduces windows of each of Planes (N*C) planes.
type Pool struct {
	Kind   PoolKind
	Planes int
	Window

	ColumnMajor bool // indices count the first spatial axis fastest

	rows, rowTiles int // output rows (all axes but the last) per tile, tiles per plane
	perTile        int // planes per tile where a tile is whole planes
}

// Prepare works out the tiles.
func (p *Pool) Prepare() {
	p.resolve()
	rows := p.out[0] * p.out[1]
	work := max(1, p.out[2]*p.kernel[0]*p.kernel[1]*max(1, p.stride[2]))
	p.rows = min(max(1, rangeElements/work), max(1, rows))
	p.rowTiles = ceilDiv(rows, p.rows)
	p.perTile = 1
	if p.rowTiles == 1 {
		p.perTile = max(1, rangeElements/max(1, work*rows))
	}
}

// ScratchBytes is what Tile needs of scratch, per worker: one row of the input.
func (p *Pool) ScratchBytes() int { return 4 * p.in[2] }

// Tiles is how many parts the work has.
func (p *Pool) Tiles() int { return ceilDiv(p.Planes, p.perTile) * p.rowTiles }

// tile gives the planes and the output rows of part t.
func (p *Pool) tile(t int) (plane, planes, row, rows int) {
	row = t % p.rowTiles * p.rows
	plane = t / p.rowTiles * p.perTile
	return plane, min(plane+p.perTile, p.Planes), row, min(row+p.rows, p.out[0]*p.out[1])
}

// Tile computes part t. scratch holds at least ScratchBytes()/4 floats.
func (p *Pool) Tile(t int, scratch, dst, src []float32) {
	lo, hi, row, rowEnd := p.tile(t)
	for plane := lo; plane < hi; plane++ {
		from, to := src[plane*p.inArea:][:p.inArea], dst[plane*p.outArea:][:p.outArea]
		for r := row; r < rowEnd; r++ {
			p.row(scratch[:p.in[2]], to[r*p.out[2]:][:p.out[2]], from, r, 0)
		}
	}
}

// row computes one row of output. src is a plane of the input from row origin (over the axes but the last) on. Windows are reduced first
// over the outer axes, a whole row at a time, then along the row.
func (p *Pool) row(line, out, src []float32, r, origin int) {
	z, y := r/p.out[1], r%p.out[1]
	zlo, zhi := p.span(0, z)
	ylo, yhi := p.span(1, y)
	first := true
	for tz := zlo; tz < zhi; tz++ {
		for ty := ylo; ty < yhi; ty++ {
			iz := z*p.stride[0] - p.padBegin[0] + tz*p.dilation[0]
			iy := y*p.stride[1] - p.padBegin[1] + ty*p.dilation[1]
			in := src[(iz*p.in[1]+iy-origin)*p.in[2]:][:p.in[2]]
			switch {
			case first:
				copy(line, in)
			case p.Kind == PoolMax:
				binaryRowVV(Max, line, line, in)
			default:
				binaryRowVV(Add, line, line, in)
			}
			first = false
		}
	}
	if p.Kind == PoolMax {
		p.maxRow(out, line, first)
		return
	}
	count := max(0, zhi-zlo) * max(0, yhi-ylo)
	if p.Kind == PoolAveragePadded {
		count = p.padded(0, z) * p.padded(1, y)
	}
	p.averageRow(out, line, count, first)
}

// maxRow is the maximum along a row; of no element at all it is -Inf.
func (p *Pool) maxRow(out, line []float32, empty bool) {
	if empty {
		for x := range out {
			out[x] = float32(math.Inf(-1))
		}
		return
	}
	lo, hi := p.whole()
	for x := range out[:lo] {
		out[x] = p.maxAt(line, x)
	}
	reach := (p.kernel[2]-1)*p.dilation[2] + 1
	at := lo*p.stride[2] - p.padBegin[2]
	for x := lo; x < hi; x++ {
		w := line[at : at+reach]
		v := w[0]
		for i := p.dilation[2]; i < len(w); i += p.dilation[2] {
			v = max(v, w[i])
		}
		out[x] = v
		at += p.stride[2]
	}
	for x := hi; x < len(out); x++ {
		out[x] = p.maxAt(line, x)
	}
}

func (p *Pool) maxAt(line []float32, x int) float32 {
	lo, hi := p.span(2, x)
	v := float32(math.Inf(-1))
	for t := lo; t < hi; t++ {
		v = max(v, line[x*p.stride[2]-p.padBegin[2]+t*p.dilation[2]])
	}
	return v
}

// whole gives the outputs along a row whose windows lie inside the input: lo <= x < hi.
func (p *Pool) whole() (lo, hi int) {
	lo, _ = p.inside(2, 0)
	_, hi = p.inside(2, p.kernel[2]-1)
	return lo, max(lo, hi)
}

// averageRow divides sums along a row; count is the divisor of the outer axes.
func (p *Pool) averageRow(out, line []float32, count int, empty bool) {
	lo, hi := p.whole()
	if empty {
		lo, hi = len(out), len(out)
		clear(line)
	}
	for x := range out[:lo] {
		out[x] = p.averageAt(line, x, count)
	}
	reach := (p.kernel[2]-1)*p.dilation[2] + 1
	at := lo*p.stride[2] - p.padBegin[2]
	scale := 1 / float32(max(1, count*p.kernel[2]))
	for x := lo; x < hi; x++ {
		w := line[at : at+reach]
		sum := w[0]
		for i := p.dilation[2]; i < len(w); i += p.dilation[2] {
			sum += w[i]
		}
		out[x] = sum * scale
		at += p.stride[2]
	}
	for x := hi; x < len(out); x++ {
		out[x] = p.averageAt(line, x, count)
	}
}

func (p *Pool) averageAt(line []float32, x, count int) float32 {
	lo, hi := p.span(2, x)
	var sum float32
	for t := lo; t < hi; t++ {
		sum += line[x*p.stride[2]-p.padBegin[2]+t*p.dilation[2]]
	}
	if p.Kind == PoolAveragePadded {
		count *= p.padded(2, x)
	} else {
		count *= max(0, hi-lo)
	}
	if count == 0 {
		return 0
	}
	return sum / float32(count)
}

// padded counts the taps of one axis that lie inside the padded input.
func (p *Pool) padded(axis, o int) int {
	start := o * p.stride[axis]
	room := p.in[axis] + p.padBegin[axis] + p.padEnd[axis] - start
	return min(p.kernel[axis], max(0, ceilDiv(room, p.dilation[axis])))
}

// TileIndices is Tile for a maximum, with the number of each maximum's element among all elements of src: the first one if several are
// equal.
func (p *Pool) TileIndices(t int, dst []float32, indices []int64, src []float32) {
	lo, hi, row, rowEnd := p.tile(t)
	for plane := lo; plane < hi; plane++ {
		from := src[plane*p.inArea:][:p.inArea]
		for r := row; r < rowEnd; r++ {
			for x := range p.out[2] {
				v, at := p.argMax(from, r/p.out[1], r%p.out[1], x)
				to := plane*p.outArea + r*p.out[2] + x
				dst[to], indices[to] = v, int64(plane*p.inArea+p.number(at))
			}
		}
	}
}

// number turns the position of an element in its plane into its number in the order asked for.
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
