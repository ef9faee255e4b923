// Package kernel computes on raw slices: every loop of Tenure that touches the elements of a tensor is here.
//
// Kernels take slices and return nothing. They allocate nothing, keep nothing, and check nothing that a caller can check: dtypes, shapes,
// indices and the sizes of slices are the caller's affair, and a call that breaks them panics with a text that starts with "BUG:". The
// caller owns all memory, scratch included.
//
// Here are the variants and what all kernels share (the loop nest, views of bytes), and the kernels that other kernels are made of: unary,
// binary, predicate and cast work element by element; gemm, conv, convtranspose and pool are the heavy ones, for float32; reduce, softmax
// and norm work along axes; bytegemm and the quantize files are for 8-bit integers. What the heavy ones do not serve (float64, integers, more
// axes) goes through the plain_ files. The families that nothing else is made of are packages: move, sample, selection, sequence, signal and
// text.
//
// # Specs and tiles
//
// A kernel with something to work out beforehand is a spec: a plain struct of numbers. Its Prepare runs once, when the plan is made, and may
// allocate. From then on the spec is read only, and any number of goroutines may run its tiles:
//
//	var g kernel.Gemm
//	g.Prepare(v)
//	for t := range g.Tiles() { // in any order, on any worker
//		g.Tile(t, scratch, &args) // scratch: one slice of g.ScratchBytes() per worker
//	}
//
// Tiles write disjoint parts of the output and a sum is never split over tiles, so a result does not depend on the number of workers or
// on their timing. Elementwise kernels work on ranges of element numbers instead; see Nest.
//
// # In place
//
// An output may be an operand's very bytes where the kernel's comment says so, and then exactly: same start, same layout. Anything else that
// overlaps is a fault of the caller.
//
// # Variants
//
// A kernel whose innermost loops may be assembly takes a Variant, the table of the loops of one set of instructions, as its first argument;
// one that is prepared takes it there. Package machine has the best one for the process (TENURE_CPU lowers the choice: see internal/cpu) and
// lists all, package x86 has the assembly. Portable, which has no assembly, works everywhere. kerneltest holds every variant to the same
// results as kernel/ref.
//
// A call of assembly takes a bounded piece of a row or a matrix, since the garbage collector cannot interrupt it.
package kernel
