package compute

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"attention":         needsFirst(oneFloatType(bindAttention)),
	"rotary_embedding":  oneFloatType(bindRotary),
	"rms_normalization": oneFloatType(bindLayerNorm),
})

func bindAttention(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newAttention[float32], newAttention[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

// attention has tiles of queries, and after them one per sample and head of
// the keys that joins past and present.
type attention[T kernel.Float] struct {
	spec    sequence.Attention
	queries int // tiles
}

func newAttention[T kernel.Float]() Kernel { return &attention[T]{} }

func (k *attention[T]) Refill(t *Task) error {
	c := t.Call
	n, err := c.AttentionSizes()
	if err != nil {
		return err
	}
	k.spec = sequence.Attention{
		Batch: n.Batch, Heads: n.Heads, Groups: n.Groups, Queries: n.Queries, Past: n.Past, Keys: n.Keys, Size: n.Size, ValueSize: n.ValueSize,
		Packed: n.Packed, Scale: 1 / math.Sqrt(float64(max(1, n.Size))), Softcap: c.Float("softcap"), Causal: c.Int("is_causal") != 0,
		Left: window(c, "left_window_size"), Right: window(c, "right_window_size"), Output: int(c.Int("qk_matmul_output_mode")),
	}
	if c.Attrs.Has("scale") {
		k.spec.Scale = c.Float("scale")
	}
	if has(c, 3) {
		sizes, strides := c.In[3].Shape.Sizes(), c.In[3].Shape.Strides()
		k.spec.MaskKeys = sizes[len(sizes)-1]
		for i := range k.spec.Mask {
			if at := len(sizes) - 4 + i; at >= 0 && sizes[at] != 1 {
				k.spec.Mask[i] = strides[at]
			}
		}
	}
	k.queries = k.spec.Tiles()
	t.Tiles, t.Scratch = k.queries, k.spec.ScratchElements()*c.In[0].DType.Size()
	if wanted(c, 1) || wanted(c, 2) {
		t.Tiles += n.Batch * n.Groups
	}
	return nil
}

// window returns how far a query sees, limited to what two ints add up to.
func window(c *op.Call, attr string) int { return int(min(c.Int(attr), 1<<58)) }

func (k *attention[T]) Start(t *Task) error {
	most := k.spec.Past + k.spec.Keys
	for i, n := range in[int64](t.Call, 6) {
		if n < 0 || n > int64(most) {
			return fmt.Errorf("operand 6: got %d keys for sample %d, want 0 to %d", n, i, most)
		}
	}
	return nil
}

func (k *attention[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	size := c.In[0].DType.Size()
	if tile >= k.queries {
		joinKeys(c, &k.spec, tile-k.queries, 1, k.spec.Size*size)
		joinKeys(c, &k.spec, tile-k.queries, 2, k.spec.ValueSize*size)
		return
	}
	args := sequence.AttentionArgs[T]{
		Y: out[T](c, 0), Q: in[T](c, 0), K: in[T](c, 1), V: in[T](c, 2), PastK: in[T](c, 4), PastV: in[T](c, 5),
		Scores: out[T](c, 3), Lengths: in[int64](c, 6),
	}
	if has(c, 3) && c.In[3].DType == dtype.Bool {
		args.Allow = c.In[3].Data
	} else {
		args.Bias = in[T](c, 3)
	}
	sequence.AttentionTile(t.variant, &k.spec, tile, &args, view[T](scratch[:k.spec.ScratchElements()*size]))
}

// joinKeys writes the past rows and the new ones of one sample and head into
// result 1 or 2; row is the bytes of one.
func joinKeys(c *op.Call, spec *sequence.Attention, index, result, row int) {
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

func bindRotary(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newRotary[float32], newRotary[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

type rotary[T kernel.Float] struct {
	spec sequence.Rotary
	rows groups
}

func newRotary[T kernel.Float]() Kernel { return &rotary[T]{} }

func (k *rotary[T]) Refill(t *Task) error {
	c := t.Call
	heads, rotated, err := c.Rotary()
	if err != nil {
		return err
	}
	sizes := c.In[0].Shape.Sizes()
	k.spec = sequence.Rotary{Batch: sizes[0], Heads: heads, Half: rotated / 2, Packed: len(sizes) == 3, Interleaved: c.Int("interleaved") != 0}
	if k.spec.Packed {
		k.spec.Length, k.spec.Size = sizes[1], sizes[2]/heads
	} else {
		k.spec.Length, k.spec.Size = sizes[2], sizes[3]
	}
	k.rows = groupsOf(k.spec.Rows(), k.spec.Size*c.In[0].DType.Size())
	t.Tiles = k.rows.tiles()
	return nil
}

func (k *rotary[T]) Start(t *Task) error {
	for i, p := range in[int64](t.Call, 3) {
		if n := t.Call.In[1].Shape.Size(0); p < 0 || p >= int64(n) {
			return fmt.Errorf("positions: got %d at position %d, want 0 to %d", p, i, n-1)
		}
	}
	return nil
}

func (k *rotary[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.rows.of(tile)
	sequence.RotaryRows(&k.spec, lo, hi, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), in[int64](c, 3))
}
