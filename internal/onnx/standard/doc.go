// Package standard says how the operators of ONNX's own domain are lifted to
// those of package op: one file and one table per family.
//
//	tables[""] = standard.Table()
//
// A new operator is one row in the table of its family. If older opsets say it
// in another way, or if it is put together from others, the row has a function
// that lifts it, in the same file; see package lift for what such a function
// may use. Operators that take strings have a second one, in strings.go or
// stringmove.go. The package owns no tensors, and [Table] may be called from
// any goroutine.
package standard
