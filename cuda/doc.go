// Package cuda brings the memory of CUDA devices under the ownership that the
// rest of Tenure has: tensors whose bytes are on a device, streams of work on
// them, and their exchange with other libraries and processes.
//
//	c, err := cuda.Open()                             // the driver of the machine, or one line that says why there is none
//	dev, err := c.Device(0)
//	x, err := tensor.To(ctx, host, dev.Memory())      // host stays as it is
//	defer x.Release()
//	s, err := dev.NewStream()
//	defer s.Close()
//	y, err := s.Add(x.Donate(), z)                    // computed into x's bytes, in order, without waiting
//	back, err := tensor.To(ctx, y, nil)               // waits for y, and no longer
//
// The driver's library is opened at run time; there is no cgo and no toolkit. A
// program that imports this package needs the platform's dynamic loader; one
// that does not stays static. docs/cuda.md is the guide. This package may still
// change; its API is not promised: see ARCHITECTURE.md.
//
// # Ownership
//
// A tensor on a device has handles, holders, flags and uses like one of the
// host: borrow, reuse and donate mean the same, and package memory counts its
// bytes under the device and the purpose. A device asks one question more
// before it writes: has the work that reads these bytes finished? Every
// allocation has stamps, the place in its stream of the last work that wrote
// it, and of the last work on each stream that read it. Work on a stream waits,
// on the device and never on the host, for the stamps of other streams. An
// event is recorded only where work crosses streams.
//
// A tensor may be released as soon as the work that uses it was submitted. Its
// bytes are reused by the same stream at once; another stream that gets them
// waits for their last use before it writes.
//
// # Allocation
//
// Bytes come from an [Arena] of the device: chunks of virtual memory in size
// classes, kept for the next allocation of their size. An allocation from it
// calls no function of the driver. [Arena.Trim] gives unused chunks back. When
// the device has no more, the arena gives back its unused chunks, lets exports
// and dropped tensors end, and only then fails with [memory.ErrLimit].
//
// # Exchange
//
// Package dlpack exchanges tensors of a device with other libraries, in place.
// A tensor that was lent has a mark: work of other libraries may use its bytes,
// on streams that this package does not know. Work that must come after that
// waits for the whole device, once. Imported bytes are a tensor like any other;
// they are given back when the work that uses them is complete. Package share
// lends tensors of a device to other processes: those in its own arenas, and
// with [share.InPlace] those that other libraries allocated.
//
// # Concurrency
//
// Everything may be called from any goroutine. Work that goroutines submit to
// one stream has the order of the calls; a call that crosses streams sees what
// was submitted before it. No call waits for the device, except for those whose
// documentation says so: they take a context.
package cuda
