package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// The operators of this file write into a copy of operand 0, or into operand 0
// itself where the result lies there: the tiles copy, then Finish writes, on
// one goroutine and in order.
var _ = register(map[string]binder{
	"scatter_elements": byIndex(bindScatterElements[int32], bindScatterElements[int64]),
	"scatter_nd":       byIndex(bindScatterND[int32], bindScatterND[int64]),
	"tensor_scatter":   unpacked(bindTensorScatter),
	"shift":            unpacked(bindShift),
})

var scatterOps = map[string]move.ScatterOp{
	"none": move.ScatterSet, "add": move.ScatterAdd, "mul": move.ScatterMul, "min": move.ScatterMin, "max": move.ScatterMax,
}

// scatterOf returns how a call combines elements of what type. Booleans are
// added as the larger of two bytes and multiplied as the smaller.
func scatterOf(c *op.Call) (dtype.DType, move.ScatterOp) {
	dt, how := c.In[0].DType, scatterOps[c.Str("reduction")]
	if dt != dtype.Bool || how == move.ScatterSet {
		return dt, how
	}
	if how == move.ScatterAdd || how == move.ScatterMax {
		return dtype.U8, move.ScatterMax
	}
	return dtype.U8, move.ScatterMin
}

var (
	_ = registerWalkers(updatesWhole, "scatter_elements")
	_ = registerWalkers(slicesWhole, "scatter_nd")
	_ = registerWalkers(rowsScattered, "tensor_scatter")
)

// updatesWhole: indices and updates have no gaps.
func updatesWhole(_ *op.Sig, in, _ []*shape.Layout) bool { return noGaps(in[1:]) }

// slicesWhole: nor have the slices of the result that tuples mean.
func slicesWhole(s *op.Sig, in, out []*shape.Layout) bool {
	index := s.Args[1].Shape
	return noGaps(in[1:]) && (out[0] == nil || isWhole(out[0], index.Size(index.Rank()-1)))
}

// rowsScattered: what is written for one index of the axis has no gaps, nor
// have updates, and the axes between the samples and the axis are walked as
// one.
func rowsScattered(s *op.Sig, in, out []*shape.Layout) bool {
	axis := beforeAxis(s)
	return noGaps(in[1:]) && (out[0] == nil || isEven(out[0], 1, axis) && isWhole(out[0], axis+1))
}

// scatter is how updates meet elements.
type scatter struct {
	copyFirst
	dt  dtype.DType
	how move.ScatterOp
}

func newScatter(c *op.Call) (k scatter) {
	k.dt, k.how = scatterOf(c)
	return k
}

type scatteredElements[I kernel.Index] struct {
	scatter
	spec move.ScatterElementsSpec
	axis int // elements of it
}

func bindScatterElements[I kernel.Index](c *op.Call) (Kernel, error) {
	return &scatteredElements[I]{scatter: newScatter(c)}, nil
}

func (k *scatteredElements[I]) Refill(t *Task) error {
	c := t.Call
	sizes, index := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	if err := checkLoops(index); err != nil {
		return err
	}
	axis := axisOf(c, len(sizes))
	k.axis = sizes[axis]
	k.spec.Prepare(sizes, index, axis, stridesOf(&c.Out[0]))
	return k.copyFirst.Refill(t)
}

func (k *scatteredElements[I]) Start(t *Task) error {
	if err := checkIndices[I](t.Call, k.axis); err != nil {
		return err
	}
	return k.copyFirst.Start(t)
}

func (k *scatteredElements[I]) Finish(t *Task) error {
	c := t.Call
	move.ScatterElements(&k.spec, k.how, k.dt, c.Out[0].Data, in[I](c, 1), c.In[2].Data)
	return nil
}

type scatteredTuples[I kernel.Index] struct {
	scatter
	spec move.TuplesSpec
	axes []int // sizes of those that are indexed; a part of the shape
}

func bindScatterND[I kernel.Index](c *op.Call) (Kernel, error) {
	return &scatteredTuples[I]{scatter: newScatter(c)}, nil
}

func (k *scatteredTuples[I]) Refill(t *Task) error {
	sizes, index := t.Call.In[0].Shape.Sizes(), t.Call.In[1].Shape.Sizes()
	k.axes = sizes[:index[len(index)-1]]
	k.spec.Prepare(sizes, index, 0, stridesOf(&t.Call.Out[0]))
	return k.copyFirst.Refill(t)
}

func (k *scatteredTuples[I]) Start(t *Task) error {
	if err := checkTuples[I](t.Call, k.axes); err != nil {
		return err
	}
	return k.copyFirst.Start(t)
}

func (k *scatteredTuples[I]) Finish(t *Task) error {
	c := t.Call
	move.ScatterND(&k.spec, k.how, k.dt, c.Out[0].Data, in[I](c, 1), c.In[2].Data)
	return nil
}

// tensorScatter writes the update of each sample at that sample's place along
// the sequence axis.
type tensorScatter struct {
	copyFirst
	circular      bool
	batch, outer  int
	length, count int // of the axis, and of it in the update
	inner         int // bytes

	sample, between, row int // bytes from one sample, outer index and index to the next, in the result
}

func bindTensorScatter(c *op.Call) (Kernel, error) {
	return &tensorScatter{circular: c.Str("mode") == "circular"}, nil
}

func (k *tensorScatter) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	k.batch, k.outer = sizes[0], product(sizes[1:axis])
	k.inner = product(sizes[axis+1:]) * c.In[0].DType.Size()
	k.length, k.count = sizes[axis], c.In[1].Shape.Size(axis)
	to, size := stridesOf(&c.Out[0]), c.In[0].DType.Size()
	k.sample, k.row, k.between = to[0]*size, to[axis]*size, distance(sizes[1:axis], to[1:])*size
	return k.copyFirst.Refill(t)
}

// place returns where the update of a sample begins.
func (k *tensorScatter) place(c *op.Call, sample int) int64 {
	if !has(c, 2) {
		return 0
	}
	return in[int64](c, 2)[sample]
}

func (k *tensorScatter) Start(t *Task) error {
	for b := range k.batch {
		p := k.place(t.Call, b)
		switch {
		case k.circular && p < 0:
			return fmt.Errorf("write_indices: got %d for sample %d, want 0 or more", p, b)
		case !k.circular && (p < 0 || p > int64(k.length-k.count)):
			return fmt.Errorf("write_indices: got %d for sample %d, want 0 to %d (%d of %d places are written)", p, b, k.length-k.count, k.count, k.length)
		}
	}
	return k.copyFirst.Start(t)
}

func (k *tensorScatter) Finish(t *Task) error {
	dst, src := t.Call.Out[0].Data, t.Call.In[1].Data
	for b := range k.batch {
		first := 0
		if k.length > 0 {
			first = int(k.place(t.Call, b) % int64(k.length))
		}
		for o := range k.outer {
			from := src[(b*k.outer+o)*k.count*k.inner:][:k.count*k.inner]
			to := b*k.sample + o*k.between
			for i := 0; len(from) > 0; i++ {
				at := first + i
				if at >= k.length {
					at %= k.length
				}
				n := k.inner
				if k.row == k.inner { // as many as follow each other
					n = min(len(from), (k.length-at)*k.inner)
					i += n/k.inner - 1
				}
				copy(dst[to+at*k.row:][:n], from)
				from = from[n:]
			}
		}
	}
	return nil
}
