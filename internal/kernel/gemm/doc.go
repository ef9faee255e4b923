// Package gemm has the products of matrices: Gemm for float32, with batches,
// transposed and packed operands, and an Epilogue that adds bias and residual
// and applies an activation before a result leaves the cache; CompressedB for
// weights whose exponents are stored in fewer bits; Half for 16-bit floats;
// Plain for float64 and integers; and Det, the determinant.
//
//	g := gemm.Gemm{M: m, N: n, K: k, Alpha: 1}
//	g.Prepare(v)
//	scratch := make([]float32, g.ScratchBytes()/4)
//	for t := range g.Tiles() {
//		g.Tile(t, scratch, &gemm.Args{C: c, A: a, B: b})
//	}
//
// Package conv multiplies its patches with the same panels: PackPanel,
// MultiplyPanels and Epilogue are for it.
//
// The caller owns all memory, panels and scratch included; panels are read with
// the variant that packed them. A prepared product is read only, and any number
// of goroutines may compute different tiles, each with its own scratch.
package gemm
