package gemm

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Gemm is C = act(Alpha*A*B + Beta*bias + residual) on float32 matrices, alone
// or in batches. The fields are the problem; Prepare works out the rest.
//
// A is M x K, or K x M if TransA; B is K x N, or N x K if TransB. Batches of A
// and B may be broadcast.
type Gemm struct {
	M, N, K        int
	TransA, TransB bool
	Alpha, Beta    float32
	LDA, LDB, LDC  int // distances of rows as stored; 0 if they follow each other

	Batch          []int // sizes of the batch axes, outermost first
	BatchA, BatchB []int // strides of A and B along them, 0 to broadcast; nil if matrices follow each other

	// Those of C and of the residual, and the distance of the residual's rows;
	// nil and 0 if they follow each other.
	BatchC, BatchRes []int
	LDRes            int

	PackedB     bool // B is what PackB wrote; it has one matrix, broadcast over the batch
	CompressedB bool // with PackedB: B is what CompressedB.Pack wrote
	Epilogue

	v       *kernel.Variant // of Prepare
	batch   int
	swapped bool // N = 1, computed as the transposed product
	thin    bool // few rows: no panels, B is read where it lies

	rowTile, colTile   int
	rowTiles, colTiles int
	group              int // matrix parts per tile of the worker pool
	packA              int // floats of scratch for rows of A
	packB              int // and for a panel of B
	nr                 int // width of a panel when prepared
	width              int // and of all panels of B
	block              int // K is summed in blocks of this
}

// Args are the operands. C may be Residual, or Bias if that is full, and
// nothing else.
type Args struct {
	C, A, B, Bias, Residual []float32
}

const (
	BlockDepth = 256 // K is summed in blocks of this: a panel and a few rows of A share the first-level cache
	TileRows   = 128
	tileCols   = 256
	leastRows  = 32 // tiles are not cut below this for the sake of their number
	leastCols  = 64
	gemvCols   = 1024
	thinRows   = 4
	groupFlops = 1 << 20 // a tile of the worker pool holds parts up to this much work
	memoryRows = 8       // fewer rows than these take as long: so much arithmetic goes with reading B
)

// Prepare works out the tiles.
func (g *Gemm) Prepare(v *kernel.Variant) {
	g.v = v
	g.BiasFactor = g.Beta
	g.defaults()
	g.foldBatch()
	g.swapForOneColumn()
	g.thin = !g.PackedB && (g.M == 1 || g.TransB && g.M <= thinRows)
	g.nr, g.block = v.Gemm.Width, blockOf(g.K)
	g.width = kernel.CeilDiv(g.N, g.nr) * g.nr
	g.rowTile, g.colTile = TileRows, tileCols
	if g.thin {
		g.rowTile, g.colTile = thinRows, max(gemvCols/2, min(gemvCols, kernel.CeilDiv(g.N, 4)))
		if g.TransB { // whole rows of B: as many as fill a tile
			g.colTile = max(4, 2*kernel.RangeElements/max(1, g.K))
		}
	}
	for !g.thin && g.batch*kernel.CeilDiv(g.M, g.rowTile)*kernel.CeilDiv(g.N, g.colTile) < kernel.WantedTiles {
		// Parts of a row of tiles read A again, parts of a column pack B again,
		// which costs more.
		if g.colTile > leastCols {
			g.colTile /= 2
		} else if g.rowTile /= 2; g.rowTile <= leastRows {
			break
		}
	}
	g.rowTile = kernel.EvenTile(g.M, g.rowTile, 1)
	g.colTile = kernel.EvenTile(g.N, g.colTile, g.nr)
	g.rowTiles, g.colTiles = kernel.CeilDiv(g.M, g.rowTile), kernel.CeilDiv(g.N, g.colTile)
	g.group = max(1, groupFlops/max(1, 2*max(g.rowTile, memoryRows)*g.colTile*g.K))
	g.scratch()
}

func (g *Gemm) defaults() {
	fill := func(ld *int, rows, cols int, trans bool) int {
		if trans {
			rows, cols = cols, rows
		}
		if *ld == 0 {
			*ld = cols
		}
		return rows * *ld
	}
	sizeA, sizeB := fill(&g.LDA, g.M, g.K, g.TransA), fill(&g.LDB, g.K, g.N, g.TransB)
	if g.LDC == 0 {
		g.LDC = g.N
	}
	if g.LDRes == 0 {
		g.LDRes = g.N
	}
	if g.BatchA == nil {
		g.BatchA = batchStrides(g.Batch, sizeA)
	}
	if g.BatchB == nil {
		g.BatchB = batchStrides(g.Batch, sizeB)
		if g.PackedB {
			g.BatchB = make([]int, len(g.Batch))
		}
	}
	g.batch = kernel.Product(g.Batch)
}

func batchStrides(batch []int, size int) []int {
	s := kernel.RowMajor(batch)
	for i := range s {
		s[i] *= size
	}
	return s
}

// foldBatch makes the batch part of M where all matrices of A meet the same B
// and lie like one.
func (g *Gemm) foldBatch() {
	if g.batch <= 1 || g.TransA || g.Bias == BiasRow || g.Bias == BiasFull {
		return
	}
	n := g.M
	for i := len(g.Batch) - 1; i >= 0; i-- {
		if g.BatchB[i] != 0 || g.BatchA[i] != n*g.LDA || g.BatchC != nil && g.BatchC[i] != n*g.LDC || g.BatchRes != nil && g.BatchRes[i] != n*g.LDRes {
			return
		}
		n *= g.Batch[i]
	}
	g.M = n
	g.Batch, g.BatchA, g.BatchB, g.BatchC, g.BatchRes, g.batch = nil, nil, nil, nil, nil, 1
}

// swapForOneColumn computes a product with a vector on the right as the
// transposed one with a vector on the left, which has a fast path.
func (g *Gemm) swapForOneColumn() {
	if g.N != 1 || g.M == 1 || g.PackedB || g.LDC != 1 || g.LDRes != 1 || !g.TransB && g.LDB != 1 {
		return
	}
	g.swapped = true
	g.M, g.N = 1, g.M
	g.TransA, g.TransB = false, !g.TransA
	g.LDA, g.LDB, g.LDC, g.LDRes = g.K, g.LDA, g.N, g.N
	g.BatchA, g.BatchB = g.BatchB, g.BatchA
	switch g.Bias {
	case BiasRow:
		g.Bias = BiasCol
	case BiasCol: // one column: one number
		g.Bias = BiasScalar
	}
}

func (g *Gemm) scratch() {
	switch {
	case g.thin:
		if g.TransA || g.Alpha != 1 {
			g.packA = g.M * g.K
		}
	default:
		switch {
		case g.TransA:
			g.packA = g.rowTile * g.block
		case g.colTile > g.nr && (g.LDA == g.K || g.K%crowdedLD == 0):
			g.packA = CrowdedFloats(g.rowTile, g.block, g.LDA)
		}
		if !g.PackedB || g.CompressedB {
			g.packB = g.nr * g.block
		}
	}
}

// blockOf cuts K into blocks of nearly equal depth.
func blockOf(k int) int {
	if k == 0 {
		return 0
	}
	return kernel.CeilDiv(k, kernel.CeilDiv(k, BlockDepth))
}

// ScratchBytes returns the size of the scratch that Tile needs, per worker.
func (g *Gemm) ScratchBytes() int { return 4 * (g.packA + g.packB) }

// MostScratchBytes returns a number of bytes that the scratch of no product
// exceeds whose sizes are 1 or more and at most those of g, which is not
// prepared. With sameB those of B are the same.
func MostScratchBytes(v *kernel.Variant, g *Gemm, sameB bool) int {
	rows, depth := g.M*kernel.Product(g.Batch), min(g.K, BlockDepth) // the batch may become rows
	if sameB {
		depth = blockOf(g.K)
	}
	thin := 0
	if g.TransA || g.Alpha != 1 {
		thin = g.K
		if g.TransB {
			thin *= min(rows, thinRows)
		}
	}
	most := 0
	rows = min(rows, TileRows)
	switch {
	case g.TransA:
		most = rows * depth
	case !sameB && g.K >= crowdedLD || g.K%crowdedLD == 0:
		most = rows * (depth + rowGap)
	}
	if !g.PackedB || g.CompressedB {
		most += v.Gemm.Width * depth
	}
	return 4 * max(thin, most)
}

func (g *Gemm) parts() int { return g.batch * g.rowTiles * g.colTiles }

// Tiles returns the number of tiles.
func (g *Gemm) Tiles() int { return kernel.CeilDiv(g.parts(), g.group) }

// Tile computes part t. scratch holds at least ScratchBytes()/4 floats.
func (g *Gemm) Tile(t int, scratch []float32, args *Args) {
	for p := t * g.group; p < min((t+1)*g.group, g.parts()); p++ {
		col := p % g.colTiles * g.colTile
		row := p / g.colTiles % g.rowTiles * g.rowTile
		batch := p / g.colTiles / g.rowTiles
		g.part(batch, row, col, scratch, args)
	}
}

// Part computes the rectangle of one matrix that starts at row, col.
func (g *Gemm) part(batch, row, col int, scratch []float32, args *Args) {
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
	switch {
	case g.K == 0:
		if !g.Begin(g.v, &r, args.C, args.Bias, args.Residual) {
			ZeroRect(&r, args.C)
		}
		g.End(g.v, &r, args.C, args.Bias)
	case g.thin:
		acc := g.Begin(g.v, &r, args.C, args.Bias, args.Residual)
		g.thinPart(&r, acc, scratch, args.C, a, b)
		g.End(g.v, &r, args.C, args.Bias)
	default:
		g.panelPart(&r, scratch, args, a, b)
	}
}

// batchOffset is the place of a matrix among others that follow each other, or
// lie with strides.
func batchOffset(batch int, sizes, strides []int, size int) int {
	if strides == nil {
		return batch * size
	}
	at, _ := kernel.BatchOffsets(batch, sizes, strides, strides)
	return at
}

func ZeroRect(r *Rect, c []float32) {
	for i := range r.Rows {
		clear(c[r.At+i*r.Ld:][:r.Cols])
	}
}

// panelPart multiplies rows of A with panels of B, one block of K after the
// other.
func (g *Gemm) panelPart(r *Rect, scratch []float32, args *Args, a, b []float32) {
	from, left := g.fuse(g.v, r, args.C, args.Bias, args.Residual)
	var compressed compressedB
	if g.CompressedB {
		compressed = openCompressed(kernel.BytesOf(b), g.blocks())
	}
	for k := 0; k < g.K; k += g.block {
		depth := min(g.block, g.K-k)
		rows, lda := g.rowsOfA(r, scratch[g.packB:], a, k, depth)
		for j := 0; j < r.Cols; j += g.nr {
			n := min(g.nr, r.Cols-j)
			s := from.at(j)
			s.c, s.ldc = args.C[r.At+j:], r.Ld
			if k > 0 {
				s.from, s.ldfrom = s.c, s.ldc
			}
			s.relu = s.relu && k+depth == g.K
			switch {
			case g.CompressedB:
				panel := compressed.panel(g.v, g.blockAt(k, r.Col+j), scratch[:g.nr*depth])
				gemmPrefetchPanel(g.v, r.Rows, depth, rows, lda, panel, n, s, g.ahead(r, b, k, j))
			case g.PackedB && r.Rows <= memoryRows: // few rows read as fast as memory allows
				gemmPanel(g.v, r.Rows, depth, rows, lda, b[g.panelAt(k, r.Col+j):], n, s)
			case g.PackedB:
				gemmPrefetchPanel(g.v, r.Rows, depth, rows, lda, b[g.panelAt(k, r.Col+j):], n, s, g.ahead(r, b, k, j))
			case g.TransB || g.Alpha != 1:
				g.packBlock(scratch, b, k, depth, r.Col+j, n)
				gemmPanel(g.v, r.Rows, depth, rows, lda, scratch, n, s)
			default:
				gemmPackPanel(g.v, r.Rows, depth, rows, lda, b[k*g.LDB+r.Col+j:], g.LDB, scratch, n, s, g.ahead(r, b, k, j))
			}
		}
	}
	left.End(g.v, r, args.C, args.Bias)
}

// panelAt is where the panel of a column of B begins in a block of K.
func (g *Gemm) panelAt(k, col int) int {
	return k*g.width + col*min(g.block, g.K-k)
}

// ahead returns the part of B that a rectangle needs after the panel at k, j.
func (g *Gemm) ahead(r *Rect, b []float32, k, j int) ahead {
	if j += g.nr; j >= r.Cols {
		k, j = k+g.block, 0
	}
	depth := min(g.block, g.K-k)
	switch {
	case depth <= 0:
		return ahead{}
	case g.CompressedB:
		next := b[placeAt(kernel.BytesOf(b), g.blockAt(k, r.Col+j))/4:]
		return ahead{from: next, ld: g.nr, rows: len(next) / g.nr}
	case g.PackedB:
		return ahead{from: b[g.panelAt(k, r.Col+j):], ld: g.nr, rows: depth}
	}
	return ahead{from: b[k*g.LDB+r.Col+j:], ld: g.LDB, rows: depth}
}

// rowsOfA returns columns [k, k+depth) of the rows of a rectangle, where they
// lie or copied into scratch.
func (g *Gemm) rowsOfA(r *Rect, scratch, a []float32, k, depth int) (rows []float32, lda int) {
	if g.TransA {
		PackColumns(scratch, a[k*g.LDA+r.Row:], g.LDA, depth, r.Rows)
		return scratch, depth
	}
	rows = a[r.Row*g.LDA+k:]
	if g.packA > 0 {
		return SpreadRows(scratch, rows, r.Rows, depth, g.LDA)
	}
	return rows, g.LDA
}

// Rows of A that are a multiple of 4 KiB apart meet in one set of the
// first-level cache and drive each other out of it. They are copied a little
// further apart than they are long.
const (
	crowdedLD = 1024
	rowGap    = 16
)

// CrowdedFloats is the size of a copy of such rows, or 0.
func CrowdedFloats(rows, depth, ld int) int {
	if ld%crowdedLD != 0 || rows <= thinRows {
		return 0
	}
	return rows * (depth + rowGap)
}

func SpreadRows(dst, src []float32, rows, depth, ld int) ([]float32, int) {
	for i := range rows {
		copy(dst[i*(depth+rowGap):][:depth], src[i*ld:])
	}
	return dst, depth + rowGap
}

// MultiplyPanels adds the product of rows of A and a block of packed panels to
// a rectangle of C, or stores it there.
func MultiplyPanels(v *kernel.Variant, r *Rect, depth int, a []float32, lda int, panels, c []float32, acc bool) {
	for j := 0; j < r.Cols; j += v.Gemm.Width {
		s := sums{c: c[r.At+j:], ldc: r.Ld}
		if acc {
			s.from, s.ldfrom = s.c, s.ldc
		}
		gemmPanel(v, r.Rows, depth, a, lda, panels[j*depth:], min(v.Gemm.Width, r.Cols-j), s)
	}
}

// thinPart multiplies a few rows, one by one, with a part of B that stays in
// the cache meanwhile.
func (g *Gemm) thinPart(r *Rect, acc bool, scratch, c, a, b []float32) {
	if !acc {
		ZeroRect(r, c)
	}
	lda := g.LDA
	if g.packA > 0 {
		if g.TransA {
			PackColumns(scratch, a, g.LDA, g.K, g.M)
		} else {
			for i := range g.M {
				copy(scratch[i*g.K:(i+1)*g.K], a[i*g.LDA:])
			}
		}
		a, lda = scratch[:g.packA], g.K
		if g.Alpha != 1 {
			elementwise.BinaryRowVS(g.v, kernel.Mul, a, a, g.Alpha)
		}
	}
	for i := range r.Rows {
		row, out := a[(r.Row+i)*lda:][:g.K], c[r.At+i*r.Ld:][:r.Cols]
		if g.TransB {
			GemvDot(g.v, out, row, b[r.Col*g.LDB:], g.LDB)
		} else {
			GemvAxpy(g.v, out, row, b[r.Col:], g.LDB)
		}
	}
}
