package onnx

var poolingTable = map[string]operator{
	"MaxPool":           since(0),
	"AveragePool":       since(0),
	"GlobalMaxPool":     since(0),
	"GlobalAveragePool": since(0),
	"MaxUnpool":         since(9),
	"Col2Im":            since(18),
}
