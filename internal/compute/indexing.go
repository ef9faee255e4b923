package compute

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"slice":           bindSlice,
	"gather":          byIndex(bindGather[int32], bindGather[int64]),
	"gather_elements": byIndex(bindGatherElements[int32], bindGatherElements[int64]),
	"gather_nd":       byIndex(bindGatherND[int32], bindGatherND[int64]),
})

var _ = needValues(map[string][]int{"slice": {1, 2, 3, 4}})

var _ = registerWalkers(anyLayout, "slice")

// byIndex picks the instance for the element type of the indices, operand 1.
func byIndex(i32, i64 binder) binder {
	return func(c *op.Call) (Kernel, error) {
		switch c.In[1].DType {
		case dtype.I32:
			return i32(c)
		case dtype.I64:
			return i64(c)
		}
		return nil, unsupported(c)
	}
}

type sliced struct {
	oneCopy
	axes               []op.SliceAxis
	start, step, count []int
}

func bindSlice(*op.Call) (Kernel, error) { return &sliced{}, nil }

func (k *sliced) Refill(t *Task) error {
	c := t.Call
	if err := checkLoops(c.Out[0].Shape.Sizes()); err != nil {
		return err
	}
	axes, ok, err := c.AppendSliceAxes(k.axes[:0])
	if err != nil {
		return err
	}
	for arg := 1; !ok && arg < len(c.In); arg++ {
		if _, known := c.KnownInts(arg); has(c, arg) && !known {
			return unknown(c, arg)
		}
	}
	k.axes = axes
	k.start, k.step, k.count = k.start[:0], k.step[:0], k.count[:0]
	for _, a := range axes {
		k.start, k.step, k.count = append(k.start, a.Start), append(k.step, a.Step), append(k.count, a.Size)
	}
	k.copy.PrepareSlice(c.In[0].DType.Size(), c.In[0].Shape.Sizes(), k.start, k.step, k.count, stridesOf(&c.Out[0]), stridesOf(&c.In[0]))
	k.filled(t)
	return nil
}

func badAxis(axis int64, rank int) error {
	return fmt.Errorf("axis: got %d, want %d to %d: %w", axis, -rank, rank-1, shape.ErrShape)
}

// badIndex is the error for an index outside an axis of size n.
func badIndex(value int64, position, n int) error {
	return fmt.Errorf("indices: got %d at position %d, want %d to %d", value, position, -n, n-1)
}

// checkIndices checks that operand 1 stays within n.
func checkIndices[I kernel.Index](c *op.Call, n int) error {
	indices := in[I](c, 1)
	if at := move.OutOfRange(indices, n); at >= 0 {
		return badIndex(int64(indices[at]), at, n)
	}
	return nil
}

// checkTuples is checkIndices for tuples of indices into axes of the given
// sizes.
func checkTuples[I kernel.Index](c *op.Call, sizes []int) error {
	indices := in[I](c, 1)
	if at := move.OutOfRangeND(indices, sizes); at >= 0 {
		return badIndex(int64(indices[at]), at, sizes[at%len(sizes)])
	}
	return nil
}

func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

type gathered[I kernel.Index] struct{ spec move.GatherSpec }

func bindGather[I kernel.Index](*op.Call) (Kernel, error) { return &gathered[I]{}, nil }

func (k *gathered[I]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	k.spec = move.GatherSpec{
		Outer: product(sizes[:axis]), Axis: sizes[axis], Count: elements(&c.In[1]),
		Inner: product(sizes[axis+1:]) * c.In[0].DType.Size(),
	}
	if hasGaps(&c.In[0]) || hasGaps(&c.Out[0]) {
		k.lay(c, axis)
	}
	k.spec.Prepare()
	t.Tiles = k.spec.Tiles()
	return nil
}

func (k *gathered[I]) takesStrides() bool { return true }

// lay sets the distances of rows.
func (k *gathered[I]) lay(c *op.Call, axis int) {
	x, y, size := &c.In[0], &c.Out[0], c.In[0].DType.Size()
	end := axis + c.In[1].Shape.Rank()
	k.spec.SrcOuter = size * distance(x.Shape.Sizes()[:axis], stridesOf(x))
	k.spec.SrcRow = size * distance(x.Shape.Sizes()[axis:axis+1], stridesOf(x)[axis:])
	k.spec.DstOuter = size * distance(y.Shape.Sizes()[:axis], stridesOf(y))
	k.spec.DstRow = size * distance(y.Shape.Sizes()[axis:end], stridesOf(y)[axis:])
}

// distance returns how far apart the indices of axes lie that are walked as
// one, 0 if there is one index.
func distance(sizes, strides []int) int {
	for i := len(sizes) - 1; i >= 0; i-- {
		if sizes[i] > 1 {
			return strides[i]
		}
	}
	return 0
}

// isEven reports whether axes [from, to) of a layout can be walked as one.
func isEven(l *shape.Layout, from, to int) bool {
	sizes, strides, next := l.Shape().Sizes(), l.Strides(), 0
	for i := to - 1; i >= from; i-- {
		if sizes[i] == 1 {
			continue
		}
		if next > 0 && strides[i] != next {
			return false
		}
		next = sizes[i] * strides[i]
	}
	return true
}

// isWhole reports whether the axes from one on have no gaps.
func isWhole(l *shape.Layout, from int) bool {
	sizes, strides, step := l.Shape().Sizes(), l.Strides(), 1
	for i := len(sizes) - 1; i >= from; i-- {
		if sizes[i] > 1 && strides[i] != step {
			return false
		}
		step *= sizes[i]
	}
	return true
}

// rowsGathered: what an index means has no gaps, and the axes before it, and
// those of the indices, are walked as one each.
func rowsGathered(s *op.Sig, in, out []*shape.Layout) bool {
	axis, n := beforeAxis(s), s.Args[1].Shape.Rank()
	takes := func(l *shape.Layout, end int) bool {
		return l == nil || l.IsContiguous() || isEven(l, 0, axis) && isEven(l, axis, end) && isWhole(l, end)
	}
	return takes(in[0], axis+1) && noGaps(in[1:]) && takes(out[0], axis+n)
}

// noGaps reports whether all layouts are contiguous.
func noGaps(layouts []*shape.Layout) bool {
	return !slices.ContainsFunc(layouts, func(l *shape.Layout) bool { return l != nil && !l.IsContiguous() })
}

// firstGaps is for kernels that walk the strides of operand 0.
func firstGaps(_ *op.Sig, in, out []*shape.Layout) bool { return noGaps(in[1:]) && noGaps(out) }

// tuplesGathered: what a tuple means has no gaps, and samples are walked as
// one.
func tuplesGathered(s *op.Sig, in, out []*shape.Layout) bool {
	index, batch := s.Args[1].Shape, int(s.Int("batch_dims"))
	return noGaps(in[1:]) && noGaps(out) && isEven(in[0], 0, batch) && isWhole(in[0], batch+index.Size(index.Rank()-1))
}

var (
	_ = registerWalkers(rowsGathered, "gather")
	_ = registerWalkers(firstGaps, "gather_elements")
	_ = registerWalkers(tuplesGathered, "gather_nd")
)

func (k *gathered[I]) Start(t *Task) error { return checkIndices[I](t.Call, k.spec.Axis) }

func (k *gathered[I]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	move.Gather(&k.spec, tile, c.Out[0].Data, c.In[0].Data, in[I](c, 1))
}

type gatheredElements[I kernel.Index] struct {
	spec move.GatherElementsSpec
	axis int // elements of it
}

func bindGatherElements[I kernel.Index](*op.Call) (Kernel, error) {
	return &gatheredElements[I]{}, nil
}

func (k *gatheredElements[I]) Refill(t *Task) error {
	c := t.Call
	sizes, index := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	if err := checkLoops(index); err != nil {
		return err
	}
	axis := axisOf(c, len(sizes))
	k.axis = sizes[axis]
	k.spec.Prepare(c.In[0].DType.Size(), sizes, index, axis, stridesOf(&c.In[0]))
	t.Tiles = k.spec.Tiles()
	return nil
}

func (k *gatheredElements[I]) takesStrides() bool { return true }

func (k *gatheredElements[I]) Start(t *Task) error { return checkIndices[I](t.Call, k.axis) }

func (k *gatheredElements[I]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	move.GatherElements(&k.spec, tile, c.Out[0].Data, c.In[0].Data, in[I](c, 1))
}

type gatheredTuples[I kernel.Index] struct {
	spec move.TuplesSpec
	axes []int // sizes of those that are indexed; a part of the shape
}

func bindGatherND[I kernel.Index](*op.Call) (Kernel, error) { return &gatheredTuples[I]{}, nil }

func (k *gatheredTuples[I]) Refill(t *Task) error {
	c := t.Call
	sizes, index := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	batch := int(c.Int("batch_dims"))
	k.axes = sizes[batch : batch+index[len(index)-1]]
	k.spec.Prepare(sizes, index, batch, stridesOf(&c.In[0]))
	t.Tiles = k.spec.Tiles()
	return nil
}

func (k *gatheredTuples[I]) takesStrides() bool { return true }

func (k *gatheredTuples[I]) Start(t *Task) error { return checkTuples[I](t.Call, k.axes) }

func (k *gatheredTuples[I]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	move.GatherND(&k.spec, tile, c.In[0].DType.Size(), c.Out[0].Data, c.In[0].Data, in[I](c, 1))
}
