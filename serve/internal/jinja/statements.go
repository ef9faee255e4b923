package jinja

import "slices"

// node is a statement, or text.
type node interface{ run(r *renderer) }

type (
	output struct {
		e    expr
		line int
	}
	plain   struct{ text string }
	forNode struct {
		targets     []string
		tuple       bool
		over        expr
		test        expr // nil without one
		body, other []node
		recursive   bool
		line        int
	}
	ifNode struct {
		tests  []expr
		bodies [][]node
		other  []node
	}
	setNode struct {
		targets []target
		tuple   bool
		value   expr
		line    int
	}
	setBlock struct {
		to     target
		filter expr // of what the block has written; nil without one
		body   []node
		line   int
	}
	withNode struct {
		names  []string
		values []expr
		body   []node
	}
	macroNode struct {
		name     string
		params   []string
		defaults []expr // of the last parameters
		body     []node
	}
	callNode struct {
		macro macroNode // of the block, with the name caller
		call  call
		line  int
	}
	filterNode struct {
		filter expr
		body   []node
	}
	scopeNode struct{ body []node } // generation
	breakNode struct{ goOn bool }
)

// target is a name, or an attribute of a namespace.
type target struct{ name, field string }

// written stands for what a block has written, in front of its filters.
type written struct{}

func (written) eval(r *renderer) any { return r.written }

// statements reads up to a block of one of these names, which is not read, or
// to the end.
func (p *parser) statements(until ...string) (list []node) {
	defer p.deeper()()
	for {
		t := p.at()
		switch t.kind {
		case data:
			p.i++
			list = append(list, plain{t.text})
		case show:
			p.i++
			list = append(list, output{p.tuple(true, false, never), t.line})
			p.want(shown, "")
		case open:
			if n := p.tokens[p.i+1]; n.kind == name && slices.Contains(until, n.text) {
				p.i++
				return list
			}
			p.i++
			list = append(list, p.statement())
		case end:
			if until != nil {
				fail(t.line, "got the end of the template, want %s", until[len(until)-1])
			}
			return list
		default:
			p.unexpected()
		}
	}
}

// block reads the end of a tag, and statements up to one of these names.
func (p *parser) block(until ...string) []node {
	p.want(shut, "")
	return p.statements(until...)
}

// close reads the last tag of a block.
func (p *parser) close(word string) {
	p.want(name, word)
	p.want(shut, "")
}

func (p *parser) statement() node {
	t := p.want(name, "")
	switch t.text {
	case "for":
		return p.forStatement(t.line)
	case "if":
		return p.ifStatement()
	case "set":
		return p.setStatement(t.line)
	case "with":
		return p.withStatement()
	case "macro":
		m := p.macro(p.want(name, "").text, p.is(operator, "("), "endmacro")
		return m
	case "call":
		m := p.signature("caller", p.is(operator, "("))
		e := p.unary(true)
		c, ok := e.(call)
		if !ok {
			fail(t.line, "got call with an expression, want the call of a macro")
		}
		m.body = p.macroBody("endcall")
		return callNode{m, c, t.line}
	case "filter":
		f := p.filters(p.filter(written{}))
		body := p.block("endfilter")
		p.close("endfilter")
		return filterNode{f, body}
	case "generation":
		body := p.block("endgeneration")
		p.close("endgeneration")
		return scopeNode{body}
	case "break", "continue":
		if p.loops == 0 {
			fail(t.line, "got %s outside a loop", t.text)
		}
		p.want(shut, "")
		return breakNode{t.text == "continue"}
	}
	fail(t.line, "got the statement %s, which is not supported", t.text)
	return nil
}

// names reads names between commas.
func (p *parser) names() (list []string, tuple bool) {
	parens := p.op("(")
	for {
		list = append(list, p.want(name, "").text)
		if !p.op(",") {
			break
		}
		tuple = true
		if p.at().kind != name || p.is(name, "in") {
			break
		}
	}
	if parens {
		p.want(operator, ")")
	}
	return list, tuple
}

func (p *parser) forStatement(line int) node {
	f := forNode{line: line}
	f.targets, f.tuple = p.names()
	p.want(name, "in")
	f.over = p.tuple(false, false, func() bool { return p.is(name, "recursive") })
	if p.keyword("if") {
		f.test = p.expression()
	}
	f.recursive = p.keyword("recursive")
	p.loops++
	f.body = p.block("else", "endfor")
	p.loops--
	if p.keyword("else") {
		f.other = p.block("endfor")
	}
	p.close("endfor")
	return f
}

func (p *parser) ifStatement() node {
	var n ifNode
	for {
		n.tests = append(n.tests, p.tuple(false, false, never))
		n.bodies = append(n.bodies, p.block("elif", "else", "endif"))
		if !p.keyword("elif") {
			break
		}
	}
	if p.keyword("else") {
		n.other = p.block("endif")
	}
	p.close("endif")
	return n
}

func (p *parser) setStatement(line int) node {
	var targets []target
	tuple := false
	for {
		t := target{name: p.want(name, "").text}
		if p.op(".") {
			t.field = p.want(name, "").text
		}
		targets = append(targets, t)
		if !p.op(",") {
			break
		}
		tuple = true
	}
	if p.op("=") {
		n := setNode{targets, tuple, p.tuple(true, false, never), line}
		p.want(shut, "")
		return n
	}
	if tuple {
		p.unexpected()
	}
	b := setBlock{to: targets[0], line: line}
	if p.is(operator, "|") {
		b.filter = p.filters(written{})
	}
	b.body = p.block("endset")
	p.close("endset")
	return b
}

func (p *parser) withStatement() node {
	var n withNode
	for p.at().kind != shut {
		if n.names != nil {
			p.want(operator, ",")
		}
		n.names = append(n.names, p.want(name, "").text)
		p.want(operator, "=")
		n.values = append(n.values, p.expression())
	}
	n.body = p.block("endwith")
	p.close("endwith")
	return n
}

// signature reads the parameters of a macro.
func (p *parser) signature(of string, given bool) (m macroNode) {
	m.name = of
	if !given {
		return m
	}
	p.want(operator, "(")
	for !p.op(")") {
		if m.params != nil {
			p.want(operator, ",")
		}
		m.params = append(m.params, p.want(name, "").text)
		if p.op("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if m.defaults != nil {
			fail(p.at().line, "got a parameter without a default behind one with it")
		}
	}
	return m
}

func (p *parser) macro(of string, given bool, closing string) macroNode {
	if !given {
		p.unexpected()
	}
	m := p.signature(of, true)
	m.body = p.macroBody(closing)
	return m
}

func (p *parser) macroBody(closing string) []node {
	loops := p.loops
	p.loops = 0
	body := p.block(closing)
	p.loops = loops
	p.close(closing)
	return body
}
