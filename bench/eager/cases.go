package main

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

// operation is one row of the table: what both sides compute, on operands
// that both make. The expressions are numpy's, of the operands x, y, z and of
// out.
type operation struct {
	name     string
	operands func(n int) []operand
	tenure   func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor
	fresh    string // an array of its own
	into     string // the same into out; empty where numpy has no way to
}

// operand is an array: its type, its sizes, and a rule for its elements.
type operand struct {
	rule string // see fill
	dt   dtype.DType
	dims []int
}

func (o operand) elements() int {
	n := 1
	for _, d := range o.dims {
		n *= d
	}
	return n
}

func (o operand) bytes() int { return o.elements() * o.dt.Size() }

// side is the length of the rows that arrays of n elements are cut into.
func side(n int) int { return 1 << (int(math.Log2(float64(n))) / 2) }

func vector(rule string, dt dtype.DType) func(n int) operand {
	return func(n int) operand { return operand{rule, dt, []int{n}} }
}

func matrix(rule string, dt dtype.DType) func(n int) operand {
	return func(n int) operand { return operand{rule, dt, []int{n / side(n), side(n)}} }
}

// cube has a first, a middle and a last axis.
func cube(rule string, dt dtype.DType) func(n int) operand {
	return func(n int) operand { return operand{rule, dt, []int{16, n / 16 / 64, 64}} }
}

func all(makers ...func(n int) operand) func(n int) []operand {
	return func(n int) []operand {
		var list []operand
		for _, m := range makers {
			list = append(list, m(n))
		}
		return list
	}
}

// numpyName is the name of a type in numpy.
func numpyName(dt dtype.DType) string {
	return map[dtype.DType]string{
		dtype.F16: "f2", dtype.F32: "f4", dtype.F64: "f8", dtype.I8: "i1", dtype.I16: "i2", dtype.I32: "i4", dtype.I64: "i8",
		dtype.U8: "u1", dtype.Bool: "?",
	}[dt]
}

// operations lists the table.
func operations() []operation {
	var list []operation
	list = append(list, casts()...)
	list = append(list, elementwise()...)
	list = append(list, movements()...)
	list = append(list, lookups()...)
	list = append(list, reductions()...)
	return list
}

func casts() (list []operation) {
	for _, c := range []struct {
		from, to dtype.DType
		rule     string
	}{
		{dtype.F32, dtype.F64, "unit"}, {dtype.F64, dtype.F32, "unit"}, {dtype.F32, dtype.I32, "wide"}, {dtype.I32, dtype.F32, "int"},
		{dtype.F32, dtype.I64, "wide"}, {dtype.I64, dtype.F32, "int"}, {dtype.F64, dtype.I64, "wide"}, {dtype.I64, dtype.F64, "int"},
		{dtype.F64, dtype.I32, "wide"}, {dtype.I32, dtype.F64, "int"}, {dtype.U8, dtype.F32, "byte"}, {dtype.F32, dtype.U8, "byte"},
		{dtype.F32, dtype.F16, "unit"}, {dtype.F16, dtype.F32, "unit"}, {dtype.I64, dtype.I32, "int"}, {dtype.I32, dtype.I64, "int"},
		{dtype.U8, dtype.I32, "byte"}, {dtype.I32, dtype.U8, "byte"}, {dtype.Bool, dtype.F32, "bool"}, {dtype.F32, dtype.Bool, "int"},
	} {
		list = append(list, operation{
			name: fmt.Sprintf("cast %s to %s", c.from, c.to), operands: all(vector(c.rule, c.from)),
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Cast(x[0], c.to) },
			fresh:  fmt.Sprintf("x.astype(%q)", numpyName(c.to)), into: "np.copyto(out, x, casting='unsafe')",
		})
	}
	return list
}

// function is an operation of numpy's that takes out.
func function(name string, operands func(n int) []operand, numpy, args string, tenure func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor) operation {
	return operation{name: name, operands: operands, tenure: tenure, fresh: fmt.Sprintf("np.%s(%s)", numpy, args), into: fmt.Sprintf("np.%s(%s, out=out)", numpy, args)}
}

// copied is an operation of numpy's that makes a view, of which a copy is made.
func copied(name string, operands func(n int) []operand, view string, tenure func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor) operation {
	return operation{name: name, operands: operands, tenure: tenure, fresh: fmt.Sprintf("(%s).copy()", view), into: fmt.Sprintf("np.copyto(out, %s)", view)}
}

type two = func(s *eager.Scope, x, y tensor.Operand) *tensor.Tensor

type single = func(s *eager.Scope, x tensor.Operand) *tensor.Tensor

func elementwise() (list []operation) {
	binary := func(name, numpy string, f two, rule string, types ...dtype.DType) {
		for _, dt := range types {
			list = append(list, function(fmt.Sprintf("%s %s", name, dt), all(vector(rule, dt), vector(rule, dt)), numpy, "x, y",
				func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return f(s, x[0], x[1]) }))
		}
	}
	unary := func(name, numpy string, f single, rule string, types ...dtype.DType) {
		for _, dt := range types {
			list = append(list, function(fmt.Sprintf("%s %s", name, dt), all(vector(rule, dt)), numpy, "x",
				func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return f(s, x[0]) }))
		}
	}
	binary("less", "less", (*eager.Scope).Less, "int", dtype.F32, dtype.F64, dtype.I32, dtype.I64)
	binary("less", "less", (*eager.Scope).Less, "byte", dtype.U8)
	binary("equal", "equal", (*eager.Scope).Equal, "int", dtype.F32, dtype.I32, dtype.I64)
	binary("and", "logical_and", (*eager.Scope).And, "bool", dtype.Bool)
	binary("or", "logical_or", (*eager.Scope).Or, "bool", dtype.Bool)
	unary("not", "logical_not", (*eager.Scope).Not, "bool", dtype.Bool)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.U8} {
		list = append(list, operation{
			name: fmt.Sprintf("where %s", dt), operands: all(vector("bool", dtype.Bool), vector("byte", dt), vector("byte", dt)),
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Where(x[0], x[1], x[2]) },
			fresh:  "np.where(x, y, z)",
			into:   "(np.copyto(out, z), np.copyto(out, y, where=x))",
		})
	}
	binary("add", "add", (*eager.Scope).Add, "int", dtype.F64, dtype.I32, dtype.I64)
	binary("mul", "multiply", (*eager.Scope).Mul, "int", dtype.F64, dtype.I32, dtype.I64)
	binary("div", "divide", (*eager.Scope).Div, "wide", dtype.F64)
	least := func(s *eager.Scope, x, y tensor.Operand) *tensor.Tensor { return s.Min(x, y) }
	most := func(s *eager.Scope, x, y tensor.Operand) *tensor.Tensor { return s.Max(x, y) }
	binary("min", "minimum", least, "int", dtype.F32, dtype.F64, dtype.I32, dtype.I64)
	binary("max", "maximum", most, "int", dtype.I32, dtype.I64)
	binary("bitwise and", "bitwise_and", (*eager.Scope).BitwiseAnd, "int", dtype.I32)
	unary("exp", "exp", (*eager.Scope).Exp, "unit", dtype.F64)
	unary("log", "log", (*eager.Scope).Log, "byte", dtype.F64)
	unary("sqrt", "sqrt", (*eager.Scope).Sqrt, "byte", dtype.F32, dtype.F64)
	unary("abs", "abs", (*eager.Scope).Abs, "int", dtype.F32, dtype.F64, dtype.I32)
	unary("neg", "negative", (*eager.Scope).Neg, "int", dtype.F32, dtype.F64)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.I32} {
		list = append(list, function(fmt.Sprintf("clip %s", dt), all(vector("int", dt)), "clip", "x, -500, 500",
			func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Clip(x[0], -500, 500) }))
	}
	add := func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Add(x[0], x[1]) }
	row := func(n int) operand { return operand{"unit", dtype.F32, []int{side(n)}} }
	column := func(n int) operand { return operand{"unit", dtype.F32, []int{n / side(n), 1}} }
	return append(list,
		function("add row f32", all(matrix("unit", dtype.F32), row), "add", "x, y", add),
		function("add column f32", all(matrix("unit", dtype.F32), column), "add", "x, y", add))
}
