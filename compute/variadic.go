package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

// variadicOp binds a function folded over any number of operands, divided by
// their number where mean is set.
func variadicOp(f kernel.BinaryOp, mean bool) binder {
	return func(c *op.Call) (*Task, error) {
		switch {
		case len(c.In) == 1:
			return copyTask(c), nil
		case len(c.In) == 2 && !mean:
			return binaryTask(c, f)
		case isHalf(c.In[0].DType):
			return halfAsF32(c)
		case c.In[0].DType == dtype.F32:
			return variadicTask(c, f, mean, kernel.BinaryF32)
		case c.In[0].DType == dtype.F64:
			return variadicTask(c, f, mean, kernel.BinaryF64)
		}
		bind, ok := intOf(c.In[0].DType, variadicInt[int8], variadicInt[int16], variadicInt[int32], variadicInt[int64],
			variadicInt[uint8], variadicInt[uint16], variadicInt[uint32], variadicInt[uint64])
		if !ok || mean {
			return nil, unsupported(c)
		}
		return bind(c, f)
	}
}

func variadicInt[T kernel.Integer](c *op.Call, f kernel.BinaryOp) (*Task, error) {
	return variadicTask(c, f, false, kernel.BinaryInt[T])
}

// foldChunk elements are folded in scratch at a time, because the result may
// lie in any one of the operands.
const foldChunk = 1024

// fold is a binary function on T over a nest.
type fold[T any] func(v *kernel.Variant, f kernel.BinaryOp, n *kernel.Nest, lo, hi int, dst, a, b []T)

func variadicTask[T kernel.Number](c *op.Call, f kernel.BinaryOp, mean bool, apply fold[T]) (*Task, error) {
	for i := range c.In {
		if c.In[i].Shape != c.Out[0].Shape {
			return variadicBroadcast(c, f, mean, apply)
		}
	}
	n := elements(&c.Out[0])
	flat, err := newNest([]int{foldChunk}, []int{1}, []int{1}, []int{1})
	if err != nil {
		return nil, err
	}
	scale, err := newNest([]int{foldChunk}, []int{1}, []int{1}, []int{0})
	if err != nil {
		return nil, err
	}
	count := []T{T(len(c.In))}
	return &Task{Tiles: spans(n), Scratch: foldChunk * c.Out[0].DType.Size(), Tile: func(tile int, scratch []byte) {
		acc := view[T](scratch)
		dst := out[T](c, 0)
		for lo, hi := span(tile, n); lo < hi; lo += foldChunk {
			m := min(foldChunk, hi-lo)
			apply(machine.Best(), f, flat, 0, m, acc, in[T](c, 0)[lo:lo+m], in[T](c, 1)[lo:lo+m])
			for i := 2; i < len(c.In); i++ {
				apply(machine.Best(), f, flat, 0, m, acc, acc, in[T](c, i)[lo:lo+m])
			}
			if mean {
				apply(machine.Best(), kernel.Div, scale, 0, m, acc, acc, count)
			}
			copy(dst[lo:lo+m], acc)
		}
	}}, nil
}

// variadicBroadcast folds operands of several shapes, the whole result in
// scratch as one tile.
func variadicBroadcast[T kernel.Number](c *op.Call, f kernel.BinaryOp, mean bool, apply fold[T]) (*Task, error) {
	sizes, own := c.Out[0].Shape.Sizes(), c.Out[0].Shape.Strides()
	nests := make([]*kernel.Nest, len(c.In)+1) // operand i onto what was folded before; the last one divides
	for i := range nests {
		left, right := own, make([]int, len(sizes))
		if i == 1 {
			left = broadcastStrides(c.In[0].Shape.Sizes(), sizes)
		}
		if i < len(c.In) {
			right = broadcastStrides(c.In[i].Shape.Sizes(), sizes)
		}
		var err error
		if nests[i], err = newNest(sizes, own, left, right); err != nil {
			return nil, err
		}
	}
	n := elements(&c.Out[0])
	count := []T{T(len(c.In))}
	return &Task{Tiles: min(n, 1), Scratch: n * c.Out[0].DType.Size(), Tile: func(_ int, scratch []byte) {
		acc := view[T](scratch)[:n]
		apply(machine.Best(), f, nests[1], 0, n, acc, in[T](c, 0), in[T](c, 1))
		for i := 2; i < len(c.In); i++ {
			apply(machine.Best(), f, nests[i], 0, n, acc, acc, in[T](c, i))
		}
		if mean {
			apply(machine.Best(), kernel.Div, nests[len(c.In)], 0, n, acc, acc, count)
		}
		copy(out[T](c, 0), acc)
	}}, nil
}
