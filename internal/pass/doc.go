// Package pass rewrites programs, one pass per file.
//
// [Load] is the pipeline of a program that was just read: constants are
// computed, views that change nothing go, batch normalisation moves into the
// weights before it. [Specialise] is for a clone of the program that was bound
// to one set of input types (ir.Program.Bind): all shapes become static, shape
// arithmetic becomes constants, calls are fused, outputs get bytes of their
// own, and every last use that the operator table allows to be overwritten is
// marked `donate`. A [Structure] repeats this for other sizes without running
// the passes, as long as they would decide the same. The comment of each pass
// states its requirements and guarantees; in tests the verifier runs after
// every pass.
//
// # Memory
//
// A pass holds no bytes: constants that it makes go to the [Constants] table
// of its [Context].
//
// # Concurrency
//
// A context and its program belong to one goroutine. Contexts whose programs
// are clones of one program may be used at the same time, if each has a table
// of its own for the constants that its passes make.
package pass
