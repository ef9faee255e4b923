package conv

import "github.com/tenure-go/tenure/internal/kernel"

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
	inputs, block := p.depth/9, winogradBlocks[p.winograd-1]
	for g := range p.groups {
		for first := 0; first < p.channels; first += p.width {
			n, step := min(p.width, p.channels-first), min(p.width, p.stored-first)
			for k := 0; k < inputs; k += block {
				rows := min(block, inputs-k)
				to := dst[p.winogradAt(g, first, k):][:rows*step*p.winogradElements()]
				p.transformWeights(to, weights[(g*p.channels+first)*p.depth+9*k:], rows, n, step)
			}
		}
	}
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
