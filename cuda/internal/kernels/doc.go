// Package kernels has the texts of the kernels that package cuda launches:
// fill, copy between layouts, convert between element types, add, and sum. They
// are PTX for sm_70 and later, which the driver compiles when a module is
// loaded.
//
// [Fill], [Copy], [Convert], [Add] and [Sum] make launches: which kernel, how
// many blocks, and the bytes of the arguments. They merge dimensions and choose
// 16-byte accesses where addresses and layouts allow them. [Table] lists every
// kernel with its parameters and what it reads and writes, and [Source] has the
// text of a module.
//
// # Texts
//
// The texts are put together when they are asked for. There are 156 conversions
// and several kernels that differ in the size of an element alone; as files
// they would be ten thousand lines that say the same. What a thread does is
// written out in PTX by hand; the code around it, which finds the addresses of
// element i in each operand, is one text for all of them. Kernels are in
// modules by family, conversions by their source type, so that a program
// compiles those that it uses.
//
// # Results
//
// No approximate instruction is used. Results of fill, copy, convert and the
// addition of integers are those of the host, bit by bit, and so are sums and
// additions of floats unless the result is NaN, whose bits are a GPU's. Sums
// have one order on every device, which [SumF32] and [SumF64] follow on the
// host.
//
// # Memory and concurrency
//
// Kernels take addresses and own nothing. An operand that is written may be the
// same bytes as one that is read only if each element stays at its place. The
// functions may be called from any goroutine.
package kernels
