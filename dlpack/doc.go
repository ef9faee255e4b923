// Package dlpack exchanges tensors with other array libraries without a copy,
// by the structs of DLPack 1.x, and without cgo.
//
//	m, err := dlpack.Export(x)               // a struct that C code reads and then deletes
//	y, err := dlpack.Import(m, call)         // a tensor over another library's bytes
//	defer y.Release()                        // calls the deleter
//
// [DLManagedTensorVersioned], [DLManagedTensor] and their parts have the layout
// of the C structs. [Export] makes such a struct for a tensor, [Import] makes a
// tensor of a struct from another library. The importer checks every field: a
// struct that does not describe a tensor in host memory, or on a device that is
// open, is an error with the reason.
//
// # Ownership
//
// An export is a use of its tensor that foreign code ends by calling the
// struct's deleter, on any thread, at any time. The tensor may be released
// before; the bytes are freed when both have ended. If the last export ends in
// C after the tensor's release, the bytes are freed by the next allocation, by
// [memory.Reclaim], or a moment later. Exports are read-only, and several may
// be out. [ExportWritable] requires an exclusive tensor and is its only use;
// [ExportCopy] exports a copy. The struct of an export belongs to the tensor
// and is the same every time, so a consumer must not write into it.
//
// An imported tensor is released like any other. The producer's deleter is
// called once, on the goroutine of the last release of the bytes. An imported
// tensor is never exclusive, because its producer still has the bytes, unless
// the caller passes [AssumeExclusive].
//
// # Devices
//
// The work of a device goes on after the call that submits it, so an exchange
// has a second half: whose work waits for whose. [ExportOn] makes the
// consumer's [Stream] wait for what wrote the tensor. [ReadyOn] says on which
// stream the bytes of an import are ready. Neither waits itself. Foreign work
// may go on after the deleter was called, and work of this process after the
// release of an import: bytes are written again, and deleters called, only
// behind it. An [Exchanger] does all this for a kind of device.
//
// # Calling C
//
// This package never calls C. Functions that need to, for the deleter of an
// import, take a [Caller]; package dlpack/capi has one.
//
// # Concurrency
//
// Everything may be called from any goroutine, and the deleters from any
// thread. The importing tensor owns the imported struct.
package dlpack
