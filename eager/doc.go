// Package eager computes on tensors directly, one operation per call, without a
// model.
//
//	s := eager.NewScope()
//	defer s.Close()
//	y := s.Add(s.MatMul(x, w).Donate(), bias)
//	y = s.Keep(s.Relu(y.Donate()))
//	if err := s.Err(); err != nil {
//		return err
//	}
//
// Operations are those of the table in package op. Each is a function of the
// package, which returns the result and an error, and a method of [Scope],
// which returns the result alone: the scope keeps the first error, and releases
// at its end every result that was not moved out with [Scope.Keep]. A result of
// a package function is the caller's to release.
//
// [Op] calls any operator of the table by name and configures the call in
// steps; [Map], [Zip] and [Apply] apply a function of the caller to elements;
// [Func] makes operations of functions over tensors.
//
// # Ownership
//
// The way in which an operand is passed says what may happen to its bytes. A
// *tensor.Tensor is borrowed: it is read and stays the caller's. x.Donate()
// gives it up strictly: either the result is written into its bytes, or the
// call is an error that says which operand could not be used and why, and
// nothing was consumed. x.Reuse() gives it up too, but the result goes into
// fresh bytes where it cannot go into the operand's. Only the operator's alias
// rule and the holders of the bytes decide that; a borrowed tensor is never
// written, even if it has no other holder.
//
// # Operands and results
//
// Elementwise operations return a result of the broadcast shape of their
// operands; with one operand, of its shape. Operands of any layout are
// accepted. Most kernels read elements in row-major order, so others are copied
// first, and counted; an elementwise operation on a given-up view that is dense
// (a transposed one, say) runs in place all the same. The functions that only
// relabel (Reshape, Squeeze, Split where parts lie together, ...) return views.
// The methods of a tensor (Slice, Index, Permute, ...) always do;
// s.Adopt(x.Slice(...)) makes the view the scope's. A result whose size depends
// on data (NonZero) is computed into its bound and then cut. Functions with two
// results ([TopK], [Sort]) return both, those with more return a slice.
//
// # Errors
//
// An element type that an operation does not take is tensor.ErrDType, a shape
// that does not fit tensor.ErrShape, a tensor that was given up before
// tensor.ErrDonated, with the name of the operation that consumed it. A call
// that fails before its first write has consumed nothing. If it fails later,
// the error is tensor.ErrPartlyWritten, and the tensors that were given up are
// dead.
//
// # Memory
//
// Results are counted under memory.Activations, copies and scratch under
// memory.Scratch. Results of up to 2 MiB reuse memory of that size that the
// process released just before; larger ones get fresh pages from the system,
// which cost about as much as writing them. A scope may take its results from a
// [memory.Source] instead: from a [memory.Arena], a chain of any sizes touches
// no fresh pages from its second round on.
//
// # Concurrency
//
// Package functions may be called from any goroutine, also on the same tensors.
// A Scope and a [Builder] belong to one goroutine. Large calls are split over a
// pool of as many threads as the process has processors.
package eager
