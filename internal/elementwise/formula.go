package elementwise

// Formula computes a function from values by the methods of b. It is called once
// per target, with symbolic values, and must not depend on anything else.
type Formula func(b *Builder, x Value, params []Value) Value

// Value is a number of a formula under construction.
type Value int

// Builder records the steps of a formula.
type Builder struct{}
