// Package engine runs one model in a process of its own, so that runs of
// Tenure and of ONNX Runtime can alternate and so that each process's memory
// is that of one engine and one model.
//
// The process reads a [Request] per line from its standard input and answers
// each with a [Reply] on one line of its standard output, both JSON. [Serve]
// is Tenure's side of it, in the benchmark's own binary: see [ServeIfAsked].
// ort.py in the module's root is the other one. [Start] starts either.
//
// A [Process] belongs to one goroutine; Close ends it. Inputs and outputs go
// through files of raw little-endian elements.
package engine
