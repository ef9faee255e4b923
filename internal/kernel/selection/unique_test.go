package selection_test

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/selection"
)

func TestUnique(t *testing.T) { kerneltest.EachVariant(t, testUnique) }

func testUnique(t *testing.T, v *kernel.Variant) {
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.U16, dtype.U32, dtype.U64, dtype.Bool} {
		for _, sorted := range []bool{false, true} {
			unique(t, v, dt, selection.UniqueSpec{Outer: 2, Rows: 17, Inner: 2, Sorted: sorted}, 2)
			unique(t, v, dt, selection.UniqueSpec{Outer: 1, Rows: 17, Inner: 1, Sorted: sorted}, 2)
			if dt != dtype.Bool {
				unique(t, v, dt, selection.UniqueSpec{Outer: 1, Rows: 300, Inner: 1, Sorted: sorted}, 100)
			}
		}
	}
	nan := float32(math.NaN())
	x := []float32{nan, 1, float32(math.Copysign(0, -1)), 0, -nan, float32(math.Inf(-1)), float32(math.Inf(1)), -2, -1}
	spec := selection.UniqueSpec{Outer: 1, Rows: len(x), Inner: 1, Sorted: true}
	for dt, src := range map[dtype.DType][]byte{dtype.F32: kerneltest.AsBytes(x), dtype.F64: kerneltest.AsBytes(kerneltest.F64s(x))} {
		first, which, counts, scratch := make([]int64, len(x)), make([]int64, len(x)), make([]int64, len(x)), make([]int64, spec.Scratch(dt))
		n := selection.Unique(&spec, dt, src, first, which, counts, scratch)
		kerneltest.WantEqual(t, first[:n], []int64{5, 7, 8, 2, 1, 6, 0})
		kerneltest.WantEqual(t, which, []int64{6, 4, 3, 3, 6, 0, 5, 1, 2})
		kerneltest.WantEqual(t, counts[:n], []int64{1, 1, 1, 2, 1, 1, 2})
	}
}

// unique finds the different rows among those of numbers below limit.
func unique(t *testing.T, v *kernel.Variant, dt dtype.DType, spec selection.UniqueSpec, limit int) {
	t.Helper()
	r := kerneltest.NewRand(130)
	values := make([]float64, spec.Outer*spec.Rows*spec.Inner)
	for i := range values {
		values[i] = float64(r.IntN(limit))
		if dt.IsSigned() {
			values[i] -= float64(limit / 2)
		}
	}
	data := kerneltest.Encode(v, dt, values)
	s := kerneltest.NewSpace(t)
	src := kerneltest.CastSlice(s, "src", dt, data, true)
	first, which, counts := kerneltest.Out[int64](s, "first", spec.Rows), kerneltest.Out[int64](s, "which", spec.Rows), kerneltest.Out[int64](s, "counts", spec.Rows)
	n := selection.Unique(&spec, dt, src, first, which, counts, kerneltest.Out[int64](s, "scratch", spec.Scratch(dt)))
	size := spec.Inner * dt.Size()
	dst := kerneltest.CastSlice(s, "dst", dt, make([]byte, spec.Outer*n*size), false)
	selection.Rows(&spec, dt.Size(), dst, src, first[:n])
	s.Check()
	wantFirst, wantWhich, wantCounts := ref.Unique(values, spec.Outer, spec.Rows, spec.Inner, spec.Sorted)
	kerneltest.WantEqual(t, first[:n], wantFirst)
	kerneltest.WantEqual(t, which, wantWhich)
	kerneltest.WantEqual(t, counts[:n], wantCounts)
	var rows []byte
	for o := range spec.Outer {
		for _, i := range wantFirst {
			rows = append(rows, data[(o*spec.Rows+int(i))*size:][:size]...)
		}
	}
	kerneltest.WantEqual(t, dst, rows)
}
