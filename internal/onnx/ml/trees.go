package ml

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
)

// treeOps walk decision trees.
var treeOps = map[string]lift.Operator{
	"TreeEnsembleClassifier": lifted(liftTreeClassifier),
	"TreeEnsembleRegressor":  lifted(liftTreeRegressor),
	"TreeEnsemble":           {From: 5, Till: last, Lift: liftTreeEnsemble},
}

// modes are the names of modes in opsets 1 and 3.
var modes = map[string]uint8{
	"BRANCH_LEQ": modeLEQ, "BRANCH_LT": modeLT, "BRANCH_GTE": modeGTE, "BRANCH_GT": modeGT, "BRANCH_EQ": modeEQ, "BRANCH_NEQ": modeNEQ, "LEAF": modeLeaf,
}

// takeNumbers takes a list of floats from one of two attributes: a list, or a
// tensor of f32 or f64, whose type it returns. dt is F32 for a list.
func takeNumbers(n *lift.Node, list, tensor string) (numbers []float64, dt dtype.DType) {
	floats, hasList := lift.Take[[]float32](n, list)
	t, hasTensor := lift.Take[*wire.Tensor](n, tensor)
	if !hasTensor || n.Err != nil {
		return wide(floats), dtype.F32
	}
	if hasList && len(floats) > 0 {
		n.Fail("got the attributes %q and %q, want one of them", list, tensor)
		return nil, dtype.F32
	}
	numbers, dt = tensorNumbers(n, tensor, t)
	return numbers, dt
}

// tensorNumbers returns the elements of a tensor of floats in an attribute.
func tensorNumbers(n *lift.Node, name string, t *wire.Tensor) ([]float64, dtype.DType) {
	typ, data, text := attrTensor(n, t)
	if n.Err == nil && (text || typ.DType != dtype.F32 && typ.DType != dtype.F64 && typ.DType != dtype.F16) {
		n.Fail("%s: got %s, want floats: %w", name, typ, dtype.ErrDType)
	}
	if n.Err != nil {
		return nil, dtype.F32
	}
	numbers := make([]float64, typ.Shape.NumElements())
	for i := range numbers {
		numbers[i], _ = lift.DecodeFloat(typ.DType, data[i*typ.DType.Size():])
	}
	return numbers, typ.DType
}

// wider returns F64 if one of the types is, and F32 otherwise.
func wider(types ...dtype.DType) dtype.DType {
	for _, dt := range types {
		if dt == dtype.F64 {
			return dt
		}
	}
	return dtype.F32
}

// nodeKey names a node by its tree and its number in it.
type nodeKey struct{ tree, node int64 }

// takeForest takes the trees of opsets 1 and 3 from the attributes; those of
// leaves begin with a prefix. base are the numbers that are added to scores.
func takeForest(n *lift.Node, prefix string, targets int) (f *forest, base []float64) {
	ints := func(name string) []int64 {
		list, _ := lift.Take[[]int64](n, name)
		return list
	}
	f = &forest{targets: targets}
	trees, ids, features := ints("nodes_treeids"), ints("nodes_nodeids"), ints("nodes_featureids")
	yes, no, missing := ints("nodes_truenodeids"), ints("nodes_falsenodeids"), ints("nodes_missing_value_tracks_true")
	names, _ := lift.Take[[]string](n, "nodes_modes")
	splits, splitType := takeNumbers(n, "nodes_values", "nodes_values_as_tensor")
	n.Ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
	leafTrees, leafNodes, leafTargets := ints(prefix+"_treeids"), ints(prefix+"_nodeids"), ints(prefix+"_ids")
	weights, weightType := takeNumbers(n, prefix+"_weights", prefix+"_weights_as_tensor")
	base, baseType := takeNumbers(n, "base_values", "base_values_as_tensor")
	f.dt = wider(n.Args[0].Type.DType, splitType, weightType, baseType)
	count := len(trees)
	for _, list := range []struct {
		name string
		got  int
		may  bool // be absent
	}{
		{"nodes_nodeids", len(ids), false}, {"nodes_featureids", len(features), false}, {"nodes_truenodeids", len(yes), false}, {"nodes_falsenodeids", len(no), false},
		{"nodes_modes", len(names), false}, {"nodes_values", len(splits), false}, {"nodes_missing_value_tracks_true", len(missing), true},
	} {
		if list.got != count && !(list.may && list.got == 0) {
			n.Fail("%s: got %d, want one for each of the %d nodes of nodes_treeids", list.name, list.got, count)
		}
	}
	if count == 0 || count > math.MaxInt32/4 {
		n.Fail("nodes_treeids: got %d nodes, want 1 to 2^29", count)
	}
	if len(leafNodes) != len(leafTrees) || len(leafTargets) != len(leafTrees) || len(weights) != len(leafTrees) {
		n.Fail("got %d %s_treeids, %d %s_nodeids, %d %s_ids and %d %s_weights, want as many of each",
			len(leafTrees), prefix, len(leafNodes), prefix, len(leafTargets), prefix, len(weights), prefix)
	}
	if n.Err != nil {
		return f, base
	}
	places := f.place(n, trees, ids)
	for i := range f.nodes {
		node := &f.nodes[i]
		mode, ok := modes[names[i]]
		if !ok {
			n.Fail("nodes_modes: got %.80q for node %d, want BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ or LEAF", names[i], i)
			return f, base
		}
		*node = forestNode{mode: mode, feature: features[i], split: splits[i], missing: len(missing) > 0 && missing[i] == 1}
		if mode == modeLeaf {
			node.leaf = int32(len(f.leaves))
			f.leaves = append(f.leaves, nil)
			continue
		}
		node.yes, node.no = places.find(n, trees[i], yes[i]), places.find(n, trees[i], no[i])
	}
	for i, target := range leafTargets {
		node := &f.nodes[places.find(n, leafTrees[i], leafNodes[i])]
		if n.Err == nil && (target < 0 || target >= int64(targets)) {
			n.Fail("%s_ids: got %d, want 0 to %d", prefix, target, targets-1)
		}
		if n.Err != nil {
			return f, base
		}
		if node.mode != modeLeaf || targets == 1 && len(f.leaves[node.leaf]) > 0 {
			continue // as in ONNX Runtime
		}
		f.leaves[node.leaf] = append(f.leaves[node.leaf], leafWeight{int(target), weights[i]})
	}
	return f, base
}

// nodePlaces finds nodes by their keys.
type nodePlaces map[nodeKey]int32

// place enters the nodes, and takes the first one of each tree as its root.
func (f *forest) place(n *lift.Node, trees, ids []int64) nodePlaces {
	f.nodes = make([]forestNode, len(trees))
	places := make(nodePlaces, len(trees))
	seen := map[int64]bool{}
	for i, tree := range trees {
		key := nodeKey{tree, ids[i]}
		if _, ok := places[key]; ok {
			n.Fail("nodes_nodeids: got node %d of tree %d twice", key.node, key.tree)
		}
		places[key] = int32(i)
		if !seen[tree] {
			seen[tree] = true
			f.roots = append(f.roots, i)
		}
	}
	return places
}

// find returns where a node is in the list; 0 after an error.
func (p nodePlaces) find(n *lift.Node, tree, node int64) int32 {
	at, ok := p[nodeKey{tree, node}]
	if !ok {
		n.Fail("got node %d of tree %d, which nodes_nodeids does not have", node, tree)
	}
	return at
}

// liftTreeRegressor joins the weights of leaves to scores.
func liftTreeRegressor(n *lift.Node) {
	if n.Operand(1) == nil {
		return
	}
	targets := lift.TakeOr(n, "n_targets", int64(0))
	aggregate := lift.TakeOr(n, "aggregate_function", "SUM")
	transform := takeTransform(n)
	if n.Err == nil && (targets < 1 || targets > maxClasses) {
		n.Fail("n_targets: got %d, want 1 to %d", targets, maxClasses)
	}
	if n.Err != nil {
		return
	}
	f, base := takeForest(n, "target", int(targets))
	n.NoMoreAttrs()
	if n.Err == nil && len(base) != 0 && len(base) != int(targets) {
		n.Fail("base_values: got %d, want one for each of %d targets", len(base), targets)
	}
	if x := rowsOf(n, 0); n.Err == nil {
		f.finish(n, x, aggregate, base, transform, dtype.F32)
	}
}

// finish ends a node with the scores of the trees, which are those of a
// regression.
func (f *forest) finish(n *lift.Node, x *ir.Value, aggregate string, base []float64, transform string, to dtype.DType) {
	y, _ := f.emit(n, x, aggregate, false)
	if len(base) > 0 {
		y = n.Call("add", []*ir.Value{y, listOf(n, "base", f.dt, base)})
	}
	if f.targets == 1 && transform != "PROBIT" {
		transform = "NONE" // one score is no distribution, as in ONNX Runtime
	}
	if y = postTransform(n, transform, y); n.Err != nil {
		return
	}
	n.Finish("identity", []*ir.Value{as(n, y, to)})
}

// liftTreeEnsemble joins the weights of leaves to scores; each leaf has one
// weight. The trees are those of opset 5.
func liftTreeEnsemble(n *lift.Node) {
	if n.Operand(1) == nil {
		return
	}
	aggregates := []string{"AVERAGE", "SUM", "MIN", "MAX"}
	targets := lift.TakeOr(n, "n_targets", int64(1))
	aggregate := lift.TakeOr(n, "aggregate_function", int64(1))
	transform := lift.TakeOr(n, "post_transform", int64(0))
	switch {
	case n.Err != nil:
	case targets < 1 || targets > maxClasses:
		n.Fail("n_targets: got %d, want 1 to %d", targets, maxClasses)
	case aggregate < 0 || aggregate >= int64(len(aggregates)):
		n.Fail("aggregate_function: got %d, want 0 to 3", aggregate)
	case transform < 0 || transform >= int64(len(transforms)):
		n.Fail("post_transform: got %d, want 0 to 4", transform)
	}
	if n.Err != nil {
		return
	}
	f := takeNewForest(n, int(targets))
	n.NoMoreAttrs()
	to := n.Args[0].Type.DType
	if x := rowsOf(n, 0); n.Err == nil {
		f.finish(n, x, aggregates[aggregate], nil, transforms[transform], to)
	}
}

// takeNewForest takes the trees of opset 5 from the attributes.
func takeNewForest(n *lift.Node, targets int) *forest {
	ints := func(name string) []int64 {
		list, _ := lift.Take[[]int64](n, name)
		return list
	}
	floats := func(name string) []float64 {
		t, ok := lift.Take[*wire.Tensor](n, name)
		if !ok || n.Err != nil {
			return nil
		}
		list, _ := tensorNumbers(n, name, t)
		return list
	}
	f := &forest{targets: targets, dt: wider(n.Args[0].Type.DType)}
	roots, features, missing := ints("tree_roots"), ints("nodes_featureids"), ints("nodes_missing_value_tracks_true")
	yes, no, yesLeaf, noLeaf := ints("nodes_truenodeids"), ints("nodes_falsenodeids"), ints("nodes_trueleafs"), ints("nodes_falseleafs")
	splits, members, weights, leafTargets := floats("nodes_splits"), floats("membership_values"), floats("leaf_weights"), ints("leaf_targetids")
	kinds := takeModes(n)
	n.Ignore("nodes_hitrates")
	count := len(features)
	for name, got := range map[string]int{
		"nodes_truenodeids": len(yes), "nodes_falsenodeids": len(no), "nodes_trueleafs": len(yesLeaf), "nodes_falseleafs": len(noLeaf), "nodes_modes": len(kinds), "nodes_splits": len(splits),
	} {
		if got != count {
			n.Fail("%s: got %d, want one for each of the %d nodes of nodes_featureids", name, got, count)
		}
	}
	switch {
	case len(missing) != 0 && len(missing) != count:
		n.Fail("nodes_missing_value_tracks_true: got %d, want one for each of %d nodes", len(missing), count)
	case len(weights) != len(leafTargets) || len(weights) == 0:
		n.Fail("got %d leaf_weights and %d leaf_targetids, want as many of both", len(weights), len(leafTargets))
	case len(roots) == 0 || count+len(weights) > math.MaxInt32/4:
		n.Fail("got %d tree_roots and %d nodes, want one root or more and at most 2^29 nodes", len(roots), count)
	}
	if n.Err != nil {
		return f
	}
	for i := range count {
		node := forestNode{mode: kinds[i], feature: features[i], split: splits[i], missing: len(missing) > 0 && missing[i] == 1}
		node.yes, node.no = newPlace(n, yes[i], yesLeaf[i], count, len(weights)), newPlace(n, no[i], noLeaf[i], count, len(weights))
		if node.mode == modeMember {
			node.set = int32(len(f.sets))
			var set []float64
			for len(members) > 0 && !math.IsNaN(members[0]) {
				set, members = append(set, members[0]), members[1:]
			}
			if len(members) > 0 {
				members = members[1:]
			}
			f.sets = append(f.sets, set)
		}
		f.nodes = append(f.nodes, node)
	}
	for i, target := range leafTargets {
		if target < 0 || target >= int64(targets) {
			n.Fail("leaf_targetids: got %d, want 0 to %d", target, targets-1)
			return f
		}
		f.leaves = append(f.leaves, []leafWeight{{int(target), weights[i]}})
		f.nodes = append(f.nodes, forestNode{mode: modeLeaf, leaf: int32(i)})
	}
	for _, root := range roots {
		if root < 0 || root >= int64(count) {
			n.Fail("tree_roots: got %d, want 0 to %d", root, count-1)
			return f
		}
		f.roots = append(f.roots, int(root))
	}
	return f
}

// newPlace returns where in the list of a forest a node or a leaf is: leaves
// stand behind nodes.
func newPlace(n *lift.Node, id, isLeaf int64, nodes, leaves int) int32 {
	limit, offset, what := nodes, 0, "node"
	if isLeaf != 0 {
		limit, offset, what = leaves, nodes, "leaf"
	}
	if id < 0 || id >= int64(limit) {
		n.Fail("got %s %d, want 0 to %d", what, id, limit-1)
		return 0
	}
	return int32(offset + int(id))
}

// takeModes takes the modes of nodes in opset 5, a tensor of bytes.
func takeModes(n *lift.Node) []uint8 {
	t, ok := lift.Take[*wire.Tensor](n, "nodes_modes")
	if !ok || n.Err != nil {
		return nil
	}
	typ, data, text := attrTensor(n, t)
	if n.Err == nil && (text || typ.DType != dtype.U8) {
		n.Fail("nodes_modes: got %s, want u8: %w", typ, dtype.ErrDType)
	}
	for i, mode := range data {
		if n.Err == nil && mode > modeMember {
			n.Err = fmt.Errorf("nodes_modes: got %d for node %d, want 0 to %d", mode, i, modeMember)
		}
	}
	return data
}
