package compute

import (
	"slices"

	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/selection"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"non_zero":            bindNonZero,
	"compress":            bindCompress,
	"unique":              bindUnique,
	"non_max_suppression": bindNonMaxSuppression,
})

// setSizes sets the type of a result whose size the kernel finds. It is not
// larger than the bound in the result's place.
func setSizes(c *op.Call, result int, sizes ...int) {
	dt := c.Out[result].DType
	sh := shape.MustOf(sizes...)
	c.Out[result].Type = op.Type{DType: dt, Shape: sh}
	c.Out[result].Layout = shape.RowMajor(sh)
}

type nonZero struct{ oneTile }

func bindNonZero(*op.Call) (Kernel, error) { return nonZero{}, nil }

func (nonZero) Tile(t *Task, _ int, _ []byte) {
	c := t.Call
	x, sizes := &c.In[0], c.In[0].Shape.Sizes()
	count := move.NonZeroCount(t.variant, x.DType, x.Data)
	move.NonZero(t.variant, x.DType, out[int64](c, 0)[:len(sizes)*count], x.Data, sizes)
	setSizes(c, 0, len(sizes), count)
}

// filtered is how compress and unique see operand 0: [outer, rows, inner]. Rows
// without elements have no outer index to go through.
func filtered(c *op.Call) (outer, rows, inner int) {
	sizes := c.In[0].Shape.Sizes()
	if !c.Attrs.Has("axis") {
		return 1, product(sizes), 1
	}
	axis := axisOf(c, len(sizes))
	outer, rows, inner = product(sizes[:axis]), sizes[axis], product(sizes[axis+1:])
	if elements(&c.In[0]) == 0 {
		outer = 0
	}
	return outer, rows, inner
}

// setRows sets the type of result 0, which is operand 0 with other rows.
func setRows(c *op.Call, rows int) {
	if !c.Attrs.Has("axis") {
		setSizes(c, 0, rows)
		return
	}
	sizes := slices.Clone(c.In[0].Shape.Sizes())
	sizes[axisOf(c, len(sizes))] = rows
	setSizes(c, 0, sizes...)
}

type compress struct{ spec selection.CompressSpec }

func bindCompress(*op.Call) (Kernel, error) { return &compress{}, nil }

func (k *compress) Refill(t *Task) error {
	outer, rows, inner := filtered(t.Call)
	k.spec = selection.CompressSpec{Outer: outer, Rows: rows, Inner: inner * t.Call.In[0].DType.Size()}
	t.Tiles = 1
	return nil
}

func (k *compress) Tile(t *Task, _ int, _ []byte) {
	c := t.Call
	setRows(c, selection.Compress(&k.spec, c.Out[0].Data, c.In[0].Data, c.In[1].Data))
}

type unique struct {
	spec  selection.UniqueSpec
	empty bool // rows have no elements
	words int  // of scratch
}

func bindUnique(*op.Call) (Kernel, error) { return &unique{}, nil }

func (k *unique) Refill(t *Task) error {
	c := t.Call
	outer, rows, inner := filtered(c)
	k.spec = selection.UniqueSpec{Outer: outer, Rows: rows, Inner: inner, Sorted: c.Int("sorted") != 0}
	t.Tiles = 1
	if k.empty = elements(&c.In[0]) == 0; !k.empty {
		k.words = 3*rows + k.spec.Scratch(c.In[0].DType)
		t.Scratch = k.words * 8
	}
	return nil
}

func (k *unique) Tile(t *Task, _ int, scratch []byte) {
	c, rows := t.Call, k.spec.Rows
	if k.empty {
		uniqueNothing(c, rows)
		return
	}
	dt, s := c.In[0].DType, view[int64](scratch[:8*k.words])
	first, which, counts := s[:rows], s[rows:2*rows], s[2*rows:3*rows]
	n := selection.Unique(&k.spec, dt, c.In[0].Data, first, which, counts, s[3*rows:])
	if wanted(c, 0) {
		selection.Rows(&k.spec, dt.Size(), c.Out[0].Data, c.In[0].Data, first[:n])
		setRows(c, n)
	}
	for i, list := range [][]int64{first[:n], which, counts[:n]} {
		if wanted(c, i+1) {
			copy(out[int64](c, i+1), list)
			setSizes(c, i+1, len(list))
		}
	}
}

// uniqueNothing is for rows without elements, which are all the same, and may
// be more than there is memory for lists of them.
func uniqueNothing(c *op.Call, rows int) {
	n := min(rows, 1)
	if wanted(c, 0) {
		setRows(c, n)
	}
	for i, v := range []int{0, 0, rows} {
		if !wanted(c, i+1) {
			continue
		}
		list := out[int64](c, i+1)
		if i != 1 {
			list = list[:n]
		}
		for k := range list {
			list[k] = int64(v)
		}
		setSizes(c, i+1, len(list))
	}
}

type suppression struct{ spec selection.Suppression }

func bindNonMaxSuppression(*op.Call) (Kernel, error) { return &suppression{}, nil }

func (k *suppression) Refill(t *Task) error {
	c := t.Call
	boxes, scores := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	k.spec = selection.Suppression{Batch: boxes[0], Boxes: boxes[1], Classes: scores[1], Centered: c.Int("center_point_box") != 0}
	if k.spec.Boxes == 0 {
		k.spec.Batch = 0 // nothing is suppressed in any of them
	}
	t.Tiles, t.Scratch = 1, selection.SuppressionBytes(k.spec.Boxes)
	return nil
}

func (k *suppression) Tile(t *Task, _ int, scratch []byte) {
	c, s := t.Call, k.spec
	if has(c, 2) {
		s.Most = int(min(max(in[int64](c, 2)[0], 0), int64(s.Boxes)))
	}
	s.Overlap, s.HasScore, s.Score = numberOr0(c, 3), has(c, 4), numberOr0(c, 4)
	n := s.Boxes
	lists := selection.SuppressionScratch{
		Order: view[int64](scratch[:8*n]), Begin: view[int32](scratch[8*n : 12*n]), Count: view[int32](scratch[12*n : 16*n]),
		Chosen: view[float32](scratch[16*n : selection.SuppressionBytes(n)]),
	}
	setSizes(c, 0, selection.NonMaxSuppression(&s, out[int64](c, 0), in[float32](c, 0), in[float32](c, 1), lists), 3)
}

// numberOr0 returns the number that operand i is, 0 where it is absent.
func numberOr0(c *op.Call, i int) float32 {
	if !has(c, i) {
		return 0
	}
	return in[float32](c, i)[0]
}
