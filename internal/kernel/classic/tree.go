package classic

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Index is the type of the integers of a node: as wide as its split.
type Index interface{ int32 | int64 }

// Node is a node of a tree. A row whose feature is at most Split continues with
// node Child, and any other row with the node after Child. A leaf has its own
// index as Child and +Inf as Split, so that a row stays at it.
type Node[T kernel.Float, I Index] struct {
	Split   T // for Member: an integer, the place of the first member
	Feature I
	Child   I
	Info    I // the index of a leaf; -1 less the sum of the kinds for any other node
}

// Kinds of nodes.
const (
	NaN    = 1 << iota // NaN continues with Child
	Equal              // what equals Split continues with Child
	Member             // what is in a set continues with Child
)

// Join says how the weights of leaves become scores.
type Join uint8

// How weights are joined: in the order of the trees.
const (
	Sum Join = iota
	Average
	Min
	Max
)

// Ensemble is a list of trees, and the weights of their leaves.
type Ensemble[T kernel.Float, I Index] struct {
	Nodes   []Node[T, I]
	Roots   []I
	Weights []T // [leaves,Outputs] if Spans is nil
	Spans   []I // the first weight of each leaf, and the number of weights
	Targets []I // of each weight
	Members []T // of sets, NaN after each set

	Outputs  int // scores of a row
	Features int // numbers in a row
	Join     Join

	plain bool // all nodes but leaves compare with a split; set by Check
}

// lanes is how many walks run side by side: each waits for loads most of the
// time.
const lanes = 8

// Check returns an error unless every walk ends at a leaf, and every index of
// the tables is in range. It must succeed before Rows.
func (e *Ensemble[T, I]) Check() error {
	leaves := len(e.Weights) / max(e.Outputs, 1)
	if e.Spans != nil {
		leaves = len(e.Spans) - 1
	}
	if n := len(e.Members); n > 0 && e.Members[n-1] == e.Members[n-1] {
		return fmt.Errorf("members: got %v at the end, want NaN after each set", e.Members[n-1])
	}
	e.plain = true
	for i := range e.Nodes {
		n := &e.Nodes[i]
		kind := -1 - n.Info
		switch {
		case n.Feature < 0 || int(n.Feature) >= e.Features:
			return fmt.Errorf("node %d: got feature %d, want 0 to %d", i, n.Feature, e.Features-1)
		case n.Info >= 0 && (int(n.Info) >= leaves || int(n.Child) != i || !math.IsInf(float64(n.Split), 1)):
			return fmt.Errorf("node %d: got leaf %d with child %d and split %v, want a leaf of %d, the node itself and +Inf", i, n.Info, n.Child, n.Split, leaves)
		case n.Info >= 0:
		case int(n.Child) <= i || int(n.Child) >= len(e.Nodes)-1:
			return fmt.Errorf("node %d: got child %d, want two nodes after it, of %d", i, n.Child, len(e.Nodes))
		case kind > NaN|Member || kind&(Equal|Member) == Equal|Member:
			return fmt.Errorf("node %d: got kind %d, want 0 to 5", i, kind)
		case kind&Member != 0 && (n.set() < 0 || int(n.set()) >= len(e.Members)):
			return fmt.Errorf("node %d: got a set at %d, want 0 to %d", i, n.set(), len(e.Members)-1)
		}
		e.plain = e.plain && (n.Info >= 0 || kind&(Equal|Member) == 0)
	}
	for i, root := range e.Roots {
		if root < 0 || int(root) >= len(e.Nodes) {
			return fmt.Errorf("tree %d: got node %d, want 0 to %d", i, root, len(e.Nodes)-1)
		}
	}
	return e.checkWeights()
}

// checkWeights checks the lists of weights that are not [leaves,Outputs].
func (e *Ensemble[T, I]) checkWeights() error {
	before := I(0)
	for i, at := range e.Spans {
		if at < before || int(at) > len(e.Weights) {
			return fmt.Errorf("leaf %d: got weights from %d, want %d to %d", i, at, before, len(e.Weights))
		}
		before = at
	}
	for i, target := range e.Targets {
		if target < 0 || int(target) >= e.Outputs {
			return fmt.Errorf("weight %d: got target %d, want 0 to %d", i, target, e.Outputs-1)
		}
	}
	return nil
}

// set returns the place of the first member of the set of a node.
func (n *Node[T, I]) set() I { return *(*I)(unsafe.Pointer(&n.Split)) }

// Rows computes the scores [rows,Outputs] of x [rows,Features]. seen is nil or
// has one element for each score, and becomes true where a leaf has a weight
// for it; it may be nil only for sums and averages. scratch is as long as x.
func (e *Ensemble[T, I]) Rows(scores []T, seen []bool, x, scratch []T) {
	clear(scores)
	clear(seen)
	rows := len(scores) / e.Outputs
	if !e.plain || hasNaN(x) {
		for r := range rows {
			row := x[r*e.Features:][:e.Features]
			for _, root := range e.Roots {
				e.join(scores, seen, r, e.walk(root, row))
			}
		}
		e.average(scores)
		return
	}
	whole := rows - rows%lanes
	byFeature(scratch, x, e.Features, whole)
	if e.Outputs == 1 && e.Join <= Average && e.Spans == nil && seen == nil {
		e.sums(scores[:whole], scratch)
	} else {
		e.blocks(scores, seen, scratch, whole)
	}
	for r := whole; r < rows; r++ {
		e.row(scores, seen, x[r*e.Features:][:e.Features], r)
	}
	e.average(scores)
}

// sums adds the weights of the only target to scores, a multiple of lanes. x is
// as byFeature writes it.
func (e *Ensemble[T, I]) sums(scores, x []T) {
	var at [lanes]I
	for _, root := range e.Roots {
		for r := 0; r < len(scores); r += lanes {
			e.walkRows(&at, root, x[r*e.Features:])
			sums := scores[r:][:lanes]
			for k, leaf := range at {
				sums[k] += e.Weights[leaf]
			}
		}
	}
}

// blocks is sums for any weights and number of scores.
func (e *Ensemble[T, I]) blocks(scores []T, seen []bool, x []T, rows int) {
	var at [lanes]I
	for _, root := range e.Roots {
		for r := 0; r < rows; r += lanes {
			e.walkRows(&at, root, x[r*e.Features:])
			for k, leaf := range at {
				e.join(scores, seen, r+k, leaf)
			}
		}
	}
}

// row computes the scores of one row, several trees at a time.
func (e *Ensemble[T, I]) row(scores []T, seen []bool, row []T, r int) {
	var at [lanes]I
	t := 0
	for ; t+lanes <= len(e.Roots); t += lanes {
		e.walkTrees(&at, e.Roots[t:][:lanes], row)
		for _, leaf := range at {
			e.join(scores, seen, r, leaf)
		}
	}
	for _, root := range e.Roots[t:] {
		e.join(scores, seen, r, e.walk(root, row))
	}
}

// join adds the weights of a leaf to the scores of a row.
func (e *Ensemble[T, I]) join(scores []T, seen []bool, row int, leaf I) {
	scores = scores[row*e.Outputs:][:e.Outputs]
	if seen != nil {
		seen = seen[row*e.Outputs:][:e.Outputs]
	}
	if e.Spans == nil {
		for target, w := range e.Weights[int(leaf)*e.Outputs:][:e.Outputs] {
			e.joinOne(scores, seen, target, w)
		}
		return
	}
	for at := e.Spans[leaf]; at < e.Spans[leaf+1]; at++ {
		e.joinOne(scores, seen, int(e.Targets[at]), e.Weights[at])
	}
}

// joinOne joins a weight with the score of a target.
func (e *Ensemble[T, I]) joinOne(scores []T, seen []bool, target int, w T) {
	switch {
	case e.Join <= Average:
		scores[target] += w
	case !seen[target] || e.Join == Min && w < scores[target] || e.Join == Max && w > scores[target]:
		scores[target] = w
	}
	if seen != nil {
		seen[target] = true
	}
}

// average divides sums by the number of trees.
func (e *Ensemble[T, I]) average(scores []T) {
	if e.Join == Average {
		for i := range scores {
			scores[i] /= T(len(e.Roots))
		}
	}
}

// hasNaN reports whether some number is NaN.
func hasNaN[T kernel.Float](x []T) bool {
	for _, v := range x {
		if v != v {
			return true
		}
	}
	return false
}
