package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"nll_loss": oneFloatType(byIndex(bindNLLLoss[int32], bindNLLLoss[int64])),
	"top_k":    bindTopK,
	"bit_cast": func(c *op.Call) (*Task, error) { return copyTask(c), nil },
	"hardmax":  oneFloatType(bindHardmax),
})

func bindNLLLoss[I kernel.Index](c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	spec := &kernel.Loss{
		Batch: sizes[0], Classes: sizes[1], Area: product(sizes[2:]), Ignore: c.Int("ignore_index"), HasIgnore: c.Attrs.Has("ignore_index"),
		Sum: c.Str("reduction") == "sum", Mean: c.Str("reduction") == "mean",
	}
	bind, ok := floatOf(c.In[0].DType, lossTask[float32, I], lossTask[float64, I])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

func lossTask[T kernel.Float, I kernel.Index](c *op.Call, spec *kernel.Loss) *Task {
	t := small(func() { kernel.NLLLoss(spec, out[T](c, 0), in[T](c, 0), in[I](c, 1), in[T](c, 2)) })
	t.Start = func() error {
		for i, target := range in[I](c, 1) {
			ignored := spec.HasIgnore && int64(target) == spec.Ignore
			if !ignored && (target < 0 || int64(target) >= int64(spec.Classes)) {
				return fmt.Errorf("targets: got class %d at position %d, want 0 to %d", target, i, spec.Classes-1)
			}
		}
		return nil
	}
	return t
}

func bindTopK(c *op.Call) (*Task, error) {
	if isHalf(c.In[0].DType) {
		return halfAsF32(c)
	}
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	spec := &kernel.TopK{Axis: sizes[axis], Inner: product(sizes[axis+1:]), K: c.Out[1].Shape.Size(axis), Smallest: c.Int("largest") == 0}
	bind, ok := floatOf(c.In[0].DType, topKTask[float32], topKTask[float64])
	if !ok {
		bind, ok = intOf(c.In[0].DType, topKTask[int8], topKTask[int16], topKTask[int32], topKTask[int64],
			topKTask[uint8], topKTask[uint16], topKTask[uint32], topKTask[uint64])
	}
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec, product(sizes[:axis])), nil
}

func topKTask[T kernel.Number](c *op.Call, spec *kernel.TopK, outer int) *Task {
	tiles, units := groups(outer*spec.Inner, spec.Axis*8)
	return &Task{Tiles: tiles, Scratch: 8 * spec.Scratch(), Tile: func(tile int, scratch []byte) {
		lo, hi := units(tile)
		kernel.TopKRows(spec, lo, hi, out[T](c, 0), out[int64](c, 1), in[T](c, 0), view[int64](scratch[:8*spec.Scratch()]))
	}}
}

func bindHardmax(c *op.Call) (*Task, error) {
	bind, ok := floatOf(c.In[0].DType, hardmaxTask[float32], hardmaxTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

func hardmaxTask[T kernel.Float](c *op.Call) *Task {
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	n, inner := sizes[axis], product(sizes[axis+1:])
	rows := product(sizes[:axis]) * inner
	if n == 0 {
		rows = 0
	}
	tiles, units := groups(rows, n*c.In[0].DType.Size())
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		kernel.HardmaxRows(lo, hi, n, inner, out[T](c, 0), in[T](c, 0))
	}}
}
