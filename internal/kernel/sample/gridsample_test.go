package sample_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sample"
)

func TestGridSample(t *testing.T) {
	for mode := range 4 {
		cubic, mirrored := mode&1 != 0, mode&2 != 0
		g := sample.GridSample{Batch: 2, Channels: 3, Places: 21, In: []int{4, 5}, Align: true, Reflect: mirrored}
		if cubic {
			g.Mode = sample.GridCubic
		}
		r := kerneltest.NewRand(110)
		x := kerneltest.Uniform(r, 2*3*20)
		grid := ref.Map(kerneltest.Uniform(r, 2*21*2), func(v float32) float32 { return 1.5 * v })
		s := kerneltest.NewSpace(t)
		src, places, dst := kerneltest.In(s, "x", x), kerneltest.In(s, "grid", grid), kerneltest.Out[float32](s, "dst", 2*3*21)
		kerneltest.InRanges(2*21, func(lo, hi int) { sample.GridSampleRows(&g, lo, hi, dst, src, places) })
		s.Check()
		ref.Each([]int{2, 3, 21}, func(i []int) {
			p := i[0]*21 + i[2]
			want := ref.GridSample2D(kerneltest.F64s(x[(i[0]*3+i[1])*20:][:20]), 4, 5, float64(grid[2*p]), float64(grid[2*p+1]), cubic, mirrored)
			at := (i[0]*3+i[1])*21 + i[2]
			kerneltest.WantClose(t, dst[at:at+1], []float64{want}, 1e-6)
		})
	}
}

// TestGridSampleTies takes the nearest element of positions that are half-way
// between two in float32, and nearly so in float64.
func TestGridSampleTies(t *testing.T) {
	x := []float32{10, 11, 12, 13, 14}
	for coordinate, want := range map[float32]float32{0.2: 12, -0.2: 12, 0.6: 14, -0.6: 10} {
		g := sample.GridSample{Batch: 1, Channels: 1, Places: 1, In: []int{5}, Mode: sample.GridNearest}
		dst := make([]float32, 1)
		sample.GridSampleRows(&g, 0, 1, dst, x, []float32{coordinate})
		if dst[0] != want {
			t.Errorf("coordinate %v: got %v, want %v", coordinate, dst[0], want)
		}
	}
}
