// Package elementwise declares the elementwise functions: one row for each, from
// which everything else that knows the function follows: the operator and its
// documentation (package op), its import (internal/onnx/standard), the binding of
// its kernel (internal/compute), the portable and the vector kernels and their
// names (internal/kernel/gen writes them), the cases of the kernels' test suite
// and of the comparison with ONNX Runtime. The reference that the kernels are
// tested against does not follow from the row: it is written by hand, in
// internal/kernel/ref, so that a wrong formula fails.
//
// The package holds no memory of tensors. Its tables are immutable.
package elementwise

// Function is the declaration of an elementwise function of one operand x.
type Function struct {
	// Name is the operator's name in programs, such as "leaky_relu".
	Name string
	// ONNX is the operator's name in models; empty where it has none there.
	ONNX string
	// Since is the first ONNX opset that has the operator, 0 if all have it.
	Since int
	// Doc says in the indicative what the function computes; it follows the
	// operator's name in documentation.
	Doc string
	// Types are the element types that the function takes.
	Types Types
	// Params are the function's scalar parameters, two at most: attributes of
	// the operator, in the order in which Formula takes them.
	Params []Param
	// Formula computes the function. It is evaluated symbolically.
	Formula Formula
	// Domain is where operands are drawn from to test the function.
	Domain Domain
	// MaxError bounds the error of the float32 kernels, in units in the last
	// place of the exact result.
	MaxError float64
	// Chained says that a fused chain may contain the function.
	Chained bool
}

// Param is a scalar parameter of a function.
type Param struct {
	Name    string
	Default float64
	// Min and Max bound the values that tests draw.
	Min, Max float64
}

// Types is a class of element types.
type Types uint8

// The classes of element types.
const (
	Floats  Types = iota // f16, bf16, f32, f64
	Signed               // Floats and the signed integers
	Numbers              // Signed and the unsigned integers
)

// Domain is an interval of operands.
type Domain struct{ Min, Max float64 }
