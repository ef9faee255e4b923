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
	if c.In[0].DType != dtype.F32 {
		return nil, unsupported(c)
	}
	return &attend{}, nil
}

// attend is a fused_attention of f32.
type attend struct {
	sequence.Attend
}

func (k *attend) takesStrides() bool { return true }

func (k *attend) Refill(t *Task) error {
	c := t.Call
	k.Scale, k.Fill = float32(c.Float("scale")), float32(c.Float("fill"))
	k.BiasFirst, k.MaskHides, k.NaNToZero = c.Int("bias_first") != 0, c.Int("mask_hides") != 0, c.Int("nan_to_zero") != 0
	rank := c.In[0].Shape.Rank()
	var buf [4][2][kernel.MaxRank]int
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
	for i, to := range [2]*sequence.Strides{&k.Bias, &k.Mask} {
		if has(c, 3+i) {
			setMaskStrides(to, &c.In[3+i], rank)
		}
	}
	k.Prepare(t.variant)
	t.Tiles, t.Scratch = k.Tiles(), 4*k.ScratchFloats()
	return nil
}

func (k *attend) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := sequence.AttendArgs{Y: out[float32](c, 0), Q: in[float32](c, 0), K: in[float32](c, 1), V: in[float32](c, 2), Bias: in[float32](c, 3)}
	if has(c, 4) {
		args.Mask = c.In[4].Data
	}
	k.Attend.Tile(tile, view[float32](scratch), &args)
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
			return 4 * one.ScratchFloats()
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

// setMaskStrides sets the strides of a mask, 0 along all axes of size 1, with
// axes of that size in front up to the given rank.
func setMaskStrides(s *sequence.Strides, a *op.Arg, rank int) {
	var sizes, strides [kernel.MaxRank]int
	from, steps := a.Shape.Sizes(), stridesOf(a)
	for i := range rank {
		sizes[i] = 1
		if at := i - rank + len(from); at >= 0 && from[at] != 1 {
			sizes[i], strides[i] = from[at], steps[at]
		}
	}
	setStrides(s, sizes[:rank], strides[:rank])
}
