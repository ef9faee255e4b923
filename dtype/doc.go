// Package dtype names the element types of tensors: their sizes, their codes in ONNX and DLPack, and the floats that Go lacks.
//
// It holds no memory, and everything in it may be used from any goroutine.
package dtype
