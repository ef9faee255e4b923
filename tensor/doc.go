// Package tensor provides arrays of numbers whose bytes have an owner. A
// [Tensor] is an immutable handle: element type, shape, layout and position in
// a buffer. The package knows at any time which holders the bytes have, and
// whether they may be written.
//
//	x, err := tensor.Of([]float32{1, -2, 3}, 3)
//	if err != nil {
//		return err
//	}
//	defer x.Release()
//	v, err := tensor.Read[float32](x)
//	if err != nil {
//		return err
//	}
//	fmt.Println(v.Data[1])
//	v.Release()
//
// # Ownership
//
// The code that makes a tensor owns it and calls [Tensor.Release] when it is
// done with it. Views ([Tensor.Slice], [Tensor.Reshape], ...) are separate
// tensors over the same bytes, each with its own Release; the bytes are freed
// when the last holder has released them.
//
// An operand is passed in one of three ways. A *Tensor is borrowed: it is never
// written and the caller keeps it. [Tensor.Donate] gives it up strictly: if its
// bytes cannot be reused, the call fails with the reason and has consumed
// nothing. [Tensor.Reuse] gives it up too, and its bytes are reused if that is
// possible. After a successful call a tensor that was given up is dead; using
// it is [ErrDonated], with the name of the operation. [Take] is for operations
// of your own.
//
// The garbage collector finds a tensor that was dropped without Release some
// time later. It is reported (see [memory.OnLeak]) and freed unless a use is
// out.
//
// # Elements
//
// [Read] and [Write] return a [View] with a Go slice of the elements, which is
// valid until the view's Release. Until then the view is a use of the tensor.
// Write requires an exclusive tensor: one holder, no other use, and bytes of
// Tenure (not imported, not mapped, not weights). [Values], [Float32s],
// [Nested] and [At] copy elements out and need no Release.
//
// [Of] and [FromNested] copy the caller's elements. [Wrap] and [WrapWritable]
// use the caller's slice itself, for reading and for writing. Strings are rows
// of bytes of one width: see [OfStrings] and [Strings]. Package fmt formats
// tensors: %v as [Tensor.String] does, %.2f with two decimal places.
//
// # Concurrency
//
// All methods and functions may be called from any goroutine. Release of a
// tensor that another goroutine uses ends the tensor now and frees the bytes
// when that use ends. A View, a [Bytes] and a [Taken] belong to one goroutine
// and must not be copied.
//
// # Errors
//
// Invalid input is an error that matches one of the Err values of this package,
// in the form "operation: got X, want Y".
package tensor
