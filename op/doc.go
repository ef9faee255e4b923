// Package op is the table of operators: the name of each, its operands and
// results, and whether a result may lie in an operand's bytes.
//
//	double := &op.Def{
//		Name: "acme.double", Doc: "doubles each element of x, which are bytes", MinArgs: 1, MaxArgs: 1,
//		Alias:  op.SameAs(0), // may overwrite its operand
//		Infer:  func(s *op.Sig) error { s.Results[0] = s.Args[0]; return nil },
//		Kernel: func(c *op.Call) error { ... },
//	}
//	registry, err := op.Builtin().With(double)
//
// A [Def] declares an operator once. Eager donation, the passes, the planner
// and the checker read this table and nothing else. Package optest tests
// operators against their declarations.
//
// # Aliases
//
// The alias rules say for each operand and result how the result relates to the
// operand's bytes: a [View] is the operand's bytes, [Same] may overwrite the
// operand element by element, [Accumulate] adds into it, [Update] writes a part
// of it. Two kinds are for one thread, see [Sig.AliasAlone]: [Permute] puts the
// operand's elements into another order, [Narrow] makes them smaller. An
// operator that declares [Fresh] never touches an operand's bytes; one that
// declares nothing may alias everything and is never put in place.
//
// # Shape rules
//
// A shape rule computes the result types from the operand types and from
// operands whose values are known. Dimensions and values may be unknown: the
// rule returns the types that follow from the others, with symbols and unknown
// dimensions, and an unknown rank (a nil Shape) where not even that follows.
// Facts that a rule and a kernel both need are methods of [Sig]: windows with
// automatic pads resolved ([Sig.ConvAxes], [Sig.PoolAxes]), the elements that a
// slice takes ([Sig.SliceAxes]), pads, reduced axes, permutations, scales.
//
// Operators have no versions. Their operands and attributes are those of the
// newest ONNX opset; the importer lifts older forms to it.
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
