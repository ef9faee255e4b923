package gemm

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Half is Gemm for matrices of 16-bit floats. A tile widens its rows of A and,
// panel by panel, its columns of B into scratch, where it also has the float32
// sums; results are rounded once, at the end. B may be what PackHalf wrote; it
// is never compressed.
type Half struct {
	Gemm
	Type dtype.DType

	sums, rowsOf, turned, panel, numbers int // floats of scratch
}

// HalfArgs are the operands. C may be Residual, or Bias if that is full, and
// nothing else.
type HalfArgs struct {
	C, A, B, Bias, Residual []uint16
}

// Parts of B that a product of a few rows widens at once: rows, where those are
// columns of the product, and their length.
const (
	thinWide  = 4
	thinDepth = 4 << 10
	thinAxpy  = 8
)

// Prepare works out the tiles.
func (g *Half) Prepare(v *kernel.Variant) {
	g.Gemm.Prepare(v)
	g.sums = g.rowTile * g.colTile
	g.numbers = max(g.rowTile, g.colTile)
	switch {
	case g.thin:
		g.rowsOf, g.turned = g.M*g.K, 0
		if g.panel = thinAxpy * g.colTile; g.TransB {
			g.panel = thinWide * min(g.K, thinDepth)
		}
	default:
		g.rowsOf, g.turned, g.panel = g.rowTile*(g.block+rowGap), 0, g.nr*g.block
		if g.TransA {
			g.turned = g.rowTile * g.block
		}
		switch {
		case g.PackedB:
		case g.TransB:
			g.turned = max(g.turned, g.nr*g.block)
		default:
			g.turned = max(g.turned, g.colTile*g.block)
		}
	}
}

// ScratchBytes returns the size of the scratch that Tile needs, per worker.
func (g *Half) ScratchBytes() int { return 4 * (g.sums + g.rowsOf + g.turned + g.panel + g.numbers) }

// MostScratchBytes is that of package gemm for products of 16-bit floats.
func (g *Half) MostScratchBytes(v *kernel.Variant) int {
	rows := g.M * kernel.Product(g.Batch) // the batch may become rows
	depth, tall, wide := min(g.K, BlockDepth), min(rows, TileRows), min(kernel.CeilDiv(g.N, v.Gemm.Width)*v.Gemm.Width, tileCols)
	most := tall*wide + tall*(depth+rowGap) + max(tall, wide)*depth + v.Gemm.Width*depth + max(tall, wide)
	if !g.PackedB {
		// One column is computed as a row.
		cols := (min(max(rows, g.N), 2*kernel.RangeElements) + v.Gemm.Width)
		thin := thinRows*cols + thinRows*g.K + max(thinWide*min(g.K, thinDepth), thinAxpy*min(cols, gemvCols)) + max(cols, thinRows)
		most = max(most, thin)
	}
	return 4 * most
}

// PackHalf is PackB for 16-bit floats. Alpha is not in it.
func (g *Gemm) PackHalf(v *kernel.Variant, dst, b []uint16) { packAll(g, v, dst, b) }

// UnpackHalf is the reverse of PackHalf.
func (g *Gemm) UnpackHalf(v *kernel.Variant, dst, panels []uint16) { unpackAll(g, v, dst, panels) }

// Tile computes part t. scratch holds at least ScratchBytes()/4 floats.
func (g *Half) Tile(t int, scratch []float32, args *HalfArgs) {
	for p := t * g.group; p < min((t+1)*g.group, g.parts()); p++ {
		col := p % g.colTiles * g.colTile
		row := p / g.colTiles % g.rowTiles * g.rowTile
		g.halfPart(p/g.colTiles/g.rowTiles, row, col, scratch, args)
	}
}

// halfPart computes the rectangle of one matrix that starts at row, col.
func (g *Half) halfPart(batch, row, col int, scratch []float32, args *HalfArgs) {
	a, b := args.A, args.B
	if g.swapped {
		a, b = b, a
	}
	offA, offB := kernel.BatchOffsets(batch, g.Batch, g.BatchA, g.BatchB)
	a, b = a[offA:], b[offB:]
	r := Rect{
		Ld: g.LDC, ResLD: g.LDRes, Row: row, Col: col, Width: g.N,
		Rows: min(g.rowTile, g.M-row), Cols: min(g.colTile, g.N-col),
	}
	r.At = batchOffset(batch, g.Batch, g.BatchC, g.M*g.LDC) + row*g.LDC + col
	r.Res = batchOffset(batch, g.Batch, g.BatchRes, g.M*g.LDRes) + row*g.LDRes + col
	c := scratch[:r.Rows*r.Cols]
	scratch = scratch[g.sums:]
	acc := g.bring(&r, c, scratch, args)
	switch {
	case g.K == 0:
		if !acc {
			clear(c)
		}
	case g.thin:
		if !acc {
			clear(c)
		}
		g.thinHalf(&r, c, scratch, a, b)
	default:
		g.panelHalf(&r, acc, c, scratch, a, b)
	}
	g.leave(&r, c, scratch, args)
}

// bring writes the addend of the product into the sums, and reports whether
// there is one.
func (g *Half) bring(r *Rect, c, scratch []float32, args *HalfArgs) bool {
	full := g.Bias == BiasFull
	for i := range r.Rows {
		row := c[i*r.Cols:][:r.Cols]
		if g.Residual {
			g.widen(row, args.Residual[r.Res+i*r.ResLD:])
		}
		if !full {
			continue
		}
		add := row
		if g.Residual {
			add = scratch[:r.Cols]
		}
		g.widen(add, args.Bias[(r.Row+i)*r.Width+r.Col:])
		switch {
		case g.Residual:
			AddScaled(g.v, row, add, g.BiasFactor)
		case g.BiasFactor != 1:
			elementwise.BinaryRowVS(g.v, kernel.Mul, row, row, g.BiasFactor)
		}
	}
	return full || g.Residual
}

// leave adds a bias per row or column, applies the activation, and rounds.
func (g *Half) leave(r *Rect, c, scratch []float32, args *HalfArgs) {
	var bias []float32
	switch g.Bias {
	case BiasScalar:
		bias = scratch[:1]
		g.widen(bias, args.Bias)
	case BiasRow:
		bias = scratch[:r.Rows]
		g.widen(bias, args.Bias[r.Row:])
	case BiasCol:
		bias = scratch[:r.Cols]
		g.widen(bias, args.Bias[r.Col:])
	}
	g.End(g.v, &Rect{Ld: r.Cols, Rows: r.Rows, Cols: r.Cols}, c, bias)
	if r.Ld == r.Cols {
		g.narrow(args.C[r.At:], c)
		return
	}
	for i := range r.Rows {
		g.narrow(args.C[r.At+i*r.Ld:], c[i*r.Cols:][:r.Cols])
	}
}

func (g *Half) widen(dst []float32, src []uint16) {
	elementwise.Widen(g.v, g.Type, dst, src[:len(dst)], 0, 1)
}

func (g *Half) narrow(dst []uint16, src []float32) {
	elementwise.Narrow(g.v, g.Type, dst[:len(src)], 0, 1, src)
}

// halfTiles are the loops that read a panel of 16-bit floats, nil if there are
// none.
func (g *Half) halfTiles() []kernel.GemmHalfTile {
	if g.Type == dtype.F16 {
		return g.v.Gemm.TilesF16
	}
	return g.v.Gemm.TilesBF16
}

// fewHalf reports whether a product has so few rows that its panels are read as
// they are: each tile of rows widens them again.
func (g *Half) fewHalf() bool {
	tiles := g.halfTiles()
	return tiles != nil && g.PackedB && g.Alpha == 1 && g.rowTile <= 2*(len(tiles)-1)
}

// fewRows multiplies a few rows with a packed panel as it is.
func (g *Half) fewRows(m, depth int, a []float32, lda int, b []uint16, nr int, s sums) {
	tiles := g.halfTiles()
	for parts := kernel.CeilDiv(m, len(tiles)-1); parts > 0; parts-- {
		rows := kernel.CeilDiv(m, parts)
		_, _ = a[(rows-1)*lda+depth-1], b[depth*g.nr-1]
		s.check(rows, nr)
		tiles[rows](depth, &a[0], 4*lda, &b[0], &s.c[0], 4*s.ldc, nr, s.start(), 4*s.ldfrom, s.relu)
		if m -= rows; m > 0 {
			a = a[rows*lda:]
			s.skip(rows)
		}
	}
}

// panelHalf multiplies rows of A with panels of B, one block of K after the
// other.
func (g *Half) panelHalf(r *Rect, acc bool, c, scratch []float32, a, b []uint16) {
	rows, turned := scratch[:g.rowsOf], scratch[g.rowsOf:][:g.turned]
	panel, lda, few := scratch[g.rowsOf+g.turned:][:g.panel], g.block+rowGap, g.fewHalf()
	for k := 0; k < g.K; k += g.block {
		depth := min(g.block, g.K-k)
		g.widenA(r, rows, turned, a, k, depth)
		if !g.PackedB && !g.TransB {
			g.widenRowsOfB(r, turned, b, k, depth)
		}
		for j := 0; j < r.Cols; j += g.nr {
			n := min(g.nr, r.Cols-j)
			s := sums{c: c[j:], ldc: r.Cols}
			if acc || k > 0 {
				s.from, s.ldfrom = s.c, s.ldc
			}
			switch {
			case few:
				g.fewRows(r.Rows, depth, rows, lda, b[g.panelAt(k, r.Col+j):], n, s)
			case !g.PackedB && !g.TransB:
				gemmPackPanel(g.v, r.Rows, depth, rows, lda, turned[j:], r.Cols, panel, n, s, ahead{})
			default:
				g.widenB(panel[:depth*g.nr], turned, b, k, depth, r.Col+j, n)
				gemmPanel(g.v, r.Rows, depth, rows, lda, panel, n, s)
			}
		}
	}
}

// widenA widens columns [k, k+depth) of the rows of a rectangle. Rows are a
// little further apart than they are long.
func (g *Half) widenA(r *Rect, rows, turned []float32, a []uint16, k, depth int) {
	lda := g.block + rowGap
	if !g.TransA {
		for i := range r.Rows {
			g.widen(rows[i*lda:][:depth], a[(r.Row+i)*g.LDA+k:])
		}
		return
	}
	for i := range depth {
		g.widen(turned[i*r.Rows:][:r.Rows], a[(k+i)*g.LDA+r.Row:])
	}
	for i := range depth {
		for j, x := range turned[i*r.Rows:][:r.Rows] {
			rows[j*lda+i] = x
		}
	}
}

// widenRowsOfB widens rows [k, k+depth) of B for the columns of a rectangle.
func (g *Half) widenRowsOfB(r *Rect, turned []float32, b []uint16, k, depth int) {
	for i := range depth {
		g.widen(turned[i*r.Cols:][:r.Cols], b[(k+i)*g.LDB+r.Col:])
	}
	if all := turned[:depth*r.Cols]; g.Alpha != 1 {
		elementwise.BinaryRowVS(g.v, kernel.Mul, all, all, g.Alpha)
	}
}

// widenB makes a panel of rows [k, k+depth) and n columns from col on of a B
// that is packed, or stored as rows of columns.
func (g *Half) widenB(panel, turned []float32, b []uint16, k, depth, col, n int) {
	if g.PackedB {
		g.widen(panel, b[g.panelAt(k, col):])
	} else {
		for j := range n {
			g.widen(turned[j*depth:][:depth], b[(col+j)*g.LDB+k:])
		}
		PackTransposed(g.v, panel, turned, depth, depth, n)
	}
	if g.Alpha != 1 {
		elementwise.BinaryRowVS(g.v, kernel.Mul, panel, panel, g.Alpha)
	}
}

// thinHalf multiplies a few rows, one by one, with parts of B.
func (g *Half) thinHalf(r *Rect, c, scratch []float32, a, b []uint16) {
	rows, part := scratch[:g.rowsOf], scratch[g.rowsOf+g.turned:][:g.panel]
	for i := range g.M {
		if row := rows[i*g.K:][:g.K]; g.TransA {
			elementwise.Widen(g.v, g.Type, row, a, i, g.LDA)
		} else {
			g.widen(row, a[i*g.LDA:])
		}
	}
	if g.Alpha != 1 {
		elementwise.BinaryRowVS(g.v, kernel.Mul, rows, rows, g.Alpha)
	}
	if g.TransB {
		g.thinDots(r, c, rows, part, b)
		return
	}
	for k := 0; k < g.K; k += thinAxpy {
		depth := min(thinAxpy, g.K-k)
		for i := range depth {
			g.widen(part[i*r.Cols:][:r.Cols], b[(k+i)*g.LDB+r.Col:])
		}
		for i := range r.Rows {
			GemvAxpy(g.v, c[i*r.Cols:][:r.Cols], rows[(r.Row+i)*g.K+k:][:depth], part, r.Cols)
		}
	}
}

// thinDots is thinHalf for a B that is stored as rows of columns.
func (g *Half) thinDots(r *Rect, c, rows, part []float32, b []uint16) {
	for k := 0; k < g.K; k += thinDepth {
		depth := min(thinDepth, g.K-k)
		for j := 0; j < r.Cols; j += thinWide {
			n := min(thinWide, r.Cols-j)
			for i := range n {
				g.widen(part[i*depth:][:depth], b[(r.Col+j+i)*g.LDB+k:])
			}
			for i := range r.Rows {
				GemvDot(g.v, c[i*r.Cols+j:][:n], rows[(r.Row+i)*g.K+k:][:depth], part, depth)
			}
		}
	}
}
