package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// generateFunctions adds the Go files of the functions: their numbers and
// names, and the loops of those with a formula.
func generateFunctions(files map[string][]byte, functions []*elementwise.Function, binaries []*elementwise.Binary) error {
	names := constants("Unary", functions, func(f *elementwise.Function) (name, doc string) { return f.Name, f.Doc })
	for _, kind := range []struct {
		typ       string
		predicate bool
	}{{"Binary", false}, {"Predicate", true}} {
		rows := slices.DeleteFunc(slices.Clone(binaries), func(f *elementwise.Binary) bool { return f.Predicate != kind.predicate })
		names += constants(kind.typ, rows, func(f *elementwise.Binary) (name, doc string) { return f.Name, f.Doc })
	}
	if err := addSource(files, "functions_gen.go", names); err != nil {
		return err
	}
	if err := addSource(files, "elementwise/functions_gen.go", portableFunctions(functions)); err != nil {
		return err
	}
	return addSource(files, "elementwise/binary_gen.go", portableBinaries(binaries))
}

// constants writes the numbers and the names of functions of a kind.
func constants[F any](kind string, functions []F, row func(F) (name, doc string)) string {
	var s, names strings.Builder
	fmt.Fprintf(&s, "\n// The values of %sOp, with the function of each.\nconst (\n", kind)
	typ := fmt.Sprintf(" %sOp = iota", kind)
	for _, f := range functions {
		name, doc := row(f)
		fmt.Fprintf(&s, "%s%s // %s\n", capital(camel(name)), typ, doc)
		fmt.Fprintf(&names, "%q,\n", name)
		typ = ""
	}
	fmt.Fprintf(&s, "Num%s // how many there are\n)\n\nvar %sNames = [Num%[1]s]string{\n%[3]s}\n", kind, strings.ToLower(kind), names.String())
	return s.String()
}

func constantName(f *elementwise.Function) string { return capital(camel(f.Name)) }

// writtenRows are the loops that are written by hand.
var writtenRows = map[string]bool{"pow_scalar": true} // has loops for the exponents that models use

// portableFunctions writes the functions in Go: of one float64, and of a row of
// float32.
func portableFunctions(functions []*elementwise.Function) string {
	var s, scalars, rows strings.Builder
	for _, f := range functions {
		e := f.Expression()
		fmt.Fprintf(&scalars, "kernel.%s: func(%s float64) float64 {\n%s},\n", constantName(f), parameters(e, "x"), exactFunction(e))
		fmt.Fprintf(&rows, "kernel.%s: %sRow,\n", constantName(f), camel(f.Name))
		if !writtenRows[f.Name] {
			s.WriteString(portableRow(f, e))
		}
	}
	return fmt.Sprintf(`
// unaryScalar defines every function on one float64 to full accuracy.
var unaryScalar = [kernel.NumUnary]func(x, a, b float64) float64{
%s}

// portableUnaryRows compute the functions of rows.
var portableUnaryRows = [kernel.NumUnary]func(dst, src []float32, a, b float32){
%s}
%s`, scalars.String(), rows.String(), s.String())
}

// parameters lists the names of an operand and of the scalar parameters, those
// that the expression does not need as _.
func parameters(e *elementwise.Expression, operand string) string {
	names := []string{operand, "_", "_"}
	for v := range e.Nodes {
		if n := &e.Nodes[v]; n.Op == elementwise.Parameter {
			names[1+n.Index] = paramNames[n.Index]
		}
	}
	return strings.Join(names, ", ")
}

func exactFunction(e *elementwise.Expression) string {
	s := newSource(e, exactForms, false)
	s.returned("%s", e.Result)
	return s.code.String()
}

// portableRow is the loop of a function over a row. Functions of a few
// instructions are computed in float32, in the loop; others in float64 by a
// function that is deliberately not inlined: on amd64 a conversion between
// float32 and float64 keeps the upper half of its destination register and so
// waits for the register's previous value. Inlined into a loop, that can be the
// result of the element before, and then nothing overlaps: 19 instead of 7 ns
// per element. In a function of its own the value is converted in the register
// in which it is passed.
func portableRow(f *elementwise.Function, e *elementwise.Expression) string {
	name := camel(f.Name)
	_, params, _ := strings.Cut(parameters(e, "x"), ", ")
	head := fmt.Sprintf("\nfunc %sRow(dst, src []float32, %s float32) {\n", name, params)
	if len(e.Nodes) == 1 {
		return head + "copy(dst, src)\n}\n"
	}
	if !e.IsArithmetic() {
		return fastFunction(name, e) + head + fmt.Sprintf("dst = dst[:len(src)]\nfor i, x := range src {\ndst[i] = %s32(%s)\n}\n}\n", name, arguments(e, "x"))
	}
	s := newSource(e, singleForms, true)
	for v, same := range e.Invariant() {
		if v := elementwise.Value(v); same && s.texts[v].string == "" {
			s.line("%s := %s", s.name(v), s.value(v).string)
			s.texts[v] = text{s.name(v), asOperand}
		}
	}
	s.line("for i, x := range src {")
	s.line("dst[i] = %s", s.value(e.Result).string)
	return head + "dst = dst[:len(src)]\n" + s.code.String() + "}\n}\n"
}

// arguments are those of the parameters that an expression needs, after the
// operand.
func arguments(e *elementwise.Expression, operand string) string {
	return strings.ReplaceAll(strings.ReplaceAll(parameters(e, operand), ", _", ""), "_, ", "")
}

func fastFunction(name string, e *elementwise.Expression) string {
	s := newSource(e, fastForms, false)
	var heads []string
	for _, arg := range strings.Split(arguments(e, "x"), ", ") {
		heads = append(heads, fmt.Sprintf("%s := float64(%[1]s32)\n", arg))
	}
	s.returned("float32(%s)", e.Result)
	return fmt.Sprintf("\n//go:noinline\nfunc %s32(%s32 float32) float32 {\n%s%s}\n", name,
		strings.ReplaceAll(arguments(e, "x"), ", ", "32, "), strings.Join(heads, ""), s.code.String())
}
