// Package eager computes on tensors directly, one operation per call, without a model. Operations are those of the table in
// package op, and run on the kernels of package compute, as planned programs do.
//
// # Ownership
//
// The way in which an operand is passed says what may happen to its bytes. A *tensor.Tensor is borrowed: it is read and stays
// the caller's. x.Donate() gives it up strictly: either the result is written into its bytes, or the call is an error that says
// which operand could not be used and why, and nothing was consumed. x.Reuse() gives it up too, but the result goes into fresh
// bytes where it cannot go into the operand's. Only the operator's alias rule and who holds the bytes decide that; a borrowed
// tensor is never written, even if nobody else has it.
//
// A call that fails before its first write has consumed nothing. If it fails later, the error is tensor.ErrPartlyWritten, and
// the tensors that were given up are dead. They are dead, too, after a call that succeeds: using one is tensor.ErrDonated, with
// the name of the operation.
//
// Operands of any layout are taken. Most kernels want elements in row-major order, so others are copied first, and counted;
// an elementwise operation on a given-up view that is dense (a transposed one, say) runs in place all the same. The functions
// that only relabel (Reshape, Squeeze, Split where parts lie together, ...) make views. A tensor's own methods (Slice, Index,
// Permute, ...) always do; s.Adopt(x.Slice(...)) makes the view a scope's. Results whose size depends on data (NonZero) are
// computed into their bound and then cut. Functions with two results ([TopK], [Sort]) return both, those with more return a slice.
//
// # Two faces
//
// The package functions return the result and an error. The result is the caller's to release. The methods of a [Scope]
// return the result alone: the scope keeps the first error, and releases every result at its end that was not moved out with
// [Scope.Keep].
//
//	s := eager.NewScope()
//	defer s.Close()
//	y := s.Add(s.MatMul(x, w).Donate(), bias)
//	y = s.Keep(s.Relu(y.Donate()))
//	if err := s.Err(); err != nil {
//		return err
//	}
//
// [Op] calls any operator of the table by name and configures the call in steps; [Map], [Zip] and [Apply] run a function of
// the caller's over elements; [Func] makes operations of functions over tensors.
//
// # Memory
//
// Results are counted under memory.Activations, copies and working room under memory.Scratch. Results of up to 2 MiB come from
// memory that the process has at hand where one of their size was released just before; larger ones have fresh pages from the system,
// which cost about as much as writing them. A scope may take its results from a [memory.Source] instead: from a [memory.Arena], a chain
// of any sizes touches no fresh pages from its second round on.
//
// # Concurrency
//
// Package functions may be called from any goroutine, also on the same tensors. A Scope and a [Builder] belong to one
// goroutine. Large calls are split over a pool of as many threads as the process has processors.
package eager
