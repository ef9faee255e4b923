package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
)

// functionOps are the operators that follow from the rows of package
// elementwise; elementwiseOps has the other operators that work element by
// element.
var functionOps = func() []*Def {
	var defs []*Def
	for _, f := range elementwise.Functions() {
		if f.ONNX != "" {
			defs = append(defs, functionDef(f))
		}
	}
	for _, f := range elementwise.Binaries() {
		if f.ONNX != "" {
			defs = append(defs, binaryFunctionDef(f))
		}
	}
	return defs
}()

// functionDef declares the operator of a function of one operand. The
// function's parameters are its attributes.
func functionDef(f *elementwise.Function) *Def {
	attrs := make([]AttrDef, len(f.Params))
	for i, p := range f.Params {
		attrs[i] = floatAttr(p.Name, float32(p.Default))
	}
	return unaryDef(f.Name, f.ONNX, f.Doc, typesOf(f.Types), attrs...)
}

// binaryFunctionDef declares the operator of a function of two operands.
func binaryFunctionDef(f *elementwise.Binary) *Def {
	result := dtype.Invalid
	if f.Predicate {
		result = dtype.Bool
	}
	return binaryDef(f.Name, f.ONNX, f.Doc, typesOf(f.Types), result)
}

// typesOf returns a set of element types as shape rules have it.
func typesOf(t elementwise.Types) dtypes {
	var set dtypes
	for _, class := range [...]struct {
		has   elementwise.Types
		types dtypes
	}{{elementwise.Floats, floats}, {elementwise.Ints, signed}, {elementwise.Uints, unsigned}, {elementwise.Bools, boolean}} {
		if t&class.has != 0 {
			set |= class.types
		}
	}
	return set
}
