package onnx

var linearTable = map[string]operator{
	"MatMul": since(0),
	"Gemm":   since(0),
}
