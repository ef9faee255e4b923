package kerneltest

import (
	"math"
	"testing"

	table "github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// longRow is longer than what any variant takes in one go, and ends in the middle of a vector.
const longRow = 40_007

// testLong runs the row kernels on rows that they cut into pieces.
func testLong(t *testing.T, v *kernel.Variant) {
	r := newRand(70)
	x, y := uniform(r, longRow), uniform(r, longRow)
	t.Run("unary", func(t *testing.T) {
		ops := kernelsOf()
		for _, f := range table.Functions() {
			s := newSpace(t)
			dst, p := out[float32](s, "dst", longRow), paramsOf(f)[0]
			elementwise.UnaryF32(v, ops[f.Name], dst, in(s, "x", x), p[0], p[1])
			s.check()
			wide := make([]float64, longRow)
			elementwise.UnaryF64(v, ops[f.Name], wide, f64s(x), float64(p[0]), float64(p[1]))
			if fault := functionFault(f, ref.UnaryOf(f.Name), p, x, dst, wide); fault != "" {
				t.Error(fault)
			}
		}
	})
	t.Run("stream", with(v, testStream))
	t.Run("binary", func(t *testing.T) {
		var even, left, right kernel.Nest
		even.Prepare([]int{longRow}, []int{1}, []int{1}, []int{1})
		left.Prepare([]int{longRow}, []int{1}, []int{0}, []int{1})
		right.Prepare([]int{longRow}, []int{1}, []int{1}, []int{0})
		for _, c := range []struct {
			nest *kernel.Nest
			a, b int
		}{{&even, 1, 1}, {&left, 0, 1}, {&right, 1, 0}} {
			s := newSpace(t)
			dst := out[float32](s, "dst", longRow)
			elementwise.BinaryF32(v, kernel.Sub, c.nest, 0, longRow, dst, in(s, "x", x), in(s, "y", y))
			s.check()
			for i := range dst {
				if want := x[i*c.a] - y[i*c.b]; dst[i] != want {
					t.Fatalf("strides %d, %d: element %d: got %v, want %v", c.a, c.b, i, dst[i], want)
				}
			}
		}
	})
	t.Run("reduce", func(t *testing.T) {
		x[longRow-2], x[longRow-1] = -3, 3
		for _, kind := range []reduce.Kind{reduce.Sum, reduce.SumSquare, reduce.Max, reduce.Min} {
			reduceRow(t, v, kind, x)
		}
		for _, at := range []int{0, 100, longRow - 1} { // one NaN in the first, the middle or the last piece
			z := append([]float32(nil), x...)
			z[at] = float32(math.NaN())
			reduceRow(t, v, reduce.Max, z)
			reduceRow(t, v, reduce.Min, z)
		}
	})
	t.Run("softmax", func(t *testing.T) {
		softmaxCase(t, v, "long", [3]int{1, longRow, 1}, false, x)
		softmaxCase(t, v, "long", [3]int{1, longRow, 1}, true, x)
	})
	t.Run("norm", func(t *testing.T) {
		normRows(t, v, 1, longRow, true, true)
		normRows(t, v, 1, longRow, false, false)
	})
	t.Run("gemv", func(t *testing.T) {
		for trans := range 2 {
			g := gemm.Gemm{M: 1, N: 9, K: longRow, TransB: trans == 1, Alpha: 1, Beta: 1}
			gemmCase(t, v, r, "long", g, noResidual, false)
		}
	})
}

func reduceRow(t *testing.T, v *kernel.Variant, kind reduce.Kind, x []float32) {
	t.Helper()
	want := ref.Reduce(reduceNames[kind], f64s(x), []int{len(x)}, []bool{true})
	got := runReduce(v, newSpace(t), kind, []int{len(x)}, []bool{true}, x)
	if !sameValue(got[0], want[0], 2) && !(math.Abs(float64(got[0])-want[0]) <= 1e-6) {
		t.Fatalf("%s: got %v, want %v", reduceNames[kind], got[0], want[0])
	}
}

func testStream(t *testing.T, v *kernel.Variant) {
	x := uniform(newRand(71), longRow)
	for _, n := range []int{0, 1, 15, 16, 17, 40, 4103, longRow} {
		s := newSpace(t)
		src, dst, streamed, want := in(s, "x", x[:n]), out[float32](s, "copied", n), out[float32](s, "streamed", n), out[float32](s, "want", n)
		elementwise.Stream(v, asBytes(dst), asBytes(src))
		wantEqual(t, dst, src)
		for _, op := range kernel.UnaryOps() {
			elementwise.UnaryF32(v, op, want, src, 0.25, 0.5)
			for _, dst := range [][]float32{streamed, outAligned[float32](s, "streamed by vectors", n)} {
				elementwise.UnaryStream(v, op, dst, src, 0.25, 0.5, out[float32](s, "scratch", elementwise.StreamScratchFloats))
				wantEqual(t, dst, want)
			}
		}
		bytes := out[byte](s, "bytes", 4*n+3)
		from := words[byte](len(bytes), 3)
		elementwise.Stream(v, bytes, from)
		wantEqual(t, bytes, from)
		s.check()
	}
}
