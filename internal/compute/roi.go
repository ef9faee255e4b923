package compute

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/sample"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"roi_align":        oneFloatType(bindRoiAlign),
	"max_roi_pool":     oneFloatType(bindMaxRoiPool),
	"deform_conv":      oneFloatType(bindDeformConv),
	"linear_attention": oneFloatType(bindLinearAttention),
})

// regions is what kernels know that take regions of the images of operand 0,
// one after the other.
type regions struct {
	image   int // elements of one of operand 0
	result  int // elements of a region of result 0
	count   int
	images  int
	perTile groups
}

func (k *regions) Refill(t *Task) error {
	c := t.Call
	x := c.In[0].Shape.Sizes()
	k.image, k.images = product(x[1:]), x[0]
	k.count, k.result = c.Out[0].Shape.Size(0), 0
	n := elements(&c.Out[0])
	if n == 0 {
		k.count = 0
		return nil
	}
	k.result = n / k.count
	k.perTile = groupsOf(k.count, 32*k.result)
	t.Tiles = k.perTile.tiles()
	return nil
}

// check returns an error for a region of an image that there is not.
func (k *regions) check(c *op.Call, region int, image float64) error {
	if image != math.Trunc(image) || image < 0 || image >= float64(k.images) || k.image == 0 {
		return fmt.Errorf("region %d: got image %v, want 0 to %d of %s", region, image, k.images-1, c.In[0].Type)
	}
	return nil
}

func bindRoiAlign(c *op.Call) (Kernel, error) {
	spec := sample.RoiAlign{
		Ratio: int(c.Int("sampling_ratio")), Scale: c.Float("spatial_scale"),
		HalfPixel: c.Str("coordinate_transformation_mode") == "half_pixel", Max: c.Str("mode") == "max",
	}
	bind, ok := floatOf(c.In[0].DType, newRoiAlign[float32], newRoiAlign[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(spec), nil
}

type roiAlign[T kernel.Float] struct {
	regions
	spec sample.RoiAlign
}

func newRoiAlign[T kernel.Float](spec sample.RoiAlign) Kernel { return &roiAlign[T]{spec: spec} }

func (k *roiAlign[T]) Refill(t *Task) error {
	x, grid := t.Call.In[0].Shape.Sizes(), t.Call.Out[0].Shape.Sizes()
	k.spec.Channels, k.spec.Height, k.spec.Width, k.spec.OutHeight, k.spec.OutWidth = x[1], x[2], x[3], grid[2], grid[3]
	return k.regions.Refill(t)
}

func (k *roiAlign[T]) Start(t *Task) error {
	for i := range k.count {
		if err := k.check(t.Call, i, float64(in[int64](t.Call, 2)[i])); err != nil {
			return err
		}
	}
	return nil
}

func (k *roiAlign[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.perTile.of(tile)
	for i := lo; i < hi; i++ {
		from := int(in[int64](c, 2)[i]) * k.image
		sample.RoiAlignRegion(&k.spec, out[T](c, 0)[i*k.result:(i+1)*k.result], in[T](c, 0)[from:], in[T](c, 1)[4*i:])
	}
}

func bindMaxRoiPool(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newMaxRoi[float32], newMaxRoi[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

type maxRoi[T kernel.Float] struct {
	regions
	spec sample.MaxRoi
}

func newMaxRoi[T kernel.Float]() Kernel { return &maxRoi[T]{} }

func (k *maxRoi[T]) Refill(t *Task) error {
	x, grid := t.Call.In[0].Shape.Sizes(), t.Call.Out[0].Shape.Sizes()
	k.spec = sample.MaxRoi{Channels: x[1], Height: x[2], Width: x[3], OutHeight: grid[2], OutWidth: grid[3], Scale: t.Call.Float("spatial_scale")}
	return k.regions.Refill(t)
}

func (k *maxRoi[T]) Start(t *Task) error {
	for i := range k.count {
		if err := k.check(t.Call, i, float64(in[T](t.Call, 1)[5*i])); err != nil {
			return err
		}
	}
	return nil
}

func (k *maxRoi[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.perTile.of(tile)
	for i := lo; i < hi; i++ {
		from := int(float64(in[T](c, 1)[5*i])) * k.image
		sample.MaxRoiRegion(&k.spec, out[T](c, 0)[i*k.result:(i+1)*k.result], in[T](c, 0)[from:], in[T](c, 1)[5*i+1:])
	}
}

func bindDeformConv(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newDeform[float32], newDeform[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

type deform[T kernel.Float] struct {
	spec   conv.Deform
	places groups
}

func newDeform[T kernel.Float]() Kernel { return &deform[T]{} }

func (k *deform[T]) Refill(t *Task) error {
	c, d := t.Call, &k.spec
	axes, err := c.DeformAxes()
	if err != nil || elements(&c.Out[0]) == 0 {
		return err
	}
	d.Batch, d.Group, d.OffsetGroup = c.In[0].Shape.Size(0), int(c.Int("group")), int(c.Int("offset_group"))
	d.InChannels, d.OutChannels = c.In[0].Shape.Size(1), c.In[1].Shape.Size(0)
	if err := fillWindow(&d.Window, axes); err != nil {
		return err
	}
	d.Prepare()
	k.places = groupsOf(d.Places(), (16+d.OutChannels/d.Group)*d.ScratchNumbers())
	t.Tiles, t.Scratch = k.places.tiles(), 8*d.ScratchNumbers()
	return nil
}

func (k *deform[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	lo, hi := k.places.of(tile)
	conv.DeformPlaces(&k.spec, lo, hi, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), in[T](c, 3), in[T](c, 4), view[float64](scratch[:8*k.spec.ScratchNumbers()]))
}

func bindLinearAttention(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newLinearAttention[float32], newLinearAttention[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

// linearAttention runs a state per tile, in the bytes of the present state
// where that is wanted.
type linearAttention[T kernel.Float] struct {
	spec         sequence.LinearAttention
	delta, gated bool
	kept         bool // the present state is wanted
}

func newLinearAttention[T kernel.Float](c *op.Call) Kernel {
	rule := c.Str("update_rule")
	return &linearAttention[T]{
		delta: rule == "delta" || rule == "gated_delta", gated: rule == "gated" || rule == "gated_delta", kept: wanted(c, 1),
	}
}

func (k *linearAttention[T]) Refill(t *Task) error {
	c := t.Call
	q, keys, values := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes(), c.In[2].Shape.Sizes()
	heads, queries := int(c.Int("kv_num_heads")), int(c.Int("q_num_heads"))
	k.spec = sequence.LinearAttention{
		Batch: q[0], Length: q[1], Heads: heads, Queries: queries / heads, Keys: keys[2] / heads, Values: values[2] / heads, Scale: c.Float("scale"),
		Delta: k.delta,
	}
	if k.spec.Scale == 0 {
		k.spec.Scale = 1 / math.Sqrt(float64(k.spec.Keys))
	}
	if has(c, 4) {
		k.spec.DecayPerKey = c.In[4].Shape.Size(2) != heads
	}
	if has(c, 5) {
		k.spec.RatePerHead = c.In[5].Shape.Size(2) == heads
	}
	t.Tiles = k.spec.Batch * k.spec.Heads
	if !k.kept {
		t.Scratch = 8 * k.spec.Keys * k.spec.Values
	}
	return nil
}

func (k *linearAttention[T]) Tile(t *Task, tile int, scratch []byte) {
	c, l := t.Call, &k.spec
	size := l.Keys * l.Values
	var state, decay, rate []T
	if k.kept {
		state = out[T](c, 1)[tile*size : (tile+1)*size]
	} else {
		state = view[T](scratch[:8*size])[:size]
	}
	if !has(c, 3) {
		clear(state)
	} else {
		copy(state, in[T](c, 3)[tile*size:(tile+1)*size])
	}
	if k.gated {
		decay = in[T](c, 4)
	}
	if l.Delta {
		rate = in[T](c, 5)
	}
	sequence.LinearAttentionHead(l, tile/l.Heads, tile%l.Heads, out[T](c, 0), state, in[T](c, 0), in[T](c, 1), in[T](c, 2), decay, rate)
}
