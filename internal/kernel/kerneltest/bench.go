package kerneltest

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
)

// BenchVariants runs a benchmark once for each variant of the kernels.
func BenchVariants(b *testing.B, run func(b *testing.B, v *kernel.Variant)) {
	for _, v := range machine.Variants() {
		run(b, v)
	}
}

// ReportFlops reports the rate of a benchmark whose iterations take so many
// operations.
func ReportFlops(b *testing.B, flops int) {
	b.ReportMetric(float64(flops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}

// Ramp returns n numbers of both signs.
func Ramp(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%2000)/100 - 10
	}
	return x
}

// Best returns the fastest variant that this process may run.
func Best() *kernel.Variant { return machine.Best() }
