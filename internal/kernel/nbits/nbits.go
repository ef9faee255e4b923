package nbits

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// Step is what the size of a block is a multiple of.
const Step = 16

// FewRows is the most rows that are multiplied with packed weights in float32.
// For more of them the weights are made float32 once per tile.
const FewRows = 8

// ZeroKind says how the zeros are stored.
type ZeroKind int

const (
	OneZero    ZeroKind = iota // all are Middle
	ByteZeros                  // of as many bits as the weights in a source, bytes in panels
	FloatZeros                 // float32 in panels
)

// Product is a product and its problem; Prepare works out the rest.
type Product struct {
	M, N, K     int
	Bits, Block int
	Ints        bool // A is quantised, too; zeros are integers
	Zeros       ZeroKind
	Middle      int  // the zero of all
	Packed      bool // B, scales and zeros are panels; otherwise they are Source's
	Source      Source
	gemm.Epilogue

	v                  *kernel.Variant
	lanes, blocks      int
	few                bool // weights are read packed, in float32
	rows, panels       int  // of a tile
	rowTiles, colTiles int
	record             int // bytes of a quantised row
	part               int // blocks that become float32 together
	less               [16]float32
	size               sizes
}

// Args are the operands. C may be Residual. Of operands that are not packed B,
// Scale and Zero have the bytes that Source describes.
type Args struct {
	C, A           []float32
	B, Scale, Zero []byte
	Bias, Residual []float32
}

// sizes are the parts of a worker's scratch, in bytes that are multiples of 64.
type sizes struct{ left, padded, out, wide, panel, scale, zero int }

const (
	tileRows   = 128
	tileCols   = 256
	leastCols  = 64
	intCols    = 1024      // of a tile that quantises its rows
	fewIntCols = 512       // of one with few rows, unless that leaves too few tiles
	leftBytes  = 512 << 10 // of quantised rows: the second-level cache has room for them
	fewBytes   = 32 << 10  // of weights in a tile of few rows, at least
	mostBytes  = 1 << 20   // and at most
)

// Prepare works out the tiles.
func (p *Product) Prepare(v *kernel.Variant) {
	p.v, p.lanes, p.BiasFactor = v, v.Nbits.Lanes, 1
	p.blocks = kernel.CeilDiv(p.K, p.Block)
	p.record = p.blocks * (p.Block + 8)
	p.few = !p.Ints && p.M <= FewRows
	for i := range p.less {
		p.less[i] = float32(-p.Middle)
		if p.tables() {
			p.less[i] = float32(i&(1<<p.Bits-1) - p.Middle)
		}
	}
	if !p.tables() {
		p.less[0] = float32(p.Middle)
	}
	panels := p.allPanels()
	p.part = p.blocks
	switch {
	case p.M <= FewRows:
		bytes := max(1, p.panelBytes())
		p.rows = max(1, p.M)
		p.panels = max(kernel.CeilDiv(panels, 2*kernel.WantedTiles), kernel.CeilDiv(fewBytes, bytes))
		if p.Ints { // each tile quantises the rows again
			p.panels = max(p.panels, min(fewIntCols/p.lanes, kernel.CeilDiv(panels, kernel.WantedTiles)))
		}
		p.panels = min(p.panels, kernel.CeilDiv(mostBytes, bytes))
	case p.Ints:
		p.rows = max(FewRows, min(tileRows, leftBytes/max(1, p.record)))
		p.panels = p.columns(intCols, tileCols) / p.lanes
	default:
		p.rows = tileRows
		p.panels = p.columns(tileCols, leastCols) / p.lanes
		p.part = max(1, gemm.BlockDepth/p.Block)
	}
	p.rows = kernel.EvenTile(p.M, p.rows, 1)
	p.panels = max(1, kernel.EvenTile(panels, p.panels, 1))
	if width := v.Gemm.Width / p.lanes; !p.few && !p.Ints {
		p.panels = kernel.CeilDiv(p.panels, width) * width
	}
	p.rowTiles, p.colTiles = kernel.CeilDiv(p.M, p.rows), kernel.CeilDiv(panels, p.panels)
	p.size = p.scratch(p.rows)
}

// columns is how many columns a tile has, which are fewer where there would be
// few tiles.
func (p *Product) columns(most, least int) int {
	for most > least && kernel.CeilDiv(p.M, p.rows)*kernel.CeilDiv(p.N, most) < kernel.WantedTiles {
		most /= 2
	}
	return most
}

// tables reports whether the weights of the product are looked up.
func (p *Product) tables() bool {
	return p.few && p.Zeros == OneZero && p.v.Nbits.Tables[p.Bits][1] != nil
}

func (p *Product) allPanels() int { return kernel.CeilDiv(p.N, p.lanes) }

// blockBytes is the size of a block of a panel.
func (p *Product) blockBytes() int { return p.Block * p.Bits / 8 * p.lanes }

func (p *Product) panelBytes() int { return p.blocks * p.blockBytes() }

// zeroSize is the size of a zero in a panel.
func (p *Product) zeroSize() int { return [3]int{0, 1, 4}[p.Zeros] }

// scratch returns the parts of the scratch for so many rows.
func (p *Product) scratch(rows int) (s sizes) {
	line := func(n int) int { return (n + 63) &^ 63 }
	padded := p.K%p.Block != 0
	s.out = line(4 * rows * p.lanes)
	switch {
	case p.Ints:
		s.left = line(rows * p.record)
		if padded {
			s.padded = line(4 * p.Block)
		}
	case p.few && padded:
		s.left = line(4 * rows * p.blocks * p.Block)
	case !p.few:
		depth := min(p.K, p.part*p.Block)
		s.left = line(4 * gemm.CrowdedFloats(rows, depth, p.K))
		s.wide = line(4 * p.v.Gemm.Width * p.part * p.Block)
		s.out = 0
	}
	if !p.Packed {
		s.panel, s.scale, s.zero = line(p.part*p.blockBytes()), line(4*p.part*p.lanes), line(p.zeroSize()*p.part*p.lanes)
	}
	return s
}

func (s sizes) total() int { return s.left + s.padded + s.out + s.wide + s.panel + s.scale + s.zero }

// ScratchBytes returns the size of the scratch that Tile needs, per worker.
func (p *Product) ScratchBytes() int { return p.size.total() }

// MostScratchBytes returns a number of bytes that the scratch of no product
// exceeds that has at most as many rows.
func (p *Product) MostScratchBytes(v *kernel.Variant) int {
	most := 0
	for _, rows := range []int{min(p.M, FewRows), p.M} {
		q := *p
		q.M = rows
		q.Prepare(v)
		s := q.scratch(min(rows, tileRows))
		if q.Ints {
			s = q.scratch(min(rows, max(FewRows, min(tileRows, leftBytes/max(1, q.record)))))
		}
		most = max(most, s.total())
	}
	return most
}

// Tiles returns the number of tiles.
func (p *Product) Tiles() int { return p.rowTiles * p.colTiles }

// work is a tile under way.
type work struct {
	gemm.Rect
	args               *Args
	left, out, wide    []float32
	bytes              []byte // of quantised rows
	padded             []float32
	panel, scale, zero []byte // of a part of a panel that is not packed
	lda                int
}

// Tile computes part t. scratch holds at least ScratchBytes.
func (p *Product) Tile(t int, scratch []byte, args *Args) {
	take := func(n int) []byte {
		b := scratch[:n:n]
		scratch = scratch[n:]
		return b
	}
	left := take(p.size.left)
	w := work{args: args, left: kernel.View[float32](left), bytes: left, padded: kernel.View[float32](take(p.size.padded)), out: kernel.View[float32](take(p.size.out)),
		wide: kernel.View[float32](take(p.size.wide)), panel: take(p.size.panel), scale: take(p.size.scale), zero: take(p.size.zero)}
	row, col := t/p.colTiles*p.rows, t%p.colTiles*p.panels*p.lanes
	w.Rect = gemm.Rect{Ld: p.N, ResLD: p.N, Row: row, Col: col, Width: p.N, Rows: min(p.rows, p.M-row), Cols: min(p.panels*p.lanes, p.N-col), At: row*p.N + col, Res: row*p.N + col}
	add := p.Begin(p.v, &w.Rect, args.C, args.Bias, args.Residual)
	switch {
	case p.K == 0:
		if !add {
			gemm.ZeroRect(&w.Rect, args.C)
		}
	case p.few || p.Ints:
		p.directly(&w, add)
	default:
		p.expanded(&w, add)
	}
	p.End(p.v, &w.Rect, args.C, args.Bias)
}

// directly multiplies rows with packed weights, panel by panel.
func (p *Product) directly(w *work, add bool) {
	p.readRows(w)
	for j := 0; j < w.Cols; j += p.lanes {
		b := p.panelOf(w, (w.Col+j)/p.lanes, 0, p.blocks)
		n := min(p.lanes, w.Cols-j)
		c, ldc := w.args.C[w.At+j:], w.Ld
		if n < p.lanes { // loops write whole vectors
			for i := range w.Rows {
				if add {
					copy(w.out[i*p.lanes:][:n], c[i*ldc:])
				}
			}
			c, ldc = w.out, p.lanes
		}
		p.multiply(w, b, c, ldc, add)
		if n < p.lanes {
			for i := range w.Rows {
				copy(w.args.C[w.At+j+i*w.Ld:][:n], w.out[i*p.lanes:])
			}
		}
	}
}

// readRows sets the rows of A of a tile as the loops want them: quantised, or
// filled up with zeros, or where they lie.
func (p *Product) readRows(w *work) {
	a := w.args.A[w.Row*p.K:]
	whole := p.K / p.Block
	for i := range w.Rows {
		row := a[i*p.K:][:p.K]
		switch {
		case p.Ints:
			dst := w.bytes[i*p.record:][:p.record]
			quantize(p.v, p.Block, dst, row[:whole*p.Block])
			if rest := row[whole*p.Block:]; len(rest) > 0 {
				clear(w.padded[copy(w.padded, rest):])
				quantize(p.v, p.Block, dst[whole*(p.Block+8):], w.padded[:p.Block])
			}
		case whole < p.blocks:
			dst := w.left[i*p.blocks*p.Block:][:p.blocks*p.Block]
			clear(dst[copy(dst, row):])
		}
	}
	if w.lda = p.blocks * p.Block; whole == p.blocks && !p.Ints {
		w.left = a
	}
}

// block is some blocks of a panel.
type block struct {
	b     []byte
	scale []float32
	zero  []byte
	n     int
}

// after are the blocks but the first n.
func (p *Product) after(b block, n int) block {
	b.b, b.scale, b.n = b.b[n*p.blockBytes():], b.scale[n*p.lanes:], b.n-n
	if len(b.zero) > 0 {
		b.zero = b.zero[n*p.lanes*p.zeroSize():]
	}
	return b
}

// panelOf returns n blocks of a panel, packed into scratch if they are not.
func (p *Product) panelOf(w *work, panel, first, n int) block {
	b := block{n: n}
	if p.Packed {
		at := panel*p.blocks + first
		b.b, b.scale = w.args.B[at*p.blockBytes():][:n*p.blockBytes()], kernel.View[float32](w.args.Scale)[at*p.lanes:][:n*p.lanes]
		if p.Zeros != OneZero {
			b.zero = w.args.Zero[at*p.lanes*p.zeroSize():][:n*p.lanes*p.zeroSize()]
		}
		return b
	}
	b.b, b.scale = w.panel[:n*p.blockBytes()], kernel.View[float32](w.scale)[:n*p.lanes]
	p.packBlocks(b.b, w.args.B, panel, first, n)
	p.packScales(b.scale, w.args.Scale, panel, first, n)
	if p.Zeros != OneZero {
		b.zero = w.zero[:n*p.lanes*p.zeroSize()]
		p.packZeros(b.zero, w.args.Zero, panel, first, n)
	}
	return b
}

// expanded makes float32 of parts of panels, and multiplies many rows with
// them.
func (p *Product) expanded(w *work, add bool) {
	width := p.v.Gemm.Width
	for first := 0; first < p.blocks; first += p.part {
		n := min(p.part, p.blocks-first)
		k := first * p.Block
		depth := min(n*p.Block, p.K-k)
		rows, lda := w.args.A[w.Row*p.K+k:], p.K
		if len(w.left) > 0 {
			rows, lda = gemm.SpreadRows(w.left, rows, w.Rows, depth, lda)
		}
		for j := 0; j < w.Cols; j += width {
			for at := 0; at < min(width, w.Cols-j); at += p.lanes {
				expand(p, w.wide[at:], width, p.panelOf(w, (w.Col+j+at)/p.lanes, first, n))
			}
			c := w.args.C[w.At+j:]
			from := c
			if first == 0 && !add {
				from = nil
			}
			gemm.MultiplyPanel(p.v, w.Rows, depth, rows, lda, w.wide, min(width, w.Cols-j), c, w.Ld, from, w.Ld)
		}
	}
}
