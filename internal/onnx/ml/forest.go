package ml

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Modes of nodes, with the numbers that TreeEnsemble of opset 5 has for them.
const (
	modeLEQ = iota
	modeLT
	modeGTE
	modeGT
	modeEQ
	modeNEQ
	modeMember
	modeLeaf
)

// forest are decision trees as a file describes them.
type forest struct {
	targets int
	dt      dtype.DType // of splits and weights: F32 or F64
	roots   []int       // of nodes
	nodes   []forestNode
	leaves  [][]leafWeight
	sets    [][]float64
}

type forestNode struct {
	mode    uint8
	missing bool // NaN continues as if the test held
	feature int64
	split   float64
	yes, no int32 // nodes
	set     int32 // of modeMember
	leaf    int32 // of modeLeaf
}

// leafWeight is a number that a leaf adds to the score of a target.
type leafWeight struct {
	target int
	weight float64
}

// treeTables are the operands of a tree_ensemble.
type treeTables struct {
	nodes, roots, spans, targets []int64
	weights, members             []float64
}

// emit emits the call that walks the trees for the rows of x: the scores, and
// whether the row has a score for each target, if that is wanted.
func (f *forest) emit(n *lift.Node, x *ir.Value, aggregate string, wantSeen bool) (scores, seen *ir.Value) {
	f.checkFeatures(n, x)
	t := f.tables(n)
	if x = as(n, x, f.dt); n.Err != nil {
		return nil, nil
	}
	args := []*ir.Value{x,
		indices(n, "nodes", f.dt, t.nodes, len(t.nodes)/op.TreeColumns, op.TreeColumns),
		indices(n, "roots", f.dt, t.roots, len(t.roots)), nil, nil, nil, nil,
	}
	if t.spans == nil {
		args[op.TreeWeights] = arrayOf(n, "weights", f.dt, t.weights, len(t.weights)/f.targets, f.targets)
	} else {
		args[op.TreeWeights] = listOf(n, "weights", f.dt, t.weights)
		args[op.TreeSpans] = indices(n, "spans", f.dt, t.spans, len(t.spans))
		args[op.TreeTargets] = indices(n, "targets", f.dt, t.targets, len(t.targets))
	}
	if len(t.members) > 0 {
		args[op.TreeMembers] = listOf(n, "members", f.dt, t.members)
	}
	attrs := []op.Attr{{Name: "aggregate", Value: aggregate}, lift.IntAttr("targets", int64(f.targets))}
	names := []string{n.Fresh(n.Name + ".scores")}
	if wantSeen {
		names = append(names, n.Fresh(n.Name+".seen"))
	}
	results := n.Emit("tree_ensemble", args, attrs, names)
	if wantSeen {
		return results[0], results[1]
	}
	return results[0], nil
}

// checkFeatures ends the node if a test reads a feature that x does not have.
func (f *forest) checkFeatures(n *lift.Node, x *ir.Value) {
	limit := int64(math.MaxInt32)
	if x != nil && x.Type.Shape != nil && x.Type.Shape.Rank() == 2 {
		if size, ok := x.Type.Shape.Dim(1).Size(); ok {
			limit = int64(size)
		}
	}
	for i := range f.nodes {
		if node := &f.nodes[i]; node.mode != modeLeaf && (node.feature < 0 || node.feature >= limit) {
			n.Fail("node %d of the list: got feature %d, want 0 to %d", i, node.feature, limit-1)
			return
		}
	}
}

// indices makes a constant of integers as wide as the numbers of a type.
func indices(n *lift.Node, name string, of dtype.DType, list []int64, sizes ...int) *ir.Value {
	dt := op.TreeIndex(of)
	data := make([]byte, 0, dt.Size()*len(list))
	for _, v := range list {
		if dt == dtype.I32 {
			data = binary.LittleEndian.AppendUint32(data, uint32(v))
		} else {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
	}
	sh, err := shape.Of(sizes...)
	if err != nil {
		n.Fail("%s: %w", name, err)
	}
	if n.Err != nil {
		return nil
	}
	return n.Weight(n.Fresh(n.Name+"."+name), op.Type{DType: dt, Shape: sh}, data)
}

// tables lays the trees out: breadth first, the two nodes after a test side by
// side.
func (f *forest) tables(n *lift.Node) *treeTables {
	t := &treeTables{}
	taken := make([]bool, len(f.nodes))
	starts := make([]int64, len(f.sets))
	for i, set := range f.sets {
		starts[i] = int64(len(t.members))
		t.members = append(append(t.members, set...), math.NaN())
	}
	for _, root := range f.roots {
		if n.Err != nil {
			return t
		}
		t.roots = append(t.roots, int64(len(t.nodes)/op.TreeColumns))
		t.nodes = append(t.nodes, make([]int64, op.TreeColumns)...)
		f.layOut(n, t, root, taken, starts)
	}
	f.addWeights(t)
	return t
}

// layOut appends the nodes below a root, for which there is place.
func (f *forest) layOut(n *lift.Node, t *treeTables, root int, taken []bool, starts []int64) {
	queue := []int32{int32(root)}
	at := len(t.nodes)/op.TreeColumns - 1
	for ; len(queue) > 0; queue, at = queue[1:], at+1 {
		src := &f.nodes[queue[0]]
		row := t.nodes[at*op.TreeColumns:][:op.TreeColumns]
		if src.mode == modeLeaf {
			copy(row, []int64{f.bits(math.Inf(1)), 0, int64(at), int64(src.leaf)})
			continue
		}
		if taken[queue[0]] {
			n.Fail("node %d of the list: got two ways to it, want a tree", queue[0])
			return
		}
		taken[queue[0]] = true
		first, second, kind, bits := f.test(src, starts)
		copy(row, []int64{bits, src.feature, int64(len(t.nodes) / op.TreeColumns), -1 - kind})
		t.nodes = append(t.nodes, make([]int64, 2*op.TreeColumns)...)
		queue = append(queue, first, second)
	}
}

// bits returns the bits of a number, as nodes have them.
func (f *forest) bits(v float64) int64 {
	if f.dt == dtype.F64 {
		return int64(math.Float64bits(v))
	}
	return int64(int32(math.Float32bits(float32(v))))
}

// below returns the largest number of the type that is smaller than v.
func (f *forest) below(v float64) float64 {
	if f.dt == dtype.F64 {
		return math.Nextafter(v, math.Inf(-1))
	}
	return float64(math.Nextafter32(float32(v), float32(math.Inf(-1))))
}

// test returns a node's test as one of the operator's: the node where it holds,
// the other one, its kind, and the bits of its split. All comparisons become
// that of a number which is at most the split, or equal to it.
func (f *forest) test(src *forestNode, starts []int64) (first, second int32, kind, bits int64) {
	yes, no := src.yes, src.no
	split := src.split
	if f.dt == dtype.F32 {
		split = float64(float32(split))
	}
	missing := src.missing || src.mode == modeNEQ // where NaN goes: NaN differs from every number
	holds := func(first, second int32, kind int64, v float64) (int32, int32, int64, int64) {
		if missing == (first == yes) {
			kind |= op.TreeNaN
		}
		return first, second, kind, f.bits(v)
	}
	always := func(way, other int32) (int32, int32, int64, int64) { return holds(way, other, 0, math.Inf(1)) }
	switch {
	case src.mode == modeMember:
		first, second, kind, _ = holds(yes, no, op.TreeMember, 0)
		return first, second, kind, starts[src.set]
	case math.IsNaN(split) && src.mode == modeNEQ:
		return always(yes, no)
	case math.IsNaN(split):
		return always(no, yes)
	}
	switch src.mode {
	case modeLEQ:
		return holds(yes, no, 0, split)
	case modeLT:
		if math.IsInf(split, -1) {
			return always(no, yes)
		}
		return holds(yes, no, 0, f.below(split))
	case modeGT:
		return holds(no, yes, 0, split)
	case modeGTE:
		if math.IsInf(split, -1) {
			return always(yes, no)
		}
		return holds(no, yes, 0, f.below(split))
	case modeEQ:
		return holds(yes, no, op.TreeEqual, split)
	default:
		return holds(no, yes, op.TreeEqual, split)
	}
}

// addWeights appends the weights of the leaves: as many for each leaf where
// each has one for each target, in order.
func (f *forest) addWeights(t *treeTables) {
	dense := true
	for _, leaf := range f.leaves {
		dense = dense && len(leaf) == f.targets
		for i := range leaf {
			dense = dense && leaf[i].target == i
		}
	}
	for _, leaf := range f.leaves {
		if !dense {
			t.spans = append(t.spans, int64(len(t.weights)))
		}
		for _, w := range leaf {
			t.weights = append(t.weights, w.weight)
			if !dense {
				t.targets = append(t.targets, int64(w.target))
			}
		}
	}
	if !dense {
		t.spans = append(t.spans, int64(len(t.weights)))
	}
}

// How often rows have a score for a target.
const (
	never = iota
	sometimes
	always
)

// scored returns for each target whether rows have a score for it.
func (f *forest) scored() []int {
	how := make([]int, f.targets)
	for _, leaf := range f.leaves {
		for _, w := range leaf {
			how[w.target] = sometimes
		}
	}
	for _, root := range f.roots {
		leaves, with := 0, make([]int, f.targets)
		for queue := []int32{int32(root)}; len(queue) > 0; queue = queue[1:] {
			src := &f.nodes[queue[0]]
			if src.mode != modeLeaf {
				queue = append(queue, src.yes, src.no)
				continue
			}
			leaves++
			last := map[int]bool{}
			for _, w := range f.leaves[src.leaf] {
				if !last[w.target] {
					last[w.target] = true
					with[w.target]++
				}
			}
		}
		for target, count := range with {
			if count == leaves {
				how[target] = always
			}
		}
	}
	return how
}
