package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
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
		switch c.In[0].DType {
		case dtype.F32:
			return bindReduce[float32](c, kind)
		case dtype.F64:
			return bindReduce[float64](c, kind)
		case dtype.I32:
			return bindReduce[int32](c, kind)
		case dtype.I64:
			return bindReduce[int64](c, kind)
		case dtype.U32:
			return bindReduce[uint32](c, kind)
		case dtype.U64:
			return bindReduce[uint64](c, kind)
		case dtype.I8:
			return bindReduce[int8](c, kind)
		case dtype.U8, dtype.Bool:
			return bindReduce[uint8](c, kind)
		case dtype.F16, dtype.BF16:
			return halfAsF32(c)
		}
		return nil, unsupported(c)
	}
}

func bindReduce[T kernel.Number](c *op.Call, kind kernel.ReduceKind) (*Task, error) {
	rank := c.In[0].Shape.Rank()
	axes, known, err := c.ReduceAxes(rank)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, unknown(c, 1)
	}
	if len(axes) == 0 && kind != kernel.ReduceL1 && kind != kernel.ReduceL2 && kind != kernel.ReduceSumSquare && kind != kernel.ReduceLogSum {
		return copyTask(c), nil // of one element each
	}
	reduced := make([]bool, rank)
	for _, a := range axes {
		reduced[a] = true
	}
	r := &kernel.Reduce{}
	r.Prepare(kind, c.In[0].Shape.Sizes(), reduced)
	return &Task{Tiles: r.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.ReduceTile(r, tile, out[T](c, 0), in[T](c, 0))
	}}, nil
}

func argExtreme(smallest bool) binder {
	return func(c *op.Call) (*Task, error) {
		switch c.In[0].DType {
		case dtype.F32:
			return bindArg[float32](c, smallest)
		case dtype.F64:
			return bindArg[float64](c, smallest)
		case dtype.I32:
			return bindArg[int32](c, smallest)
		case dtype.I64:
			return bindArg[int64](c, smallest)
		case dtype.I8:
			return bindArg[int8](c, smallest)
		case dtype.U8:
			return bindArg[uint8](c, smallest)
		case dtype.F16, dtype.BF16:
			return halfAsF32(c)
		}
		return nil, unsupported(c)
	}
}

func bindArg[T kernel.Number](c *op.Call, smallest bool) (*Task, error) {
	outer, axis, inner := around(c.In[0].Shape.Sizes(), int(c.Int("axis")))
	last := c.Int("select_last_index") != 0
	return &Task{Tiles: outer, Tile: func(tile int, _ []byte) {
		src, dst := in[T](c, 0), out[int64](c, 0)
		kernel.ArgExtreme(dst[tile*inner:(tile+1)*inner], src[tile*axis*inner:(tile+1)*axis*inner], 1, axis, inner, smallest, last)
	}}, nil
}

// around splits sizes at an axis, which may count from the end: the elements
// before it, along it and after it.
func around(sizes []int, axis int) (outer, n, inner int) {
	if axis < 0 {
		axis += len(sizes)
	}
	outer, n, inner = 1, 1, 1
	for i, s := range sizes {
		switch {
		case i < axis:
			outer *= s
		case i > axis:
			inner *= s
		default:
			n = s
		}
	}
	return outer, n, inner
}
