package compute

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"attention":         needsFirst(oneFloatType(bindAttention)),
	"rotary_embedding":  oneFloatType(bindRotary),
	"rms_normalization": oneFloatType(bindLayerNorm),
})

func bindAttention(c *op.Call) (*Task, error) {
	n, err := c.AttentionSizes()
	if err != nil {
		return nil, err
	}
	spec := &kernel.Attention{
		Batch: n.Batch, Heads: n.Heads, Groups: n.Groups, Queries: n.Queries, Past: n.Past, Keys: n.Keys, Size: n.Size, ValueSize: n.ValueSize,
		Packed: n.Packed, Scale: 1 / math.Sqrt(float64(max(1, n.Size))), Softcap: c.Float("softcap"), Causal: c.Int("is_causal") != 0,
		Left: window(c, "left_window_size"), Right: window(c, "right_window_size"), Output: int(c.Int("qk_matmul_output_mode")),
	}
	if c.Attrs.Has("scale") {
		spec.Scale = c.Float("scale")
	}
	if has(c, 3) {
		sizes, strides := c.In[3].Shape.Sizes(), c.In[3].Shape.Strides()
		spec.MaskKeys = sizes[len(sizes)-1]
		for i := range spec.Mask {
			if at := len(sizes) - 4 + i; at >= 0 && sizes[at] != 1 {
				spec.Mask[i] = strides[at]
			}
		}
	}
	bind, ok := floatOf(c.In[0].DType, attentionTask[float32], attentionTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

// window returns how far a query sees, held to what an int adds up.
func window(c *op.Call, attr string) int { return int(min(c.Int(attr), 1<<58)) }

// attentionTask has tiles of queries, and after them one per sample and head
// of the keys that joins past and present.
func attentionTask[T kernel.Float](c *op.Call, spec *kernel.Attention) *Task {
	size := c.In[0].DType.Size()
	bytes := spec.ScratchElements() * size
	queries, joins := spec.Tiles(), 0
	if wanted(c, 1) || wanted(c, 2) {
		joins = spec.Batch * spec.Groups
	}
	return &Task{
		Tiles: queries + joins, Scratch: bytes,
		Start: func() error {
			for i, n := range in[int64](c, 6) {
				if n < 0 || n > int64(spec.Past+spec.Keys) {
					return fmt.Errorf("operand 6: got %d keys for sample %d, want 0 to %d", n, i, spec.Past+spec.Keys)
				}
			}
			return nil
		},
		Tile: func(tile int, scratch []byte) {
			if tile >= queries {
				joinKeys(c, spec, tile-queries, 1, spec.Size*size)
				joinKeys(c, spec, tile-queries, 2, spec.ValueSize*size)
				return
			}
			args := kernel.AttentionArgs[T]{
				Y: out[T](c, 0), Q: in[T](c, 0), K: in[T](c, 1), V: in[T](c, 2), PastK: in[T](c, 4), PastV: in[T](c, 5),
				Scores: out[T](c, 3), Lengths: in[int64](c, 6),
			}
			if has(c, 3) && c.In[3].DType == dtype.Bool {
				args.Allow = c.In[3].Data
			} else {
				args.Bias = in[T](c, 3)
			}
			kernel.AttentionTile(machine.Best(), spec, tile, &args, view[T](scratch[:bytes]))
		},
	}
}

// joinKeys writes the past rows and the new ones of one sample and head into
// result 1 or 2; row is the bytes of one.
func joinKeys(c *op.Call, spec *kernel.Attention, index, result, row int) {
	if !wanted(c, result) {
		return
	}
	dst := c.Out[result].Data[index*(spec.Past+spec.Keys)*row:]
	if spec.Past > 0 {
		copy(dst[:spec.Past*row], c.In[3+result].Data[index*spec.Past*row:])
	}
	src := c.In[result].Data
	for key := range spec.Keys {
		at := index*spec.Keys + key
		if spec.Packed {
			at = (index/spec.Groups*spec.Keys+key)*spec.Groups + index%spec.Groups
		}
		copy(dst[(spec.Past+key)*row:][:row], src[at*row:])
	}
}

func bindRotary(c *op.Call) (*Task, error) {
	heads, turned, err := c.Rotary()
	if err != nil {
		return nil, err
	}
	sizes := c.In[0].Shape.Sizes()
	spec := &kernel.Rotary{Batch: sizes[0], Heads: heads, Half: turned / 2, Packed: len(sizes) == 3, Interleaved: c.Int("interleaved") != 0}
	if spec.Packed {
		spec.Length, spec.Size = sizes[1], sizes[2]/heads
	} else {
		spec.Length, spec.Size = sizes[2], sizes[3]
	}
	bind, ok := floatOf(c.In[0].DType, rotaryTask[float32], rotaryTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec), nil
}

func rotaryTask[T kernel.Float](c *op.Call, spec *kernel.Rotary) *Task {
	tiles, units := groups(spec.Rows(), spec.Size*c.In[0].DType.Size())
	return &Task{
		Tiles: tiles,
		Start: func() error {
			for i, p := range in[int64](c, 3) {
				if n := c.In[1].Shape.Size(0); p < 0 || p >= int64(n) {
					return fmt.Errorf("positions: got %d at position %d, want 0 to %d", p, i, n-1)
				}
			}
			return nil
		},
		Tile: func(tile int, _ []byte) {
			lo, hi := units(tile)
			kernel.RotaryRows(spec, lo, hi, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), in[int64](c, 3))
		},
	}
}
