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
	"attention":         needsFirst(bindAttention),
	"rotary_embedding":  oneFloatType(bindRotary),
	"rms_normalization": oneFloatType(bindLayerNorm),
})

func bindAttention(c *op.Call) (Kernel, error) {
	if !isAttended(c.In[0].DType) {
		return nil, unsupported(c)
	}
	return &attention{}, nil
}

// isAttended reports whether the kernel of attention computes in this type.
func isAttended(dt dtype.DType) bool {
	return dt == dtype.F32 || dt == dtype.F64 || dt == dtype.F16 || dt == dtype.BF16
}

// attention has tiles of queries, and after them one per sample and head of
// the keys that joins past and present.
type attention struct {
	spec    sequence.Attend
	ranges  sequence.Ranges
	queries int              // tiles
	joined  [2]sequence.Rows // where the rows of results 1 and 2 lie
}

func (k *attention) Refill(t *Task) error {
	c, a := t.Call, &k.spec
	n, err := c.AttentionSizes()
	if err != nil {
		return err
	}
	setHeads(a, &k.ranges, c, &n, 3)
	a.Keys, a.Past = n.Past+n.Keys, n.Past
	if a.HasScores = wanted(c, 3); a.HasScores {
		a.Stage = int(c.Int("qk_matmul_output_mode"))
	}
	k.lay(c, &n)
	a.Prepare(t.variant)
	k.queries = a.Tiles()
	t.Tiles, t.Scratch = k.queries, a.ScratchBytes()
	if wanted(c, 1) || wanted(c, 2) {
		t.Tiles += n.Batch * n.Groups
	}
	return nil
}

// setHeads sets what attention over rows and over blocks have in common. The
// mask is operand i.
func setHeads(a *sequence.Attend, r *sequence.Ranges, c *op.Call, n *op.AttentionSizes, i int) {
	a.Batch = append(a.Batch[:0], n.Batch)
	a.Heads, a.Groups, a.Queries, a.Size, a.ValueSize = n.Heads, n.Groups, n.Queries, n.Size, n.ValueSize
	a.Type, a.Scale, a.Softcap, a.Fill = c.In[0].DType, 1/math.Sqrt(float64(max(1, n.Size))), max(0, c.Float("softcap")), math.Inf(-1)
	if c.Attrs.Has("scale") {
		a.Scale = c.Float("scale")
	}
	*r = sequence.Ranges{Causal: c.Int("is_causal") != 0, Left: window(c, "left_window_size"), Right: window(c, "right_window_size")}
	if a.Ranges = r; !has(c, i) {
		return
	}
	sizes, strides := c.In[i].Shape.Sizes(), stridesOf(&c.In[i])
	r.MaskKeys = sizes[len(sizes)-1]
	var mask [3]int // strides along batch, heads and queries
	for i := range mask {
		if at := len(sizes) - 4 + i; at >= 0 && sizes[at] != 1 {
			mask[i] = strides[at]
		}
	}
	to := &a.Mask
	if dt := c.In[i].DType; dt != dtype.Bool {
		a.Addends[0].Type = dt
		to = &a.Addends[0].Strides
	}
	setRowStrides(to, sequence.Rows{Sample: mask[0], Head: mask[1], Row: mask[2]})
}

// setRowStrides sets the strides of an operand or a result with one axis of
// samples.
func setRowStrides(to *sequence.Strides, r sequence.Rows) {
	*to = sequence.Strides{Batch: append(to.Batch[:0], r.Sample), Head: r.Head, Row: r.Row, Column: 1}
}

// setMasks sets the operand i of a call that hides keys.
func setMasks(args *sequence.AttendArgs, c *op.Call, i int) {
	switch {
	case !has(c, i):
	case c.In[i].DType == dtype.Bool:
		args.Mask = c.In[i].Data
	default:
		args.Addends[0] = floatsOf(&c.In[i])
	}
}

// mostScratch: the scratch does not grow where a size becomes smaller, unless
// there are other groups of heads.
func (k *attention) mostScratch(t *Task, fixed Fixed) int {
	return mostOfHeads(&k.spec, t, fixed)
}

// mostOfHeads is mostScratch of attention whose operands are four-dimensional
// or have their heads in attributes.
func mostOfHeads(a *sequence.Attend, t *Task, fixed Fixed) int {
	if t.Call.In[0].Shape.Rank() < 4 || fixed(0, 1) && fixed(1, 1) {
		return t.Scratch
	}
	one := *a
	one.Groups = 1
	one.Prepare(t.variant)
	return one.ScratchBytes()
}

func (k *attention) takesStrides() bool { return true }

// lay sets where operands and results lie.
func (k *attention) lay(c *op.Call, n *op.AttentionSizes) {
	a := &k.spec
	placeHeads(&a.Q, c.In, 0, n.Heads, n.Queries, n.Size, n.Packed)
	placeHeads(&a.K, c.In, 1, n.Groups, n.Keys, n.Size, n.Packed)
	placeHeads(&a.V, c.In, 2, n.Groups, n.Keys, n.ValueSize, n.Packed)
	placeHeads(&a.PastK, c.In, 4, n.Groups, n.Past, n.Size, false)
	placeHeads(&a.PastV, c.In, 5, n.Groups, n.Past, n.ValueSize, false)
	placeHeads(&a.Y, c.Out, 0, n.Heads, n.Queries, n.ValueSize, n.Packed)
	for i := range k.joined {
		k.joined[i] = sequence.RowsOf(n.Groups, a.Keys, [2]int{n.Size, n.ValueSize}[i], false)
		placeRows(&k.joined[i], c.Out, 1+i, 0)
	}
}

// placeHeads sets the strides of an operand or a result of attention.
func placeHeads(to *sequence.Strides, args []op.Arg, i, heads, length, size int, packed bool) {
	rows := sequence.RowsOf(heads, length, size, packed)
	placeRows(&rows, args, i, size)
	setRowStrides(to, rows)
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
	return isAttended(s.Args[0].DType) && evenlyLaid(in, 6) && evenlyLaid(out, 3)
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

func (k *attention) Start(t *Task) error {
	for i, n := range in[int64](t.Call, 6) {
		if n < 0 || n > int64(k.spec.Keys) {
			return fmt.Errorf("operand 6: got %d keys for sample %d, want 0 to %d", n, i, k.spec.Keys)
		}
	}
	return nil
}

func (k *attention) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	if tile >= k.queries {
		k.joinKeys(c, tile-k.queries, 1, k.spec.Size)
		k.joinKeys(c, tile-k.queries, 2, k.spec.ValueSize)
		return
	}
	args := sequence.AttendArgs{Y: floatsOf(&c.Out[0]), Q: floatsOf(&c.In[0]), K: floatsOf(&c.In[1]), V: floatsOf(&c.In[2]), Lengths: in[int64](c, 6)}
	if k.spec.Past > 0 {
		args.PastK, args.PastV = floatsOf(&c.In[4]), floatsOf(&c.In[5])
	}
	if k.spec.HasScores {
		args.Scores = floatsOf(&c.Out[3])
	}
	setMasks(&args, c, 3)
	k.spec.Tile(tile, scratch, &args)
}

// joinKeys writes the past rows and the new ones of one sample and head into
// result 1 or 2; row is the elements of one.
func (k *attention) joinKeys(c *op.Call, index, result, row int) {
	if !wanted(c, result) {
		return
	}
	a, to, size := &k.spec, &k.joined[result-1], c.Out[result].DType.Size()
	past, fresh := &a.PastK, &a.K
	if result == 2 {
		past, fresh = &a.PastV, &a.V
	}
	sample, group := index/a.Groups, index%a.Groups
	dst := c.Out[result].Data
	copyRows := func(src []byte, from *sequence.Strides, first, n int) {
		bytes := row * size
		if n > 1 && from.Row == row && to.Row == row {
			bytes, n = n*bytes, 1
		}
		for i := range n {
			at := (sample*from.Batch[0] + group*from.Head + i*from.Row) * size
			copy(dst[to.At(sample, group, first+i)*size:][:bytes], src[at:at+bytes])
		}
	}
	if a.Past > 0 {
		copyRows(c.In[3+result].Data, past, 0, a.Past)
	}
	copyRows(c.In[result].Data, fresh, a.Past, a.Keys-a.Past)
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
