package elementwise_test

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// laneLengths meet every remainder of groups of up to 40 elements, groups of 64
// several times, and rows that are cut into pieces.
var laneLengths = func() []int {
	var list []int
	for n := 1; n <= 40; n++ {
		list = append(list, n)
	}
	return append(list, 63, 64, 65, 127, 128, 129, 130, 200, 257, 320+63, 16<<10+65)
}()

func TestElements(t *testing.T) { kerneltest.EachVariant(t, testElements) }

// testElements runs elementwise loops on rows of all lengths, both operands
// rows and one of them one element, in place too.
func testElements(t *testing.T, v *kernel.Variant) {
	loopRows(t, v, kerneltest.Cycle(kerneltest.F64s(kerneltest.Specials)))
	loopRows(t, v, kerneltest.Cycle(kerneltest.Specials))
	loopRows(t, v, kerneltest.Cycle(kerneltest.IntEdges[int8]()))
	loopRows(t, v, kerneltest.Cycle(kerneltest.IntEdges[uint8]()))
	loopRows(t, v, kerneltest.Cycle(kerneltest.IntEdges[int16]()))
	loopRows(t, v, kerneltest.Cycle(kerneltest.IntEdges[uint16]()))
	loopRows(t, v, kerneltest.Cycle(kerneltest.IntEdges[int32]()))
	loopRows(t, v, kerneltest.Cycle(kerneltest.IntEdges[uint32]()))
	loopRows(t, v, kerneltest.Cycle(kerneltest.IntEdges[int64]()))
	loopRows(t, v, kerneltest.Cycle(kerneltest.IntEdges[uint64]()))
	t.Run("logic", kerneltest.With(v, elementLogic))
	t.Run("where", func(t *testing.T) {
		loopWhere[uint8](t, v)
		loopWhere[uint16](t, v)
		loopWhere[uint32](t, v)
		loopWhere[uint64](t, v)
	})
	t.Run("cast", kerneltest.With(v, elementCasts))
	t.Run("functions", kerneltest.With(v, elementFunctions))
}

func loopRows[T kernel.Number](t *testing.T, v *kernel.Variant, values func(n, from int) []T) {
	dt := dtype.Of[T]()
	t.Run(dt.String(), func(t *testing.T) {
		for _, n := range laneLengths {
			a, b := values(n, 3), values(n, 5)
			for form := range 3 {
				for _, op := range kernel.PredicateOps() {
					loopPredicate(t, v, op, form, a, b)
				}
				for _, op := range loopBinaryOps(dt) {
					loopBinary(t, v, op, form, a, b)
				}
			}
			loopUnary(t, v, a)
			loopClamp(t, v, a, b[0], values(1, 11)[0])
		}
	})
}

func loopBinaryOps(dt dtype.DType) []kernel.BinaryOp {
	if dt.IsFloat() {
		return []kernel.BinaryOp{kernel.Add, kernel.Sub, kernel.Mul, kernel.Div, kernel.Min, kernel.Max}
	}
	return []kernel.BinaryOp{kernel.Add, kernel.Sub, kernel.Mul, kernel.Min, kernel.Max, kernel.BitwiseAnd, kernel.BitwiseOr, kernel.BitwiseXor}
}

// loopNest walks n elements of three operands, of which form says which is one
// element: 1 the second, 2 the first.
func loopNest(n, form int) *kernel.Nest {
	step := []int{1, 1}
	if form > 0 {
		step[2-form] = 0
	}
	nest := new(kernel.Nest)
	nest.Prepare([]int{n}, []int{1}, step[:1], step[1:])
	return nest
}

func loopFormed[T any](a, b []T, form int) (x, y []T) {
	switch form {
	case 1:
		return a, b[:1]
	case 2:
		return a[:1], b
	}
	return a, b
}

// pairs calls f with the elements that meet.
func pairs[T any](n int, a, b []T, f func(i int, x, y T)) {
	for i := range n {
		f(i, a[i%len(a)], b[i%len(b)])
	}
}

func loopPredicate[T kernel.Number](t *testing.T, v *kernel.Variant, op kernel.PredicateOp, form int, av, bv []T) {
	t.Helper()
	n := len(av)
	x, y := loopFormed(av, bv, form)
	s := kerneltest.NewSpace(t)
	a, b, dst := kerneltest.In(s, "a", x), kerneltest.In(s, "b", y), kerneltest.Out[uint8](s, "dst", n)
	elementwise.Predicate(v, op, loopNest(n, form), 0, n, dst, a, b)
	s.Check()
	pairs(n, a, b, func(i int, x, y T) {
		if want := truth(ref.Predicate(op.String(), order(x, y), x != 0, y != 0)); dst[i] != want {
			t.Fatalf("%s, form %d, %d elements: element %d: %v and %v gave %d, want %d", op, form, n, i, x, y, dst[i], want)
		}
	})
}

func loopBinary[T kernel.Number](t *testing.T, v *kernel.Variant, op kernel.BinaryOp, form int, av, bv []T) {
	t.Helper()
	n := len(av)
	x, y := loopFormed(av, bv, form)
	nest := loopNest(n, form)
	s := kerneltest.NewSpace(t)
	a, b, dst := kerneltest.In(s, "a", x), kerneltest.In(s, "b", y), kerneltest.Out[T](s, "dst", n)
	runBinary(v, op, nest, dst, a, b)
	if form != 2 {
		place := kerneltest.InOut(s, "in place", x)
		runBinary(v, op, nest, place, place, b)
		wantSame(t, place, dst)
	}
	if form != 1 {
		place := kerneltest.InOut(s, "in place", y)
		runBinary(v, op, nest, place, a, place)
		wantSame(t, place, dst)
	}
	s.Check()
	if dtype.Of[T]() == dtype.F32 {
		return // testBinary has it
	}
	pairs(n, a, b, func(i int, x, y T) {
		if want := loopWant(op, x, y); dst[i] != want && (dst[i] == dst[i] || want == want) {
			t.Fatalf("%s, form %d, %d elements: element %d: %v and %v gave %v, want %v", op, form, n, i, x, y, dst[i], want)
		}
	})
}

func runBinary[T kernel.Number](v *kernel.Variant, op kernel.BinaryOp, n *kernel.Nest, dst, a, b []T) {
	switch d := any(dst).(type) {
	case []float32:
		elementwise.BinaryF32(v, op, n, 0, n.Elements(), d, any(a).([]float32), any(b).([]float32))
	case []float64:
		elementwise.BinaryF64(v, op, n, 0, n.Elements(), d, any(a).([]float64), any(b).([]float64))
	case []int8:
		elementwise.BinaryInt(v, op, n, 0, n.Elements(), d, any(a).([]int8), any(b).([]int8))
	case []uint8:
		elementwise.BinaryInt(v, op, n, 0, n.Elements(), d, any(a).([]uint8), any(b).([]uint8))
	case []int16:
		elementwise.BinaryInt(v, op, n, 0, n.Elements(), d, any(a).([]int16), any(b).([]int16))
	case []uint16:
		elementwise.BinaryInt(v, op, n, 0, n.Elements(), d, any(a).([]uint16), any(b).([]uint16))
	case []int32:
		elementwise.BinaryInt(v, op, n, 0, n.Elements(), d, any(a).([]int32), any(b).([]int32))
	case []uint32:
		elementwise.BinaryInt(v, op, n, 0, n.Elements(), d, any(a).([]uint32), any(b).([]uint32))
	case []int64:
		elementwise.BinaryInt(v, op, n, 0, n.Elements(), d, any(a).([]int64), any(b).([]int64))
	case []uint64:
		elementwise.BinaryInt(v, op, n, 0, n.Elements(), d, any(a).([]uint64), any(b).([]uint64))
	}
}

func runUnary[T kernel.Number](v *kernel.Variant, op kernel.UnaryOp, dst, src []T) {
	switch d := any(dst).(type) {
	case []float32:
		elementwise.UnaryF32(v, op, d, any(src).([]float32), 0, 0)
	case []float64:
		elementwise.UnaryF64(v, op, d, any(src).([]float64), 0, 0)
	case []int8:
		elementwise.UnaryInt(v, op, d, any(src).([]int8))
	case []uint8:
		elementwise.UnaryInt(v, op, d, any(src).([]uint8))
	case []int16:
		elementwise.UnaryInt(v, op, d, any(src).([]int16))
	case []uint16:
		elementwise.UnaryInt(v, op, d, any(src).([]uint16))
	case []int32:
		elementwise.UnaryInt(v, op, d, any(src).([]int32))
	case []uint32:
		elementwise.UnaryInt(v, op, d, any(src).([]uint32))
	case []int64:
		elementwise.UnaryInt(v, op, d, any(src).([]int64))
	case []uint64:
		elementwise.UnaryInt(v, op, d, any(src).([]uint64))
	}
}

// loopWant is op on two elements, in Go's own arithmetic: ref's is of large
// integers, and too slow for all of these.
func loopWant[T kernel.Number](op kernel.BinaryOp, x, y T) T {
	bitwise := func(f func(p, q int64) int64) T { return T(f(int64(x), int64(y))) }
	switch op {
	case kernel.Add:
		return x + y
	case kernel.Sub:
		return x - y
	case kernel.Mul:
		return x * y
	case kernel.Div:
		return x / y
	case kernel.Min:
		return min(x, y)
	case kernel.Max:
		return max(x, y)
	case kernel.BitwiseAnd:
		return bitwise(func(p, q int64) int64 { return p & q })
	case kernel.BitwiseOr:
		return bitwise(func(p, q int64) int64 { return p | q })
	}
	return bitwise(func(p, q int64) int64 { return p ^ q })
}

// wantSame is wantEqual of rows that were computed alike: NaN equals NaN.
func wantSame[T kernel.Number](t *testing.T, got, want []T) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("element %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func loopUnary[T kernel.Number](t *testing.T, v *kernel.Variant, x []T) {
	t.Helper()
	ops := []kernel.UnaryOp{kernel.Relu, kernel.Abs, kernel.Neg}
	if _, ok := any(x).([]float64); ok {
		ops = append(ops, kernel.Sqrt, kernel.Floor, kernel.Ceil, kernel.Round)
	}
	for _, op := range ops {
		s := kerneltest.NewSpace(t)
		src, dst, place := kerneltest.In(s, "src", x), kerneltest.Out[T](s, "dst", len(x)), kerneltest.InOut(s, "in place", x)
		runUnary(v, op, dst, src)
		runUnary(v, op, place, place)
		s.Check()
		wantSame(t, place, dst)
		for i, v := range x {
			want := -v
			switch {
			case dtype.Of[T]().IsFloat():
				want = T(ref.Unary(op.String(), float64(v), 0, 0))
			case op == kernel.Relu:
				want = max(v, 0)
			case op == kernel.Abs && v >= 0:
				want = v
			}
			if dst[i] != want && (dst[i] == dst[i] || want == want) {
				t.Fatalf("%s, %d elements: element %d: %v gave %v, want %v", op, len(x), i, v, dst[i], want)
			}
		}
	}
}

func loopClamp[T kernel.Number](t *testing.T, v *kernel.Variant, x []T, lo, hi T) {
	t.Helper()
	for _, limits := range [][2]T{{lo, hi}, {hi, lo}} {
		s := kerneltest.NewSpace(t)
		src, dst, place := kerneltest.In(s, "src", x), kerneltest.Out[T](s, "dst", len(x)), kerneltest.InOut(s, "in place", x)
		elementwise.Clamp(v, dst, src, limits[0], limits[1])
		elementwise.Clamp(v, place, place, limits[0], limits[1])
		s.Check()
		wantSame(t, place, dst)
		for i, v := range x {
			if want := min(max(v, limits[0]), limits[1]); dst[i] != want && (dst[i] == dst[i] || want == want) {
				t.Fatalf("clamp, %d elements: element %d: %v in %v gave %v, want %v", len(x), i, v, limits, dst[i], want)
			}
		}
	}
}

// within reports whether got is want, give or take some units in the last
// place.
func within(got, want, units float64) bool {
	_, exp := math.Frexp(want)
	return math.Abs(got-want) <= units*math.Ldexp(1, max(exp-53, -1074)) || got == want || got != got && want != want
}

// elementFunctions holds exponentials and logarithms in float64 to two units in
// the last place, and to the same bits at every place of a row.
func elementFunctions(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(110)
	x := kerneltest.F64s(kerneltest.Specials)
	for range 20_000 {
		x = append(x, math.Float64frombits(r.Uint64()), 1500*r.Float64()-750, 4*r.Float64()-2, math.Float64frombits(r.Uint64N(1<<53)))
	}
	for k := -1075; k < 1025; k++ {
		p := math.Ldexp(1, k)
		x = append(x, p, math.Nextafter(p, 0), math.Nextafter(p, 2*p), p*math.Sqrt2, math.Ln2*float64(k), math.Nextafter(1, p))
	}
	for _, op := range []kernel.UnaryOp{kernel.Exp, kernel.Log} {
		s := kerneltest.NewSpace(t)
		dst, place := kerneltest.Out[float64](s, "dst", len(x)), kerneltest.InOut(s, "in place", x)
		elementwise.UnaryF64(v, op, dst, kerneltest.In(s, "x", x), 0, 0)
		elementwise.UnaryF64(v, op, place, place, 0, 0)
		s.Check()
		wantSame(t, place, dst)
		for i, v := range x {
			want := ref.Unary(op.String(), v, 0, 0)
			other := want
			// The library's functions are wrong at the ends of the range, on
			// amd64.
			switch {
			case op == kernel.Exp && v > 709:
				other = math.Exp(v/2) * math.Exp(v/2)
			case op == kernel.Log && v < 0x1p-1022:
				other = math.Log(v*0x1p54) - 54*math.Ln2
			}
			if !within(dst[i], want, 2) && !within(dst[i], other, 4) {
				t.Fatalf("%s of %v: got %v, want %v", op, v, dst[i], want)
			}
		}
		for n := 1; n <= 40; n++ {
			for from := range 8 {
				s := kerneltest.NewSpace(t)
				part := kerneltest.Out[float64](s, "part", n)
				elementwise.UnaryF64(v, op, part, kerneltest.In(s, "x", x[from:from+n]), 0, 0)
				s.Check()
				wantSame(t, part, dst[from:from+n])
			}
		}
	}
}
