package onnx

var convTable = map[string]operator{
	"Conv":          since(0),
	"ConvTranspose": since(0),
}
