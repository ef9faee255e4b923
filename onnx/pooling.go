package onnx

import "github.com/tenure-go/tenure/op"

var poolingTable = map[string]operator{
	"MaxPool":           since(0),
	"AveragePool":       since(0),
	"GlobalMaxPool":     since(0),
	"GlobalAveragePool": since(0),
	"MaxRoiPool":        since(0),
	"RoiAlign":          lifted(10, liftRoiAlign),
	"MaxUnpool":         since(9),
	"Col2Im":            since(18),
}

// liftRoiAlign says what holds before opset 16: elements lie at whole numbers.
func liftRoiAlign(n *node) {
	if n.opset < 16 {
		n.finishNewest(n.args, op.Attr{Name: "coordinate_transformation_mode", Value: "output_half_pixel"})
		return
	}
	plain(n)
}
