package onnx

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var resizeTable = map[string]operator{
	"Resize":   lifted(10, liftResize),
	"Upsample": {till: 9, lift: liftUpsample},

	"GridSample": lifted(16, liftGridSample),
	"AffineGrid": since(20),
}

// liftResize drops operands that say nothing: opset 11 has empty tensors where
// later ones leave an operand out, and the region counts in one mode only.
func liftResize(n *node) {
	if n.opset == 10 {
		n.resizeOld(n.arg(1))
		return
	}
	args := make([]*ir.Value, 4)
	copy(args, n.args)
	for i := 1; i < len(args); i++ {
		if v := args[i]; v != nil && v.Type.IsStatic() && v.Type.Shape.NumElements() == 0 {
			args[i] = nil
		}
	}
	if mode := n.attrIndex("coordinate_transformation_mode"); mode < 0 || n.attrs[mode].Value != "tf_crop_and_resize" {
		args[1] = nil
	}
	if rounding := n.attrIndex("nearest_mode"); rounding >= 0 && n.attrs[rounding].Value == "inward" {
		n.fail("nearest_mode: got %q, which is none of ONNX's", "inward")
		return
	}
	n.finishNewest(args)
}

// liftUpsample makes a resize of what opsets up to 9 call Upsample.
func liftUpsample(n *node) {
	scales := n.arg(1)
	if n.opset < 9 {
		list, ok := take[[]float32](n, "scales")
		if !ok {
			n.fail("the attribute scales is missing")
			return
		}
		scales = n.floats(list)
	}
	n.resizeOld(scales)
}

// resizeOld emits the resize of before opset 11: element i comes from i/scale,
// rounded down, or up along the axes that a scale makes smaller.
func (n *node) resizeOld(scales *ir.Value) {
	mode := takeOr(n, "mode", "nearest")
	n.noMoreAttrs()
	if len(n.args) == 0 || scales == nil {
		n.fail("got %d operands, want x and scales", len(n.args))
		return
	}
	attrs := []op.Attr{
		{Name: "mode", Value: mode},
		{Name: "coordinate_transformation_mode", Value: "asymmetric"},
	}
	if mode == "nearest" {
		attrs = append(attrs, op.Attr{Name: "nearest_mode", Value: "inward"})
	}
	n.finish("resize", []*ir.Value{n.args[0], nil, scales}, attrs...)
}

// liftGridSample renames the modes of before opset 20.
func liftGridSample(n *node) {
	if i := n.attrIndex("mode"); i >= 0 {
		switch n.attrs[i].Value {
		case "bilinear":
			n.attrs[i].Value = "linear"
		case "bicubic":
			n.attrs[i].Value = "cubic"
		}
	}
	plain(n)
}
