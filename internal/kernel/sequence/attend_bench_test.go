package sequence_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

// BenchmarkAttend computes attention in one kernel, and in three: a product
// with keys that are transposed already, softmax, and a product with values.
func BenchmarkAttend(b *testing.B) {
	v := kerneltest.Best()
	for _, c := range []struct{ heads, groups, queries, keys, size int }{
		{12, 12, 16, 16, 16}, {12, 12, 16, 16, 64}, {12, 12, 64, 64, 32}, {12, 12, 128, 128, 64}, {12, 12, 128, 128, 128}, {192, 192, 49, 49, 32},
		{8, 8, 512, 512, 64}, {8, 8, 1024, 1024, 16}, {8, 8, 1024, 1024, 64}, {4, 4, 2048, 2048, 64}, {4, 4, 2048, 2048, 128},
		{16, 16, 1, 64, 64}, {16, 16, 1, 2048, 64}, {16, 4, 1, 2048, 64}, {16, 4, 1, 256, 128}, {8, 8, 4, 512, 64}, {8, 8, 8, 512, 64}, {16, 4, 256, 256, 64}, {1, 1, 1, 4096, 64},
	} {
		for _, threads := range []int{1, 2} {
			name := fmt.Sprintf("%dx%dx%dx%d", c.heads, c.queries, c.keys, c.size)
			if c.groups != c.heads {
				name = fmt.Sprintf("%dof%s", c.groups, name)
			}
			flops := 4 * c.heads * c.queries * c.keys * c.size
			q, k, val := kerneltest.Ramp(c.heads*c.queries*c.size), kerneltest.Ramp(c.heads*c.keys*c.size), kerneltest.Ramp(c.heads*c.keys*c.size)
			y := make([]float32, len(q))
			b.Run(fmt.Sprintf("%s/threads=%d/one", name, threads), func(b *testing.B) {
				a := attendOf(1, c.heads, c.groups, c.queries, c.keys, c.size, c.size)
				a.Prepare(v)
				f := func(x []float32) sequence.Elements { return sequence.Elements{F32: x} }
				args := sequence.AttendArgs{Y: f(y), Q: f(q), K: f(k), V: f(val)}
				for b.Loop() {
					inThreads(threads, a.Tiles(), a.ScratchBytes()/4, func(t int, scratch []float32) { a.Tile(t, kerneltest.AsBytes(scratch), &args) })
				}
				kerneltest.ReportFlops(b, flops)
			})
			b.Run(fmt.Sprintf("%s/threads=%d/three", name, threads), func(b *testing.B) {
				batch := []int{c.groups, c.heads / c.groups}
				strides := []int{c.keys * c.size, 0}
				first := gemm.Gemm{M: c.queries, N: c.keys, K: c.size, Alpha: 1, Batch: batch, BatchB: strides, TransB: c.queries <= 4}
				second := gemm.Gemm{M: c.queries, N: c.size, K: c.keys, Alpha: 1, Batch: batch, BatchB: strides}
				first.Prepare(v)
				second.Prepare(v)
				soft := reduce.Softmax{Outer: c.heads * c.queries, Axis: c.keys, Inner: 1}
				x := make([]float32, c.heads*c.queries*c.keys)
				for b.Loop() {
					inThreads(threads, first.Tiles(), first.ScratchBytes()/4, func(t int, scratch []float32) { first.Tile(t, scratch, &gemm.Args{C: x, A: q, B: k}) })
					inThreads(threads, soft.Tiles(), 0, func(t int, scratch []float32) { reduce.SoftmaxTile(v, &soft, t, nil, x, x) })
					inThreads(threads, second.Tiles(), second.ScratchBytes()/4, func(t int, scratch []float32) { second.Tile(t, scratch, &gemm.Args{C: y, A: x, B: val}) })
				}
				kerneltest.ReportFlops(b, flops)
			})
		}
	}
}

// attendOf is an Attend over contiguous operands.
func attendOf(batch, heads, groups, queries, keys, size, values int) sequence.Attend {
	at := func(heads, rows, size int) sequence.Strides {
		return sequence.Strides{Batch: []int{heads * rows * size}, Head: rows * size, Row: size, Column: 1}
	}
	return sequence.Attend{
		Type:  dtype.F32,
		Batch: []int{batch}, Heads: heads, Groups: groups, Queries: queries, Keys: keys, Size: size, ValueSize: values, Scale: 0.125,
		Q: at(heads, queries, size), K: at(groups, keys, size), V: at(groups, keys, values), Y: at(heads, queries, values),
	}
}

var scratches [2][]float32

// inThreads runs n tiles on some goroutines.
func inThreads(threads, n, scratch int, run func(t int, scratch []float32)) {
	for i := range scratches {
		if len(scratches[i]) < scratch {
			scratches[i] = make([]float32, scratch)
		}
	}
	if threads == 1 {
		for t := range n {
			run(t, scratches[0])
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for i := range threads {
		group.Go(func() {
			for t := int(next.Add(1)) - 1; t < n; t = int(next.Add(1)) - 1 {
				run(t, scratches[i])
			}
		})
	}
	group.Wait()
}
