package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"constant":          bindConstant,
	"constant_of_shape": bindConstantOfShape,
	"range":             bindRange,
	"one_hot":           bindOneHot,
	"trilu":             bindTrilu,
	"cum_sum":           bindScan,
	"cum_prod":          bindScan,
})

// encode returns the numbers as elements of dt.
func encode(dt dtype.DType, floats []float64, ints []int64) ([]byte, error) {
	from, src, n := dtype.F64, asBytes(floats), len(floats)
	if !dt.IsFloat() {
		from, src, n = dtype.I64, asBytes(ints), len(ints)
	}
	size, err := dt.ByteLen(n)
	if err != nil {
		return nil, err
	}
	dst := aligned(size)
	kernel.Cast(machine.Best(), dst, dt, src, from, 0, n, kernel.CastMode{Saturate: true})
	return dst, nil
}

// groups puts n units of work of so many bytes together into tiles.
func groups(n, bytes int) (tiles int, unitsOf func(tile int) (lo, hi int)) {
	each := max(1, copySpan/max(bytes, 1))
	return (n + each - 1) / each, func(tile int) (int, int) { return tile * each, min((tile+1)*each, n) }
}

func bindConstant(c *op.Call) (*Task, error) {
	value, err := encode(c.Out[0].DType, c.Attrs.Floats("floats"), c.Ints("ints"))
	if err != nil {
		return nil, err
	}
	if given := max(len(c.Attrs.Floats("floats")), len(c.Ints("ints"))); given == 1 && elements(&c.Out[0]) != 1 {
		return fillTask(c, value)
	}
	return small(func() { copy(c.Out[0].Data, value) }), nil
}

func bindConstantOfShape(c *op.Call) (*Task, error) {
	ints := c.Ints("ints")
	if len(ints) == 0 {
		ints = []int64{0}
	}
	value, err := encode(c.Out[0].DType, []float64{c.Float("value")}, ints)
	if err != nil {
		return nil, err
	}
	return fillTask(c, value)
}

// fillTask repeats one element over the result.
func fillTask(c *op.Call, value []byte) (*Task, error) {
	total, err := c.Out[0].Bytes()
	if err != nil {
		return nil, err
	}
	if bits := c.Out[0].DType.Bits(); bits < 8 {
		// The value stands in the low bits of its byte: fill the byte.
		for at := bits; at < 8; at *= 2 {
			value[0] |= value[0] << at
		}
		rest := elements(&c.Out[0]) * bits % 8 // bits in use of the last byte
		return small(func() {
			kernel.Fill(c.Out[0].Data, value)
			if rest > 0 {
				c.Out[0].Data[total-1] &= 1<<rest - 1
			}
		}), nil
	}
	return &Task{Tiles: (total + copySpan - 1) / copySpan, Tile: func(tile int, _ []byte) {
		kernel.Fill(c.Out[0].Data[tile*copySpan:min((tile+1)*copySpan, total)], value)
	}}, nil
}

func bindRange(c *op.Call) (*Task, error) {
	switch c.Out[0].DType {
	case dtype.F32:
		return rangeTask[float32](c), nil
	case dtype.F64:
		return rangeTask[float64](c), nil
	case dtype.I16:
		return rangeTask[int16](c), nil
	case dtype.I32:
		return rangeTask[int32](c), nil
	case dtype.I64:
		return rangeTask[int64](c), nil
	case dtype.F16, dtype.BF16:
		return halfAsF32(c)
	}
	return nil, unsupported(c)
}

func rangeTask[T kernel.Number](c *op.Call) *Task {
	n := elements(&c.Out[0])
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.Range(out[T](c, 0)[lo:hi], in[T](c, 0)[0], in[T](c, 2)[0], lo)
	}}
}

func bindOneHot(c *op.Call) (*Task, error) {
	sizes := c.Out[0].Shape.Sizes()
	axis, size := axisOf(c, len(sizes)), c.Out[0].DType.Size()
	spec := kernel.OneHotSpec{Depth: sizes[axis], Inner: product(sizes[axis+1:])}
	outer := product(sizes[:axis])
	row := spec.Depth * spec.Inner * size
	if c.In[0].DType != dtype.I64 {
		return oneHotConverted(c, spec, outer), nil
	}
	tiles, units := groups(outer, row)
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		part := kernel.OneHotSpec{Outer: hi - lo, Depth: spec.Depth, Inner: spec.Inner}
		kernel.OneHot(part, size, c.Out[0].Data[lo*row:hi*row], in[int64](c, 0)[lo*spec.Inner:hi*spec.Inner], c.In[2].Data)
	}}, nil
}

// oneHotConverted reads indices of another type than i64 through scratch.
func oneHotConverted(c *op.Call, spec kernel.OneHotSpec, outer int) *Task {
	n := elements(&c.In[0])
	spec.Outer = outer
	return &Task{Tiles: 1, Scratch: n * 8, Tile: func(_ int, scratch []byte) {
		kernel.Cast(machine.Best(), scratch[:n*8], dtype.I64, c.In[0].Data, c.In[0].DType, 0, n, kernel.CastMode{})
		kernel.OneHot(spec, c.Out[0].DType.Size(), c.Out[0].Data, view[int64](scratch[:n*8]), c.In[2].Data)
	}}
}

func bindTrilu(c *op.Call) (*Task, error) {
	sizes, size := c.In[0].Shape.Sizes(), c.In[0].DType.Size()
	rank := len(sizes)
	spec := &kernel.TriluSpec{
		Batch: product(sizes[:rank-2]), Rows: sizes[rank-2], Cols: sizes[rank-1], Upper: c.Int("upper") != 0,
	}
	tiles, units := groups(spec.Batch, spec.Rows*spec.Cols*size)
	return &Task{
		Tiles: tiles,
		Start: func() error {
			spec.K = 0
			if has(c, 1) {
				far := int64(spec.Rows + spec.Cols) // past every element
				spec.K = int(min(max(in[int64](c, 1)[0], -far), far))
			}
			return nil
		},
		Tile: func(tile int, _ []byte) {
			lo, hi := units(tile)
			for i := lo; i < hi; i++ {
				kernel.Trilu(spec, i, size, c.Out[0].Data, c.In[0].Data)
			}
		},
	}, nil
}

func bindScan(c *op.Call) (*Task, error) {
	switch c.In[0].DType {
	case dtype.F16, dtype.BF16:
		return halfAsF32(c)
	case dtype.F32:
		return scanTask[float32](c), nil
	case dtype.F64:
		return scanTask[float64](c), nil
	}
	bind, ok := intOf(c.In[0].DType, scanTask[int8], scanTask[int16], scanTask[int32], scanTask[int64],
		scanTask[uint8], scanTask[uint16], scanTask[uint32], scanTask[uint64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

// scanTask reads the axis, which is an operand, once per run.
func scanTask[T kernel.Number](c *op.Call) *Task {
	sizes := c.In[0].Shape.Sizes()
	spec := &kernel.ScanSpec{Product: c.Def.Name == "cum_prod", Exclusive: c.Int("exclusive") != 0, Reverse: c.Int("reverse") != 0}
	each := 1 // outer indices of one tile
	t := &Task{Tile: func(tile int, _ []byte) {
		for i := tile * each; i < min((tile+1)*each, spec.Outer); i++ {
			kernel.Scan(spec, i, out[T](c, 0), in[T](c, 0))
		}
	}}
	t.Start = func() error {
		axis := intAt(&c.In[1], 0)
		if axis < 0 {
			axis += int64(len(sizes))
		}
		if axis < 0 || axis >= int64(len(sizes)) {
			return badAxis(intAt(&c.In[1], 0), len(sizes))
		}
		spec.Outer, spec.Axis, spec.Inner = product(sizes[:axis]), sizes[axis], product(sizes[axis+1:])
		each = max(1, spanElements/max(1, spec.Axis*spec.Inner))
		t.Tiles = (spec.Outer + each - 1) / each
		return nil
	}
	return t
}
