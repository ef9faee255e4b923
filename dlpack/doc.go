// Package dlpack exchanges tensors with other array libraries without a copy, by the structs of DLPack 1.x, and without cgo.
//
//	m, err := dlpack.Export(x)               // a struct that C code reads and then deletes
//	y, err := dlpack.Import(m, call)         // a tensor over somebody else's bytes
//	defer y.Release()                        // calls the deleter
//
// [DLManagedTensorVersioned], [DLManagedTensor] and their parts have the layout that they have in C. [Export] makes such a
// struct of a tensor, [Import] makes a tensor of a struct from elsewhere. The importer trusts no field: what cannot
// be a tensor in host memory is an error that says why.
//
// # Ownership
//
// An export is a use of its tensor that foreign code ends, by calling the struct's deleter, on any thread, at any time. The
// tensor may be released before: the bytes go when both have let go. Bytes whose last export ends in C after the tensor was
// released go back with the next allocation, with [memory.Reclaim], or a moment later. Exports are read-only, and several may
// be out; [ExportWritable] needs an exclusive tensor and is its only user; [ExportCopy] exports a copy.
// The struct of an export is the tensor's and the same every time, so a consumer must not write into it.
//
// An imported tensor is released like any other; the producer's deleter is called once, when the last holder of the bytes has
// let go, from the goroutine that did. An imported tensor is never exclusive, because its producer still has the bytes, unless
// the caller says so by [AssumeExclusive].
//
// # Calling C
//
// This package never calls C. Where that is needed, to call the deleter of an import, its functions take a [Caller]; package
// dlpack/capi has one.
//
// # Concurrency
//
// Everything may be called from any goroutine, and the deleters from any thread. A struct that is imported belongs to the
// tensor from then on.
package dlpack
