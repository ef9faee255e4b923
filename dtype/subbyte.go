package dtype

// The float types of less than a byte are structs: a slice of them is not the
// packed form of a tensor, and as structs they are no Element.

// Float4E2M1 has 2 exponent bits (bias 1), 1 mantissa bit: 0, 0.5, 1, 1.5, 2,
// 3, 4, 6 and their negatives.
type Float4E2M1 struct{ bits uint8 }

// Float6E2M3FN has 2 exponent bits (bias 1) and 3 mantissa bits; its largest
// number is 7.5.
type Float6E2M3FN struct{ bits uint8 }

// Float6E3M2FN has 3 exponent bits (bias 3) and 2 mantissa bits; its largest
// number is 28.
type Float6E3M2FN struct{ bits uint8 }

var (
	decodedE2M1 = miniE2M1Finite.decoded()
	decodedE2M3 = miniE2M3Finite.decoded()
	decodedE3M2 = miniE3M2Finite.decoded()
)

// Float4E2M1FromBits takes the lower 4 bits.
func Float4E2M1FromBits(b uint8) Float4E2M1 { return Float4E2M1{b & 0x0f} }

// Float4E2M1FromFloat32 rounds to nearest, ties to even, and saturates; NaN
// becomes negative zero.
func Float4E2M1FromFloat32(f float32) Float4E2M1 { return Float4E2M1{miniE2M1Finite.encode(f, true)} }

// Bits returns the pattern in the lower 4 bits.
func (x Float4E2M1) Bits() uint8 { return x.bits }

// Float32 is exact.
func (x Float4E2M1) Float32() float32 { return decodedE2M1[x.bits] }

// Float6E2M3FNFromBits takes the lower 6 bits.
func Float6E2M3FNFromBits(b uint8) Float6E2M3FN { return Float6E2M3FN{b & 0x3f} }

// Float6E2M3FNFromFloat32 rounds to nearest, ties to even, and saturates; NaN
// becomes negative zero.
func Float6E2M3FNFromFloat32(f float32) Float6E2M3FN {
	return Float6E2M3FN{miniE2M3Finite.encode(f, true)}
}

// Bits returns the pattern in the lower 6 bits.
func (x Float6E2M3FN) Bits() uint8 { return x.bits }

// Float32 is exact.
func (x Float6E2M3FN) Float32() float32 { return decodedE2M3[x.bits] }

// Float6E3M2FNFromBits takes the lower 6 bits.
func Float6E3M2FNFromBits(b uint8) Float6E3M2FN { return Float6E3M2FN{b & 0x3f} }

// Float6E3M2FNFromFloat32 rounds to nearest, ties to even, and saturates; NaN
// becomes negative zero.
func Float6E3M2FNFromFloat32(f float32) Float6E3M2FN {
	return Float6E3M2FN{miniE3M2Finite.encode(f, true)}
}

// Bits returns the pattern in the lower 6 bits.
func (x Float6E3M2FN) Bits() uint8 { return x.bits }

// Float32 is exact.
func (x Float6E3M2FN) Float32() float32 { return decodedE3M2[x.bits] }

// PackedAt returns the pattern of element i of a packed tensor of elements of
// less than a byte, in its lower bits. Element i starts at bit i*Bits() counted
// from the lowest bit of the first byte: the order of both ONNX and DLPack. The
// pattern of a signed integer is not sign-extended. It panics, as Go does with
// a wrong index, for a type that is not packed and for an element outside data:
// it is called for each element.
func (d DType) PackedAt(data []byte, i int) uint8 {
	at, shift, width := d.packed(i)
	v := uint(data[at]) >> shift
	if shift+width > 8 {
		v |= uint(data[at+1]) << (8 - shift)
	}
	return uint8(v & (1<<width - 1))
}

// PackedPut sets element i as PackedAt reads it, from the lower bits of v, and
// leaves all other bits as they are.
func (d DType) PackedPut(data []byte, i int, v uint8) {
	at, shift, width := d.packed(i)
	mask := uint(1)<<width - 1
	set := func(b *byte, mask, v uint) { *b = *b&^byte(mask) | byte(v) }
	bits := uint(v) & mask
	set(&data[at], mask<<shift, bits<<shift)
	if shift+width > 8 {
		set(&data[at+1], mask>>(8-shift), bits>>(8-shift))
	}
}

// packed returns the first byte of element i, the bit in it at which the
// element starts, and the element's width.
func (d DType) packed(i int) (at int, shift, width uint) {
	width = uint(d.info().bits)
	if width == 0 || width >= 8 {
		panic("BUG: dtype: packed access to " + d.String() + ", which has no size of less than a byte")
	}
	// By groups of 8 elements, which take exactly width bytes, so that no
	// product overflows.
	bit := uint(i%8) * width
	return i/8*int(width) + int(bit/8), bit % 8, width
}
