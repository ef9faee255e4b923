package compute

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"roi_align":        oneFloatType(bindRoiAlign),
	"max_roi_pool":     oneFloatType(bindMaxRoiPool),
	"deform_conv":      oneFloatType(bindDeformConv),
	"linear_attention": oneFloatType(bindLinearAttention),
})

func bindRoiAlign(c *op.Call) (*Task, error) {
	x, grid := c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes()
	spec := &kernel.RoiAlign{
		Channels: x[1], Height: x[2], Width: x[3], OutHeight: grid[2], OutWidth: grid[3], Ratio: int(c.Int("sampling_ratio")),
		Scale: c.Float("spatial_scale"), HalfPixel: c.Str("coordinate_transformation_mode") == "half_pixel", Max: c.Str("mode") == "max",
	}
	bind, ok := floatOf(c.In[0].DType, roiAlignTask[float32], roiAlignTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

func roiAlignTask[T kernel.Float](c *op.Call, r *kernel.RoiAlign) *Task {
	image := func(i int) float64 { return float64(in[int64](c, 2)[i]) }
	return regionTask(c, image, func(i, from int) {
		n := c.Out[0].Shape.NumElements() / c.Out[0].Shape.Size(0)
		kernel.RoiAlignRegion(r, out[T](c, 0)[i*n:(i+1)*n], in[T](c, 0)[from:], in[T](c, 1)[4*i:])
	})
}

func bindMaxRoiPool(c *op.Call) (*Task, error) {
	x, grid := c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes()
	spec := &kernel.MaxRoi{Channels: x[1], Height: x[2], Width: x[3], OutHeight: grid[2], OutWidth: grid[3], Scale: c.Float("spatial_scale")}
	bind, ok := floatOf(c.In[0].DType, maxRoiTask[float32], maxRoiTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

func maxRoiTask[T kernel.Float](c *op.Call, r *kernel.MaxRoi) *Task {
	image := func(i int) float64 { return float64(in[T](c, 1)[5*i]) }
	return regionTask(c, image, func(i, from int) {
		n := c.Out[0].Shape.NumElements() / c.Out[0].Shape.Size(0)
		kernel.MaxRoiRegion(r, out[T](c, 0)[i*n:(i+1)*n], in[T](c, 0)[from:], in[T](c, 1)[5*i+1:])
	})
}

// regionTask runs one region after the other; image names that of a region,
// and from is where it starts in operand 0.
func regionTask(c *op.Call, image func(i int) float64, run func(i, from int)) *Task {
	x, regions := c.In[0].Shape.Sizes(), c.Out[0].Shape.Size(0)
	if elements(&c.Out[0]) == 0 {
		return &Task{}
	}
	size := product(x[1:])
	tiles, units := groups(regions, 32*elements(&c.Out[0])/regions)
	return &Task{
		Tiles: tiles,
		Start: func() error {
			for i := range regions {
				if v := image(i); v != math.Trunc(v) || v < 0 || v >= float64(x[0]) || size == 0 {
					return fmt.Errorf("region %d: got image %v, want 0 to %d of %s", i, v, x[0]-1, c.In[0].Type)
				}
			}
			return nil
		},
		Tile: func(tile int, _ []byte) {
			lo, hi := units(tile)
			for i := lo; i < hi; i++ {
				run(i, int(image(i))*size)
			}
		},
	}
}

func bindDeformConv(c *op.Call) (*Task, error) {
	axes, err := c.DeformAxes()
	if err != nil || elements(&c.Out[0]) == 0 {
		return &Task{}, err
	}
	spec := &kernel.Deform{
		Batch: c.In[0].Shape.Size(0), Group: int(c.Int("group")), OffsetGroup: int(c.Int("offset_group")),
		InChannels: c.In[0].Shape.Size(1), OutChannels: c.In[1].Shape.Size(0),
	}
	if spec.Window, err = windowOf(axes); err != nil {
		return nil, err
	}
	bind, ok := floatOf(c.In[0].DType, deformTask[float32], deformTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	spec.Prepare()
	return bind(c, spec), nil
}

func deformTask[T kernel.Float](c *op.Call, d *kernel.Deform) *Task {
	tiles, units := groups(d.Places(), (16+d.OutChannels/d.Group)*d.ScratchNumbers())
	return &Task{Tiles: tiles, Scratch: 8 * d.ScratchNumbers(), Tile: func(tile int, scratch []byte) {
		lo, hi := units(tile)
		kernel.DeformPlaces(d, lo, hi, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), in[T](c, 3), in[T](c, 4), view[float64](scratch[:8*d.ScratchNumbers()]))
	}}
}

func bindLinearAttention(c *op.Call) (*Task, error) {
	q, k, v := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes(), c.In[2].Shape.Sizes()
	heads, queries := int(c.Int("kv_num_heads")), int(c.Int("q_num_heads"))
	spec := &kernel.LinearAttention{
		Batch: q[0], Length: q[1], Heads: heads, Queries: queries / heads, Keys: k[2] / heads, Values: v[2] / heads, Scale: c.Float("scale"),
	}
	if spec.Scale == 0 {
		spec.Scale = 1 / math.Sqrt(float64(spec.Keys))
	}
	rule := c.Str("update_rule")
	spec.Delta = rule == "delta" || rule == "gated_delta"
	if has(c, 4) {
		spec.DecayPerKey = c.In[4].Shape.Size(2) != heads
	}
	if has(c, 5) {
		spec.RatePerHead = c.In[5].Shape.Size(2) == heads
	}
	bind, ok := floatOf(c.In[0].DType, linearAttentionTask[float32], linearAttentionTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec, rule == "gated" || rule == "gated_delta"), nil
}

// linearAttentionTask runs a state per tile, in the bytes of the present
// state where that is wanted.
func linearAttentionTask[T kernel.Float](c *op.Call, l *kernel.LinearAttention, gated bool) *Task {
	size, kept := l.Keys*l.Values, wanted(c, 1)
	t := &Task{Tiles: l.Batch * l.Heads}
	if !kept {
		t.Scratch = 8 * size
	}
	t.Tile = func(tile int, scratch []byte) {
		var state, decay, rate []T
		if kept {
			state = out[T](c, 1)[tile*size : (tile+1)*size]
		} else {
			state = view[T](scratch[:8*size])[:size]
		}
		if !has(c, 3) {
			clear(state)
		} else {
			copy(state, in[T](c, 3)[tile*size:(tile+1)*size])
		}
		if gated {
			decay = in[T](c, 4)
		}
		if l.Delta {
			rate = in[T](c, 5)
		}
		kernel.LinearAttentionHead(l, tile/l.Heads, tile%l.Heads, out[T](c, 0), state, in[T](c, 0), in[T](c, 1), in[T](c, 2), decay, rate)
	}
	return t
}
