package kerneltest

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// FromHalf returns the number that the bits of an f16 or bf16 encode.
func FromHalf(dt dtype.DType, b uint16) float32 {
	if dt == dtype.F16 {
		return dtype.Float16(b).Float32()
	}
	return dtype.BFloat16(b).Float32()
}

// ToHalf returns the bits of an f16 or bf16.
func ToHalf(dt dtype.DType, f float32) uint16 {
	if dt == dtype.F16 {
		return uint16(dtype.Float16FromFloat32(f))
	}
	return uint16(dtype.BFloat16FromFloat32(f))
}

// CastSource returns the bytes of at least n elements of a type, with every
// pattern of the narrow ones among them.
func CastSource(t *testing.T, dt dtype.DType, n int) []byte {
	t.Helper()
	size, err := dt.ByteLen(n)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRand(uint64(dt))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.Uint32())
		if dt.Size() <= 1 {
			b[i] = byte(i)
		}
	}
	if dt.IsInt() && dt.Size() > 1 { // Small numbers and the ends too, not only large ones
		for i := 0; i+dt.Size() <= len(b)/2; i += dt.Size() {
			for k := 1; k < dt.Size(); k++ {
				b[i+k] = byte(int8(b[i]) >> 7)
			}
		}
	}
	put := func(i int, f float64) {
		switch dt {
		case dtype.I64, dtype.U64: // large numbers just off the midpoints of narrow floats
			copy(b[8*i:], AsBytes([]int64{1<<60 + 1<<52 + int64(i-1)<<(i%9)}))
		case dtype.F32:
			copy(b[4*i:], AsBytes([]float32{float32(f)}))
		case dtype.F64:
			copy(b[8*i:], AsBytes([]float64{f}))
		}
	}
	for i, f := range castEdges() {
		if i < n {
			put(i, f)
		}
	}
	return b
}

// CastSlice guards the bytes of elements, aligned for them.
func CastSlice(s *Space, name string, dt dtype.DType, b []byte, input bool) []byte {
	place := func(p []byte, g *guarded) []byte {
		copy(p, b)
		if input {
			g.input = append([]byte(nil), b...)
		}
		return p
	}
	switch dt.Size() {
	case 2:
		p, g := alloc[uint16](s, name, len(b)/2)
		return place(AsBytes(p), g)
	case 4:
		p, g := alloc[uint32](s, name, len(b)/4)
		return place(AsBytes(p), g)
	case 8:
		p, g := alloc[uint64](s, name, len(b)/8)
		return place(AsBytes(p), g)
	}
	p, g := alloc[byte](s, name, len(b))
	return place(p, g)
}

// castEdges are floats around every limit: ends of the integer types, midpoints
// of narrower floats and their neighbours.
func castEdges() []float64 {
	e := F64s(Specials)
	for _, v := range []float64{0.9, 1.9, 127.9, 128, 255, 256, 32768, 65504, 65519.999, 65520, 2147483647, 2147483648, 4294967295, 4294967296,
		0x1p63, 0x1p64, 448, 464, 57344, 61440, 240, 248, 6, 7, 0.75, 1.25, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40,
		1 + 0x1p-8 + 0x1p-33, 1 + 0x1p-4, 1 + 0x1p-4 + 0x1p-30, 0x1p-25, 0x1p-25 + 0x1p-60, 0x1p-150, 1e300} {
		e = append(e, v, -v, math.Nextafter(v, 0), math.Nextafter(v, math.Inf(1)))
	}
	return e
}

// Encode returns numbers as elements of a type.
func Encode(v *kernel.Variant, dt dtype.DType, values []float64) []byte {
	data := make([]byte, len(values)*dt.Size())
	elementwise.Cast(v, data, dt, AsBytes(values), dtype.F64, 0, len(values), elementwise.CastMode{})
	return data
}
