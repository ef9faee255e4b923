package ml

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// linearOps compute linear functions of the features.
var linearOps = map[string]lift.Operator{
	"LinearClassifier": lifted(liftLinearClassifier),
	"LinearRegressor":  lifted(liftLinearRegressor),
}

// maxClasses bounds the number of classes and targets of a model.
const maxClasses = 1 << 16

// liftLinearRegressor computes x * coefficients^T + intercepts.
func liftLinearRegressor(n *lift.Node) {
	if n.Operand(1) == nil {
		return
	}
	targets := lift.TakeOr(n, "targets", int64(1))
	coefficients, _ := lift.Take[[]float32](n, "coefficients")
	intercepts, _ := lift.Take[[]float32](n, "intercepts")
	transform := takeTransform(n)
	n.NoMoreAttrs()
	if n.Err == nil && (targets < 1 || targets > maxClasses) {
		n.Fail("targets: got %d, want 1 to %d", targets, maxClasses)
	}
	x := as(n, rowsOf(n, 0), dtype.F32)
	if n.Err != nil {
		return
	}
	if len(intercepts) != int(targets) { // as ONNX Runtime takes them
		intercepts = nil
	}
	y := product(n, "coefficients", x, coefficients, int(targets), intercepts)
	if targets == 1 && transform != "PROBIT" {
		transform = "NONE" // one score is no distribution
	}
	n.Finish("identity", []*ir.Value{postTransform(n, transform, y)})
}

// product returns x * rows^T, plus a number for each of count rows.
func product(n *lift.Node, name string, x *ir.Value, rows []float32, count int, plus []float32) *ir.Value {
	if n.Err != nil {
		return nil
	}
	if len(rows) == 0 || len(rows)%count != 0 {
		n.Fail("%s: got %d numbers, want as many for each of %d rows", name, len(rows), count)
		return nil
	}
	features := len(rows) / count
	if sh := x.Type.Shape; sh != nil {
		if have, ok := sh.Dim(sh.Rank() - 1).Size(); ok && have != features {
			n.Fail("%s: got %d features in each row, want the %d of %s", name, features, have, x.Type)
			return nil
		}
	}
	columns := make([]float64, len(rows))
	for i, v := range rows {
		columns[i%features*count+i/features] = float64(v)
	}
	y := n.Call("matmul", []*ir.Value{x, arrayOf(n, name, dtype.F32, columns, features, count)})
	if plus == nil {
		return y
	}
	return n.Call("add", []*ir.Value{y, listOf(n, name+".plus", dtype.F32, wide(plus))})
}

// liftLinearClassifier computes a score for each class, or one of the second of
// two classes, and the label of the class with the highest one.
func liftLinearClassifier(n *lift.Node) {
	if n.Operand(1) == nil {
		return
	}
	coefficients, _ := lift.Take[[]float32](n, "coefficients")
	intercepts, _ := lift.Take[[]float32](n, "intercepts")
	transform := takeTransform(n)
	c := takeClasses(n, "classlabels_ints")
	n.Ignore("multi_class") // says how the model was trained
	n.NoMoreAttrs()
	scores := len(intercepts)
	if scores == 0 {
		scores = c.count
	}
	two := scores == 1 && c.count == 2
	if n.Err == nil && scores != c.count && scores != 1 {
		n.Fail("got %d intercepts for %d classes, want one for each, or one", scores, c.count)
	}
	x := as(n, rowsOf(n, 0), dtype.F32)
	if n.Err != nil {
		return
	}
	y := product(n, "coefficients", x, coefficients, scores, intercepts)
	if scores == 1 {
		c.finishSign(n, n.WithNumber("greater", y, 0, dtype.F32))
	} else {
		c.finish(n, n.Call("arg_max", []*ir.Value{y}, lift.IntAttr("axis", 1), lift.IntAttr("keepdims", 0)))
	}
	switch {
	case two:
		y = secondClass(n, y, transform)
	case scores == 1 && transform != "PROBIT":
	default:
		y = postTransform(n, transform, y)
	}
	n.Output(1, "identity", []*ir.Value{y})
}

// secondClass returns the scores of both classes of which y, f32[N,1], has the
// score of the second one.
func secondClass(n *lift.Node, y *ir.Value, transform string) *ir.Value {
	switch transform {
	case "PROBIT":
		y = postTransform(n, transform, y)
	case "LOGISTIC":
		y = n.Call("sigmoid", []*ir.Value{y})
	}
	other := n.Call("sub", []*ir.Value{n.Scalar(dtype.F32, 1), y})
	return n.Call("concat", []*ir.Value{other, y}, lift.IntAttr("axis", 1))
}

// classes are the labels of a classifier's classes: strings or integers.
type classes struct {
	words []string
	ints  []int64
	count int
}

// takeClasses takes the labels from the attributes.
func takeClasses(n *lift.Node, intsName string) classes {
	var c classes
	c.words, _ = lift.Take[[]string](n, "classlabels_strings")
	c.ints, _ = lift.Take[[]int64](n, intsName)
	if c.count = len(c.words); c.count == 0 {
		c.count = len(c.ints)
	}
	if n.Err == nil && (c.count == 0 || c.count > maxClasses) {
		n.Fail("got labels of %d classes, want 1 to %d", c.count, maxClasses)
	}
	return c
}

// finish binds output 0 to the labels of the classes that index, i64[N], names.
func (c *classes) finish(n *lift.Node, index *ir.Value) { finishLabels(n, c.words, c.ints, index) }

// finishSign binds output 0 to the label of the second class where positive,
// bool[N,1], holds, and to that of the first class elsewhere. If there are not
// two classes the labels are 1 and 0, as in ONNX Runtime.
func (c *classes) finishSign(n *lift.Node, positive *ir.Value) {
	words, ints := c.words, c.ints
	if len(words) > 0 && len(words) != 2 {
		words = []string{"0", "1"}
	}
	if len(ints) != 2 {
		ints = []int64{0, 1}
	}
	flat := n.Call("squeeze", []*ir.Value{positive, n.Ints([]int64{1})})
	index := n.Call("cast", []*ir.Value{flat}, op.Attr{Name: "to", Value: dtype.I64})
	finishLabels(n, words, ints, index)
}
