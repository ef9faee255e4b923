package opcases

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(treeCases)

// forest is an ensemble of complete trees that are drawn from a seed, as
// operands of the operator and as nodes of the reference.
type forest struct {
	bits     int // of the numbers
	features int
	targets  int
	dense    bool // each leaf has a weight for each target
	kinds    []int64

	state uint64

	nodes, roots, spans, to []int64
	weights, members        []float64
	trees                   []*ref.TreeNode
}

// next draws a number below n.
func (f *forest) next(n int) int {
	f.state = f.state*6364136223846793005 + 1442695040888963407
	return int(f.state >> 33 % uint64(n))
}

// number draws one of few numbers, which rows have too.
func (f *forest) number() float64 { return float64(f.next(9)-4) / 2 }

// bitsOf returns the bits of a number as the node has them.
func (f *forest) bitsOf(v float64) int64 {
	if f.bits == 32 {
		return int64(int32(math.Float32bits(float32(v))))
	}
	return int64(math.Float64bits(v))
}

// grow draws a tree of a depth below node at, which there is already.
func (f *forest) grow(at, depth int) *ref.TreeNode {
	if depth <= 0 {
		return f.leaf(at)
	}
	kind := f.kinds[f.next(len(f.kinds))]
	split, feature, child := f.number(), f.next(f.features), len(f.nodes)/op.TreeColumns
	bits := f.bitsOf(split)
	set := []float64{split, f.number()}
	if kind&op.TreeMember != 0 {
		bits = int64(len(f.members))
		f.members = append(append(f.members, set...), math.NaN())
	}
	f.nodes = append(f.nodes, make([]int64, 2*op.TreeColumns)...)
	copy(f.nodes[at*op.TreeColumns:], []int64{bits, int64(feature), int64(child), -1 - kind})
	n := &ref.TreeNode{Feature: feature, Test: func(v float64) bool {
		switch {
		case math.IsNaN(v):
			return kind&op.TreeNaN != 0
		case kind&op.TreeEqual != 0:
			return v == split
		case kind&op.TreeMember != 0:
			return v == set[0] || v == set[1]
		}
		return v <= split
	}}
	n.True, n.False = f.grow(child, depth-1-f.next(2)*f.next(2)), f.grow(child+1, depth-1)
	return n
}

// leaf makes node at a leaf.
func (f *forest) leaf(at int) *ref.TreeNode {
	leaf := len(f.spans)
	copy(f.nodes[at*op.TreeColumns:], []int64{f.bitsOf(math.Inf(1)), 0, int64(at), int64(leaf)})
	n := &ref.TreeNode{Weights: map[int]float64{}}
	f.spans = append(f.spans, int64(len(f.weights)))
	for target := range f.targets {
		if f.dense || f.next(3) > 0 {
			w := f.number()
			n.Weights[target] = w
			f.weights, f.to = append(f.weights, w), append(f.to, int64(target))
		}
	}
	return n
}

// forestCase draws trees and rows, and has the results of the reference.
func forestCase(f forest, trees, depth, rows int, how string, nan bool) optest.Case {
	for range trees {
		root := len(f.nodes) / op.TreeColumns
		f.roots = append(f.roots, int64(root))
		f.nodes = append(f.nodes, make([]int64, op.TreeColumns)...)
		f.trees = append(f.trees, f.grow(root, max(depth, 0)))
	}
	x := make([]float64, rows*f.features)
	var scores []float64
	var seen []bool
	round := func(v float64) float64 { return v }
	if f.bits == 32 {
		round = func(v float64) float64 { return float64(float32(v)) }
	}
	for r := range rows {
		row := x[r*f.features:][:f.features]
		for i := range row {
			if row[i] = f.number(); nan && f.next(4) == 0 {
				row[i] = math.NaN()
			}
		}
		s, have := ref.Trees(f.trees, row, f.targets, how, round)
		scores, seen = append(scores, s...), append(seen, have...)
	}
	c := optest.Case{Attrs: attr("aggregate", how, "targets", f.targets), Results: 2}
	count := len(f.nodes) / op.TreeColumns
	c.Args = args{f.floats(x, rows, f.features), f.ints(f.nodes, count, op.TreeColumns), f.ints(f.roots, trees)}
	if f.dense {
		c.Args = append(c.Args, f.floats(f.weights, len(f.spans), f.targets))
	} else {
		f.spans = append(f.spans, int64(len(f.weights)))
		c.Args = append(c.Args, f.floats(f.weights, len(f.weights)), f.ints(f.spans, len(f.spans)), f.ints(f.to, len(f.to)))
	}
	if len(f.members) > 0 {
		for len(c.Args) < op.TreeMembers {
			c.Args = append(c.Args, absent)
		}
		c.Args = append(c.Args, f.floats(f.members, len(f.members)))
	}
	c.Want = args{f.floats(scores, rows, f.targets), optest.Of(seen, rows, f.targets)}
	return c
}

func (f *forest) floats(list []float64, sizes ...int) optest.Operand {
	if f.bits == 32 {
		return optest.Of(ref.Map(list, func(v float64) float32 { return float32(v) }), sizes...)
	}
	return optest.Of(list, sizes...)
}

func (f *forest) ints(list []int64, sizes ...int) optest.Operand {
	if f.bits == 32 {
		return optest.Of(ref.Map(list, func(v int64) int32 { return int32(v) }), sizes...)
	}
	return optest.Of(list, sizes...)
}

func treeCases() map[string][]optest.Case {
	plain, any := []int64{0, op.TreeNaN}, []int64{0, op.TreeNaN, op.TreeEqual, op.TreeEqual | op.TreeNaN, op.TreeMember, op.TreeMember | op.TreeNaN}
	single := forest{bits: 32, features: 5, targets: 1, dense: true, kinds: plain, state: 1}
	many := forest{bits: 32, features: 3, targets: 4, kinds: plain, state: 2}
	f64s := forest{bits: 64, features: 2, targets: 3, dense: true, kinds: plain, state: 3}
	mixed := forest{bits: 32, features: 4, targets: 2, kinds: any, state: 4}
	wide := forest{bits: 64, features: 4, targets: 1, dense: true, kinds: any, state: 5}
	x := func(dt dtype.DType, sizes ...int) optest.Operand { return num(dt, sizes...) }
	leaf := optest.Of([]int32{0x7f800000, 0, 0, 0}, 1, 4)
	fails := func(nodes, roots, weights optest.Operand, text string, more ...optest.Operand) optest.Case {
		return optest.Case{Args: append(args{x(f32, 2, 3), nodes, roots, weights}, more...), Fails: text}
	}
	none := optest.Of([]int32{0}, 1)
	return map[string][]optest.Case{"tree_ensemble": {
		forestCase(single, 21, 5, 203, "SUM", false), forestCase(single, 21, 5, 70, "SUM", true), forestCase(single, 3, 3, 1, "AVERAGE", false), forestCase(single, 17, 4, 1, "MAX", false),
		forestCase(many, 10, 4, 66, "AVERAGE", false), forestCase(many, 9, 3, 9, "MIN", false), forestCase(many, 2, 2, 17, "MAX", true), forestCase(many, 4, 2, 0, "SUM", false),
		forestCase(f64s, 11, 4, 30, "SUM", false), forestCase(f64s, 5, 4, 12, "MIN", true),
		forestCase(mixed, 12, 5, 20, "SUM", true), forestCase(mixed, 12, 5, 20, "MAX", false), forestCase(wide, 9, 6, 13, "SUM", true), forestCase(single, 2, 0, 9, "SUM", false),
		{Args: args{x(f32, 2, 3), leaf, none, scales(1)}, Fails: "operand 3"},
		{Args: args{x(f32, 2, 3), leaf, none, optest.Of([]float32{1}, 1, 1)}, Attrs: attr("aggregate", "MEAN"), Fails: "aggregate"},
		{Args: args{x(f32, 2, 3), leaf, none, optest.Of([]float32{1}, 1, 1)}, Attrs: attr("targets", 0), Fails: "targets"},
		{Args: args{x(i32, 2, 3), leaf, none, optest.Of([]float32{1}, 1, 1)}, Fails: "operand 0"},
		{Args: args{x(f64, 2, 3), leaf, none, optest.Of([]float64{1}, 1, 1)}, Fails: "operand 1"},
		fails(optest.Of([]int32{0x7f800000, 3, 0, 0}, 1, 4), none, optest.Of([]float32{1}, 1, 1), "feature"),
		fails(optest.Of([]int32{0x7f800000, 0, 0, 1}, 1, 4), none, optest.Of([]float32{1}, 1, 1), "leaf"),
		fails(optest.Of([]int32{0, 0, 0, 0}, 1, 4), none, optest.Of([]float32{1}, 1, 1), "leaf"),
		fails(optest.Of([]int32{0, 0, 0, -1, 0x7f800000, 0, 1, 0, 0x7f800000, 0, 2, 0}, 3, 4), none, optest.Of([]float32{1}, 1, 1), "child"),
		fails(optest.Of([]int32{0, 0, 2, -1, 0x7f800000, 0, 1, 0, 0x7f800000, 0, 2, 0}, 3, 4), none, optest.Of([]float32{1}, 1, 1), "child"),
		fails(optest.Of([]int32{0, 0, 1, -7, 0x7f800000, 0, 1, 0, 0x7f800000, 0, 2, 0}, 3, 4), none, optest.Of([]float32{1}, 1, 1), "kind"),
		fails(optest.Of([]int32{0, 0, 1, -5, 0x7f800000, 0, 1, 0, 0x7f800000, 0, 2, 0}, 3, 4), none, optest.Of([]float32{1}, 1, 1), "set"),
		fails(leaf, optest.Of([]int32{1}, 1), optest.Of([]float32{1}, 1, 1), "tree 0"),
		fails(leaf, none, scales(1), "weights", optest.Of([]int32{0, 2}, 2), none),
		fails(leaf, none, scales(1), "target", optest.Of([]int32{0, 1}, 2), optest.Of([]int32{1}, 1)),
		fails(leaf, none, scales(1), "operands 4 and 5", optest.Of([]int32{0, 1}, 2)),
		fails(leaf, none, optest.Of([]float32{1}, 1, 1), "members", absent, absent, scales(1)),
	}}
}
