package reduce_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

func BenchmarkSoftmax(b *testing.B) {
	for _, s := range []reduce.Softmax{{Outer: 64, Axis: 1024, Inner: 1}, {Outer: 1, Axis: 1024, Inner: 64}} {
		kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("f32/%s/%dx%dx%d", v.Name, s.Outer, s.Axis, s.Inner), func(b *testing.B) {
				src := kerneltest.Ramp(s.Outer * s.Axis * s.Inner)
				dst, scratch := make([]float32, len(src)), make([]float64, s.ScratchBytes()/8)
				b.SetBytes(int64(8 * len(src)))
				for b.Loop() {
					for t := range s.Tiles() {
						reduce.SoftmaxTile(v, &s, t, scratch, dst, src)
					}
				}
			})
		})
	}
}

func BenchmarkLayerNorm(b *testing.B) {
	kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
		b.Run(fmt.Sprintf("f32/%s/128x768", v.Name), func(b *testing.B) {
			n := reduce.Norm{Rows: 128, Len: 768, Epsilon: 1e-5}
			src, scale, bias := kerneltest.Ramp(n.Rows*n.Len), kerneltest.Ramp(n.Len), kerneltest.Ramp(n.Len)
			dst := make([]float32, len(src))
			b.SetBytes(int64(8 * len(src)))
			for b.Loop() {
				for t := range n.Tiles() {
					reduce.NormTile(v, &n, t, dst, src, scale, bias, nil, nil)
				}
			}
		})
	})
}

func BenchmarkReduce(b *testing.B) {
	for _, c := range []struct {
		kind    reduce.Kind
		name    string
		reduced []bool
	}{{reduce.Mean, "mean rows", []bool{false, true}}, {reduce.Mean, "mean columns", []bool{true, false}}, {reduce.Max, "max rows", []bool{false, true}}} {
		kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("f32/%s/%s/256x256", v.Name, c.name), func(b *testing.B) {
				var r reduce.Reduction
				r.Prepare(c.kind, []int{256, 256}, c.reduced)
				src, dst := kerneltest.Ramp(256*256), make([]float32, 256)
				b.SetBytes(4 * 256 * 256)
				for b.Loop() {
					for t := range r.Tiles() {
						reduce.Tile(v, &r, t, dst, src)
					}
				}
			})
		})
	}
}
