package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/sample"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"grid_sample": oneFloatType(bindGridSample)})

var gridModes = map[string]sample.GridMode{"linear": sample.GridLinear, "nearest": sample.GridNearest, "cubic": sample.GridCubic}

func bindGridSample(c *op.Call) (Kernel, error) {
	padding := c.Str("padding_mode")
	spec := sample.GridSample{
		Mode: gridModes[c.Str("mode")], Border: padding == "border", Reflect: padding == "reflection", Align: c.Int("align_corners") != 0,
	}
	bind, ok := floatOf(c.In[0].DType, newGridSample[float32], newGridSample[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(spec), nil
}

type gridSample[T kernel.Float] struct {
	spec   sample.GridSample
	places groups
}

func newGridSample[T kernel.Float](spec sample.GridSample) Kernel { return &gridSample[T]{spec: spec} }

func (k *gridSample[T]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	k.spec.Batch, k.spec.Channels, k.spec.In = sizes[0], sizes[1], sizes[2:]
	k.spec.Places = product(c.Out[0].Shape.Sizes()[2:])
	k.places = groupsOf(k.spec.Batch*k.spec.Places, 16*k.spec.Channels*c.In[0].DType.Size())
	t.Tiles = k.places.tiles()
	return nil
}

func (k *gridSample[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.places.of(tile)
	sample.GridSampleRows(&k.spec, lo, hi, out[T](c, 0), in[T](c, 0), in[T](c, 1))
}
