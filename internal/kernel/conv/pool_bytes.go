package conv

import (
	"encoding/binary"

	"github.com/tenure-go/tenure/internal/kernel"
)

// BytePool is the maximum of Pool for u8, and for i8 if Signed, without
// indices. A part of a plane is computed at a time: what its windows read is
// copied, with pads; then each tap of a row is one pass over the copy, and each
// tap of a column one over its rows.
type BytePool struct {
	Signed           bool
	Planes, Channels int
	Window

	v                    *kernel.Variant // of Prepare
	rows, cols           int             // results of a part
	rowBlocks, colBlocks int             // parts of a plane
	units                int             // parts of a tile
	pitch                int             // bytes of a row of the copy
	together             int             // planes that are copied at once, 0 where planes are no parts
}

const (
	bytePoolCopy = 12 << 10 // bytes of a copy, unless the windows of a few results need more
	bytePoolWork = 1 << 16  // bytes that a tile copies
	byteVector   = 32
)

// Prepare works out the parts and tiles.
func (p *BytePool) Prepare(v *kernel.Variant) {
	p.v = v
	p.Resolve()
	p.InSteps.setBatch(p.Channels)
	p.OutSteps.setBatch(p.Channels)
	if p.outArea == 0 {
		return
	}
	row := bytePoolCopy / (p.kernel[0] * p.reach(1))
	p.cols = kernel.EvenTile(p.out[2], max(2*byteVector, (row-p.reach(2))/p.stride[2]), 1)
	p.pitch = (p.cols-1)*p.stride[2] + p.reach(2)
	p.rows = 1
	for p.rows < p.out[1] && p.copyRows(p.rows+1)*p.pitch <= bytePoolCopy {
		p.rows++
	}
	p.rows = kernel.EvenTile(p.out[1], p.rows, 1)
	p.rowBlocks, p.colBlocks = kernel.CeilDiv(p.out[1], p.rows), kernel.CeilDiv(p.out[2], p.cols)
	p.units = max(1, min(bytePoolWork/(p.copyRows(p.rows)*p.pitch), p.parts()/kernel.WantedTiles))
	p.together = 0
	if v.Bytes.CopyRows != nil && p.in[0]*p.out[0]*p.kernel[0] == 1 && p.padBegin[0] == 0 && p.rowBlocks*p.colBlocks == 1 && p.in[1]*p.in[2] > 0 {
		p.together = max(1, min(p.units, bytePoolCopy/(p.copyRows(p.rows)*p.pitch)))
	}
}

// copyRows is the number of rows that rows of results read, in all planes of
// the outermost axis together.
func (p *BytePool) copyRows(rows int) int {
	return p.kernel[0] * ((rows-1)*p.stride[1] + p.reach(1))
}

func (p *BytePool) parts() int { return p.Planes * p.out[0] * p.rowBlocks * p.colBlocks }

// Tiles returns the number of tiles.
func (p *BytePool) Tiles() int {
	if p.outArea == 0 {
		return 0
	}
	return kernel.CeilDiv(p.parts(), p.units)
}

// ScratchBytes returns the size of the scratch of a worker: of a copy, of the
// maxima of its rows, and of those of its columns.
func (p *BytePool) ScratchBytes() int {
	if p.outArea == 0 {
		return 0
	}
	if p.together > 0 {
		return 3 * p.copyBytes()
	}
	return 2*p.copyBytes() + p.rows*p.pitch + byteVector
}

// copyBytes is the size of a copy, behind which a vector is read.
func (p *BytePool) copyBytes() int {
	return max(1, p.together)*p.copyRows(p.rows)*p.pitch + byteVector
}

// Tile computes part t.
func (p *BytePool) Tile(t int, scratch, dst, src []byte) {
	if p.together > 0 {
		p.planes(t*p.units, min((t+1)*p.units, p.parts()), scratch, dst, src)
		return
	}
	shape := Pool{Channels: p.Channels, Window: p.Window}
	for u := t * p.units; u < min((t+1)*p.units, p.parts()); u++ {
		col := u % p.colBlocks * p.cols
		row := u / p.colBlocks % p.rowBlocks * p.rows
		plane := u / p.colBlocks / p.rowBlocks
		in, out := shape.plane(plane / p.out[0])
		z := plane % p.out[0]
		p.part(scratch, dst[out+p.OutSteps.at(z, row, col):], src[in:], z, row, col)
	}
}

// planes computes whole planes, some at once. Their pads are written once: the
// copies of all lie alike.
func (p *BytePool) planes(plane, end int, scratch, dst, src []byte) {
	shape := Pool{Channels: p.Channels, Window: p.Window}
	size := p.copyRows(p.rows) * p.pitch
	taps, along, down := scratch[:p.copyBytes()], scratch[p.copyBytes():], scratch[2*p.copyBytes():]
	fill := byte(0)
	if p.Signed {
		fill = 0x80
	}
	taps[0] = fill
	for i := 1; i < len(taps); i *= 2 {
		copy(taps[i:], taps[:i])
	}
	rowPad, colPad := max(0, p.padBegin[1]), max(0, p.padBegin[2])
	row, col := max(0, -p.padBegin[1]), max(0, -p.padBegin[2])
	rows, cols := min(p.in[1]-row, p.copyRows(p.rows)-rowPad), min(p.in[2]-col, p.pitch-colPad)
	for plane < end {
		n := min(end-plane, p.together)
		if p.Channels > 0 {
			n = min(n, p.Channels-plane%p.Channels)
		}
		in, out := shape.plane(plane)
		if rows > 0 && cols > 0 {
			from := src[in+p.InSteps.at(0, row, col):]
			_ = from[(n-1)*p.InSteps.Channel+(rows-1)*p.InSteps.Row+cols-1]
			p.v.Bytes.CopyRows(n, rows, cols, &taps[rowPad*p.pitch+colPad], size, p.pitch, &from[0], p.InSteps.Channel, p.InSteps.Row)
		}
		p.maxima(along, down, taps, n*size)
		for i := range n {
			p.leave(dst[out+i*p.OutSteps.Channel:], down[i*size:])
		}
		plane += n
	}
}

// maxima sets down to the maxima of the windows that begin at each of n bytes
// of a copy. Along is of the size of the copy, too.
func (p *BytePool) maxima(along, down, taps []byte, n int) {
	x := taps
	for i := 1; i < p.kernel[2]; i++ {
		from := i * p.dilation[2]
		p.largest(along, x, taps[from:], n-from)
		x = along
	}
	first := x
	for i := 1; i < p.kernel[1]; i++ {
		from := i * p.dilation[1] * p.pitch
		p.largest(down, first, x[from:], n-from)
		first = down
	}
	if p.kernel[1] == 1 {
		copy(down[:n], x)
	}
}

// leave writes the results of a plane.
func (p *BytePool) leave(dst, down []byte) {
	rows, cols, step := p.out[1], p.out[2], p.pitch*p.stride[1]
	_ = dst[(rows-1)*p.OutSteps.Row+cols-1]
	switch {
	case p.stride[2] == 1:
		p.v.Bytes.CopyRows(1, rows, cols, &dst[0], 0, p.OutSteps.Row, &down[0], 0, step)
	case p.stride[2] == 2 && cols >= byteVector/2:
		_ = down[(rows-1)*step+2*cols-1]
		p.v.Bytes.EvenRows(rows, cols, &dst[0], p.OutSteps.Row, &down[0], step)
	default:
		for i := range rows {
			pick(dst[i*p.OutSteps.Row:][:cols], down[i*step:], p.stride[2])
		}
	}
}

// part computes the results of plane z from (row, col) on, which begin at dst.
func (p *BytePool) part(scratch, dst, src []byte, z, row, col int) {
	rows, cols := min(p.rows, p.out[1]-row), min(p.cols, p.out[2]-col)
	p.copy(scratch, src, z, row, col, rows)
	size := p.copyRows(rows) * p.pitch
	taps, along, down := scratch, scratch[p.copyBytes():], scratch[2*p.copyBytes():]
	if p.kernel[2] == 1 {
		along = taps
	}
	for i := 1; i < p.kernel[2]; i++ {
		from := i * p.dilation[2]
		p.largest(along, taps, scratch[from:], size-from)
		taps = along
	}
	if p.stride[1] == 1 {
		p.columns(down, along, rows, (rows-1)*p.pitch+(cols-1)*p.stride[2]+1)
		for i := range rows {
			pick(dst[i*p.OutSteps.Row:][:cols], down[i*p.pitch:], p.stride[2])
		}
		return
	}
	for i := range rows {
		p.columns(down, along[i*p.stride[1]*p.pitch:], rows, (cols-1)*p.stride[2]+1)
		pick(dst[i*p.OutSteps.Row:][:cols], down, p.stride[2])
	}
}

// columns takes the maxima of the rows that begin at the taps of the outer
// axes, n bytes of each. The copy is of so many rows of results.
func (p *BytePool) columns(dst, src []byte, rows, n int) {
	plane := p.copyRows(rows) / p.kernel[0]
	first := src
	for tap := 1; tap < p.kernel[0]*p.kernel[1]; tap++ {
		at := tap/p.kernel[1]*plane + tap%p.kernel[1]*p.dilation[1]
		p.largest(dst, first, src[at*p.pitch:], n)
		first = dst
	}
	if p.kernel[0]*p.kernel[1] == 1 {
		copy(dst[:n], src)
	}
}

// copy copies what rows of results read.
func (p *BytePool) copy(dst, src []byte, z, row, col, rows int) {
	fill := byte(0)
	if p.Signed {
		fill = 0x80
	}
	perPlane := p.copyRows(rows) / p.kernel[0]
	x := col*p.stride[2] - p.padBegin[2]
	left := min(max(0, -x), p.pitch)
	right := max(left, min(p.pitch, p.in[2]-x))
	for i := range p.copyRows(rows) {
		to := dst[i*p.pitch:][:p.pitch]
		inZ := z*p.stride[0] - p.padBegin[0] + i/perPlane*p.dilation[0]
		inY := row*p.stride[1] - p.padBegin[1] + i%perPlane
		if inZ < 0 || inZ >= p.in[0] || inY < 0 || inY >= p.in[1] || left == right {
			kernel.Repeat(to, fill)
			continue
		}
		kernel.Repeat(to[:left], fill)
		copy(to[left:right], src[p.InSteps.at(inZ, inY, x+left):])
		kernel.Repeat(to[right:], fill)
	}
}

// largest sets n bytes of dst to the larger ones of x and y. A vector behind
// them may be written, too.
func (p *BytePool) largest(dst, x, y []byte, n int) {
	if n <= 0 {
		return
	}
	loop := p.v.Bytes.MaxU8
	if p.Signed {
		loop = p.v.Bytes.MaxI8
	}
	if vectors := kernel.CeilDiv(n, byteVector); loop != nil {
		_, _, _ = dst[vectors*byteVector-1], x[vectors*byteVector-1], y[vectors*byteVector-1]
		loop(vectors, &dst[0], &x[0], &y[0])
		return
	}
	dst, x, y = dst[:n], x[:n], y[:n]
	if p.Signed {
		for i := range dst {
			dst[i] = byte(max(int8(x[i]), int8(y[i])))
		}
		return
	}
	for i := range dst {
		dst[i] = max(x[i], y[i])
	}
}

// pick copies each step-th byte.
func pick(dst, src []byte, step int) {
	switch step {
	case 1:
		copy(dst, src)
	case 2:
		for len(dst) >= 4 && len(src) >= 8 { // four bytes of a word
			x := binary.LittleEndian.Uint64(src) & 0x00ff00ff00ff00ff
			x = (x | x>>8) & 0x0000ffff0000ffff
			binary.LittleEndian.PutUint32(dst, uint32(x|x>>16))
			dst, src = dst[4:], src[8:]
		}
		for i := range dst {
			dst[i] = src[2*i]
		}
	default:
		for i := range dst {
			dst[i] = src[i*step]
		}
	}
}
