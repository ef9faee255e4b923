package compute

import (
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/classic"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"tree_ensemble": bindTrees})

var _ = registerPackers(map[string]packer{
	"tree_ensemble": func(_ *kernel.Variant, c *op.Call, constants Constants) (Kernel, error) {
		return treesOf(c, constants)
	},
})

func bindTrees(c *op.Call) (Kernel, error) { return treesOf(c, Constants{}) }

func treesOf(c *op.Call, constants Constants) (Kernel, error) {
	bind, ok := floatOf(c.In[op.TreeRows].DType, newTrees[float32, int32], newTrees[float64, int64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, constants), nil
}

// treeRows is how many rows a tile has at least: enough to read a tree from
// memory once for all of them, and few enough to stay in the cache beside it.
const treeRows = 64

// trees walks decision trees for rows of features.
type trees[T kernel.Float, I classic.Index] struct {
	ensemble classic.Ensemble[T, I]
	constant bool // the tables have the same bytes in every run

	// What the last check saw, if the tables are constant.
	seen     [op.TreeMembers + 1]*byte
	features int

	rows groups
}

func newTrees[T kernel.Float, I classic.Index](c *op.Call, constants Constants) Kernel {
	k := &trees[T, I]{constant: constants.Is != nil}
	for arg := op.TreeNodes; arg < len(c.In); arg++ {
		k.constant = k.constant && (!has(c, arg) || constants.Is(arg))
	}
	k.ensemble.Join = map[string]classic.Join{"SUM": classic.Sum, "AVERAGE": classic.Average, "MIN": classic.Min, "MAX": classic.Max}[c.Str("aggregate")]
	k.ensemble.Outputs = int(c.Int("targets"))
	return k
}

func (k *trees[T, I]) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[op.TreeRows].Shape.Sizes()
	k.ensemble.Features = sizes[1]
	k.rows = groups{sizes[0], treeRows}
	t.Tiles = k.rows.tiles()
	if !wanted(c, 1) && k.ensemble.Join > classic.Average {
		t.Scratch = treeRows * k.ensemble.Outputs
	}
	return nil
}

// Start reads the tables, and checks those that it has not checked before.
func (k *trees[T, I]) Start(t *Task) error {
	c, e := t.Call, &k.ensemble
	e.Nodes, e.Roots, e.Weights = in[classic.Node[T, I]](c, op.TreeNodes), in[I](c, op.TreeRoots), in[T](c, op.TreeWeights)
	e.Spans, e.Targets, e.Members = in[I](c, op.TreeSpans), in[I](c, op.TreeTargets), in[T](c, op.TreeMembers)
	var seen [op.TreeMembers + 1]*byte
	for arg := op.TreeNodes; arg < len(c.In); arg++ {
		seen[arg] = unsafe.SliceData(c.In[arg].Data)
	}
	if k.constant && seen == k.seen && k.features == e.Features {
		return nil
	}
	k.features = -1
	if err := e.Check(); err != nil {
		return err
	}
	k.seen, k.features = seen, e.Features
	return nil
}

func (k *trees[T, I]) Tile(t *Task, tile int, scratch []byte) {
	c, e := t.Call, &k.ensemble
	lo, hi := k.rows.of(tile)
	scores := out[T](c, 0)[lo*e.Outputs : hi*e.Outputs]
	var seen []bool
	switch {
	case wanted(c, 1):
		seen = out[bool](c, 1)[lo*e.Outputs : hi*e.Outputs]
	case t.Scratch > 0:
		seen = view[bool](scratch)[:len(scores)]
	}
	e.Rows(scores, seen, in[T](c, op.TreeRows)[lo*e.Features:hi*e.Features])
}
