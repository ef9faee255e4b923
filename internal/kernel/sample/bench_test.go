package sample_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/sample"
)

func BenchmarkResize(b *testing.B) {
	for _, m := range []struct {
		name string
		mode sample.ResizeMode
	}{
		{"nearest", sample.ResizeMode{Nearest: "floor", Transform: "asymmetric"}}, {"linear", sample.ResizeMode{Linear: true, Transform: "half_pixel"}},
		{"cubic", sample.ResizeMode{Cubic: true, CubicA: -0.75, Transform: "half_pixel"}},
	} {
		kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("f32/%s/%s/8x56x56x2", v.Name, m.name), func(b *testing.B) { benchResize(b, v, m.mode) })
		})
	}
}

func benchResize(b *testing.B, v *kernel.Variant, mode sample.ResizeMode) {
	in, out := []int{1, 8, 56, 56}, []int{1, 8, 112, 112}
	var taps []sample.ResizeTaps
	for i := range in {
		if in[i] == out[i] {
			taps = append(taps, sample.ResizeTaps{Width: 1, Index: []int{0, 1, 2, 3, 4, 5, 6, 7}[:in[i]], Weight: []float64{1, 1, 1, 1, 1, 1, 1, 1}[:in[i]]})
			continue
		}
		taps = append(taps, mode.Taps(sample.ResizeSpan{In: in[i], Out: out[i], Scale: float64(out[i]) / float64(in[i]), Hi: 1}))
	}
	var r sample.Resize
	r.Prepare(v, in, out, taps, nil, nil)
	src, dst, scratch := kerneltest.Ramp(8*56*56), make([]float32, 8*112*112), make([]uint64, r.ScratchBytes()/8+1)
	bytes := kerneltest.AsBytes(scratch)
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		for t := range r.Tiles() {
			sample.ResizeTile(&r, t, bytes, dst, src)
		}
	}
}
