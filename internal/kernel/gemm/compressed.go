package gemm

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// CompressedB is a whole constant B in panels, each of whose blocks is
// compressed without loss, or left as it is where that would save little. It
// begins with an index, so that tiles find the blocks. N, K, TransB and Alpha
// are those of the product, whose CompressedB is set.
//
// The compressed B has the size that Place returns after Measure has been
// called for all parts; Pack fills it part by part. Measure and Pack may work
// on several parts at once, each with scratch of its own.
type CompressedB struct {
	N, K   int
	TransB bool
	Alpha  float32

	gemm Gemm
}

// An entry of the index is where a block begins, in units, how many exponents
// are aside in it, or that it is not compressed, and the exponents that have
// codes. One more entry is where the last block ends.
const (
	entryBytes     = 16
	entryAside     = 4
	entryExponents = 8

	notCompressed = math.MaxUint32
)

// leastSaved is how much of its size a block must lose to be compressed: one of
// so many parts.
const leastSaved = 16

// Prepare works out the parts.
func (c *CompressedB) Prepare(v *kernel.Variant) {
	c.gemm = Gemm{N: c.N, K: c.K, TransB: c.TransB, Alpha: c.Alpha, PackedB: true, CompressedB: true}
	c.gemm.Prepare(v)
}

// Parts is how many blocks of panels there are.
func (c *CompressedB) Parts() int { return c.gemm.blocks() }

// IndexBytes is the size of the index.
func (c *CompressedB) IndexBytes() int { return indexBytes(c.Parts()) }

func indexBytes(parts int) int {
	return kernel.CeilDiv(entryBytes*(parts+1), compressedUnit) * compressedUnit
}

// ScratchFloats is what Measure, Pack and Unpack need.
func (c *CompressedB) ScratchFloats() int { return c.gemm.nr * c.gemm.block }

// blocks is how many blocks all panels of B have.
func (g *Gemm) blocks() int { return kernel.CeilDiv(g.K, max(1, g.block)) * (g.width / g.nr) }

// blockAt is the number of the block of a panel that begins at k, col.
func (g *Gemm) blockAt(k, col int) int { return k/g.block*(g.width/g.nr) + col/g.nr }

// block returns where a block begins, and its depth.
func (c *CompressedB) block(part int) (k, col, depth int) {
	g := &c.gemm
	panels := g.width / g.nr
	k, col = part/panels*g.block, part%panels*g.nr
	return k, col, min(g.block, g.K-k)
}

// panel packs a block into scratch.
func (c *CompressedB) panel(part int, b, scratch []float32) []float32 {
	k, col, depth := c.block(part)
	c.gemm.packBlock(scratch, b, k, depth, col, min(c.gemm.nr, c.N-col))
	return scratch[:depth*c.gemm.nr]
}

// Measure works out a part of the index. Place must follow.
func (c *CompressedB) Measure(part int, index []byte, b, scratch []float32) {
	var counts exponentCounts
	k, col, depth := c.block(part)
	n, total := min(c.gemm.nr, c.N-col), depth*c.gemm.nr
	switch { // the order of floats is nothing to their exponents
	case c.Alpha != 1:
		counts.add(c.panel(part, b, scratch))
	case c.TransB:
		for j := range n {
			counts.add(b[(col+j)*c.K+k:][:depth])
		}
		counts[0][0] += uint32(total - n*depth)
	default:
		for i := range depth {
			counts.add(b[(k+i)*c.N+col:][:n])
		}
		counts[0][0] += uint32(total - n*depth)
	}
	exponents, aside := counts.choose()
	entry := index[entryBytes*part:][:entryBytes]
	size := CompressedBytes(c.gemm.v, total, aside)
	if size > 4*total-4*total/leastSaved || total > MostCompressed {
		size, aside = kernel.CeilDiv(4*total, compressedUnit)*compressedUnit, notCompressed
	}
	binary.LittleEndian.PutUint32(entry, uint32(size/compressedUnit))
	binary.LittleEndian.PutUint32(entry[entryAside:], uint32(aside))
	copy(entry[entryExponents:], exponents[:])
}

// Place makes places of the sizes that Measure found, and returns the size of
// all.
func (c *CompressedB) Place(index []byte) int {
	at := uint32(c.IndexBytes() / compressedUnit)
	for part := range c.Parts() {
		entry := index[entryBytes*part:]
		size := binary.LittleEndian.Uint32(entry)
		binary.LittleEndian.PutUint32(entry, at)
		at += size
	}
	binary.LittleEndian.PutUint32(index[entryBytes*c.Parts():], at)
	return int(at) * compressedUnit
}

// Pack fills a part of dst, which begins with the index.
func (c *CompressedB) Pack(part int, dst []byte, b, scratch []float32) {
	panel := c.panel(part, b, scratch)
	at := openCompressed(dst, c.Parts()).at(part)
	if at.compressed {
		CompressFloats(c.gemm.v, at.data, at.exponents, at.aside, panel)
	} else {
		copy(at.data, kernel.BytesOf(panel))
	}
}

// Unpack is the reverse of Pack where Alpha is 1. dst is a whole B whose rows
// follow each other.
func (c *CompressedB) Unpack(part int, dst []float32, packed []byte, scratch []float32) {
	k, col, depth := c.block(part)
	n := min(c.gemm.nr, c.N-col)
	panel := openCompressed(packed, c.Parts()).panel(c.gemm.v, part, scratch[:depth*c.gemm.nr])
	for i := range depth {
		row := panel[i*c.gemm.nr:][:n]
		if !c.TransB {
			copy(dst[(k+i)*c.N+col:], row)
			continue
		}
		for j, x := range row {
			dst[(col+j)*c.K+k+i] = x
		}
	}
}

// compressedB is B as Pack made it.
type compressedB struct {
	bytes []byte
	parts int
}

// openCompressed holds bytes to their index.
func openCompressed(data []byte, parts int) compressedB {
	if n := indexBytes(parts); len(data) < n || placeAt(data, parts) != len(data) {
		kernel.Bug("compressed panels: %d bytes do not end where the index of %d blocks says", len(data), parts)
	}
	return compressedB{data, parts}
}

// placeAt is where a block begins, and the one before it ends.
func placeAt(data []byte, part int) int {
	return int(binary.LittleEndian.Uint32(data[entryBytes*part:])) * compressedUnit
}

// compressedBlock is a block and its entries in the index.
type compressedBlock struct {
	data       []byte
	exponents  Exponents
	aside      int
	compressed bool
}

func (b compressedB) at(part int) compressedBlock {
	entry := b.bytes[entryBytes*part:][:entryBytes]
	from, to := placeAt(b.bytes, part), placeAt(b.bytes, part+1)
	aside := binary.LittleEndian.Uint32(entry[entryAside:])
	return compressedBlock{b.bytes[from:to:to], Exponents(entry[entryExponents:]), int(aside), aside != notCompressed}
}

// panel returns a block as floats: where it lies, or put together in scratch,
// which has its size.
func (b compressedB) panel(v *kernel.Variant, part int, scratch []float32) []float32 {
	at := b.at(part)
	if !at.compressed {
		return kernel.View[float32](at.data[:4*len(scratch)])
	}
	ExpandFloats(v, scratch, at.data, at.exponents, at.aside)
	return scratch
}
