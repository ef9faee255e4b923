package classic_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/classic"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

var inf = float32(math.Inf(1))

type node = classic.Node[float32, int32]

// complete appends a complete tree of a depth, breadth first, with a leaf for
// each weight, and returns it as the reference has it.
func complete(e *classic.Ensemble[float32, int32], depth int, number func() float32, feature func() int) *ref.TreeNode {
	root := len(e.Nodes)
	e.Roots = append(e.Roots, int32(root))
	inner := 1<<depth - 1
	all := make([]*ref.TreeNode, 2*inner+1)
	for i := range all {
		all[i] = &ref.TreeNode{}
	}
	for i, n := range all {
		if i >= inner {
			e.Nodes = append(e.Nodes, node{Split: inf, Child: int32(root + i), Info: int32(len(e.Weights) / e.Outputs)})
			n.Weights = map[int]float64{}
			for target := range e.Outputs {
				w := number()
				e.Weights, n.Weights[target] = append(e.Weights, w), float64(w)
			}
			continue
		}
		f, split := feature(), number()
		e.Nodes = append(e.Nodes, node{Split: split, Feature: int32(f), Child: int32(root + 2*i + 1), Info: -1})
		n.Feature, n.Test, n.True, n.False = f, func(v float64) bool { return v <= float64(split) }, all[2*i+1], all[2*i+2]
	}
	return all[0]
}

func TestRows(t *testing.T) {
	r := kerneltest.NewRand(180)
	for i := range 80 {
		s := kerneltest.NewSpace(t)
		e := classic.Ensemble[float32, int32]{Outputs: 1 + i%3, Features: 1 + r.IntN(6), Join: classic.Join(i / 3 % 4)}
		number := func() float32 { return float32(r.IntN(9)-4) / 4 }
		var trees []*ref.TreeNode
		for range 1 + r.IntN(20) {
			trees = append(trees, complete(&e, r.IntN(6), number, func() int { return r.IntN(e.Features) }))
		}
		e.Nodes, e.Roots, e.Weights = kerneltest.In(s, "nodes", e.Nodes), kerneltest.In(s, "roots", e.Roots), kerneltest.In(s, "weights", e.Weights)
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		rows := r.IntN(40)
		x := make([]float32, rows*e.Features)
		for k := range x {
			if x[k] = number(); r.IntN(50) == 0 && i%2 == 0 {
				x[k] = float32(math.NaN())
			} else if r.IntN(20) == 0 {
				x[k] = inf
			}
		}
		scores, seen := kerneltest.Out[float32](s, "scores", rows*e.Outputs), kerneltest.Out[bool](s, "seen", rows*e.Outputs)
		scratch := kerneltest.Out[float32](s, "scratch", len(x))
		e.Rows(scores, seen, kerneltest.In(s, "x", x), scratch)
		s.Check()
		if e.Join <= classic.Average {
			plain := make([]float32, len(scores))
			if e.Rows(plain, nil, x, scratch); !slices.Equal(plain, scores) {
				t.Fatalf("case %d: got %v without seen, want %v", i, plain, scores)
			}
		}
		round := func(v float64) float64 { return float64(float32(v)) }
		for k := range rows {
			row := ref.Map(x[k*e.Features:][:e.Features], func(v float32) float64 { return float64(v) })
			want, _ := ref.Trees(trees, row, e.Outputs, []string{"SUM", "AVERAGE", "MIN", "MAX"}[e.Join], round)
			for target, w := range want {
				if at := k*e.Outputs + target; float64(scores[at]) != w || !seen[at] {
					t.Fatalf("case %d, row %d: got %v (%v), want %v", i, k, scores[at], seen[at], w)
				}
			}
		}
	}
}

// A table that a walk could leave, or never end in, is refused.
func TestCheck(t *testing.T) {
	leaf := node{Split: inf, Child: 1}
	good := func() *classic.Ensemble[float32, int32] {
		return &classic.Ensemble[float32, int32]{
			Nodes: []node{{Child: 1, Info: -1}, leaf, {Split: inf, Child: 2, Info: 1}}, Roots: []int32{0}, Weights: []float32{1, 2}, Outputs: 1, Features: 1,
		}
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(e *classic.Ensemble[float32, int32]){
		"feature":  func(e *classic.Ensemble[float32, int32]) { e.Nodes[0].Feature = 1 },
		"child 0":  func(e *classic.Ensemble[float32, int32]) { e.Nodes[0].Child = 0 },
		"child 2":  func(e *classic.Ensemble[float32, int32]) { e.Nodes[0].Child = 2 },
		"leaf 2":   func(e *classic.Ensemble[float32, int32]) { e.Nodes[2].Info = 2 },
		"split 0":  func(e *classic.Ensemble[float32, int32]) { e.Nodes[2].Split = 0 },
		"kind 6":   func(e *classic.Ensemble[float32, int32]) { e.Nodes[0].Info = -7 },
		"a set at": func(e *classic.Ensemble[float32, int32]) { e.Nodes[0].Info = -1 - classic.Member },
		"members":  func(e *classic.Ensemble[float32, int32]) { e.Members = []float32{1} },
		"tree 0":   func(e *classic.Ensemble[float32, int32]) { e.Roots[0] = 3 },
		"weights":  func(e *classic.Ensemble[float32, int32]) { e.Spans, e.Targets = []int32{0, 1, 3}, []int32{0, 0} },
		"target":   func(e *classic.Ensemble[float32, int32]) { e.Spans, e.Targets = []int32{0, 1, 2}, []int32{0, 1} },
	} {
		e := good()
		if change(e); e.Check() == nil || !strings.Contains(e.Check().Error(), want) {
			t.Errorf("%s: got %v", want, e.Check())
		}
	}
}

func TestDistances(t *testing.T) {
	r := kerneltest.NewRand(181)
	for i := range 60 {
		features, rows, columns := 1+r.IntN(9), r.IntN(5), r.IntN(11)
		draw := func(n int) []float32 {
			list := make([]float32, n*features)
			for k := range list {
				list[k] = float32(r.IntN(17) - 8)
			}
			return list
		}
		s := kerneltest.NewSpace(t)
		a, b := draw(rows), draw(columns)
		got := kerneltest.Out[float32](s, "dst", rows*columns)
		classic.Distances(got, kerneltest.In(s, "a", a), kerneltest.In(s, "b", b), features, i%2 == 1)
		s.Check()
		wide := func(v float32) float64 { return float64(v) }
		for k, want := range ref.Distances(ref.Map(a, wide), ref.Map(b, wide), features, i%2 == 1) {
			if got[k] != float32(want) {
				t.Fatalf("case %d, element %d: got %v, want %v", i, k, got[k], want)
			}
		}
	}
	got := []float32{5, 5}
	if classic.Distances(got, nil, nil, 0, false); got[0] != 0 || got[1] != 0 {
		t.Errorf("got %v without features, want zeros", got)
	}
}

func TestCouplePairs(t *testing.T) {
	r := kerneltest.NewRand(182)
	for range 100 {
		k := 2 + r.IntN(5)
		pairs := make([]float32, k*(k-1)/2)
		for i := range pairs {
			pairs[i] = 0.05 + 0.9*r.Float32()
		}
		s := kerneltest.NewSpace(t)
		p := kerneltest.Out[float32](s, "p", k)
		classic.CouplePairs(p, kerneltest.In(s, "pairs", pairs), kerneltest.Out[float32](s, "scratch", classic.CouplingScratch(k)))
		s.Check()
		want := ref.CouplePairs(ref.Map(pairs, func(v float32) float64 { return float64(v) }), k)
		for i, w := range want {
			if math.Abs(float64(p[i])-w) > 0.02 {
				t.Fatalf("%v: got %v, want %v", pairs, p, want)
			}
		}
	}
}
