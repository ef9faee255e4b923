// Package dtype names the element types of tensors: their sizes, their codes in ONNX and DLPack, and the float formats that Go lacks.
//
// A [DType] is one of the constants [F32], [BF16], [I4] and so on: every data type of ONNX, and every type code of DLPack in the widths
// that other libraries use. [Parse] and String convert names, [FromONNX] and [FromDLPack] the codes of the two standards, and
// [DType.ByteLen] says how many bytes a number of elements takes in packed form.
//
// [Float16], [BFloat16] and the Float8 types are Go types with the memory form of their DType: a []Float16 is a tensor of f16. Conversion to
// float32 is exact, conversion from it rounds to nearest, ties to even; what becomes of NaN and of numbers that are too large is said at
// each type and follows ONNX's Cast. Types of less than a byte (I4, F4E2M1, F6E2M3FN, ...) are packed in memory: [DType.PackedAt] and
// [DType.PackedPut] reach single elements.
//
// [Element] is the constraint for generic code over Go types, and [Of] gives the DType of one.
//
// Invariants:
//
//   - Parse(d.String()) is d for every valid d; so are FromONNX(d.ONNX()) and FromDLPack(d.DLPack()) where the code exists.
//   - Size is not 0 exactly where a slice of elements is addressable by whole bytes.
//   - Every error about a type is [ErrDType].
//
// The package holds no memory and keeps no slice; everything in it may be used from any goroutine.
package dtype
