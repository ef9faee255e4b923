package ref

import (
	"math"
	"math/cmplx"
)

// DFT is the sum over all numbers, for each frequency.
func DFT(x []complex128, inverse bool) []complex128 {
	n := len(x)
	out := make([]complex128, n)
	for k := range out {
		for i, v := range x {
			angle := -2 * math.Pi * float64(k*i%n) / float64(n)
			if inverse {
				angle = -angle
			}
			out[k] += v * cmplx.Rect(1, angle)
		}
		if inverse {
			out[k] /= complex(float64(n), 0)
		}
	}
	return out
}
