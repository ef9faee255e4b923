package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"max_unpool":       oneFloatType(bindMaxUnpool),
	"col2im":           bindCol2Im,
	"det":              oneFloatType(bindDet),
	"reverse_sequence": bindReverse,
	"affine_grid":      oneFloatType(bindAffineGrid),
})

func bindMaxUnpool(c *op.Call) (*Task, error) {
	sizes, err := c.UnpoolSizes()
	if err != nil {
		return nil, err
	}
	spec := &kernel.Unpool{In: sizes, Out: c.Out[0].Shape.Sizes()}
	bind, ok := floatOf(c.In[0].DType, maxUnpoolTask[float32], maxUnpoolTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

func maxUnpoolTask[T kernel.Float](c *op.Call, spec *kernel.Unpool) *Task {
	t := small(func() { kernel.MaxUnpool(spec, out[T](c, 0), in[T](c, 0), in[int64](c, 1)) })
	t.Start = func() error {
		for i, index := range in[int64](c, 1) {
			if spec.Place(index) < 0 {
				return fmt.Errorf("indices: got %d at position %d, want 0 to %d", index, i, product(spec.In)-1)
			}
		}
		return nil
	}
	return t
}

func bindCol2Im(c *op.Call) (*Task, error) {
	if isHalf(c.In[0].DType) {
		return halfAsF32(c)
	}
	axes, known, err := c.FoldAxes()
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, unknown(c, 1)
	}
	sizes := c.Out[0].Shape.Sizes()
	spec := &kernel.Fold{Planes: sizes[0] * sizes[1]}
	if spec.Window, err = windowOf(axes); err != nil {
		return nil, err
	}
	bind, ok := floatOf(c.In[0].DType, foldTask[float32], foldTask[float64])
	if !ok {
		bind, ok = intOf(c.In[0].DType, foldTask[int8], foldTask[int16], foldTask[int32], foldTask[int64],
			foldTask[uint8], foldTask[uint16], foldTask[uint32], foldTask[uint64])
	}
	if !ok {
		return nil, unsupported(c)
	}
	spec.Prepare()
	return bind(c, spec), nil
}

func foldTask[T kernel.Number](c *op.Call, spec *kernel.Fold) *Task {
	planes := spec.Planes
	if elements(&c.Out[0]) == 0 {
		planes = 0
	}
	tiles, units := groups(planes, elements(&c.In[0])/max(planes, 1)*c.In[0].DType.Size())
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		for p := lo; p < hi; p++ {
			kernel.FoldTile(spec, p, out[T](c, 0), in[T](c, 0))
		}
	}}
}

func bindDet(c *op.Call) (*Task, error) {
	bind, ok := floatOf(c.In[0].DType, detTask[float32], detTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c)
}

func detTask[T kernel.Float](c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	n := sizes[len(sizes)-1]
	if n > 1<<14 {
		return nil, unsupported(c) // the scratch has its square
	}
	tiles, units := groups(elements(&c.Out[0]), max(8, n*n*n))
	return &Task{Tiles: tiles, Scratch: n * n * 8, Tile: func(tile int, scratch []byte) {
		lo, hi := units(tile)
		for i := lo; i < hi; i++ {
			out[T](c, 0)[i] = kernel.Det(n, in[T](c, 0)[i*n*n:], view[float64](scratch[:n*n*8]))
		}
	}}, nil
}

func bindReverse(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	time, batch := int(c.Int("time_axis")), int(c.Int("batch_axis"))
	spec := &kernel.Reverse{Time: sizes[time], Batch: sizes[batch], Inner: product(sizes[2:]) * c.In[0].DType.Size(), BatchFirst: batch == 0}
	tiles, units := groups(spec.Time*spec.Batch, spec.Inner)
	return &Task{
		Tiles: tiles,
		Start: func() error {
			for i, n := range in[int64](c, 1) {
				if n < 0 || n > int64(spec.Time) {
					return fmt.Errorf("sequence_lens: got %d for sequence %d, want 0 to %d", n, i, spec.Time)
				}
			}
			return nil
		},
		Tile: func(tile int, _ []byte) {
			lo, hi := units(tile)
			kernel.ReverseRows(spec, lo, hi, c.Out[0].Data, c.In[0].Data, in[int64](c, 1))
		},
	}, nil
}

func bindAffineGrid(c *op.Call) (*Task, error) {
	sizes := c.Out[0].Shape.Sizes()
	spec := &kernel.AffineGrid{Batch: sizes[0], Out: sizes[1 : len(sizes)-1], Align: c.Int("align_corners") != 0}
	bind, ok := floatOf(c.In[0].DType, affineGridTask[float32], affineGridTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

func affineGridTask[T kernel.Float](c *op.Call, spec *kernel.AffineGrid) *Task {
	tiles, units := groups(spec.Batch*product(spec.Out), 64)
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		kernel.AffineGridRows(spec, lo, hi, out[T](c, 0), in[T](c, 0))
	}}
}
