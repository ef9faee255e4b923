package ortdiff_test

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
)

func init() {
	why := "sums in another order, exponentials of their own on both sides"
	generators[mlDomain+"::TreeEnsembleRegressor"] = func(d *drawer) { drawTrees(d, false) }
	tolerances[mlDomain+"::TreeEnsembleRegressor"] = tolerance{256, 32, 0, why}
	generators[mlDomain+"::TreeEnsembleClassifier"] = func(d *drawer) { drawTrees(d, true) }
	tolerances[mlDomain+"::TreeEnsembleClassifier"] = tolerance{256, 32, 0, why}
	generators[mlDomain+"::TreeEnsemble"] = drawNewTrees
	tolerances[mlDomain+"::TreeEnsemble"] = tolerance{256, 32, 0, why}
}

// drawnTrees are the lists of a forest in opsets 1 and 3.
type drawnTrees struct {
	*drawer
	features                              int
	modes                                 []string
	trees, ids, feature, yes, no, missing []int64
	values                                []float32
	names                                 []string
	leafTrees, leafIDs, leafTargets       []int64
	weights                               []float32
	targets                               func() []int // of one leaf
	weight                                func() float32
}

// grow draws a tree below node id, and returns the next id.
func (t *drawnTrees) grow(tree, id, depth int) int {
	at := len(t.ids)
	t.trees, t.ids = append(t.trees, int64(tree)), append(t.ids, int64(id))
	t.yes, t.no, t.missing = append(t.yes, 0), append(t.no, 0), append(t.missing, int64(t.IntN(2)))
	if depth == 0 || id > 0 && t.chance(0.2) {
		t.feature, t.values, t.names = append(t.feature, 0), append(t.values, 0), append(t.names, "LEAF")
		t.missing[at] = 0
		for _, target := range t.targets() {
			t.leafTrees, t.leafIDs = append(t.leafTrees, int64(tree)), append(t.leafIDs, int64(id))
			t.leafTargets, t.weights = append(t.leafTargets, int64(target)), append(t.weights, t.weight())
		}
		return id + 1
	}
	t.feature, t.values, t.names = append(t.feature, int64(t.IntN(t.features))), append(t.values, t.halves(1)[0]), append(t.names, pick(t.drawer, t.modes...))
	t.yes[at] = int64(id + 1)
	next := t.grow(tree, id+1, depth-1)
	t.no[at] = int64(next)
	return t.grow(tree, next, depth-1)
}

// rows draws rows of which some numbers are missing.
func (d *drawer) rows(dt dtype.DType) int {
	dims := []int{d.between(1, 3*d.size), d.between(1, d.size)}
	list := ref64(d.halves(elements(dims)))
	if !dt.IsFloat() {
		ints := make([]int64, len(list))
		for i, v := range list {
			ints[i] = int64(v)
		}
		d.operand(d.value(dt, dims, encodeInts(dt, ints...), false))
		return dims[1]
	}
	if d.special || d.chance(0.3) {
		for i := range list {
			if d.chance(0.3) {
				list[i] = pick(d, math.NaN(), math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1))
			}
		}
	}
	d.operand(d.value(dt, dims, encodeFloats(dt, list...), d.chance(0.1)))
	return dims[1]
}

// oldModes are the modes of nodes in opsets 1 and 3.
var oldModes = []string{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}

// numbersAttr sets a list of floats, or a tensor of the opset that has one.
func (d *drawer) numbersAttr(name string, list []float32, double, tensors bool) {
	if !tensors {
		d.attr(name, list)
		return
	}
	dt := dtype.F32
	if double {
		dt = dtype.F64
	}
	d.attr(name+"_as_tensor", &value{name: name, dt: dt, dims: []int{len(list)}, data: encodeFloats(dt, ref64(list)...)})
}

func drawTrees(d *drawer, classifier bool) {
	name, prefix := "TreeEnsembleRegressor", "target"
	if classifier {
		name, prefix = "TreeEnsembleClassifier", "class"
	}
	d.node(name)
	d.m.ml = pick(d, 1, 3, 3)
	types := []dtype.DType{dtype.F32, dtype.F32, dtype.F64}
	if classifier {
		types = featureTypes
	}
	dt := pick(d, types...)
	t := &drawnTrees{drawer: d, features: d.rows(dt), modes: []string{"BRANCH_LEQ"}}
	if d.chance(0.5) {
		t.modes = oldModes
	}
	targets := d.between(1, 4)
	if classifier {
		targets = d.between(2, 4)
	}
	only, all := d.IntN(targets)*d.IntN(2), d.chance(0.4)
	t.targets = func() []int {
		switch {
		case classifier && targets == 2 && !all:
			return []int{only}
		case all:
			list := make([]int, targets)
			for i := range list {
				list[i] = i
			}
			return list
		}
		return []int{d.IntN(targets)}
	}
	positive := d.chance(0.4)
	t.weight = func() float32 {
		w := t.halves(1)[0] / 8
		if positive {
			w = max(w, -w)
		}
		return w
	}
	for tree := range d.between(1, 12) {
		t.grow(tree, 0, d.between(0, 4))
	}
	double, tensors := dt == dtype.F64, d.m.ml == 3 && d.chance(0.4)
	d.attr("nodes_treeids", t.trees)
	d.attr("nodes_nodeids", t.ids)
	d.attr("nodes_featureids", t.feature)
	d.attr("nodes_truenodeids", t.yes)
	d.attr("nodes_falsenodeids", t.no)
	d.attr("nodes_modes", t.names)
	d.numbersAttr("nodes_values", t.values, double, tensors)
	if d.chance(0.5) {
		d.numbersAttr("nodes_hitrates", make([]float32, len(t.ids)), double, tensors)
	}
	if d.chance(0.6) {
		d.attr("nodes_missing_value_tracks_true", t.missing)
	}
	d.attr(prefix+"_treeids", t.leafTrees)
	d.attr(prefix+"_nodeids", t.leafIDs)
	d.attr(prefix+"_ids", t.leafTargets)
	d.numbersAttr(prefix+"_weights", t.weights, double, tensors)
	if d.chance(0.4) {
		count := targets
		if classifier && targets == 2 && d.chance(0.5) {
			count = 1
		}
		d.numbersAttr("base_values", d.halves(count), double, tensors)
	}
	d.maybe("post_transform", pick(d, transforms...))
	if classifier {
		if d.chance(0.4) {
			d.attr("classlabels_strings", []string{"a", "b", "c", "d"}[:targets])
		} else {
			d.attr("classlabels_int64s", []int64{0, 1, 2, 3}[:targets])
		}
		d.outs(2)
		return
	}
	d.attr("n_targets", targets)
	d.maybe("aggregate_function", pick(d, "SUM", "AVERAGE", "MIN", "MAX"))
	d.outs(1)
}

// drawNewTrees draws a TreeEnsemble of opset 5.
func drawNewTrees(d *drawer) {
	d.node("TreeEnsemble")
	d.m.ml = 5
	dt := pick(d, dtype.F32, dtype.F32, dtype.F64)
	features, targets := d.rows(dt), d.between(1, 3)
	var roots, feature, yes, no, yesLeaf, noLeaf, missing, leafTargets []int64
	var splits, members, weights, rates []float64
	var modes []int64
	leaf := func() int64 {
		leafTargets, weights = append(leafTargets, int64(d.IntN(targets))), append(weights, float64(d.halves(1)[0])/8)
		return int64(len(weights) - 1)
	}
	var grow func(depth int) int64
	grow = func(depth int) int64 {
		at := len(feature)
		mode := pick[int64](d, 0, 0, 0, 1, 2, 3, 4, 5, 6)
		split := float64(d.halves(1)[0])
		feature, splits, modes = append(feature, int64(d.IntN(features))), append(splits, split), append(modes, mode)
		yes, no, yesLeaf, noLeaf, missing = append(yes, 0), append(no, 0), append(yesLeaf, 0), append(noLeaf, 0), append(missing, int64(d.IntN(2)))
		rates = append(rates, 1)
		if mode == 6 {
			for range d.between(1, 3) {
				members = append(members, float64(d.halves(1)[0]))
			}
			members = append(members, math.NaN())
		}
		if depth == 0 || d.chance(0.2) {
			yesLeaf[at], yes[at] = 1, leaf()
		} else {
			next := grow(depth - 1)
			yes[at] = next
		}
		if depth == 0 || d.chance(0.2) {
			noLeaf[at], no[at] = 1, leaf()
		} else {
			next := grow(depth - 1)
			no[at] = next
		}
		return int64(at)
	}
	for range d.between(1, 8) {
		roots = append(roots, grow(d.between(0, 3)))
	}
	tensor := func(name string, dt dtype.DType, data []byte, n int) {
		d.attr(name, &value{name: name, dt: dt, dims: []int{n}, data: data})
	}
	d.attr("tree_roots", roots)
	d.attr("nodes_featureids", feature)
	d.attr("nodes_truenodeids", yes)
	d.attr("nodes_falsenodeids", no)
	d.attr("nodes_trueleafs", yesLeaf)
	d.attr("nodes_falseleafs", noLeaf)
	d.attr("leaf_targetids", leafTargets)
	tensor("nodes_modes", dtype.U8, encodeInts(dtype.U8, modes...), len(modes))
	tensor("nodes_splits", dt, encodeFloats(dt, splits...), len(splits))
	tensor("leaf_weights", dt, encodeFloats(dt, weights...), len(weights))
	if len(members) > 0 {
		tensor("membership_values", dt, encodeFloats(dt, members...), len(members))
	}
	if d.chance(0.4) {
		tensor("nodes_hitrates", dt, encodeFloats(dt, rates...), len(rates))
	}
	if d.chance(0.5) {
		d.attr("nodes_missing_value_tracks_true", missing)
	}
	d.attr("n_targets", targets)
	d.maybe("aggregate_function", d.IntN(4))
	d.maybe("post_transform", d.IntN(4))
	d.outs(1)
}
