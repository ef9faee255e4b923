// Package op is the one table of operators: what each is called, what it
// takes, what it returns, and whether its result may lie in an operand's
// bytes.
//
// A [Def] declares an operator once. Its shape rule gives the result types
// from the operand types and from operands whose values are known; its alias
// rules say per (operand, result) how the result relates to the operand's
// bytes: a [View] is the operand's bytes, [Same] may overwrite the operand
// element by element, [Accumulate] adds into it, [Update] writes a region of
// it. An operator that declares [Fresh] never touches an operand's bytes; one
// that declares nothing may alias everything and is never put in place.
// Eager donation, the passes, the planner and the checker read this table and
// nothing else.
//
// Operators have no versions. Their operands and attributes are those of the
// newest ONNX opset; package onnx lifts older forms to it.
//
// # Memory
//
// Definitions are values on the Go heap, never mutated after registration.
// Operand bytes are seen only by kernels, for the duration of one [Call].
//
// # Concurrency
//
// A [Registry] and its definitions are immutable and safe for concurrent use.
package op
