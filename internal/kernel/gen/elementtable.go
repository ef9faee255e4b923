package main

import (
	"fmt"
	"strings"
)

// elementLoop is a loop over groups of elements.
type elementLoop struct {
	step   int
	symbol string
}

func (l elementLoop) fields() string { return fmt.Sprintf("Step: %d, Run: %s", l.step, l.symbol) }

// The operations that have loops, by the name of the loop.
var (
	binaryOps     = map[string]string{"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "min": "Min", "max": "Max"}
	bitOps        = map[string]string{"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor"}
	logicOps      = map[string]string{"and": "And", "or": "Or", "xor": "Xor"}
	unaryElements = []string{"abs", "neg", "sqrt", "round", "floor", "ceil", "exp", "log"}
)

// literal is a loop in the table, if it is there. Long rows of all but
// conversions of floats, rows that are joined and functions are for the vectors
// of the machine below: see shortAndLong.
func (a *elementWriter) literal(name string) (text string, ok bool) {
	l, ok := a.loops[name]
	if !ok {
		return "", false
	}
	words := strings.Fields(name)
	ownLength := words[0] == "columns" || words[0] == "exp" || words[0] == "log" || words[0] == "cast" && words[1][0] == 'f'
	if a.below != nil && !ownLength {
		if long, ok := a.below.loops[name]; ok {
			return fmt.Sprintf("{%s, Long: &kernel.Loop{%s}}", l.fields(), long.fields()), true
		}
	}
	return "{" + l.fields() + "}", true
}

// putLoop puts a loop into an array of the table, if it is there.
func (a *elementWriter) putLoop(name, field, typ string, index ...string) {
	text, ok := a.literal(name)
	if !ok {
		return
	}
	for i := range index {
		index[i] = "kernel." + index[i]
	}
	a.put(field, typ, text, index...)
}

func kind(t elementType) string { return "Kind" + capital(t.name) }

// signedOf is the type of the same size that has a sign: many loops do not
// differ.
func signedOf(t elementType) elementType {
	for _, s := range intTypes {
		if s.size == t.size && s.signed && !t.float {
			return s
		}
	}
	return t
}

// table puts all loops into the table.
func (a *elementWriter) table() {
	forms := map[string]string{"vv": "BothRows", "vs": "FirstRow", "sv": "SecondRow"}
	for name, op := range binaryOps {
		for _, t := range allTypes {
			as := t
			if name == "add" || name == "sub" || name == "mul" {
				as = signedOf(t)
			}
			for _, form := range elementForms {
				a.putLoop(name+" "+as.name+" "+form, "Binary", "BinaryLoops", op, kind(t), forms[form])
			}
			a.putLoop("total "+name+" "+as.name, "Total", "JoinLoops", kind(t), op)
			a.putLoop("columns "+name+" "+as.name, "Columns", "JoinLoops", kind(t), op)
		}
	}
	for name, op := range bitOps {
		a.putLoop(name+" bits vv", "Bits", "BitLoops", op)
	}
	for _, r := range relations {
		op := capital(camel(r.name))
		for _, t := range allTypes {
			a.putLoop(r.name+" "+t.name+" vv", "Predicate", "PredicateLoops", op, kind(t), forms["vv"])
			a.putLoop(r.name+" "+t.name+" vs", "Predicate", "PredicateLoops", op, kind(t), forms["vs"])
		}
	}
	for name, op := range logicOps {
		a.putLoop(name+" bool vv", "Logic", "LogicLoops", op)
	}
	for _, t := range allTypes {
		for _, name := range unaryElements {
			as := t
			if name == "neg" {
				as = signedOf(t)
			}
			a.putLoop(name+" "+as.name, "Unary", "UnaryLoops", capital(name), kind(t))
		}
		a.putLoop("clamp "+t.name, "Clamp", "KindLoops", kind(t))
	}
	a.castTable()
	a.moveTable()
}

// castTable finds the loop that makes the bits of a conversion: between
// integers the type that is cut or made only has a size.
func (a *elementWriter) castTable() {
	for _, from := range append([]elementType{typeBool}, allTypes...) {
		for _, to := range allTypes {
			source, result := from, to
			if !to.float && !from.float {
				result = signedOf(to)
				if to.size < from.size {
					source = signedOf(from)
				}
			}
			a.putLoop("cast "+source.name+" "+result.name, "Cast", "CastLoops", kind(from), kind(to))
		}
	}
}

func (a *elementWriter) moveTable() {
	for field, name := range map[string]string{"Not": "not bool", "Truth": "truth bool", "Gather": "gather f32 f64"} {
		if text, ok := a.literal(name); ok {
			a.set(field, "kernel.Loop"+text)
		}
	}
	for i, size := range []string{"1", "2", "4", "8"} {
		for field, name := range map[string]string{"Backwards": "backwards ", "Second": "every second "} {
			if text, ok := a.literal(name + size); ok {
				a.put(field, "SizeLoops", text, fmt.Sprint(i))
			}
		}
		for yes, x := range []string{"v", "s"} {
			for no, y := range []string{"v", "s"} {
				if text, ok := a.literal("where " + size + " " + x + y); ok {
					a.put("Where", "WhereLoops", text, fmt.Sprint(i), fmt.Sprint(yes), fmt.Sprint(no))
				}
			}
		}
	}
}
