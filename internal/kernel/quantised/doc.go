// Package quantised has the kernels of 8-bit integers: products (IntGemm) and
// convolutions (IntConv) of bytes with zero points, whose sums are int32 or are
// scaled to bytes again (Requant), and the conversions between floats and
// integers with scales (Quantize, Dequantize, DynamicScale).
//
//	g := quantised.IntGemm{M: m, N: n, K: k}
//	g.Prepare(v)
//	for t := range g.Tiles() {
//		quantised.IntGemmTile(&g, t, dst, a, b, zeroA, zeroB, nil, scratch) // scratch: g.ScratchBytes()/4 numbers
//	}
//
// A convolution writes the part of its input that a block of places reads with
// neighbouring channels side by side, as one instruction multiplies them, and
// multiplies it in place with panels of filters (FilterPanels). Filters are
// packed while it runs unless the caller has packed them.
//
// The caller owns all memory, panels and scratch included; panels are read with
// the variant that packed them. A prepared spec is read only, and any number of
// goroutines may compute different tiles, each with its own scratch.
package quantised
