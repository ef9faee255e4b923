package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/sample"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"max_unpool":       oneFloatType(bindMaxUnpool),
	"col2im":           bindCol2Im,
	"det":              oneFloatType(bindDet),
	"inverse":          oneFloatType(bindInverse),
	"reverse_sequence": bindReverse,
	"affine_grid":      oneFloatType(bindAffineGrid),
})

var _ = needValues(map[string][]int{"col2im": {1, 2}})

func bindMaxUnpool(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newMaxUnpool[float32], newMaxUnpool[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

type maxUnpool[T kernel.Float] struct{ spec conv.Unpool }

func newMaxUnpool[T kernel.Float]() Kernel { return &maxUnpool[T]{} }

func (k *maxUnpool[T]) Refill(t *Task) error {
	sizes, err := t.Call.UnpoolSizes()
	k.spec = conv.Unpool{In: sizes, Out: t.Call.Out[0].Shape.Sizes()}
	t.Tiles = 1
	return err
}

func (k *maxUnpool[T]) Start(t *Task) error {
	for i, index := range in[int64](t.Call, 1) {
		if k.spec.Place(index) < 0 {
			return fmt.Errorf("indices: got %d at position %d, want 0 to %d", index, i, product(k.spec.In)-1)
		}
	}
	return nil
}

func (k *maxUnpool[T]) Tile(t *Task, _ int, _ []byte) {
	c := t.Call
	conv.MaxUnpool(&k.spec, out[T](c, 0), in[T](c, 0), in[int64](c, 1))
}

func bindCol2Im(c *op.Call) (Kernel, error) {
	if isHalf(c.In[0].DType) {
		return halfAsF32(c)
	}
	bind, ok := floatOf(c.In[0].DType, newCol2Im[float32], newCol2Im[float64])
	if !ok {
		bind, ok = intOf(c.In[0].DType, newCol2Im[int8], newCol2Im[int16], newCol2Im[int32], newCol2Im[int64],
			newCol2Im[uint8], newCol2Im[uint16], newCol2Im[uint32], newCol2Im[uint64])
	}
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

// col2Im adds up blocks at their places, a plane at a time.
type col2Im[T kernel.Number] struct {
	spec   conv.Fold
	planes groups
}

func newCol2Im[T kernel.Number]() Kernel { return &col2Im[T]{} }

func (k *col2Im[T]) Refill(t *Task) error {
	c := t.Call
	axes, known, err := c.FoldAxes()
	if err != nil {
		return err
	}
	if !known {
		return unknown(c, 1)
	}
	sizes := c.Out[0].Shape.Sizes()
	if err := fillWindow(&k.spec.Window, axes); err != nil {
		return err
	}
	k.spec.Planes = sizes[0] * sizes[1]
	k.spec.Prepare()
	planes := k.spec.Planes
	if elements(&c.Out[0]) == 0 {
		planes = 0
	}
	k.planes = groupsOf(planes, elements(&c.In[0])/max(planes, 1)*c.In[0].DType.Size())
	t.Tiles = k.planes.tiles()
	return nil
}

func (k *col2Im[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := k.planes.of(tile)
	for p := lo; p < hi; p++ {
		conv.FoldTile(&k.spec, p, out[T](t.Call, 0), in[T](t.Call, 0))
	}
}

func bindDet(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newDet[float32], newDet[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

// det computes the determinants of matrices of n rows.
type det[T kernel.Float] struct {
	n        int
	matrices groups
}

func newDet[T kernel.Float]() Kernel { return &det[T]{} }

func (k *det[T]) Refill(t *Task) error {
	sizes := t.Call.In[0].Shape.Sizes()
	k.n = sizes[len(sizes)-1]
	if k.n > 1<<14 {
		return unsupported(t.Call) // the scratch has its square
	}
	k.matrices = groupsOf(elements(&t.Call.Out[0]), max(8, k.n*k.n*k.n))
	t.Tiles, t.Scratch = k.matrices.tiles(), k.n*k.n*8
	return nil
}

func (k *det[T]) Tile(t *Task, tile int, scratch []byte) {
	lo, hi := k.matrices.of(tile)
	for i := lo; i < hi; i++ {
		out[T](t.Call, 0)[i] = gemm.Det(k.n, in[T](t.Call, 0)[i*k.n*k.n:], view[float64](scratch[:k.n*k.n*8]))
	}
}

func bindInverse(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newInverse[float32], newInverse[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

// inverse computes the inverses of matrices of n rows.
type inverse[T kernel.Float] struct {
	n        int
	matrices groups
}

func newInverse[T kernel.Float]() Kernel { return &inverse[T]{} }

func (k *inverse[T]) Refill(t *Task) error {
	sizes := t.Call.In[0].Shape.Sizes()
	k.n = sizes[len(sizes)-1]
	if k.n > 1<<13 {
		return unsupported(t.Call) // the scratch has its square, twice
	}
	k.matrices = groupsOf(product(sizes[:len(sizes)-2]), max(8, 2*k.n*k.n*k.n))
	t.Tiles, t.Scratch = k.matrices.tiles(), 2*k.n*k.n*8
	return nil
}

func (k *inverse[T]) Tile(t *Task, tile int, scratch []byte) {
	lo, hi := k.matrices.of(tile)
	size := k.n * k.n
	for i := lo; i < hi; i++ {
		gemm.Inverse(k.n, out[T](t.Call, 0)[i*size:], in[T](t.Call, 0)[i*size:], view[float64](scratch[:2*size*8]))
	}
}

type reversed struct {
	spec move.Reverse
	rows groups
}

func bindReverse(*op.Call) (Kernel, error) { return &reversed{}, nil }

func (k *reversed) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	time, batch := int(c.Int("time_axis")), int(c.Int("batch_axis"))
	k.spec = move.Reverse{Time: sizes[time], Batch: sizes[batch], Inner: product(sizes[2:]) * c.In[0].DType.Size(), BatchFirst: batch == 0}
	k.spec.Dst, k.spec.Src = reverseSteps(&c.Out[0], time, batch), reverseSteps(&c.In[0], time, batch)
	k.spec.Prepare()
	k.rows = groupsOf(k.spec.Time*k.spec.Batch, k.spec.Inner)
	t.Tiles = k.rows.tiles()
	return nil
}

// reverseSteps returns the distances of rows with gaps, zero without any.
func reverseSteps(a *op.Arg, time, batch int) (steps move.RowSteps) {
	if hasGaps(a) {
		of, n := a.Layout.Strides(), a.DType.Size()
		steps = move.RowSteps{Time: of[time] * n, Batch: of[batch] * n}
	}
	return steps
}

var _ = registerWalkers(reversesRows, "reverse_sequence")

// reversesRows: any distance of the elements of a sequence, and of sequences.
func reversesRows(_ *op.Sig, in, out []*shape.Layout) bool {
	return noGaps(in[1:]) && (in[0] == nil || isWhole(in[0], 2)) && (out[0] == nil || isWhole(out[0], 2))
}

func (k *reversed) takesStrides() bool { return true }

func (k *reversed) Start(t *Task) error {
	for i, n := range in[int64](t.Call, 1) {
		if n < 0 || n > int64(k.spec.Time) {
			return fmt.Errorf("sequence_lens: got %d for sequence %d, want 0 to %d", n, i, k.spec.Time)
		}
	}
	return nil
}

func (k *reversed) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.rows.of(tile)
	if sameBytes(c.Out[0].Data, c.In[0].Data) {
		move.ReverseInPlace(&k.spec, lo, hi, c.Out[0].Data, in[int64](c, 1))
		return
	}
	move.ReverseRows(&k.spec, lo, hi, c.Out[0].Data, c.In[0].Data, in[int64](c, 1))
}

func bindAffineGrid(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newAffineGrid[float32], newAffineGrid[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

type affineGrid[T kernel.Float] struct {
	spec   sample.AffineGrid
	places groups
}

func newAffineGrid[T kernel.Float]() Kernel { return &affineGrid[T]{} }

func (k *affineGrid[T]) Refill(t *Task) error {
	sizes := t.Call.Out[0].Shape.Sizes()
	k.spec = sample.AffineGrid{Batch: sizes[0], Out: sizes[1 : len(sizes)-1], Align: t.Call.Int("align_corners") != 0}
	k.places = groupsOf(k.spec.Batch*product(k.spec.Out), 64)
	t.Tiles = k.places.tiles()
	return nil
}

func (k *affineGrid[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := k.places.of(tile)
	sample.AffineGridRows(&k.spec, lo, hi, out[T](t.Call, 0), in[T](t.Call, 0))
}
