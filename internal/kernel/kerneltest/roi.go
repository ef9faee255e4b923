package kerneltest

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sample"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

func testRegions(t *testing.T) {
	t.Run("roi_align", testRoiAlign)
	t.Run("max_roi", testMaxRoi)
	t.Run("deform", testDeform)
	t.Run("linear_attention", testLinearAttention)
}

func testRoiAlign(t *testing.T) {
	const channels, h, w, gh, gw = 2, 6, 7, 2, 3
	r := newRand(150)
	image := uniform(r, channels*h*w)
	for i := range 20 {
		corners := ref.Map(uniform(r, 4), func(v float32) float32 { return 8*v + 4 })
		corners[2], corners[3] = max(corners[2], corners[0]+1), max(corners[3], corners[1]+1)
		a := sample.RoiAlign{Channels: channels, Height: h, Width: w, OutHeight: gh, OutWidth: gw, Ratio: 1 + i%3, Scale: 0.75, HalfPixel: i%2 == 0}
		s := newSpace(t)
		dst := out[float32](s, "dst", channels*gh*gw)
		sample.RoiAlignRegion(&a, dst, in(s, "image", image), in(s, "corners", corners))
		s.check()
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
			want = append(want, ref.RoiAlign(f64s(image)[o[0]*h*w:], h, w, region, o[1], o[2], gh, gw, a.Ratio))
		})
		wantClose(t, dst, want, 1e-5)
	}
	// A sample lies in every element, and one in the middle of four.
	a := sample.RoiAlign{Channels: 1, Height: 2, Width: 2, OutHeight: 1, OutWidth: 1, Scale: 1, HalfPixel: true, Max: true}
	dst := make([]float32, 1)
	sample.RoiAlignRegion(&a, dst, []float32{1, -2, 3, 4}, []float32{0, 0, 2, 2})
	wantValues(t, dst, []float64{4}, 0)
	a.Ratio = 1
	sample.RoiAlignRegion(&a, dst, []float32{1, -2, 3, 5}, []float32{0, 0, 2, 2})
	wantValues(t, dst, []float64{1.25}, 0) // a quarter of each: the largest part
}

func testMaxRoi(t *testing.T) {
	m := sample.MaxRoi{Channels: 1, Height: 4, Width: 4, OutHeight: 2, OutWidth: 2, Scale: 0.5}
	image := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	for _, tc := range []struct {
		corners []float32
		want    []float64
	}{
		{[]float32{0, 0, 6, 6}, []float64{5, 7, 13, 15}}, {[]float32{2, 2, 4, 4}, []float64{5, 6, 9, 10}}, {[]float32{2, 2, 6, 6}, []float64{10, 11, 14, 15}},
		{[]float32{20, 20, 22, 22}, []float64{0, 0, 0, 0}}, {[]float32{-4, -4, 2, 2}, []float64{0, 0, 0, 5}},
	} {
		s := newSpace(t)
		dst := out[float32](s, "dst", 4)
		sample.MaxRoiRegion(&m, dst, in(s, "image", image), in(s, "corners", tc.corners))
		s.check()
		wantValues(t, dst, tc.want, 0)
	}
}

func testDeform(t *testing.T) {
	r := newRand(151)
	for i := range 20 {
		d := conv.Deform{
			Batch: 2, Group: 1 + i%2, OffsetGroup: 1 + i/2%2, InChannels: 4, OutChannels: 2,
			Window: conv.Window{In: []int{5, 6}, Kernel: []int{2, 3}, Stride: []int{1 + i%2, 1}, Dilation: []int{1, 2}, PadBegin: []int{1, 0}, PadEnd: []int{0, 1}},
		}
		d.Prepare()
		const taps = 6
		oh, ow := d.Out[0], d.Out[1]
		x, weights := uniform(r, 2*4*30), uniform(r, 2*4/d.Group*taps)
		offsets := ref.Map(uniform(r, 2*d.OffsetGroup*taps*2*oh*ow), func(v float32) float32 { return 2 * v })
		factors, bias := uniform(r, 2*d.OffsetGroup*taps*oh*ow), uniform(r, 2)
		if i%3 == 0 {
			factors, bias = nil, nil
		}
		s := newSpace(t)
		dst, scratch := out[float32](s, "dst", 2*2*oh*ow), out[float64](s, "scratch", d.ScratchNumbers())
		src, w, move := in(s, "x", x), in(s, "weights", weights), in(s, "offsets", offsets)
		inRanges(d.Places(), func(lo, hi int) { conv.DeformPlaces(&d, lo, hi, dst, src, w, move, bias, factors, scratch) })
		s.check()
		var want []float64
		ref.Each([]int{2, 2, oh, ow}, func(o []int) {
			first := o[1] / (2 / d.Group) * (4 / d.Group) // the first channel that this one reads
			sum := 0.0
			for c := first; c < first+4/d.Group; c++ {
				own := f64s(weights)[(o[1]*4/d.Group+c-first)*taps:][:taps]
				sum += ref.Deform2D(f64s(x)[(o[0]*4+c)*30:], 1, 5, 6, 1, taps, own, func(_, k int) (float64, float64, float64) {
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
		wantClose(t, dst, want, 1e-5)
	}
}

func testLinearAttention(t *testing.T) {
	r := newRand(152)
	for mode := range 16 {
		l := sequence.LinearAttention{Batch: 2, Length: 3, Heads: 2, Queries: 2, Keys: 4, Values: 5, Scale: 0.5, Delta: mode&1 != 0, DecayPerKey: mode&4 != 0, RatePerHead: mode&8 != 0}
		gated := mode&2 != 0
		q, k, v := uniform(r, 2*3*4*4), uniform(r, 2*3*2*4), uniform(r, 2*3*2*5)
		decay, rate, past := uniform(r, 2*3*2*4), uniform(r, 2*3*2), uniform(r, 2*2*4*5)
		s := newSpace(t)
		dst, state := out[float32](s, "dst", 2*3*4*5), inout(s, "state", past)
		sq, sk, sv, sd, sr := in(s, "q", q), in(s, "k", k), in(s, "v", v), in(s, "decay", decay), in(s, "rate", rate)
		if !gated {
			sd = nil
		}
		backwards(4, func(i int) {
			sequence.LinearAttentionHead(&l, i/2, i%2, dst, state[i*20:(i+1)*20], sq, sk, sv, sd, sr)
		})
		s.check()
		for i := range 8 { // batch, head, query
			batch, head, query := i/4, i/2%2, i%2
			rows := func(x []float32, heads, h, size int) (list [][]float64) {
				for t := range 3 {
					list = append(list, f64s(x[((batch*3+t)*heads+h)*size:][:size]))
				}
				return list
			}
			var own [][]float64
			for k := range 4 {
				own = append(own, f64s(past[((batch*2+head)*4+k)*5:][:5]))
			}
			fall, rates := rows(decay, 2, head, 4), []float64{}
			for t := range 3 {
				for k := range 4 {
					switch {
					case !gated:
						fall[t][k] = 0
					case !l.DecayPerKey:
						fall[t][k] = float64(decay[(batch*3+t)*2+head])
					}
				}
				at := batch*3 + t
				if l.RatePerHead {
					at = at*2 + head
				}
				rates = append(rates, float64(rate[at]))
			}
			want := ref.LinearAttention(own, rows(q, 4, head*2+query, 4), rows(k, 2, head, 4), rows(v, 2, head, 5), fall, rates, l.Delta, 0.5)
			for t3 := range 3 {
				wantClose(t, dst[((batch*3+t3)*4+head*2+query)*5:][:5], want[t3], 1e-5)
			}
			for k := range 4 {
				wantClose(t, state[((batch*2+head)*4+k)*5:][:5], own[k], 1e-5)
			}
		}
	}
}
