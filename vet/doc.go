// Package vet finds mistakes in the ownership of tensors when a program is compiled: the half of the rules that a borrow checker
// enforces. It is an analyzer for go vet and its relatives; cmd/tenurevet runs it.
//
//	y, err := eager.Relu(x.Donate())
//	fmt.Println(x.Shape()) // tenurevet: x is used after it was given up by Donate
//
// # What it reports
//
//   - a tensor that is used, donated or reused after it was given up by Donate, Reuse or Release, on some path;
//   - Release of a tensor, of a run's outputs or of a buffer that was released, or given up, on every path;
//   - a tensor, view, Outputs, Received, model, session, scope, arena, buffer, archive or owner that a function makes and that some
//     path to a return, or to the end of its block, neither ends nor hands on, that is overwritten first, or that no variable has;
//   - the data of a view (tensor.Read, tensor.Write, Use, Lock) that is used after the view's Release, or that is returned by a
//     function that releases the view as it returns;
//   - outputs that are used after Outputs.Release, results of a scope after its Close, and sessions, models, peers after theirs;
//   - what is returned by a function that defers its end.
//
// A donation counts from the statement that makes it. Where the statement also assigns an error, the branch on which that error
// is not nil has its tensor back, for a call that fails has consumed nothing. A comparison with nil, of the error or of what came
// with it, decides which of the two it was.
//
// Fields and elements, such as h.x and xs[0], are followed from one statement to the next, until a function is called that could
// change them. Function literals are followed where they are called, also through the one variable that has them, deferred, or passed
// to Cleanup of a test.
//
// # Functions
//
// What a function does with its parameters (it consumes them on every path without an error, or it only borrows them; it returns
// only if they are nil, for errors; it returns them) and which of its results are the caller's is worked out from its body and
// travels across packages as a fact. That holds for generic functions too, and for parameters of interfaces with Release or Close. A
// function can also say so itself, in a line of its comment:
//
//	//tenure:consumes x y
//
// # What it leaves alone
//
// Lines that say //tenure:ignore and, after a call whose error is passed to a function that may return also with an error, what hangs
// on that error.
//
// What is in slices, maps, structs, channels and globals is not looked for at the end of a function: whether somebody else reaches it
// there, and releases it, is not decided by one function's body. So a tensor that is put into a local slice and never released is not
// found. Two names of one struct or slice are two: a.x and b.x after b := a. What was handed to a function of which nothing is known, or
// to another goroutine, is somebody else's. A deferred Release settles a tensor and is never reported. Where a path depends on a boolean
// variable that is set or tested in several places, what is given up under it is no leak, for the analysis does not tell the values of
// the variable apart. A test that has called Error may leave what it made. An owner that has made a peer ends with it; a peer or
// listener ends with its owner.
//
// # Memory and concurrency
//
// The package holds no tensor. An analyzer may run on several packages at once.
package vet
