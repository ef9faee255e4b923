package conv

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Transformed weights are in panels of channels as others are. A panel has the
// blocks of input channels one after the other, a block the elements of a tile,
// and an element a row for each input channel.

func (p *WeightPanels) winogradElements() int {
	return square(kernel.Winograds[p.winograd-1].Size())
}

// winogradAt returns the place of the weights of a panel, from an output
// channel of a group on, for a block of input channels, the first of which is
// k.
func (p *WeightPanels) winogradAt(group, channel, k int) int {
	inputs := p.depth / 9
	step := min(p.width, p.stored-channel)
	return group*p.groupFloats() + (channel*inputs+k*step)*p.winogradElements()
}

// packWinograd is Pack.
func (p *WeightPanels) packWinograd(dst, weights []float32) {
	p.eachWinograd(func(at, size, from, rows, n, step int) {
		p.transformWeights(dst[at:][:size], weights[from:], rows, n, step)
	})
}

// eachWinograd calls f for each block of input channels of each panel: with the
// place and the size of its transformed weights, the place of the first
// weight, the input channels, the output channels, and these with those that
// fill up a vector.
func (p *WeightPanels) eachWinograd(f func(at, size, from, rows, n, step int)) {
	inputs, block := p.depth/9, winogradBlocks[p.winograd-1]
	for g := range p.groups {
		for first := 0; first < p.channels; first += p.width {
			n, step := min(p.width, p.channels-first), min(p.width, p.stored-first)
			for k := 0; k < inputs; k += block {
				rows := min(block, inputs-k)
				f(p.winogradAt(g, first, k), rows*step*p.winogradElements(), (g*p.channels+first)*p.depth+9*k, rows, n, step)
			}
		}
	}
}

// halfFactor is what transformed weights of 16 bits are divided by where some
// would be too large for their type: a transformed weight is at most 9/4 of the
// largest one. The last element says whether they are.
const halfFactor = 4

// packHalfWinograd is PackHalf for weights that are transformed.
func (p *WeightPanels) packHalfWinograd(dst, weights []uint16) {
	if !p.roundWinograd(dst, weights, 1) {
		p.roundWinograd(dst, weights, 1.0/halfFactor)
		dst[p.Floats()-1] = 1
	}
}

// roundWinograd writes transformed weights times a factor. It stops and returns
// false where finite weights have one that is too large.
func (p *WeightPanels) roundWinograd(dst, weights []uint16, factor float32) bool {
	clear(dst[p.groups*p.groupFloats():])
	fits := true
	p.eachWinograd(func(at, size, from, rows, n, step int) {
		if !fits {
			return
		}
		wide, transformed, back := make([]float32, n*p.depth), make([]float32, size), make([]float32, size)
		end := min(len(wide), len(weights)-from)
		elementwise.Widen(kernel.Portable, p.half, wide[:end], weights[from:from+end], 0, 1)
		p.transformWeights(transformed, wide, rows, n, step)
		for i := range transformed {
			transformed[i] *= factor
		}
		elementwise.Narrow(kernel.Portable, p.half, dst[at:][:size], 0, 1, transformed)
		elementwise.Widen(kernel.Portable, p.half, back, dst[at:][:size], 0, 1)
		for i, x := range back {
			if math.IsInf(float64(x), 0) && !math.IsInf(float64(transformed[i]), 0) {
				fits = false
			}
		}
	})
	return fits
}

// transformWeights writes a block of some input channels of a panel, for n
// output channels.
func (p *WeightPanels) transformWeights(dst, weights []float32, inputs, n, step int) {
	matrix := kernel.Winograds[p.winograd-1].Weights
	size := len(matrix)
	columns := make([]float64, size*3*n) // transformed, of the channels of a panel
	for i := range inputs {
		for j := range 3 {
			for m := range n {
				taps := weights[m*p.depth+9*i:][:9]
				x, y, z := float64(taps[j]), float64(taps[3+j]), float64(taps[6+j])
				for e, f := range matrix {
					columns[(e*3+j)*n+m] = f[0]*x + f[1]*y + f[2]*z
				}
			}
		}
		for e := range size {
			x, y, z := columns[e*3*n:][:n], columns[(e*3+1)*n:][:n], columns[(e*3+2)*n:][:n]
			for j, f := range matrix {
				to := dst[((e*size+j)*inputs+i)*step:][:n]
				for m := range to {
					to[m] = float32(f[0]*x[m] + f[1]*y[m] + f[2]*z[m])
				}
			}
		}
	}
}
