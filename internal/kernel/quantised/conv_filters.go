package quantised

import (
	"encoding/binary"
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
)

// FilterPanels is the form in which convolutions read weights: for each group,
// panels of some filters, the last one perhaps of fewer. A panel has one row
// per group of channels and tap, and in it four bytes per filter: the weights
// of neighbouring channels, as many as one instruction multiplies, with zeros
// for channels that are not there. Weights are signed: 128 less where those of
// w are not. The sums of the filters' weights follow all panels.
//
// The form depends on the shape of the weights and on the variant only.
type FilterPanels struct {
	groups, channels, count int // count: filters of a group
	taps                    int
	tapsZ                   int // of the outermost of three axes
	rows                    int // filters of a panel that is not the last
	step                    int // channels side by side
	signed                  bool
}

// FilterPanels returns how weights are packed, and whether there are kernels
// that read them so. The convolution need not be prepared.
func (c *IntConv) FilterPanels(v *kernel.Variant) (p FilterPanels, ok bool) {
	p = FilterPanels{groups: c.Group, channels: c.Channels, count: c.Filters, taps: kernel.Product(c.Kernel), tapsZ: 1, step: v.Bytes.Step, signed: c.SignedW}
	if v.Bytes.Filters == nil || len(c.Kernel) > maxIntAxes || c.isDepthwise(v) || p.groups*p.channels*p.count*p.taps == 0 {
		return p, false
	}
	if len(c.Kernel) == maxIntAxes {
		p.tapsZ = c.Kernel[0]
	}
	p.rows = kernel.EvenTile(p.count, v.Bytes.MaxFilters, 1)
	return p, true
}

// channelGroups is the number of groups of channels side by side.
func (p *FilterPanels) channelGroups() int { return kernel.CeilDiv(p.channels, p.step) }

// depth is the number of rows of a panel.
func (p *FilterPanels) depth() int { return p.channelGroups() * p.taps }

// panels is the number of panels of a group.
func (p *FilterPanels) panels() int { return kernel.CeilDiv(p.count, p.rows) }

// filterBytes is the size of a filter in panels.
func (p *FilterPanels) filterBytes() int { return 4 * p.depth() }

// Bytes returns the size of packed weights.
func (p FilterPanels) Bytes() int { return p.groups * p.count * (p.filterBytes() + 4) }

// String names the panels: equal names, equal panels of equal weights.
func (p FilterPanels) String() string {
	return fmt.Sprintf("%dx%d filters of %dx%d taps in %d, %d by %d", p.groups, p.count, p.channels, p.taps, p.tapsZ, p.rows, p.step)
}

// Pack writes weights as String says.
func (p FilterPanels) Pack(dst, w []byte) {
	size := p.groups * p.count * p.filterBytes()
	totals := kernel.View[int32](dst[size:])
	for g := range p.groups {
		for first := 0; first < p.count; first += p.rows {
			at := g*p.count + first
			p.packPanel(dst[at*p.filterBytes():], totals[at:], w, at, min(p.rows, p.count-first))
		}
	}
}

// packPanel packs n filters from the first on, and adds up their weights.
func (p *FilterPanels) packPanel(dst []byte, totals []int32, w []byte, first, n int) {
	size := p.channels * p.taps
	clear(dst[:n*p.filterBytes()])
	for i := range n {
		totals[i] = p.packFilter(dst[4*i:], w[(first+i)*size:][:size], 4*n)
	}
}

// packFilter packs a filter, whose groups of weights are step bytes apart, and
// returns the sum of its weights.
func (p *FilterPanels) packFilter(dst, w []byte, step int) (total int32) {
	flip := byte(0)
	if !p.signed {
		flip = 0x80
	}
	plane, groups := p.taps/p.tapsZ, p.channelGroups()
	if p.step == 4 {
		return p.packFours(dst, w, step, flip)
	}
	for ch := range p.channels {
		for z := range p.tapsZ {
			to := (z*groups+ch/p.step)*plane*step + ch%p.step*(4/p.step)
			for _, b := range w[(ch*p.tapsZ+z)*plane:][:plane] {
				v := int8(b ^ flip)
				total += int32(v)
				binary.LittleEndian.PutUint16(dst[to:], uint16(int16(v)))
				to += step
			}
		}
	}
	return total
}

// packFours is packFilter for groups of four channels.
func (p *FilterPanels) packFours(dst, w []byte, step int, flip byte) (total int32) {
	plane, to := p.taps/p.tapsZ, 0
	for z := range p.tapsZ {
		for ch := 0; ch < p.channels; ch += 4 {
			n := min(4, p.channels-ch)
			for tap := range plane {
				word, at := uint32(0), ch*p.taps+z*plane+tap
				for i := range n {
					b := w[at] ^ flip
					total += int32(int8(b))
					word |= uint32(b) << (8 * i)
					at += p.taps
				}
				binary.LittleEndian.PutUint32(dst[to:], word)
				to += step
			}
		}
	}
	return total
}

// Unpack is the reverse of Pack.
func (p FilterPanels) Unpack(w, panels []byte) {
	flip := byte(0)
	if !p.signed {
		flip = 0x80
	}
	plane, groups, size := p.taps/p.tapsZ, p.channelGroups(), p.channels*p.taps
	for f := range p.groups * p.count {
		g, i := f/p.count, f%p.count
		first := i - i%p.rows
		panel, n := panels[(g*p.count+first)*p.filterBytes():], min(p.rows, p.count-first)
		for k := range size {
			ch, z, tap := k/p.taps, k%p.taps/plane, k%plane
			at := ((z*groups+ch/p.step)*plane+tap)*4*n + 4*(i-first) + ch%p.step*(4/p.step)
			w[f*size+k] = panel[at] ^ flip
		}
	}
}
