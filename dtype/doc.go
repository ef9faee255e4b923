// Package dtype names the element types of tensors: their sizes, their codes in
// ONNX and DLPack, and the float formats that Go lacks.
//
//	d, err := dtype.FromONNX(10)               // dtype.F16
//	bytes, err := d.ByteLen(1000)              // 2000
//	h := dtype.Float16FromFloat32(1.0 / 3)     // rounds to nearest
//	fmt.Println(d, bytes, h.Float32())
//
// A [DType] is one of the constants [F32], [BF16], [I4] and so on: every data
// type of ONNX, and every type code of DLPack in the widths that other
// libraries use. [Parse] and String convert names, [FromONNX] and [FromDLPack]
// the codes of the two standards, and [DType.ByteLen] says how many bytes a
// number of elements takes in packed form.
//
// [Float16], [BFloat16] and the Float8 types are Go types with the memory form
// of their DType: a []Float16 is a tensor of f16. Conversion to float32 is
// exact, conversion from it rounds to nearest, ties to even. Types of less than
// a byte (I4, F4E2M1, F6E2M3FN, ...) are packed in memory: [DType.PackedAt] and
// [DType.PackedPut] reach single elements.
//
// [Element] is the constraint for generic code over Go types, and [Of] returns
// the DType of one.
//
// # Special values in 8 bits
//
// Conversion follows ONNX's Cast as it is since opset 24. (Before, its text
// stated NaN for infinities in the FNUZ types, while its test data already had
// the largest number.)
//
//	x                         E4M3FN  E4M3FNUZ, E5M2FNUZ  E5M2
//	NaN                       NaN     NaN                 NaN
//	-0, or rounds to it       -0      0                   -0
//	too large, saturate       max     max                 max
//	too large, no saturate    NaN     NaN                 infinity
//
// Too large is what rounds to more than the largest number; infinities are. A
// NaN or maximum has the sign of x where the format has two of them, and every
// NaN becomes the quiet one. Types without an ONNX code behave like the one
// with the same kind of special values: E4M3 and E3M4 like E5M2, E4M3B11FNUZ
// like E4M3FNUZ. [Float8E8M0] has rules of its own, and so have [Float4E2M1]
// and the Float6 types, which have neither infinity nor NaN.
//
// # Invariants
//
//   - Parse(d.String()) is d for every valid d; so are FromONNX(d.ONNX()) and
//     FromDLPack(d.DLPack()) where the code exists.
//   - Size is not 0 exactly where a slice of elements is addressable by whole
//     bytes.
//   - Every error about a type is [ErrDType].
//
// The package holds no memory and keeps no slice; everything in it may be used
// from any goroutine.
package dtype
