package nbits

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
)

// Source says how operands lie that are not packed. The bits of elements follow
// each other over the whole operand.
type Source struct {
	// Rows is set if rows of B are what the blocks cut, [N, Depth]; the scales
	// are [N, blocks] then. Otherwise B is [Depth, N] and the scales are
	// [blocks, N].
	Rows   bool
	Depth  int  // K, or more: the elements beyond it do not count
	Signed bool // B and its zeros are in two's complement

	Scale, Zero dtype.DType // of scales, and of zeros that are floats
}

// BBytes, ScaleBytes and ZeroBytes are the sizes of what PackB, PackScales and
// PackZeros write for a variant.
func (p *Product) BBytes(v *kernel.Variant) int {
	p.Prepare(v)
	return p.allPanels() * p.panelBytes()
}

func (p *Product) ScaleBytes(v *kernel.Variant) int {
	p.Prepare(v)
	return 4 * p.allPanels() * p.blocks * p.lanes
}

func (p *Product) ZeroBytes(v *kernel.Variant) int {
	p.Prepare(v)
	return p.allPanels() * p.blocks * p.lanes * p.zeroSize()
}

// Panels is how many parts there are that PackB packs.
func (p *Product) Panels() int { return p.allPanels() }

// PackB packs one panel of B. The product is prepared.
func (p *Product) PackB(panel int, dst, src []byte) {
	p.packBlocks(dst[panel*p.panelBytes():][:p.panelBytes()], src, panel, 0, p.blocks)
}

// PackScales packs all scales. The product is prepared.
func (p *Product) PackScales(dst, src []byte) {
	for i := range p.allPanels() {
		p.packScales(kernel.View[float32](dst)[i*p.blocks*p.lanes:], src, i, 0, p.blocks)
	}
}

// PackZeros packs all zeros. The product is prepared.
func (p *Product) PackZeros(dst, src []byte) {
	for i := range p.allPanels() {
		p.packZeros(dst[i*p.blocks*p.lanes*p.zeroSize():], src, i, 0, p.blocks)
	}
}

// sign is the bit that makes unsigned what is signed, with a zero that is as
// much greater.
func (p *Product) sign() byte {
	if p.Source.Signed {
		return 1 << (p.Bits - 1)
	}
	return 0
}

// bitsAt are those of an element of a source.
func (p *Product) bitsAt(src []byte, i int) byte {
	return (src[i*p.Bits/8] >> (i * p.Bits % 8) & (1<<p.Bits - 1)) ^ p.sign()
}

// at is where the element k of a column lies among size of them.
func (p *Product) at(k, col, size int) int {
	if p.Source.Rows {
		return col*size + k
	}
	return k*p.N + col
}

// packBlocks packs blocks of a panel. Elements beyond the source are zeros.
func (p *Product) packBlocks(dst, src []byte, panel, first, n int) {
	cols := min(p.lanes, p.N-panel*p.lanes)
	from, to := first*p.Block, min((first+n)*p.Block, p.Source.Depth)
	perByte := 8 / p.Bits
	group := 4 * perByte // of K, that share a vector
	if cols < p.lanes || to < (first+n)*p.Block {
		clear(dst[:n*p.blockBytes()])
	}
	aligned := p.Source.Rows && p.Source.Depth*p.Bits%8 == 0
	for j := range cols {
		col := panel*p.lanes + j
		for k := from; k < to; k += group {
			out := dst[((k-from)/group*p.lanes+j)*4:][:4]
			if aligned && to-k >= group {
				binary.LittleEndian.PutUint32(out, p.spread(binary.LittleEndian.Uint32(src[(col*p.Source.Depth+k)*p.Bits/8:])))
				continue
			}
			clear(out)
			for i := range min(group, to-k) {
				out[i%4] |= p.bitsAt(src, p.at(k+i, col, p.Source.Depth)) << (i / 4 * p.Bits)
			}
		}
	}
}

// spread turns four bytes of elements that follow each other into those of a
// panel, in which every fourth one shares a byte.
func (p *Product) spread(x uint32) uint32 {
	switch p.Bits {
	case 4:
		x ^= uint32(p.sign()) * 0x11111111
		low, high := x&0xffff, x>>16
		low = (low | low<<8) & 0x00ff00ff
		high = (high | high<<8) & 0x00ff00ff
		return (low|low<<4)&0x0f0f0f0f | (high|high<<4)&0x0f0f0f0f<<4
	case 2:
		x ^= uint32(p.sign()) * 0x55555555
		out := uint32(0)
		for i := range 4 {
			b := x >> (8 * i) & 0xff
			b = (b | b<<12) & 0x000f000f
			out |= (b | b<<6) & 0x03030303 << (2 * i)
		}
		return out
	}
	return x ^ uint32(p.sign())*0x01010101
}

// packScales packs those of some blocks. Columns beyond the last have none.
func (p *Product) packScales(dst []float32, src []byte, panel, first, n int) {
	p.packFloats(dst, src, p.Source.Scale, panel, first, n)
}

func (p *Product) packFloats(dst []float32, src []byte, dt dtype.DType, panel, first, n int) {
	for i := range n {
		for j := range p.lanes {
			f, col := float32(0), panel*p.lanes+j
			if col < p.N {
				f = floatAt(src, dt, p.at(first+i, col, p.blocks))
			}
			dst[i*p.lanes+j] = f
		}
	}
}

// packZeros packs those of some blocks.
func (p *Product) packZeros(dst, src []byte, panel, first, n int) {
	if p.Zeros == FloatZeros {
		p.packFloats(kernel.View[float32](dst), src, p.Source.Zero, panel, first, n)
		return
	}
	for i := range n {
		for j := range p.lanes {
			z, col := byte(0), panel*p.lanes+j
			if col < p.N {
				z = p.bitsAt(src, p.at(first+i, col, p.blocks))
			}
			dst[i*p.lanes+j] = z
		}
	}
}

// floatAt is element i of floats of 16 or 32 bits.
func floatAt(src []byte, dt dtype.DType, i int) float32 {
	switch dt {
	case dtype.F16:
		return dtype.Float16(binary.LittleEndian.Uint16(src[2*i:])).Float32()
	case dtype.BF16:
		return dtype.BFloat16(binary.LittleEndian.Uint16(src[2*i:])).Float32()
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
}
