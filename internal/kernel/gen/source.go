package main

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// goForms are how a kind of Go code computes the steps that are not operators
// of the language: with %s for the operands.
type goForms map[elementwise.Op]string

// exactForms are in float64, to its full accuracy.
var exactForms = goForms{
	elementwise.Abs: "math.Abs(%s)", elementwise.CopySign: "math.Copysign(%s, %s)", elementwise.Sqrt: "math.Sqrt(%s)",
	elementwise.Floor: "math.Floor(%s)", elementwise.Ceil: "math.Ceil(%s)", elementwise.Round: "math.RoundToEven(%s)",
	elementwise.Exp: "math.Exp(%s)", elementwise.Expm1: "math.Expm1(%s)", elementwise.Log: "math.Log(%s)", elementwise.Log1p: "math.Log1p(%s)",
	elementwise.Tanh: "math.Tanh(%s)", elementwise.Erf: "math.Erf(%s)", elementwise.Sigmoid: "1 / (1 + math.Exp(-%s))",
	elementwise.Softplus: "exactSoftplus(%s)", elementwise.TimesPhi: "exactTimesPhi(%s)", elementwise.Pow: "math.Pow(%s, %s)",
	elementwise.Sin: "math.Sin(%s)", elementwise.Cos: "math.Cos(%s)", elementwise.Tan: "math.Tan(%s)",
	elementwise.Asin: "math.Asin(%s)", elementwise.Acos: "math.Acos(%s)", elementwise.Atan: "math.Atan(%s)",
	elementwise.Sinh: "math.Sinh(%s)", elementwise.Cosh: "math.Cosh(%s)",
	elementwise.Asinh: "math.Asinh(%s)", elementwise.Acosh: "math.Acosh(%s)", elementwise.Atanh: "math.Atanh(%s)",
}

// fastForms are in float64, accurate enough for float32; others are those of
// exactForms.
var fastForms = goForms{
	elementwise.Exp: "exp64(%s)", elementwise.Expm1: "expm1(%s)", elementwise.Tanh: "tanh64(%s)", elementwise.Erf: "erf64(%s)",
	elementwise.Sigmoid: "1 / (1 + exp64(-%s))", elementwise.Softplus: "softplus64(%s)", elementwise.TimesPhi: "timesPhi64(%s)",
}

// singleForms are in float32.
var singleForms = goForms{
	elementwise.Abs:      "math.Float32frombits(math.Float32bits(%s) &^ (1 << 31))",
	elementwise.CopySign: "float32(math.Copysign(float64(%s), float64(%s)))",
	elementwise.Sqrt:     "float32(math.Sqrt(float64(%s)))",
	elementwise.Floor:    "float32(math.Floor(float64(%s)))",
	elementwise.Ceil:     "float32(math.Ceil(float64(%s)))",
	elementwise.Round:    "float32(math.RoundToEven(float64(%s)))",
	elementwise.FMA:      "float32(float64(%s)*float64(%s) + float64(%s))",
}

// source writes the Go code of an expression: statements, and a text for each
// value, which is a variable if it is used twice.
type source struct {
	*elementwise.Expression
	forms  goForms
	single bool // in float32
	uses   []int
	texts  map[elementwise.Value]text
	code   *strings.Builder
}

// text is an expression in Go, and how its outermost operator binds.
type text struct {
	string
	binds int
}

const (
	asOperand = iota
	asProduct
	asSum
)

func newSource(e *elementwise.Expression, forms goForms, single bool) *source {
	s := &source{Expression: e, forms: forms, single: single, uses: e.Uses(), texts: map[elementwise.Value]text{}, code: &strings.Builder{}}
	for v := range e.Nodes {
		switch n := &e.Nodes[v]; n.Op {
		case elementwise.X:
			s.texts[elementwise.Value(v)] = text{"x", asOperand}
		case elementwise.Parameter:
			s.texts[elementwise.Value(v)] = text{paramNames[n.Index], asOperand}
		case elementwise.Constant:
			s.texts[elementwise.Value(v)] = text{strconv.FormatFloat(n.Number, 'g', -1, 64), asOperand}
		}
	}
	return s
}

var paramNames = [2]string{"a", "b"}

func (s *source) line(format string, args ...any) { fmt.Fprintf(s.code, format+"\n", args...) }

// value returns the text of a value, after writing the statements that it
// needs.
func (s *source) value(v elementwise.Value) text {
	if t, ok := s.texts[v]; ok {
		return t
	}
	t := s.step(v)
	if s.uses[v] > 1 && t.binds != asOperand || s.uses[v] > 1 && strings.Contains(t.string, "(") {
		name := s.name(v)
		s.line("%s := %s", name, t.string)
		t = text{name, asOperand}
	}
	s.texts[v] = t
	return t
}

func (s *source) name(v elementwise.Value) string { return fmt.Sprint("v", int(v)) }

// operand is the text of a value in an expression of an operator that binds as
// tightly as said.
func (s *source) operand(v elementwise.Value, binds int) string {
	t := s.value(v)
	if t.binds > binds {
		return "(" + t.string + ")"
	}
	return t.string
}

func (s *source) step(v elementwise.Value) text {
	n := &s.Nodes[v]
	x, y, z := n.Args[0], n.Args[1], n.Args[2]
	if form, ok := s.forms[n.Op]; ok {
		return s.called(form, n)
	}
	switch n.Op {
	case elementwise.Add:
		return text{s.operand(x, asSum) + " + " + s.operand(y, asProduct), asSum}
	case elementwise.Sub:
		return text{s.operand(x, asSum) + " - " + s.operand(y, asProduct), asSum}
	case elementwise.Mul:
		if s.isLogistic(y) {
			return text{s.operand(x, asProduct) + " / " + s.logisticDivisor(y), asProduct}
		}
		return text{s.operand(x, asProduct) + " * " + s.operand(y, asOperand), asProduct}
	case elementwise.Div:
		return text{s.operand(x, asProduct) + " / " + s.operand(y, asOperand), asProduct}
	case elementwise.MulAdd, elementwise.FMA:
		return text{s.operand(x, asProduct) + "*" + s.operand(y, asOperand) + " + " + s.operand(z, asProduct), asSum}
	case elementwise.Min:
		return s.called("min(%s, %s)", n)
	case elementwise.Max:
		return s.called("max(%s, %s)", n)
	case elementwise.Relu:
		return s.called("max(%s, 0)", n)
	case elementwise.Neg:
		return text{"-" + s.operand(x, asOperand), asProduct}
	case elementwise.Select:
		return s.selection(v)
	}
	return s.called(exactForms[n.Op], n)
}

// called is a form with its operands.
func (s *source) called(form string, n *elementwise.Node) text {
	var args []any
	for _, v := range n.Operands() {
		binds := asSum
		if strings.Contains(form, "-%s") {
			binds = asOperand
		}
		args = append(args, s.operand(v, binds))
	}
	t := text{fmt.Sprintf(form, args...), asOperand}
	if strings.HasPrefix(form, "1 / ") {
		t.binds = asProduct
	}
	return t
}

// isLogistic tells whether a factor is 1/(1+e^-u) for this product alone, which
// is then a quotient.
func (s *source) isLogistic(v elementwise.Value) bool {
	return s.Nodes[v].Op == elementwise.Sigmoid && s.uses[v] == 1
}

func (s *source) logisticDivisor(v elementwise.Value) string {
	return strings.TrimPrefix(s.called(s.forms[elementwise.Sigmoid], &s.Nodes[v]).string, "1 / ")
}

// selection writes a branch if it saves a costly value. In float32 both values
// are computed, and of their bits one is taken, which the compiler does without
// a branch: signs are as good as random.
func (s *source) selection(v elementwise.Value) text {
	n := &s.Nodes[v]
	name := s.name(v)
	condition := s.condition(n)
	if s.single {
		then := s.value(n.Args[2])
		s.line("%s := %s", name, s.bits(n.Args[3]))
		if s.Nodes[n.Args[2]].Op != elementwise.Constant {
			s.line("%sThen := %s", name, s.bits(n.Args[2]))
			then.string = name + "Then"
		} else {
			then.string = s.bits(n.Args[2])
		}
		s.line("if %s {\n%s = %s\n}", condition, name, then.string)
		return text{"math.Float32frombits(" + name + ")", asOperand}
	}
	s.shared(n.Args[2], n.Args[3])
	s.line("var %s float64", name)
	s.line("if %s {", condition)
	s.branch(name, n.Args[2])
	s.line("} else {")
	s.branch(name, n.Args[3])
	s.line("}")
	return text{name, asOperand}
}

// returned writes the return of a value, in whose place the form has %s.
func (s *source) returned(form string, v elementwise.Value) {
	n := &s.Nodes[v]
	if n.Op != elementwise.Select {
		s.line("return "+form, s.value(v).string)
		return
	}
	condition := s.condition(n)
	s.shared(n.Args[2], n.Args[3])
	outer := maps.Clone(s.texts)
	s.line("if %s {", condition)
	s.assume(n, true)
	s.returned(form, n.Args[2])
	s.line("}")
	s.texts = outer
	s.assume(n, false)
	s.returned(form, n.Args[3])
}

// assume replaces the smaller and the larger of two values by that one of them
// which it is known to be where they compare as they do in n.
func (s *source) assume(n *elementwise.Node, holds bool) {
	if n.Relation != elementwise.Less {
		return
	}
	x, y := n.Args[0], n.Args[1]
	known := map[elementwise.Op]elementwise.Value{elementwise.Min: x, elementwise.Max: y}
	if !holds { // y is not above x, or either is NaN: that stays if the other is a constant
		known = map[elementwise.Op]elementwise.Value{}
		if s.Nodes[x].Op == elementwise.Constant {
			known[elementwise.Min] = y
		}
		if s.Nodes[y].Op == elementwise.Constant {
			known[elementwise.Max] = x
		}
	}
	for v := range s.Nodes {
		m := &s.Nodes[v]
		of := m.Args[0] == x && m.Args[1] == y || m.Args[0] == y && m.Args[1] == x
		if is, ok := known[m.Op]; ok && of {
			s.texts[elementwise.Value(v)] = s.value(is)
		}
	}
}

func (s *source) condition(n *elementwise.Node) string {
	relation := map[elementwise.Relation]string{elementwise.Less: " < ", elementwise.Equal: " == "}[n.Relation]
	return s.operand(n.Args[0], asSum) + relation + s.operand(n.Args[1], asSum)
}

// bits is the text of a number's bits.
func (s *source) bits(v elementwise.Value) string {
	t := s.value(v)
	if s.Nodes[v].Op == elementwise.Constant {
		return fmt.Sprintf("math.Float32bits(%s)", t.string)
	}
	if bits, ok := strings.CutPrefix(t.string, "math.Float32frombits("); ok && !strings.ContainsAny(bits, "( ") {
		return strings.TrimSuffix(bits, ")")
	}
	return fmt.Sprintf("math.Float32bits(%s)", t.string)
}

// branch sets a variable to a value. The variables that it declares end with
// it.
func (s *source) branch(name string, v elementwise.Value) {
	outer := maps.Clone(s.texts)
	s.line("%s = %s", name, s.value(v).string)
	s.texts = outer
}

// shared writes what more than one of two branches, or another step, needs.
func (s *source) shared(branches ...elementwise.Value) {
	for v := range s.Nodes {
		v := elementwise.Value(v)
		if s.uses[v] < 2 || !s.reaches(branches[0], v) && !s.reaches(branches[1], v) {
			continue
		}
		for _, branch := range branches {
			if s.usesWithin(branch, v) == s.uses[v] {
				v = -1
				break
			}
		}
		if v >= 0 {
			s.value(v)
		}
	}
}

// reaches tells whether a value is made of another, or is it.
func (s *source) reaches(from, to elementwise.Value) bool {
	if from == to {
		return true
	}
	for _, arg := range s.Nodes[from].Operands() {
		if s.reaches(arg, to) {
			return true
		}
	}
	return false
}

// usesWithin counts the uses of a value in the steps that another is made of,
// and its use as that.
func (s *source) usesWithin(from, v elementwise.Value) (n int) {
	if from == v {
		n++
	}
	for u := range s.Nodes {
		if !s.reaches(from, elementwise.Value(u)) {
			continue
		}
		for _, arg := range s.Nodes[u].Operands() {
			if arg == v {
				n++
			}
		}
	}
	return n
}
