package kerneltest

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// shapePairs are broadcasts of every kind: equal, scalar, inner, outer, both ways, empty.
var shapePairs = [][2][]int{
	{{}, {}}, {{5}, {}}, {{}, {17}}, {{33}, {33}}, {{3, 1}, {1, 4}}, {{2, 3, 4}, {4}}, {{2, 3, 4}, {3, 1}}, {{1, 3, 1}, {2, 3, 5}},
	{{2, 1, 3, 1, 5}, {4, 1, 6, 1}}, {{0, 3}, {3}}, {{7, 19}, {7, 19}}, {{7, 19}, {7, 1}}, {{1, 19}, {7, 1}},
}

// broadcastNest is the nest over an output and its operands, all contiguous.
func broadcastNest(to []int, shapes ...[]int) *kernel.Nest {
	strides := [][]int{rowMajor(to)}
	for _, s := range shapes {
		strides = append(strides, broadcastStrides(s, to))
	}
	n := new(kernel.Nest)
	n.Prepare(to, strides...)
	return n
}

// inRanges runs f over 0..n in ranges of odd sizes, last range first: the split must not matter.
func inRanges(n int, f func(lo, hi int)) {
	for hi := n; hi > 0; {
		lo := max(0, hi-1-hi%13)
		f(lo, hi)
		hi = lo
	}
}

func testBinary(t *testing.T, v *kernel.Variant) {
	for _, op := range kernel.BinaryOps() {
		t.Run(op.String(), func(t *testing.T) {
			if op.OnFloats() {
				for _, p := range shapePairs {
					binaryF32(t, v, op, p[0], p[1])
				}
				binarySpecials(t, v, op)
				binaryHalf(t, v, op)
			}
			binaryInt[int8](t, v, op)
			binaryInt[int16](t, v, op)
			binaryInt[int32](t, v, op)
			binaryInt[int64](t, v, op)
			binaryInt[uint8](t, v, op)
			binaryInt[uint16](t, v, op)
			binaryInt[uint32](t, v, op)
			binaryInt[uint64](t, v, op)
		})
	}
	t.Run("strides", with(v, testBinaryStrides))
}

func binaryF32(t *testing.T, v *kernel.Variant, op kernel.BinaryOp, aShape, bShape []int) {
	t.Helper()
	r := newRand(4)
	to := ref.BroadcastShape(aShape, bShape)
	n := broadcastNest(to, aShape, bShape)
	av, bv := uniform(r, ref.Size(aShape)), uniform(r, ref.Size(bShape))
	want := ref.Zip(av, aShape, bv, bShape, func(x, y float32) float64 { return ref.Binary(op.String(), float64(x), float64(y)) })

	s := newSpace(t)
	a, b, dst := in(s, "a", av), in(s, "b", bv), out[float32](s, "dst", len(want))
	inRanges(n.Elements(), func(lo, hi int) { elementwise.BinaryF32(v, op, n, lo, hi, dst, a, b) })
	s.check()
	wantValues(t, dst, want, 2)

	wide := make([]float64, len(want))
	inRanges(n.Elements(), func(lo, hi int) { elementwise.BinaryF64(v, op, n, lo, hi, wide, f64s(av), f64s(bv)) })
	wantEqual(t, wide, want)

	// In place on whichever operand has the output's shape.
	if slices.Equal(aShape, to) {
		place := inout(s, "a in place", av)
		elementwise.BinaryF32(v, op, n, 0, n.Elements(), place, place, b)
		wantEqual(t, place, dst)
	}
	if slices.Equal(bShape, to) {
		place := inout(s, "b in place", bv)
		elementwise.BinaryF32(v, op, n, 0, n.Elements(), place, a, place)
		wantEqual(t, place, dst)
	}
	s.check()
}

// binarySpecials meets every special number with every other, as vectors and as a scalar on each side.
func binarySpecials(t *testing.T, v *kernel.Variant, op kernel.BinaryOp) {
	t.Helper()
	k := len(specials)
	for _, shapes := range [][2][]int{{{k, 1}, {1, k}}, {{k, k}, {k, k}}, {{1, k}, {k, 1}}} {
		a, b := ref.Expand(specials, []int{k, 1}, shapes[0]), ref.Expand(specials, []int{k}, shapes[1])
		if shapes[0][0] == 1 {
			a, b = specials, specials
		}
		n := broadcastNest([]int{k, k}, shapes[0], shapes[1])
		s := newSpace(t)
		dst := out[float32](s, "dst", k*k)
		elementwise.BinaryF32(v, op, n, 0, k*k, dst, in(s, "a", a), in(s, "b", b))
		s.check()
		i := 0
		ref.Zip(a, shapes[0], b, shapes[1], func(x, y float32) bool {
			want := ref.Binary(op.String(), float64(x), float64(y))
			if !sameValue(dst[i], want, 2) {
				t.Fatalf("%s(%v, %v): got %v, want %v", op, x, y, dst[i], want)
			}
			i++
			return true
		})
	}
}

func binaryHalf(t *testing.T, v *kernel.Variant, op kernel.BinaryOp) {
	t.Helper()
	r := newRand(5)
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		aShape, bShape := []int{3, 37}, []int{3, 1}
		av, bv := make([]uint16, 111), make([]uint16, 3)
		for i := range av {
			av[i] = toHalf(dt, 4*r.Float32()-2)
		}
		for i := range bv {
			bv[i] = toHalf(dt, 4*r.Float32()-2)
		}
		n := broadcastNest(aShape, aShape, bShape)
		s := newSpace(t)
		a, b, dst := in(s, "a", av), in(s, "b", bv), out[uint16](s, "dst", len(av))
		scratch := out[float32](s, "scratch", 21)
		inRanges(n.Elements(), func(lo, hi int) { elementwise.BinaryHalf(v, op, n, lo, hi, dt, dst, a, b, scratch) })
		s.check()
		want := ref.Zip(av, aShape, bv, bShape, func(x, y uint16) float32 {
			return fromHalf(dt, toHalf(dt, float32(ref.Binary(op.String(), float64(fromHalf(dt, x)), float64(fromHalf(dt, y))))))
		})
		wantEqual(t, ref.Map(dst, func(x uint16) float32 { return fromHalf(dt, x) }), want)
	}
}

// intEdges gives pairs of the numbers at the ends of T, small ones, and random ones.
func intEdges[T kernel.Integer]() []T {
	r := newRand(6)
	var zero T
	x := []T{0, 1, 2, 3, 7, 8, ^zero, ^zero - 1, ^zero >> 1, 1 << (8*unsafe.Sizeof(zero) - 1)}
	for range 10 {
		x = append(x, T(r.Uint64()), T(r.IntN(20)-10))
	}
	return x
}

func toBig[T kernel.Integer](x T) *big.Int {
	if x < 0 {
		return big.NewInt(int64(x))
	}
	return new(big.Int).SetUint64(uint64(x))
}

// lowBits keeps what fits into T.
func lowBits[T kernel.Integer](x *big.Int) T {
	mask := new(big.Int).SetUint64(math.MaxUint64)
	return T(new(big.Int).And(x, mask).Uint64())
}

func binaryInt[T kernel.Integer](t *testing.T, v *kernel.Variant, op kernel.BinaryOp) {
	t.Helper()
	av := intEdges[T]()
	bv := av
	if op == kernel.Pow { // the reference does not wrap on the way: keep its exponents small
		bv = make([]T, len(av))
		for i := range bv {
			bv[i] = T(i % 9)
			if ^T(0) < 0 && i%9 > 6 {
				bv[i] = -bv[i]
			}
		}
	}
	k := len(av)
	n := broadcastNest([]int{k, k}, []int{k, 1}, []int{k})
	s := newSpace(t)
	a, b, dst := in(s, "a", av), in(s, "b", bv), out[T](s, "dst", k*k)
	inRanges(k*k, func(lo, hi int) { elementwise.BinaryInt(v, op, n, lo, hi, dst, a, b) })
	s.check()
	var zero T
	width := uint(8 * unsafe.Sizeof(zero))
	want := ref.Zip(av, []int{k, 1}, bv, []int{k}, func(x, y T) T {
		return lowBits[T](ref.BinaryInt(op.String(), toBig(x), toBig(y), width))
	})
	for i := range dst {
		if dst[i] != want[i] {
			t.Fatalf("%T %s(%v, %v): got %v, want %v", zero, op, av[i/k], bv[i%k], dst[i], want[i])
		}
	}
}

// testBinaryStrides walks operands backwards, with gaps, and into a part of a larger output.
func testBinaryStrides(t *testing.T, v *kernel.Variant) {
	r := newRand(7)
	s := newSpace(t)
	a, b := in(s, "a", uniform(r, 3*5)), in(s, "b", uniform(r, 4*10))
	dst := inout(s, "dst", make([]float32, 3*12))
	var n kernel.Nest
	n.Prepare([]int{3, 5}, []int{12, 2}, []int{5, -1}, []int{10, 2})
	n.SetBase(0, 1)
	n.SetBase(1, 4)
	n.SetBase(2, 10)
	inRanges(15, func(lo, hi int) { elementwise.BinaryF32(v, kernel.Sub, &n, lo, hi, dst, a, b) })
	s.check()
	want := make([]float32, len(dst))
	for i := range 3 {
		for j := range 5 {
			want[1+12*i+2*j] = a[5*i+4-j] - b[10+10*i+2*j]
		}
	}
	wantEqual(t, dst, want)
}
