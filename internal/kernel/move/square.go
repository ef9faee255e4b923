package move

import "github.com/tenure-go/tenure/internal/kernel"

// Square exchanges two axes of one size of a tensor within its own bytes: a
// transpose whose elements change places in pairs, so that all threads share
// it. The other axes stay. Elements of axes behind both, which lie together,
// move as one run.
type Square struct {
	elem   int
	side   int         // of both axes
	stride [2]int      // of both axes, the outer one first, in elements
	run    int         // elements that move together
	pieces int         // of a run
	outer  kernel.Nest // operand 0: the other axes

	blocks int // along the side
	pairs  int // of blocks, with those on the diagonal
	group  int // pairs per tile
}

// The side of a block, that of the last block, which is no block of its own
// where it would be too small for the loops that transpose, and the bytes of a
// run that are moved by one tile.
const (
	squareBlock = 32
	squareLast  = squareBlock + squareBlock/2 - 1
	squarePiece = 16 << 10
)

// SquareBytes is the scratch of a tile of a [Square].
const SquareBytes = (squareLast*squareLast*4 + 63) &^ 63

// Prepare exchanges the axes a < b, of one size, of a tensor of the given shape
// and strides in elements. A square may be prepared again.
func (s *Square) Prepare(elemBytes int, shape, strides []int, a, b int) {
	*s = Square{elem: elemBytes, side: shape[a], stride: [2]int{strides[a], strides[b]}, run: 1, outer: s.outer}
	last := len(shape)
	for last > b+1 && (shape[last-1] == 1 || strides[last-1] == s.run) {
		last--
		s.run *= shape[last]
	}
	var buf [2][kernel.MaxRank]int
	sizes, steps := buf[0][:0], buf[1][:0]
	for i := range last {
		if i != a && i != b {
			sizes, steps = append(sizes, shape[i]), append(steps, strides[i])
		}
	}
	s.outer.Prepare(sizes, steps)
	s.pieces = max(1, kernel.CeilDiv(s.run*elemBytes, squarePiece))
	s.blocks = max(1, (s.side+squareBlock/2)/squareBlock)
	s.pairs = s.blocks * (s.blocks + 1) / 2
	s.group = max(1, kernel.RangeElements/max(1, 2*squareBlock*squareBlock*kernel.CeilDiv(s.run, s.pieces)))
}

// Tiles returns the number of tiles, of which none reads or writes an element
// of another one.
func (s *Square) Tiles() int {
	if s.run == 0 {
		return 0
	}
	return kernel.CeilDiv(s.outer.Elements()*s.pieces*s.pairs, s.group)
}

// Tile exchanges part t of the elements of data, with scratch of SquareBytes
// that is aligned like them.
func (s *Square) Tile(v *kernel.Variant, t int, data, scratch []byte) {
	switch s.elem {
	case 1:
		squareTile(v, s, t, data, scratch)
	case 2:
		squareTile(v, s, t, kernel.View[uint16](data), kernel.View[uint16](scratch))
	case 4:
		squareTile(v, s, t, kernel.View[uint32](data), kernel.View[uint32](scratch))
	case 8:
		squareTile(v, s, t, kernel.View[uint64](data), kernel.View[uint64](scratch))
	case 16:
		squareTile(v, s, t, kernel.View[kernel.Word16](data), kernel.View[kernel.Word16](scratch))
	default:
		kernel.BadElem("square", s.elem)
	}
}

func squareTile[W kernel.Word](v *kernel.Variant, s *Square, t int, data, buf []W) {
	units := s.outer.Elements() * s.pieces * s.pairs
	for u := t * s.group; u < min((t+1)*s.group, units); u++ {
		row, pair := 0, u%s.pairs
		for n := s.blocks; pair >= n; n-- {
			row, pair = row+1, pair-n
		}
		outer, piece := u/s.pairs/s.pieces, u/s.pairs%s.pieces
		cur := s.outer.Cursor(outer, outer+1)
		cur.Next()
		p0, q0 := row*squareBlock, (row+pair)*squareBlock
		np, nq := s.sizeOf(row), s.sizeOf(row+pair)
		switch {
		case s.run > 1:
			squareRuns(s, data, cur.Off[0], piece, p0, q0, np, nq, buf)
		case s.stride[1] == 1 && s.elem <= 4:
			squarePair(v, data[cur.Off[0]:], s.stride[0], p0, q0, np, nq, buf)
		default:
			squareElements(data[cur.Off[0]:], s.stride, p0, q0, np, nq)
		}
	}
}

// sizeOf returns the side of block i.
func (s *Square) sizeOf(i int) int {
	if i == s.blocks-1 {
		return s.side - i*squareBlock
	}
	return squareBlock
}

// squareRuns exchanges a piece of each run of two blocks.
func squareRuns[W kernel.Word](s *Square, data []W, base, piece, p0, q0, np, nq int, buf []W) {
	lo, hi := piece*s.run/s.pieces, (piece+1)*s.run/s.pieces
	for p := p0; p < p0+np; p++ {
		for q := max(q0, p+1); q < q0+nq; q++ {
			a := base + p*s.stride[0] + q*s.stride[1]
			b := base + q*s.stride[0] + p*s.stride[1]
			x, y := data[a+lo:a+hi], data[b+lo:b+hi]
			for len(x) > 0 {
				n := copy(buf, x)
				copy(x, y[:n])
				copy(y, buf[:n])
				x, y = x[n:], y[n:]
			}
		}
	}
}

// squareElements exchanges the elements of two blocks one by one.
func squareElements[W kernel.Word](data []W, stride [2]int, p0, q0, np, nq int) {
	for p := p0; p < p0+np; p++ {
		for q := max(q0, p+1); q < q0+nq; q++ {
			a, b := p*stride[0]+q*stride[1], q*stride[0]+p*stride[1]
			data[a], data[b] = data[b], data[a]
		}
	}
}

// squarePair exchanges two blocks of a matrix whose rows lie stride apart: the
// one at (p0, q0), of np rows and nq columns, and the one at (q0, p0). The
// first of them waits in buf, transposed.
func squarePair[W kernel.Word](v *kernel.Variant, data []W, stride, p0, q0, np, nq int, buf []W) {
	a, b := p0*stride+q0, q0*stride+p0
	if !transposed(v, buf, squareLast, data, a, stride, nq, np) {
		squareElements(data, [2]int{stride, 1}, p0, q0, np, nq)
		return
	}
	if a != b && !transposed(v, data[a:], stride, data, b, stride, np, nq) {
		kernel.Bug("square: a block of %dx%d is transposed, and one of %dx%d is not", np, nq, nq, np)
	}
	for q := range nq {
		to, from := data[b+q*stride:][:np], buf[q*squareLast:][:np]
		if np == squareBlock {
			*(*[squareBlock]W)(to) = *(*[squareBlock]W)(from)
		} else {
			copy(to, from)
		}
	}
}
