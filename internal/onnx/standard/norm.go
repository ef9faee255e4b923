package standard

import (
	"slices"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var normTable = map[string]lift.Operator{
	"Softmax":    lift.Lifted(0, liftSoftmax),
	"LogSoftmax": lift.Lifted(0, liftSoftmax),
	"Hardmax":    lift.Lifted(0, liftSoftmax),

	"BatchNormalization":    lift.Lifted(0, liftBatchNorm),
	"InstanceNormalization": lift.Since(0),
	"LayerNormalization":    lift.Lifted(0, LiftLayerNorm), // ONNX has it from opset 17 on, ONNX Runtime writes it into older models too
	"GroupNormalization":    lift.Since(21),                // that of opset 18 is deprecated: its scale and bias are per group

	"LRN":                       lift.Lifted(0, lift.InSingle(lift.Plain)),
	"MeanVarianceNormalization": lift.Lifted(9, lift.InSingle(liftMeanVariance)),
	"LpNormalization":           lift.Lifted(0, lift.InSingle(liftLpNorm)),
}

// liftSoftmax lifts the form of before opset 13, which is over all axes from
// the given one on, 1 by default, as if they were one.
func liftSoftmax(n *lift.Node) {
	if n.Opset >= 13 {
		lift.Plain(n)
		return
	}
	axis := lift.TakeOr(n, "axis", int64(1))
	n.NoMoreAttrs()
	def := n.Registry.LookupONNX(n.OpName)
	if def == nil {
		n.Unsupported("no such operator")
		return
	}
	if len(n.Args) != 1 {
		n.Fail("got %d operands, want 1", len(n.Args))
		return
	}
	rank, known := n.Rank(0)
	if known && (axis < int64(-rank) || axis >= int64(max(rank, 1))) {
		n.Fail("axis: got %d, want %d to %d: %w", axis, -rank, rank-1, shape.ErrShape)
		return
	}
	last := op.Attr{Name: "axis", Value: int64(-1)}
	if axis == -1 || known && axis == int64(rank-1) {
		n.Finish(def.Name, n.Args, last)
		return
	}
	flat := n.Call("flatten", n.Args, op.Attr{Name: "axis", Value: axis})
	y := n.Call(def.Name, []*ir.Value{flat}, last)
	n.Finish("reshape", []*ir.Value{y, n.ShapeOf(n.Args[0])}, op.Attr{Name: "allowzero", Value: int64(1)})
}

// liftBatchNorm lifts the forms of all opsets. From opset 7 to 13 further
// outputs are the only sign of training, also where nothing reads them.
func liftBatchNorm(n *lift.Node) {
	if n.Opset >= 14 {
		batchNorm14(n)
		return
	}
	wantInference(n)
	perElement := n.Opset < 9 && lift.TakeOr(n, "spatial", int64(1)) == 0
	if outputs := n.Proto.Outputs; n.Opset >= 7 && slices.ContainsFunc(outputs[1:], func(name string) bool { return name != "" }) {
		n.Remark("it has outputs of training, and takes the statistics of its batch")
		if perElement {
			n.Unsupported("training with spatial 0")
		}
		n.NoOutputs(3) // the statistics of the batch: the other two are those of all batches, as in opset 14
		if n.Err != nil {
			return
		}
		newest := *n.Proto
		newest.Outputs = outputs[:min(3, len(outputs))]
		n.Proto = &newest
		n.FinishNewest(n.Args, lift.IntAttr("training_mode", 1))
		return
	}
	n.NoOutputs(1)
	n.Ignore("momentum")
	if perElement {
		batchNormPerElement(n)
		return
	}
	lift.Plain(n)
}

// batchNormPerElement lifts the form of before opset 9 whose statistics are of
// each element of a sample, and not of each channel.
func batchNormPerElement(n *lift.Node) {
	epsilon := float64(lift.TakeOr(n, "epsilon", float32(1e-5)))
	n.NoMoreAttrs()
	if n.Operand(5) == nil {
		return
	}
	x, scale, bias, mean, variance := n.Args[0], n.Args[1], n.Args[2], n.Args[3], n.Args[4]
	deviation := n.Call("sqrt", []*ir.Value{n.WithNumber("add", variance, epsilon, x.Type.DType)})
	y := n.Call("div", []*ir.Value{n.Call("sub", []*ir.Value{x, mean}), deviation})
	n.Output(0, "add", []*ir.Value{n.Call("mul", []*ir.Value{y, scale}), bias})
}

// batchNorm14 lifts the form that says when it trains. The momentum counts
// then only, and the statistics are those of the batch.
func batchNorm14(n *lift.Node) {
	if i := n.AttrIndex("training_mode"); i < 0 || n.Attrs[i].Value == int64(0) {
		for i := 1; i < len(n.Proto.Outputs); i++ {
			if n.Wanted(i) {
				n.Unsupported("output %d without training_mode 1", i)
			}
		}
		n.Ignore("momentum")
	}
	lift.Plain(n)
}

// liftMeanVariance makes mean 0 and deviation 1 along axes.
func liftMeanVariance(n *lift.Node) {
	axes := lift.TakeOr(n, "axes", []int64{0, 2, 3})
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	along := n.Ints(axes)
	centred := n.Call("sub", []*ir.Value{x, n.Call("reduce_mean", []*ir.Value{x, along})})
	variance := n.Call("reduce_mean", []*ir.Value{n.Call("mul", []*ir.Value{centred, centred}), along})
	n.Finish("div", []*ir.Value{centred, n.WithNumber("add", n.Call("sqrt", []*ir.Value{variance}), 1e-9, x.Type.DType)})
}

// liftLpNorm divides by the norm along an axis; zeros stay.
func liftLpNorm(n *lift.Node) {
	axis, p := lift.TakeOr(n, "axis", int64(-1)), lift.TakeOr(n, "p", int64(2))
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	name, ok := map[int64]string{1: "reduce_l1", 2: "reduce_l2"}[p]
	if !ok {
		n.Unsupported("p %d", p)
		return
	}
	norm := n.Call(name, []*ir.Value{x, n.Ints([]int64{axis})})
	none := n.WithNumber("equal", norm, 0, x.Type.DType)
	n.Finish("where", []*ir.Value{none, x, n.Call("div", []*ir.Value{x, norm})})
}

// power is |x| to the power of p.
func power(n *lift.Node, x *ir.Value, p float64) *ir.Value {
	if p == 2 {
		return n.Call("mul", []*ir.Value{x, x})
	}
	return n.WithNumber("pow", n.Call("abs", []*ir.Value{x}), p, x.Type.DType)
}

// root ends the node with the p-th root of x.
func root(n *lift.Node, x *ir.Value, p float64) {
	if x == nil || p == 2 {
		n.Finish("sqrt", []*ir.Value{x})
		return
	}
	n.Finish("pow", []*ir.Value{x, n.Scalar(n.Args[0].Type.DType, 1/p)})
}

// LiftLayerNorm is a normalisation of the axes from one on, by mean and
// variance or by the mean square: LayerNormalization, RMSNormalization and
// SimplifiedLayerNormalization, which is the latter in ONNX Runtime.
func LiftLayerNorm(n *lift.Node) {
	n.IgnoreAllBut("axis", "epsilon", "stash_type")
	name := "layer_normalization"
	if n.Proto.OpType != "LayerNormalization" {
		name = "rms_normalization"
		n.NoOutputs(1)
	}
	attrs := []op.Attr{lift.IntAttr("axis", lift.TakeOr(n, "axis", int64(-1))), {Name: "epsilon", Value: float64(lift.TakeOr(n, "epsilon", float32(1e-5)))}}
	if n.OpName == "SimplifiedLayerNormalization" {
		n.Ignore("stash_type")
	} else {
		attrs = append(attrs, lift.IntAttr("stash_type", lift.TakeOr(n, "stash_type", int64(1))))
	}
	n.NoMoreAttrs()
	if !n.Operands(2, n.Def(name).MaxArgs) {
		return
	}
	if !scalesRows(n, attrs[0].Value.(int64)) {
		n.Finish(name, n.Args, attrs...)
		return
	}
	// The operator scales the elements of a row: what differs from row to row
	// is multiplied and added behind it.
	n.NoOutputs(1)
	y := n.Call(name, []*ir.Value{n.Args[0], n.Scalar(n.Args[0].Type.DType, 1)}, attrs...)
	if bias := n.Arg(2); bias != nil {
		n.Finish("add", []*ir.Value{n.Call("mul", []*ir.Value{y, n.Args[1]}), bias})
		return
	}
	n.Finish("mul", []*ir.Value{y, n.Args[1]})
}

// scalesRows reports whether the scale or the bias differs from row to row: it
// broadcasts to x, and has more axes than those that are normalised. Axes of
// one element before these are dropped.
func scalesRows(n *lift.Node, axis int64) bool {
	x := n.Args[0]
	if n.Err != nil || x.Type.Shape == nil {
		return false
	}
	rank := x.Type.Shape.Rank()
	row := rank - int(axis)
	if axis < 0 {
		row = int(-axis)
	}
	if row < 0 || row > rank {
		return false // refused by the operator
	}
	wide, args := false, slices.Clone(n.Args)
	for i := 1; i < len(args); i++ {
		own, ok := n.Rank(i)
		if !ok || own <= row || own > rank {
			continue
		}
		var ones []int64
		for d, size := range args[i].Type.Shape.Dims()[:own-row] {
			switch k, static := size.Size(); {
			case static && k == 1:
				ones = append(ones, int64(d))
			case size != x.Type.Shape.Dim(rank-own+d):
				return false
			}
		}
		if wide = wide || len(ones) < own-row; len(ones) == own-row {
			args[i] = n.Call("squeeze", []*ir.Value{args[i], n.Ints(ones)})
		}
	}
	n.Args = args
	return wide
}
