package move

import "github.com/tenure-go/tenure/internal/kernel"

// MostPermuteBytes bounds the scratch of a [Permute].
const MostPermuteBytes = 64 << 10

// permutePiece is how much of a unit moves at a time.
const permutePiece = 4 << 10

// Permute puts the axes of a contiguous tensor in another order, within its own
// bytes and with little scratch.
//
// First the last axis stays in its place, and so does every unit of elements
// that stay together: units follow each other around the cycles of the
// permutation. Then, where the last axis is to stand before others, each block
// of those is transposed through scratch.
type Permute struct {
	unit    int // bytes
	units   int
	sizes   []int // of the result's axes in units, those inside a unit left out
	strides []int // of the same axes in the operand

	block  int // bytes of one that is transposed; 0 where the last axis stays
	blocks int
	turn   Copy
}

// Prepare makes axis i of the result axis perm[i] of the operand, which has the
// given shape. It reports whether that takes no more scratch than
// [MostPermuteBytes].
func (p *Permute) Prepare(elemBytes int, shape, perm []int) bool {
	*p = Permute{unit: elemBytes, units: 1, sizes: p.sizes[:0], strides: p.strides[:0], turn: p.turn}
	last, at := len(perm)-1, 0
	if last < 0 {
		return true
	}
	var buf [2][kernel.MaxRank]int
	order := buf[0][:0] // of the first step
	for i, axis := range perm {
		if axis == last {
			at = i
		} else {
			order = append(order, axis)
		}
	}
	order = append(order, last)
	inside := len(order)
	for inside > 0 && order[inside-1] == inside-1 {
		inside--
		p.unit *= shape[inside]
	}
	strides := kernel.RowMajorIn(buf[1][:], shape[:inside])
	for _, axis := range order[:inside] {
		p.sizes, p.strides = append(p.sizes, shape[axis]), append(p.strides, strides[axis])
		p.units *= shape[axis]
	}
	if at != last {
		rows := 1
		for _, axis := range perm[at+1:] {
			rows *= shape[axis]
		}
		p.block = rows * shape[last] * elemBytes
		if p.block > 0 {
			p.blocks = p.units * p.unit / p.block
		}
		p.turn.PrepareTranspose(elemBytes, []int{rows, shape[last]}, []int{1, 0}, nil, nil)
	}
	return p.ScratchBytes() <= MostPermuteBytes
}

// ScratchBytes is how much scratch Run takes.
func (p *Permute) ScratchBytes() int { return max(p.marks()+min(p.unit, permutePiece), p.block) }

// marks is the bytes of a bit for each unit.
func (p *Permute) marks() int { return (p.units + 7) / 8 }

// Run permutes the elements of data. Scratch is aligned like them.
func (p *Permute) Run(v *kernel.Variant, data, scratch []byte) {
	if len(data) == 0 {
		return
	}
	if len(p.sizes) > 0 {
		for lo := 0; lo < p.unit; lo += permutePiece {
			p.cycles(data, lo, min(lo+permutePiece, p.unit), scratch)
		}
	}
	for b := range p.blocks {
		block := data[b*p.block : (b+1)*p.block]
		copy(scratch, block)
		for tile := range p.turn.Tiles() {
			p.turn.Tile(v, tile, block, scratch[:p.block])
		}
	}
}

// cycles moves the bytes from lo to hi of every unit to their places.
func (p *Permute) cycles(data []byte, lo, hi int, scratch []byte) {
	marks, kept := scratch[:p.marks()], scratch[p.marks():][:hi-lo]
	clear(marks)
	at := func(i int) []byte { return data[i*p.unit+lo : i*p.unit+hi] }
	for start := range p.units {
		from := p.source(start)
		if marks[start/8]>>(start%8)&1 != 0 || from == start {
			continue
		}
		copy(kept, at(start))
		i := start
		for ; from != start; i, from = from, p.source(from) {
			copy(at(i), at(from))
			marks[i/8] |= 1 << (i % 8)
		}
		copy(at(i), kept)
		marks[i/8] |= 1 << (i % 8)
	}
}

// source returns where the unit of place i comes from.
func (p *Permute) source(i int) (from int) {
	for axis := len(p.sizes) - 1; axis >= 0; axis-- {
		from += i % p.sizes[axis] * p.strides[axis]
		i /= p.sizes[axis]
	}
	return from
}
