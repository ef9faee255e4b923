package compute

import (
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"copy":      bindCopy,
	"identity":  bindCopy,
	"reshape":   bindCopy,
	"squeeze":   bindCopy,
	"unsqueeze": bindCopy,
	"flatten":   bindCopy,

	"expand":         bindExpand,
	"tile":           bindTile,
	"depth_to_space": bindDepthToSpace,
	"space_to_depth": bindSpaceToDepth,
})

// copySpan is the number of bytes of one tile of a plain copy.
const copySpan = 128 << 10

func bindCopy(*op.Call) (Kernel, error) { return &copyFirst{}, nil }

// copyFirst copies operand 0 into result 0, whose bytes are the same. A view
// that a plan placed over its operand has nothing to do.
type copyFirst struct{ bytes, tiles int }

func (k *copyFirst) Refill(t *Task) (err error) {
	k.bytes, err = t.Call.Out[0].Bytes()
	k.tiles = (k.bytes + copySpan - 1) / copySpan
	t.Tiles = k.tiles
	return err
}

func (k *copyFirst) Start(t *Task) error {
	t.Tiles = k.tiles
	if sameBytes(t.Call.Out[0].Data, t.Call.In[0].Data) {
		t.Tiles = 0
	}
	return nil
}

func (k *copyFirst) Tile(t *Task, tile int, _ []byte) {
	lo, hi := tile*copySpan, min((tile+1)*copySpan, k.bytes)
	dst, src := t.Call.Out[0].Data[lo:hi], t.Call.In[0].Data[lo:hi]
	if k.bytes >= streamBytes {
		elementwise.Stream(t.variant, dst, src)
		return
	}
	copy(dst, src)
}

// unpacked wraps a binder that moves whole bytes: elements of less than a byte
// are oneCopy in a type of their own byte.
func unpacked(bind binder) binder {
	return func(c *op.Call) (Kernel, error) {
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

// mover is one move.Copy from an operand to a result.
type mover struct {
	copy    move.Copy
	in, out int
	bytes   int
	view    int  // where in the operand a view of it starts, in bytes; -1 where the result is none
	isPart  bool // the operand is one piece of the result
	part    int  // where it starts in the result, in bytes
}

// tile runs one tile of the copy. A view that lies in its operand has nothing
// to do, and must not do it: a copy onto the same bytes is a write, and the
// bytes may be those of a mapped file. Nor has an operand that lies where it is
// in the result.
func (m *mover) tile(t *Task, tile int) {
	dst, src := t.Call.Out[m.out].Data, t.Call.In[m.in].Data
	if m.view >= 0 && unsafe.SliceData(dst) == unsafe.SliceData(src[m.view:]) {
		return
	}
	if m.isPart && unsafe.SliceData(dst[m.part:]) == unsafe.SliceData(src) {
		return
	}
	m.copy.Tile(t.variant, tile, dst, src)
}

// viewStart returns where the result would start as a view of the operand, -1
// where it cannot be one.
func viewStart(c *op.Call, arg, result int) int {
	if kind, at := c.AliasOf(arg, result); kind == op.View {
		return at
	}
	return -1
}

// oneCopy is what kernels know that are one copy between strides, of operand 0
// to result 0.
type oneCopy struct{ mover }

// filled ends Refill, when the copy is prepared.
func (k *oneCopy) filled(t *Task) {
	k.view = viewStart(t.Call, 0, 0)
	t.Tiles = k.copy.Tiles()
}

func (k *oneCopy) Tile(t *Task, tile int, _ []byte) { k.tile(t, tile) }

type expanded struct{ oneCopy }

func bindExpand(*op.Call) (Kernel, error) { return &expanded{}, nil }

func (k *expanded) Refill(t *Task) error {
	from, to := &t.Call.In[0], t.Call.Out[0].Shape.Sizes()
	if err := checkLoops(to); err != nil {
		return err
	}
	k.copy.PrepareExpand(from.DType.Size(), from.Shape.Sizes(), to)
	k.filled(t)
	return nil
}

type tiled struct {
	oneCopy
	repeats, loops []int
}

func bindTile(*op.Call) (Kernel, error) { return &tiled{}, nil }

func (k *tiled) Refill(t *Task) error {
	from, to := t.Call.In[0].Shape.Sizes(), t.Call.Out[0].Shape.Sizes()
	k.repeats, k.loops = k.repeats[:0], k.loops[:0]
	for i, n := range from {
		k.repeats = append(k.repeats, 0)
		if n > 0 {
			k.repeats[i] = to[i] / n
		}
		k.loops = append(k.loops, k.repeats[i], n)
	}
	if err := checkLoops(k.loops); err != nil {
		return err
	}
	k.copy.PrepareTile(t.Call.In[0].DType.Size(), from, k.repeats)
	k.filled(t)
	return nil
}

// blocks moves the elements of [N,C,H,W], seen with six sizes, in another
// order of axes.
type blocks struct {
	oneCopy
	sizes func(n, c, h, w, block int) [6]int
	perm  [6]int
}

func bindDepthToSpace(c *op.Call) (Kernel, error) {
	if c.Str("mode") == "CRD" {
		return &blocks{sizes: channelsFirst, perm: [6]int{0, 1, 4, 2, 5, 3}}, nil
	}
	return &blocks{sizes: blocksFirst, perm: [6]int{0, 3, 4, 1, 5, 2}}, nil
}

func bindSpaceToDepth(c *op.Call) (Kernel, error) {
	if c.Str("mode") == "CRD" {
		return &blocks{sizes: blocksInside, perm: [6]int{0, 1, 3, 5, 2, 4}}, nil
	}
	return &blocks{sizes: blocksInside, perm: [6]int{0, 3, 5, 1, 2, 4}}, nil
}

func channelsFirst(n, c, h, w, b int) [6]int { return [6]int{n, c / (b * b), b, b, h, w} }
func blocksFirst(n, c, h, w, b int) [6]int   { return [6]int{n, b, b, c / (b * b), h, w} }
func blocksInside(n, c, h, w, b int) [6]int  { return [6]int{n, c, h / b, b, w / b, b} }

func (k *blocks) Refill(t *Task) error {
	c := t.Call
	s := c.In[0].Shape.Sizes()
	sizes := k.sizes(s[0], s[1], s[2], s[3], int(c.Int("blocksize")))
	k.copy.PrepareTranspose(c.In[0].DType.Size(), sizes[:], k.perm[:])
	k.filled(t)
	return nil
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
