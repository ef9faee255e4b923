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
// Shape rules take dimensions and values that are not known: they give what
// can be told, with symbols and unknown dimensions, and an unknown rank (a nil
// Shape) where not even that can be told. What a rule works out on the way and
// a kernel needs too has one place, a method of [Sig]: windows with automatic
// pads worked out ([Sig.ConvAxes], [Sig.PoolAxes]), the elements that a slice
// takes ([Sig.SliceAxes]), pads, reduced axes, permutations, scales. Package
// optest holds operators to their declarations.
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
