package compute

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
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
	queries int              // tiles
	joined  [2]sequence.Rows // where the rows of results 1 and 2 lie
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
	layMask(&k.spec, c, 3)
	k.lay(c)
	k.queries = k.spec.Tiles()
	t.Tiles, t.Scratch = k.queries, k.spec.ScratchElements()*c.In[0].DType.Size()
	if wanted(c, 1) || wanted(c, 2) {
		t.Tiles += n.Batch * n.Groups
	}
	return nil
}

func (k *attention[T]) takesStrides() bool { return true }

// layMask sets the strides of the mask, operand i, and how many keys it has.
func layMask(a *sequence.Attention, c *op.Call, i int) {
	if !has(c, i) {
		return
	}
	sizes, strides := c.In[i].Shape.Sizes(), stridesOf(&c.In[i])
	a.MaskKeys = sizes[len(sizes)-1]
	for i := range a.Mask {
		if at := len(sizes) - 4 + i; at >= 0 && sizes[at] != 1 {
			a.Mask[i] = strides[at]
		}
	}
}

// lay sets where operands and results lie.
func (k *attention[T]) lay(c *op.Call) {
	a := &k.spec
	a.Lay()
	placeRows(&a.PlaceQ, c.In, 0, a.Size)
	placeRows(&a.PlaceK, c.In, 1, a.Size)
	placeRows(&a.PlaceV, c.In, 2, a.ValueSize)
	placeRows(&a.PlacePastK, c.In, 4, a.Size)
	placeRows(&a.PlacePastV, c.In, 5, a.ValueSize)
	placeRows(&a.PlaceY, c.Out, 0, a.ValueSize)
	for i := range k.joined {
		k.joined[i] = sequence.RowsOf(a.Groups, a.Past+a.Keys, [2]int{a.Size, a.ValueSize}[i], false)
		placeRows(&k.joined[i], c.Out, 1+i, 0)
	}
}

// placeRows sets where the rows of an operand or a result lie if it has gaps;
// of one with three axes a row has several heads of the given size.
func placeRows(to *sequence.Rows, args []op.Arg, i, size int) {
	if i >= len(args) || !hasGaps(&args[i]) {
		return
	}
	s := args[i].Layout.Strides()
	if len(s) == 3 {
		*to = sequence.Rows{Sample: s[0], Row: s[1], Head: size}
		return
	}
	*to = sequence.Rows{Sample: s[0], Head: s[1], Row: s[2]}
}

// headsLaid is for attention on one floating-point type: the elements of a row
// follow each other. Scores and lengths are contiguous.
func headsLaid(s *op.Sig, in, out []*shape.Layout) bool {
	for _, t := range s.Args {
		if t.DType.IsFloat() && t.DType != s.Args[0].DType {
			return false
		}
	}
	return oneFloatKernel(s.Args[0].DType) && evenlyLaid(in, 6) && evenlyLaid(out, 3)
}

// oneFloatKernel reports whether kernels of floats compute in this type.
func oneFloatKernel(dt dtype.DType) bool { return dt == dtype.F32 || dt == dtype.F64 }

// evenlyLaid reports whether the elements along the last axis follow each other
// in all layouts, and one of them, by its number, has no gaps, -1 for none.
func evenlyLaid(layouts []*shape.Layout, whole int) bool {
	for i, l := range layouts {
		if l == nil || l.IsContiguous() {
			continue
		}
		last := l.Shape().Rank() - 1
		if i == whole || l.Shape().Size(last) > 1 && l.Strides()[last] != 1 {
			return false
		}
	}
	return true
}

var _ = registerWalkers(headsLaid, "attention")

var _ = registerWalkers(turnedLaid, "rotary_embedding")

// turnedLaid is for rotary_embedding: angles and positions are contiguous.
func turnedLaid(s *op.Sig, in, out []*shape.Layout) bool {
	for i, l := range in {
		if i > 0 && l != nil && !l.IsContiguous() {
			return false
		}
	}
	return oneFloatKernel(s.Args[0].DType) && s.Args[0].DType == s.Args[1].DType && evenlyLaid(in, -1) && evenlyLaid(out, -1)
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
		k.joinKeys(c, tile-k.queries, 1, k.spec.Size*size, &k.spec.PlacePastK, &k.spec.PlaceK)
		k.joinKeys(c, tile-k.queries, 2, k.spec.ValueSize*size, &k.spec.PlacePastV, &k.spec.PlaceV)
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
func (k *attention[T]) joinKeys(c *op.Call, index, result, row int, past, fresh *sequence.Rows) {
	if !wanted(c, result) {
		return
	}
	a, to, size := &k.spec, &k.joined[result-1], c.Out[result].DType.Size()
	sample, group := index/a.Groups, index%a.Groups
	dst := c.Out[result].Data
	copyRows := func(src []byte, from *sequence.Rows, first, n int) {
		bytes := row
		if n > 1 && from.Row*size == row && to.Row*size == row {
			bytes, n = n*row, 1
		}
		for i := range n {
			at := from.At(sample, group, i) * size
			copy(dst[to.At(sample, group, first+i)*size:][:bytes], src[at:at+bytes])
		}
	}
	if a.Past > 0 {
		copyRows(c.In[3+result].Data, past, 0, a.Past)
	}
	copyRows(c.In[result].Data, fresh, a.Past, a.Keys)
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
	k.spec.Lay()
	placeRows(&k.spec.PlaceX, c.In, 0, k.spec.Size)
	placeRows(&k.spec.PlaceY, c.Out, 0, k.spec.Size)
	k.rows = groupsOf(k.spec.Rows(), k.spec.Size*c.In[0].DType.Size())
	t.Tiles = k.rows.tiles()
	return nil
}

func (k *rotary[T]) takesStrides() bool { return true }

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
