package quantised

import "github.com/tenure-go/tenure/internal/kernel"

// IntGemm is C = (A - zeroA) * (B - zeroB) on bytes, alone or in batches; sums
// are int32 and wrap. The fields are those of PlainGemm.
type IntGemm struct {
	M, N, K          int
	Batch            []int
	BatchA, BatchB   []int
	SignedA, SignedB bool
	PackedB          bool // B is what PackB wrote; it has one matrix, broadcast over the batch

	v                  *kernel.Variant // of Prepare, or of what packs
	nr, rows, cols     int             // width of a panel, 0 without kernels for panels; sizes of a part
	rowTiles, colTiles int
	depth, lda         int // groups of K, and bytes of a row of A as the kernels want it
}

const (
	byteRows = 112
	byteCols = 256
)

// BytePanels reports whether PackB is worth it: whether the machine has kernels
// for panels of bytes.
func BytePanels(v *kernel.Variant) bool { return v.Bytes.Width > 0 }

// Prepare works out the tiles.
func (g *IntGemm) Prepare(v *kernel.Variant) {
	g.v = v
	g.nr = v.Bytes.Width
	if g.nr == 0 {
		g.rows = max(1, kernel.PlainFlops/max(1, 2*g.N*g.K))
		return
	}
	g.layout()
	// Parts of a row of tiles prepare A again, parts of a column pack B again,
	// which costs more.
	g.rows, g.cols = byteRows, byteCols
	if g.PackedB {
		g.cols *= 4
	} else {
		g.rows *= 4
	}
	few := func() bool {
		return kernel.Product(g.Batch)*kernel.CeilDiv(g.M, g.rows)*kernel.CeilDiv(g.N, g.cols) < kernel.WantedTiles
	}
	for g.PackedB && g.rows > byteRows/4 && few() {
		g.rows /= 2
	}
	for g.cols > 2*g.nr && few() {
		g.cols /= 2
	}
	g.rows, g.cols = kernel.EvenTile(g.M, g.rows, 1), kernel.EvenTile(g.N, g.cols, g.nr)
	g.rowTiles, g.colTiles = kernel.CeilDiv(g.M, g.rows), kernel.CeilDiv(g.N, g.cols)
}

func (g *IntGemm) layout() {
	g.nr = g.v.Bytes.Width
	g.depth = kernel.CeilDiv(g.K, g.v.Bytes.Step)
	g.lda = 4 * g.depth
}

func (g *IntGemm) panelBytes() int { return g.nr*g.depth*g.v.Bytes.Step + 4*g.nr }

// Tiles returns the number of tiles.
func (g *IntGemm) Tiles() int {
	if g.nr == 0 {
		return kernel.CeilDiv(kernel.Product(g.Batch)*g.M, g.rows)
	}
	return kernel.Product(g.Batch) * g.rowTiles * g.colTiles
}

// ScratchBytes returns the size of a worker's scratch.
func (g *IntGemm) ScratchBytes() int {
	if g.nr == 0 {
		return 4 * g.N
	}
	n := g.rows*g.lda + 4*g.rows + 4*g.rows*g.nr + 8*g.nr
	if !g.PackedB {
		n += g.panelBytes()
	}
	return n
}

// IntGemmTile computes part t into an int32 result, or with r into the bytes of
// r's type. The zeros are per row of A and per column of B, or one, or absent.
// scratch holds at least ScratchBytes.
func IntGemmTile[A, B Byte](g *IntGemm, t int, dst []byte, a []A, b []B, zeroA, zeroB Numbers, r *Requant, scratch []int32) {
	if g.nr == 0 {
		plainTile(g, t, dst, a, b, zeroA, zeroB, r, scratch)
		return
	}
	g.panelTile(t, dst, kernel.BytesOf(a), kernel.BytesOf(b), zeroA, zeroB, r, scratch)
}

// plainTile computes part t, some rows, without panels.
func plainTile[A, B Byte](g *IntGemm, t int, dst []byte, a []A, b []B, zeroA, zeroB Numbers, r *Requant, scratch []int32) {
	sums := scratch[:g.N]
	for row := t * g.rows; row < min((t+1)*g.rows, kernel.Product(g.Batch)*g.M); row++ {
		batch, m := row/g.M, row%g.M
		offA, offB := kernel.BatchOffsets(batch, g.Batch, g.BatchA, g.BatchB)
		clear(sums)
		za, total := int32(one(zeroA, m)), int32(0)
		for k, v := range a[offA+m*g.K:][:g.K] {
			f := int32(v) - za
			total += f
			for j, w := range b[offB+k*g.N:][:g.N] {
				sums[j] += f * int32(w)
			}
		}
		for j := range sums {
			sums[j] -= total * int32(one(zeroB, j))
		}
		if r == nil {
			copy(kernel.View[int32](dst)[row*g.N:], sums)
			continue
		}
		r.addBias(sums, 0)
		for j, sum := range sums {
			dst[row*g.N+j] = byte(int32(r.apply(sum, m, j)))
		}
	}
}
