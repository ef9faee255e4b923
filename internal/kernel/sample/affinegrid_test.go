package sample_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sample"
)

func TestAffineGrid(t *testing.T) {
	for _, align := range []bool{false, true} {
		for _, sizes := range [][]int{{3, 4}, {1, 5}, {2, 1}} {
			t.Run(fmt.Sprint(align, sizes), func(t *testing.T) {
				g := sample.AffineGrid{Batch: 2, Out: sizes, Align: align}
				theta := kerneltest.Uniform(kerneltest.NewRand(123), 12)
				places := sizes[0] * sizes[1]
				s := kerneltest.NewSpace(t)
				m, dst := kerneltest.In(s, "theta", theta), kerneltest.Out[float32](s, "dst", 2*places*2)
				kerneltest.InRanges(2*places, func(lo, hi int) { sample.AffineGridRows(&g, lo, hi, dst, m) })
				s.Check()
				var want []float64
				ref.Each([]int{2, sizes[0], sizes[1]}, func(i []int) {
					x, y := ref.AffineGrid2D(kerneltest.F64s(theta)[i[0]*6:], i[1], i[2], sizes[0], sizes[1], align)
					want = append(want, x, y)
				})
				kerneltest.WantClose(t, dst, want, 1e-6)
			})
		}
	}
}
