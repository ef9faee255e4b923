// Package contrib says how operators of the domain com.microsoft, which ONNX
// Runtime adds, are put together from those of package op: one file and one
// table per family.
//
//	tables[contrib.Domain] = contrib.Table()
//
// The optimiser and the exporters of ONNX Runtime write these operators into
// files. What they say other operators can say, and passes fuse again what
// kernels can do at once. The package owns no tensors, and [Table] may be
// called from any goroutine.
package contrib
