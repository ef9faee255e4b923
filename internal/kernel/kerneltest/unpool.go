package kerneltest

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sample"
)

func testUnpool(t *testing.T) {
	t.Run("fold float32", folds[float32])
	t.Run("fold int8", folds[int8])
	t.Run("max", testMaxUnpool)
	t.Run("det", testDet)
	t.Run("reverse", testReverse)
	t.Run("affine grid", testAffineGrid)
}

// folds compares sums of small integers, which are exact.
func folds[T kernel.Number](t *testing.T) {
	r := newRand(120)
	for i := range 40 {
		f := conv.Fold{Planes: 1 + r.IntN(3), Window: randomWindow(r, 1+i%3)}
		f.Prepare()
		w := refWindow(&f.Window)
		x := ref.Map(small(r, f.Planes*ref.Size(w.Kernel)*ref.Size(w.Out)), func(v float32) T { return T(v) })
		s := newSpace(t)
		src, dst := in(s, "x", x), out[T](s, "dst", f.Planes*ref.Size(w.In))
		backwards(f.Planes, func(p int) { conv.FoldTile(&f, p, dst, src) })
		s.check()
		want := ref.Fold(w, f.Planes, ref.Map(x, func(v T) float64 { return float64(v) }))
		wantEqual(t, dst, ref.Map(want, func(v float64) T { return T(v) }))
	}
}

func testMaxUnpool(t *testing.T) {
	u := conv.Unpool{In: []int{2, 3, 4}, Out: []int{2, 5, 4}}
	x, indices := uniform(newRand(121), 5), []int64{23, 0, 7, 12, 7}
	s := newSpace(t)
	src, at, dst := in(s, "x", x), in(s, "indices", indices), out[float32](s, "dst", 40)
	conv.MaxUnpool(&u, dst, src, at)
	s.check()
	wantValues(t, dst, ref.Unpool(u.In, u.Out, f64s(x), indices), 0)
	for _, outside := range []int64{-1, 24, 1 << 40} {
		if got := u.Place(outside); got != -1 {
			t.Errorf("place of element %d of 24: got %d, want -1", outside, got)
		}
	}
}

func testDet(t *testing.T) {
	r := newRand(122)
	for n := range 7 {
		for range 20 {
			x := small(r, n*n) // often singular
			s := newSpace(t)
			src, scratch := in(s, "x", x), out[float64](s, "scratch", n*n)
			got := gemm.Det(n, src, scratch)
			s.check()
			wantClose(t, []float32{got}, []float64{ref.Det(n, f64s(x))}, 1e-2)
		}
	}
}

func testReverse(t *testing.T) {
	for _, batchFirst := range []bool{false, true} {
		r := move.Reverse{Time: 5, Batch: 4, Inner: 3, BatchFirst: batchFirst}
		x, lengths := words[byte](60, 1), []int64{0, 1, 4, 5}
		s := newSpace(t)
		src, counts, dst := in(s, "x", x), in(s, "lengths", lengths), out[byte](s, "dst", 60)
		inRanges(20, func(lo, hi int) { move.ReverseRows(&r, lo, hi, dst, src, counts) })
		s.check()
		wantEqual(t, dst, ref.Reverse(x, 5, 4, 3, lengths, batchFirst))
	}
}

func testAffineGrid(t *testing.T) {
	for _, align := range []bool{false, true} {
		for _, sizes := range [][]int{{3, 4}, {1, 5}, {2, 1}} {
			t.Run(fmt.Sprint(align, sizes), func(t *testing.T) {
				g := sample.AffineGrid{Batch: 2, Out: sizes, Align: align}
				theta := uniform(newRand(123), 12)
				places := sizes[0] * sizes[1]
				s := newSpace(t)
				m, dst := in(s, "theta", theta), out[float32](s, "dst", 2*places*2)
				inRanges(2*places, func(lo, hi int) { sample.AffineGridRows(&g, lo, hi, dst, m) })
				s.check()
				var want []float64
				ref.Each([]int{2, sizes[0], sizes[1]}, func(i []int) {
					x, y := ref.AffineGrid2D(f64s(theta)[i[0]*6:], i[1], i[2], sizes[0], sizes[1], align)
					want = append(want, x, y)
				})
				wantClose(t, dst, want, 1e-6)
			})
		}
	}
}
