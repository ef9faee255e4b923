package jinja

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/python/pythontest"
)

// drawer draws templates.
type drawer struct{ *rand.Rand }

func (d drawer) pick(list ...string) string { return list[d.IntN(len(list))] }

// expression draws an expression with so many levels.
func (d drawer) expression(depth int) string {
	if depth == 0 {
		return d.pick("1", "2.5", "'ab c'", "' x\\n'", "true", "none", "[1, 2, 3]", "['b', 'a']", "{'a': 1, 'b': [2]}", "messages", "messages[0]", "m.role", "m.content", "m", "missing", "0", "''", "loop.index", "(1, 'z')", "-3")
	}
	x := func() string { return d.expression(d.IntN(depth)) }
	switch d.IntN(13) {
	case 0:
		return x() + d.pick(" + ", " - ", " * ", " / ", " // ", " % ") + x()
	case 1:
		return x() + d.pick(" == ", " != ", " < ", " >= ", " in ", " not in ") + x()
	case 2:
		return x() + d.pick(" and ", " or ", " ~ ", " if true else ", " if missing else ") + x()
	case 3:
		return d.pick("not ", "-", "") + "(" + x() + ")"
	case 4, 5:
		return "(" + x() + ")" + d.pick(" | upper", " | trim", " | length", " | list", " | first", " | last", " | join('-')", " | default('d')", " | default('d', true)", " | tojson", " | string", " | int", " | float", " | sort", " | reverse | list", " | unique | list", " | sum", " | abs", " | title", " | capitalize", " | items | list", " | dictsort", " | map('string') | list", " | select | list", " | reject('none') | list", " | tojson(indent=1)", " | map(attribute='role') | list", " | selectattr('role', 'equalto', 'user') | list | length", " | replace('a', 'X')", " | indent", " | max", " | wordcount", " | round(1)")
	case 6:
		return "(" + x() + ")" + d.pick(" is defined", " is not none", " is string", " is mapping", " is iterable", " is number", " is odd", " is divisibleby 2", " is sequence", " is eq 1", " is in [1, 'a']", " is true", " is lower", " is integer", " is boolean")
	case 7:
		return "(" + x() + ")" + d.pick("[0]", "[-1]", "['a']", ".a", ".role", "[5]", ".items() | list", ".get('a')", ".keys() | list")
	case 8:
		return "(" + x() + ")" + d.pick(".upper()", ".strip()", ".split()", ".split('b')", ".startswith('a')", ".replace('a', 'q')", ".title()", ".find('b')", ".rstrip('c ')", ".splitlines()", ".isdigit()", ".rsplit(' ', 1)", ".count('a')", ".index(1)", ".capitalize()")
	case 9:
		return d.pick("messages", "m.content", "'ab c'", "[1, 2, 3]", "(1, 'z')") + d.pick("[1:]", "[::-1]", "[:2]", "[-1:]", "[2:0:-1]", "[:none]")
	case 10:
		return "[" + x() + ", " + x() + "]"
	case 11:
		return "{'k': " + x() + "}"
	}
	return x()
}

// tag draws a tag's ends, with the signs that take away white space.
func (d drawer) tag(inside string) string {
	return d.pick("{%", "{%-", "{%", "{%+") + " " + inside + " " + d.pick("%}", "-%}", "%}", "+%}")
}

// body draws statements and text.
func (d drawer) body(depth int) string {
	var b strings.Builder
	for range 1 + d.IntN(3) {
		b.WriteString(d.pick("", " ", "\n", "text", "  \n  ", "\n\n", "\t", "a\n  "))
		if depth == 0 {
			fmt.Fprintf(&b, "%s %s %s", d.pick("{{", "{{-"), d.expression(d.IntN(3)), d.pick("}}", "-}}"))
			continue
		}
		switch d.IntN(9) {
		case 0:
			b.WriteString(d.tag("if "+d.expression(1)) + d.body(depth-1) + d.tag("elif "+d.expression(1)) + d.body(depth-1) + d.tag("else") + d.body(depth-1) + d.tag("endif"))
		case 1:
			b.WriteString(d.tag("for m in "+d.pick("messages", "messages[1:]", "[1, 2]", "'ab'", "missing", d.expression(1))+d.pick("", "", " if m", " if loop is defined")) + d.body(depth-1) + d.pick("", d.tag("else")+d.body(0)) + d.tag("endfor"))
		case 2:
			b.WriteString(d.tag("set "+d.pick("m", "v", "missing")+" = "+d.expression(2)) + d.body(depth-1))
		case 3:
			b.WriteString(d.tag("set v") + d.body(depth-1) + d.tag("endset") + "{{ v }}")
		case 4:
			b.WriteString(d.tag("macro f(a, b="+d.expression(1)+")") + d.body(depth-1) + "{{ a }}{{ b }}" + d.tag("endmacro") + "{{ f(" + d.expression(1) + ") }}")
		case 5:
			b.WriteString("{#" + d.pick("", "-", "+") + " c " + d.pick("", "-", "+") + "#}")
		case 6:
			b.WriteString(d.tag("set ns = namespace(x=1)") + d.tag("for i in range(3)") + d.tag("set ns.x = ns.x + i") + d.tag("if ns.x > "+d.pick("1", "2")) + d.tag(d.pick("break", "continue")) + d.tag("endif") + d.body(0) + d.tag("endfor") + "{{ ns.x }}")
		case 7:
			b.WriteString(d.tag("filter upper") + d.body(depth-1) + d.tag("endfilter"))
		case 8:
			b.WriteString(d.tag("with v = "+d.expression(1)) + d.body(depth-1) + d.tag("endwith"))
		}
	}
	return b.String()
}

// TestDrawn compares drawn templates with the reference.
func TestDrawn(t *testing.T) {
	python := pythontest.Interpreter(t, "jinja2")
	d := drawer{rand.New(rand.NewPCG(11, 12))}
	var texts []string
	count := 400
	if testing.Short() {
		count = 50
	}
	for range count {
		texts = append(texts, "{{ "+d.expression(3)+" }}", d.body(2))
	}
	vars := variables(t)[1:3]
	rendered := 0
	for i, answers := range reference(t, python, texts, vars) {
		for j, want := range answers {
			compare(t, texts[i], texts[i], vars[j], want)
			if want != nil {
				rendered++
			}
		}
	}
	if rendered < len(texts)/3 {
		t.Errorf("got %d of %d texts, want more that are no errors", rendered, len(texts))
	}
	t.Logf("%d of %d were rendered", rendered, 2*len(texts))
}
