package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/classic"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"row_distance": bindRowDistance,
	"couple_pairs": func(*op.Call) (Kernel, error) { return &couplePairs{}, nil },
})

func bindRowDistance(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newRowDistance[float32], newRowDistance[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c.Str("metric") == "euclidean"), nil
}

// rowDistance computes the distances of some rows per tile.
type rowDistance[T kernel.Float] struct {
	root              bool
	features, columns int
	rows              groups
}

func newRowDistance[T kernel.Float](root bool) Kernel { return &rowDistance[T]{root: root} }

func (k *rowDistance[T]) Refill(t *Task) error {
	a := t.Call.In[0].Shape.Sizes()
	k.features, k.columns = a[1], t.Call.In[1].Shape.Size(0)
	k.rows = groupsOf(a[0], 2*(k.features+1)*k.columns)
	t.Tiles = k.rows.tiles()
	return nil
}

func (k *rowDistance[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.rows.of(tile)
	classic.Distances(out[T](c, 0)[lo*k.columns:hi*k.columns], in[T](c, 0)[lo*k.features:hi*k.features], in[T](c, 1), k.features, k.root)
}

// couplePairs computes the probabilities of some rows per tile.
type couplePairs struct {
	classes, pairs int
	rows           groups
}

func (k *couplePairs) Refill(t *Task) error {
	k.classes, k.pairs = int(t.Call.Int("classes")), t.Call.In[0].Shape.Size(1)
	k.rows = groupsOf(t.Call.In[0].Shape.Size(0), 64*k.classes*k.classes)
	t.Tiles, t.Scratch = k.rows.tiles(), 4*classic.CouplingScratch(k.classes)
	return nil
}

func (k *couplePairs) Tile(t *Task, tile int, scratch []byte) {
	lo, hi := k.rows.of(tile)
	work := view[float32](scratch[:4*classic.CouplingScratch(k.classes)])
	for r := lo; r < hi; r++ {
		classic.CouplePairs(out[float32](t.Call, 0)[r*k.classes:][:k.classes], in[float32](t.Call, 0)[r*k.pairs:][:k.pairs], work)
	}
}
