package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/selection"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"nll_loss": oneFloatType(byIndex(bindNLLLoss[int32], bindNLLLoss[int64])),
	"top_k":    bindTopK,
	"bit_cast": bindCopy,
	"hardmax":  oneFloatType(bindHardmax),
})

func bindNLLLoss[I kernel.Index](c *op.Call) (Kernel, error) {
	spec := selection.Loss{
		Ignore: c.Int("ignore_index"), HasIgnore: c.Attrs.Has("ignore_index"),
		Sum: c.Str("reduction") == "sum", Mean: c.Str("reduction") == "mean",
	}
	bind, ok := floatOf(c.In[0].DType, newNLLLoss[float32, I], newNLLLoss[float64, I])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(spec), nil
}

type nllLoss[T kernel.Float, I kernel.Index] struct{ spec selection.Loss }

func newNLLLoss[T kernel.Float, I kernel.Index](spec selection.Loss) Kernel {
	return &nllLoss[T, I]{spec}
}

func (k *nllLoss[T, I]) Refill(t *Task) error {
	sizes := t.Call.In[0].Shape.Sizes()
	k.spec.Batch, k.spec.Classes, k.spec.Area = sizes[0], sizes[1], product(sizes[2:])
	t.Tiles = 1
	return nil
}

func (k *nllLoss[T, I]) Start(t *Task) error {
	for i, target := range in[I](t.Call, 1) {
		ignored := k.spec.HasIgnore && int64(target) == k.spec.Ignore
		if !ignored && (target < 0 || int64(target) >= int64(k.spec.Classes)) {
			return fmt.Errorf("targets: got class %d at position %d, want 0 to %d", target, i, k.spec.Classes-1)
		}
	}
	return nil
}

func (k *nllLoss[T, I]) Tile(t *Task, _ int, _ []byte) {
	c := t.Call
	selection.NLLLoss(&k.spec, out[T](c, 0), in[T](c, 0), in[I](c, 1), in[T](c, 2))
}

func bindTopK(c *op.Call) (Kernel, error) {
	if isHalf(c.In[0].DType) {
		return halfAsF32(c)
	}
	bind, ok := floatOf(c.In[0].DType, newTopK[float32], newTopK[float64])
	if !ok {
		bind, ok = intOf(c.In[0].DType, newTopK[int8], newTopK[int16], newTopK[int32], newTopK[int64],
			newTopK[uint8], newTopK[uint16], newTopK[uint32], newTopK[uint64])
	}
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

type topK[T kernel.Number] struct {
	spec selection.TopK
	rows groups
}

func newTopK[T kernel.Number]() Kernel { return &topK[T]{} }

func (k *topK[T]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	k.spec = selection.TopK{Axis: sizes[axis], Inner: product(sizes[axis+1:]), K: c.Out[1].Shape.Size(axis), Smallest: c.Int("largest") == 0}
	k.rows = groupsOf(product(sizes[:axis])*k.spec.Inner, k.spec.Axis*8)
	t.Tiles, t.Scratch = k.rows.tiles(), 8*k.spec.Scratch()
	return nil
}

func (k *topK[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	lo, hi := k.rows.of(tile)
	selection.TopKRows(&k.spec, lo, hi, out[T](c, 0), out[int64](c, 1), in[T](c, 0), view[int64](scratch[:8*k.spec.Scratch()]))
}

func bindHardmax(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newHardmax[float32], newHardmax[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

type hardmax[T kernel.Float] struct {
	n, inner int
	rows     groups
}

func newHardmax[T kernel.Float]() Kernel { return &hardmax[T]{} }

func (k *hardmax[T]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	k.n, k.inner = sizes[axis], product(sizes[axis+1:])
	rows := product(sizes[:axis]) * k.inner
	if k.n == 0 {
		rows = 0
	}
	k.rows = groupsOf(rows, k.n*c.In[0].DType.Size())
	t.Tiles = k.rows.tiles()
	return nil
}

func (k *hardmax[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := k.rows.of(tile)
	selection.HardmaxRows(lo, hi, k.n, k.inner, out[T](t.Call, 0), in[T](t.Call, 0))
}
