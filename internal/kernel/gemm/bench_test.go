package gemm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

// BenchmarkGemm multiplies with a right matrix as it lies, and with one that is
// packed.
func BenchmarkGemm(b *testing.B) {
	kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
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
	kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
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
	kerneltest.ReportFlops(b, 2*batch*g.M*g.N*g.K)
}

// BenchmarkCompressed reads a large constant B, as it is packed and compressed,
// for a few rows; and makes the compressed one.
func BenchmarkCompressed(b *testing.B) {
	v := kerneltest.Best()
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
