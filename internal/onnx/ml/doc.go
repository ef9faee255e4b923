// Package ml says how operators of the domain ai.onnx.ml, ONNX's own for
// classical machine learning, are put together from those of package op: those
// that make numbers of strings, and strings of numbers.
//
//	tables[ml.Domain] = ml.Table()
//
// The package owns no tensors, and [Table] may be called from any goroutine.
package ml
