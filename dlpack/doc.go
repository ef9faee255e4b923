// Package dlpack exchanges tensors with other array libraries without a copy, by the structs of DLPack 1.x, and without cgo.
//
// [DLManagedTensorVersioned], [DLManagedTensor] and their parts have the layout that C gives them. [Import] makes a tensor of
// a struct that somebody else made. It trusts no field: what cannot be a tensor in host memory is an error that says why.
//
// # Ownership
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
// Everything may be called from any goroutine. A struct that is imported belongs to the tensor from then on.
package dlpack
