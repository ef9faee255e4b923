package reduce_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// BenchmarkMemory measures kernels that memory bounds beside their bounds: a
// scale in place, a copy and a read of the same bytes. The bandwidth counts the
// bytes that a kernel must read and write once.
func BenchmarkMemory(b *testing.B) {
	v := kerneltest.Best()
	for _, size := range []struct {
		name string
		n    int
	}{{"1M", 1 << 20}, {"64M", 1 << 26}} {
		x, y, z, row := kerneltest.Ramp(size.n), kerneltest.Ramp(size.n), kerneltest.Ramp(size.n), kerneltest.Ramp(1024)
		softmax := reduce.Softmax{Outer: size.n / 1024, Axis: 1024, Inner: 1}
		columns := reduce.Softmax{Outer: size.n / (64 << 10), Axis: 64, Inner: 1024}
		norm := reduce.Norm{Rows: size.n / 1024, Len: 1024, Epsilon: 1e-5}
		var nest kernel.Nest
		nest.Prepare([]int{size.n}, []int{1}, []int{1}, []int{1})
		var sum reduce.Reduction
		sum.Prepare(reduce.Sum, []int{size.n / 1024, 1024}, []bool{false, true})
		var sumColumns reduce.Reduction
		sumColumns.Prepare(reduce.Sum, []int{size.n / 1024, 1024}, []bool{true, false})
		var peak reduce.Reduction
		peak.Prepare(reduce.Max, []int{size.n >> 15, 1 << 15}, []bool{false, true})
		chain := elementwise.Chain{Elements: size.n, Operands: []elementwise.ChainOperand{{Inner: 1, Count: size.n}, {Inner: 1, Count: 1}}}
		for i := range 10 {
			step := elementwise.ChainStep{Unary: []kernel.UnaryOp{kernel.Abs, kernel.Relu, kernel.Sqrt, kernel.Neg, kernel.Sigmoid}[i/2], A: -1}
			if i%2 == 1 {
				step.IsBinary, step.Binary, step.B = true, kernel.Add, 1
			}
			if i == 0 {
				step.A = 0
			}
			chain.Steps = append(chain.Steps, step)
		}
		chain.Prepare()
		steps := make([]float32, chain.ScratchFloats())
		scratch := make([]float64, columns.ScratchBytes()/8)
		unary := func(op kernel.UnaryOp, dst []float32) func() {
			return func() {
				const tile = 32 << 10
				for at := 0; at < size.n; at += tile {
					elementwise.UnaryF32(v, op, dst[at:at+tile], x[at:at+tile], 0.999, 0.001)
				}
			}
		}
		tiles := func(n int, f func(t int)) func() {
			return func() {
				for t := range n {
					f(t)
				}
			}
		}
		for _, k := range []struct {
			name    string
			touched int // arrays read or written
			run     func()
		}{
			{"limit/read", 1, tiles(peak.Tiles(), func(t int) { reduce.Tile(v, &peak, t, y, x) })},
			{"limit/copy", 2, tiles(size.n>>15, func(t int) { copy(z[t<<15:(t+1)<<15], x[t<<15:]) })},
			{"limit/scale in place", 2, unary(kernel.Affine, x)},
			{"limit/copy past the caches", 2, tiles(size.n>>15, func(t int) {
				elementwise.Stream(v, kerneltest.AsBytes(z)[t<<17:(t+1)<<17], kerneltest.AsBytes(x)[t<<17:])
			})},
			{"relu", 2, unary(kernel.Relu, z)},
			{"gelu past the caches", 2, tiles(size.n>>15, func(t int) {
				elementwise.UnaryStream(v, kernel.Gelu, z[t<<15:(t+1)<<15], x[t<<15:(t+1)<<15], 0, 0, row)
			})},
			{"chain of 10 past the caches", 2, tiles(chain.Tiles(), func(t int) { chain.Tile(v, t, steps, z, [][]float32{x, row}, true) })},
			{"chain of 10 in place", 2, tiles(chain.Tiles(), func(t int) { chain.Tile(v, t, steps, z, [][]float32{z, row}, false) })},
			{"exp", 2, unary(kernel.Exp, z)},
			{"tanh", 2, unary(kernel.Tanh, z)},
			{"erf", 2, unary(kernel.Erf, z)},
			{"gelu", 2, unary(kernel.Gelu, z)},
			{"silu", 2, unary(kernel.Silu, z)},
			{"log", 2, unary(kernel.Log, z)},
			{"add", 3, tiles(nest.Tiles(), func(t int) { lo, hi := nest.Range(t); elementwise.BinaryF32(v, kernel.Add, &nest, lo, hi, z, x, y) })},
			{"add in place", 3, tiles(nest.Tiles(), func(t int) { lo, hi := nest.Range(t); elementwise.BinaryF32(v, kernel.Max, &nest, lo, hi, y, y, x) })},
			{"softmax", 2, tiles(softmax.Tiles(), func(t int) { reduce.SoftmaxTile(v, &softmax, t, nil, z, x) })},
			{"softmax in place", 2, tiles(softmax.Tiles(), func(t int) { reduce.SoftmaxTile(v, &softmax, t, nil, z, z) })},
			{"softmax columns", 2, tiles(columns.Tiles(), func(t int) { reduce.SoftmaxTile(v, &columns, t, scratch, z, x) })},
			{"layer norm", 2, tiles(norm.Tiles(), func(t int) { reduce.NormTile(v, &norm, t, z, x, row, row, nil, nil) })},
			{"layer norm in place", 2, tiles(norm.Tiles(), func(t int) { reduce.NormTile(v, &norm, t, z, z, row, row, nil, nil) })},
			{"sum rows", 1, tiles(sum.Tiles(), func(t int) { reduce.Tile(v, &sum, t, y, x) })},
			{"sum columns", 1, tiles(sumColumns.ColumnTiles(), func(t int) { reduce.Columns(v, &sumColumns, t, make([]float64, reduce.ColumnScratch), y, x) })},
		} {
			b.Run(size.name+"/"+k.name, func(b *testing.B) {
				for b.Loop() {
					k.run()
				}
				b.ReportMetric(float64(4*k.touched*size.n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
			})
		}
	}
}
