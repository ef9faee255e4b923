package elementwise_test

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	table "github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// shapePairs are broadcasts of every kind: equal, scalar, inner, outer, both ways, empty.
var shapePairs = [][2][]int{
	{{}, {}}, {{5}, {}}, {{}, {17}}, {{33}, {33}}, {{3, 1}, {1, 4}}, {{2, 3, 4}, {4}}, {{2, 3, 4}, {3, 1}}, {{1, 3, 1}, {2, 3, 5}},
	{{2, 1, 3, 1, 5}, {4, 1, 6, 1}}, {{0, 3}, {3}}, {{7, 19}, {7, 19}}, {{7, 19}, {7, 1}}, {{1, 19}, {7, 1}},
}

// broadcastNest is the nest over an output and its operands, all contiguous.
func broadcastNest(to []int, shapes ...[]int) *kernel.Nest {
	strides := [][]int{kerneltest.RowMajor(to)}
	for _, s := range shapes {
		strides = append(strides, kerneltest.BroadcastStrides(s, to))
	}
	n := new(kernel.Nest)
	n.Prepare(to, strides...)
	return n
}

func TestBinary(t *testing.T) { kerneltest.EachVariant(t, testBinary) }

func testBinary(t *testing.T, v *kernel.Variant) {
	for _, op := range kernel.BinaryOps() {
		t.Run(op.String(), func(t *testing.T) {
			row := func(f *table.Binary) bool { return f.Name == op.String() && !f.Predicate }
			at := slices.IndexFunc(table.Binaries(), row)
			if table.Binaries()[at].Types&table.Floats != 0 {
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
	t.Run("strides", kerneltest.With(v, testBinaryStrides))
}

func binaryF32(t *testing.T, v *kernel.Variant, op kernel.BinaryOp, aShape, bShape []int) {
	t.Helper()
	r := kerneltest.NewRand(4)
	to := ref.BroadcastShape(aShape, bShape)
	n := broadcastNest(to, aShape, bShape)
	av, bv := kerneltest.Uniform(r, ref.Size(aShape)), kerneltest.Uniform(r, ref.Size(bShape))
	want := ref.Zip(av, aShape, bv, bShape, func(x, y float32) float64 { return ref.Binary(op.String(), float64(x), float64(y)) })

	s := kerneltest.NewSpace(t)
	a, b, dst := kerneltest.In(s, "a", av), kerneltest.In(s, "b", bv), kerneltest.Out[float32](s, "dst", len(want))
	kerneltest.InRanges(n.Elements(), func(lo, hi int) { elementwise.BinaryF32(v, op, n, lo, hi, dst, a, b) })
	s.Check()
	kerneltest.WantValues(t, dst, want, 2)

	wide := make([]float64, len(want))
	kerneltest.InRanges(n.Elements(), func(lo, hi int) {
		elementwise.BinaryF64(v, op, n, lo, hi, wide, kerneltest.F64s(av), kerneltest.F64s(bv))
	})
	kerneltest.WantEqual(t, wide, want)

	// In place on whichever operand has the output's shape.
	if slices.Equal(aShape, to) {
		place := kerneltest.InOut(s, "a in place", av)
		elementwise.BinaryF32(v, op, n, 0, n.Elements(), place, place, b)
		kerneltest.WantEqual(t, place, dst)
	}
	if slices.Equal(bShape, to) {
		place := kerneltest.InOut(s, "b in place", bv)
		elementwise.BinaryF32(v, op, n, 0, n.Elements(), place, a, place)
		kerneltest.WantEqual(t, place, dst)
	}
	s.Check()
}

// binarySpecials meets every special number with every other, as vectors and as a scalar on each side.
func binarySpecials(t *testing.T, v *kernel.Variant, op kernel.BinaryOp) {
	t.Helper()
	k := len(kerneltest.Specials)
	for _, shapes := range [][2][]int{{{k, 1}, {1, k}}, {{k, k}, {k, k}}, {{1, k}, {k, 1}}} {
		a, b := ref.Expand(kerneltest.Specials, []int{k, 1}, shapes[0]), ref.Expand(kerneltest.Specials, []int{k}, shapes[1])
		if shapes[0][0] == 1 {
			a, b = kerneltest.Specials, kerneltest.Specials
		}
		n := broadcastNest([]int{k, k}, shapes[0], shapes[1])
		s := kerneltest.NewSpace(t)
		dst := kerneltest.Out[float32](s, "dst", k*k)
		elementwise.BinaryF32(v, op, n, 0, k*k, dst, kerneltest.In(s, "a", a), kerneltest.In(s, "b", b))
		s.Check()
		i := 0
		ref.Zip(a, shapes[0], b, shapes[1], func(x, y float32) bool {
			want := ref.Binary(op.String(), float64(x), float64(y))
			if !kerneltest.SameValue(dst[i], want, 2) {
				t.Fatalf("%s(%v, %v): got %v, want %v", op, x, y, dst[i], want)
			}
			i++
			return true
		})
	}
}

func binaryHalf(t *testing.T, v *kernel.Variant, op kernel.BinaryOp) {
	t.Helper()
	r := kerneltest.NewRand(5)
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		aShape, bShape := []int{3, 37}, []int{3, 1}
		av, bv := make([]uint16, 111), make([]uint16, 3)
		for i := range av {
			av[i] = kerneltest.ToHalf(dt, 4*r.Float32()-2)
		}
		for i := range bv {
			bv[i] = kerneltest.ToHalf(dt, 4*r.Float32()-2)
		}
		n := broadcastNest(aShape, aShape, bShape)
		s := kerneltest.NewSpace(t)
		a, b, dst := kerneltest.In(s, "a", av), kerneltest.In(s, "b", bv), kerneltest.Out[uint16](s, "dst", len(av))
		scratch := kerneltest.Out[float32](s, "scratch", 21)
		kerneltest.InRanges(n.Elements(), func(lo, hi int) { elementwise.BinaryHalf(v, op, n, lo, hi, dt, dst, a, b, scratch) })
		s.Check()
		want := ref.Zip(av, aShape, bv, bShape, func(x, y uint16) float32 {
			return kerneltest.FromHalf(dt, kerneltest.ToHalf(dt, float32(ref.Binary(op.String(), float64(kerneltest.FromHalf(dt, x)), float64(kerneltest.FromHalf(dt, y))))))
		})
		kerneltest.WantEqual(t, ref.Map(dst, func(x uint16) float32 { return kerneltest.FromHalf(dt, x) }), want)
	}
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
	av := kerneltest.IntEdges[T]()
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
	s := kerneltest.NewSpace(t)
	a, b, dst := kerneltest.In(s, "a", av), kerneltest.In(s, "b", bv), kerneltest.Out[T](s, "dst", k*k)
	kerneltest.InRanges(k*k, func(lo, hi int) { elementwise.BinaryInt(v, op, n, lo, hi, dst, a, b) })
	s.Check()
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
	r := kerneltest.NewRand(7)
	s := kerneltest.NewSpace(t)
	a, b := kerneltest.In(s, "a", kerneltest.Uniform(r, 3*5)), kerneltest.In(s, "b", kerneltest.Uniform(r, 4*10))
	dst := kerneltest.InOut(s, "dst", make([]float32, 3*12))
	var n kernel.Nest
	n.Prepare([]int{3, 5}, []int{12, 2}, []int{5, -1}, []int{10, 2})
	n.SetBase(0, 1)
	n.SetBase(1, 4)
	n.SetBase(2, 10)
	kerneltest.InRanges(15, func(lo, hi int) { elementwise.BinaryF32(v, kernel.Sub, &n, lo, hi, dst, a, b) })
	s.Check()
	want := make([]float32, len(dst))
	for i := range 3 {
		for j := range 5 {
			want[1+12*i+2*j] = a[5*i+4-j] - b[10+10*i+2*j]
		}
	}
	kerneltest.WantEqual(t, dst, want)
}
