package quantised_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/quantised"
)

// BenchmarkIntGemm multiplies unsigned bytes with signed ones: with a packed
// right matrix, and with one that changes.
func BenchmarkIntGemm(b *testing.B) {
	kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
		for _, c := range [][3]int{{128, 768, 768}, {512, 512, 512}, {1, 3072, 768}} {
			for _, packed := range []bool{false, true} {
				g := quantised.IntGemm{M: c[0], N: c[1], K: c[2], SignedB: true, PackedB: packed && quantised.BytePanels(v)}
				if packed && !g.PackedB {
					continue
				}
				b.Run(fmt.Sprintf("u8s8/%s/%dx%dx%d/packed=%v", v.Name, g.M, g.N, g.K, packed), func(b *testing.B) {
					left, right := make([]uint8, g.M*g.K), make([]int8, g.K*g.N)
					if packed {
						pack := g
						bytes := make([]uint8, g.K*g.N)
						right = make([]int8, g.PackedBBytes(v))
						pack.PackB(v, unsafe.Slice((*byte)(unsafe.Pointer(&right[0])), len(right)), bytes)
					}
					g.Prepare(v)
					dst, scratch := make([]byte, 4*g.M*g.N), make([]int32, g.ScratchBytes()/4)
					for b.Loop() {
						for t := range g.Tiles() {
							quantised.IntGemmTile(&g, t, dst, left, right, quantised.Numbers{}, quantised.Numbers{}, nil, scratch)
						}
					}
					kerneltest.ReportFlops(b, 2*g.M*g.N*g.K)
				})
			}
		}
	})
}

func BenchmarkIntConv(b *testing.B) {
	for _, l := range []struct {
		name           string
		group, in, out int
		size, kernel   int
		stride         int
	}{
		{"7x7/3x64/224/2", 1, 3, 64, 224, 7, 2}, {"1x1/64x256/56", 1, 64, 256, 56, 1, 1}, {"3x3/64x64/56", 1, 64, 64, 56, 3, 1},
		{"1x1/256x64/56", 1, 256, 64, 56, 1, 1}, {"3x3/256x256/14", 1, 256, 256, 14, 3, 1}, {"3x3/512x512/7", 1, 512, 512, 7, 3, 1},
		{"1x1/2048x512/7", 1, 2048, 512, 7, 1, 1}, {"3x3/128x128/56/2", 1, 128, 128, 56, 3, 2}, {"1x1/256x512/56/2", 1, 256, 512, 56, 1, 2},
		{"1x1/24x144/56", 1, 24, 144, 56, 1, 1}, {"1x1/144x24/56", 1, 144, 24, 56, 1, 1},
		{"depthwise/144/28", 144, 1, 1, 28, 3, 1}, {"depthwise/144/56/2", 144, 1, 1, 56, 3, 2}, {"depthwise5/240/28", 240, 1, 1, 28, 5, 1},
	} {
		kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("%s/%s", v.Name, l.name), func(b *testing.B) {
				two := func(v int) []int { return []int{v, v} }
				c := quantised.IntConv{Batch: 1, Group: l.group, Channels: l.in, Filters: l.out, In: two(l.size), Out: two(l.size / l.stride), Kernel: two(l.kernel),
					Stride: two(l.stride), Dilation: two(1), Pad: two(l.kernel / 2), SignedW: true}
				x, w := make([]uint8, l.group*l.in*l.size*l.size), make([]int8, l.group*l.out*l.in*l.kernel*l.kernel)
				dst := make([]byte, l.group*l.out*kernel.Product(c.Out))
				for i := range x {
					x[i] = uint8(i)
				}
				for i := range w {
					w[i] = int8(i)
				}
				if panels, ok := c.FilterPanels(v); ok {
					packed := make([]int8, panels.Bytes())
					panels.Pack(kerneltest.AsBytes(packed), kerneltest.AsBytes(w))
					w, c.PackedW = packed, true
				}
				c.Prepare(v)
				one := func(v float32) quantised.Numbers {
					return quantised.Numbers{DType: dtype.F32, Data: kerneltest.AsBytes([]float32{v})}
				}
				byteOf := func(dt dtype.DType, v byte) quantised.Numbers { return quantised.Numbers{DType: dt, Data: []byte{v}} }
				r := quantised.Requant{A: one(0.5), B: one(0.25), Y: one(300), Zero: byteOf(dtype.U8, 7)}
				scratch := make([]int32, c.ScratchBytes()/4)
				zeroX, zeroW := byteOf(dtype.U8, 120), byteOf(dtype.I8, 0)
				for b.Loop() {
					for t := range c.Tiles() {
						quantised.IntConvTile(&c, t, dst, x, w, zeroX, zeroW, nil, &r, scratch)
					}
				}
				kerneltest.ReportFlops(b, 2*len(dst)*l.in*l.kernel*l.kernel)
			})
		})
	}
}

func BenchmarkQuantize(b *testing.B) {
	const n = 1 << 18
	q := quantised.Quant{Axis: 1, Inner: n, Block: 1}
	of := func(x []float32) quantised.Numbers {
		return quantised.Numbers{DType: dtype.F32, Data: kerneltest.AsBytes(x)}
	}
	x, back, narrow := of(kerneltest.Ramp(n)), of(make([]float32, n)), quantised.Numbers{DType: dtype.U8, Data: make([]byte, n)}
	scale, zero := of([]float32{0.1}), quantised.Numbers{DType: dtype.U8, Data: []byte{100}}
	kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
		b.Run(v.Name+"/quantize", func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				quantised.Quantize(v, &q, 0, n, narrow, x, scale, zero, dtype.F32, true)
			}
		})
		b.Run(v.Name+"/dequantize", func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				quantised.Dequantize(v, &q, 0, n, back, narrow, scale, zero)
			}
		})
	})
}
