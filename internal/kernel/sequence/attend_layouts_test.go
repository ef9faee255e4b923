package sequence_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

// layout says how the keys of a sample lie.
type layout struct {
	samples int // of one call; the sample is the last of them
	past    int // keys in operands of their own
	room    int // rows behind those in use
	block   int // rows of a block, 0 for none
}

// TestAttendLayouts: the results of a sample have the same bits however its
// keys lie, how much room is behind them, and which samples share the call.
func TestAttendLayouts(t *testing.T) { kerneltest.EachVariant(t, testAttendLayouts) }

func testAttendLayouts(t *testing.T, v *kernel.Variant) {
	for _, c := range []struct{ heads, groups, queries, keys, size, left int }{
		{2, 2, 5, 5, 4, -1}, {2, 2, 2, 7, 4, -1}, {1, 1, 1, 1, 3, -1}, {4, 4, 1, 37, 8, -1}, {8, 2, 1, 300, 24, -1}, {6, 2, 3, 90, 20, 17},
		{4, 1, 17, 1100, 33, -1}, {4, 1, 27, 1040, 16, 700}, {2, 2, 130, 130, 40, 20}, {1, 1, 77, 77, 70, -1}, {16, 1, 1, 2100, 64, -1},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.BF16, dtype.F64} {
				a := sequence.Attend{
					Type: dt, Heads: c.heads, Groups: c.groups, Queries: c.queries, Size: c.size, ValueSize: c.size + 3,
					Scale: 0.3, Fill: math.Inf(-1), Ranges: &sequence.Ranges{Causal: true, Left: c.left, Right: -1},
				}
				want := attendLaid(t, v, a, c.keys, layout{samples: 1})
				for _, l := range []layout{
					{1, 0, 7, 0}, {1, 0, 1700, 0}, {4, 0, 0, 0}, {1, c.keys / 2, 0, 0}, {2, c.keys - 1, 0, 0},
					{1, 0, 40, 1}, {2, 0, 0, 3}, {1, 0, 9, 4}, {2, 0, 2000, 16}, {1, 0, 0, c.keys},
				} {
					got := attendLaid(t, v, a, c.keys, l)
					for i, w := range want {
						if got[i] != w {
							t.Fatalf("%s, %+v, number %d: got %v, want %v", dt, l, i, got[i], w)
						}
					}
				}
			}
		})
	}
}

// attendLaid returns the result for the last sample, whose numbers are the same
// in all layouts. Rows without use are NaN.
func attendLaid(t *testing.T, v *kernel.Variant, a sequence.Attend, keys int, l layout) []float64 {
	r := kerneltest.NewRand(97)
	rows := keys - l.past + l.room
	if l.block > 0 {
		rows = kernel.CeilDiv(rows, l.block) * l.block
	}
	a.Batch, a.Past, a.Keys = []int{l.samples}, l.past, l.past+rows
	s := kerneltest.NewSpace(t)
	var args sequence.AttendArgs
	// operand returns rows of the last sample behind those of the others, which
	// are zeros.
	operand := func(last []float32) sequence.Elements {
		return elements(s, "operand", a.Type, append(make([]float32, (l.samples-1)*len(last)), last...))
	}
	place := func(to *sequence.Strides, heads, rows, size int) {
		*to = sequence.Strides{Batch: []int{heads * rows * size}, Head: rows * size, Row: size, Column: 1}
	}
	args.Q = operand(kerneltest.Uniform(r, a.Heads*a.Queries*a.Size))
	place(&a.Q, a.Heads, a.Queries, a.Size)
	place(&a.Y, a.Heads, a.Queries, a.ValueSize)
	set := func(size int, to, past *sequence.Strides) (e, p sequence.Elements) {
		x := kerneltest.Uniform(r, a.Groups*keys*size)
		first, rest := make([]float32, 0), make([]float32, a.Groups*rows*size)
		kernel.Repeat(rest, float32(math.NaN()))
		for g := range a.Groups {
			row := x[g*keys*size:][:keys*size]
			first = append(first, row[:l.past*size]...)
			copy(rest[g*rows*size:], row[l.past*size:])
		}
		if l.past > 0 {
			place(past, a.Groups, l.past, size)
			p = operand(first)
		}
		if l.block == 0 {
			place(to, a.Groups, rows, size)
			return operand(rest), p
		}
		place(to, a.Groups, l.block, size)
		pool, tables := blocksOf(append(make([]float32, (l.samples-1)*len(rest)), rest...), l.samples, a.Groups, rows, size, l.block)
		a.Block, a.Columns, args.Tables = l.block, rows/l.block, tables
		return elements(s, "pool", a.Type, pool), p
	}
	args.K, args.PastK = set(a.Size, &a.K, &a.PastK)
	args.V, args.PastV = set(a.ValueSize, &a.V, &a.PastV)
	if l.block > 0 {
		a.BlockK, a.BlockV = a.K.Batch[0], a.V.Batch[0]
		a.K.Batch[0], a.V.Batch[0] = 0, 0
	}
	for range l.samples {
		args.Lengths = append(args.Lengths, int64(keys))
	}
	n := a.Heads * a.Queries * a.ValueSize
	var y func(i int) float64
	args.Y, y = result(s, a.Type, l.samples*n)
	a.Prepare(v)
	scratch := make([]float64, (a.ScratchBytes()+7)/8)
	for i := range a.Tiles() {
		a.Tile(i, kerneltest.AsBytes(scratch), &args)
	}
	got := make([]float64, n)
	for i := range got {
		got[i] = y((l.samples-1)*n + i)
	}
	return got
}
