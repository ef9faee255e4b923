package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"reduce_sum":         reduction(kernel.ReduceSum),
	"reduce_mean":        reduction(kernel.ReduceMean),
	"reduce_prod":        reduction(kernel.ReduceProd),
	"reduce_max":         reduction(kernel.ReduceMax),
	"reduce_min":         reduction(kernel.ReduceMin),
	"reduce_l1":          reduction(kernel.ReduceL1),
	"reduce_l2":          reduction(kernel.ReduceL2),
	"reduce_sum_square":  reduction(kernel.ReduceSumSquare),
	"reduce_log_sum":     reduction(kernel.ReduceLogSum),
	"reduce_log_sum_exp": reduction(kernel.ReduceLogSumExp),

	"arg_max": argExtreme(false),
	"arg_min": argExtreme(true),
})

func reduction(kind kernel.ReduceKind) binder {
	return func(c *op.Call) (*Task, error) {
		dt := c.In[0].DType
		if isHalf(dt) {
			return halfAsF32(c)
		}
		sizes := c.In[0].Shape.Sizes()
		axes, known, err := c.ReduceAxes(len(sizes))
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, unknown(c, 1)
		}
		reduced := make([]bool, len(sizes))
		for _, a := range axes {
			reduced[a] = true
		}
		spec := new(kernel.Reduce)
		spec.Prepare(kind, sizes, reduced)
		if dt == dtype.Bool {
			return reduceBools(c, spec), nil
		}
		bind, ok := floatOf(dt, reduceTask[float32], reduceTask[float64])
		if !ok {
			bind, ok = intOf(dt, reduceTask[int8], reduceTask[int16], reduceTask[int32], reduceTask[int64],
				reduceTask[uint8], reduceTask[uint16], reduceTask[uint32], reduceTask[uint64])
		}
		if !ok {
			return nil, unsupported(c)
		}
		return bind(c, spec), nil
	}
}

func reduceTask[T kernel.Number](c *op.Call, spec *kernel.Reduce) *Task {
	if c.In[0].DType == dtype.F32 && spec.ByColumns() {
		return &Task{Tiles: spec.ColumnTiles(), Scratch: 8 * kernel.ColumnScratch, Tile: func(tile int, scratch []byte) {
			kernel.ReduceColumns(machine.Best(), spec, tile, view[float64](scratch[:8*kernel.ColumnScratch]), out[float32](c, 0), in[float32](c, 0))
		}}
	}
	return &Task{Tiles: spec.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.ReduceTile(machine.Best(), spec, tile, out[T](c, 0), in[T](c, 0))
	}}
}

// reduceBools reduces bools as bytes. True may be any byte but 0, and leaves
// as 1.
func reduceBools(c *op.Call, spec *kernel.Reduce) *Task {
	t := reduceTask[uint8](c, spec)
	t.Finish = func() error {
		for i, b := range c.Out[0].Data {
			c.Out[0].Data[i] = min(b, 1)
		}
		return nil
	}
	return t
}

func argExtreme(smallest bool) binder {
	return func(c *op.Call) (*Task, error) {
		if isHalf(c.In[0].DType) {
			return halfAsF32(c)
		}
		bind, ok := floatOf(c.In[0].DType, argTask[float32], argTask[float64])
		if !ok {
			bind, ok = intOf(c.In[0].DType, argTask[int8], argTask[int16], argTask[int32], argTask[int64],
				argTask[uint8], argTask[uint16], argTask[uint32], argTask[uint64])
		}
		if !ok {
			return nil, unsupported(c)
		}
		return bind(c, smallest), nil
	}
}

func argTask[T kernel.Number](c *op.Call, smallest bool) *Task {
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	n, inner, last := sizes[axis], product(sizes[axis+1:]), c.Int("select_last_index") != 0
	tiles, units := groups(product(sizes[:axis]), n*inner*c.In[0].DType.Size())
	if inner == 0 {
		tiles = 0
	}
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		kernel.ArgExtreme(machine.Best(), out[int64](c, 0)[lo*inner:hi*inner], in[T](c, 0)[lo*n*inner:hi*n*inner], hi-lo, n, inner, smallest, last)
	}}
}
