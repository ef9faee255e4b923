package conv_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

func BenchmarkConv(b *testing.B) {
	pad := func(n int) []int { return []int{n, n} }
	square := func(in, size, out, k, stride int) conv.Conv {
		w := conv.Window{In: pad(size), Kernel: pad(k), Stride: pad(stride), PadBegin: pad(k / 2), PadEnd: pad(k / 2)}
		return conv.Conv{InChannels: in, OutChannels: out, Group: 1, Window: w}
	}
	pooled, depthwise := square(64, 56, 64, 3, 1), square(64, 56, 64, 3, 1)
	pooled.Pool = &conv.Pool{Window: conv.Window{Kernel: pad(2), Stride: pad(2)}}
	depthwise.Group = 64
	each := func(channels, size, k int) conv.Conv {
		c := square(channels, size, channels, k, 1)
		c.Group = channels
		return c
	}
	separable := func(in, size, out, k, stride int) conv.Conv {
		c := square(in, size, out, 1, 1)
		c.Pool = &conv.Pool{Kind: conv.PoolDepthwise, Window: conv.Window{Kernel: pad(k), Stride: pad(stride), PadBegin: pad(k / 2), PadEnd: pad(k / 2)}}
		return c
	}
	dilated := func(in, size, out, by int) conv.Conv {
		c := square(in, size, out, 3, 1)
		c.Window.Dilation, c.Window.PadBegin, c.Window.PadEnd = pad(by), pad(by), pad(by)
		return c
	}
	for _, c := range []struct {
		name string
		conv conv.Conv
	}{
		{"3x3/32x112x112x32", square(32, 112, 32, 3, 1)},
		{"3x3/64x56x56x64", square(64, 56, 64, 3, 1)},
		{"3x3/128x28x28x128", square(128, 28, 128, 3, 1)},
		{"3x3/256x14x14x256", square(256, 14, 256, 3, 1)},
		{"3x3/512x7x7x512", square(512, 7, 512, 3, 1)},
		{"3x3/512x7x7x64", square(512, 7, 64, 3, 1)},
		{"3x3/128x7x7x64", square(128, 7, 64, 3, 1)},
		{"3x3/128x8x8x64", square(128, 8, 64, 3, 1)},
		{"3x3s2/256x28x28x256", square(256, 28, 256, 3, 2)},
		{"1x1/64x56x56x256", square(64, 56, 256, 1, 1)},
		{"1x1/256x28x28x128", square(256, 28, 128, 1, 1)},
		{"1x1s2/1024x14x14x2048", square(1024, 14, 2048, 1, 2)},
		{"7x7s2/3x224x224x64", square(3, 224, 64, 7, 2)},
		{"3x3s2/3x224x224x32", square(3, 224, 32, 3, 2)},

		{"1x1/16x112x112x96", square(16, 112, 96, 1, 1)},
		{"3x3d2/512x28x28x512", dilated(512, 28, 512, 2)},
		{"3x3d8/128x40x40x128", dilated(128, 40, 128, 8)},
		{"3x3d24/512x40x40x128", dilated(512, 40, 128, 24)},
		{"dw3x3/64x56x56", depthwise},
		{"dw3x3/960x7x7", each(960, 7, 3)},
		{"dw5x5/1152x7x7", each(1152, 7, 5)},
		{"dw5x5/480x14x14", each(480, 14, 5)},
		{"dw5x5/960x20x20", each(960, 20, 5)},
		{"3x3pool2/64x56x56x64", pooled},
		{"3x3s2dw3x3/3x224x224x32", func() conv.Conv {
			c := separable(3, 112, 32, 3, 1)
			c.Window = square(3, 224, 32, 3, 2).Window
			return c
		}()},
		{"1x1dw3x3s2/16x112x112x96", separable(16, 112, 96, 3, 2)},
		{"1x1dw3x3/24x56x56x144", separable(24, 56, 144, 3, 1)},
		{"1x1dw5x5/40x28x28x240", separable(40, 28, 240, 5, 1)},
		{"1x1dw3x3/160x7x7x960", separable(160, 7, 960, 3, 1)},
		{"1x1/24x56x56x144", square(24, 56, 144, 1, 1)},
		{"dw3x3/144x56x56", each(144, 56, 3)},
	} {
		kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
			for _, form := range []string{"as they are", "packed", "transformed"} {
				benchConv(b, v, fmt.Sprintf("f32/%s/%s/%s", v.Name, form, c.name), c.conv, form)
			}
		})
	}
}

func benchConv(b *testing.B, v *kernel.Variant, name string, c conv.Conv, form string) {
	b.Run(name, func(b *testing.B) {
		c.Batch, c.Bias, c.Act = 1, gemm.BiasRow, gemm.Activation{Op: kernel.Relu}
		c.Prepare(v)
		perOutput := c.InChannels / c.Group * c.Kernel[0] * c.Kernel[1]
		weights := make([]float32, c.OutChannels*perOutput)
		if c.Direct = form != "transformed"; form != "as they are" {
			panels, ok := c.WeightPanels(v)
			if !ok || !c.Direct && panels.Restores() {
				b.Skip("reads its weights in another form")
			}
			weights = make([]float32, panels.Floats())
			c.PackedWeights = true
			c.Prepare(v)
		}
		area := c.Window.Out[0] * c.Window.Out[1]
		args := conv.Args{
			In: make([]float32, c.InChannels*c.Window.In[0]*c.Window.In[1]), Weights: weights,
			Bias: make([]float32, c.OutChannels), Out: make([]float32, c.OutChannels*area),
		}
		flops := 2 * c.OutChannels * area * perOutput
		if c.Pool != nil && c.Pool.Kind == conv.PoolDepthwise {
			taps := kernel.Product(c.Pool.Kernel)
			args.PoolWeights = make([]float32, c.OutChannels*taps)
			flops += 2 * c.OutChannels * kernel.Product(c.Pool.Out) * taps
		}
		scratch := make([]float32, c.ScratchBytes()/4)
		for b.Loop() {
			for t := range c.Tiles() {
				c.Tile(t, scratch, &args)
			}
		}
		kerneltest.ReportFlops(b, flops)
	})
}

func BenchmarkPool(b *testing.B) {
	for _, c := range []struct {
		name      string
		kind      conv.PoolKind
		k, s, pad int
	}{{"max2s2", conv.PoolMax, 2, 2, 0}, {"max3s2", conv.PoolMax, 3, 2, 1}, {"average3s1", conv.PoolAverage, 3, 1, 1}} {
		kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("f32/%s/%s/64x112x112", v.Name, c.name), func(b *testing.B) {
				two := func(n int) []int { return []int{n, n} }
				p := conv.Pool{Kind: c.kind, Planes: 64, Window: conv.Window{In: two(112), Kernel: two(c.k), Stride: two(c.s), PadBegin: two(c.pad), PadEnd: two(c.pad)}}
				p.Prepare(v)
				src, dst := make([]float32, 64*112*112), make([]float32, 64*p.Out[0]*p.Out[1])
				scratch := make([]float32, p.ScratchBytes()/4)
				b.SetBytes(int64(4 * (len(src) + len(dst))))
				for b.Loop() {
					for t := range p.Tiles() {
						p.Tile(t, scratch, dst, src)
					}
				}
			})
		})
	}
}

func BenchmarkConvTranspose(b *testing.B) {
	kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
		b.Run(fmt.Sprintf("f32/%s/2x2s2/64x28x28x32", v.Name), func(b *testing.B) {
			axis := conv.TransposeAxis{In: 28, Out: 56, Kernel: 2, Stride: 2, Dilation: 1}
			c := conv.Transpose{Batch: 1, Group: 1, InChannels: 64, OutChannels: 32, Axes: []conv.TransposeAxis{axis, axis}}
			c.Prepare(v)
			args := conv.TransposeArgs{In: kerneltest.Ramp(64 * 28 * 28), Weights: kerneltest.Ramp(64 * 32 * 4), Out: make([]float32, 32*56*56)}
			scratch := make([]float32, c.ScratchBytes()/4)
			for b.Loop() {
				for t := range c.Tiles() {
					c.Tile(t, scratch, &args)
				}
			}
			kerneltest.ReportFlops(b, 2*64*32*4*28*28)
		})
	})
}
