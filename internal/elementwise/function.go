// Package elementwise declares the elementwise functions: one row for each,
// from which everything else that knows the function follows: the operator and
// its documentation (package op), its import (internal/onnx/standard), the
// binding of its kernel (internal/compute), its place in fused chains and in
// recurrent cells, the portable and the vector kernels and their names
// (internal/kernel/gen writes them), the cases of the kernels' test suite and
// of the comparison with ONNX Runtime. The reference that the kernels are
// tested against does not follow from the row: it is written by hand, in
// internal/kernel/ref, so that a wrong formula fails.
//
// A row without a formula has loops that are written by hand. That is so for
// the primitives of formulas themselves, for functions of integers, whose
// formulas would compute in floats, and for predicates: a formula computes
// numbers of one float type, a predicate writes bools, and compares integers of
// 64 bits exactly.
//
//	f := elementwise.Lookup("celu")
//	fmt.Println(f.ONNX, f.Since, f.Params[0].Name) // Celu 12 alpha
//
// The package holds no memory of tensors. Its tables are immutable, and its
// functions may be called from any goroutine.
package elementwise

import "slices"

// Function is the declaration of an elementwise function of one operand x.
type Function struct {
	// Name is the function's name in programs and kernels, such as
	// "leaky_relu".
	Name string
	// ONNX is the name in models of the operator that computes the function. It
	// is empty if no operator follows from the row: the operator is declared by
	// hand, because it has more operands or other attributes, or there is none.
	ONNX string
	// Since is the first ONNX opset that has the operator, 0 if all have it.
	Since int
	// Doc describes the result in the indicative; it follows the operator's
	// name in documentation.
	Doc string
	// Types are the element types that the operator takes.
	Types Types
	// Params are the function's scalar parameters, two at most: attributes of
	// the operator, in the order in which Formula takes them.
	Params []Param
	// AtDefaults is the name of a function without parameters that computes the
	// same if all parameters have their defaults; empty if there is none.
	AtDefaults string
	// Formula computes the function. It is evaluated symbolically.
	Formula Formula
	// Domain is where the function is defined. Tests draw operands from it.
	Domain Domain
	// MaxError bounds the error of the float32 kernels.
	MaxError Bound
	// Chained says that a fused chain may contain the function.
	Chained bool
	// Cell is the name of the function as an activation of recurrent cells,
	// empty if they have no such activation.
	Cell string
}

// Resolve returns the function that a call of the operator computes, and its
// parameters, if attr returns the call's attributes: f, or the function that is
// the same at the defaults.
func (f *Function) Resolve(attr func(name string) float64) (g *Function, params [2]float64) {
	isDefault := true
	for i := range f.Params {
		p := &f.Params[i]
		params[i] = attr(p.Name)
		isDefault = isDefault && params[i] == float64(float32(p.Default))
	}
	if isDefault && f.AtDefaults != "" {
		return Lookup(f.AtDefaults), [2]float64{}
	}
	return f, params
}

// Param is a scalar parameter of a function.
type Param struct {
	Name string
	// Default is the attribute's value, rounded to float32, if a call has none.
	Default float64
	// Min and Max bound the values that tests draw.
	Min, Max float64
}

// Binary is the declaration of an elementwise function of two operands of one
// element type, which broadcast.
type Binary struct {
	// Name, ONNX, Since, Doc and Types are as those of Function.
	Name  string
	ONNX  string
	Since int
	Doc   string
	Types Types
	// Predicate says that the result is a bool.
	Predicate bool
	// Nonzero says that tests draw no zero for the second operand.
	Nonzero bool
	// Formula computes the function on floats; its loops are generated. On
	// integers its operator computes in f64. Formula is nil if the loops are
	// written by hand.
	Formula BinaryFormula
	// MaxError bounds the error of the float32 kernels if there is a Formula,
	// in terms of x.
	MaxError Bound
	// Chained says that a fused chain may contain the function.
	Chained bool
}

// Types is a set of element types.
type Types uint8

// The sets of element types.
const (
	Floats   Types = 1 << iota // f16, bf16, f32, f64
	Ints                       // i8, i16, i32, i64
	Uints                      // u8, u16, u32, u64
	Bools                      // bool
	Signed   = Floats | Ints
	Integers = Ints | Uints
	Numbers  = Floats | Integers
)

// Domain is an interval of operands. The zero Domain is all numbers.
type Domain struct{ Min, Max float64 }

// Within returns the part of the domain from lo to hi.
func (d Domain) Within(lo, hi float64) (float64, float64) {
	if d == (Domain{}) {
		return lo, hi
	}
	return max(lo, d.Min), min(hi, d.Max)
}

// Bound is the largest error of a function's results: units in the last place
// of the exact result, some of them times |x| or x*x, and an absolute part. The
// zero Bound says that results are exact.
type Bound struct{ Ulps, PerX, PerSquare, Absolute float64 }

// Functions returns the functions of one operand. The kernels number them in
// this order.
func Functions() []*Function { return slices.Clone(functions) }

// Binaries returns the functions of two operands.
func Binaries() []*Binary { return slices.Clone(binaries) }

// Lookup returns the function of one operand with the given name, nil if there
// is none.
func Lookup(name string) *Function { return byName[name] }

// functions has all rows of the tables of functions of one operand.
var functions = slices.Concat(activations, arithmetic, transcendental)

var byName = func() map[string]*Function {
	rows := make(map[string]*Function, len(functions))
	for _, f := range functions {
		if rows[f.Name] != nil {
			panic("BUG: elementwise: function " + f.Name + " is declared twice")
		}
		rows[f.Name] = f
	}
	return rows
}()
