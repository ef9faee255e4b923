package ml

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// svmOps compare rows with support vectors.
var svmOps = map[string]lift.Operator{
	"SVMClassifier": lifted(liftSVMClassifier),
	"SVMRegressor":  lifted(liftSVMRegressor),
}

// supportVectors are what both operators have.
type supportVectors struct {
	*lift.Node
	kind                 string // of the kernel
	gamma, coef0, degree float64
	vectors              []float32
	coefficients, rho    []float32
	transform            string
}

// takeSupport takes the attributes of both operators.
func takeSupport(n *lift.Node) *supportVectors {
	s := &supportVectors{Node: n, kind: lift.TakeOr(n, "kernel_type", "LINEAR"), transform: takeTransform(n)}
	params, _ := lift.Take[[]float32](n, "kernel_params")
	s.vectors, _ = lift.Take[[]float32](n, "support_vectors")
	s.coefficients, _ = lift.Take[[]float32](n, "coefficients")
	s.rho, _ = lift.Take[[]float32](n, "rho")
	if len(params) == 3 {
		s.gamma, s.coef0, s.degree = float64(params[0]), float64(params[1]), float64(params[2])
	} else if len(params) != 0 || s.kind != "LINEAR" {
		n.Fail("kernel_params: got %d numbers, want gamma, coef0 and degree", len(params))
	}
	if len(s.coefficients) == 0 || len(s.rho) == 0 {
		n.Fail("got %d coefficients and %d numbers in rho, want one or more of each", len(s.coefficients), len(s.rho))
	}
	return s
}

// similar returns the kernel function of each row of x and each of count
// vectors, f32[N,count].
func (s *supportVectors) similar(x *ir.Value, vectors []float32, count int) *ir.Value {
	n, dt := s.Node, dtype.F32
	switch s.kind {
	case "LINEAR", "POLY", "SIGMOID":
	case "RBF":
		if len(vectors) == 0 || len(vectors)%count != 0 {
			n.Fail("support_vectors: got %d numbers, want as many for each of %d vectors", len(vectors), count)
			return nil
		}
		table := arrayOf(n, "vectors", dt, wide(vectors), count, len(vectors)/count)
		distance := n.Call("row_distance", []*ir.Value{x, table})
		return n.Call("exp", []*ir.Value{n.WithNumber("mul", distance, -s.gamma, dt)})
	default:
		n.Fail("kernel_type: got %.80q, want LINEAR, POLY, RBF or SIGMOID", s.kind)
		return nil
	}
	y := product(n, "support_vectors", x, vectors, count, nil)
	if s.kind == "LINEAR" {
		return y
	}
	y = n.WithNumber("add", n.WithNumber("mul", y, s.gamma, dt), s.coef0, dt)
	if s.kind == "SIGMOID" {
		return n.Call("tanh", []*ir.Value{y})
	}
	switch s.degree {
	case 2:
		return n.Call("mul", []*ir.Value{y, y})
	case 3:
		return n.Call("mul", []*ir.Value{n.Call("mul", []*ir.Value{y, y}), y})
	}
	return n.WithNumber("pow", y, s.degree, dt)
}

// liftSVMRegressor adds up the kernel function of x and the support vectors,
// each times its coefficient; without support vectors it is a linear function.
func liftSVMRegressor(n *lift.Node) {
	if n.Operand(1) == nil {
		return
	}
	s := takeSupport(n)
	count := lift.TakeOr(n, "n_supports", int64(0))
	oneClass := lift.TakeOr(n, "one_class", int64(0)) != 0
	n.NoMoreAttrs()
	if n.Err == nil && (count < 0 || count > 1<<24 || count > 0 && int(count) > len(s.coefficients)) {
		n.Fail("n_supports: got %d, want 0 to the number of the %d coefficients", count, len(s.coefficients))
	}
	x := as(n, rowsOf(n, 0), dtype.F32)
	if n.Err != nil {
		return
	}
	var y *ir.Value
	if count > 0 {
		y = s.similar(x, s.vectors, int(count))
		y = product(n, "coefficients", y, s.coefficients[:count], 1, s.rho[:1])
	} else {
		y = product(n, "coefficients", x, s.coefficients, 1, s.rho[:1])
	}
	if oneClass {
		inside := n.WithNumber("greater", y, 0, dtype.F32)
		y = n.Call("where", []*ir.Value{inside, n.Scalar(dtype.F32, 1), n.Scalar(dtype.F32, -1)})
	}
	if n.Err == nil {
		n.Finish("identity", []*ir.Value{y}) // ONNX Runtime ignores post_transform
	}
}

// svmClasses is an SVMClassifier while it is lifted.
type svmClasses struct {
	*supportVectors
	labels    classes
	perClass  []int64
	probA     []float32
	probB     []float32
	supporter int // the number of support vectors
}

// liftSVMClassifier compares each pair of classes. The label is the class that
// wins most often.
func liftSVMClassifier(n *lift.Node) {
	if n.Operand(1) == nil {
		return
	}
	c := &svmClasses{supportVectors: takeSupport(n), labels: takeClasses(n, "classlabels_ints")}
	c.perClass, _ = lift.Take[[]int64](n, "vectors_per_class")
	c.probA, _ = lift.Take[[]float32](n, "prob_a")
	c.probB, _ = lift.Take[[]float32](n, "prob_b")
	n.NoMoreAttrs()
	for _, count := range c.perClass {
		if count < 0 || count > 1<<24 {
			n.Fail("vectors_per_class: got %d, want 0 to 2^24", count)
			return
		}
		c.supporter += int(count)
	}
	x := as(n, rowsOf(n, 0), dtype.F32)
	if n.Err != nil {
		return
	}
	if c.supporter == 0 {
		c.linear(x)
		return
	}
	c.check()
	scores := c.scores(x)
	if n.Err != nil {
		return
	}
	c.vote(scores)
	scores = as(n, scores, dtype.F32)
	switch {
	case len(c.probA) > 0:
		scores = postTransform(n, c.transform, c.probabilities(scores))
	case c.labels.count > 2:
		scores = postTransform(n, c.transform, scores)
	case c.transform == "NONE":
		scores = n.Call("concat", []*ir.Value{n.Call("neg", []*ir.Value{scores}), scores}, lift.IntAttr("axis", 1))
	default:
		scores = secondClass(n, scores, c.transform)
	}
	n.Output(1, "identity", []*ir.Value{scores})
}

// pairs returns the number of pairs of classes.
func (c *svmClasses) pairs() int { return c.labels.count * (c.labels.count - 1) / 2 }

// check compares the lengths of attributes.
func (c *svmClasses) check() {
	n, classes := c.Node, c.labels.count
	switch {
	case n.Err != nil:
	case classes < 2 || classes > 1<<12:
		n.Fail("got labels of %d classes, want 2 to 2^12", classes)
	case len(c.perClass) != classes:
		n.Fail("vectors_per_class: got %d, want one for each of %d classes", len(c.perClass), classes)
	case len(c.coefficients) < (classes-1)*c.supporter:
		n.Fail("coefficients: got %d, want %d for each of %d support vectors", len(c.coefficients), classes-1, c.supporter)
	case len(c.rho) < c.pairs():
		n.Fail("rho: got %d, want one for each of %d pairs of classes", len(c.rho), c.pairs())
	case len(c.probA) != len(c.probB) || len(c.probA) > 0 && len(c.probA) < c.pairs():
		n.Fail("got %d in prob_a and %d in prob_b, want none or one for each of %d pairs of classes", len(c.probA), len(c.probB), c.pairs())
	}
}

// scores returns the score of each pair of classes, f64[N,pairs]: above zero
// where the first one wins. ONNX Runtime sums in f64 too.
func (c *svmClasses) scores(x *ir.Value) *ir.Value {
	n, classes := c.Node, c.labels.count
	k := as(n, c.similar(x, c.vectors, c.supporter), dtype.F64)
	if n.Err != nil {
		return nil
	}
	starts := make([]int, classes+1)
	for i, count := range c.perClass {
		starts[i+1] = starts[i] + int(count)
	}
	pairs := c.pairs()
	if n.Grow(c.supporter * pairs / 8); n.Err != nil {
		return nil
	}
	factors := make([]float64, c.supporter*pairs)
	pair := 0
	for i := range classes {
		for j := i + 1; j < classes; j++ {
			for v := starts[i]; v < starts[i+1]; v++ {
				factors[v*pairs+pair] = float64(c.coefficients[(j-1)*c.supporter+v])
			}
			for v := starts[j]; v < starts[j+1]; v++ {
				factors[v*pairs+pair] = float64(c.coefficients[i*c.supporter+v])
			}
			pair++
		}
	}
	y := n.Call("matmul", []*ir.Value{k, arrayOf(n, "coefficients", dtype.F64, factors, c.supporter, pairs)})
	return n.Call("add", []*ir.Value{y, listOf(n, "rho", dtype.F64, wide(c.rho[:pairs]))})
}

// vote binds output 0 to the labels of the classes that win most often.
func (c *svmClasses) vote(scores *ir.Value) {
	n, classes := c.Node, c.labels.count
	wins := as(n, n.WithNumber("greater", scores, 0, dtype.F64), dtype.F32)
	change, start := make([]float64, c.pairs()*classes), make([]float64, classes)
	pair := 0
	for i := range classes {
		for j := i + 1; j < classes; j++ {
			change[pair*classes+i], change[pair*classes+j] = 1, -1
			start[j]++
			pair++
		}
	}
	votes := n.Call("matmul", []*ir.Value{wins, arrayOf(n, "votes", dtype.F32, change, c.pairs(), classes)})
	votes = n.Call("add", []*ir.Value{votes, listOf(n, "votes.start", dtype.F32, start)})
	c.labels.finish(n, n.Call("arg_max", []*ir.Value{votes}, lift.IntAttr("axis", 1), lift.IntAttr("keepdims", 0)))
}

// probabilities returns those of the classes, from the scores of pairs.
func (c *svmClasses) probabilities(scores *ir.Value) *ir.Value {
	n, dt := c.Node, dtype.F32
	y := n.Call("mul", []*ir.Value{scores, listOf(n, "prob_a", dt, wide(c.probA[:c.pairs()]))})
	y = n.Call("add", []*ir.Value{y, listOf(n, "prob_b", dt, wide(c.probB[:c.pairs()]))})
	y = n.Call("sub", []*ir.Value{n.Scalar(dt, 1), n.Call("sigmoid", []*ir.Value{y})})
	const least = float32(1e-7)
	y = n.Call("clip", []*ir.Value{y, n.Scalar(dt, float64(least)), n.Scalar(dt, float64(1-least))})
	return n.Call("couple_pairs", []*ir.Value{y}, op.Attr{Name: "classes", Value: int64(c.labels.count)})
}

// linear finishes a classifier without support vectors: a linear function for
// each class.
func (c *svmClasses) linear(x *ir.Value) {
	n, classes := c.Node, c.labels.count
	rho := make([]float32, classes)
	for i := range rho {
		rho[i] = c.rho[0] // ONNX Runtime adds the first one to all
	}
	y := product(n, "coefficients", x, c.coefficients, classes, rho)
	index := n.Call("arg_max", []*ir.Value{y}, lift.IntAttr("axis", 1), lift.IntAttr("keepdims", 0))
	if classes == 2 && len(c.probA) == 0 {
		index = c.second(y, index)
	}
	c.labels.finish(n, index)
	if classes > 1 {
		y = postTransform(n, c.transform, y)
	}
	n.Output(1, "identity", []*ir.Value{y})
}

// second replaces the index of the larger of two scores by 1 where that score
// is high enough, as ONNX Runtime does.
func (c *svmClasses) second(y, index *ir.Value) *ir.Value {
	n, dt := c.Node, dtype.F32
	least, name := 0.5, "greater_or_equal"
	for _, v := range c.coefficients {
		if !(v >= 0) {
			least, name = 0, "greater"
		}
	}
	most := n.Call("reduce_max", []*ir.Value{y, n.Ints([]int64{1})}, lift.IntAttr("keepdims", 0))
	return n.Call("where", []*ir.Value{n.WithNumber(name, most, least, dt), n.Scalar(dtype.I64, 1), index})
}
