package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"conv_transpose": oneFloatType(bindConvTranspose)})

func bindConvTranspose(c *op.Call) (*Task, error) {
	bind, ok := floatOf(c.In[0].DType, convTransposeTask[float32], convTransposeTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c)
}

func convTransposeTask[T kernel.Float](c *op.Call) (*Task, error) {
	axes, err := c.ConvTransposeAxes()
	if err != nil {
		return nil, err
	}
	k := &kernel.ConvTranspose{
		Batch: c.In[0].Shape.Size(0), Channels: c.In[0].Shape.Size(1), Out: c.Out[0].Shape.Size(1), Groups: int(c.Int("group")),
	}
	for _, a := range axes {
		k.Axes = append(k.Axes, kernel.ConvTransposeAxis{In: a.In, Out: a.Out, Kernel: a.Kernel, Stride: a.Stride, Dilation: a.Dilation, PadBefore: a.Begin})
	}
	tiles := k.Tiles()
	if elements(&c.Out[0]) == 0 {
		tiles = 0
	}
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		kernel.ConvTransposeTile(k, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2))
	}}, nil
}
