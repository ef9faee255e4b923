package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
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

// groups are n units of work, put together into tiles of each.
type groups struct{ n, each int }

// groupsOf makes tiles of units of so many bytes each that are worth claiming.
func groupsOf(n, bytes int) groups { return groups{n, max(1, copySpan/max(bytes, 1))} }

func (g groups) tiles() int { return (g.n + g.each - 1) / g.each }

// of returns the units of a tile.
func (g groups) of(tile int) (lo, hi int) { return tile * g.each, min((tile+1)*g.each, g.n) }

func bindConstant(c *op.Call) (Kernel, error) {
	return &constant{fill: fill{floats: c.Attrs.Floats("floats"), ints: c.Ints("ints")}}, nil
}

// constant writes numbers, or one number everywhere.
type constant struct {
	fill
	whole bool // the value is all of the result
}

func (k *constant) Refill(t *Task) error {
	if err := k.encode(t); err != nil {
		return err
	}
	if k.whole = max(len(k.floats), len(k.ints)) != 1 || elements(&t.Call.Out[0]) == 1; k.whole {
		t.Tiles = 1
		return nil
	}
	return k.fill.Refill(t)
}

func (k *constant) Tile(t *Task, tile int, scratch []byte) {
	if k.whole {
		copy(t.Call.Out[0].Data, k.value)
		return
	}
	k.fill.Tile(t, tile, scratch)
}

func bindConstantOfShape(c *op.Call) (Kernel, error) {
	ints := c.Ints("ints")
	if len(ints) == 0 {
		ints = []int64{0}
	}
	return &fill{floats: []float64{c.Float("value")}, ints: ints}, nil
}

// fill repeats one element over the result.
type fill struct {
	floats  []float64 // the numbers of a result of floats
	ints    []int64   // the numbers of another result
	value   []byte    // the numbers as elements, nil before the first Refill
	pattern [1]byte   // the value in all places of a byte, where it takes less
	bytes   int
	rest    int // bits in use of the last byte, 0 for all
}

// encode makes the value of the numbers. The element type of the result stays.
func (k *fill) encode(t *Task) error {
	if k.value != nil {
		return nil
	}
	to := t.Call.Out[0].DType
	from, src, n := dtype.F64, asBytes(k.floats), len(k.floats)
	if !to.IsFloat() {
		from, src, n = dtype.I64, asBytes(k.ints), len(k.ints)
	}
	size, err := to.ByteLen(n)
	if err != nil {
		return err
	}
	k.value = aligned(size)
	elementwise.Cast(t.variant, k.value, to, src, from, 0, n, elementwise.CastMode{Saturate: true})
	return nil
}

func (k *fill) Refill(t *Task) (err error) {
	if err := k.encode(t); err != nil {
		return err
	}
	r := &t.Call.Out[0]
	if k.bytes, err = r.Bytes(); err != nil {
		return err
	}
	bits := r.DType.Bits()
	if bits >= 8 {
		t.Tiles = (k.bytes + copySpan - 1) / copySpan
		return nil
	}
	k.pattern[0] = k.value[0] // it stands in the low bits of its byte
	for at := bits; at < 8; at *= 2 {
		k.pattern[0] |= k.pattern[0] << at
	}
	k.rest = elements(r) * bits % 8
	t.Tiles = 1
	return nil
}

func (k *fill) Tile(t *Task, tile int, _ []byte) {
	dst := t.Call.Out[0].Data
	if t.Call.Out[0].DType.Bits() >= 8 {
		move.Fill(dst[tile*copySpan:min((tile+1)*copySpan, k.bytes)], k.value)
		return
	}
	move.Fill(dst, k.pattern[:])
	if k.rest > 0 {
		dst[k.bytes-1] &= 1<<k.rest - 1
	}
}

func bindRange(c *op.Call) (Kernel, error) {
	switch c.Out[0].DType {
	case dtype.F32:
		return &ranged[float32]{}, nil
	case dtype.F64:
		return &ranged[float64]{}, nil
	case dtype.I16:
		return &ranged[int16]{}, nil
	case dtype.I32:
		return &ranged[int32]{}, nil
	case dtype.I64:
		return &ranged[int64]{}, nil
	case dtype.F16, dtype.BF16:
		return halfAsF32(c)
	}
	return nil, unsupported(c)
}

// ranged writes numbers a step apart.
type ranged[T kernel.Number] struct{ flat }

func (k *ranged[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := span(tile, k.n)
	move.Range(out[T](c, 0)[lo:hi], in[T](c, 0)[0], in[T](c, 2)[0], lo)
}

var _ = registerApart(leading(beforeDepth, 0), "one_hot")

// beforeDepth is beforeAxis for an axis of the result.
func beforeDepth(s *op.Sig) int {
	axis := int(s.Int("axis"))
	if axis < 0 {
		axis += s.Results[0].Shape.Rank()
	}
	return axis
}

// oneHot puts one of two values at the places that indices name. Indices of
// another type than i64 are read through scratch, as one tile.
type oneHot struct {
	spec   move.OneHotSpec
	blocks groups
	row    int // bytes
	n      int // indices
}

func bindOneHot(*op.Call) (Kernel, error) { return &oneHot{}, nil }

func (k *oneHot) Refill(t *Task) error {
	c := t.Call
	sizes := c.Out[0].Shape.Sizes()
	axis := axisOf(c, len(sizes))
	k.spec = move.OneHotSpec{Outer: product(sizes[:axis]), Depth: sizes[axis], Inner: product(sizes[axis+1:])}
	if c.In[0].DType != dtype.I64 {
		k.n = elements(&c.In[0])
		t.Tiles, t.Scratch = 1, k.n*8
		return nil
	}
	k.row = k.spec.Depth * k.spec.Inner * c.Out[0].DType.Size()
	k.blocks = groupsOf(k.spec.Outer, k.row)
	t.Tiles = k.blocks.tiles()
	return nil
}

func (k *oneHot) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	size := c.Out[0].DType.Size()
	if c.In[0].DType != dtype.I64 {
		elementwise.Cast(t.variant, scratch[:k.n*8], dtype.I64, c.In[0].Data, c.In[0].DType, 0, k.n, elementwise.CastMode{})
		move.OneHot(k.spec, size, c.Out[0].Data, view[int64](scratch[:k.n*8]), c.In[2].Data)
		return
	}
	lo, hi := k.blocks.of(tile)
	part := move.OneHotSpec{Outer: hi - lo, Depth: k.spec.Depth, Inner: k.spec.Inner}
	move.OneHot(part, size, c.Out[0].Data[lo*k.row:hi*k.row], in[int64](c, 0)[lo*k.spec.Inner:hi*k.spec.Inner], c.In[2].Data)
}

type trilu struct {
	spec  move.TriluSpec
	batch groups
}

func bindTrilu(*op.Call) (Kernel, error) { return &trilu{}, nil }

func (k *trilu) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	rank := len(sizes)
	k.spec = move.TriluSpec{
		Batch: product(sizes[:rank-2]), Rows: sizes[rank-2], Cols: sizes[rank-1], Upper: c.Int("upper") != 0,
	}
	k.batch = groupsOf(k.spec.Batch, k.spec.Rows*k.spec.Cols*c.In[0].DType.Size())
	t.Tiles = k.batch.tiles()
	return nil
}

func (k *trilu) Start(t *Task) error {
	k.spec.K = 0
	if has(t.Call, 1) {
		far := int64(k.spec.Rows + k.spec.Cols) // past every element
		k.spec.K = int(min(max(in[int64](t.Call, 1)[0], -far), far))
	}
	return nil
}

func (k *trilu) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.batch.of(tile)
	for i := lo; i < hi; i++ {
		move.Trilu(&k.spec, i, c.In[0].DType.Size(), c.Out[0].Data, c.In[0].Data)
	}
}

func bindScan(c *op.Call) (Kernel, error) {
	switch c.In[0].DType {
	case dtype.F16, dtype.BF16:
		return halfAsF32(c)
	case dtype.F32:
		return newScan[float32](c), nil
	case dtype.F64:
		return newScan[float64](c), nil
	}
	bind, ok := intOf(c.In[0].DType, newScan[int8], newScan[int16], newScan[int32], newScan[int64],
		newScan[uint8], newScan[uint16], newScan[uint32], newScan[uint64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

// scan adds up or multiplies along an axis, which is an operand and read once
// per run.
type scan[T kernel.Number] struct {
	spec  move.ScanSpec
	outer groups
}

func newScan[T kernel.Number](c *op.Call) Kernel {
	return &scan[T]{spec: move.ScanSpec{Product: c.Def.Name == "cum_prod", Exclusive: c.Int("exclusive") != 0, Reverse: c.Int("reverse") != 0}}
}

func (k *scan[T]) Refill(t *Task) error {
	k.spec.Reserve(t.Call.In[0].Shape.Rank())
	return nil
}

func (k *scan[T]) Start(t *Task) error {
	sizes := t.Call.In[0].Shape.Sizes()
	axis := intAt(&t.Call.In[1], 0)
	if axis < 0 {
		axis += int64(len(sizes))
	}
	if axis < 0 || axis >= int64(len(sizes)) {
		return badAxis(intAt(&t.Call.In[1], 0), len(sizes))
	}
	k.spec.Prepare(sizes, int(axis), stridesOf(&t.Call.Out[0]), stridesOf(&t.Call.In[0]))
	k.outer = groups{k.spec.Parts(), max(1, spanElements/max(1, k.spec.PartElements()))}
	t.Tiles = k.outer.tiles()
	return nil
}

func (k *scan[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := k.outer.of(tile)
	move.Scan(&k.spec, lo, hi, out[T](t.Call, 0), in[T](t.Call, 0))
}

func (k *scan[T]) takesStrides() bool { return true }

var _ = registerWalkers(scansStrides, "cum_sum", "cum_prod")

// scansStrides: 16-bit floats go through conversions.
func scansStrides(s *op.Sig, in, _ []*shape.Layout) bool {
	return !isHalf(s.Args[0].DType) && s.Args[0].Shape.Rank() <= kernel.MaxRank && noGaps(in[1:])
}
