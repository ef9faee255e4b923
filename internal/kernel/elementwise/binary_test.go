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

// shapePairs are broadcasts of every kind: equal, scalar, inner, outer, both
// ways, empty.
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
			f := table.Binaries()[slices.IndexFunc(table.Binaries(), row)]
			if f.Types&table.Floats != 0 {
				if ref.BinaryOf(f.Name) == nil {
					t.Fatal(f.Name + noReference)
				}
				for _, p := range shapePairs {
					binaryF32(t, v, op, f, p[0], p[1])
				}
				binarySpecials(t, v, op, f)
				binaryStrided(t, v, op, f)
				binaryHalf(t, v, op, f)
			}
			if f.Formula != nil && !roundsOnce(op, f) {
				return // integers are computed in f64
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

// roundsOnce reports whether all results of a function in float64 are those of
// the reference, and those in 16-bit floats rounded from them.
func roundsOnce(op kernel.BinaryOp, f *table.Binary) bool {
	return f.Formula == nil || op == kernel.Prelu
}

func binaryF32(t *testing.T, v *kernel.Variant, op kernel.BinaryOp, f *table.Binary, aShape, bShape []int) {
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

	wide := make([]float64, len(want))
	kerneltest.InRanges(n.Elements(), func(lo, hi int) {
		elementwise.BinaryF64(v, op, n, lo, hi, wide, kerneltest.F64s(av), kerneltest.F64s(bv))
	})
	if roundsOnce(op, f) {
		kerneltest.WantValues(t, dst, want, 2)
		kerneltest.WantEqual(t, wide, want)
	}
	pairs := ref.Zip(av, aShape, bv, bShape, func(x, y float32) [2]float32 { return [2]float32{x, y} })
	if fault := binaryFault(f, ref.BinaryOf(f.Name), pairs, dst, wide); fault != "" {
		t.Fatal(fault)
	}

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

// binarySpecials meets every special number with every other, as vectors and as
// a scalar on each side.
func binarySpecials(t *testing.T, v *kernel.Variant, op kernel.BinaryOp, f *table.Binary) {
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
			if !isWithin(f, x, dst[i], want) {
				t.Fatalf("%s(%v, %v): got %v, want %v", op, x, y, dst[i], want)
			}
			i++
			return true
		})
	}
}

// binaryStrided compares the results of operands with gaps, which are taken
// backwards, with those of rows, to the bit.
func binaryStrided(t *testing.T, v *kernel.Variant, op kernel.BinaryOp, f *table.Binary) {
	t.Helper()
	const n = 37
	r, s := kerneltest.NewRand(9), kerneltest.NewSpace(t)
	av, bv := kerneltest.Uniform(r, 2*n), kerneltest.Uniform(r, 3*n)
	a, b, dst := kerneltest.In(s, "a", av), kerneltest.In(s, "b", bv), kerneltest.InOut(s, "dst", make([]float32, 2*n))
	var nest kernel.Nest
	nest.Prepare([]int{n}, []int{2}, []int{-2}, []int{3})
	nest.SetBase(1, 2*n-2)
	kerneltest.InRanges(n, func(lo, hi int) { elementwise.BinaryF32(v, op, &nest, lo, hi, dst, a, b) })
	s.Check()
	wide := make([]float64, 2*n)
	kerneltest.InRanges(n, func(lo, hi int) {
		elementwise.BinaryF64(v, op, &nest, lo, hi, wide, kerneltest.F64s(av), kerneltest.F64s(bv))
	})
	pairs, got, got64 := make([][2]float32, n), make([]float32, n), make([]float64, n)
	for i := range n {
		pairs[i], got[i], got64[i] = [2]float32{av[2*n-2-2*i], bv[3*i]}, dst[2*i], wide[2*i]
		if dst[2*i+1] != 0 || wide[2*i+1] != 0 {
			t.Fatalf("%s: element %d of the output is between its elements and was written", op, 2*i+1)
		}
	}
	if fault := binaryFault(f, ref.BinaryOf(f.Name), pairs, got, got64); fault != "" {
		t.Fatal(fault)
	}
}

func binaryHalf(t *testing.T, v *kernel.Variant, op kernel.BinaryOp, f *table.Binary) {
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
		rounded := func(v float64) float32 { return kerneltest.FromHalf(dt, kerneltest.ToHalf(dt, float32(v))) }
		exact := ref.Zip(av, aShape, bv, bShape, func(x, y uint16) float64 {
			return ref.Binary(op.String(), float64(kerneltest.FromHalf(dt, x)), float64(kerneltest.FromHalf(dt, y)))
		})
		got := ref.Map(dst, func(x uint16) float32 { return kerneltest.FromHalf(dt, x) })
		if roundsOnce(op, f) {
			kerneltest.WantEqual(t, got, ref.Map(exact, rounded))
			continue
		}
		for i, want := range exact { // the nearest half, or that of a float32 within the error of the function
			slack := math.Abs(want)*unitsAt(f.MaxError, float64(kerneltest.FromHalf(dt, av[i])))*0x1p-23 + f.MaxError.Absolute
			if lo, hi := rounded(want-slack), rounded(want+slack); !(lo <= got[i] && got[i] <= hi) && (got[i] == got[i] || want == want) {
				t.Fatalf("%s %s: element %d: got %v, want %v", dt, op, i, got[i], want)
			}
		}
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

// testBinaryStrides walks operands backwards, with gaps, and into a part of a
// larger output.
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
