package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// expr is an expression.
type expr interface{ eval(r *renderer) any }

type (
	constant struct{ v any }
	variable struct{ name string }
	listExpr struct {
		items []expr
		tuple bool
	}
	mapExpr   struct{ keys, values []expr }
	attribute struct {
		of   expr
		name string
		line int
	}
	item struct {
		of, key expr
		line    int
	}
	slicing struct {
		of             expr
		from, to, step expr // nil where left out
		line           int
	}
	argument struct {
		name  string // "" by place
		value expr
		stars int // *list, **map
	}
	call struct {
		f    expr
		args []argument
		line int
	}
	filtered struct {
		of   expr // nil in a filter block
		name string
		args []argument
		line int
	}
	tested struct {
		of     expr
		name   string
		args   []argument
		negate bool
		line   int
	}
	unary struct {
		op   string
		of   expr
		line int
	}
	binary struct {
		op          string
		left, right expr
		line        int
	}
	logical struct { // and, or
		and         bool
		left, right expr
	}
	comparison struct {
		first expr
		ops   []string
		rest  []expr
		line  int
	}
	choice     struct{ test, then, other expr } // a if test else b
	joinedText struct{ parts []expr }           // a ~ b
)

// parser makes a tree of tokens.
type parser struct {
	tokens []token
	i      int
	depth  int
	loops  int // around the statement
}

func (p *parser) at() token { return p.tokens[p.i] }

func (p *parser) next() token {
	t := p.tokens[p.i]
	if t.kind != end {
		p.i++
	}
	return t
}

// deeper bounds how deep expressions and blocks are nested.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > mostDepth {
		fail(p.at().line, "got more than %d levels", mostDepth)
	}
	return func() { p.depth-- }
}

// is reports whether the next token is an operator or a name.
func (p *parser) is(k kind, text string) bool { return p.at().kind == k && p.at().text == text }

// skip moves over a token if it is the next one.
func (p *parser) skip(k kind, text string) bool {
	if p.is(k, text) {
		p.i++
		return true
	}
	return false
}

func (p *parser) op(text string) bool      { return p.skip(operator, text) }
func (p *parser) keyword(text string) bool { return p.skip(name, text) }

func (p *parser) unexpected() {
	t := p.at()
	fail(t.line, "got %s, which is not expected here", map[kind]string{end: "the end", shut: "%}", shown: "}}", open: "{%", show: "{{", data: "text"}[t.kind]+t.text)
}

func (p *parser) want(k kind, text string) token {
	if p.at().kind != k || text != "" && p.at().text != text {
		p.unexpected()
	}
	return p.next()
}

// expression reads a condition.
func (p *parser) expression() expr { return p.condition(true) }

func (p *parser) condition(withIf bool) expr {
	defer p.deeper()()
	e := p.or()
	for withIf && p.keyword("if") {
		c := choice{test: p.or(), then: e, other: constant{undefined{"the condition was false and there is no else"}}}
		if p.keyword("else") {
			c.other = p.condition(true)
		}
		e = c
	}
	return e
}

func (p *parser) or() expr {
	e := p.and()
	for p.keyword("or") {
		e = logical{false, e, p.and()}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for p.keyword("and") {
		e = logical{true, e, p.not()}
	}
	return e
}

func (p *parser) not() expr {
	defer p.deeper()()
	if line := p.at().line; p.keyword("not") {
		return unary{"not", p.not(), line}
	}
	return p.compare()
}

var comparisons = []string{"==", "!=", ">", ">=", "<", "<="}

func (p *parser) compare() expr {
	c := comparison{first: p.sum(), line: p.at().line}
	for {
		t := p.at()
		switch {
		case t.kind == operator && slices.Contains(comparisons, t.text):
			p.i++
			c.ops = append(c.ops, t.text)
		case p.keyword("in"):
			c.ops = append(c.ops, "in")
		case p.is(name, "not") && p.tokens[p.i+1].kind == name && p.tokens[p.i+1].text == "in":
			p.i += 2
			c.ops = append(c.ops, "not in")
		default:
			if c.ops == nil {
				return c.first
			}
			return c
		}
		c.rest = append(c.rest, p.sum())
	}
}

// operation reads operands between some operators, the left ones first.
func (p *parser) operation(operand func() expr, ops ...string) expr {
	e := operand()
	for p.at().kind == operator && slices.Contains(ops, p.at().text) {
		t := p.next()
		e = binary{t.text, e, operand(), t.line}
	}
	return e
}

func (p *parser) sum() expr { return p.operation(p.joined, "+", "-") }

func (p *parser) joined() expr {
	parts := []expr{p.product()}
	for p.op("~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return joinedText{parts}
}

func (p *parser) product() expr { return p.operation(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr {
	return p.operation(func() expr { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) expr {
	defer p.deeper()()
	var e expr
	t := p.at()
	if t.kind == operator && (t.text == "-" || t.text == "+") {
		p.i++
		e = unary{t.text, p.unary(false), t.line}
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	for filters {
		switch {
		case p.is(operator, "|"):
			e = p.filters(e)
		case p.is(name, "is"):
			e = p.test(e)
		case p.is(operator, "("):
			e = p.call(e)
		default:
			return e
		}
	}
	return e
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case name:
		switch t.text {
		case "true", "True":
			return constant{true}
		case "false", "False":
			return constant{false}
		case "none", "None":
			return constant{nil}
		}
		return variable{t.text}
	case str:
		for p.at().kind == str {
			t.text += p.next().text
		}
		return constant{t.text}
	case integer:
		n, err := strconv.ParseInt(strings.ToLower(t.text), 0, 64)
		if err != nil {
			fail(t.line, "got the number %s, want one of 64 bits", t.text)
		}
		return constant{n}
	case float:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			fail(t.line, "got the number %s: %v", t.text, err)
		}
		return constant{f}
	case operator:
		switch t.text {
		case "(":
			e := p.tuple(true, true, func() bool { return p.is(operator, ")") })
			p.want(operator, ")")
			return e
		case "[":
			l := listExpr{}
			for !p.op("]") {
				if l.items != nil {
					p.want(operator, ",")
					if p.op("]") {
						break
					}
				}
				l.items = append(l.items, p.expression())
			}
			return l
		case "{":
			return p.mapping()
		}
	}
	p.i--
	if t.kind == end {
		p.i++
	}
	p.unexpected()
	return nil
}

func (p *parser) mapping() expr {
	m := mapExpr{}
	for !p.op("}") {
		if m.keys != nil {
			p.want(operator, ",")
			if p.op("}") {
				break
			}
		}
		m.keys = append(m.keys, p.expression())
		p.want(operator, ":")
		m.values = append(m.values, p.expression())
	}
	return m
}

// tuple reads expressions between commas; a single one without a comma is
// itself. done tells where the tuple is over.
func (p *parser) tuple(withIf, empty bool, done func() bool) expr {
	l := listExpr{tuple: true}
	comma := false
	for {
		if done() || p.at().kind == shut || p.at().kind == shown {
			break
		}
		l.items = append(l.items, p.condition(withIf))
		if !p.op(",") {
			break
		}
		comma = true
	}
	switch {
	case len(l.items) == 1 && !comma:
		return l.items[0]
	case len(l.items) == 0 && !empty:
		p.unexpected()
	}
	return l
}

func never() bool { return false }

func (p *parser) postfix(e expr) expr {
	for {
		switch t := p.at(); {
		case p.op("."):
			n := p.next()
			switch n.kind {
			case name:
				e = attribute{e, n.text, t.line}
			case integer:
				i, err := strconv.ParseInt(n.text, 10, 64)
				if err != nil {
					fail(n.line, "got .%s, want a name or a number", n.text)
				}
				e = item{e, constant{i}, t.line}
			default:
				fail(n.line, "got a dot, want a name behind it")
			}
		case p.op("["):
			e = p.subscript(e, t.line)
		case p.is(operator, "("):
			e = p.call(e)
		default:
			return e
		}
	}
}

// subscript reads what is between brackets.
func (p *parser) subscript(of expr, line int) expr {
	var parts []expr
	part, colons := expr(nil), 0
	for !p.is(operator, "]") {
		if p.op(":") {
			parts, part = append(parts, part), nil
			if colons++; colons > 2 {
				p.unexpected()
			}
			continue
		}
		if part != nil {
			if colons > 0 || !p.is(operator, ",") {
				p.unexpected()
			}
			l := listExpr{items: []expr{part}, tuple: true}
			for p.op(",") {
				l.items = append(l.items, p.expression())
			}
			part = l
			continue
		}
		part = p.expression()
	}
	p.want(operator, "]")
	if colons == 0 {
		if part == nil {
			fail(line, "got [], want a key or a number")
		}
		return item{of, part, line}
	}
	parts = append(parts, part)
	if len(parts) == 2 {
		parts = append(parts, nil)
	}
	return slicing{of, parts[0], parts[1], parts[2], line}
}

func (p *parser) call(f expr) expr {
	line := p.at().line
	return call{f, p.arguments(), line}
}

// arguments reads those of a call, with their parentheses.
func (p *parser) arguments() (args []argument) {
	p.want(operator, "(")
	for first := true; !p.op(")"); first = false {
		if !first {
			p.want(operator, ",")
			if p.op(")") {
				break
			}
		}
		var a argument
		switch {
		case p.op("**"):
			a.stars = 2
		case p.op("*"):
			a.stars = 1
		case p.at().kind == name && p.tokens[p.i+1].kind == operator && p.tokens[p.i+1].text == "=":
			a.name = p.next().text
			p.i++
		}
		a.value = p.expression()
		if n := len(args); n > 0 && (args[n-1].name != "" || args[n-1].stars == 2) && a.name == "" && a.stars == 0 {
			fail(p.at().line, "got an argument by place behind one by name")
		}
		args = append(args, a)
	}
	return args
}

// filters reads the filters behind an expression.
func (p *parser) filters(of expr) expr {
	for p.op("|") {
		of = p.filter(of)
	}
	return of
}

func (p *parser) filter(of expr) expr {
	t := p.want(name, "")
	f := filtered{of: of, name: t.text, line: t.line}
	if filters[f.name] == nil {
		fail(t.line, "got the filter %s, which is not supported", f.name)
	}
	if p.is(operator, "(") {
		f.args = p.arguments()
	}
	return f
}

func (p *parser) test(of expr) expr {
	p.i++ // is
	t := tested{of: of, negate: p.keyword("not")}
	n := p.want(name, "")
	t.name, t.line = n.text, n.line
	if tests[t.name] == nil {
		fail(n.line, "got the test %s, which is not supported", t.name)
	}
	a := p.at()
	switch {
	case p.is(operator, "("):
		t.args = p.arguments()
	case a.kind == name && (a.text == "else" || a.text == "or" || a.text == "and"):
	case a.kind == name && a.text == "is":
		fail(a.line, "got a test of a test")
	case a.kind == name || a.kind == str || a.kind == integer || a.kind == float || p.is(operator, "[") || p.is(operator, "{"):
		t.args = []argument{{value: p.postfix(p.primary())}}
	}
	return t
}
