// Package exec compiles a final program into a plan and runs it.
//
// [Compile] binds every call to its kernel, lowers the program's values to a
// placement problem, places them and has the numbers of the plan proved by
// package plan/check before anything runs. The result, an [Executable], is
// immutable and shared. The plan is written down as a document, and proved as
// one, when [Executable.Plan] is called first. A [Runner] is one executable
// with tasks of its own, bound to one arena at a time: [Runner.Attach] points
// the tasks into the arena, [Runner.Run] executes the steps. In a run the plan
// is the ownership: values in the arena have no handles and no counts, and the
// step loop allocates nothing.
//
// [Executable.Instance] makes an executable of the same program for other
// sizes: values are placed as before, kernels refilled, and the numbers proved.
// Tasks of runners that have ended serve later ones.
//
// Constants that tasks want in a form of their own are packed into panels of
// the store of package internal/weights, which the executables of a model
// share. This package decides which ones, and into which form.
//
// # Memory
//
// An executable holds the program and the plan, and reads the weights of the
// table that it was compiled with for as long as it is used. A runner borrows
// its arena, scratch, inputs and outputs from the caller: a [Slot] owns the
// arena and scratch of one concurrent run, sized for the plan that it runs.
//
// A value whose size depends on data, and that nothing bounds, lies in a buffer
// that is allocated when the run computes it. Several values may share one
// buffer: views, loop state, results of branches. Each is dropped after its
// last use, and a result of the program gets a buffer that no other value
// shares. However a run ends, no buffer is left but those of the results that
// [Runner.TakeDynamic] hands over. [Leftover] counts those that were left in
// spite of that.
//
// # Concurrency
//
// Executables may be used from many goroutines. A runner or a slot belongs to
// one goroutine at a time; their tasks share a pool of workers.
package exec
