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
// A weight goes through these stages, of which it may skip any but the first
// two taken together:
//
//	stage    its bytes lie in                       counted as         given back
//	mapped   pages of the model's file              memory.Stats.Files pages: after Prune, and when it is unloaded
//	copied   a buffer: unaligned in the file, or    memory.Weights     when it is unloaded
//	         written there as numbers
//	derived  a buffer: computed from other weights  memory.Weights     when it is unloaded
//	packed   a buffer: a panel in a kernel's form   memory.Weights     Close
//	shared   memory that other processes map too    memory.Shared      Close; the memory itself by its last process
//
// A weight of the first three stages is loaded or not. One that is not loaded
// has no bytes in memory, but a way to make them: from the file, from the
// weight that it is derived from, or from a panel that can be unpacked.
// [Store.Bytes] loads it. [Store.Pack] makes the panels of a program and then
// unloads the weights that it has packed, so that no weight is in memory twice;
// weights that some call reads as they are stay. With [Options.Share] panels
// and what is read as it is go to memory that processes have in common.
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
