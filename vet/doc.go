// Package vet finds mistakes in the ownership of tensors at compile time: the
// part of the rules that a borrow checker enforces. It is an analyzer for go
// vet and similar drivers; cmd/tenurevet runs it.
//
//	y, err := eager.Relu(x.Donate())
//	fmt.Println(x.Shape()) // tenurevet: x is used after it was given up by Donate
//
// # What it reports
//
//   - a tensor that is used, donated or reused after it was given up by Donate,
//     Reuse or Release, on some path;
//   - Release of a tensor, of a run's outputs or of a buffer that was released,
//     or given up, on every path;
//   - a tensor, view, Outputs, Received, model, session, scope, arena, buffer,
//     archive or owner that a function makes and that some path to a return, or
//     to the end of its block, neither ends nor passes on, that is overwritten
//     first, or that is in no variable;
//   - the data of a view (tensor.Read, tensor.Write, Use, Lock) that is used
//     after the view's Release, or that is returned by a function that releases
//     the view as it returns;
//   - outputs that are used after Outputs.Release, results of a scope after its
//     Close, and sessions, models, peers after theirs;
//   - a value that is returned by a function that defers its end.
//
// A donation takes effect at its statement. If the statement also assigns an
// error, the tensor is alive again on the branch on which that error is not
// nil, because a call that fails has consumed nothing. A comparison with nil,
// of the error or of another result of the call, decides between the two.
//
// Fields and elements, such as h.x and xs[0], are followed from one statement
// to the next, until a function is called that could change them. Function
// literals are followed where they are called, also through a variable that
// only ever has this one, deferred, or passed to Cleanup of a test.
//
// # Functions
//
// The effect of a function on its parameters (it consumes them on every path
// without an error, or it only borrows them; it returns only if they are nil,
// for errors; it returns them), and the results that its caller must release,
// are computed from its body and exported as a fact to other packages. This
// includes generic functions, and parameters of interfaces with Release or
// Close. A function can also declare its effect, in a line of its comment:
//
//	//tenure:consumes x y
//
// # What it does not report
//
// Lines with //tenure:ignore are not reported. After a call whose error is
// passed to a function that may return although the error is not nil, values
// that depend on that error are not followed.
//
// Values in slices, maps, structs, channels and globals are not checked at the
// end of a function, because its body does not show whether other code reaches
// and releases them. So a tensor that is put into a local slice and never
// released is not found. Two names of one struct or slice are different
// variables: a.x and b.x after b := a. Values that are passed to a function of
// unknown effect, or to another goroutine, are not followed. A deferred Release
// ends a tensor and is never reported. If a path depends on a boolean variable
// that is set or tested in several places, values that are given up under it
// are not reported as leaks, because the analysis does not distinguish the
// values of the variable. A test that has called Error may leave tensors
// unreleased. An owner that has made a peer ends with the peer; a peer or
// listener ends with its owner.
//
// # Memory and concurrency
//
// The package holds no tensor. An analyzer may run on several packages at once.
package vet
