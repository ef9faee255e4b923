//go:build ppc64 || s390x || mips64

package dtype

// ONNX, safetensors and DLPack hold little-endian numbers, and tensors are read
// where their bytes lie. Every other package that knows tensors imports this
// one, so this is the one line that a build for a big-endian processor prints.
const _ = tenure_needs_a_little_endian_processor
