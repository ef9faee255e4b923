package elementwise_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
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

func TestCast(t *testing.T) { kerneltest.EachVariant(t, testCast) }

func testCast(t *testing.T, v *kernel.Variant) {
	t.Run("halves", kerneltest.With(v, testCastHalves))
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
	t.Run("in place", kerneltest.With(v, testCastInPlace))
}

func cast(t *testing.T, v *kernel.Variant, from, to dtype.DType, mode elementwise.CastMode) {
	t.Helper()
	const n = 400 // a whole number of bytes in every type, and several chunks with a rest
	src := kerneltest.CastSource(t, from, n)
	size, err := to.ByteLen(n)
	if err != nil {
		t.Fatal(err)
	}
	s := kerneltest.NewSpace(t)
	x := kerneltest.CastSlice(s, "src", from, src, true)
	dst := kerneltest.CastSlice(s, "dst", to, make([]byte, size), false)
	for _, r := range [][2]int{{0, 8}, {8, 200}, {200, n}} { // ranges that start a byte
		elementwise.Cast(v, dst, to, x, from, r[0], r[1], mode)
	}
	s.Check()
	for i := range n {
		v := ref.Decode(from, x, i)
		if want := ref.Cast(v, to, mode.Saturate, mode.Round); !ref.SameBits(to, dst, i, want) {
			t.Fatalf("element %d: %v as %s gave bits %#x as %s, want %#x", i, v, from, ref.Bits(to, dst, i), to, want)
		}
	}
}

func testCastInPlace(t *testing.T, v *kernel.Variant) {
	src := []float32{1.5, -2.5, 3e9, float32(math.NaN()), 0}
	place := kerneltest.InOut(kerneltest.NewSpace(t), "x", src)
	elementwise.Cast(v, kerneltest.AsBytes(place), dtype.I32, kerneltest.AsBytes(place), dtype.F32, 0, len(src), elementwise.CastMode{})
	for i, v := range src {
		want := ref.Cast(ref.Value{Float: new(big.Float).SetFloat64(0)}, dtype.I32, false, 0)
		if v == v {
			want = ref.Cast(ref.Value{Float: big.NewFloat(float64(v))}, dtype.I32, false, 0)
		}
		if !ref.SameBits(dtype.I32, kerneltest.AsBytes(place), i, want) {
			t.Fatalf("%v in place: got %#x, want %#x", v, ref.Bits(dtype.I32, kerneltest.AsBytes(place), i), want)
		}
	}
}

// testCastHalves holds conversions from and to the 16-bit floats to those of
// package dtype, bit by bit.
func testCastHalves(t *testing.T, v *kernel.Variant) {
	halves := make([]uint16, 1<<16+5) // ends in the middle of a vector
	for i := range halves {
		halves[i] = uint16(i)
	}
	numbers := append(kerneltest.Spread(kerneltest.NewRand(90), 30_000), kerneltest.Specials...)
	for i := range 4000 { // around the halves between neighbours
		numbers = append(numbers, math.Float32frombits(math.Float32bits(kerneltest.FromHalf(dtype.F16, uint16(16*i)))+uint32(i%3)+0xfff), math.Float32frombits(uint32(i)<<20+0x7fff+uint32(i%3)))
	}
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		s := kerneltest.NewSpace(t)
		wide, narrow := kerneltest.Out[float32](s, "wide", len(halves)), kerneltest.Out[uint16](s, "narrow", len(numbers))
		elementwise.Cast(v, kerneltest.AsBytes(wide), dtype.F32, kerneltest.AsBytes(kerneltest.In(s, "halves", halves)), dt, 0, len(halves), elementwise.CastMode{})
		elementwise.Cast(v, kerneltest.AsBytes(narrow), dt, kerneltest.AsBytes(kerneltest.In(s, "numbers", numbers)), dtype.F32, 0, len(numbers), elementwise.CastMode{})
		s.Check()
		for i, h := range halves {
			if got, want := math.Float32bits(wide[i]), math.Float32bits(kerneltest.FromHalf(dt, h)); got != want {
				t.Fatalf("%s %#04x: got %#08x, want %#08x", dt, h, got, want)
			}
		}
		for i, x := range numbers {
			if want := kerneltest.ToHalf(dt, x); narrow[i] != want {
				t.Fatalf("%v (%#08x) to %s: got %#04x, want %#04x", x, math.Float32bits(x), dt, narrow[i], want)
			}
		}
	}
}
