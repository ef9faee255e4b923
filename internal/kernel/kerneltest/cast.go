package kerneltest

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// castTypes are all types that Cast takes.
func castTypes() []dtype.DType {
	var all []dtype.DType
	for d := dtype.DType(0); d < 64; d++ {
		if elementwise.Castable(d) {
			all = append(all, d)
		}
	}
	return all
}

func testCast(t *testing.T, v *kernel.Variant) {
	t.Run("halves", with(v, testCastHalves))
	for _, from := range castTypes() {
		for _, to := range castTypes() {
			t.Run(fmt.Sprintf("%s_to_%s", from, to), func(t *testing.T) {
				cast(t, v, from, to, elementwise.CastMode{Saturate: true})
				if to.Size() == 1 && to.IsFloat() { // the only ones that ask for more
					cast(t, v, from, to, elementwise.CastMode{Round: dtype.RoundNearest})
				}
			})
		}
	}
	t.Run("in place", with(v, testCastInPlace))
}

// castSource gives the bytes of at least n elements of a type, with every pattern of the narrow ones among them.
func castSource(t *testing.T, dt dtype.DType, n int) []byte {
	t.Helper()
	size, err := dt.ByteLen(n)
	if err != nil {
		t.Fatal(err)
	}
	r := newRand(uint64(dt))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.Uint32())
		if dt.Size() <= 1 {
			b[i] = byte(i)
		}
	}
	if dt.IsInt() && dt.Size() > 1 { // small numbers and the ends too, not only large ones
		for i := 0; i+dt.Size() <= len(b)/2; i += dt.Size() {
			for k := 1; k < dt.Size(); k++ {
				b[i+k] = byte(int8(b[i]) >> 7)
			}
		}
	}
	put := func(i int, f float64) {
		switch dt {
		case dtype.I64, dtype.U64: // large numbers just off the midpoints of narrow floats
			copy(b[8*i:], asBytes([]int64{1<<60 + 1<<52 + int64(i-1)<<(i%9)}))
		case dtype.F32:
			copy(b[4*i:], asBytes([]float32{float32(f)}))
		case dtype.F64:
			copy(b[8*i:], asBytes([]float64{f}))
		}
	}
	for i, f := range castEdges() {
		if i < n {
			put(i, f)
		}
	}
	return b
}

// castEdges are floats around every limit: ends of the integer types, midpoints of narrower floats and their neighbours.
func castEdges() []float64 {
	e := f64s(specials)
	for _, v := range []float64{0.9, 1.9, 127.9, 128, 255, 256, 32768, 65504, 65519.999, 65520, 2147483647, 2147483648, 4294967295, 4294967296,
		0x1p63, 0x1p64, 448, 464, 57344, 61440, 240, 248, 6, 7, 0.75, 1.25, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40,
		1 + 0x1p-8 + 0x1p-33, 1 + 0x1p-4, 1 + 0x1p-4 + 0x1p-30, 0x1p-25, 0x1p-25 + 0x1p-60, 0x1p-150, 1e300} {
		e = append(e, v, -v, math.Nextafter(v, 0), math.Nextafter(v, math.Inf(1)))
	}
	return e
}

func cast(t *testing.T, v *kernel.Variant, from, to dtype.DType, mode elementwise.CastMode) {
	t.Helper()
	const n = 400 // a whole number of bytes in every type, and several chunks with a rest
	src := castSource(t, from, n)
	size, err := to.ByteLen(n)
	if err != nil {
		t.Fatal(err)
	}
	s := newSpace(t)
	x := castSlice(s, "src", from, src, true)
	dst := castSlice(s, "dst", to, make([]byte, size), false)
	for _, r := range [][2]int{{0, 8}, {8, 200}, {200, n}} { // ranges that start a byte
		elementwise.Cast(v, dst, to, x, from, r[0], r[1], mode)
	}
	s.check()
	for i := range n {
		v := ref.Decode(from, x, i)
		if want := ref.Cast(v, to, mode.Saturate, mode.Round); !ref.SameBits(to, dst, i, want) {
			t.Fatalf("element %d: %v as %s gave bits %#x as %s, want %#x", i, v, from, ref.Bits(to, dst, i), to, want)
		}
	}
}

// castSlice guards the bytes of elements, aligned for them.
func castSlice(s *space, name string, dt dtype.DType, b []byte, input bool) []byte {
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
		return place(asBytes(p), g)
	case 4:
		p, g := alloc[uint32](s, name, len(b)/4)
		return place(asBytes(p), g)
	case 8:
		p, g := alloc[uint64](s, name, len(b)/8)
		return place(asBytes(p), g)
	}
	p, g := alloc[byte](s, name, len(b))
	return place(p, g)
}

func testCastInPlace(t *testing.T, v *kernel.Variant) {
	src := []float32{1.5, -2.5, 3e9, float32(math.NaN()), 0}
	place := inout(newSpace(t), "x", src)
	elementwise.Cast(v, asBytes(place), dtype.I32, asBytes(place), dtype.F32, 0, len(src), elementwise.CastMode{})
	for i, v := range src {
		want := ref.Cast(ref.Value{Float: new(big.Float).SetFloat64(0)}, dtype.I32, false, 0)
		if v == v {
			want = ref.Cast(ref.Value{Float: big.NewFloat(float64(v))}, dtype.I32, false, 0)
		}
		if !ref.SameBits(dtype.I32, asBytes(place), i, want) {
			t.Fatalf("%v in place: got %#x, want %#x", v, ref.Bits(dtype.I32, asBytes(place), i), want)
		}
	}
}

// testCastHalves holds conversions from and to the 16-bit floats to those of package dtype, bit by bit.
func testCastHalves(t *testing.T, v *kernel.Variant) {
	halves := make([]uint16, 1<<16+5) // ends in the middle of a vector
	for i := range halves {
		halves[i] = uint16(i)
	}
	numbers := append(spread(newRand(90), 30_000), specials...)
	for i := range 4000 { // around the halves between neighbours
		numbers = append(numbers, math.Float32frombits(math.Float32bits(fromHalf(dtype.F16, uint16(16*i)))+uint32(i%3)+0xfff), math.Float32frombits(uint32(i)<<20+0x7fff+uint32(i%3)))
	}
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		s := newSpace(t)
		wide, narrow := out[float32](s, "wide", len(halves)), out[uint16](s, "narrow", len(numbers))
		elementwise.Cast(v, asBytes(wide), dtype.F32, asBytes(in(s, "halves", halves)), dt, 0, len(halves), elementwise.CastMode{})
		elementwise.Cast(v, asBytes(narrow), dt, asBytes(in(s, "numbers", numbers)), dtype.F32, 0, len(numbers), elementwise.CastMode{})
		s.check()
		for i, h := range halves {
			if got, want := math.Float32bits(wide[i]), math.Float32bits(fromHalf(dt, h)); got != want {
				t.Fatalf("%s %#04x: got %#08x, want %#08x", dt, h, got, want)
			}
		}
		for i, x := range numbers {
			if want := toHalf(dt, x); narrow[i] != want {
				t.Fatalf("%v (%#08x) to %s: got %#04x, want %#04x", x, math.Float32bits(x), dt, narrow[i], want)
			}
		}
	}
}
