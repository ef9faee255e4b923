package sample_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sample"
)

var (
	resizeTransforms = []string{"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"}
	resizeRoundings  = []string{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "inward"}
)

// Rows that are resized once are blended by the loops of each variant.
func TestResizeSpreads(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		for _, dims := range []struct{ in, out []int }{
			{[]int{4, 5}, []int{8, 10}}, {[]int{2, 3, 3, 5}, []int{2, 7, 40, 33}}, {[]int{3, 3, 3}, []int{5, 6, 7}}, {[]int{2, 9, 40}, []int{2, 30, 21}},
		} {
			for _, mode := range []string{"linear", "cubic"} {
				resizeCase(t, v, ref.Resize{In: dims.in, Out: dims.out, Mode: mode, Transform: "half_pixel", CubicA: -0.5})
			}
		}
	})
}

func TestResize(t *testing.T) {
	v := kernel.Portable
	for _, transform := range resizeTransforms {
		t.Run(transform, func(t *testing.T) {
			for _, dims := range []struct{ in, out []int }{
				{[]int{5}, []int{9}}, {[]int{9}, []int{4}}, {[]int{1}, []int{3}}, {[]int{4, 5}, []int{8, 10}}, {[]int{2, 6, 7}, []int{2, 3, 20}},
				{[]int{1, 2, 3, 4}, []int{1, 2, 7, 3}}, {[]int{3, 3, 3}, []int{5, 6, 7}}, {[]int{2, 5, 3}, []int{2, 9, 3}}, {[]int{4}, []int{1}}, {[]int{2, 3, 3, 5}, []int{2, 7, 40, 33}}, {[]int{6, 40}, []int{6, 80}},
			} {
				for _, rounding := range resizeRoundings {
					resizeCase(t, v, ref.Resize{In: dims.in, Out: dims.out, Mode: "nearest", Transform: transform, Nearest: rounding})
				}
				for mode := range 4 {
					resizeCase(t, v, ref.Resize{In: dims.in, Out: dims.out, Mode: "linear", Transform: transform, Antialias: mode&1 != 0, Exclude: mode&2 != 0})
					resizeCase(t, v, ref.Resize{In: dims.in, Out: dims.out, Mode: "cubic", Transform: transform, CubicA: -0.75, Antialias: mode&1 != 0, Exclude: mode&2 != 0})
				}
			}
		})
	}
}

func resizeCase(t *testing.T, v *kernel.Variant, want ref.Resize) {
	t.Helper()
	mode := sample.ResizeMode{
		Linear: want.Mode == "linear", Cubic: want.Mode == "cubic", Nearest: want.Nearest, Transform: want.Transform, CubicA: want.CubicA,
		Antialias: want.Antialias, ExcludeOutside: want.Exclude,
	}
	want.Extrapolation = -7
	var taps []sample.ResizeTaps
	for i, n := range want.In {
		lo, hi := 0.1, 1.2
		if n == want.Out[i] {
			lo, hi = 0, 1
		}
		want.Lo, want.Hi = append(want.Lo, lo), append(want.Hi, hi)
		scale := float64(want.Out[i]) / float64(n)
		if n != want.Out[i] { // a scale by which the size is no integer
			scale = (float64(want.Out[i]) + 0.4) / float64(n)
		}
		want.Scale = append(want.Scale, scale)
		taps = append(taps, mode.Taps(sample.ResizeSpan{In: n, Out: want.Out[i], Scale: want.Scale[i], Lo: lo, Hi: hi}))
	}
	x := kerneltest.Uniform(kerneltest.NewRand(60), ref.Size(want.In))
	wanted := want.Run(kerneltest.F64s(x))
	spec := sample.Resize{Extrapolation: want.Extrapolation}
	spec.Prepare(v, want.In, want.Out, taps, nil, nil)
	s := kerneltest.NewSpace(t)
	src, dst, wide := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "dst", len(wanted)), make([]float64, len(wanted))
	scratch := kerneltest.Out[uint64](s, "scratch", (spec.ScratchBytes()+7)/8)
	kerneltest.Backwards(spec.Tiles(), func(i int) {
		for k := range scratch {
			scratch[k] = math.MaxUint64
		}
		sample.ResizeTile(&spec, i, kerneltest.AsBytes(scratch)[:spec.ScratchBytes()], dst, src)
		sample.ResizeTile(&spec, i, kerneltest.AsBytes(scratch)[:spec.ScratchBytes()], wide, kerneltest.F64s(x))
	})
	s.Check()
	for i, w := range wanted {
		if math.Abs(float64(dst[i])-w) > 2e-6 || math.Abs(wide[i]-w) > 1e-12 {
			t.Fatalf("%s: element %d: got %v and in float64 %v, want %v", fmt.Sprintf("%+v", want), i, dst[i], wide[i], w)
		}
	}
}
