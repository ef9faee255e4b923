package compute

import (
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
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

func bindNonZero(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	return small(func() {
		count := kernel.NonZeroCount(machine.Best(), c.In[0].DType, c.In[0].Data)
		kernel.NonZero(machine.Best(), c.In[0].DType, out[int64](c, 0)[:len(sizes)*count], c.In[0].Data, sizes)
		setSizes(c, 0, len(sizes), count)
	}), nil
}

// filtered is how compress and unique see operand 0: [outer, rows, inner]. Rows without elements have no outer index to go through.
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

func bindCompress(c *op.Call) (*Task, error) {
	outer, rows, inner := filtered(c)
	spec := &kernel.CompressSpec{Outer: outer, Rows: rows, Inner: inner * c.In[0].DType.Size()}
	return small(func() {
		setRows(c, kernel.Compress(spec, c.Out[0].Data, c.In[0].Data, c.In[1].Data))
	}), nil
}

func bindUnique(c *op.Call) (*Task, error) {
	outer, rows, inner := filtered(c)
	if elements(&c.In[0]) == 0 {
		return small(func() { uniqueNothing(c, rows) }), nil
	}
	spec := &kernel.UniqueSpec{Outer: outer, Rows: rows, Inner: inner, Sorted: c.Int("sorted") != 0}
	dt := c.In[0].DType
	words := 3*rows + spec.Scratch(dt)
	return &Task{Tiles: 1, Scratch: words * 8, Tile: func(_ int, scratch []byte) {
		s := view[int64](scratch[:8*words])
		first, which, counts := s[:rows], s[rows:2*rows], s[2*rows:3*rows]
		n := kernel.Unique(spec, dt, c.In[0].Data, first, which, counts, s[3*rows:])
		if wanted(c, 0) {
			kernel.Rows(spec, dt.Size(), c.Out[0].Data, c.In[0].Data, first[:n])
			setRows(c, n)
		}
		for i, list := range [][]int64{first[:n], which, counts[:n]} {
			if wanted(c, i+1) {
				copy(out[int64](c, i+1), list)
				setSizes(c, i+1, len(list))
			}
		}
	}}, nil
}

// uniqueNothing is for rows without elements, which are all the same, and may be more than there is memory for lists of them.
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

func bindNonMaxSuppression(c *op.Call) (*Task, error) {
	boxes, scores := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes()
	spec := &kernel.Suppression{Batch: boxes[0], Boxes: boxes[1], Classes: scores[1], Centered: c.Int("center_point_box") != 0}
	if spec.Boxes == 0 {
		spec.Batch = 0 // nothing is suppressed in any of them
	}
	number := func(i int) float32 {
		if !has(c, i) {
			return 0
		}
		return in[float32](c, i)[0]
	}
	return &Task{Tiles: 1, Scratch: 8 * spec.Boxes, Tile: func(_ int, scratch []byte) {
		s := *spec
		if has(c, 2) {
			s.Most = int(min(max(in[int64](c, 2)[0], 0), int64(s.Boxes)))
		}
		s.Overlap, s.HasScore, s.Score = number(3), has(c, 4), number(4)
		setSizes(c, 0, kernel.NonMaxSuppression(&s, out[int64](c, 0), in[float32](c, 0), in[float32](c, 1), view[int64](scratch[:8*s.Boxes])), 3)
	}}, nil
}
