package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"slice":            bindSlice,
	"gather":           byIndex(bindGather[int32], bindGather[int64]),
	"gather_elements":  byIndex(bindGatherElements[int32], bindGatherElements[int64]),
	"gather_nd":        byIndex(bindGatherND[int32], bindGatherND[int64]),
	"scatter_elements": byIndex(bindScatterElements[int32], bindScatterElements[int64]),
	"scatter_nd":       byIndex(bindScatterND[int32], bindScatterND[int64]),
	"tensor_scatter":   unpacked(bindTensorScatter),
})

// byIndex picks the instance for the element type of the indices, operand 1.
func byIndex(i32, i64 binder) binder {
	return func(c *op.Call) (*Task, error) {
		switch c.In[1].DType {
		case dtype.I32:
			return i32(c)
		case dtype.I64:
			return i64(c)
		}
		return nil, unsupported(c)
	}
}

func bindSlice(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	if err := checkLoops(c.Out[0].Shape.Sizes()); err != nil {
		return nil, err
	}
	axes, ok, err := c.SliceAxes()
	if err != nil {
		return nil, err
	}
	for arg := 1; !ok && arg < len(c.In); arg++ {
		if _, known := c.KnownInts(arg); has(c, arg) && !known {
			return nil, unknown(c, arg)
		}
	}
	start, step, count := make([]int, len(axes)), make([]int, len(axes)), make([]int, len(axes))
	for i, a := range axes {
		start[i], step[i], count[i] = a.Start, a.Step, a.Size
	}
	return moveTask(c, func(m *kernel.Copy) { m.PrepareSlice(c.In[0].DType.Size(), sizes, start, step, count) }), nil
}

func badAxis(axis int64, rank int) error {
	return fmt.Errorf("axis: got %d, want %d to %d: %w", axis, -rank, rank-1, shape.ErrShape)
}

// badIndex is the error for an index outside an axis of size n.
func badIndex(value int64, position, n int) error {
	return fmt.Errorf("indices: got %d at position %d, want %d to %d", value, position, -n, n-1)
}

// checkIndices returns a Start that checks that operand 1 stays within n.
func checkIndices[I kernel.Index](c *op.Call, n int) func() error {
	return func() error {
		indices := in[I](c, 1)
		if at := kernel.OutOfRange(indices, n); at >= 0 {
			return badIndex(int64(indices[at]), at, n)
		}
		return nil
	}
}

// checkTuples is checkIndices for tuples of indices into axes of the given
// sizes.
func checkTuples[I kernel.Index](c *op.Call, sizes []int) func() error {
	return func() error {
		indices := in[I](c, 1)
		if at := kernel.OutOfRangeND(indices, sizes); at >= 0 {
			return badIndex(int64(indices[at]), at, sizes[at%len(sizes)])
		}
		return nil
	}
}

func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

func bindGather[I kernel.Index](c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	spec := &kernel.GatherSpec{
		Outer: product(sizes[:axis]), Axis: sizes[axis], Count: elements(&c.In[1]),
		Inner: product(sizes[axis+1:]) * c.In[0].DType.Size(),
	}
	spec.Prepare()
	return &Task{
		Tiles: spec.Tiles(),
		Start: checkIndices[I](c, spec.Axis),
		Tile:  func(tile int, _ []byte) { kernel.Gather(spec, tile, c.Out[0].Data, c.In[0].Data, in[I](c, 1)) },
	}, nil
}

func bindGatherElements[I kernel.Index](c *op.Call) (*Task, error) {
	sizes, index := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	if err := checkLoops(index); err != nil {
		return nil, err
	}
	axis := axisOf(c, len(sizes))
	spec := new(kernel.GatherElementsSpec)
	spec.Prepare(c.In[0].DType.Size(), sizes, index, axis)
	return &Task{
		Tiles: spec.Tiles(),
		Start: checkIndices[I](c, sizes[axis]),
		Tile: func(tile int, _ []byte) {
			kernel.GatherElements(spec, tile, c.Out[0].Data, c.In[0].Data, in[I](c, 1))
		},
	}, nil
}

func bindGatherND[I kernel.Index](c *op.Call) (*Task, error) {
	sizes, index := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	batch := int(c.Int("batch_dims"))
	spec := new(kernel.TuplesSpec)
	spec.Prepare(sizes, index, batch)
	size := c.In[0].DType.Size()
	return &Task{
		Tiles: spec.Tiles(),
		Start: checkTuples[I](c, sizes[batch:batch+index[len(index)-1]]),
		Tile:  func(tile int, _ []byte) { kernel.GatherND(spec, tile, size, c.Out[0].Data, c.In[0].Data, in[I](c, 1)) },
	}, nil
}

var scatterOps = map[string]kernel.ScatterOp{
	"none": kernel.ScatterSet, "add": kernel.ScatterAdd, "mul": kernel.ScatterMul, "min": kernel.ScatterMin, "max": kernel.ScatterMax,
}

// scatterOf returns how a call combines elements of what type. Booleans are
// added as the larger of two bytes and multiplied as the smaller.
func scatterOf(c *op.Call) (dtype.DType, kernel.ScatterOp) {
	dt, how := c.In[0].DType, scatterOps[c.Str("reduction")]
	if dt != dtype.Bool || how == kernel.ScatterSet {
		return dt, how
	}
	if how == kernel.ScatterAdd || how == kernel.ScatterMax {
		return dtype.U8, kernel.ScatterMax
	}
	return dtype.U8, kernel.ScatterMin
}

// updateTask is the task of an operator that writes into a copy of operand 0,
// or into operand 0 itself where the result lies there: the tiles copy, then
// update writes, on one goroutine and in order.
func updateTask(c *op.Call, check func() error, update func()) *Task {
	t := &Task{Start: check, Finish: func() error { update(); return nil }}
	copyFirst(c, t)
	return t
}

func bindScatterElements[I kernel.Index](c *op.Call) (*Task, error) {
	sizes, index := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	if err := checkLoops(index); err != nil {
		return nil, err
	}
	axis := axisOf(c, len(sizes))
	dt, how := scatterOf(c)
	spec := new(kernel.ScatterElementsSpec)
	spec.Prepare(sizes, index, axis)
	return updateTask(c, checkIndices[I](c, sizes[axis]), func() {
		kernel.ScatterElements(spec, how, dt, c.Out[0].Data, in[I](c, 1), c.In[2].Data)
	}), nil
}

func bindScatterND[I kernel.Index](c *op.Call) (*Task, error) {
	sizes, index := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	dt, how := scatterOf(c)
	spec := new(kernel.TuplesSpec)
	spec.Prepare(sizes, index, 0)
	return updateTask(c, checkTuples[I](c, sizes[:index[len(index)-1]]), func() {
		kernel.ScatterND(spec, how, dt, c.Out[0].Data, in[I](c, 1), c.In[2].Data)
	}), nil
}

// bindTensorScatter writes the update of each sample at that sample's place
// along the sequence axis.
func bindTensorScatter(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	batch, outer := sizes[0], product(sizes[1:axis])
	inner := product(sizes[axis+1:]) * c.In[0].DType.Size()
	length, count := sizes[axis], c.In[1].Shape.Size(axis)
	circular := c.Str("mode") == "circular"
	start := func(sample int) int64 {
		if !has(c, 2) {
			return 0
		}
		return in[int64](c, 2)[sample]
	}
	check := func() error {
		for b := range batch {
			p := start(b)
			switch {
			case circular && p < 0:
				return fmt.Errorf("write_indices: got %d for sample %d, want 0 or more", p, b)
			case !circular && (p < 0 || p > int64(length-count)):
				return fmt.Errorf("write_indices: got %d for sample %d, want 0 to %d (%d of %d places are written)", p, b, length-count, count, length)
			}
		}
		return nil
	}
	return updateTask(c, check, func() {
		dst, src := c.Out[0].Data, c.In[1].Data
		for b := range batch {
			first := 0
			if length > 0 {
				first = int(start(b) % int64(length))
			}
			for o := b * outer; o < (b+1)*outer; o++ {
				to, from := dst[o*length*inner:(o+1)*length*inner], src[o*count*inner:(o+1)*count*inner]
				for at := first; len(from) > 0; at = 0 {
					n := copy(to[at*inner:], from)
					from = from[n:]
				}
			}
		}
	}), nil
}
