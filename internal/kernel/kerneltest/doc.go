// Package kerneltest has the common parts of the kernels' tests: slices between
// guard bands (Space), numbers to compute with, comparisons with the results of
// kernel/ref, and loops over the variants that the process may run
// (EachVariant, BenchVariants). The tests are in the packages of the kernels. A
// test makes a space, computes in its slices, checks it, and compares:
//
//	func TestRelu(t *testing.T) {
//		kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
//			s := kerneltest.NewSpace(t)
//			x := kerneltest.In(s, "x", kerneltest.Uniform(kerneltest.NewRand(1), 100))
//			dst := kerneltest.Out[float32](s, "dst", len(x))
//			elementwise.UnaryF32(v, kernel.Relu, dst, x, 0, 0)
//			s.Check()
//			kerneltest.WantValues(t, dst, ref.Map(x, func(x float32) float64 { return max(float64(x), 0) }), 0)
//		})
//	}
//
// Every variant (portable, and each level of assembly that the process may run)
// passes all tests. Sizes are chosen so that every remainder of a vector's
// width occurs. Where a kernel allows it, tests run again with the output in an
// operand's bytes. Random data is seeded, so a failure repeats.
//
// Memory of a space is on the Go heap and ends with it, but for that of
// WithScratch. A space is for one goroutine.
package kerneltest
