// Package weights stores the bytes of a model's weights, from the model's
// files to the form that a kernel reads.
//
//	s := weights.New(weights.Options{})
//	defer s.Close()
//	file, err := s.MapFile("model.bin")
//	...
//	err = s.AddInFile("w", typ, file[64:64+4096]) // used where it lies, if it is aligned
//	data, ok := s.Bytes(w)
//
// # Stages
//
// The bytes of a weight go through these stages. A weight may skip some.
//
//	stage    where its bytes are                     who pays          given back
//	mapped   in pages of the model's file            the page cache    by Prune, and when the weight is unloaded
//	copied   in a buffer: the file has them          this process      when the weight is unloaded
//	         unaligned, or in another encoding,
//	         or there are few
//	derived  in a buffer: made from other weights    this process      when the weight is unloaded
//	packed   in a panel: the form a kernel reads     this process      by Close
//	shared   in memory that other processes map      all of them once  by Close of the last one
//
// Package memory counts buffers, panels and mapped files under the purpose
// Weights, mapped files in the figure Files too, and shared memory under
// Shared.
//
// A weight is loaded or not. One that is not loaded takes no memory, and is
// loaded by [Store.Bytes]: from the file, from the weight that it is derived
// from, or from a panel that can be unpacked. [Store.Pack] makes the panels of
// a program and then unloads the weights that it has packed, so that no weight
// is in memory twice. Weights that a call reads unpacked are pinned: they stay.
// With [Options.Share], panels and pinned weights go to memory that processes
// share. Where the system takes no pages of a mapped file back (Windows), they
// stay after a weight is unloaded, and [Store.Unloads] says so.
//
// Which operands are packed, and into which form, is decided by package exec.
// Passes see three methods, Has, Bytes and Derive. Package onnx enters the
// weights of a file. An [Overlay] has the constants of one set of input shapes
// on top of a store.
//
// # Memory
//
// The store owns everything it returns, until Close. Bytes must not be written
// by callers. Bytes that a caller passes to [Store.AddInFile] and that are not
// in a file of the store stay the caller's and must not change before Close.
//
// # Concurrency
//
// A store may be used from many goroutines. Only one program at a time may be
// compiled and packed: Pack unloads and moves bytes that a compilation may be
// reading. Close must be the last call.
package weights
