package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/quantised"
)

// perVariant runs a benchmark once for each variant of the kernels.
func perVariant(b *testing.B, run func(b *testing.B, v *kernel.Variant)) {
	for _, v := range machine.Variants() {
		run(b, v)
	}
}

func reportFlops(b *testing.B, flops int) {
	b.ReportMetric(float64(flops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}

// BenchmarkGemm multiplies with a right matrix as it lies, and with one that is packed.
func BenchmarkGemm(b *testing.B) {
	perVariant(b, func(b *testing.B, v *kernel.Variant) {
		for _, c := range [][3]int{{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {128, 768, 768}, {128, 3072, 768}, {1, 3072, 768}, {4, 3072, 768}, {10, 3072, 768}, {64, 3136, 576}} {
			for _, packed := range []bool{false, true} {
				g := gemm.Gemm{M: c[0], N: c[1], K: c[2], Alpha: 1, Beta: 1, PackedB: packed}
				name := fmt.Sprintf("f32/%s/%dx%dx%d", v.Name, g.M, g.N, g.K)
				if packed {
					name += "/packed"
				}
				b.Run(name, func(b *testing.B) { benchmarkGemm(b, v, g) })
			}
		}
	})
}

// BenchmarkGemmBatch multiplies many small matrices: the heads of an attention.
func BenchmarkGemmBatch(b *testing.B) {
	perVariant(b, func(b *testing.B, v *kernel.Variant) {
		for _, c := range [][3]int{{128, 128, 32}, {128, 32, 128}, {128, 128, 64}, {8, 8, 64}, {1, 64, 64}} {
			g := gemm.Gemm{M: c[0], N: c[1], K: c[2], Alpha: 1, Beta: 1, Batch: []int{12}}
			b.Run(fmt.Sprintf("f32/%s/12x%dx%dx%d", v.Name, g.M, g.N, g.K), func(b *testing.B) { benchmarkGemm(b, v, g) })
		}
	})
}

func benchmarkGemm(b *testing.B, v *kernel.Variant, g gemm.Gemm) {
	batch := 1
	for _, n := range g.Batch {
		batch *= n
	}
	args := gemm.Args{A: make([]float32, batch*g.M*g.K), B: make([]float32, batch*g.K*g.N), C: make([]float32, batch*g.M*g.N)}
	if g.PackedB {
		panels := make([]float32, g.PackedBFloats(v))
		pack := g
		pack.PackB(v, panels, args.B)
		args.B = panels
	}
	g.Prepare(v)
	scratch := make([]float32, g.ScratchBytes()/4)
	for b.Loop() {
		for t := range g.Tiles() {
			g.Tile(t, scratch, &args)
		}
	}
	reportFlops(b, 2*batch*g.M*g.N*g.K)
}

func BenchmarkConv(b *testing.B) {
	pad := func(n int) []int { return []int{n, n} }
	square := func(in, size, out, k, stride int) conv.Conv {
		w := conv.Window{In: pad(size), Kernel: pad(k), Stride: pad(stride), PadBegin: pad(k / 2), PadEnd: pad(k / 2)}
		return conv.Conv{InChannels: in, OutChannels: out, Group: 1, Window: w}
	}
	pooled, depthwise := square(64, 56, 64, 3, 1), square(64, 56, 64, 3, 1)
	pooled.Pool = &conv.Pool{Window: conv.Window{Kernel: pad(2), Stride: pad(2)}}
	depthwise.Group = 64
	for _, c := range []struct {
		name string
		conv conv.Conv
	}{
		{"3x3/64x56x56x64", square(64, 56, 64, 3, 1)},
		{"3x3/256x14x14x256", square(256, 14, 256, 3, 1)},
		{"3x3/512x7x7x512", square(512, 7, 512, 3, 1)},
		{"3x3s2/256x28x28x256", square(256, 28, 256, 3, 2)},
		{"1x1/64x56x56x256", square(64, 56, 256, 1, 1)},
		{"1x1/256x28x28x128", square(256, 28, 128, 1, 1)},
		{"1x1s2/1024x14x14x2048", square(1024, 14, 2048, 1, 2)},
		{"7x7s2/3x224x224x64", square(3, 224, 64, 7, 2)},
		{"dw3x3/64x56x56", depthwise},
		{"3x3pool2/64x56x56x64", pooled},
	} {
		perVariant(b, func(b *testing.B, v *kernel.Variant) {
			for _, packed := range []bool{false, true} {
				benchConv(b, v, fmt.Sprintf("f32/%s/packed=%v/%s", v.Name, packed, c.name), c.conv, packed)
			}
		})
	}
}

func benchConv(b *testing.B, v *kernel.Variant, name string, c conv.Conv, packed bool) {
	b.Run(name, func(b *testing.B) {
		c.Batch, c.Bias, c.Act = 1, gemm.BiasRow, gemm.Activation{Op: kernel.Relu}
		c.Prepare(v)
		perOutput := c.InChannels / c.Group * c.Kernel[0] * c.Kernel[1]
		weights := make([]float32, c.OutChannels*perOutput)
		if packed {
			if c.PackedFloats() == 0 {
				b.Skip("wants its weights as they are")
			}
			weights = make([]float32, c.PackedFloats())
			c.PackedWeights = true
			c.Prepare(v)
		}
		area := c.Window.Out[0] * c.Window.Out[1]
		args := conv.Args{
			In: make([]float32, c.InChannels*c.Window.In[0]*c.Window.In[1]), Weights: weights,
			Bias: make([]float32, c.OutChannels), Out: make([]float32, c.OutChannels*area),
		}
		scratch := make([]float32, c.ScratchBytes()/4)
		for b.Loop() {
			for t := range c.Tiles() {
				c.Tile(t, scratch, &args)
			}
		}
		reportFlops(b, 2*c.OutChannels*area*perOutput)
	})
}

func BenchmarkPool(b *testing.B) {
	for _, c := range []struct {
		name      string
		kind      conv.PoolKind
		k, s, pad int
	}{{"max2s2", conv.PoolMax, 2, 2, 0}, {"max3s2", conv.PoolMax, 3, 2, 1}, {"average3s1", conv.PoolAverage, 3, 1, 1}} {
		perVariant(b, func(b *testing.B, v *kernel.Variant) {
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

func BenchmarkUnary(b *testing.B) {
	const n = 64 << 10
	src, dst := make([]float32, n), make([]float32, n)
	for i := range src {
		src[i] = float32(i%2000)/100 - 10
	}
	for _, op := range []kernel.UnaryOp{kernel.Relu, kernel.LeakyRelu, kernel.Exp, kernel.Sigmoid, kernel.Tanh, kernel.Gelu, kernel.GeluTanh, kernel.Erf, kernel.Silu, kernel.HardSwish, kernel.Sqrt, kernel.Log} {
		perVariant(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("f32/%s/%s/64Ki", v.Name, op), func(b *testing.B) {
				b.SetBytes(8 * n)
				for b.Loop() {
					elementwise.UnaryF32(v, op, dst, src, 0.1, 0)
				}
			})
		})
	}
}

func BenchmarkBinary(b *testing.B) {
	const n = 64 << 10
	x, y, dst := make([]float32, n), make([]float32, n), make([]float32, n)
	var even, perRow kernel.Nest
	even.Prepare([]int{n}, []int{1}, []int{1}, []int{1})
	perRow.Prepare([]int{n / 256, 256}, []int{256, 1}, []int{256, 1}, []int{1, 0})
	for _, op := range []kernel.BinaryOp{kernel.Add, kernel.Mul} {
		perVariant(b, func(b *testing.B, v *kernel.Variant) {
			for name, nest := range map[string]*kernel.Nest{"even": &even, "per row": &perRow} {
				b.Run(fmt.Sprintf("f32/%s/%s/%s/64Ki", v.Name, op, name), func(b *testing.B) {
					b.SetBytes(12 * n)
					for b.Loop() {
						elementwise.BinaryF32(v, op, nest, 0, n, dst, x, y)
					}
				})
			}
		})
	}
}

func BenchmarkTranspose(b *testing.B) {
	v := machine.Best()
	for _, c := range []struct {
		name        string
		shape, perm []int
	}{{"matrix", []int{1024, 1024}, []int{1, 0}}, {"large matrix", []int{4096, 4096}, []int{1, 0}},
		{"heads", []int{8, 128, 12, 64}, []int{0, 2, 1, 3}}, {"keys", []int{8, 2048, 64}, []int{0, 2, 1}}, {"nhwc", []int{224, 224, 3}, []int{2, 0, 1}}} {
		b.Run("f32/"+c.name, func(b *testing.B) {
			var k move.Copy
			k.PrepareTranspose(4, c.shape, c.perm)
			n := 1
			for _, d := range c.shape {
				n *= d
			}
			src, dst := make([]byte, 4*n), make([]byte, 4*n)
			b.SetBytes(int64(8 * n))
			for b.Loop() {
				for t := range k.Tiles() {
					k.Tile(v, t, dst, src)
				}
			}
		})
	}
}

// BenchmarkIntGemm multiplies unsigned bytes with signed ones: with a packed right matrix, and with one that changes.
func BenchmarkIntGemm(b *testing.B) {
	perVariant(b, func(b *testing.B, v *kernel.Variant) {
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
					reportFlops(b, 2*g.M*g.N*g.K)
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
	}{{"1x1/64x256/56", 1, 64, 256, 56, 1}, {"3x3/64x64/56", 1, 64, 64, 56, 3}, {"3x3/512x512/7", 1, 512, 512, 7, 3}, {"depthwise/144/28", 144, 1, 1, 28, 3}} {
		perVariant(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("%s/%s", v.Name, l.name), func(b *testing.B) {
				two := func(v int) []int { return []int{v, v} }
				c := quantised.IntConv{Batch: 1, Group: l.group, Channels: l.in, Filters: l.out, In: two(l.size), Out: two(l.size), Kernel: two(l.kernel),
					Stride: two(1), Dilation: two(1), Pad: two(l.kernel / 2), SignedW: true}
				c.Prepare(v)
				area := l.size * l.size
				x, w, dst := make([]uint8, l.group*l.in*area), make([]int8, l.group*l.out*l.in*l.kernel*l.kernel), make([]byte, l.group*l.out*area)
				for i := range x {
					x[i] = uint8(i)
				}
				for i := range w {
					w[i] = int8(i)
				}
				one := func(v float32) quantised.Numbers {
					return quantised.Numbers{DType: dtype.F32, Data: wide([]float32{v})}
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
				reportFlops(b, 2*len(dst)*l.in*l.kernel*l.kernel)
			})
		})
	}
}

func BenchmarkQuantize(b *testing.B) {
	const n = 1 << 18
	q := quantised.Quant{Axis: 1, Inner: n, Block: 1}
	of := func(x []float32) quantised.Numbers { return quantised.Numbers{DType: dtype.F32, Data: wide(x)} }
	x, back, narrow := of(ramp(n)), of(make([]float32, n)), quantised.Numbers{DType: dtype.U8, Data: make([]byte, n)}
	scale, zero := of([]float32{0.1}), quantised.Numbers{DType: dtype.U8, Data: []byte{100}}
	perVariant(b, func(b *testing.B, v *kernel.Variant) {
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

// BenchmarkCompressed reads a large constant B, as it is packed and compressed, for a few rows; and makes the compressed one.
func BenchmarkCompressed(b *testing.B) {
	v := machine.Best()
	const n, k = 4096, 4096
	r := rand.New(rand.NewPCG(1, 2))
	weights := make([]float32, n*k)
	for i := range weights {
		weights[i] = float32(r.NormFloat64())
	}
	z := gemm.CompressedB{N: n, K: k, TransB: true, Alpha: 1}
	z.Prepare(v)
	scratch, index := make([]float32, z.ScratchFloats()), make([]byte, z.IndexBytes())
	measure := func() {
		for part := range z.Parts() {
			z.Measure(part, index, weights, scratch)
		}
	}
	measure()
	packed := make([]float32, z.Place(index)/4)
	data := unsafe.Slice((*byte)(unsafe.Pointer(&packed[0])), 4*len(packed))
	copy(data, index)
	pack := func() {
		for part := range z.Parts() {
			z.Pack(part, data, weights, scratch)
		}
	}
	pack()
	timed := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(4 * n * k)
			for b.Loop() {
				f()
			}
		})
	}
	timed("measure", measure)
	timed("pack", pack)
	exponents := gemm.Exponents{127, 126, 125, 124, 123, 122, 128, 121}
	panel := weights[:z.ScratchFloats()]
	aside := 0
	for _, v := range panel {
		if !slices.Contains(exponents[:], byte(math.Float32bits(v)>>23)) {
			aside++
		}
	}
	block := make([]byte, gemm.CompressedBytes(v, len(panel), aside))
	one := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(panel)))
			for b.Loop() {
				f()
			}
		})
	}
	one("compress", func() { gemm.CompressFloats(v, block, exponents, aside, panel) })
	one("expand", func() { gemm.ExpandFloats(v, panel, block, exponents, aside) })
	g := gemm.Gemm{N: n, K: k, TransB: true, Alpha: 1, PackedB: true}
	panels := make([]float32, g.PackedBFloats(v))
	pack = func() { p := g; p.PackB(v, panels, weights) }
	timed("pack panels", pack)
	for _, m := range []int{1, 3, 16, 64, 256} {
		a, c := make([]float32, m*k), make([]float32, m*n)
		for _, compressed := range []bool{false, true} {
			p := g
			p.M, p.CompressedB = m, compressed
			p.Prepare(v)
			scratch := make([]float32, p.ScratchBytes()/4)
			args := gemm.Args{A: a, B: panels, C: c}
			if compressed {
				args.B = packed
			}
			timed(fmt.Sprintf("rows %d compressed %v", m, compressed), func() {
				for t := range p.Tiles() {
					p.Tile(t, scratch, &args)
				}
			})
		}
	}
}
