package kerneltest_test

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// TestTilesAllocateNothing pins what runs in the step loop to the memory that
// it is given.
func TestTilesAllocateNothing(t *testing.T) {
	for _, v := range machine.Variants() {
		t.Run(v.Name, func(t *testing.T) { tilesAllocateNothing(t, v) })
	}
}

func tilesAllocateNothing(t *testing.T, v *kernel.Variant) {
	const n = 4 << 10
	x, y, z, scratch := kerneltest.Ramp(n), kerneltest.Ramp(n), make([]float32, n), make([]float32, 256<<10)
	half, ints, bools := make([]uint16, n), make([]int64, n), make([]uint8, n)
	words, wide := make([]uint64, 2*n), make([]float64, n)
	bytes := kerneltest.AsBytes(words)

	var even, perRow kernel.Nest
	even.Prepare([]int{n}, []int{1}, []int{1}, []int{1}, []int{1})
	perRow.Prepare([]int{n / 64, 64}, []int{64, 1}, []int{64, 1}, []int{1, 0})
	var turn, slice move.Copy
	turn.PrepareTranspose(4, []int{64, 64}, []int{1, 0}, nil, nil)
	slice.PrepareSlice(4, []int{64, 64}, []int{0, 63}, []int{1, -2}, []int{64, 32}, nil, nil)
	gather := move.GatherSpec{Outer: 1, Axis: n, Count: n, Inner: 4}
	gather.Prepare()
	var pad move.Pad
	pad.Prepare(4, []int{32, 32}, []int{1, 2}, []int{1, 2}, move.PadReflect, nil, nil)
	product := gemm.Gemm{M: 30, N: 40, K: 50, TransA: true, Alpha: 2, Beta: 1, Epilogue: gemm.Epilogue{Bias: gemm.BiasCol, Act: gemm.Activation{Op: kernel.Gelu}}}
	product.Prepare(v)
	two := func(v int) []int { return []int{v, v} }
	window := conv.Window{In: two(16), Kernel: two(3), PadBegin: two(1), PadEnd: two(1)}
	spread := conv.Conv{Batch: 1, Group: 1, InChannels: 4, OutChannels: 5, Window: window, ScaleShift: true, Epilogue: gemm.Epilogue{Residual: true}}
	depthwise := conv.Conv{Batch: 1, Group: 4, InChannels: 4, OutChannels: 4, Window: window}
	pooled := spread
	pooled.Pool = &conv.Pool{Window: conv.Window{Kernel: two(2), Stride: two(2)}}
	direct := spread
	_, direct.PackedWeights = direct.WeightPanels(v)
	byRows := conv.Conv{Batch: 1, Group: 1, InChannels: 2, OutChannels: 4, Window: window}
	_, byRows.PackedWeights = byRows.WeightPanels(v)
	for _, c := range []*conv.Conv{&spread, &depthwise, &pooled, &direct, &byRows} {
		c.Prepare(v)
	}
	convArgs := conv.Args{Out: z, In: x, Weights: y, Residual: y, Scale: y, Shift: y}
	pool := conv.Pool{Kind: conv.PoolAverage, Planes: 4, Window: window}
	pool.Prepare(v)
	softmax := []reduce.Softmax{{Outer: 4, Axis: 64, Inner: 1}, {Outer: 1, Axis: 64, Inner: 40}}
	norm := reduce.Norm{Rows: 4, Len: 64, Epsilon: 1e-5}
	var rows, columns reduce.Reduction
	rows.Prepare(reduce.Max, []int{64, 64}, []bool{false, true})
	columns.Prepare(reduce.LogSumExp, []int{64, 64}, []bool{true, false})

	tiles := func(n int, f func(t int)) {
		for t := range n {
			f(t)
		}
	}
	for name, run := range map[string]func(){
		"unary": func() {
			elementwise.UnaryF32(v, kernel.Erf, z, x, 0, 0)
			elementwise.UnaryF32(v, kernel.Sin, z, x, 0, 0)
		},
		"half": func() { elementwise.UnaryHalf(v, kernel.Exp, dtype.F16, half, half, 0, 0, scratch[:100]) },
		"binary": func() {
			elementwise.BinaryF32(v, kernel.Add, &even, 0, n, z, x, y)
			elementwise.BinaryF32(v, kernel.Pow, &perRow, 5, n, z, x, y)
			elementwise.BinaryF32(v, kernel.Prelu, &even, 0, n, z, x, y)
			elementwise.BinaryF32(v, kernel.Prelu, &perRow, 5, n, z, x, y)
			elementwise.BinaryF64(v, kernel.Prelu, &even, 0, n, wide, wide, wide)
		},
		"int":       func() { elementwise.BinaryInt(v, kernel.Div, &even, 0, n, ints, ints, ints) },
		"predicate": func() { elementwise.Predicate(v, kernel.Less, &even, 0, n, bools, x, y) },
		"where":     func() { elementwise.Where(v, &even, 0, n, 8, bytes[:8*n], bools, bytes[:8*n], bytes[:8*n]) },
		"cast":      func() { elementwise.Cast(v, bytes, dtype.F16, bytes, dtype.I64, 0, 1000, elementwise.CastMode{}) },
		"loops": func() {
			elementwise.BinaryF64(v, kernel.Max, &even, 0, n, wide, wide, wide)
			elementwise.UnaryF64(v, kernel.Clip, wide, wide, -1, 1)
			elementwise.Clamp(v, ints, ints, -1, 1)
			elementwise.Not(v, bools, bools)
			elementwise.Cast(v, bytes, dtype.Bool, bytes, dtype.F64, 0, n, elementwise.CastMode{})
			elementwise.Cast(v, bytes, dtype.F32, bools, dtype.Bool, 0, n, elementwise.CastMode{})
		},
		"cast f8":   func() { elementwise.Cast(v, bytes, dtype.F8E4M3FN, bytes, dtype.F32, 0, 1000, elementwise.CastMode{}) },
		"transpose": func() { tiles(turn.Tiles(), func(t int) { turn.Tile(v, t, bytes[:4*n], bytes[4*n:8*n]) }) },
		"slice":     func() { tiles(slice.Tiles(), func(t int) { slice.Tile(v, t, bytes[:4*n], bytes[4*n:8*n]) }) },
		"gather": func() {
			tiles(gather.Tiles(), func(t int) { move.Gather(&gather, t, bytes[:4*n], bytes[4*n:8*n], ints) })
		},
		"pad": func() { tiles(pad.Tiles(), func(t int) { pad.Tile(t, bytes, bytes[8*n:], nil) }) },
		"gemm": func() {
			tiles(product.Tiles(), func(t int) { product.Tile(t, scratch, &gemm.Args{C: z, A: x, B: y, Bias: y}) })
		},
		"conv":       func() { tiles(spread.Tiles(), func(t int) { spread.Tile(t, scratch, &convArgs) }) },
		"depthwise":  func() { tiles(depthwise.Tiles(), func(t int) { depthwise.Tile(t, scratch, &convArgs) }) },
		"direct":     func() { tiles(direct.Tiles(), func(t int) { direct.Tile(t, scratch, &convArgs) }) },
		"by rows":    func() { tiles(byRows.Tiles(), func(t int) { byRows.Tile(t, scratch, &convArgs) }) },
		"pooled":     func() { tiles(pooled.Tiles(), func(t int) { pooled.Tile(t, scratch, &convArgs) }) },
		"pool":       func() { tiles(pool.Tiles(), func(t int) { pool.Tile(t, scratch, z, x) }) },
		"softmax":    func() { tiles(1, func(t int) { reduce.SoftmaxTile(v, &softmax[0], t, nil, z, x) }) },
		"columns":    func() { tiles(1, func(t int) { reduce.SoftmaxTile(v, &softmax[1], t, wide, z, x) }) },
		"norm":       func() { tiles(norm.Tiles(), func(t int) { reduce.NormTile(v, &norm, t, z, x, y, y, nil, nil) }) },
		"reduce":     func() { tiles(rows.Tiles(), func(t int) { reduce.Tile(v, &rows, t, z, x) }) },
		"reduce col": func() { tiles(columns.Tiles(), func(t int) { reduce.Tile(v, &columns, t, z, x) }) },
	} {
		if got := testing.AllocsPerRun(10, run); got != 0 {
			t.Errorf("%s: got %v allocations per run, want 0", name, got)
		}
	}
}
