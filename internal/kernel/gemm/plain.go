package gemm

import "github.com/tenure-go/tenure/internal/kernel"

// Plain is C = Alpha*A*B + Beta*bias for the element types that Gemm does not
// serve: float64 and the integers, which wrap. The fields are those of Gemm;
// matrices have no gaps between rows. C may be the bias if that is full.
type Plain struct {
	M, N, K        int
	TransA, TransB bool
	Alpha, Beta    float64 // whole numbers for integers
	Bias           BiasKind
	Batch          []int
	BatchA, BatchB []int // strides along the batch axes

	rows int // of C, per tile
}

// Prepare works out the tiles.
func (g *Plain) Prepare() { g.rows = max(1, kernel.PlainFlops/max(1, 2*g.N*g.K)) }

// Tiles returns the number of tiles.
func (g *Plain) Tiles() int { return kernel.CeilDiv(kernel.Product(g.Batch)*g.M, g.rows) }

// PlainTile computes part t.
func PlainTile[T kernel.Number](g *Plain, t int, c, a, b, bias []T) {
	for r := t * g.rows; r < min((t+1)*g.rows, kernel.Product(g.Batch)*g.M); r++ {
		batch, row := r/g.M, r%g.M
		offA, offB := kernel.BatchOffsets(batch, g.Batch, g.BatchA, g.BatchB)
		d := c[r*g.N : (r+1)*g.N]
		plainBias(g, row, d, bias)
		plainRow(g, row, d, a[offA:], b[offB:])
	}
}

func plainBias[T kernel.Number](g *Plain, row int, d, bias []T) {
	beta := T(g.Beta)
	switch g.Bias {
	case NoBias:
		clear(d)
	case BiasScalar:
		kernel.Repeat(d, beta*bias[0])
	case BiasRow:
		kernel.Repeat(d, beta*bias[row])
	case BiasCol, BiasFull:
		if g.Bias == BiasFull {
			bias = bias[row*g.N:]
		}
		for j, v := range bias[:g.N] {
			d[j] = beta * v
		}
	}
}

// plainRow adds a row of A times B.
func plainRow[T kernel.Number](g *Plain, row int, d, a, b []T) {
	alpha := T(g.Alpha)
	at, step := row*g.K, 1
	if g.TransA {
		at, step = row, g.M
	}
	if g.TransB {
		for j := range d {
			var sum T
			for k, v := range b[j*g.K : (j+1)*g.K] {
				sum += a[at+k*step] * v
			}
			d[j] += alpha * sum
		}
		return
	}
	for k := range g.K {
		f := alpha * a[at+k*step]
		for j, v := range b[k*g.N : (k+1)*g.N] {
			d[j] += f * v
		}
	}
}
