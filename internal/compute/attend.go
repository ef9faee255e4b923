package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{"fused_attention": bindFusedAttention})

var _ = registerWalkers(rowsInPlace, "fused_attention")

// rowsInPlace is for kernels that walk all strides but that of the last axis.
func rowsInPlace(_ *op.Sig, in, out []*shape.Layout) bool {
	for _, layouts := range [2][]*shape.Layout{in, out} {
		for _, l := range layouts {
			if l == nil || l.IsContiguous() {
				continue
			}
			if last := l.Shape().Rank() - 1; l.Strides()[last] != 1 && l.Shape().Size(last) != 1 {
				return false
			}
		}
	}
	return true
}

func bindFusedAttention(c *op.Call) (Kernel, error) {
	if !isAttended(c.In[0].DType) {
		return nil, unsupported(c)
	}
	return &attend{}, nil
}

// attend is a fused_attention.
type attend struct {
	sequence.Attend
}

func (k *attend) takesStrides() bool { return true }

func (k *attend) Refill(t *Task) error {
	c := t.Call
	k.Type, k.Scale, k.Softcap, k.Fill = c.In[0].DType, c.Float("scale"), c.Float("softcap"), c.Float("fill")
	k.MaskAfter, k.MaskHides, k.NaNToZero = int(c.Int("mask_after")), c.Int("mask_hides") != 0, c.Int("nan_to_zero") != 0
	rank := c.In[0].Shape.Rank()
	var buf [4][2][kernel.MaxRank + 1]int
	var sizes, strides [4][]int // of q, k, v and y
	for i, attr := range [4]string{"q_perm", "k_perm", "v_perm", "y_perm"} {
		a := &c.Out[0]
		if i < 3 {
			a = &c.In[i]
		}
		var order [kernel.MaxRank]int
		perm, err := c.OrderOf(attr, order[:0], rank)
		if err != nil {
			return err
		}
		sizes[i], strides[i] = buf[i][0][:rank], buf[i][1][:rank]
		setOrdered(a, perm, i == 3, sizes[i], strides[i])
	}
	first := max(sizes[0][0], sizes[1][0], sizes[3][0])
	outer, inner, isSplit := c.AttentionSplit(first)
	unmasked := isSplit && outer*inner != first // there are no scores
	if isSplit = isSplit && !unmasked; isSplit {
		for i := range sizes {
			sizes[i], strides[i] = splitFirst(sizes[i], strides[i], outer, inner)
		}
		rank++
	}
	q, keys, v, y := sizes[0], sizes[1], sizes[2], sizes[3]
	k.Heads, k.Groups = 1, 1
	if rank > 2 {
		k.Heads, k.Groups = q[rank-3], keys[rank-3]
	}
	k.Queries, k.Keys, k.Size, k.ValueSize = q[rank-2], keys[rank-2], q[rank-1], v[rank-1]
	k.Batch = append(k.Batch[:0], y[:max(0, rank-3)]...)
	for i, to := range [4]*sequence.Strides{&k.Q, &k.K, &k.V, &k.Y} {
		setStrides(to, sizes[i], strides[i])
	}
	for i, to := range [3]*sequence.Strides{&k.Addends[0].Strides, &k.Mask, &k.Addends[1].Strides} {
		if !has(c, 3+i) || unmasked {
			continue
		}
		var of [2][kernel.MaxRank + 1]int
		sizes, strides := setMask(&c.In[3+i], rank, isSplit, of[0][:0], of[1][:0])
		if isSplit && len(sizes) < rank {
			sizes, strides = splitFirst(sizes, strides, outer, inner)
		}
		setStrides(to, sizes, strides)
		if i != 1 {
			k.Addends[i/2].Type = c.In[3+i].DType
		}
	}
	k.Prepare(t.variant)
	t.Tiles, t.Scratch = k.Tiles(), k.ScratchBytes()
	return nil
}

func (k *attend) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := sequence.AttendArgs{Y: floatsOf(&c.Out[0]), Q: floatsOf(&c.In[0]), K: floatsOf(&c.In[1]), V: floatsOf(&c.In[2])}
	for i := range args.Addends {
		if has(c, 3+2*i) {
			args.Addends[i] = floatsOf(&c.In[3+2*i])
		}
	}
	if has(c, 4) {
		args.Mask = c.In[4].Data
	}
	k.Attend.Tile(tile, scratch, &args)
}

// floatsOf returns the elements of an operand or a result of attention.
func floatsOf(a *op.Arg) (e sequence.Elements) {
	switch a.DType {
	case dtype.F32:
		e.F32 = view[float32](a.Data)
	case dtype.F64:
		e.F64 = view[float64](a.Data)
	default:
		e.Half = view[uint16](a.Data)
	}
	return e
}

// splitFirst makes two axes of the first one.
func splitFirst(sizes, strides []int, outer, inner int) ([]int, []int) {
	step := strides[0]
	if sizes[0] == 1 {
		outer, inner, step = 1, 1, 0
	}
	sizes, strides = append(sizes, 0), append(strides, 0)
	copy(sizes[1:], sizes)
	copy(strides[1:], strides)
	sizes[0], sizes[1] = outer, inner
	strides[0], strides[1] = inner*step, step
	return sizes, strides
}

// mostScratch: the scratch does not grow where a size becomes smaller, unless
// there are other groups of heads.
func (k *attend) mostScratch(t *Task, fixed Fixed) int {
	axis := t.Call.In[0].Shape.Rank() - 3
	for i, attr := range [2]string{"q_perm", "k_perm"} {
		var order [kernel.MaxRank]int
		perm, err := t.Call.OrderOf(attr, order[:0], axis+3)
		if err != nil || axis >= 0 && !fixed(i, perm[axis]) {
			one := k.Attend
			one.Groups = 1
			one.Prepare(t.variant)
			return one.ScratchBytes()
		}
	}
	return t.Scratch
}

// setOrdered sets sizes and strides to those of an operand whose axes are read
// in the order perm, or written in its inverse.
func setOrdered(a *op.Arg, perm []int, inverse bool, sizes, strides []int) {
	from, steps := a.Shape.Sizes(), stridesOf(a)
	for i, axis := range perm {
		to := i
		if inverse {
			to, axis = axis, i
		}
		sizes[to], strides[to] = from[axis], steps[axis]
	}
}

// setStrides sets the strides of matrices, 0 along the outer axes of size 1.
func setStrides(s *sequence.Strides, sizes, strides []int) {
	n := len(sizes)
	*s = sequence.Strides{Batch: s.Batch[:0], Row: strides[n-2], Column: strides[n-1]}
	if sizes[n-1] == 1 && s.Column != 0 {
		s.Column = 1 // of any length
	}
	if n > 2 {
		s.Head = strides[n-3]
	}
	for i := range max(0, n-3) {
		if sizes[i] == 1 {
			strides[i] = 0
		}
		s.Batch = append(s.Batch, strides[i])
	}
}

// setMask appends sizes and strides of a mask, with axes of size 1 in front up
// to the given rank, or one less if the first axis is split and the mask has it
// as one. Axes of size 1 have stride 0.
func setMask(a *op.Arg, rank int, isSplit bool, sizes, strides []int) ([]int, []int) {
	from, steps := a.Shape.Sizes(), stridesOf(a)
	if isSplit && len(from) < rank {
		rank--
	}
	for i := range rank {
		size, step := 1, 0
		if at := i - rank + len(from); at >= 0 && from[at] != 1 {
			size, step = from[at], steps[at]
		}
		sizes, strides = append(sizes, size), append(strides, step)
	}
	return sizes, strides
}
