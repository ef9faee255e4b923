package move

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Copy moves the elements of an N-d block between two strided places:
// transpose, slice (steps of either sign), expand, tile, and the pieces of
// concat and split are all forms of it (copy_forms.go). dst and src do not
// overlap.
type Copy struct {
	elem  int
	nest  kernel.Nest // operands dst, src; in the blocked form the axes outside the block
	block copyBlock
	units int // blocks, in the blocked form
	group int // blocks per tile
}

// copyBlock is the two innermost axes of a transposing copy: along p src is
// contiguous, along q dst is. np is 0 in the plain form.
type copyBlock struct {
	np, nq     int
	dstP, srcQ int // the other stride of each axis
	pBlocks    int
	qBlocks    int
}

// The size of a tile of the blocked form, and the side of the squares in which
// it is copied: a cache line of float32.
const (
	copyBlockP = 64
	copyBlockQ = 256
	copySquare = 16
)

// Prepare describes the block by its size and, for each side, where its first
// element lies and its strides, all in elements. A copy may be prepared again,
// in any form.
func (c *Copy) Prepare(elemBytes int, size []int, dstOffset int, dstStride []int, srcOffset int, srcStride []int) {
	*c = Copy{elem: elemBytes, nest: c.nest}
	var buf [kernel.MaxRank]kernel.NestAxis
	axes := buf[:0]
	for i, n := range size {
		if n != 1 {
			axes = append(axes, kernel.NestAxis{Size: n, Stride: [kernel.MaxOperands]int{dstStride[i], srcStride[i]}})
		}
	}
	// Elements may be copied in any order: that of dst writes whole cache
	// lines.
	slices.SortStableFunc(axes, func(a, b kernel.NestAxis) int { return abs(b.Stride[0]) - abs(a.Stride[0]) })
	c.setNest(axes, dstOffset, srcOffset)
	c.findBlock(dstOffset, srcOffset)
}

func (c *Copy) setNest(axes []kernel.NestAxis, dstOffset, srcOffset int) {
	var buf [3][kernel.MaxRank]int
	size, dst, src := buf[0][:0], buf[1][:0], buf[2][:0]
	for _, ax := range axes {
		size, dst, src = append(size, ax.Size), append(dst, ax.Stride[0]), append(src, ax.Stride[1])
	}
	c.nest.Prepare(size, dst, src)
	c.nest.SetBase(0, dstOffset)
	c.nest.SetBase(1, srcOffset)
}

// findBlock puts the copy into its blocked form if dst and src are contiguous
// along different axes.
func (c *Copy) findBlock(dstOffset, srcOffset int) {
	var buf [kernel.MaxRank]kernel.NestAxis
	axes := append(buf[:0], c.nest.Axes...)
	last := len(axes) - 1
	q := axes[last]
	if c.nest.Elements() == 0 || q.Stride[0] != 1 || q.Stride[1] == 0 || q.Stride[1] == 1 {
		return
	}
	at := slices.IndexFunc(axes[:last], func(ax kernel.NestAxis) bool { return ax.Stride[1] == 1 })
	if at < 0 {
		return
	}
	p := axes[at]
	c.block = copyBlock{
		np: p.Size, nq: q.Size, dstP: p.Stride[0], srcQ: q.Stride[1],
		pBlocks: kernel.CeilDiv(p.Size, copyBlockP), qBlocks: kernel.CeilDiv(q.Size, copyBlockQ),
	}
	c.setNest(slices.Delete(axes[:last], at, at+1), dstOffset, srcOffset)
	c.units = c.nest.Elements() * c.block.pBlocks * c.block.qBlocks
	c.group = max(1, kernel.RangeElements/(min(p.Size, copyBlockP)*min(q.Size, copyBlockQ)))
}

// Alike reports whether the elements lie alike on both sides, and at which
// index of dst and of src the first one is: if these are the same place in
// memory, the copy changes nothing.
func (c *Copy) Alike() (dst, src int, ok bool) {
	if c.block.np > 0 || c.nest.Elements() == 0 {
		return 0, 0, false
	}
	for i := range c.nest.Axes {
		if ax := &c.nest.Axes[i]; ax.Stride[0] != ax.Stride[1] {
			return 0, 0, false
		}
	}
	return c.nest.Base(0), c.nest.Base(1), true
}

// Tiles returns the number of tiles.
func (c *Copy) Tiles() int {
	if c.block.np > 0 {
		return kernel.CeilDiv(c.units, c.group)
	}
	return c.nest.Tiles()
}

// Tile copies part t.
func (c *Copy) Tile(v *kernel.Variant, t int, dst, src []byte) {
	switch c.elem {
	case 1:
		copyTile(v, c, t, dst, src)
	case 2:
		copyTile(v, c, t, kernel.View[uint16](dst), kernel.View[uint16](src))
	case 4:
		copyTile(v, c, t, kernel.View[uint32](dst), kernel.View[uint32](src))
	case 8:
		copyTile(v, c, t, kernel.View[uint64](dst), kernel.View[uint64](src))
	case 16:
		copyTile(v, c, t, kernel.View[kernel.Word16](dst), kernel.View[kernel.Word16](src))
	default:
		kernel.BadElem("copy", c.elem)
	}
}

func copyTile[W kernel.Word](v *kernel.Variant, c *Copy, t int, dst, src []W) {
	if c.block.np == 0 {
		lo, hi := c.nest.Range(t)
		copyRows(v, &c.nest, lo, hi, dst, src)
		return
	}
	for u := t * c.group; u < min((t+1)*c.group, c.units); u++ {
		qb := u % c.block.qBlocks
		pb := u / c.block.qBlocks % c.block.pBlocks
		outer := u / c.block.qBlocks / c.block.pBlocks
		cur := c.nest.Cursor(outer, outer+1)
		cur.Next()
		copySquares(v, &c.block, pb*copyBlockP, qb*copyBlockQ, dst[cur.Off[0]:], src, cur.Off[1])
	}
}

func copyRows[W kernel.Word](v *kernel.Variant, n *kernel.Nest, lo, hi int, dst, src []W) {
	if last := len(n.Axes) - 1; last > 0 && n.Axes[last].Stride[0] == 1 && n.Axes[last].Stride[1] == 1 {
		inner := n.Axes[last].Size
		from, to := kernel.CeilDiv(lo, inner)*inner, hi/inner*inner
		if from < to {
			copyRuns(v, n, lo, from, dst, src)
			copyWhole(n, from/inner, to/inner, dst, src)
			lo = to
		}
	}
	copyRuns(v, n, lo, hi, dst, src)
}

// copyWhole copies contiguous rows, of which there may be many short ones.
func copyWhole[W kernel.Word](n *kernel.Nest, row, end int, dst, src []W) {
	last := len(n.Axes) - 1
	inner, ax := n.Axes[last].Size, &n.Axes[last-1]
	for row < end {
		c := n.Cursor(row*inner, (row+1)*inner)
		c.Next()
		d, s := c.Off[0], c.Off[1]
		m := min(ax.Size-row%ax.Size, end-row)
		for range m {
			copy(dst[d:d+inner], src[s:s+inner])
			d, s = d+ax.Stride[0], s+ax.Stride[1]
		}
		row += m
	}
}

func copyRuns[W kernel.Word](v *kernel.Variant, n *kernel.Nest, lo, hi int, dst, src []W) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		d, s := c.Off[0], c.Off[1]
		switch {
		case c.Step[0] == 1 && c.Step[1] == 1:
			copy(dst[d:d+c.N], src[s:s+c.N])
		case c.Step[0] == 1 && c.Step[1] == 0:
			fill(dst[d:d+c.N], src[s])
		case c.Step[0] == 1:
			copyStrided(v, dst[d:d+c.N], src, s, c.Step[1])
		default:
			for range c.N {
				dst[d] = src[s]
				d, s = d+c.Step[0], s+c.Step[1]
			}
		}
	}
}

// copyStrided copies elements that lie step apart.
func copyStrided[W kernel.Word](v *kernel.Variant, dst, src []W, at, step int) {
	size, done := bits.TrailingZeros(uint(unsafe.Sizeof(src[0]))), 0
	if size < len(kernel.SizeLoops{}) && (step == 2 || step == -1) {
		_ = src[at+(len(dst)-1)*step]
		to, from := kernel.OperandOf(dst, 0, 1), kernel.OperandOf(src, at, step)
		if step == 2 { // a group also reads the element after its last one
			done = v.Elements.Second[size].Over(len(dst)-1, to, from, kernel.Operand{}, kernel.Operand{})
		} else {
			done = v.Elements.Backwards[size].Over(len(dst), to, from, kernel.Operand{}, kernel.Operand{})
		}
		at += done * step
	}
	for i := done; i < len(dst); i++ {
		dst[i] = src[at]
		at += step
	}
}

// transposed transposes a block if there is a loop for its elements, and it is
// large enough.
func transposed[W kernel.Word](v *kernel.Variant, dst []W, dstP int, src []W, from, srcQ, np, nq int) bool {
	e := &v.Elements
	switch d := any(dst).(type) {
	case []uint32:
		return e.TransposeWords != nil && transposeSquares(e.TransposeWords, v.Rows.Bytes/4, d, dstP, any(src).([]uint32), from, srcQ, np, nq)
	case []uint16:
		return e.TransposeHalves != nil && transposeSquares(e.TransposeHalves, 8, d, dstP, any(src).([]uint16), from, srcQ, np, nq)
	case []uint8:
		return e.TransposeBytes != nil && transposeSquares(e.TransposeBytes, 8, d, dstP, any(src).([]uint8), from, srcQ, np, nq)
	}
	return false
}

// transposeSquares transposes what squares cover. The last ones overlap those
// before them, so that a block of at least a square has no edges.
func transposeSquares[W kernel.Word](f func(n int, dst, src *W, dstStep, srcStep int), side int, dst []W, dstP int, src []W, from, srcQ, np, nq int) bool {
	if np < side || nq < side {
		return false
	}
	size := int(unsafe.Sizeof(dst[0]))
	last := from + (nq-1)*srcQ
	_, _, _ = dst[(np-1)*dstP+nq-1], src[min(from, last)], src[max(from, last)+np-1]
	for p := 0; p < np; p += side {
		p = min(p, np-side)
		f(nq/side, &dst[p*dstP], &src[from+p], size*dstP, size*srcQ)
		if rest := nq - side; nq%side != 0 {
			f(1, &dst[p*dstP+rest], &src[from+p+rest*srcQ], size*dstP, size*srcQ)
		}
	}
	return true
}

// copySquares copies the block that starts at (p0, q0). srcQ may be negative,
// so src is indexed from its base.
func copySquares[W kernel.Word](v *kernel.Variant, b *copyBlock, p0, q0 int, dst, src []W, base int) {
	pEnd, qEnd := min(p0+copyBlockP, b.np), min(q0+copyBlockQ, b.nq)
	if transposed(v, dst[p0*b.dstP+q0:], b.dstP, src, base+p0+q0*b.srcQ, b.srcQ, pEnd-p0, qEnd-q0) {
		return
	}
	if b.np <= 4 && b.srcQ == b.np {
		takeApart(dst[q0:], b.dstP, src[base+q0*b.srcQ:], b.np, qEnd-q0)
		return
	}
	if b.nq <= 4 && b.dstP == b.nq {
		putTogether(dst[p0*b.dstP:], src, base+p0, b.srcQ, pEnd-p0, b.nq)
		return
	}
	for qs := q0; qs < qEnd; qs += copySquare {
		nq := min(copySquare, qEnd-qs)
		if b.np < copySquare/2 { // too narrow for squares: along q, a few lines at a time
			for p := p0; p < pEnd; p++ {
				d, s := dst[p*b.dstP+qs:][:nq], base+p+qs*b.srcQ
				for i := range d {
					d[i] = src[s]
					s += b.srcQ
				}
			}
			continue
		}
		for ps := p0; ps < pEnd; ps += copySquare {
			transposeSquare(dst[ps*b.dstP+qs:], b.dstP, src, base+ps+qs*b.srcQ, b.srcQ, min(copySquare, pEnd-ps), nq)
		}
	}
}

// takeApart copies np elements that alternate, as the colours of an image do,
// into rows of n.
func takeApart[W kernel.Word](dst []W, dstP int, src []W, np, n int) {
	src = src[:n*np]
	if np == 3 {
		a, b, c := dst[:n], dst[dstP:][:n], dst[2*dstP:][:n]
		for i := range a {
			s := src[3*i:][:3]
			a[i], b[i], c[i] = s[0], s[1], s[2]
		}
		return
	}
	for p := range np {
		d := dst[p*dstP:][:n]
		for i := range d {
			d[i] = src[i*np+p]
		}
	}
}

// putTogether lets nq rows of n elements alternate. The rows are srcQ apart, in
// either direction.
func putTogether[W kernel.Word](dst, src []W, from, srcQ, n, nq int) {
	dst = dst[:n*nq]
	if nq == 3 {
		a, b, c := src[from:][:n], src[from+srcQ:][:n], src[from+2*srcQ:][:n]
		for i := range a {
			d := dst[3*i:][:3]
			d[0], d[1], d[2] = a[i], b[i], c[i]
		}
		return
	}
	for q := range nq {
		for i, v := range src[from+q*srcQ:][:n] {
			dst[i*nq+q] = v
		}
	}
}

// transposeSquare goes through a buffer, so that every cache line of src and
// dst is touched once: with strides that are powers of two the lines of a
// square compete for the same places in the cache.
func transposeSquare[W kernel.Word](dst []W, dstP int, src []W, from, srcQ, np, nq int) {
	var square [copySquare * copySquare]W
	for q := range nq {
		for p, v := range src[from+q*srcQ:][:np] {
			square[(p*copySquare+q)%len(square)] = v
		}
	}
	for p := range np {
		copy(dst[p*dstP:][:nq], square[p*copySquare:])
	}
}

// fill writes some and copies those: that is done in vectors.
func fill[W kernel.Word](dst []W, v W) {
	const some, most = 64, 4 << 10
	n := min(len(dst), some)
	for i := range dst[:n] {
		dst[i] = v
	}
	for n < len(dst) {
		n += copy(dst[n:], dst[:min(n, most)])
	}
}

func abs(x int) int {
	if x < 0 {
		return -x
	}
	return x
}
