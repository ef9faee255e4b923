// Package move has the kernels that move elements without looking at them, or
// make them: copies between strided places, permutations, gather and scatter,
// padding, fills and filters. Elements are bytes of a size. The caller owns all
// slices; specs are read only once they are prepared, and tiles that write
// different results may run side by side.
package move
