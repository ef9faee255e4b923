package reduce_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

var reduceNames = map[reduce.Kind]string{
	reduce.Sum: "sum", reduce.Mean: "mean", reduce.Prod: "prod", reduce.Max: "max", reduce.Min: "min", reduce.L1: "l1",
	reduce.L2: "l2", reduce.SumSquare: "sum_square", reduce.LogSum: "log_sum", reduce.LogSumExp: "log_sum_exp",
}

var reduceShapes = [][]int{{}, {7}, {100}, {3, 5}, {33, 40}, {4, 1, 6}, {2, 3, 4, 5}, {3, 70, 2}, {2, 2, 2, 2, 3}, {3, 0, 2}, {5, 16}, {40, 17}, {3, 70, 31}, {2, 3, 2, 300}}

func TestReduce(t *testing.T) { kerneltest.EachVariant(t, testReduce) }

func testReduce(t *testing.T, v *kernel.Variant) {
	for kind, name := range reduceNames {
		t.Run(name, func(t *testing.T) {
			for _, shape := range reduceShapes {
				for mask := range 1 << len(shape) {
					reduced := make([]bool, len(shape))
					for i := range reduced {
						reduced[i] = mask>>i&1 != 0
					}
					reduceFloats(t, v, kind, shape, reduced)
					reduceInts(t, v, kind, shape, reduced)
				}
			}
		})
	}
	t.Run("specials", kerneltest.With(v, testReduceSpecials))
	t.Run("arg", kerneltest.With(v, testArgExtreme))
	t.Run("long", kerneltest.With(v, testReduceLong))
}

func runReduce[T kernel.Number](v *kernel.Variant, s *kerneltest.Space, kind reduce.Kind, shape []int, reduced []bool, x []T) []T {
	var r reduce.Reduction
	r.Prepare(kind, shape, reduced)
	src, dst := kerneltest.In(s, "src", x), kerneltest.Out[T](s, "dst", r.Count)
	kerneltest.Backwards(r.Tiles(), func(i int) { reduce.Tile(v, &r, i, dst, src) })
	if f, ok := any(src).([]float32); ok && r.ByColumns() {
		columns := kerneltest.Out[float32](s, "by columns", r.Count)
		scratch := kerneltest.Out[float64](s, "scratch", reduce.ColumnScratch)
		kerneltest.Backwards(r.ColumnTiles(), func(i int) { reduce.Columns(v, &r, i, scratch, columns, f) })
		dst = any(columns).([]T)
	}
	s.Check()
	return dst
}

func reduceFloats(t *testing.T, v *kernel.Variant, kind reduce.Kind, shape []int, reduced []bool) {
	t.Helper()
	x := kerneltest.Uniform(kerneltest.NewRand(40), ref.Size(shape))
	if kind == reduce.LogSum {
		for i := range x {
			x[i] += 1.5
		}
	}
	want := ref.Reduce(reduceNames[kind], kerneltest.F64s(x), shape, reduced)
	got := runReduce(v, kerneltest.NewSpace(t), kind, shape, reduced, x)
	wide := runReduce(v, kerneltest.NewSpace(t), kind, shape, reduced, kerneltest.F64s(x))
	if len(got) != len(want) {
		t.Fatalf("%v %v: got %d results, want %d", shape, reduced, len(got), len(want))
	}
	for i, w := range want {
		// Sums of numbers of the size of 1 that cancel keep an absolute error.
		slack := 1e-6 * math.Max(1, math.Abs(w))
		if !kerneltest.SameValue(got[i], w, 4) && !(math.Abs(float64(got[i])-w) <= slack) {
			t.Fatalf("%v %v: result %d: got %v, want %v", shape, reduced, i, got[i], w)
		}
		if wide[i] != w && !(math.Abs(wide[i]-w) <= 1e-12*math.Max(1, math.Abs(w))) && (wide[i] == wide[i] || w == w) {
			t.Fatalf("%v %v: result %d in float64: got %v, want %v", shape, reduced, i, wide[i], w)
		}
	}
}

// reduceInts compares what floats can say of integers: exact results, of
// non-empty axes.
func reduceInts(t *testing.T, v *kernel.Variant, kind reduce.Kind, shape []int, reduced []bool) {
	t.Helper()
	if kind == reduce.Prod || kind == reduce.LogSum || kind == reduce.LogSumExp || ref.Size(shape) == 0 {
		return
	}
	x := ref.Map(kerneltest.Small(kerneltest.NewRand(41), ref.Size(shape)), func(v float32) int32 { return int32(v) })
	wide := ref.Map(x, func(v int32) float64 { return float64(v) })
	want := ref.Map(ref.Reduce(reduceNames[kind], wide, shape, reduced), func(v float64) int32 { return int32(v) })
	got := runReduce(v, kerneltest.NewSpace(t), kind, shape, reduced, x)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v %v of int32: result %d: got %v, want %v", shape, reduced, i, got[i], want[i])
		}
	}
}

func testReduceSpecials(t *testing.T, v *kernel.Variant) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for kind, name := range reduceNames {
		for _, x := range [][]float32{{1, nan, 2}, {1, inf, 2}, {-inf, -inf}, {inf, -inf, 1}, {1e30, 1e30}, {100, 101}, {-200, -300}} {
			for _, inner := range []int{1, 3, 20} { // along rows, and along columns
				wide := ref.Expand(x, []int{len(x), 1}, []int{len(x), inner})
				shape, reduced := []int{len(x), inner}, []bool{true, false}
				want := ref.Reduce(name, kerneltest.F64s(wide), shape, reduced)
				got := runReduce(v, kerneltest.NewSpace(t), kind, shape, reduced, wide)
				for i := range want {
					if !kerneltest.SameValue(got[i], want[i], 4) {
						t.Fatalf("%s of %v: got %v, want %v", name, x, got[i], want[i])
					}
				}
			}
		}
	}
	if got := runReduce(v, kerneltest.NewSpace(t), reduce.Max, []int{0}, []bool{true}, []int8{}); got[0] != -128 {
		t.Fatalf("max of no int8: got %d, want -128", got[0])
	}
	if got := runReduce(v, kerneltest.NewSpace(t), reduce.Min, []int{0}, []bool{true}, []uint16{}); got[0] != 65535 {
		t.Fatalf("min of no uint16: got %d, want 65535", got[0])
	}
}

// testReduceLong sums so many numbers that naive float32 would lose the small
// ones.
func testReduceLong(t *testing.T, v *kernel.Variant) {
	x := make([]float32, 1<<18)
	for i := range x {
		x[i] = 0.1
	}
	want := float64(x[0]) * float64(len(x))
	for _, shape := range [][]int{{1 << 18}, {1 << 17, 2}, {1 << 13, 32}} {
		reduced := []bool{true, false}[:len(shape)]
		got := runReduce(v, kerneltest.NewSpace(t), reduce.Sum, shape, reduced, x)
		if w := want / float64(len(got)); math.Abs(float64(got[0])-w) > 2e-6*w {
			t.Fatalf("sum of %v: got %v, want %v", shape, got[0], w)
		}
	}
}

func testArgExtreme(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(42)
	for _, dims := range [][3]int{{1, 1, 1}, {2, 7, 3}, {3, 40, 1}, {1, 5, 20}} {
		x := kerneltest.Small(r, dims[0]*dims[1]*dims[2])
		for _, nan := range []bool{false, true} {
			if nan {
				x[len(x)/2] = float32(math.NaN())
			}
			for mode := range 4 {
				smallest, last := mode&1 != 0, mode&2 != 0
				s := kerneltest.NewSpace(t)
				dst := kerneltest.Out[int64](s, "dst", dims[0]*dims[2])
				reduce.ArgExtreme(v, dst, kerneltest.In(s, "src", x), dims[0], dims[1], dims[2], smallest, last)
				s.Check()
				kerneltest.WantEqual(t, dst, ref.ArgExtreme(kerneltest.F64s(x), dims[0], dims[1], dims[2], smallest, last))
			}
		}
	}
}

func TestSoftmax(t *testing.T) { kerneltest.EachVariant(t, testSoftmax) }

func testSoftmax(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(43)
	for _, dims := range [][3]int{{1, 1, 1}, {3, 7, 1}, {2, 33, 1}, {5, 1000, 1}, {7, 64, 1}, {33, 1024, 1}, {2, 5, 3}, {1, 40, 70}, {3, 4, 1000}, {0, 3, 2}} {
		for _, log := range []bool{false, true} {
			x := ref.Map(kerneltest.Uniform(r, dims[0]*dims[1]*dims[2]), func(v float32) float32 { return 30 * v })
			softmaxCase(t, v, fmt.Sprint(dims, log), dims, log, x)
		}
	}
	inf := float32(math.Inf(1))
	softmaxCase(t, v, "masked", [3]int{1, 4, 1}, false, []float32{-inf, 1, -inf, 2})
	softmaxCase(t, v, "all masked", [3]int{1, 3, 1}, false, []float32{-inf, -inf, -inf})
	softmaxCase(t, v, "NaN", [3]int{2, 2, 1}, false, []float32{float32(math.NaN()), 0, 1, 2})
	softmaxCase(t, v, "far apart", [3]int{1, 3, 1}, true, []float32{3e38, -3e38, 0})
	for _, odd := range [][3]float32{{-inf, -inf, -inf}, {inf, 1, -inf}, {float32(math.NaN()), 5, 1}, {inf, inf, float32(math.NaN())}, {-inf, 1, 2}} {
		for row := range 7 { // among others
			x := ref.Map(kerneltest.Uniform(r, 7*21), func(v float32) float32 { return v - 20 })
			for i := range 21 {
				x[21*row+i] = odd[i%3]
			}
			softmaxCase(t, v, fmt.Sprint("row ", row, " of ", odd), [3]int{7, 21, 1}, false, x)
		}
	}
	for n := 1; n <= 40; n++ { // the elements after a row are larger than all of it
		softmaxCase(t, v, fmt.Sprint("low ", n), [3]int{9, n, 1}, false, ref.Map(kerneltest.Uniform(r, 9*n), func(v float32) float32 { return v - 1000 }))
	}
	for _, dims := range [][3]int{{512, 3, 1}, {3, 512, 1}, {1, 512, 3}} {
		far := make([]float32, dims[0]*dims[1]*dims[2])
		for i := range far { // down to where no float32 is left, and to where numbers are no longer exact
			far[i] = 1000 - float32(i)*(120.0/1536)
			if i%7 == 0 {
				far[i] = -float32(i) * 1e6
			}
		}
		softmaxCase(t, v, fmt.Sprint("far down ", dims), dims, false, far)
	}
	softmaxCertain(t, v)
}

// softmaxCertain has one element per row that counts: its probability is 1, and
// the logarithm of that is 0, neither of them nearly.
func softmaxCertain(t *testing.T, v *kernel.Variant) {
	inf := float32(math.Inf(1))
	for _, dims := range [][3]int{{3, 1, 1}, {2, 3, 1}, {5, 40, 1}, {1, 1, 70}, {2, 3, 20}} {
		x := make([]float32, dims[0]*dims[1]*dims[2])
		want := map[bool][]float32{false: make([]float32, len(x)), true: make([]float32, len(x))}
		for i := range x {
			if x[i] = -12.25 + float32(i)/8; i/dims[2]%dims[1] > 0 {
				x[i], want[true][i] = -inf, -inf
			} else {
				want[false][i] = 1
			}
		}
		for log, want := range want {
			spec := reduce.Softmax{Outer: dims[0], Axis: dims[1], Inner: dims[2], Log: log}
			scratch, dst := make([]float64, spec.ScratchBytes()/8), make([]float32, len(x))
			for i := range spec.Tiles() {
				reduce.SoftmaxTile(v, &spec, i, scratch, dst, x)
			}
			kerneltest.WantEqual(t, dst, want)
		}
	}
}

func softmaxCase(t *testing.T, v *kernel.Variant, name string, dims [3]int, log bool, x []float32) {
	t.Helper()
	spec := reduce.Softmax{Outer: dims[0], Axis: dims[1], Inner: dims[2], Log: log}
	s := kerneltest.NewSpace(t)
	src, dst, place, wide := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "dst", len(x)), kerneltest.InOut(s, "in place", x), kerneltest.F64s(x)
	scratch := kerneltest.Out[float64](s, "scratch", spec.ScratchBytes()/8)
	kerneltest.Backwards(spec.Tiles(), func(i int) {
		reduce.SoftmaxTile(v, &spec, i, scratch, dst, src)
		reduce.SoftmaxTile(v, &spec, i, scratch, place, place)
		reduce.SoftmaxTile(v, &spec, i, scratch, wide, wide)
	})
	if dims[2] == 1 && dims[1] <= reduce.StreamRows {
		row := kerneltest.Out[float32](s, "row", dims[1])
		for _, past := range [][]float32{kerneltest.Out[float32](s, "streamed", len(x)), kerneltest.OutAligned[float32](s, "streamed by vectors", len(x))} {
			kerneltest.Backwards(spec.Tiles(), func(i int) { reduce.SoftmaxStream(v, &spec, i, row, past, src) })
			kerneltest.WantEqual(t, past, dst)
		}
	}
	s.Check()
	kerneltest.WantEqual(t, place, dst)
	for i, w := range ref.Softmax(kerneltest.F64s(x), dims[0], dims[1], dims[2], log) {
		// An element's distance from the largest one is rounded to float32
		// before it is an exponent.
		near := math.Abs(float64(dst[i])-w) <= w*(1e-6-0x1p-23*math.Log(w)) || log && math.Abs(float64(dst[i])-w) <= 1e-5
		near = near || !log && dst[i] == 0 && w < 0x1.1p-126 // a result that is no normal number may be 0
		if !kerneltest.SameValue(dst[i], w, 8) && !near {
			t.Fatalf("%s: element %d: got %v, want %v", name, i, dst[i], w)
		}
		if wide[i] != w && !(math.Abs(wide[i]-w) <= 1e-12*math.Max(1, math.Abs(w))) && (wide[i] == wide[i] || w == w) {
			t.Fatalf("%s: element %d in float64: got %v, want %v", name, i, wide[i], w)
		}
	}
}
