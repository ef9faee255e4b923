// Package kernel has what all kernels share: the table of loops of a set of
// instructions (Variant), the functions of one and two operands (UnaryOp,
// BinaryOp, PredicateOp), the loop nest over strided operands (Nest), views of
// bytes as elements (View), and the sizes of tiles.
//
// The kernels compute on raw slices. Every loop of Tenure that touches the
// elements of a tensor is in one of the packages below this one:
//
//   - elementwise: functions of one and two operands, predicates, casts and
//     chains
//   - reduce: reductions, softmax and normalisations
//   - gemm: products of float32 matrices, and how they end (bias, residual,
//     activation)
//   - conv: convolutions and pools
//   - quantised: products and convolutions of bytes, and conversions to and
//     from them
//   - move, sample, selection, sequence, signal, text: the families that no
//     other family is made of
//
// Package x86 has the loops in assembly, package machine the variants that the
// machine runs.
//
// Kernels take slices and return nothing. They allocate nothing, keep nothing,
// and check nothing that a caller can check: a call with wrong types, shapes,
// indices or sizes of slices panics with a text that starts with "BUG:". The
// caller owns all memory, scratch included.
//
// # Specs and tiles
//
// A kernel with something to work out beforehand is a spec: a plain struct of
// numbers. Its Prepare runs once, when the plan is made, and may allocate. From
// then on the spec is read only, and any number of goroutines may run its
// tiles:
//
//	g := gemm.Gemm{M: m, N: n, K: k, Alpha: 1}
//	g.Prepare(v)
//	for t := range g.Tiles() { // in any order, on any worker
//		g.Tile(t, scratch, &args) // scratch: one slice of g.ScratchBytes() per worker
//	}
//
// Tiles write disjoint parts of the output and a sum is never split over tiles,
// so a result does not depend on the number of workers or on their timing.
// Elementwise kernels work on ranges of element numbers instead; see Nest.
//
// # In place
//
// An output may be an operand's very bytes where the kernel's comment says so,
// and then exactly: same start, same layout. Anything else that overlaps is a
// fault of the caller.
//
// # Variants
//
// A kernel whose innermost loops may be assembly takes a Variant, the table of
// the loops of one set of instructions, as its first argument; one that is
// prepared takes it there. Package machine has the best one for the process
// (TENURE_CPU lowers the choice: see internal/cpu) and lists all, package x86
// has the assembly. Portable, which has no assembly, works everywhere. The
// tests, which are beside the kernels, compare every variant with the results
// of package ref; kerneltest has their common functions.
//
// A call of assembly takes a bounded piece of a row or a matrix, since the
// garbage collector cannot interrupt it.
package kernel
