package compute

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"copy":      bindCopy,
	"identity":  bindCopy,
	"reshape":   bindCopy,
	"squeeze":   bindCopy,
	"unsqueeze": bindCopy,
	"flatten":   bindCopy,

	"transpose":      unpacked(bindTranspose),
	"concat":         bindConcat,
	"split":          bindSplit,
	"expand":         bindExpand,
	"tile":           bindTile,
	"depth_to_space": bindDepthToSpace,
	"space_to_depth": bindSpaceToDepth,
	"pad":            unpacked(bindPad),
})

// copySpan is the number of bytes of one tile of a plain copy.
const copySpan = 128 << 10

func bindCopy(c *op.Call) (*Task, error) { return copyTask(c), nil }

// copyTask is the task of an operator whose result has the operand's bytes. A
// view that a plan placed over its operand has nothing to do.
func copyTask(c *op.Call) *Task {
	t := &Task{}
	copyFirst(c, t)
	return t
}

// copyFirst lets the tiles of t copy operand 0 into result 0, and no tile be
// run where they lie in the same bytes.
func copyFirst(c *op.Call, t *Task) {
	n, err := c.Out[0].Bytes()
	if err != nil {
		panic("BUG: compute: " + err.Error()) // Bind has checked the types
	}
	tiles, check := (n+copySpan-1)/copySpan, t.Start
	t.Tiles = tiles
	t.Start = func() error {
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		t.Tiles = tiles
		if sameBytes(c.Out[0].Data, c.In[0].Data) {
			t.Tiles = 0
		}
		return nil
	}
	t.Tile = func(tile int, _ []byte) {
		lo, hi := tile*copySpan, min((tile+1)*copySpan, n)
		if n >= streamBytes {
			kernel.Stream(machine.Best(), c.Out[0].Data[lo:hi], c.In[0].Data[lo:hi])
			return
		}
		copy(c.Out[0].Data[lo:hi], c.In[0].Data[lo:hi])
	}
}

// unpacked wraps a binder that moves whole bytes: elements of less than a byte
// are moved in a type of their own byte.
func unpacked(bind binder) binder {
	return func(c *op.Call) (*Task, error) {
		wide := dtype.Invalid
		switch c.In[0].DType {
		case dtype.I4, dtype.I2:
			wide = dtype.I8
		case dtype.U4, dtype.U2:
			wide = dtype.U8
		case dtype.F4E2M1:
			wide = dtype.F32
		default:
			return bind(c)
		}
		retype := func(args []op.Arg) []dtype.DType {
			types := make([]dtype.DType, len(args))
			for i := range args {
				if types[i] = args[i].DType; types[i] == c.In[0].DType {
					types[i] = wide
				}
			}
			return types
		}
		return converted(c, retype(c.In), retype(c.Out))
	}
}

// mover is one kernel.Copy from an operand to a result.
type mover struct {
	copy    kernel.Copy
	in, out int
	bytes   int
	view    int // where in the operand a view of it starts, in bytes; -1 where the result is none
}

// tile runs one tile of the copy. A view that lies in its operand has nothing
// to do, and must not do it: a copy onto the same bytes is a write, and the
// bytes may be those of a mapped file.
func (m *mover) tile(c *op.Call, tile int) {
	dst, src := c.Out[m.out].Data, c.In[m.in].Data
	if m.view >= 0 && unsafe.SliceData(dst) == unsafe.SliceData(src[m.view:]) {
		return
	}
	m.copy.Tile(machine.Best(), tile, dst, src)
}

// viewStart returns where the result would start as a view of the operand, -1
// where it cannot be one.
func viewStart(c *op.Call, arg, result int) int {
	if kind, at := c.AliasOf(arg, result); kind == op.View {
		return at
	}
	return -1
}

// moveTask is the task of an operator that is one copy between strides.
func moveTask(c *op.Call, prepare func(m *kernel.Copy)) *Task {
	m := &mover{view: viewStart(c, 0, 0)}
	prepare(&m.copy)
	return &Task{Tiles: m.copy.Tiles(), Tile: func(tile int, _ []byte) { m.tile(c, tile) }}
}

func bindTranspose(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	if err := checkLoops(sizes); err != nil {
		return nil, err
	}
	perm, err := c.Perm(len(sizes))
	if err != nil {
		return nil, err
	}
	t := moveTask(c, func(m *kernel.Copy) { m.PrepareTranspose(c.In[0].DType.Size(), sizes, perm) })
	if c.Permutes(0, 0) && viewStart(c, 0, 0) < 0 {
		if err := permuteInPlace(c, t, sizes, perm); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// rooms are the scratch of transposes in place. Plans have none of those, and
// do not count it.
var rooms = sync.Pool{New: func() any { return new([kernel.MostPermuteBytes]byte) }}

// permuteInPlace makes t one tile that permutes where the result has the
// operand's bytes.
func permuteInPlace(c *op.Call, t *Task, sizes, perm []int) error {
	var p kernel.Permute
	if !p.Prepare(c.In[0].DType.Size(), sizes, perm) {
		return fmt.Errorf("BUG: compute: transpose of %v by %v in place takes %d bytes of scratch", sizes, perm, p.ScratchBytes())
	}
	tiles, move := t.Tiles, t.Tile
	inPlace := func() bool { return sameBytes(c.Out[0].Data, c.In[0].Data) }
	t.Start = func() error {
		if t.Tiles = tiles; inPlace() {
			t.Tiles = 1
		}
		return nil
	}
	t.Tile = func(tile int, scratch []byte) {
		if !inPlace() {
			move(tile, scratch)
			return
		}
		room := rooms.Get().(*[kernel.MostPermuteBytes]byte)
		p.Run(machine.Best(), c.Out[0].Data, room[:])
		rooms.Put(room)
	}
	return nil
}

func bindExpand(c *op.Call) (*Task, error) {
	from, to := c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes()
	if err := checkLoops(to); err != nil {
		return nil, err
	}
	return moveTask(c, func(m *kernel.Copy) { m.PrepareExpand(c.In[0].DType.Size(), from, to) }), nil
}

func bindTile(c *op.Call) (*Task, error) {
	from, to := c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes()
	repeats := make([]int, len(from))
	loops := make([]int, 0, 2*len(from))
	for i, n := range from {
		if n > 0 {
			repeats[i] = to[i] / n
		}
		loops = append(loops, repeats[i], n)
	}
	if err := checkLoops(loops); err != nil {
		return nil, err
	}
	return moveTask(c, func(m *kernel.Copy) { m.PrepareTile(c.In[0].DType.Size(), from, repeats) }), nil
}

var padModes = map[string]kernel.PadMode{
	"constant": kernel.PadConstant, "reflect": kernel.PadReflect, "edge": kernel.PadEdge, "wrap": kernel.PadWrap,
}

func bindPad(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	begin, end, ok, err := c.Pads(len(sizes))
	if err != nil {
		return nil, err
	}
	if !ok {
		if has(c, 3) {
			if _, known := c.KnownInts(3); !known {
				return nil, unknown(c, 3)
			}
		}
		return nil, unknown(c, 1)
	}
	if viewStart(c, 0, 0) == 0 {
		return copyTask(c), nil
	}
	padded := len(sizes)
	for padded > 1 && begin[padded-1] == 0 && end[padded-1] == 0 {
		padded-- // the elements of these axes stay together
	}
	for i, n := range c.Out[0].Shape.Sizes()[:padded] {
		if err := checkTable(i, n); err != nil {
			return nil, err
		}
	}
	size := c.In[0].DType.Size()
	var pad kernel.Pad
	pad.Prepare(size, sizes, begin, end, padModes[c.Str("mode")])
	zero := make([]byte, size)
	return &Task{Tiles: pad.Tiles(), Tile: func(tile int, _ []byte) {
		value := zero
		if has(c, 2) {
			value = c.In[2].Data
		}
		pad.Tile(tile, c.Out[0].Data, c.In[0].Data, value)
	}}, nil
}

// blockTask moves the elements of [N,C,H,W], seen with the given six sizes, in
// the given order of axes.
func blockTask(c *op.Call, sizes, perm []int) *Task {
	return moveTask(c, func(m *kernel.Copy) { m.PrepareTranspose(c.In[0].DType.Size(), sizes, perm) })
}

func bindDepthToSpace(c *op.Call) (*Task, error) {
	b := int(c.Int("blocksize"))
	s := c.In[0].Shape.Sizes()
	if c.Str("mode") == "CRD" {
		return blockTask(c, []int{s[0], s[1] / (b * b), b, b, s[2], s[3]}, []int{0, 1, 4, 2, 5, 3}), nil
	}
	return blockTask(c, []int{s[0], b, b, s[1] / (b * b), s[2], s[3]}, []int{0, 3, 4, 1, 5, 2}), nil
}

func bindSpaceToDepth(c *op.Call) (*Task, error) {
	b := int(c.Int("blocksize"))
	s := c.In[0].Shape.Sizes()
	sizes := []int{s[0], s[1], s[2] / b, b, s[3] / b, b}
	if c.Str("mode") == "CRD" {
		return blockTask(c, sizes, []int{0, 1, 3, 5, 2, 4}), nil
	}
	return blockTask(c, sizes, []int{0, 3, 5, 1, 2, 4}), nil
}

// batch is a stretch of a task's tiles: those of one large copy, several at a
// time, or one tile that does several small copies.
type batch struct {
	first  int // tile of the task
	lo, hi int // movers
	each   int // tiles of the copy in one of the task
}

// moversTask runs several copies, whose tiles are put together until a tile
// is worth claiming. What it keeps grows with their number, not their size.
func moversTask(c *op.Call, movers []mover) *Task {
	var batches []batch
	tiles, open, filled := 0, false, 0 // open: the last batch takes more small copies
	for i := range movers {
		m := &movers[i]
		n := m.copy.Tiles()
		switch {
		case n == 0:
		case m.bytes >= copySpan:
			each := max(1, min(n, copySpan/max(1, m.bytes/n)))
			batches = append(batches, batch{tiles, i, i + 1, each})
			tiles += (n-1)/each + 1
			open = false
		case open && filled < copySpan:
			batches[len(batches)-1].hi = i + 1
			filled += m.bytes
		default:
			batches = append(batches, batch{tiles, i, i + 1, n})
			tiles++
			open, filled = true, m.bytes
		}
	}
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		at, found := slices.BinarySearchFunc(batches, tile, func(b batch, tile int) int { return b.first - tile })
		if !found {
			at--
		}
		b := &batches[at]
		for i := b.lo; i < b.hi; i++ {
			m := &movers[i]
			from, to := 0, m.copy.Tiles()
			if b.hi == b.lo+1 {
				from = (tile - b.first) * b.each
				to = min(from+b.each, to)
			}
			for t := from; t < to; t++ {
				m.tile(c, t)
			}
		}
	}}
}

// axisOf returns the call's axis attribute counted from the start. Shape
// rules have checked its range.
func axisOf(c *op.Call, rank int) int {
	axis := int(c.Int("axis"))
	if axis < 0 {
		axis += rank
	}
	return axis
}

func bindConcat(c *op.Call) (*Task, error) {
	sizes := c.Out[0].Shape.Sizes()
	if err := checkLoops(sizes); err != nil {
		return nil, err
	}
	axis, start := axisOf(c, len(sizes)), 0
	movers := make([]mover, len(c.In))
	for i := range c.In {
		n := c.In[i].Shape.Size(axis)
		movers[i] = mover{in: i, view: viewStart(c, i, 0), bytes: elements(&c.In[i]) * c.In[i].DType.Size()}
		movers[i].copy.PrepareInsert(c.Out[0].DType.Size(), sizes, axis, start, n)
		start += n
	}
	return moversTask(c, movers), nil
}

func bindSplit(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	if err := checkLoops(sizes); err != nil {
		return nil, err
	}
	axis, start := axisOf(c, len(sizes)), 0
	list, _ := c.KnownInts(1)
	var movers []mover
	for i := range c.Out {
		n := (sizes[axis] + len(c.Out) - 1) / len(c.Out)
		switch {
		case wanted(c, i):
			n = c.Out[i].Shape.Size(axis)
			m := mover{out: i, view: viewStart(c, 0, i), bytes: elements(&c.Out[i]) * c.Out[i].DType.Size()}
			m.copy.PrepareExtract(c.In[0].DType.Size(), sizes, axis, start, n)
			movers = append(movers, m)
		case i < len(list):
			n = int(list[i])
		case has(c, 1):
			return nil, unknown(c, 1)
		}
		start += n
	}
	return moversTask(c, movers), nil
}
