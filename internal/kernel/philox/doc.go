// Package philox makes random numbers by counting: the numbers at a place
// follow from the place and a key alone, so that tiles in any order, on any
// number of threads, write the same bits.
//
//	philox.Uniform(dst, philox.Stream{Key: seed}, first)
//
// The generator is Philox4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror and
// D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC '11): ten
// rounds of multiplications map a counter of 128 bits and a key of 64 to four
// numbers of 32 bits. The caller owns the slices; all functions are pure, and
// may be called from any goroutine.
package philox
