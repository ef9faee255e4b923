package kernel

// NbitsLoops are the loops of products with weights of 2, 4 or 8 bits in blocks
// along K, in panels of Lanes columns, which package nbits describes. Tables of
// loops are indexed by the number of bits, and by that of rows.
type NbitsLoops struct {
	Lanes int

	Ints           NbitsIntLoops
	Floats, Tables NbitsFloatLoops
	Expand         NbitsExpandLoops

	// Quantize makes blocks of bytes of a row, steps of 16 numbers each: before
	// each block the sum of its bytes, negative, after it the scale.
	Quantize func(blocks, steps int, dst *byte, x *float32)
}

// Loops over the blocks of a panel, which read the scales and the zeros of
// Lanes columns for each block. Distances are in bytes. They compute whole
// vectors of c, to which they add if add is not 0.
type (
	// NbitsInts reads rows that Quantize made. Without zeros all are middle.
	NbitsInts func(blocks, steps int, a *byte, lda int, b *byte, scale *float32, zero *byte, middle int32, c *float32, ldc, add int)

	// NbitsFloats reads zeros of a kind: 1 for bytes, 2 for float32; without
	// zeros all are *less. One of Tables reads no zeros: its weights stand for
	// the numbers of a table of 16.
	NbitsFloats func(blocks, steps int, a *float32, lda int, b *byte, scale *float32, zero *byte, kind int, less, c *float32, ldc, add int)

	// NbitsExpand makes float32 of weights: a row of Lanes for each k.
	NbitsExpand func(blocks, steps int, dst *float32, ld int, b *byte, scale *float32, zero *byte, kind int, less *float32)
)

// The tables of loops.
type (
	NbitsIntLoops    [9][9]NbitsInts
	NbitsFloatLoops  [9][9]NbitsFloats
	NbitsExpandLoops [9]NbitsExpand
)
