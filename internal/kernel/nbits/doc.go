// Package nbits has products of float32 rows with weights of 2, 4 or 8 bits,
// which stay packed: C = act(A * B + bias + residual), where each column of B
// is cut into blocks along K, and an element is (q - zero) * scale of its
// block.
//
//	p := nbits.Product{M: m, N: n, K: k, Bits: 4, Block: 32, Middle: 8, Packed: true}
//	p.Prepare(v)
//	for t := range p.Tiles() {
//		p.Tile(t, scratch, &nbits.Args{C: c, A: a, B: panels, Scale: scales})
//	}
//
// # Panels
//
// A panel holds v.Nbits.Lanes columns, and of each vector of four bytes per
// column the four bytes of a column hold four neighbours of K in their lowest
// bits, the next four in the bits above these, and so on. One load gives the
// operands of many columns without a shuffle: bytes after a shift and a mask,
// and float32 after a shift and a table. Scales and zeros lie in panels of
// their own, those of a block side by side.
//
// # Order of sums
//
// With Ints a row of A is quantised block by block: its scale is the greatest
// magnitude divided by 127, and a byte is the number times 127 divided by that
// magnitude, rounded half to even. The products of a block are added up in
// integers, exactly; float32(sum) * (scale of A * scale of B), each operation
// rounded, is added to the sums of the blocks before. Every variant and any
// number of threads give the same bits.
//
// Without Ints, up to [FewRows] rows: the products of a block are added up in
// float32, times the scale added to the sums of the blocks before. More rows:
// panels become float32 a part at a time, and package gemm multiplies. How an
// element is summed depends on the variant and on whether there are few rows,
// never on the tile or the thread.
//
// A block of A that has an infinity or NaN makes all its sums NaN with Ints.
// Magnitudes below 2^-120 lose precision there.
package nbits
