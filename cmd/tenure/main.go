// Command tenure runs ONNX models in memory whose size is known before the
// run, and shows the memory that a run will take.
//
//	tenure run MODEL       run a model on files and print or save the answer
//	tenure plan MODEL      report the memory of a run before any run
//	tenure check MODEL P   prove a stored plan against a model
//	tenure inspect MODEL   list inputs, outputs, operators, the program's text
//	tenure serve DIR       answer requests for inference over HTTP and gRPC
//	tenure share serve F   lend tensors to other processes; list, get, drop, watch
//	tenure bench memory    measure networks whose values are held, released, donated, planned
//	tenure devices         list the memories that tensors can be in
//
// The exit code is 0 for success, 1 for a failure, 2 for an invalid command
// line. Reports go to standard output, errors, in one line (and lines with
// hints, indented), and progress to standard error. Files are written whole
// or not at all. The memory is that of one run; nothing is kept.
//
// The program is static. Command tenure-cuda is the same with CUDA devices.
package main

import (
	"os"

	"github.com/tenure-go/tenure/internal/command"
)

func main() { os.Exit(command.Program{Name: "tenure"}.Main()) }
