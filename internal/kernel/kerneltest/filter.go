package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/selection"
)

func testFilter(t *testing.T, v *kernel.Variant) {
	t.Run("non_zero", with(v, testNonZero))
	t.Run("compress", testCompress)
	t.Run("unique", with(v, testUnique))
	t.Run("suppression", testSuppression)
}

func testNonZero(t *testing.T, v *kernel.Variant) {
	const rows, cols = 23, 17
	r := newRand(16)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.I64, dtype.Bool, dtype.U8} {
		t.Run(fmt.Sprint(dt), func(t *testing.T) {
			s := newSpace(t)
			data := castSource(t, dt, rows*cols)
			var want [2][]int64
			for i := range rows * cols {
				e := data[i*dt.Size() : (i+1)*dt.Size()]
				if r.IntN(2) == 0 {
					clear(e)
					if dt.IsFloat() && r.IntN(2) == 0 {
						e[len(e)-1] = 0x80 // negative zero
					}
				}
				if v := ref.Decode(dt, data, i); v.Float == nil || v.Float.Sign() != 0 {
					want[0], want[1] = append(want[0], int64(i/cols)), append(want[1], int64(i%cols))
				}
			}
			src := castSlice(s, "src", dt, data, true)
			if got := move.NonZeroCount(v, dt, src); got != len(want[0]) {
				t.Fatalf("count: got %d, want %d", got, len(want[0]))
			}
			dst := out[int64](s, "dst", 2*len(want[0]))
			move.NonZero(v, dt, dst, src, []int{rows, cols})
			s.check()
			wantEqual(t, dst, append(want[0], want[1]...))
		})
	}
}

func testCompress(t *testing.T) {
	spec := selection.CompressSpec{Outer: 3, Rows: 5, Inner: 7}
	x := words[byte](3*5*7, 1)
	for _, condition := range [][]byte{{}, {0, 0}, {1}, {1, 0, 2, 0, 1}, {0, 1, 1, 1}} {
		var want []byte
		count := 0
		for o := range 3 {
			for i, c := range condition {
				if c != 0 {
					want = append(want, x[(o*5+i)*7:][:7]...)
					count++
				}
			}
		}
		s := newSpace(t)
		src, dst := in(s, "x", x), out[byte](s, "dst", len(want))
		if got := selection.Compress(&spec, dst, src, in(s, "condition", condition)); got != count/3 {
			t.Fatalf("%v: got %d rows, want %d", condition, got, count/3)
		}
		s.check()
		wantEqual(t, dst, want)
	}
}

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
	for dt, src := range map[dtype.DType][]byte{dtype.F32: asBytes(x), dtype.F64: asBytes(f64s(x))} {
		first, which, counts, scratch := make([]int64, len(x)), make([]int64, len(x)), make([]int64, len(x)), make([]int64, spec.Scratch(dt))
		n := selection.Unique(&spec, dt, src, first, which, counts, scratch)
		wantEqual(t, first[:n], []int64{5, 7, 8, 2, 1, 6, 0})
		wantEqual(t, which, []int64{6, 4, 3, 3, 6, 0, 5, 1, 2})
		wantEqual(t, counts[:n], []int64{1, 1, 1, 2, 1, 1, 2})
	}
}

// unique finds the different rows among those of numbers below limit.
func unique(t *testing.T, v *kernel.Variant, dt dtype.DType, spec selection.UniqueSpec, limit int) {
	t.Helper()
	r := newRand(130)
	values := make([]float64, spec.Outer*spec.Rows*spec.Inner)
	for i := range values {
		values[i] = float64(r.IntN(limit))
		if dt.IsSigned() {
			values[i] -= float64(limit / 2)
		}
	}
	data := make([]byte, len(values)*dt.Size())
	elementwise.Cast(v, data, dt, asBytes(values), dtype.F64, 0, len(values), elementwise.CastMode{})
	s := newSpace(t)
	src := castSlice(s, "src", dt, data, true)
	first, which, counts := out[int64](s, "first", spec.Rows), out[int64](s, "which", spec.Rows), out[int64](s, "counts", spec.Rows)
	n := selection.Unique(&spec, dt, src, first, which, counts, out[int64](s, "scratch", spec.Scratch(dt)))
	size := spec.Inner * dt.Size()
	dst := castSlice(s, "dst", dt, make([]byte, spec.Outer*n*size), false)
	selection.Rows(&spec, dt.Size(), dst, src, first[:n])
	s.check()
	wantFirst, wantWhich, wantCounts := ref.Unique(values, spec.Outer, spec.Rows, spec.Inner, spec.Sorted)
	wantEqual(t, first[:n], wantFirst)
	wantEqual(t, which, wantWhich)
	wantEqual(t, counts[:n], wantCounts)
	var rows []byte
	for o := range spec.Outer {
		for _, i := range wantFirst {
			rows = append(rows, data[(o*spec.Rows+int(i))*size:][:size]...)
		}
	}
	wantEqual(t, dst, rows)
}

func testSuppression(t *testing.T) {
	r := newRand(131)
	for i := range 60 {
		spec := selection.Suppression{Batch: 2, Classes: 2, Boxes: 1 + r.IntN(12), Most: r.IntN(8), Overlap: r.Float32() / 2, HasScore: i&1 != 0, Score: 0.25, Centered: i&2 != 0}
		boxes := ref.Map(small(r, 2*spec.Boxes*4), func(v float32) float32 { return v + 3 }) // sizes are not below zero
		scores := ref.Map(small(r, 2*2*spec.Boxes), func(v float32) float32 { return v / 4 })
		s := newSpace(t)
		dst, scratch := out[int64](s, "dst", 3*2*2*min(spec.Most, spec.Boxes)), out[int64](s, "scratch", spec.Boxes)
		n := selection.NonMaxSuppression(&spec, dst, in(s, "boxes", boxes), in(s, "scores", scores), scratch)
		s.check()
		var want []int64
		for b := range 2 {
			for c := range 2 {
				least := -100.0
				if spec.HasScore {
					least = 0.25
				}
				for _, box := range ref.NonMaxSuppression(f64s(boxes)[b*spec.Boxes*4:], f64s(scores)[(b*2+c)*spec.Boxes:][:spec.Boxes], spec.Most, float64(spec.Overlap), least, spec.Centered) {
					want = append(want, int64(b), int64(c), int64(box))
				}
			}
		}
		wantEqual(t, dst[:3*n], want)
	}
}
