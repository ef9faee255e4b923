package reduce_test

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func reduceRow(t *testing.T, v *kernel.Variant, kind reduce.Kind, x []float32) {
	t.Helper()
	want := ref.Reduce(reduceNames[kind], kerneltest.F64s(x), []int{len(x)}, []bool{true})
	got := runReduce(v, kerneltest.NewSpace(t), kind, []int{len(x)}, []bool{true}, x)
	if !kerneltest.SameValue(got[0], want[0], 2) && !(math.Abs(float64(got[0])-want[0]) <= 1e-6) {
		t.Fatalf("%s: got %v, want %v", reduceNames[kind], got[0], want[0])
	}
}

// TestLongRows reduces rows that the kernels cut into pieces.
func TestLongRows(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		x := kerneltest.Uniform(kerneltest.NewRand(70), kerneltest.LongRow)
		t.Run("reduce", func(t *testing.T) {
			x[kerneltest.LongRow-2], x[kerneltest.LongRow-1] = -3, 3
			for _, kind := range []reduce.Kind{reduce.Sum, reduce.SumSquare, reduce.Max, reduce.Min} {
				reduceRow(t, v, kind, x)
			}
			for _, at := range []int{0, 100, kerneltest.LongRow - 1} { // one NaN in the first, the middle or the last piece
				z := append([]float32(nil), x...)
				z[at] = float32(math.NaN())
				reduceRow(t, v, reduce.Max, z)
				reduceRow(t, v, reduce.Min, z)
			}
		})
		t.Run("softmax", func(t *testing.T) {
			softmaxCase(t, v, "long", [3]int{1, kerneltest.LongRow, 1}, false, x)
			softmaxCase(t, v, "long", [3]int{1, kerneltest.LongRow, 1}, true, x)
		})
		t.Run("norm", func(t *testing.T) {
			normRows(t, v, 1, kerneltest.LongRow, true, true)
			normRows(t, v, 1, kerneltest.LongRow, false, false)
		})
	})
}
