package ref

import "math"

// Blocked are weights of few bits: N columns of K elements, each of which is
// (Q - Zero) * Scale, with a scale and a zero for each block of a column.
type Blocked struct {
	N, K, Block int
	Q           []int     // [N, K]
	Zero        []float64 // [N, blocks]
	Scale       []float32 // [N, blocks]
}

func (b *Blocked) blocks() int { return (b.K + b.Block - 1) / b.Block }

// At is element k of a column.
func (b *Blocked) At(k, col int) float64 {
	i := col*b.blocks() + k/b.Block
	return (float64(b.Q[col*b.K+k]) - b.Zero[i]) * float64(b.Scale[i])
}

// Times is the product of m rows of A with b, and the sum of the magnitudes
// that were added up for each element.
func (b *Blocked) Times(m int, a []float32) (c, magnitude []float64) {
	for i := range m {
		for col := range b.N {
			sum, size := 0.0, 0.0
			for k, x := range a[i*b.K:][:b.K] {
				y := float64(x) * b.At(k, col)
				sum += y
				size += math.Abs(y)
			}
			c, magnitude = append(c, sum), append(magnitude, size)
		}
	}
	return c, magnitude
}

// TimesInts is the product of m rows of A, quantised in blocks, with b, whose
// zeros are integers, in the order of sums that kernel/nbits states.
func (b *Blocked) TimesInts(m int, a []float32) []float32 {
	blocks := b.blocks()
	c := make([]float32, m*b.N)
	for i := range m {
		for block := range blocks {
			lo, hi := block*b.Block, min((block+1)*b.Block, b.K)
			row := a[i*b.K+lo : i*b.K+hi]
			q, scale := quantizeBlock(row)
			for col := range b.N {
				sum, at := 0, col*blocks+block
				for k, x := range q {
					sum += x * (b.Q[col*b.K+lo+k] - int(b.Zero[at]))
				}
				factor := b.Scale[at] * scale
				product := float32(sum) * factor
				c[i*b.N+col] += product
			}
		}
	}
	return c
}

// quantizeBlock makes numbers of -127 to 127 and the scale of them.
func quantizeBlock(row []float32) (q []int, scale float32) {
	peak := float32(0)
	q = make([]int, len(row))
	for _, x := range row {
		if x-x != 0 {
			return q, float32(math.NaN())
		}
		peak = max(peak, float32(math.Abs(float64(x))))
	}
	most := min(127/peak, math.MaxFloat32)
	for k, x := range row {
		q[k] = int(math.RoundToEven(float64(x * most)))
	}
	return q, peak / 127
}
