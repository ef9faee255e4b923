package kernel_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/sample"
)

// ramp gives n numbers of both signs.
func ramp(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%2000)/100 - 10
	}
	return x
}

func BenchmarkSoftmax(b *testing.B) {
	for _, s := range []reduce.Softmax{{Outer: 64, Axis: 1024, Inner: 1}, {Outer: 1, Axis: 1024, Inner: 64}} {
		perVariant(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("f32/%s/%dx%dx%d", v.Name, s.Outer, s.Axis, s.Inner), func(b *testing.B) {
				src := ramp(s.Outer * s.Axis * s.Inner)
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
	perVariant(b, func(b *testing.B, v *kernel.Variant) {
		b.Run(fmt.Sprintf("f32/%s/128x768", v.Name), func(b *testing.B) {
			n := reduce.Norm{Rows: 128, Len: 768, Epsilon: 1e-5}
			src, scale, bias := ramp(n.Rows*n.Len), ramp(n.Len), ramp(n.Len)
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
		perVariant(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("f32/%s/%s/256x256", v.Name, c.name), func(b *testing.B) {
				var r reduce.Reduction
				r.Prepare(c.kind, []int{256, 256}, c.reduced)
				src, dst := ramp(256*256), make([]float32, 256)
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

func BenchmarkResize(b *testing.B) {
	for _, m := range []struct {
		name string
		mode sample.ResizeMode
	}{
		{"nearest", sample.ResizeMode{Nearest: "floor", Transform: "asymmetric"}}, {"linear", sample.ResizeMode{Linear: true, Transform: "half_pixel"}},
		{"cubic", sample.ResizeMode{Cubic: true, CubicA: -0.75, Transform: "half_pixel"}},
	} {
		b.Run("f32/"+m.name+"/8x56x56x2", func(b *testing.B) {
			in, out := []int{1, 8, 56, 56}, []int{1, 8, 112, 112}
			var taps []sample.ResizeTaps
			for i := range in {
				if in[i] == out[i] {
					taps = append(taps, sample.ResizeTaps{Width: 1, Index: []int{0, 1, 2, 3, 4, 5, 6, 7}[:in[i]], Weight: []float64{1, 1, 1, 1, 1, 1, 1, 1}[:in[i]]})
					continue
				}
				taps = append(taps, m.mode.Taps(sample.ResizeSpan{In: in[i], Out: out[i], Scale: float64(out[i]) / float64(in[i]), Hi: 1}))
			}
			var r sample.Resize
			r.Prepare(in, out, taps)
			src, dst, scratch := ramp(8*56*56), make([]float32, 8*112*112), make([]uint64, r.ScratchBytes()/8+1)
			bytes := wordBytes(scratch)
			b.SetBytes(int64(4 * len(dst)))
			for b.Loop() {
				for t := range r.Tiles() {
					sample.ResizeTile(&r, t, bytes, dst, src)
				}
			}
		})
	}
}

func BenchmarkConvTranspose(b *testing.B) {
	perVariant(b, func(b *testing.B, v *kernel.Variant) {
		b.Run(fmt.Sprintf("f32/%s/2x2s2/64x28x28x32", v.Name), func(b *testing.B) {
			axis := conv.TransposeAxis{In: 28, Out: 56, Kernel: 2, Stride: 2, Dilation: 1}
			c := conv.Transpose{Batch: 1, Group: 1, InChannels: 64, OutChannels: 32, Axes: []conv.TransposeAxis{axis, axis}}
			c.Prepare(v)
			args := conv.TransposeArgs{In: ramp(64 * 28 * 28), Weights: ramp(64 * 32 * 4), Out: make([]float32, 32*56*56)}
			scratch := make([]float32, c.ScratchBytes()/4)
			for b.Loop() {
				for t := range c.Tiles() {
					c.Tile(t, scratch, &args)
				}
			}
			reportFlops(b, 2*64*32*4*28*28)
		})
	})
}

func wordBytes(w []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 8*len(w))
}
