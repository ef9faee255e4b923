package onnx

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var normTable = map[string]operator{
	"Softmax":    lifted(0, liftSoftmax),
	"LogSoftmax": lifted(0, liftSoftmax),
	"Hardmax":    lifted(0, liftSoftmax),

	"BatchNormalization":    lifted(0, liftBatchNorm),
	"InstanceNormalization": since(0),
	"LayerNormalization":    since(0),  // ONNX has it from opset 17 on, ONNX Runtime writes it into older models too
	"GroupNormalization":    since(21), // that of opset 18 is deprecated: its scale and bias are per group
}

// liftSoftmax lifts the form of before opset 13, which is over all axes from
// the given one on, 1 by default, as if they were one.
func liftSoftmax(n *node) {
	if n.opset >= 13 {
		plain(n)
		return
	}
	axis := takeOr(n, "axis", int64(1))
	n.noMoreAttrs()
	def := n.reg.LookupONNX(n.opName)
	if def == nil {
		n.unsupported("no such operator")
		return
	}
	if len(n.args) != 1 {
		n.fail("got %d operands, want 1", len(n.args))
		return
	}
	rank, known := n.rank(0)
	if known && (axis < int64(-rank) || axis >= int64(max(rank, 1))) {
		n.fail("axis: got %d, want %d to %d: %w", axis, -rank, rank-1, shape.ErrShape)
		return
	}
	last := op.Attr{Name: "axis", Value: int64(-1)}
	if axis == -1 || known && axis == int64(rank-1) {
		n.finish(def.Name, n.args, last)
		return
	}
	flat := n.call("flatten", n.args, op.Attr{Name: "axis", Value: axis})
	y := n.call(def.Name, []*ir.Value{flat}, last)
	n.finish("reshape", []*ir.Value{y, n.shapeOf(n.args[0])}, op.Attr{Name: "allowzero", Value: int64(1)})
}

// shapeOf returns the shape of a value as an operand: a constant if it is
// known, and a call otherwise.
func (n *node) shapeOf(v *ir.Value) *ir.Value {
	if v == nil || !v.Type.IsStatic() {
		return n.call("shape", []*ir.Value{v})
	}
	sizes := make([]int64, v.Type.Shape.Rank())
	for i, size := range v.Type.Shape.Sizes() {
		sizes[i] = int64(size)
	}
	return n.ints(sizes)
}

// liftBatchNorm refuses the training of before opset 14, of which further
// outputs are the only sign.
func liftBatchNorm(n *node) {
	if n.opset >= 14 {
		n.batchNorm14()
		return
	}
	if n.opset < 7 && takeOr(n, "is_test", int64(0)) == 0 {
		n.unsupported("is_test 0")
	}
	if n.opset < 9 && takeOr(n, "spatial", int64(1)) != 1 {
		n.unsupported("spatial 0")
	}
	for i := 1; i < len(n.proto.Outputs); i++ {
		if n.wanted(i) {
			n.unsupported("output %d, of training", i)
		}
	}
	n.ignore("momentum")
	plain(n)
}

// batchNorm14 lifts the form that says when it trains. The momentum counts
// then only, and the statistics are those of the batch.
func (n *node) batchNorm14() {
	if i := n.attrIndex("training_mode"); i < 0 || n.attrs[i].Value == int64(0) {
		for i := 1; i < len(n.proto.Outputs); i++ {
			if n.wanted(i) {
				n.unsupported("output %d without training_mode 1", i)
			}
		}
		n.ignore("momentum")
	}
	plain(n)
}
