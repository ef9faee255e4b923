package gemm

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Floats of weights without loss in 27 bits and a little. Their signs and
// mantissas are noise, but a handful of exponents is that of nearly all of
// them: a code of three bits says which of eight it is. Exponents that have no
// code lie aside.
//
// A vector is as many floats as expandFloats makes at once, and every float's
// bits are in its own lane of 32-bit words. 32 vectors are a group: three
// vectors of words with their codes, ten in a word and the last two in the bits
// that are left over, and then three for every four vectors with their other
// bits. Three have these where floats have them; in place of their exponents
// are the bits of the fourth. The exponents without a code follow the groups:
// first their places, then the exponents themselves.

const (
	codesPerWord   = 10
	vectorGroup    = 32
	codeWords      = 3          // of a group, per lane
	bitWords       = 3          // of four vectors, per lane
	noExponent     = 0x807fffff // the bits that a code leaves
	asideBytes     = 3          // a place and an exponent
	mostLanes      = 16
	compressedUnit = 64 // sizes are multiples of it

	// MostCompressed is how many floats have places that can be written down.
	MostCompressed = 1 << 16
)

// Exponents are the exponents that have codes, by their codes.
type Exponents [kernel.ExponentCodes]byte

// groupBytes is the size of n floats in vectors of some lanes, without the
// exponents aside.
func groupBytes(lanes, n int) int {
	vectors := n / lanes
	return 4 * lanes * (codeWords*kernel.CeilDiv(vectors, vectorGroup) + bitWords*kernel.CeilDiv(vectors, 4))
}

// CompressedBytes is the size of n floats, as many as whole vectors hold, of
// which some have exponents aside.
func CompressedBytes(v *kernel.Variant, n, aside int) int {
	return kernel.CeilDiv(groupBytes(v.Compressed.Lanes, n)+asideBytes*aside, compressedUnit) * compressedUnit
}

func checkCompressed(v *kernel.Variant, data []byte, n, aside int) {
	if n%v.Compressed.Lanes != 0 || n > MostCompressed || len(data) != CompressedBytes(v, n, aside) {
		kernel.Bug("compressed floats: %d of them, %d exponents aside, in %d bytes", n, aside, len(data))
	}
}

// CompressFloats writes floats to dst, with codes for the given exponents, of
// which as many floats as aside says have none.
func CompressFloats(v *kernel.Variant, dst []byte, exponents Exponents, aside int, x []float32) {
	checkCompressed(v, dst, len(x), aside)
	const none = kernel.ExponentCodes
	var codeOf [256]byte
	for e := range codeOf {
		codeOf[e] = none
	}
	for code, e := range exponents {
		codeOf[e] = byte(code)
	}
	groups := groupBytes(v.Compressed.Lanes, len(x))
	to, places := dst[:groups], dst[groups:]
	rest, placed := places[2*aside:], 0
	for first, step := 0, vectorGroup*v.Compressed.Lanes; first < len(x); first += step {
		group := x[first:min(first+step, len(x))]
		if compressGroup(v, to, &codeOf, group) {
			for i, v := range group {
				if e := math.Float32bits(v) >> 23 & 0xff; codeOf[e] == none {
					if placed == aside {
						kernel.Bug("compressed floats: got more than %d exponents that are aside", aside)
					}
					binary.LittleEndian.PutUint16(places[2*placed:], uint16(first+i))
					rest[placed] = byte(e)
					placed++
				}
			}
		}
		to = to[groupBytes(v.Compressed.Lanes, len(group)):]
	}
	if placed != aside {
		kernel.Bug("compressed floats: got %d exponents that are aside, want %d", placed, aside)
	}
	clear(rest[aside:])
}

// compressGroup writes the words of a group, and tells whether some exponent
// has no code.
func compressGroup(v *kernel.Variant, dst []byte, codeOf *[256]byte, x []float32) (some bool) {
	var words [(codeWords + vectorGroup/4*bitWords) * mostLanes]uint32
	lanes := v.Compressed.Lanes
	codes, quads := words[:codeWords*lanes], words[codeWords*lanes:]
	all := byte(0)
	for j := 0; j*lanes < len(x); j++ {
		vector := x[j*lanes:][:lanes]
		three := quads[j/4*bitWords*lanes:][:bitWords*lanes]
		code := codes[min(j/codesPerWord, codeWords-1)*lanes:][:lanes]
		shift := 3 * (j % codesPerWord)
		if j < codeWords*codesPerWord {
			for i, v := range vector {
				c := codeOf[math.Float32bits(v)>>23&0xff]
				all |= c
				code[i] |= uint32(c) & 7 << shift
			}
		} else {
			for i, v := range vector {
				c := codeOf[math.Float32bits(v)>>23&0xff]
				all |= c
				spreadCode(codes, lanes, i, j-codeWords*codesPerWord, uint32(c)&7)
			}
		}
		if j%4 < bitWords {
			for i, own := range three[j%4*lanes:][:lanes] {
				three[j%4*lanes+i] = own | math.Float32bits(vector[i])&noExponent
			}
			continue
		}
		a, b, c := three[:lanes], three[lanes:][:lanes], three[2*lanes:][:lanes]
		for i, v := range vector {
			x := math.Float32bits(v)
			a[i] |= x >> 15 & 0xff << 23
			b[i] |= x >> 7 & 0xff << 23
			c[i] |= bits.RotateLeft32(x&0x8000007f, -8)
		}
	}
	for i := range dst[:groupBytes(lanes, len(x))/4] {
		binary.LittleEndian.PutUint32(dst[4*i:], words[i])
	}
	return all >= kernel.ExponentCodes
}

// spreadCode puts a code of the last two vectors of a group into the bits that
// ten codes leave over.
func spreadCode(codes []uint32, lanes, lane, vector int, code uint32) {
	if vector == 0 {
		codes[lane] |= code << 30
		codes[lanes+lane] |= code >> 2 << 30
	} else {
		codes[lanes+lane] |= code << 31
		codes[2*lanes+lane] |= code >> 1 << 30
	}
}

// ExpandFloats puts floats together that CompressFloats took apart.
func ExpandFloats(v *kernel.Variant, dst []float32, src []byte, exponents Exponents, aside int) {
	checkCompressed(v, src, len(dst), aside)
	if len(dst) == 0 {
		return
	}
	expandFloats(v, dst, src, exponents)
	places := src[groupBytes(v.Compressed.Lanes, len(dst)):]
	places, rest := places[:2*aside], places[2*aside:]
	for i := range aside {
		x := &dst[binary.LittleEndian.Uint16(places[2*i:])]
		*x = math.Float32frombits(math.Float32bits(*x)&noExponent | uint32(rest[i])<<23)
	}
}

// expandFloats expands whole vectors of floats, as many as fill dst, but for
// exponents without a code. It may prefetch the bytes after them.
func expandFloats(v *kernel.Variant, dst []float32, src []byte, exponents Exponents) {
	if v.Compressed.Expand == nil {
		portableExpandFloats(dst, src, exponents)
		return
	}
	// The loops stop at an even number of vectors only.
	lanes := v.Compressed.Lanes
	if len(dst) == 0 || len(dst)%(2*lanes) != 0 {
		kernel.Bug("compressed floats: %d of them in pairs of vectors of %d", len(dst), lanes)
	}
	v.Compressed.Expand(len(dst)/lanes, &dst[0], &src[0], tableOf(exponents))
}

func tableOf(exponents Exponents) (t kernel.ExpandTable) {
	for i, e := range exponents {
		t[i], t[kernel.ExponentCodes+i] = uint32(e)<<23, uint32(e)<<23
	}
	return t
}

func portableExpandFloats(dst []float32, src []byte, exponents Exponents) {
	const lanes = kernel.PortableExpandLanes
	var table [kernel.ExponentCodes]uint32
	for i, e := range exponents {
		table[i] = uint32(e) << 23
	}
	for len(dst) > 0 {
		group := dst[:min(len(dst), vectorGroup*lanes)]
		dst = dst[len(group):]
		var words [(codeWords + vectorGroup/4*bitWords) * lanes]uint32
		n := groupBytes(lanes, len(group))
		for i := range words[:n/4] {
			words[i] = binary.LittleEndian.Uint32(src[4*i:])
		}
		src = src[n:]
		codes := (*[codeWords * lanes]uint32)(words[:])
		for j := 0; j*lanes < len(group); j++ {
			three := (*[bitWords * lanes]uint32)(words[(codeWords+j/4*bitWords)*lanes:])
			vector := (*[lanes]float32)(group[j*lanes:])
			for i := range vector {
				vector[i] = math.Float32frombits(bitsAt(three, j%4, i)&noExponent | table[codeAt(codes, j, i)])
			}
		}
	}
}

// codeAt returns the code of a lane of vector j of a group.
func codeAt(words *[codeWords * kernel.PortableExpandLanes]uint32, j, lane int) uint32 {
	const lanes = kernel.PortableExpandLanes
	lane &= lanes - 1
	switch {
	case j < codesPerWord:
		return words[lane] >> (3 * j) & 7
	case j < 2*codesPerWord:
		return words[lanes+lane] >> (3 * (j - codesPerWord)) & 7
	case j < 3*codesPerWord:
		return words[2*lanes+lane] >> (3 * (j - 2*codesPerWord)) & 7
	case j == 3*codesPerWord:
		return words[lane]>>30 | words[lanes+lane]>>30&1<<2
	}
	return words[lanes+lane]>>31 | words[2*lanes+lane]>>30<<1
}

// bitsAt returns the bits of a lane of the j-th of four vectors, except the
// exponent's; in the exponent's place are other bits.
func bitsAt(words *[bitWords * kernel.PortableExpandLanes]uint32, j, lane int) uint32 {
	const lanes = kernel.PortableExpandLanes
	lane &= lanes - 1
	a, b, c := words[lane], words[lanes+lane], words[2*lanes+lane]
	switch j {
	case 0:
		return a
	case 1:
		return b
	case 2:
		return c
	}
	return a>>23&0xff<<15 | b>>23&0xff<<7 | bits.RotateLeft32(c&0x7f800000, 8)
}

// exponentCounts are how many floats have each exponent. There are several
// because a count must not wait for the one before it, which is mostly of the
// same exponent.
type exponentCounts [4][256]uint32

func (h *exponentCounts) add(x []float32) {
	for ; len(x) >= 4; x = x[4:] {
		h[0][math.Float32bits(x[0])>>23&0xff]++
		h[1][math.Float32bits(x[1])>>23&0xff]++
		h[2][math.Float32bits(x[2])>>23&0xff]++
		h[3][math.Float32bits(x[3])>>23&0xff]++
	}
	for _, v := range x {
		h[0][math.Float32bits(v)>>23&0xff]++
	}
}

// choose returns the exponents that most floats have, and how many floats have
// others. The counts are spoilt.
func (h *exponentCounts) choose() (most Exponents, aside int) {
	total := &h[0]
	for e := range total {
		total[e] += h[1][e] + h[2][e] + h[3][e]
		aside += int(total[e])
	}
	for i := range most {
		for e, n := range total {
			if n > total[most[i]] {
				most[i] = byte(e)
			}
		}
		aside -= int(total[most[i]])
		total[most[i]] = 0
	}
	return most, aside
}
