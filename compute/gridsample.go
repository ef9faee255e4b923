package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"grid_sample": oneFloatType(bindGridSample)})

var gridModes = map[string]kernel.GridMode{"linear": kernel.GridLinear, "nearest": kernel.GridNearest, "cubic": kernel.GridCubic}

func bindGridSample(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	padding := c.Str("padding_mode")
	spec := &kernel.GridSample{
		Batch: sizes[0], Channels: sizes[1], Places: product(c.Out[0].Shape.Sizes()[2:]), In: sizes[2:], Mode: gridModes[c.Str("mode")],
		Border: padding == "border", Reflect: padding == "reflection", Align: c.Int("align_corners") != 0,
	}
	bind, ok := floatOf(c.In[0].DType, gridSampleTask[float32], gridSampleTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

func gridSampleTask[T kernel.Float](c *op.Call, spec *kernel.GridSample) *Task {
	tiles, units := groups(spec.Batch*spec.Places, 16*spec.Channels*c.In[0].DType.Size())
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		kernel.GridSampleRows(spec, lo, hi, out[T](c, 0), in[T](c, 0), in[T](c, 1))
	}}
}
