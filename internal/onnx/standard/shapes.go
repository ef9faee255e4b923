package standard

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var shapeTable = map[string]lift.Operator{
	"Identity":        lift.Lifted(0, liftIdentity),
	"Reshape":         lift.Since(0),
	"Flatten":         lift.Since(0),
	"Shape":           lift.Since(0),
	"Size":            lift.Since(0),
	"Squeeze":         lift.Lifted(0, liftSqueeze),
	"Unsqueeze":       lift.Lifted(0, liftSqueeze),
	"Transpose":       lift.Since(0),
	"Concat":          lift.Since(0),
	"Split":           lift.Lifted(0, liftSplit),
	"Expand":          lift.Lifted(8, liftExpand),
	"Tile":            lift.Since(0),
	"Pad":             lift.Lifted(0, liftPad),
	"ReverseSequence": lift.Since(10),
	"DepthToSpace":    lift.Since(0),
	"SpaceToDepth":    lift.Since(0),

	"CenterCropPad": lift.Lifted(18, liftCenterCropPad),
}

// liftIdentity binds the output to a sequence or an optional as it is.
func liftIdentity(n *lift.Node) {
	if len(n.Args) == 1 && n.Lists != nil {
		n.BindList(n.Lists[0])
		return
	}
	lift.Plain(n)
}

// liftExpand takes a shape without dimensions as the list of its one size, as
// ONNX Runtime and the reference implementation do.
func liftExpand(n *lift.Node) {
	n.ListOf(1)
	lift.Plain(n)
}

// liftSqueeze makes an operand of the axes that are an attribute before opset
// 13.
func liftSqueeze(n *lift.Node) {
	if n.Opset < 13 {
		axesOperand(n)
	}
	lift.Plain(n)
}

// liftSplit makes an operand of the sizes that are an attribute before opset
// 13, and says the number of equal parts, which opsets before 18 leave to the
// number of outputs.
func liftSplit(n *lift.Node) {
	if n.Opset < 13 {
		if sizes, ok := lift.Take[[]int64](n, "split"); ok && len(n.Args) == 1 {
			n.Args = []*ir.Value{n.Args[0], n.Ints(sizes)}
		}
	}
	var parts []op.Attr
	if n.Opset < 18 && n.Arg(1) == nil {
		parts = []op.Attr{{Name: "num_outputs", Value: int64(len(n.Proto.Outputs))}}
	}
	n.FinishNewest(n.Args, parts...)
}

// liftPad makes operands of the pads and the value that are attributes before
// opset 11.
func liftPad(n *lift.Node) {
	if n.Opset >= 11 {
		lift.Plain(n)
		return
	}
	pads, ok := lift.Take[[]int64](n, "pads")
	if !ok || len(n.Args) != 1 {
		n.Fail("got %d operands, want 1 and the attribute pads", len(n.Args))
		return
	}
	args := []*ir.Value{n.Args[0], n.Ints(pads), nil}
	value := lift.TakeOr(n, "value", float32(0))
	if x := n.Arg(0); value != 0 && x != nil && !x.Type.IsZero() {
		args[2] = n.Scalar(x.Type.DType, float64(value))
	}
	n.FinishNewest(args)
}

// liftCenterCropPad cuts and pads around the middle: pads that are worked out
// from the sizes, below zero where it cuts.
func liftCenterCropPad(n *lift.Node) {
	axes, given := lift.Take[[]int64](n, "axes")
	n.NoMoreAttrs()
	x := n.Operand(2)
	if x == nil {
		return
	}
	rank, known := n.Rank(0)
	if !given && !known {
		n.Unsupported("an operand of unknown rank without axes")
		return
	}
	if !given {
		for i := range rank {
			axes = append(axes, int64(i))
		}
	}
	along := n.Ints(axes)
	target := n.Call("cast", n.Args[1:2], op.Attr{Name: "to", Value: dtype.I64})
	sizes := n.Call("gather", []*ir.Value{n.Call("shape", []*ir.Value{x}), along})
	extra := n.Call("sub", []*ir.Value{target, sizes})
	before := n.WithNumber("div", extra, 2, dtype.I64) // toward zero: an odd one goes to the end
	after := n.Call("sub", []*ir.Value{extra, before})
	pads := n.Call("concat", []*ir.Value{before, after}, lift.IntAttr("axis", 0))
	n.Finish("pad", []*ir.Value{x, pads, nil, along})
}
