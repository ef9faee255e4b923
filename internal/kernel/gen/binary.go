package main

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// binaryDispatch is a generated function that chooses among the loops of one
// form by the function's number: its name behind "formula", its documentation,
// its parameters and the arguments of the loops. The loops are called directly,
// so that operands on a stack stay there.
var binaryDispatch = []struct{ form, doc, params, args string }{
	{"VV", "of two float32 rows", "dst, a, b []float32", "dst, a, b"},
	{"VS", "of a float32 row and a number", "dst, a []float32, y float32", "dst, a, y"},
	{"SV", "of a number and a float32 row", "dst []float32, x float32, b []float32", "dst, x, b"},
	{"Strided32", "of a float32 run", "r *kernel.Run, d, a, b []float32", "r, d, a, b"},
	{"Strided64", "of a float64 run", "r *kernel.Run, d, a, b []float64", "r, d, a, b"},
}

// binaryLoops are the loops of a function of two operands in Go, with NAME for
// its name. The functions of one element are named NAME32 and NAME64.
const binaryLoops = `
func NAMEVV(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = NAME32(a[i], b[i])
	}
}

func NAMEVS(dst, a []float32, y float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = NAME32(a[i], y)
	}
}

func NAMESV(dst []float32, x float32, b []float32) {
	b = b[:len(dst)]
	for i := range dst {
		dst[i] = NAME32(x, b[i])
	}
}

func NAMEStrided32(r *kernel.Run, d, a, b []float32) {
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
		d[id] = NAME32(a[ia], b[ib])
	}
}

func NAMEStrided64(r *kernel.Run, d, a, b []float64) {
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
		d[id] = NAME64(a[ia], b[ib])
	}
}
`

// portableBinaries writes the functions of two operands that have a formula in
// Go: of one element, in float32 and in float64, their loops, and the choice
// among them.
func portableBinaries(binaries []*elementwise.Binary) string {
	var s strings.Builder
	for _, d := range binaryDispatch {
		fmt.Fprintf(&s, "\n// formula%s computes a function %s. It returns false if op has no formula.\n", d.form, d.doc)
		fmt.Fprintf(&s, "func formula%s(op kernel.BinaryOp, %s) bool {\nswitch op {\n", d.form, d.params)
		for _, f := range binaries {
			if f.Formula != nil {
				fmt.Fprintf(&s, "case kernel.%s:\n%s%s(%s)\n", capital(camel(f.Name)), camel(f.Name), d.form, d.args)
			}
		}
		s.WriteString("default:\nreturn false\n}\nreturn true\n}\n")
	}
	for _, f := range binaries {
		if e := f.Expression(); e != nil {
			name := camel(f.Name)
			s.WriteString(binaryElement32(name, e) + binaryElement64(name, e) + strings.ReplaceAll(binaryLoops, "NAME", name))
		}
	}
	return s.String()
}

// newBinarySource is newSource for functions of two operands: parameter 0 is y.
func newBinarySource(e *elementwise.Expression, forms goForms, single bool) *source {
	s := newSource(e, forms, single)
	for v := range e.Nodes {
		if e.Nodes[v].Op == elementwise.Parameter {
			s.texts[elementwise.Value(v)] = text{"y", asOperand}
		}
	}
	return s
}

// binaryElement32 writes the function of two float32 numbers. As in
// portableRow, a function of a few instructions is computed in float32 and may
// be inlined; others are computed in float64 by a function that is not.
func binaryElement32(name string, e *elementwise.Expression) string {
	if e.IsArithmetic() {
		s := newBinarySource(e, singleForms, true)
		s.line("return %s", s.value(e.Result).string)
		return fmt.Sprintf("\nfunc %s32(x, y float32) float32 {\n%s}\n", name, s.code)
	}
	s := newBinarySource(e, fastForms, false)
	for _, operand := range []elementwise.Op{elementwise.X, elementwise.Parameter} {
		if e.Has(operand) {
			letter := map[elementwise.Op]string{elementwise.X: "x", elementwise.Parameter: "y"}[operand]
			s.line("%s := float64(%[1]s32)", letter)
		}
	}
	s.returned("float32(%s)", e.Result)
	return fmt.Sprintf("\n//go:noinline\nfunc %s32(x32, y32 float32) float32 {\n%s}\n", name, s.code)
}

// binaryElement64 writes the function of two float64 numbers, to full accuracy.
func binaryElement64(name string, e *elementwise.Expression) string {
	s := newBinarySource(e, exactForms, false)
	s.returned("%s", e.Result)
	return fmt.Sprintf("\nfunc %s64(x, y float64) float64 {\n%s}\n", name, s.code)
}
