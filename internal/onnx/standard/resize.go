package standard

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var resizeTable = map[string]lift.Operator{
	"Resize":   lift.Lifted(10, liftResize),
	"Upsample": {Till: 9, Lift: liftUpsample},

	"GridSample": lift.Lifted(16, LiftGridSample),
	"AffineGrid": lift.Since(20),
}

// liftResize drops operands that say nothing: opset 11 has empty tensors where
// later ones leave an operand out, and the region counts in one mode only.
func liftResize(n *lift.Node) {
	if n.Opset == 10 {
		resizeOld(n, n.Arg(1))
		return
	}
	n.ListOf(2)
	n.ListOf(3)
	args := make([]*ir.Value, 4)
	copy(args, n.Args)
	for i := 1; i < len(args); i++ {
		if v := args[i]; v != nil && v.Type.IsStatic() && v.Type.Shape.NumElements() == 0 {
			args[i] = nil
		}
	}
	if mode := n.AttrIndex("coordinate_transformation_mode"); mode < 0 || n.Attrs[mode].Value != "tf_crop_and_resize" {
		args[1] = nil
	}
	if rounding := n.AttrIndex("nearest_mode"); rounding >= 0 && n.Attrs[rounding].Value == "inward" {
		n.Fail("nearest_mode: got %q, which is none of ONNX's", "inward")
		return
	}
	n.FinishNewest(args)
}

// liftUpsample makes a resize of what opsets up to 9 call Upsample.
func liftUpsample(n *lift.Node) {
	scales := n.Arg(1)
	if n.Opset < 9 {
		list, ok := lift.Take[[]float32](n, "scales")
		if !ok {
			n.Fail("the attribute scales is missing")
			return
		}
		scales = n.Floats(list)
	}
	resizeOld(n, scales)
}

// resizeOld emits the resize of before opset 11: element i comes from i/scale,
// rounded down, or up along the axes that a scale makes smaller.
func resizeOld(n *lift.Node, scales *ir.Value) {
	mode := lift.TakeOr(n, "mode", "nearest")
	n.NoMoreAttrs()
	if len(n.Args) == 0 || scales == nil {
		n.Fail("got %d operands, want x and scales", len(n.Args))
		return
	}
	attrs := []op.Attr{
		{Name: "mode", Value: mode},
		{Name: "coordinate_transformation_mode", Value: "asymmetric"},
	}
	if mode == "nearest" {
		attrs = append(attrs, op.Attr{Name: "nearest_mode", Value: "inward"})
	}
	n.Finish("resize", []*ir.Value{n.Args[0], nil, scales}, attrs...)
}

// LiftGridSample renames the modes of before opset 20.
func LiftGridSample(n *lift.Node) {
	if i := n.AttrIndex("mode"); i >= 0 {
		switch n.Attrs[i].Value {
		case "bilinear":
			n.Attrs[i].Value = "linear"
		case "bicubic":
			n.Attrs[i].Value = "cubic"
		}
	}
	n.FinishAs("GridSample", n.Args)
}
