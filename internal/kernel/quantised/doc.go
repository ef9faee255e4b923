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
// The caller owns all memory, panels and scratch included; panels are read with
// the variant that packed them. A prepared spec is read only, and any number of
// goroutines may compute different tiles, each with its own scratch.
package quantised
