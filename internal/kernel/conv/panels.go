package conv

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// WeightPanels is the form in which convolutions read constant weights: for
// each group, panels of some vectors of output channels, the last one perhaps
// of fewer. A panel has one row per product, with a weight for each of its
// channels, and zeros up to a whole vector. It serves all kernels: the choice
// among them depends on the sizes of the picture, the form does not.
//
// The products of a row are ordered by input channel, and those of a channel by
// tap; where taps are computed one after the other, by tap, and those of a tap
// by channel.
//
// A group of fewer channels than a vector has is not filled up. Vectors of
// channels are read whole: what lies behind the channels are those of the next
// row, whose sums are not used, and behind the last row are zeros.
type WeightPanels struct {
	groups, channels, depth int // channels of a group
	lanes                   int
	width                   int         // channels of a panel that is not the last
	stored                  int         // channels of a group with those that fill up a vector
	taps                    int         // if the products are ordered by tap, else 0
	winograd                int         // if they are transformed: the algorithm, counted from 1
	half                    dtype.DType // of transformed weights of 16 bits, else Invalid
}

// Panels are wider where they are read by rows at most widths of the picture:
// they are cut into parts that fit a tile, and the more channels there are to
// cut, the fewer tiles are not full. A panel of up to flatPanel rows of
// widePanel channels stays in the first-level cache meanwhile; rows of more
// than 256 bytes would meet in few of its sets.
const (
	widePanel = 64
	flatPanel = 96
)

// WeightPanels returns how constant weights are packed, and whether they are
// packed at all. Both follow from the shape of the weights, the attributes and
// the variant. The convolution need not be prepared.
func (c *Conv) WeightPanels(v *kernel.Variant) (p WeightPanels, ok bool) {
	if v.Conv.Tiles == nil || c.Group == 0 {
		return p, false
	}
	taps, inputs, lanes := kernel.Product(c.Window.Kernel), c.InChannels/c.Group, v.Conv.Lanes
	p = WeightPanels{groups: c.Group, channels: c.OutChannels / c.Group, depth: inputs * taps, lanes: lanes, width: 2 * lanes}
	p.stored = p.channels
	if p.channels > lanes {
		p.stored = kernel.CeilDiv(p.channels, lanes) * lanes
	}
	if p.depth == 0 || p.channels == 0 || taps > copiedTaps || inputs == 1 && p.channels <= depthwiseChannels {
		return p, false
	}
	if p.winograd = c.winogradForm(v); p.winograd > 0 {
		p.half = c.WeightType
		return p, true
	}
	rows := c.mayRows(v)
	if rows && p.rowsPay(1) {
		p.width = 4 * lanes
		if p.depth <= flatPanel {
			p.width = widePanel
		}
	}
	if c.mayTaps(inputs, taps) && !(rows && p.rowsPay(1)) {
		p.taps = taps
	}
	// Where vectors of positions are not possible, those of channels would be
	// mostly zeros.
	return p, rows || 4*p.channels > lanes
}

// rowsPay reports whether vectors of positions are likely to be faster than
// vectors of channels, by the cycles that an output takes. They have so many
// positions for each one of a row.
func (p *WeightPanels) rowsPay(wide float64) bool {
	lanes, depth, channels := float64(p.lanes), float64(p.depth), float64(p.channels)
	rows := (depth + 4) * channels * wide / lanes
	// One vector of channels is bound by loads; a vector of sums takes some
	// cycles to leave.
	vectors := kernel.CeilDiv(p.channels, p.lanes)
	direct := depth*float64(vectors/2*2) + depth*float64(vectors%2)*1.5 + 9*float64(vectors)
	return rows < 0.95*direct
}

// Floats returns the size of packed weights, in elements.
func (p WeightPanels) Floats() int {
	n := p.groups*p.groupFloats() + max(0, p.lanes-p.channels)
	if p.half != dtype.Invalid {
		n++ // halfFactor's
	}
	return n
}

// String names the panels: equal names, equal panels of equal weights.
func (p WeightPanels) String() string {
	order := ""
	if p.taps > 0 {
		order = fmt.Sprintf(", %d taps one after the other", p.taps)
	}
	if p.winograd > 0 {
		order = fmt.Sprintf(", transformed for tiles of %d outputs", kernel.Winograds[p.winograd-1].Outputs)
	}
	if p.half != dtype.Invalid {
		order += fmt.Sprint(", rounded to ", p.half)
	}
	return fmt.Sprintf("%d groups of %dx%d in panels of %d, vectors of %d%s", p.groups, p.channels, p.depth, p.width, p.lanes, order)
}

func (p *WeightPanels) groupFloats() int {
	if p.winograd > 0 {
		return p.stored * p.depth / 9 * p.winogradElements()
	}
	return p.stored * p.depth
}

// at returns the place of the weight of a channel of a group for product k, and
// the distance to that for the next product.
func (p *WeightPanels) at(group, channel, k int) (place, step int) {
	first := channel / p.width * p.width
	step = min(p.width, p.stored-first)
	return group*p.groupFloats() + first*p.depth + k*step + channel - first, step
}

// Pack writes weights [M, C/Group, kernel...] to dst, which has Floats
// elements.
func (p WeightPanels) Pack(dst, weights []float32) {
	if p.winograd > 0 {
		p.packWinograd(dst, weights)
		return
	}
	packPanels(&p, dst, weights)
}

// PackHalf is Pack for weights of 16 bits.
func (p WeightPanels) PackHalf(dst, weights []uint16) {
	if p.winograd > 0 {
		p.packHalfWinograd(dst, weights)
		return
	}
	packPanels(&p, dst, weights)
}

func packPanels[T float32 | uint16](p *WeightPanels, dst, weights []T) {
	for g := range p.groups {
		for first := 0; first < p.channels; first += p.width {
			at, step := p.at(g, first, 0)
			n := min(p.width, p.channels-first)
			packPanel(p, dst[at:][:step*p.depth], weights[(g*p.channels+first)*p.depth:], n, step)
		}
	}
	clear(dst[p.groups*p.groupFloats():])
}

// tapsPacked is how many input channels are packed at once where products are
// ordered by tap.
const tapsPacked = 16

// packPanel packs the weights of n channels into rows of step.
func packPanel[T float32 | uint16](p *WeightPanels, dst, weights []T, n, step int) {
	if p.taps == 0 {
		gemm.PackPanelRows(dst, weights, p.depth, p.depth, n, step)
		return
	}
	inputs := p.depth / p.taps
	part := make([]T, min(tapsPacked, inputs)*p.taps*step)
	for ch := 0; ch < inputs; ch += tapsPacked {
		depth := min(tapsPacked, inputs-ch) * p.taps
		gemm.PackPanelRows(part[:depth*step], weights[ch*p.taps:], p.depth, depth, n, step)
		for k := range depth {
			copy(dst[(k%p.taps*inputs+ch+k/p.taps)*step:][:step], part[k*step:])
		}
	}
}

// Restores reports whether Unpack can undo Pack: transformed weights are
// rounded.
func (p WeightPanels) Restores() bool { return p.winograd == 0 }

// Unpack undoes Pack.
func (p WeightPanels) Unpack(dst, packed []float32) { unpackPanels(&p, dst, packed) }

// UnpackHalf undoes PackHalf.
func (p WeightPanels) UnpackHalf(dst, packed []uint16) { unpackPanels(&p, dst, packed) }

func unpackPanels[T float32 | uint16](p *WeightPanels, dst, packed []T) {
	for m := range p.groups * p.channels {
		panelRow(p, dst[m*p.depth:][:p.depth], packed, m, 0)
	}
}

// panelRow copies the weights of output channel m, of all groups, for the
// products from k on.
func panelRow[T float32 | uint16](p *WeightPanels, dst, packed []T, m, k int) {
	at, step := p.at(m/p.channels, m%p.channels, 0)
	from := packed[at:]
	for i := range dst {
		dst[i] = from[p.place(k+i)*step]
	}
}

// place returns the row of product k of those ordered by channel.
func (p *WeightPanels) place(k int) int {
	if p.taps == 0 {
		return k
	}
	return k%p.taps*(p.depth/p.taps) + k/p.taps
}
