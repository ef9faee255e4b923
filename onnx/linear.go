package onnx

var linearTable = map[string]operator{
	"MatMul": since(0),
	"Gemm":   lifted(0, liftGemm),
	"Det":    since(11),
}
