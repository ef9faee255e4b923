package sequence_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

// BenchmarkAttendPrompt is attention over prompts, BenchmarkAttendStep that of
// one token over keys in place. The rate counts the products of the keys that
// are seen.
func BenchmarkAttendPrompt(b *testing.B) {
	for _, heads := range [][3]int{{12, 12, 64}, {32, 32, 128}, {32, 8, 128}} {
		for _, n := range []int{128, 256, 512, 2048} {
			for _, causal := range []bool{false, true} {
				keys := n * n
				if causal {
					keys = n * (n + 1) / 2
				}
				attendRanged(b, heads, n, n, keys, causal)
			}
		}
	}
}

func BenchmarkAttendStep(b *testing.B) {
	for _, heads := range [][3]int{{12, 12, 64}, {32, 32, 128}, {32, 8, 128}, {32, 2, 128}} {
		for _, n := range []int{512, 2048, 8192} {
			attendRanged(b, heads, 1, n, n, true)
		}
	}
}

func attendRanged(b *testing.B, heads [3]int, queries, keys, seen int, causal bool) {
	q, k, val := kerneltest.Ramp(heads[0]*queries*heads[2]), kerneltest.Ramp(heads[1]*keys*heads[2]), kerneltest.Ramp(heads[1]*keys*heads[2])
	y := make([]float32, len(q))
	f := func(x []float32) sequence.Elements { return sequence.Elements{F32: x} }
	args := sequence.AttendArgs{Y: f(y), Q: f(q), K: f(k), V: f(val), Lengths: []int64{int64(keys)}}
	a := attendOf(1, heads[0], heads[1], queries, keys, heads[2], heads[2])
	a.Ranges = &sequence.Ranges{Causal: causal, Left: -1, Right: -1}
	a.Prepare(kerneltest.Best())
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("heads=%d of %dx%d/keys=%d/causal=%v/threads=%d", heads[0], heads[1], heads[2], keys, causal, threads), func(b *testing.B) {
			for b.Loop() {
				inThreads(threads, a.Tiles(), a.ScratchBytes()/4, func(t int, scratch []float32) { a.Tile(t, kerneltest.AsBytes(scratch), &args) })
			}
			kerneltest.ReportFlops(b, 4*heads[0]*seen*heads[2])
		})
	}
}
