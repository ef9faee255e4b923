package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/op"
)

// variadicOp binds a function folded over any number of operands, divided by
// their number where mean is set.
func variadicOp(f kernel.BinaryOp, mean bool) binder {
	return func(c *op.Call) (Kernel, error) {
		switch {
		case len(c.In) == 1:
			return &copyFirst{}, nil
		case len(c.In) == 2 && !mean:
			return binaryOn(c, f)
		case isHalf(c.In[0].DType):
			return halfAsF32(c)
		case c.In[0].DType == dtype.F32:
			return newVariadic(c, f, mean, elementwise.BinaryF32), nil
		case c.In[0].DType == dtype.F64:
			return newVariadic(c, f, mean, elementwise.BinaryF64), nil
		}
		bind, ok := intOf(c.In[0].DType, variadicInt[int8], variadicInt[int16], variadicInt[int32], variadicInt[int64],
			variadicInt[uint8], variadicInt[uint16], variadicInt[uint32], variadicInt[uint64])
		if !ok || mean {
			return nil, unsupported(c)
		}
		return bind(c, f), nil
	}
}

func variadicInt[T kernel.Integer](c *op.Call, f kernel.BinaryOp) Kernel {
	return newVariadic(c, f, false, elementwise.BinaryInt[T])
}

// foldChunk elements are folded in scratch at a time, because the result may
// lie in any one of the operands.
const foldChunk = 1024

// fold is a binary function on T over a nest.
type fold[T any] func(v *kernel.Variant, f kernel.BinaryOp, n *kernel.Nest, lo, hi int, dst, a, b []T)

// variadic folds operands: chunks of them where all have the result's shape,
// else the whole result in scratch as one tile.
type variadic[T kernel.Number] struct {
	f     kernel.BinaryOp
	mean  bool
	apply fold[T]
	count []T // the number of operands

	n       int
	spread  bool          // operands have several shapes
	nests   []kernel.Nest // with spread: operand i onto the result of the operands before; the last one divides
	chunk   kernel.Nest   // without: of foldChunk elements
	divided kernel.Nest   // and of as many and one number
}

func newVariadic[T kernel.Number](c *op.Call, f kernel.BinaryOp, mean bool, apply fold[T]) *variadic[T] {
	return &variadic[T]{f: f, mean: mean, apply: apply, count: []T{T(len(c.In))}}
}

func (k *variadic[T]) Refill(t *Task) error {
	c := t.Call
	k.n, k.spread = elements(&c.Out[0]), false
	for i := range c.In {
		k.spread = k.spread || c.In[i].Shape != c.Out[0].Shape
	}
	size := c.Out[0].DType.Size()
	if k.spread {
		t.Tiles, t.Scratch = min(k.n, 1), k.n*size
		return k.fillNests(c)
	}
	t.Tiles, t.Scratch = spans(k.n), foldChunk*size
	if k.chunk.Elements() == 0 {
		k.chunk.Prepare([]int{foldChunk}, []int{1}, []int{1}, []int{1})
		k.divided.Prepare([]int{foldChunk}, []int{1}, []int{1}, []int{0})
	}
	return nil
}

func (k *variadic[T]) fillNests(c *op.Call) error {
	sizes, own := c.Out[0].Shape.Sizes(), c.Out[0].Shape.Strides()
	if err := checkLoops(sizes); err != nil {
		return err
	}
	if k.nests == nil {
		k.nests = make([]kernel.Nest, len(c.In)+1)
	}
	var buf [2][kernel.MaxRank]int
	for i := range k.nests {
		left, right := own, []int(nil)
		if i == 1 {
			left = broadcastStrides(buf[0][:0], c.In[0].Shape.Sizes(), sizes)
		}
		if i < len(c.In) {
			right = broadcastStrides(buf[1][:0], c.In[i].Shape.Sizes(), sizes)
		} else {
			right = broadcastStrides(buf[1][:0], nil, sizes)
		}
		k.nests[i].Prepare(sizes, own, left, right)
	}
	return nil
}

func (k *variadic[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	if k.spread {
		k.foldSpread(t, view[T](scratch)[:k.n])
		return
	}
	acc, dst := view[T](scratch), out[T](c, 0)
	for lo, hi := span(tile, k.n); lo < hi; lo += foldChunk {
		m := min(foldChunk, hi-lo)
		k.apply(t.variant, k.f, &k.chunk, 0, m, acc, in[T](c, 0)[lo:lo+m], in[T](c, 1)[lo:lo+m])
		for i := 2; i < len(c.In); i++ {
			k.apply(t.variant, k.f, &k.chunk, 0, m, acc, acc, in[T](c, i)[lo:lo+m])
		}
		if k.mean {
			k.apply(t.variant, kernel.Div, &k.divided, 0, m, acc, acc, k.count)
		}
		copy(dst[lo:lo+m], acc)
	}
}

func (k *variadic[T]) foldSpread(t *Task, acc []T) {
	c := t.Call
	k.apply(t.variant, k.f, &k.nests[1], 0, k.n, acc, in[T](c, 0), in[T](c, 1))
	for i := 2; i < len(c.In); i++ {
		k.apply(t.variant, k.f, &k.nests[i], 0, k.n, acc, acc, in[T](c, i))
	}
	if k.mean {
		k.apply(t.variant, kernel.Div, &k.nests[len(c.In)], 0, k.n, acc, acc, k.count)
	}
	copy(out[T](c, 0), acc)
}
