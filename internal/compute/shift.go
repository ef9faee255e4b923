package compute

import "github.com/tenure-go/tenure/op"

// slicesShifted drops the first slices along an axis, moves the others to the
// front and writes rows behind them, all in the bytes of the result: those of
// operand 0, or a copy of it.
type slicesShifted struct {
	whole copyFirst
	outer int // of the axes before the axis

	// Bytes for one outer index: of the result, of the slices that stay, of
	// rows that the result has no room for, and of the other rows.
	length, kept, skipped, added int
}

var _ = registerApart(leading(beforeAxis, 0, 1), "shift")

func bindShift(*op.Call) (Kernel, error) { return &slicesShifted{}, nil }

func (k *slicesShifted) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	slice := product(sizes[axis+1:]) * c.In[0].DType.Size()
	n := c.In[1].Shape.Size(axis)
	added := min(n, sizes[axis])
	k.outer, k.length = product(sizes[:axis]), sizes[axis]*slice
	k.kept, k.skipped, k.added = (sizes[axis]-added)*slice, (n-added)*slice, added*slice
	return k.whole.Refill(t)
}

func (k *slicesShifted) Start(t *Task) error { return k.whole.Start(t) }

func (k *slicesShifted) Tile(t *Task, tile int, scratch []byte) { k.whole.Tile(t, tile, scratch) }

func (k *slicesShifted) Finish(t *Task) error {
	dst, rows := t.Call.Out[0].Data, t.Call.In[1].Data
	for o := range k.outer {
		to := dst[o*k.length:][:k.length]
		copy(to, to[k.added:])
		copy(to[k.kept:], rows[o*(k.skipped+k.added)+k.skipped:])
	}
	return nil
}
