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

// A tile has up to treeRows rows: enough to read a tree from memory once for
// all of them, and few enough to stay in the cache beside it. They have about
// treeNumbers features, or are treeLeast.
const (
	treeRows    = 64
	treeLeast   = 8 // what the kernel walks side by side
	treeNumbers = 1 << 16
)

// treeTile returns how many rows a tile has, a multiple of treeLeast.
func treeTile(rows, features int) int {
	each := min(treeRows, rows/16, treeNumbers/max(features, 1))
	return max(each/treeLeast*treeLeast, treeLeast)
}

// trees walks decision trees for rows of features.
type trees[T kernel.Float, I classic.Index] struct {
	ensemble classic.Ensemble[T, I]
	constant bool // the tables have the same bytes in every run

	// What the last check saw, if the tables are constant.
	seen     [op.TreeMembers + 1]*byte
	features int

	rows    groups
	numbers int  // of the rows of a tile
	mustSee bool // result 1 is needed and not wanted
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
	k.rows = groups{sizes[0], treeTile(sizes[0], sizes[1])}
	k.numbers = k.rows.each * sizes[1]
	t.Tiles, t.Scratch = k.rows.tiles(), k.numbers*c.In[op.TreeRows].DType.Size()
	if k.mustSee = !wanted(c, 1) && k.ensemble.Join > classic.Average; k.mustSee {
		t.Scratch += k.rows.each * k.ensemble.Outputs
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
	bytes := k.numbers * c.In[op.TreeRows].DType.Size()
	scores := out[T](c, 0)[lo*e.Outputs : hi*e.Outputs]
	var seen []bool
	switch {
	case wanted(c, 1):
		seen = out[bool](c, 1)[lo*e.Outputs : hi*e.Outputs]
	case k.mustSee:
		seen = view[bool](scratch[bytes:])[:len(scores)]
	}
	e.Rows(scores, seen, in[T](c, op.TreeRows)[lo*e.Features:hi*e.Features], view[T](scratch[:bytes]))
}
