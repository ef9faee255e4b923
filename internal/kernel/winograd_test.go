package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestWinograds compares the algorithms with the sums of products that they
// stand for.
func TestWinograds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	multiply := func(m [][]float64, x []float64) []float64 {
		y := make([]float64, len(m))
		for i, row := range m {
			for j, v := range row {
				y[i] += v * x[j]
			}
		}
		return y
	}
	for _, w := range Winograds {
		for range 100 {
			d, g := make([]float64, w.Size()), make([]float64, 3)
			for _, x := range [][]float64{d, g} {
				for i := range x {
					x[i] = r.NormFloat64()
				}
			}
			products := multiply(w.Weights, g)
			for i, v := range multiply(w.Input, d) {
				products[i] *= v
			}
			for i, got := range multiply(w.Output, products) {
				if want := d[i]*g[0] + d[i+1]*g[1] + d[i+2]*g[2]; math.Abs(got-want) > 1e-12 {
					t.Fatalf("F(%d): got %v as result %d, want %v", w.Outputs, got, i, want)
				}
			}
		}
	}
}
