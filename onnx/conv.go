package onnx

var convTable = map[string]operator{
	"Conv":          since(0),
	"DeformConv":    since(19),
	"ConvTranspose": since(0),
}
