package onnx

var filterTable = map[string]operator{
	"NonZero": since(9),
}
