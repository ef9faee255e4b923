package sample_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sample"
)

func TestRoiAlign(t *testing.T) {
	const channels, h, w, gh, gw = 2, 6, 7, 2, 3
	r := kerneltest.NewRand(150)
	image := kerneltest.Uniform(r, channels*h*w)
	for i := range 20 {
		corners := ref.Map(kerneltest.Uniform(r, 4), func(v float32) float32 { return 8*v + 4 })
		corners[2], corners[3] = max(corners[2], corners[0]+1), max(corners[3], corners[1]+1)
		a := sample.RoiAlign{Channels: channels, Height: h, Width: w, OutHeight: gh, OutWidth: gw, Ratio: 1 + i%3, Scale: 0.75, HalfPixel: i%2 == 0}
		s := kerneltest.NewSpace(t)
		dst := kerneltest.Out[float32](s, "dst", channels*gh*gw)
		sample.RoiAlignRegion(&a, dst, kerneltest.In(s, "image", image), kerneltest.In(s, "corners", corners))
		s.Check()
		half, region := 0.0, [4]float64{}
		if a.HalfPixel {
			half = 0.5
		}
		for k, v := range corners {
			region[k] = float64(v)*a.Scale - half
		}
		if !a.HalfPixel {
			region[2], region[3] = max(region[2], region[0]+1), max(region[3], region[1]+1)
		}
		var want []float64
		ref.Each([]int{channels, gh, gw}, func(o []int) {
			want = append(want, ref.RoiAlign(kerneltest.F64s(image)[o[0]*h*w:], h, w, region, o[1], o[2], gh, gw, a.Ratio))
		})
		kerneltest.WantClose(t, dst, want, 1e-5)
	}
	// A sample lies in every element, and one in the middle of four.
	a := sample.RoiAlign{Channels: 1, Height: 2, Width: 2, OutHeight: 1, OutWidth: 1, Scale: 1, HalfPixel: true, Max: true}
	dst := make([]float32, 1)
	sample.RoiAlignRegion(&a, dst, []float32{1, -2, 3, 4}, []float32{0, 0, 2, 2})
	kerneltest.WantValues(t, dst, []float64{4}, 0)
	a.Ratio = 1
	sample.RoiAlignRegion(&a, dst, []float32{1, -2, 3, 5}, []float32{0, 0, 2, 2})
	kerneltest.WantValues(t, dst, []float64{1.25}, 0) // a quarter of each: the largest part
}

func TestMaxRoi(t *testing.T) {
	m := sample.MaxRoi{Channels: 1, Height: 4, Width: 4, OutHeight: 2, OutWidth: 2, Scale: 0.5}
	image := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	for _, tc := range []struct {
		corners []float32
		want    []float64
	}{
		{[]float32{0, 0, 6, 6}, []float64{5, 7, 13, 15}}, {[]float32{2, 2, 4, 4}, []float64{5, 6, 9, 10}}, {[]float32{2, 2, 6, 6}, []float64{10, 11, 14, 15}},
		{[]float32{20, 20, 22, 22}, []float64{0, 0, 0, 0}}, {[]float32{-4, -4, 2, 2}, []float64{0, 0, 0, 5}},
	} {
		s := kerneltest.NewSpace(t)
		dst := kerneltest.Out[float32](s, "dst", 4)
		sample.MaxRoiRegion(&m, dst, kerneltest.In(s, "image", image), kerneltest.In(s, "corners", tc.corners))
		s.Check()
		kerneltest.WantValues(t, dst, tc.want, 0)
	}
}
