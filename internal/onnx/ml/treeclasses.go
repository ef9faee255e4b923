package ml

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
)

// treeClasses is a TreeEnsembleClassifier while it is lifted.
type treeClasses struct {
	*lift.Node
	forest    *forest
	labels    classes
	base      []float64
	transform string
	only      int // of two classes the one of all weights; -1 if both have some
}

// liftTreeClassifier joins the weights of leaves to a score for each class. The
// scores of two classes follow rules of their own, which are those of ONNX
// Runtime: exporters write models for them.
func liftTreeClassifier(n *lift.Node) {
	if n.Operand(1) == nil {
		return
	}
	c := &treeClasses{Node: n, labels: takeClasses(n, "classlabels_int64s"), transform: takeTransform(n), only: -1}
	if n.Err != nil {
		return
	}
	c.forest, c.base = takeForest(n, "class", c.labels.count)
	n.NoMoreAttrs()
	x := rowsOf(n, 0)
	if n.Err != nil {
		return
	}
	if c.labels.count == 2 {
		if c.only = c.forest.onlyClass(); c.only >= 0 {
			c.forest.dropOthers()
		}
	}
	scored := c.forest.scored()
	wantSeen := c.labels.count == 2 && c.only < 0 && scored[1] == sometimes
	for _, how := range scored {
		wantSeen = wantSeen || how == sometimes && c.labels.count > 2 && len(c.base) == 0
	}
	y, seen := c.forest.emit(n, x, "SUM", wantSeen)
	if n.Err != nil {
		return
	}
	switch {
	case c.labels.count == 2:
		c.two(y, seen)
	case len(c.base) != 0 && len(c.base) != c.labels.count:
		n.Fail("base_values: got %d, want one for each of %d classes", len(c.base), c.labels.count)
	case c.labels.count == 1:
		c.one(y)
	default:
		c.many(y, seen, scored)
	}
}

// many finishes a classifier of three classes or more: the label is that of
// the largest score, among the classes that have one.
func (c *treeClasses) many(y, seen *ir.Value, scored []int) {
	n, dt := c.Node, c.forest.dt
	candidates := y
	if len(c.base) > 0 {
		y = n.Call("add", []*ir.Value{y, listOf(n, "base", dt, c.base)})
		candidates = y
	} else if seen != nil {
		candidates = n.Call("where", []*ir.Value{seen, y, n.Scalar(dt, math.Inf(-1))})
	} else {
		without := make([]float64, len(scored))
		some := false
		for i, how := range scored {
			if how == never {
				without[i], some = math.Inf(-1), true
			}
		}
		if some {
			candidates = n.Call("add", []*ir.Value{y, listOf(n, "without", dt, without)})
		}
	}
	c.labels.finish(n, n.Call("arg_max", []*ir.Value{candidates}, lift.IntAttr("axis", 1), lift.IntAttr("keepdims", 0)))
	n.Output(1, "identity", []*ir.Value{as(n, postTransform(n, c.transform, y), dtype.F32)})
}

// one finishes a classifier of one class, whose labels are 1 and 0.
func (c *treeClasses) one(y *ir.Value) {
	n, dt := c.Node, c.forest.dt
	if len(c.base) > 0 {
		y = n.Call("add", []*ir.Value{y, listOf(n, "base", dt, c.base)})
	}
	c.labels.finishSign(n, n.WithNumber("greater", y, 0, dt))
	if c.transform == "PROBIT" {
		y = postTransform(n, c.transform, y)
	}
	n.Output(1, "identity", []*ir.Value{as(n, y, dtype.F32)})
}

// two finishes a classifier of two classes. A row that has a score for the
// second class has two, another one has the score of the positive class alone.
func (c *treeClasses) two(y, seen *ir.Value) {
	n := c.Node
	if len(c.base) > 2 {
		n.Fail("base_values: got %d, want at most one for each of 2 classes", len(c.base))
		return
	}
	columns := func(v *ir.Value, at int64) *ir.Value {
		return n.Call("slice", []*ir.Value{v, n.Ints([]int64{at}), n.Ints([]int64{at + 1}), n.Ints([]int64{1})})
	}
	var positive, scores *ir.Value
	switch {
	case c.only == 0:
		positive, scores = c.single(y)
	case c.only == 1:
		positive, scores = c.pair(n.WithNumber("mul", y, 0, c.forest.dt), y, false)
	case seen == nil:
		positive, scores = c.pair(columns(y, 0), columns(y, 1), true)
	default:
		has, y0 := columns(seen, 1), columns(y, 0)
		p, s := c.pair(y0, columns(y, 1), true)
		p0, s0 := c.single(y0)
		positive = n.Call("where", []*ir.Value{has, p, p0})
		scores = n.Call("where", []*ir.Value{has, s, s0})
	}
	threshold := 0.0
	if c.only >= 0 && c.allPositive() {
		threshold = 0.5
	}
	c.labels.finishSign(n, n.WithNumber("greater", positive, threshold, c.forest.dt))
	n.Output(1, "identity", []*ir.Value{as(n, scores, dtype.F32)})
}

// pair returns the score that decides, and both scores, of rows that have a
// score for the second class. One for the first class that no leaf has is 0.
func (c *treeClasses) pair(y0, y1 *ir.Value, first bool) (positive, scores *ir.Value) {
	n, dt := c.Node, c.forest.dt
	switch len(c.base) {
	case 2: // ONNX Runtime adds the second one to the first score
		y1 = n.WithNumber("add", y0, c.base[1], dt)
		y0 = n.Call("neg", []*ir.Value{y1})
	case 1:
		y0 = n.WithNumber("add", y0, c.base[0], dt)
	}
	if !first {
		y0 = n.WithNumber("mul", y1, 0, dt)
	}
	both := n.Call("concat", []*ir.Value{y0, y1}, lift.IntAttr("axis", 1))
	return y1, postTransform(n, c.transform, both)
}

// single is pair for rows without a score for the second class.
func (c *treeClasses) single(y *ir.Value) (positive, scores *ir.Value) {
	n, dt := c.Node, c.forest.dt
	join := func(a, b *ir.Value) *ir.Value {
		return n.Call("concat", []*ir.Value{a, b}, lift.IntAttr("axis", 1))
	}
	minus := func(v *ir.Value) *ir.Value { return n.Call("neg", []*ir.Value{v}) }
	if len(c.base) == 2 {
		y = n.WithNumber("add", y, c.base[0], dt)
		return y, postTransform(n, c.transform, join(y, n.WithNumber("mul", y, 0, dt)))
	}
	if len(c.base) == 1 {
		y = n.WithNumber("add", y, c.base[0], dt)
	}
	other := minus(y)
	if c.only >= 0 && c.allPositive() && c.transform != "LOGISTIC" {
		other = n.Call("sub", []*ir.Value{n.Scalar(dt, 1), y})
	}
	both := join(other, y)
	if c.transform == "LOGISTIC" || c.transform == "PROBIT" {
		both = postTransform(n, c.transform, both)
	}
	return y, both
}

// onlyClass returns the class of all weights, -1 if there are several.
func (f *forest) onlyClass() int {
	class := -1
	for _, leaf := range f.leaves {
		for _, w := range leaf {
			if class >= 0 && w.target != class {
				return -1
			}
			class = w.target
		}
	}
	return class
}

// dropOthers makes the only class of all weights the only target.
func (f *forest) dropOthers() {
	f.targets = 1
	for i, leaf := range f.leaves {
		for k := range leaf {
			f.leaves[i][k].target = 0
		}
	}
}

// allPositive reports whether no weight is below zero.
func (c *treeClasses) allPositive() bool {
	for _, leaf := range c.forest.leaves {
		for _, w := range leaf {
			if w.weight < 0 {
				return false
			}
		}
	}
	return true
}
