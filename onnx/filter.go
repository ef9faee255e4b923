package onnx

var filterTable = map[string]operator{
	"NonZero":           since(9),
	"Compress":          since(9),
	"Unique":            since(11),
	"NonMaxSuppression": since(10),
}
