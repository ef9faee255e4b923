// Package ml says how operators of the domain ai.onnx.ml, ONNX's own for
// classical machine learning, are put together from those of package op:
// functions of features, models of linear functions, of support vectors and of
// trees, and the labels of classes.
//
//	tables[ml.Domain] = ml.Table()
//
// The package owns no tensors, and [Table] may be called from any goroutine.
package ml
