// Package sample has the kernels that read images between their elements:
// resizing, sampling by a grid, and regions of interest. The caller owns all
// slices; specs are read only once they are prepared, and tiles that write
// different results may run side by side.
package sample
