package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"max_pool":            needsFirst(bindMaxPool),
	"average_pool":        oneFloatType(bindAveragePool),
	"global_max_pool":     oneFloatType(globalPool(reduce.Max)),
	"global_average_pool": oneFloatType(globalPool(reduce.Mean)),
})

func poolKind(c *op.Call, largest bool) conv.PoolKind {
	switch {
	case largest:
		return conv.PoolMax
	case c.Int("count_include_pad") != 0:
		return conv.PoolAveragePadded
	}
	return conv.PoolAverage
}

func bindMaxPool(c *op.Call) (Kernel, error) {
	switch c.In[0].DType {
	case dtype.F16, dtype.BF16:
		return halfAsF32(c)
	case dtype.F32:
		if wanted(c, 1) {
			return &pooledIndices{newPooling(c, conv.PoolMax)}, nil
		}
		return &pooled{pooling: newPooling(c, conv.PoolMax)}, nil
	case dtype.F64:
		return newPlainPool[float64](c, conv.PoolMax), nil
	case dtype.I8:
		if wanted(c, 1) {
			return newPlainPool[int8](c, conv.PoolMax), nil
		}
		return &pooledBytes{pooling: newPooling(c, conv.PoolMax), signed: true}, nil
	case dtype.U8:
		if wanted(c, 1) {
			return newPlainPool[uint8](c, conv.PoolMax), nil
		}
		return &pooledBytes{pooling: newPooling(c, conv.PoolMax)}, nil
	}
	return nil, unsupported(c)
}

func bindAveragePool(c *op.Call) (Kernel, error) {
	kind := poolKind(c, false)
	if c.In[0].DType == dtype.F64 {
		return newPlainPool[float64](c, kind), nil
	}
	return &pooled{pooling: newPooling(c, kind)}, nil
}

// pooling is a pool of f32.
type pooling struct {
	conv.Pool
	slide       slide
	columnMajor bool
}

func newPooling(c *op.Call, kind conv.PoolKind) pooling {
	return pooling{Pool: conv.Pool{Kind: kind}, columnMajor: kind == conv.PoolMax && c.Int("storage_order") != 0}
}

// fill sets the problem of a call, which is not prepared. It returns false if
// no result has an element.
func (k *pooling) fill(c *op.Call) (bool, error) {
	axes, err := k.slide.over(c, (*op.Sig).PoolSlide, c.In[0].Shape.Sizes(), nil)
	if err != nil {
		return false, err
	}
	to := conv.Pool{
		Kind: k.Kind, Planes: c.In[0].Shape.Size(0) * c.In[0].Shape.Size(1), ColumnMajor: k.columnMajor, Window: k.Window,
	}
	if err := fillWindow(&to.Window, axes); err != nil {
		return false, err
	}
	if to.InSteps, to.OutSteps = stepsOf(&c.In[0]), stepsOf(&c.Out[0]); to.InSteps != (conv.Steps{}) || to.OutSteps != (conv.Steps{}) {
		to.Channels = c.In[0].Shape.Size(1)
	}
	k.Reset(to)
	return elements(&c.Out[0]) > 0, nil
}

func (k *pooling) takesStrides() bool { return true }

var _ = registerWalkers(poolsRows, "max_pool", "average_pool")

// poolsRows: images whose rows lie in one piece, at any distance. Indices count
// the elements of all planes, and the pool of a whole plane is a reduction.
func poolsRows(s *op.Sig, in, out []*shape.Layout) bool {
	if len(s.Results) > 1 && !s.Results[1].IsZero() || isHalf(s.Args[0].DType) || s.Args[0].Shape.Rank()-2 > conv.MaxSpatial {
		return false
	}
	return product(s.Results[0].Shape.Sizes()[2:]) > 1 && imagesInRows(in) && imagesInRows(out)
}

// pooled is a pool without indices. One whose windows are the whole input is a
// reduction.
type pooled struct {
	pooling
	whole  bool
	global reduced[float32]
}

func (k *pooled) Refill(t *Task) error {
	ok, err := k.fill(t.Call)
	if err != nil || !ok {
		return err
	}
	if k.whole = coversAll(&k.Window); k.whole {
		k.global.kind = reduce.Mean
		if k.Kind == conv.PoolMax {
			k.global.kind = reduce.Max
		}
		k.global.spatial(t)
		return nil
	}
	k.Prepare(t.variant)
	t.Tiles, t.Scratch = k.Tiles(), k.ScratchBytes()
	return nil
}

func (k *pooled) Tile(t *Task, tile int, scratch []byte) {
	if k.whole {
		k.global.Tile(t, tile, scratch)
		return
	}
	k.Pool.Tile(tile, view[float32](scratch), out[float32](t.Call, 0), in[float32](t.Call, 0))
}

// coversAll tells whether the only window of each axis is the whole input.
func coversAll(w *conv.Window) bool {
	for i, n := range w.In {
		if n == 0 || w.Out[i] != 1 || w.Kernel[i] != n || w.Dilation[i] != 1 || w.PadBegin[i] != 0 || w.PadEnd[i] != 0 {
			return false
		}
	}
	return true
}

// pooledIndices is a pool that says where in the operand the results lie.
type pooledIndices struct{ pooling }

func (k *pooledIndices) Refill(t *Task) error {
	ok, err := k.fill(t.Call)
	if err != nil || !ok {
		return err
	}
	k.Prepare(t.variant)
	t.Tiles = k.Tiles()
	return nil
}

func (k *pooledIndices) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	k.TileIndices(tile, out[float32](c, 0), out[int64](c, 1), in[float32](c, 0))
}

// pooledBytes is a maximum of bytes without indices.
type pooledBytes struct {
	pooling
	signed bool
	bytes  conv.BytePool
}

func (k *pooledBytes) Refill(t *Task) error {
	ok, err := k.fill(t.Call)
	if err != nil || !ok {
		return err
	}
	k.bytes = conv.BytePool{Signed: k.signed, Planes: k.Planes, Channels: k.Channels, Window: k.Window}
	k.bytes.Prepare(t.variant)
	t.Tiles, t.Scratch = k.bytes.Tiles(), k.bytes.ScratchBytes()
	return nil
}

func (k *pooledBytes) Tile(t *Task, tile int, scratch []byte) {
	k.bytes.Tile(tile, scratch, t.Call.Out[0].Data, t.Call.In[0].Data)
}

// plainPool serves the element types that have no fast kernels.
type plainPool[T kernel.Number] struct {
	pooling
	plain conv.PlainPool
}

func newPlainPool[T kernel.Number](c *op.Call, kind conv.PoolKind) Kernel {
	return &plainPool[T]{pooling: newPooling(c, kind)}
}

func (k *plainPool[T]) Refill(t *Task) error {
	ok, err := k.fill(t.Call)
	if err != nil || !ok {
		return err
	}
	k.plain = conv.PlainPool{Kind: k.Kind, Planes: k.Planes, Channels: k.Channels, Window: k.Window, ColumnMajor: k.ColumnMajor}
	k.plain.Prepare()
	t.Tiles = k.plain.Tiles()
	return nil
}

func (k *plainPool[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	conv.PlainPoolTile(&k.plain, tile, out[T](c, 0), out[int64](c, 1), in[T](c, 0))
}

// globalPool binds a reduction of all spatial axes.
func globalPool(kind reduce.Kind) binder {
	return func(c *op.Call) (Kernel, error) {
		bind, ok := floatOf(c.In[0].DType, newGlobalPool[float32], newGlobalPool[float64])
		if !ok {
			return nil, unsupported(c)
		}
		return bind(kind), nil
	}
}

type pooledGlobally[T kernel.Float] struct{ reduced[T] }

func newGlobalPool[T kernel.Float](kind reduce.Kind) Kernel {
	return &pooledGlobally[T]{reduced[T]{kind: kind}}
}

func (k *pooledGlobally[T]) Refill(t *Task) error {
	k.spatial(t)
	return nil
}
