// Package kerneltest is the one conformance suite of the kernels. Every variant (portable, and each assembly level that the
// process may run) passes all of it, against kernel/ref:
//
//	func TestKernels(t *testing.T) { kerneltest.RunAll(t) }
//
// Each case runs in memory with guard bands round every slice, checks that inputs are unchanged, and, where a kernel allows it, runs again
// with the output in an operand's bytes. Sizes are chosen so that every remainder of a vector width occurs. Random data is seeded, so a
// failure repeats.
package kerneltest
