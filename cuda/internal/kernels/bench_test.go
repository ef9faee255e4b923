package kernels_test

import (
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/kernels"
	"github.com/tenure-go/tenure/cuda/internal/ptx"
)

// BenchmarkInterpreted runs a copy between two layouts of 64 KiB, in order and
// with everything that the interpreter can look for.
func BenchmarkInterpreted(b *testing.B) {
	const n = 16 << 10
	src, dst := kernels.Operand{Address: base, Strides: []int64{4, 512}}, kernels.Operand{Address: base + 4*n, Strides: []int64{512, 4}}
	l, err := kernels.Copy(dst, src, []int64{128, 128}, 4)
	if err != nil {
		b.Fatal(err)
	}
	m, err := module()
	if err != nil {
		b.Fatal(err)
	}
	k, err := m.Kernel(l.Kernel.Name)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		seed  uint64
		races bool
	}{{"in order", 0, false}, {"seed and races", 3, true}} {
		b.Run(c.name, func(b *testing.B) {
			h := newHeap(8 * n)
			h.MarkWritten(base, 4*n)
			steps := uint64(0)
			for b.Loop() {
				r, err := k.Run(ptx.Launch{Grid: [3]uint32{l.Blocks, 1, 1}, Block: [3]uint32{kernels.Threads, 1, 1}, Args: l.Args, Memory: h, Seed: c.seed, Races: c.races})
				if err != nil {
					b.Fatal(err)
				}
				steps += r.Steps
			}
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds()/1e6, "Minstr/s")
		})
	}
}
