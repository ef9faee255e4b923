// Package tensor has arrays of numbers whose bytes have an owner. A [Tensor] is an immutable handle: element type, shape,
// layout and position in a buffer. The package knows at any time who else holds those bytes, and whether they may be written.
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
// Whoever makes a tensor owns it and calls [Tensor.Release] when done with it. Views ([Tensor.Slice], [Tensor.Reshape], ...)
// are tensors of their own over the same bytes, each with its own Release; the bytes are freed when the last holder has
// released them.
//
// An operand is passed in one of three ways. A *Tensor itself is borrowed: it is never written and stays the caller's.
// [Tensor.Donate] gives it up strictly: if its bytes cannot be reused, the call fails, says why, and has consumed nothing.
// [Tensor.Reuse] gives it up too, and its bytes are reused if that is possible. After a successful call a tensor that was given
// up is dead; using it is [ErrDonated], with the name of the operation. Operations of your own are written with [Take].
//
// A tensor dropped without Release is found by the garbage collector some time later, reported (see [memory.OnLeak]), and
// freed unless a use is out.
//
// # Elements
//
// [Read] and [Write] return a [View] with a Go slice of the elements, which is valid until the view's Release. Until then the
// view is a use of the tensor. Write needs an exclusive tensor: one holder, no other use, and bytes that are Tenure's own (not
// imported, not mapped, not weights). [Values], [Float32s], [Nested] and [At] copy elements out and need no Release.
//
// [Of] and [FromNested] copy the elements of the caller in. [Wrap] and [WrapWritable] use the caller's slice itself, for reading
// and for writing. Text is bytes of one width, made by [OfStrings] and read by [Strings]. Package fmt formats tensors: %v as
// [Tensor.String] does, %.2f with two decimal places.
//
// # Concurrency
//
// All methods and functions may be called from any goroutine. Release of a tensor that another goroutine uses ends the
// tensor now and frees the bytes when that use ends. A View, a [Bytes] and a [Taken] belong to one goroutine, and are not copied.
//
// # Errors
//
// Faults of input are errors that match one of the Err values of this package; their text says "operation: got X, want Y".
package tensor
