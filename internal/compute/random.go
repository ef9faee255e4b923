package compute

import (
	"math"
	randv2 "math/rand/v2"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/philox"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"random_uniform": bindUniform, "random_normal": bindNormal})

func bindUniform(c *op.Call) (Kernel, error) {
	low, high := c.Float("low"), c.Float("high")
	return newRandomKernel(c, philox.Uniform, low, high-low), nil
}

func bindNormal(c *op.Call) (Kernel, error) {
	return newRandomKernel(c, philox.Normal, c.Float("mean"), c.Float("scale")), nil
}

func newRandomKernel(c *op.Call, draw func([]float64, philox.Stream, int), offset, scale float64) Kernel {
	k := &randomKernel{draw: draw, offset: offset, scale: scale}
	if c.Attrs.Has("seed") {
		k.seeded, k.seed = true, math.Float64bits(c.Float("seed"))
	}
	return k
}

// drawn is how many numbers a tile draws.
const drawn = 2048

// randomKernel draws offset + scale * x, for x of a distribution.
type randomKernel struct {
	draw          func(dst []float64, s philox.Stream, first int)
	offset, scale float64
	seeded        bool
	seed          uint64
	stream        philox.Stream // of this call
	n             int
}

func (k *randomKernel) Refill(t *Task) error {
	k.n = elements(&t.Call.Out[0])
	t.Tiles = (k.n + drawn - 1) / drawn
	t.Scratch = 8 * drawn
	return nil
}

// Start takes the stream of the call. A seed of its own stands for that of the
// session. Outside a session a call without a seed draws by chance.
func (k *randomKernel) Start(t *Task) error {
	switch d := t.Call.Draws; {
	case d != nil:
		k.stream = philox.Stream{Key: d.Seed, Run: uint32(d.Run), Draw: uint32(d.Next)}
		d.Next++
	case k.seeded:
		k.stream = philox.Stream{}
	default:
		k.stream = philox.Stream{Key: randv2.Uint64()}
	}
	if k.seeded {
		k.stream.Key = k.seed
	}
	return nil
}

func (k *randomKernel) Tile(t *Task, tile int, scratch []byte) {
	out := &t.Call.Out[0]
	first := tile * drawn
	n := min(drawn, k.n-first)
	list := view[float64](scratch)[:n]
	k.draw(list, k.stream, first)
	for i, x := range list {
		list[i] = k.offset + k.scale*x
	}
	size := out.DType.Size()
	elementwise.Cast(t.variant, out.Data[first*size:(first+n)*size], out.DType, scratch, dtype.F64, 0, n, elementwise.CastMode{})
}
