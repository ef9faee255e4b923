package selection_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/selection"
)

func TestSelection(t *testing.T) {
	t.Run("order", testOrder)
	for _, c := range []selection.TopK{{Axis: 9, Inner: 1, K: 4}, {Axis: 40, Inner: 3, K: 40}, {Axis: 7, Inner: 2, K: 1, Smallest: true}, {Axis: 3, Inner: 1},
		{Axis: 300, Inner: 1, K: 300}, {Axis: 1000, Inner: 2, K: 500, Smallest: true}, {Axis: 500, Inner: 1, K: 32}, {Axis: 200, Inner: 3, K: 7, Smallest: true}} {
		const outer = 5
		rows := outer * c.Inner
		x := kerneltest.Small(kerneltest.NewRand(100), rows*c.Axis) // with ties
		s := kerneltest.NewSpace(t)
		src, values, places := kerneltest.In(s, "x", x), kerneltest.Out[float32](s, "values", rows*c.K), kerneltest.Out[int64](s, "places", rows*c.K)
		hard, scratch := kerneltest.Out[float32](s, "hard", len(x)), kerneltest.Out[int64](s, "scratch", c.Scratch())
		place := kerneltest.InOut(s, "in place", x)
		kerneltest.InRanges(rows, func(lo, hi int) {
			selection.TopKRows(&c, lo, hi, values, places, src, scratch)
			selection.HardmaxRows(lo, hi, c.Axis, c.Inner, hard, src)
			selection.HardmaxRows(lo, hi, c.Axis, c.Inner, place, place)
		})
		s.Check()
		kerneltest.WantEqual(t, place, hard)
		for row := range rows {
			var list []float64
			at := func(i, n int) int { return (row/c.Inner*n+i)*c.Inner + row%c.Inner }
			for i := range c.Axis {
				list = append(list, float64(x[at(i, c.Axis)]))
			}
			v, p := ref.TopK(list, c.K, c.Smallest)
			for i := range c.K {
				if float64(values[at(i, c.K)]) != v[i] || places[at(i, c.K)] != int64(p[i]) {
					t.Fatalf("%+v: row %d: got %v at %d in place %d, want %v at %d", c, row, values[at(i, c.K)], places[at(i, c.K)], i, v[i], p[i])
				}
			}
			_, first := ref.TopK(list, 1, false)
			for i := range c.Axis {
				want := float32(0)
				if i == first[0] {
					want = 1
				}
				if hard[at(i, c.Axis)] != want {
					t.Fatalf("%+v: row %d: got %v in place %d of hardmax, want %v", c, row, hard[at(i, c.Axis)], i, want)
				}
			}
		}
	}
}

// testOrder sorts and picks from all kinds of numbers: NaN is the smallest, and
// zeros are equal.
func testOrder(t *testing.T) {
	x := kerneltest.Spread(kerneltest.NewRand(101), 150)
	orderRows(t, x)
	orderRows(t, kerneltest.F64s(x))
	orderRows(t, kerneltest.IntEdges[int8]())
	orderRows(t, kerneltest.IntEdges[uint16]())
	orderRows(t, kerneltest.Cycle(kerneltest.IntEdges[int32]())(200, 0))
	orderRows(t, kerneltest.Cycle(kerneltest.IntEdges[int64]())(200, 0))
	orderRows(t, kerneltest.Cycle(kerneltest.IntEdges[uint64]())(200, 0))
}

func orderRows[T kernel.Number](t *testing.T, x []T) {
	t.Helper()
	for _, smallest := range []bool{false, true} {
		want := make([]int64, len(x))
		for i := range want {
			want[i] = int64(i)
		}
		slices.SortStableFunc(want, func(a, b int64) int {
			if smallest {
				a, b = b, a
			}
			return cmp.Compare(x[b], x[a])
		})
		for _, k := range []int{1, 5, len(x)} {
			spec := selection.TopK{Axis: len(x), Inner: 1, K: k, Smallest: smallest}
			s := kerneltest.NewSpace(t)
			src, places := kerneltest.In(s, "x", x), kerneltest.Out[int64](s, "places", k)
			selection.TopKRows(&spec, 0, 1, nil, places, src, kerneltest.Out[int64](s, "scratch", spec.Scratch()))
			s.Check()
			kerneltest.WantEqual(t, places, want[:k])
		}
	}
}
