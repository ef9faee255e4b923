// Package ptx reads the text of PTX modules and runs their kernels without a
// GPU: it stands in for one in tests. [Parse] takes the scalar subset of the
// language that the kernels of this module use, and refuses everything else:
// an instruction or a modifier that it does not know is an error.
//
// [Kernel.Run] interprets a launch. It finds what a GPU does not report:
// threads of one block that use the same bytes without a barrier between,
// blocks that write what others use, reads of bytes that nobody wrote,
// misaligned accesses, threads that part before a barrier or wait for each
// other for ever, and loops that do not end. Threads are independent; a
// scheduler with a seed decides which of them runs next, and may change its
// mind at every access to memory, so that results that depend on an order
// differ from seed to seed.
//
// # Numbers
//
// Arithmetic is that of the PTX ISA, bit by bit: each operation rounds once, in
// the mode that it names, and subnormals are kept unless it says .ftz. NaN
// results are the canonical ones of a GPU: 0x7fffffff in f32, 0x7fff in f16 and
// bf16. Instructions that end in .approx are computed exactly and then rounded;
// a GPU may differ in the last places. Division of integers by zero, whose
// result PTX leaves open, is a fault.
//
// # Left out
//
// Functions, textures, local memory, module variables other than shared ones,
// vectors of halves, matrix instructions, and barriers of a part of a block.
// Memory that blocks order by atomics and fences counts as a race: kernels here
// end instead.
//
// # Memory and concurrency
//
// A module and its kernels do not change: any goroutine may use them. A launch
// owns its shared memory and registers, which are Go memory and end with it;
// global memory belongs to the [Memory] that the caller passes.
package ptx
