// Package contrib says how operators of the domain com.microsoft, which ONNX
// Runtime adds, are put together from those of package op: one file and one
// table per family.
//
//	tables[contrib.Domain] = contrib.Table()
//
// The optimiser, the quantiser and the exporters of ONNX Runtime write these
// operators into files. Other operators can express them, and passes fuse again
// what kernels can do at once. Results are rounded as those of ONNX Runtime
// where integers are quantised. The package owns no tensors, and [Table] may be
// called from any goroutine.
package contrib
