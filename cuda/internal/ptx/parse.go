package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// The limits keep a hostile text from taking the memory of the machine.
const (
	maxSlots       = 1 << 16
	maxStatements  = 1 << 20
	maxParamBytes  = 4096     // of a kernel, as sm_70 has it
	maxSharedBytes = 48 << 10 // of a kernel, static
)

// parser reads tokens. The first error stays; after it every token is an end.
type parser struct {
	text   string
	tokens []token
	at     int
	err    error
	module *Module
	shared []variable // of the module
}

// variable is a shared one.
type variable struct {
	name    string
	size    int
	align   int
	dynamic bool
}

// Parse reads the text of a module. An error names the line, what was found
// there and what was expected.
func Parse(text string) (*Module, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens, module: &Module{kernels: map[string]*Kernel{}}}
	p.header()
	for p.err == nil && p.peek().kind != end {
		p.declaration()
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.module, nil
}

func (p *parser) peek() token {
	if p.err != nil {
		return token{kind: end}
	}
	return p.tokens[p.at]
}

func (p *parser) next() token {
	t := p.peek()
	if t.kind != end {
		p.at++
	}
	return t
}

// fail records that found was found where want was expected.
func (p *parser) fail(line int, found any, want string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("ptx.Parse: line %d: got %v, want %s", line, found, fmt.Sprintf(want, args...))
	}
}

// is reports whether the next token has the text, and takes it if so.
func (p *parser) is(text string) bool {
	if t := p.peek(); t.kind != end && t.text == text {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(text string) {
	if t := p.peek(); !p.is(text) {
		p.fail(t.line, t, "%q", text)
	}
}

// name takes a word that is a name.
func (p *parser) name(what string) string {
	t := p.next()
	if t.kind != word || strings.Contains(t.text, ".") || strings.Contains(t.text, ":") {
		p.fail(t.line, t, "the name of %s", what)
	}
	return t.text
}

// count takes a decimal number from low to high.
func (p *parser) count(what string, low, high int) int {
	t := p.next()
	n, err := strconv.Atoi(t.text)
	if t.kind != number || err != nil || n < low || n > high {
		p.fail(t.line, t, "%s from %d to %d", what, low, high)
		return low
	}
	return n
}

func (p *parser) header() {
	p.want(".version")
	if t := p.next(); p.err == nil && (t.kind != number || strings.Count(t.text, ".") != 1) {
		p.fail(t.line, t, "a version such as 7.0")
	}
	p.want(".target")
	for {
		t := p.next()
		sm, ok := strings.CutPrefix(t.text, "sm_")
		if n, err := strconv.Atoi(strings.TrimRight(sm, "af")); !ok || err != nil || n < 20 {
			p.fail(t.line, t, "an architecture such as sm_70")
		}
		if !p.is(",") {
			break
		}
	}
	p.want(".address_size")
	if t := p.next(); t.text != "64" {
		p.fail(t.line, t, "64")
	}
}

func (p *parser) declaration() {
	t := p.peek()
	switch t.text {
	case ".visible", ".entry":
		p.is(".visible")
		p.want(".entry")
		p.entry()
	case ".extern", ".shared":
		p.shared = append(p.shared, p.sharedVariable()...)
	default:
		p.fail(t.line, t, ".visible .entry, .entry, .shared or .extern .shared")
	}
}

// sharedVariable reads one declaration, which may have several names.
func (p *parser) sharedVariable() []variable {
	extern := p.is(".extern")
	p.want(".shared")
	align := p.alignment()
	t, line := p.memoryType("a shared variable"), p.peek().line
	var vs []variable
	for {
		v := variable{name: p.name("a shared variable"), size: t.size(), align: max(align, t.size()), dynamic: extern}
		if p.is("[") {
			if !extern {
				v.size *= p.count("a number of elements", 1, maxSharedBytes)
			}
			p.want("]")
		} else if extern {
			p.fail(line, p.peek(), "[] after an .extern variable")
		}
		vs = append(vs, v)
		if !p.is(",") {
			break
		}
	}
	p.want(";")
	return vs
}

// alignment reads .align N; 1 without.
func (p *parser) alignment() int {
	if !p.is(".align") {
		return 1
	}
	line := p.peek().line
	n := p.count("an alignment", 1, 1024)
	if n&(n-1) != 0 {
		p.fail(line, n, "a power of two")
	}
	return n
}

func (p *parser) memoryType(what string) typ {
	t := p.next()
	ty := typByName[strings.TrimPrefix(t.text, ".")]
	if !strings.HasPrefix(t.text, ".") || ty == noType || ty == pred {
		p.fail(t.line, t, "the type of %s", what)
	}
	return ty
}

// entry reads a kernel after .entry.
func (p *parser) entry() {
	line := p.peek().line
	b := &builder{parser: p, kernel: &Kernel{name: p.name("a kernel"), maxThreads: 1024}}
	b.names = []map[string]symbol{{}}
	if p.module.kernels[b.kernel.name] != nil {
		p.fail(line, b.kernel.name, "a name that is not taken")
	}
	for _, v := range p.shared {
		b.declareShared(v, line)
	}
	if p.is("(") && !p.is(")") {
		for {
			b.param()
			if !p.is(",") {
				break
			}
		}
		p.want(")")
	}
	b.limits()
	p.want("{")
	b.body()
	b.finish()
	if p.err == nil {
		p.module.kernels[b.kernel.name] = b.kernel
	}
}

// limits reads the directives that bound the threads of a block.
func (b *builder) limits() {
	p := b.parser
	for {
		t := p.peek()
		switch t.text {
		case ".maxntid", ".reqntid":
			p.next()
			n := [3]int{1, 1, 1}
			for i := range n {
				n[i] = p.count("a number of threads", 1, 1024)
				if !p.is(",") {
					break
				}
			}
			b.kernel.maxThreads = min(1024, n[0]*n[1]*n[2])
			if t.text == ".reqntid" {
				b.kernel.required = n
			}
		case ".minnctapersm":
			p.next()
			p.count("a number of blocks", 1, 64)
		default:
			return
		}
	}
}

func (b *builder) param() {
	p := b.parser
	p.want(".param")
	line, align := p.peek().line, p.alignment()
	t := p.memoryType("a parameter")
	q := Param{Name: p.name("a parameter"), Size: t.size(), Align: max(align, t.size())}
	if p.is("[") {
		q.Size *= p.count("a number of elements", 1, maxParamBytes)
		p.want("]")
	}
	if p.err != nil {
		return
	}
	q.Offset = (b.kernel.paramBytes + q.Align - 1) / q.Align * q.Align
	b.kernel.paramBytes = q.Offset + q.Size
	if b.kernel.paramBytes > maxParamBytes {
		p.fail(line, fmt.Sprintf("%d bytes of parameters", b.kernel.paramBytes), "at most %d", maxParamBytes)
	}
	b.declare(q.Name, symbol{kind: isParam, value: uint64(q.Offset), size: q.Size}, line)
	b.kernel.params = append(b.kernel.params, q)
}
