//go:build 386 || arm || mips || mipsle

package dtype

// Offsets and sizes of tensors are ints, and an int has 32 bits here. Every
// other package that knows tensors imports this one, so this is the one line
// that a build for such a processor prints.
const _ = tenure_needs_a_64_bit_processor
