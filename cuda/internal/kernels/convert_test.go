package kernels_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/kernels"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

var types = []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I8, dtype.I16, dtype.I32, dtype.I64,
	dtype.U8, dtype.U16, dtype.U32, dtype.U64, dtype.Bool}

func word(v uint64, n int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:n] }

func bits(data []byte, at, n int) uint64 {
	var b [8]byte
	copy(b[:], data[at:][:n])
	return binary.LittleEndian.Uint64(b[:])
}

func isNaN(dt dtype.DType, b uint64) bool {
	switch dt {
	case dtype.F32:
		return b&0x7fff_ffff > 0x7f80_0000
	case dtype.F64:
		return b&math.MaxInt64 > 0x7ff0_0000_0000_0000
	case dtype.F16:
		return b&0x7fff > 0x7c00
	case dtype.BF16:
		return b&0x7fff > 0x7f80
	}
	return false
}

// numbers are where conversions change their form: ends of types, ties, the
// largest halves, subnormals.
var numbers = []float64{0, math.Copysign(0, -1), 0.5, -0.5, 0.99, 1, 1.5, 2.5, -1, -1.5, 127, 128, -128, -129, 255, 256, 32767, 32768, 65504, 65519, 65520, 65535, 65536,
	0x1p31 - 1, 0x1p31, -0x1p31, -0x1p31 - 1, 0x1p32 - 1, 0x1p32, 0x1p32 - 0.5, -0x1p32, 0x1p63, -0x1p63, 0x1p64, -0x1p64, 1e30, -1e30, 1e300, -1e300, 0x1p-24, 0x1p-25, 0x1.8p-25,
	0x1p-149, 0x1p-150, 0x1p-126, 0x1p-133, 0x1p-134, 0x1p-1074, math.MaxFloat32, math.MaxFloat64, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-50, 1 + 0x1p-24,
	math.Inf(1), math.Inf(-1), math.NaN()}

// value draws an element of a type as bits.
func value(r *rand.Rand, dt dtype.DType) uint64 {
	v := r.Uint64()
	if dt.IsFloat() && r.IntN(2) == 0 {
		f := numbers[r.IntN(len(numbers))]
		if r.IntN(2) == 0 {
			f = math.Ldexp(r.Float64()-0.5, r.IntN(80)-10)
		}
		switch dt {
		case dtype.F64:
			v = math.Float64bits(f)
		case dtype.F32:
			v = uint64(math.Float32bits(float32(f)))
		case dtype.F16:
			v = uint64(dtype.Float16FromFloat32(float32(f)))
		case dtype.BF16:
			v = uint64(dtype.BFloat16FromFloat32(float32(f)))
		}
	} else if r.IntN(3) == 0 {
		v = uint64(int64(v) >> r.IntN(64))
	} else if r.IntN(3) == 0 {
		v = uint64(int64(1)<<r.IntN(64) + r.Int64N(5) - 2)
	}
	return v & (math.MaxUint64 >> (64 - dt.Bits()))
}

// converted is what the host makes of an element: the reference of the operator
// cast decides, and between floats the functions of package dtype say what
// becomes of a NaN.
func converted(t *testing.T, to, from dtype.DType, b uint64) uint64 {
	want := ref.Cast(ref.Decode(from, word(b, 8), 0), to, true, dtype.RoundNearest)
	if !to.IsFloat() || !from.IsFloat() {
		return want
	}
	got := rounded(to, from, b)
	if !ref.SameBits(to, word(got, 8), 0, want) {
		t.Fatalf("%s %#x to %s: dtype has %#x, the reference %#x", from, b, to, got, want)
	}
	return got
}

// rounded converts between floats.
func rounded(to, from dtype.DType, b uint64) uint64 {
	x := math.Float64frombits(b)
	var narrow float32
	switch from {
	case dtype.F64:
		if narrow = dtype.RoundToOdd(x); to == dtype.F32 {
			narrow = float32(x)
		}
	case dtype.F32:
		narrow = math.Float32frombits(uint32(b))
	case dtype.F16:
		narrow = dtype.Float16(b).Float32()
	default:
		narrow = dtype.BFloat16(b).Float32()
	}
	switch to {
	case dtype.F64:
		return math.Float64bits(float64(narrow))
	case dtype.F32:
		return uint64(math.Float32bits(narrow))
	case dtype.F16:
		return uint64(dtype.Float16FromFloat32(narrow))
	}
	return uint64(dtype.BFloat16FromFloat32(narrow))
}

// TestConvert compares every conversion with the host, bit by bit, over layouts
// and in place.
func TestConvert(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for _, from := range types {
		for _, to := range types {
			if from == to {
				continue
			}
			for i := range 6 {
				size := sizes(r)
				if i < 2 {
					size = []int64{700}
				}
				src, end := layout(r, size, from.Size(), 64, i%2 == 0)
				dst, end := layout(r, size, to.Size(), end+64, false)
				if i%2 == 1 && from.Size() == to.Size() {
					dst = src
				}
				h := newHeap(end + 64)
				each(size, []place{src}, func(at []int) { h.put(at[0], word(value(r, from), from.Size())) })
				want := append([]byte(nil), h.data...)
				each(size, []place{dst, src}, func(at []int) {
					copy(want[at[0]:], word(converted(t, to, from, bits(h.data, at[1], from.Size())), to.Size()))
				})
				l, err := kernels.Convert(dst.operand(), to, src.operand(), from, size)
				if err != nil {
					t.Fatal(err)
				}
				before := append([]byte(nil), h.data...)
				run(t, h, l, uint64(i%3))
				each(size, []place{dst, src}, func(at []int) {
					if got, want := bits(h.data, at[0], to.Size()), bits(want, at[0], to.Size()); got != want {
						t.Fatalf("%s %#x to %s: got %#x, want %#x", from, bits(before, at[1], from.Size()), to, got, want)
					}
				})
				compare(t, fmt.Sprint(from, " to ", to, size, dst, src), h, want)
			}
		}
	}
}

// TestHalves converts every half to f32 and back.
func TestHalves(t *testing.T) {
	const n = 1 << 16
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		h := newHeap(8*n + 16)
		for i := range n {
			h.put(2*i, word(uint64(i), 2))
		}
		at := func(offset, stride int) kernels.Operand { return place{offset, []int64{int64(stride)}}.operand() }
		for _, c := range []struct {
			to, from dtype.DType
			dst, src kernels.Operand
		}{{dtype.F32, dt, at(2*n, 4), at(0, 2)}, {dt, dtype.F32, at(6*n, 2), at(2*n, 4)}} {
			l, err := kernels.Convert(c.dst, c.to, c.src, c.from, []int64{n})
			if err != nil {
				t.Fatal(err)
			}
			run(t, h, l, 0)
		}
		for i := range n {
			wide := rounded(dtype.F32, dt, uint64(i))
			if got := bits(h.data, 2*n+4*i, 4); got != wide {
				t.Fatalf("%s %#x to f32: got %#x, want %#x", dt, i, got, wide)
			}
			if got, want := bits(h.data, 6*n+2*i, 2), rounded(dt, dtype.F32, wide); got != want {
				t.Fatalf("f32 %#x to %s: got %#x, want %#x", wide, dt, got, want)
			}
		}
	}
}
