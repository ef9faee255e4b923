package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"reduce_sum":         reduction(reduce.Sum),
	"reduce_mean":        reduction(reduce.Mean),
	"reduce_prod":        reduction(reduce.Prod),
	"reduce_max":         reduction(reduce.Max),
	"reduce_min":         reduction(reduce.Min),
	"reduce_l1":          reduction(reduce.L1),
	"reduce_l2":          reduction(reduce.L2),
	"reduce_sum_square":  reduction(reduce.SumSquare),
	"reduce_log_sum":     reduction(reduce.LogSum),
	"reduce_log_sum_exp": reduction(reduce.LogSumExp),

	"arg_max": argExtreme(false),
	"arg_min": argExtreme(true),
})

var _ = needValues(map[string][]int{
	"reduce_sum": {1}, "reduce_mean": {1}, "reduce_prod": {1}, "reduce_max": {1}, "reduce_min": {1}, "reduce_l1": {1}, "reduce_l2": {1},
	"reduce_sum_square": {1}, "reduce_log_sum": {1}, "reduce_log_sum_exp": {1},
})

func reduction(kind reduce.Kind) binder {
	return func(c *op.Call) (Kernel, error) {
		dt := c.In[0].DType
		switch {
		case isHalf(dt):
			return halfAsF32(c)
		case dt == dtype.Bool:
			return &reducedBools{reducedAxes[uint8]{reduced[uint8]{kind: kind}}}, nil
		}
		bind, ok := floatOf(dt, newReduced[float32], newReduced[float64])
		if !ok {
			bind, ok = intOf(dt, newReduced[int8], newReduced[int16], newReduced[int32], newReduced[int64],
				newReduced[uint8], newReduced[uint16], newReduced[uint32], newReduced[uint64])
		}
		if !ok {
			return nil, unsupported(c)
		}
		return bind(kind), nil
	}
}

// reduced is a reduction of operand 0 along some axes.
type reduced[T kernel.Number] struct {
	kind    reduce.Kind
	spec    reduce.Reduction
	columns bool
	along   []bool // per axis
	axes    []int  // those that are reduced
}

// size sets what depends on sizes and on the axes in along.
func (k *reduced[T]) size(t *Task) {
	k.spec.Prepare(k.kind, t.Call.In[0].Shape.Sizes(), k.along)
	if k.columns = t.Call.In[0].DType == dtype.F32 && k.spec.ByColumns(); k.columns {
		t.Tiles, t.Scratch = k.spec.ColumnTiles(), 8*reduce.ColumnScratch
		return
	}
	t.Tiles = k.spec.Tiles()
}

// spatial is size for all axes but the first two.
func (k *reduced[T]) spatial(t *Task) {
	k.along = k.along[:0]
	for i := range t.Call.In[0].Shape.Sizes() {
		k.along = append(k.along, i >= 2)
	}
	k.size(t)
}

func (k *reduced[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	if k.columns {
		reduce.Columns(t.variant, &k.spec, tile, view[float64](scratch[:8*reduce.ColumnScratch]), out[float32](c, 0), in[float32](c, 0))
		return
	}
	reduce.Tile(t.variant, &k.spec, tile, out[T](c, 0), in[T](c, 0))
}

// reducedAxes reads the axes from the call.
type reducedAxes[T kernel.Number] struct{ reduced[T] }

func newReduced[T kernel.Number](kind reduce.Kind) Kernel {
	return &reducedAxes[T]{reduced[T]{kind: kind}}
}

func (k *reducedAxes[T]) Refill(t *Task) error {
	c := t.Call
	rank := c.In[0].Shape.Rank()
	axes, known, err := c.AppendReduceAxes(k.axes[:0], rank)
	if err != nil {
		return err
	}
	if !known {
		return unknown(c, 1)
	}
	k.axes = axes
	k.along = k.along[:0]
	for range rank {
		k.along = append(k.along, false)
	}
	for _, a := range k.axes {
		k.along[a] = true
	}
	k.size(t)
	return nil
}

// reducedBools reduces bools as bytes. True may be any byte but 0, and leaves
// as 1.
type reducedBools struct{ reducedAxes[uint8] }

func (k *reducedBools) Finish(t *Task) error {
	for i, b := range t.Call.Out[0].Data {
		t.Call.Out[0].Data[i] = min(b, 1)
	}
	return nil
}

func argExtreme(smallest bool) binder {
	return func(c *op.Call) (Kernel, error) {
		if isHalf(c.In[0].DType) {
			return halfAsF32(c)
		}
		bind, ok := floatOf(c.In[0].DType, newExtreme[float32], newExtreme[float64])
		if !ok {
			bind, ok = intOf(c.In[0].DType, newExtreme[int8], newExtreme[int16], newExtreme[int32], newExtreme[int64],
				newExtreme[uint8], newExtreme[uint16], newExtreme[uint32], newExtreme[uint64])
		}
		if !ok {
			return nil, unsupported(c)
		}
		return bind(smallest, c.Int("select_last_index") != 0), nil
	}
}

// extreme finds the index of the largest or smallest element along an axis.
type extreme[T kernel.Number] struct {
	smallest, last bool
	n, inner       int
	outer          groups
}

func newExtreme[T kernel.Number](smallest, last bool) Kernel {
	return &extreme[T]{smallest: smallest, last: last}
}

func (k *extreme[T]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	k.n, k.inner = sizes[axis], product(sizes[axis+1:])
	k.outer = groupsOf(product(sizes[:axis]), k.n*k.inner*c.In[0].DType.Size())
	if k.inner > 0 {
		t.Tiles = k.outer.tiles()
	}
	return nil
}

func (k *extreme[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.outer.of(tile)
	reduce.ArgExtreme(t.variant, out[int64](c, 0)[lo*k.inner:hi*k.inner], in[T](c, 0)[lo*k.n*k.inner:hi*k.n*k.inner], hi-lo, k.n, k.inner, k.smallest, k.last)
}
