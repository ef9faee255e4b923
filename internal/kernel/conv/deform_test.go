package conv_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestDeform(t *testing.T) {
	r := kerneltest.NewRand(151)
	for i := range 20 {
		d := conv.Deform{
			Batch: 2, Group: 1 + i%2, OffsetGroup: 1 + i/2%2, InChannels: 4, OutChannels: 2,
			Window: conv.Window{In: []int{5, 6}, Kernel: []int{2, 3}, Stride: []int{1 + i%2, 1}, Dilation: []int{1, 2}, PadBegin: []int{1, 0}, PadEnd: []int{0, 1}},
		}
		d.Prepare()
		const taps = 6
		oh, ow := d.Out[0], d.Out[1]
		x, weights := kerneltest.Uniform(r, 2*4*30), kerneltest.Uniform(r, 2*4/d.Group*taps)
		offsets := ref.Map(kerneltest.Uniform(r, 2*d.OffsetGroup*taps*2*oh*ow), func(v float32) float32 { return 2 * v })
		factors, bias := kerneltest.Uniform(r, 2*d.OffsetGroup*taps*oh*ow), kerneltest.Uniform(r, 2)
		if i%3 == 0 {
			factors, bias = nil, nil
		}
		s := kerneltest.NewSpace(t)
		dst, scratch := kerneltest.Out[float32](s, "dst", 2*2*oh*ow), kerneltest.Out[float64](s, "scratch", d.ScratchNumbers())
		src, w, move := kerneltest.In(s, "x", x), kerneltest.In(s, "weights", weights), kerneltest.In(s, "offsets", offsets)
		kerneltest.InRanges(d.Places(), func(lo, hi int) { conv.DeformPlaces(&d, lo, hi, dst, src, w, move, bias, factors, scratch) })
		s.Check()
		var want []float64
		ref.Each([]int{2, 2, oh, ow}, func(o []int) {
			first := o[1] / (2 / d.Group) * (4 / d.Group) // the first channel that this one reads
			sum := 0.0
			for c := first; c < first+4/d.Group; c++ {
				own := kerneltest.F64s(weights)[(o[1]*4/d.Group+c-first)*taps:][:taps]
				sum += ref.Deform2D(kerneltest.F64s(x)[(o[0]*4+c)*30:], 1, 5, 6, 1, taps, own, func(_, k int) (float64, float64, float64) {
					from := (o[0]*d.OffsetGroup+c/(4/d.OffsetGroup))*taps + k
					at := o[2]*ow + o[3]
					y := float64(o[2]*d.Stride[0] - 1 + k/3 + 0)
					u := float64(o[3] + k%3*2)
					f := 1.0
					if factors != nil {
						f = float64(factors[from*oh*ow+at])
					}
					return y + float64(offsets[2*from*oh*ow+at]), u + float64(offsets[(2*from+1)*oh*ow+at]), f
				})
			}
			if bias != nil {
				sum += float64(bias[o[1]])
			}
			want = append(want, sum)
		})
		kerneltest.WantClose(t, dst, want, 1e-5)
	}
}
