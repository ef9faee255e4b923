// Package vet finds mistakes in the ownership of tensors when a program is compiled: the half of the rules that a borrow checker
// enforces. It is an analyzer for go vet and its relatives; cmd/tenurevet runs it.
//
// # What it reports
//
//   - a tensor that is used, donated or reused after it was given up by Donate, Reuse or Release, on some path;
//   - Release of a tensor that was released, or given up, on every path;
//   - a tensor that a function makes and that some path to a return neither releases nor hands on, or that is overwritten first;
//   - the data of a view (tensor.Read, tensor.Write, Use, Lock) that is used after the view's Release, or that is returned by a
//     function that releases the view as it returns.
//
// A donation counts from the statement that makes it. Where the statement also assigns an error, the branch on which that error
// is not nil has its tensor back, for a call that fails has consumed nothing.
//
// # Functions
//
// What a function does with its *tensor.Tensor parameters (it consumes them on every path without an error, or it only borrows
// them) and whether the tensor that it returns is the caller's is worked out from its body and travels across packages as a
// fact. A function can also say so itself, in a line of its comment:
//
//	//tenure:consumes x y
//
// # What it leaves alone
//
// Lines that say //tenure:ignore and, after a call whose error is looked at in another way than by a comparison with nil, the
// tensors that hang on that error.
//
// Tensors in fields, slices, maps and globals, those that a function literal or a pointer reaches, and those that were handed to
// a function of which nothing is known. A deferred Release settles a tensor and is never reported. Results of an eager.Scope
// are the scope's.
//
// # Memory and concurrency
//
// The package holds no tensor. An analyzer may run on several packages at once.
package vet
