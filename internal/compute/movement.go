package compute

import (
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
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

var _ = registerWalkers(anyLayout, "expand", "tile", "depth_to_space", "space_to_depth")

var _ = registerWalkers(copiesLayout, "copy", "identity", "reshape", "squeeze", "unsqueeze", "flatten", "bit_cast")

// copiesLayout: where both sides have gaps they have one shape.
func copiesLayout(s *op.Sig, in, out []*shape.Layout) bool {
	if len(in) == 0 || len(out) == 0 || s.Args[0].DType.Size() != s.Results[0].DType.Size() {
		return false
	}
	gaps := func(l *shape.Layout) bool { return l != nil && !l.IsContiguous() }
	return s.Args[0].Shape == s.Results[0].Shape || !gaps(in[0]) || !gaps(out[0])
}

// copySpan is the number of bytes of one tile of a plain copy.
const copySpan = 128 << 10

func bindCopy(*op.Call) (Kernel, error) { return &copyFirst{}, nil }

// copyFirst copies operand 0 into result 0, whose bytes are the same. A view
// that a plan placed over its operand has nothing to do.
type copyFirst struct {
	bytes, tiles int
	gaps         bool // some bytes do not follow each other: strided copies
	strided      oneCopy
}

func (k *copyFirst) takesStrides() bool { return true }

func (k *copyFirst) Refill(t *Task) (err error) {
	x, y := &t.Call.In[0], &t.Call.Out[0]
	k.bytes, err = y.Bytes()
	if k.gaps = hasGaps(x) || hasGaps(y); k.gaps {
		sizes, from, to := y.Shape.Sizes(), stridesOf(x), stridesOf(y)
		if x.Shape != y.Shape { // one of them has no gaps: its axes may be those of the other
			if hasGaps(x) {
				sizes, to = x.Shape.Sizes(), x.Shape.Strides()
			} else {
				from = y.Shape.Strides()
			}
		}
		if err := checkLoops(sizes); err != nil {
			return err
		}
		k.strided.copy.Prepare(y.DType.Size(), sizes, 0, to, 0, from)
		k.strided.filled(t)
		k.tiles = t.Tiles
		return err
	}
	k.tiles = (k.bytes + copySpan - 1) / copySpan
	t.Tiles = k.tiles
	return err
}

func (k *copyFirst) Start(t *Task) error {
	t.Tiles = k.tiles
	if !k.gaps && sameBytes(t.Call.Out[0].Data, t.Call.In[0].Data) {
		t.Tiles = 0
	}
	return nil
}

func (k *copyFirst) Tile(t *Task, tile int, _ []byte) {
	if k.gaps {
		k.strided.tile(t, tile)
		return
	}
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
	copy     move.Copy
	in, out  int
	bytes    int
	isBox    bool // where both lie in one buffer, they may be the same bytes
	from, to int  // the first bytes that are copied, in the operand and in the result
}

// place notes of a prepared copy whether the result may be a box of the
// operand, or the operand one of the result.
func (m *mover) place(c *op.Call) {
	size := c.Out[m.out].DType.Size()
	m.to, m.from, m.isBox = m.copy.Alike()
	m.to, m.from = m.to*size, m.from*size
}

// tile runs one tile of the copy. A result that lies where it is in the operand
// has nothing to do, and must not do it: a copy onto the same bytes is a write,
// and the bytes may be those of a mapped file. Nor has an operand that lies
// where it is in the result.
func (m *mover) tile(t *Task, tile int) {
	dst, src := t.Call.Out[m.out].Data, t.Call.In[m.in].Data
	if m.isBox && unsafe.SliceData(dst[m.to:]) == unsafe.SliceData(src[m.from:]) {
		return
	}
	m.copy.Tile(t.variant, tile, dst, src)
}

// oneCopy is what kernels know that are one copy between strides, of operand 0
// to result 0.
type oneCopy struct{ mover }

// filled ends Refill, when the copy is prepared.
func (k *oneCopy) filled(t *Task) {
	k.place(t.Call)
	t.Tiles = k.copy.Tiles()
}

func (k *oneCopy) takesStrides() bool { return true }

func (k *oneCopy) Tile(t *Task, tile int, _ []byte) { k.tile(t, tile) }

type expanded struct{ oneCopy }

func bindExpand(*op.Call) (Kernel, error) { return &expanded{}, nil }

func (k *expanded) Refill(t *Task) error {
	from, to := &t.Call.In[0], t.Call.Out[0].Shape.Sizes()
	if err := checkLoops(to); err != nil {
		return err
	}
	k.copy.PrepareExpand(from.DType.Size(), from.Shape.Sizes(), to, stridesOf(&t.Call.Out[0]), stridesOf(from))
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
	k.copy.PrepareTile(t.Call.In[0].DType.Size(), from, k.repeats, stridesOf(&t.Call.Out[0]), stridesOf(&t.Call.In[0]))
	k.filled(t)
	return nil
}

// blocks moves the elements of [N,C,H,W], seen with six sizes, in another
// order of axes.
type blocks struct {
	oneCopy
	sizes func(n, c, h, w, block int) [6]int
	perm  [6]int
	space bool // the operand has the blocks in its plane, not in its channels
}

func bindDepthToSpace(c *op.Call) (Kernel, error) {
	if c.Str("mode") == "CRD" {
		return &blocks{sizes: channelsFirst, perm: [6]int{0, 1, 4, 2, 5, 3}}, nil
	}
	return &blocks{sizes: blocksFirst, perm: [6]int{0, 3, 4, 1, 5, 2}}, nil
}

func bindSpaceToDepth(c *op.Call) (Kernel, error) {
	if c.Str("mode") == "CRD" {
		return &blocks{sizes: blocksInside, perm: [6]int{0, 1, 3, 5, 2, 4}, space: true}, nil
	}
	return &blocks{sizes: blocksInside, perm: [6]int{0, 3, 5, 1, 2, 4}, space: true}, nil
}

func channelsFirst(n, c, h, w, b int) [6]int { return [6]int{n, c / (b * b), b, b, h, w} }
func blocksFirst(n, c, h, w, b int) [6]int   { return [6]int{n, b, b, c / (b * b), h, w} }
func blocksInside(n, c, h, w, b int) [6]int  { return [6]int{n, c, h / b, b, w / b, b} }

func (k *blocks) Refill(t *Task) error {
	c := t.Call
	s, block := c.In[0].Shape.Sizes(), int(c.Int("blocksize"))
	sizes := k.sizes(s[0], s[1], s[2], s[3], block)
	var moved [6]int
	for i, p := range k.perm {
		moved[i] = sizes[p]
	}
	from, to := inChannels(stridesOf(&c.In[0]), &sizes), inSpace(stridesOf(&c.Out[0]), block)
	if k.space {
		from, to = inSpace(stridesOf(&c.In[0]), block), inChannels(stridesOf(&c.Out[0]), &moved)
	}
	k.copy.PrepareTranspose(c.In[0].DType.Size(), sizes[:], k.perm[:], to[:], from[:])
	k.filled(t)
	return nil
}

// inChannels and inSpace return the strides of the six axes of a tensor of
// four, whose channels are three of them, or whose rows and columns are two
// each.
func inChannels(s []int, sizes *[6]int) [6]int {
	return [6]int{s[0], s[1] * sizes[2] * sizes[3], s[1] * sizes[3], s[1], s[2], s[3]}
}

func inSpace(s []int, block int) [6]int {
	return [6]int{s[0], s[1], s[2] * block, s[2], s[3] * block, s[3]}
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
