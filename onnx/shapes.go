package onnx

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var shapeTable = map[string]operator{
	"Identity":        lifted(0, liftIdentity),
	"Reshape":         since(0),
	"Flatten":         since(0),
	"Shape":           since(0),
	"Size":            since(0),
	"Squeeze":         lifted(0, liftSqueeze),
	"Unsqueeze":       lifted(0, liftSqueeze),
	"Transpose":       since(0),
	"Concat":          since(0),
	"Split":           lifted(0, liftSplit),
	"Expand":          since(8),
	"Tile":            since(0),
	"Pad":             lifted(0, liftPad),
	"ReverseSequence": since(10),
	"DepthToSpace":    since(0),
	"SpaceToDepth":    since(0),
}

// liftIdentity gives sequences and optionals as they are.
func liftIdentity(n *node) {
	if len(n.args) == 1 && n.lists != nil {
		n.give(n.lists[0])
		return
	}
	plain(n)
}

// liftSqueeze makes an operand of the axes that are an attribute before opset
// 13.
func liftSqueeze(n *node) {
	if n.opset < 13 {
		n.axesOperand()
	}
	plain(n)
}

// liftSplit makes an operand of the sizes that are an attribute before opset
// 13, and says the number of equal parts, which opsets before 18 leave to the
// number of outputs.
func liftSplit(n *node) {
	if n.opset < 13 {
		if sizes, ok := take[[]int64](n, "split"); ok && len(n.args) == 1 {
			n.args = []*ir.Value{n.args[0], n.ints(sizes)}
		}
	}
	var parts []op.Attr
	if n.opset < 18 && n.arg(1) == nil {
		parts = []op.Attr{{Name: "num_outputs", Value: int64(len(n.proto.Outputs))}}
	}
	n.finishNewest(n.args, parts...)
}

// liftPad makes operands of the pads and the value that are attributes before
// opset 11.
func liftPad(n *node) {
	if n.opset >= 11 {
		plain(n)
		return
	}
	pads, ok := take[[]int64](n, "pads")
	if !ok || len(n.args) != 1 {
		n.fail("got %d operands, want 1 and the attribute pads", len(n.args))
		return
	}
	args := []*ir.Value{n.args[0], n.ints(pads), nil}
	value := takeOr(n, "value", float32(0))
	if x := n.arg(0); value != 0 && x != nil && !x.Type.IsZero() {
		args[2] = n.scalar(x.Type.DType, float64(value))
	}
	n.finishNewest(args)
}
