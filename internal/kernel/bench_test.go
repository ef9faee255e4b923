package kernel_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
)

// perVariant runs a benchmark once for each variant of the kernels.
func perVariant(b *testing.B, run func(b *testing.B, variant string)) {
	active := kernel.Variant()
	defer kernel.UseVariant(active)
	for _, v := range kernel.Variants() {
		kernel.UseVariant(v)
		run(b, v)
	}
}

func reportFlops(b *testing.B, flops int) {
	b.ReportMetric(float64(flops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}

func BenchmarkGemm(b *testing.B) {
	perVariant(b, func(b *testing.B, variant string) {
		for _, c := range []struct {
			m, n, k int
			packed  bool
		}{{256, 256, 256, false}, {256, 256, 256, true}, {128, 768, 768, true}, {1, 3072, 768, false}, {64, 3136, 576, false}} {
			name := fmt.Sprintf("f32/%s/%dx%dx%d", variant, c.m, c.n, c.k)
			if c.packed {
				name += "/packed"
			}
			b.Run(name, func(b *testing.B) {
				g := kernel.Gemm{M: c.m, N: c.n, K: c.k, Alpha: 1, Beta: 1, PackedB: c.packed}
				args := kernel.GemmArgs{A: make([]float32, c.m*c.k), B: make([]float32, c.k*c.n), C: make([]float32, c.m*c.n)}
				if c.packed {
					panels := make([]float32, g.PackedBFloats())
					pack := g
					pack.PackB(panels, args.B)
					args.B = panels
				}
				g.Prepare()
				scratch := make([]float32, g.ScratchBytes()/4)
				for b.Loop() {
					for t := range g.Tiles() {
						g.Tile(t, scratch, &args)
					}
				}
				reportFlops(b, 2*c.m*c.n*c.k)
			})
		}
	})
}
