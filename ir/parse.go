package ir

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/op"
)

// maxDepth bounds how deep regions nest in a text.
const maxDepth = 200

// Parse reads one program in the text form of the package comment, with the
// operators of the registry. Errors name line and column. The result is
// complete and typed; whether its donations hold is for [Verify] to say.
func Parse(text string, r *op.Registry) (*Program, error) {
	p := &parser{scanner: scanner{text: text}, reg: r, prog: &Program{}, names: map[string]*named{}}
	p.program()
	if p.err != nil {
		return nil, p.err
	}
	p.nameVersions()
	return p.prog, nil
}

// nameVersions names the results that are written into values, which have no
// name in the text.
func (p *parser) nameVersions() {
	count := map[*Value]int{}
	for _, v := range p.versions {
		name := ""
		for taken := true; taken; _, taken = p.names[name] {
			count[v.of]++
			name = fmt.Sprintf("%s.%d", v.of.Name, count[v.of])
		}
		p.names[name], v.result.Name = &named{value: v.result}, name
	}
}

type parser struct {
	scanner
	reg   *op.Registry
	prog  *Program
	names map[string]*named
	given []*named // the same in the order of the text
	depth int

	versions []version // of values that are written

	counted, line int // line breaks before the offset counted
}

// lineOf returns the number of the line of an offset; offsets must not
// decrease.
func (p *parser) lineOf(at int) int {
	p.line += strings.Count(p.text[p.counted:at], "\n")
	p.counted = at
	return 1 + p.line
}

// version is a result that replaces the elements of a value.
type version struct{ result, of *Value }

// named is a value and whether the block that defines it is still open.
type named struct {
	value   *Value
	visible bool
}

func (p *parser) program() {
	if !p.acceptWord("func") {
		p.want(`"func"`)
	}
	p.expect("@")
	p.prog.Name = p.name("the name of the program")
	body := &Block{Params: p.params(true)}
	p.prog.Body = body
	at, types := p.resultTypes()
	p.expect("{")
	for p.peekWord() == "weight" {
		p.acceptWord("weight")
		at := p.pos()
		p.expect("@")
		v := p.define(at, Weight, p.name("the name of a weight"))
		p.expect(":")
		v.Type = p.typ()
		p.prog.Weights = append(p.prog.Weights, v)
	}
	p.body(body)
	if p.skip(); p.err == nil && p.at < len(p.text) {
		p.want("the end of the text")
	}
	if types == nil || p.err != nil {
		return
	}
	if len(types) != len(body.Results) {
		p.fail(at, "got %d result types, the program returns %d values", len(types), len(body.Results))
		return
	}
	for i, v := range body.Results {
		if !fits(types[i], v.Type) {
			p.fail(at, "result %d: got type %s, the program returns %s", i, types[i], v.Type)
		}
	}
}

func (p *parser) resultTypes() (at int, types []op.Type) {
	at = p.pos()
	if !p.accept("->") {
		return at, nil
	}
	types = []op.Type{}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		if len(types) > 0 {
			p.expect(",")
		}
		types = append(types, p.typ())
	}
	return at, types
}

func (p *parser) params(ofProgram bool) []*Value {
	var params []*Value
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		if len(params) > 0 {
			p.expect(",")
		}
		at := p.pos()
		donated := p.acceptWord("donate")
		if donated && !ofProgram {
			p.fail(at, `got "donate", want a parameter of a region, which cannot be donated`)
		}
		at = p.pos()
		p.expect("%")
		v := p.define(at, Param, p.name("the name of a parameter"))
		v.Index, v.Donated = len(params), donated
		p.expect(":")
		v.Type = p.typ()
		params = append(params, v)
	}
	return params
}

// body reads up to the closing brace.
func (p *parser) body(b *Block) {
	for p.err == nil && p.peekWord() != "return" {
		if p.next() == '}' {
			p.want(`"return"`)
		}
		p.call(b)
	}
	p.acceptWord("return")
	for p.err == nil && !p.accept("}") {
		if len(b.Results) > 0 {
			p.expect(",")
		}
		b.Results = append(b.Results, p.use())
	}
}

// resultText is one result of a call as written.
type resultText struct {
	at       int
	name     string
	unwanted bool
	writes   *Value  // replaces the elements of this value
	typ      op.Type // zero when left out
}

func (p *parser) call(b *Block) {
	start := p.pos()
	results := p.results()
	at := p.pos()
	name := p.word("an operator")
	if p.err != nil {
		return
	}
	c := &Call{Op: p.reg.Lookup(name), Line: p.lineOf(start)}
	overwrites := -1 // the operand that a statement such as add_(%x, %y) writes
	if c.Op == nil && results == nil {
		c.Op, overwrites = inPlaceForm(p.reg, name)
	}
	if c.Op == nil {
		p.fail(at, "operator %q is not in the table: %w", name, op.ErrUnsupported)
		return
	}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		if len(c.Args) > 0 {
			p.expect(",")
		}
		c.Args = append(c.Args, p.operand())
	}
	for p.err == nil && (p.next() == '(' || p.next() == '{' && !p.isAttrs()) {
		c.Regions = append(c.Regions, p.region())
	}
	if p.next() == '{' {
		c.Attrs = p.attrs(c.Op)
	}
	if p.next() == '"' {
		c.Node = p.quoted("the name of a node")
	}
	if p.err != nil {
		return
	}
	if overwrites >= 0 {
		if overwrites >= len(c.Args) || c.Args[overwrites].Value == nil {
			p.fail(at, "%s writes operand %d, which is absent", name, overwrites)
			return
		}
		results = []resultText{{at: at, writes: c.Args[overwrites].Value}}
	}
	p.defineResults(c, results)
	types, err := inferResults(c, nil)
	if err != nil {
		p.fail(at, "%w", err)
		return
	}
	for i, r := range results {
		v := c.Results[i]
		switch {
		case r.unwanted:
		case r.typ.IsZero():
			v.Type = types[i]
		case !fits(r.typ, types[i]):
			p.fail(r.at, "%s: got type %s, %s returns %s", v, r.typ, name, types[i])
		default:
			v.Type = refine(r.typ, types[i])
		}
	}
	b.Calls = append(b.Calls, c)
}

// defineResults makes the values of the results of a call.
func (p *parser) defineResults(c *Call, results []resultText) {
	c.Results = make([]*Value, len(results))
	for i, r := range results {
		switch {
		case r.unwanted:
			continue
		case r.writes != nil:
			if c.Writes == nil {
				c.Writes = make([]*Value, len(results))
			}
			c.Writes[i], c.Results[i] = r.writes, p.prog.NewValue(Result, "", op.Type{})
			p.versions = append(p.versions, version{c.Results[i], r.writes})
		default:
			c.Results[i] = p.define(r.at, Result, r.name)
		}
		c.Results[i].Def, c.Results[i].Index = c, i
	}
}

// inPlaceForm returns the operator of a statement whose name ends in "_", such
// as add_, and the first operand that its result 0 may overwrite by its alias
// rules.
func inPlaceForm(r *op.Registry, name string) (def *op.Def, arg int) {
	plain, ok := strings.CutSuffix(name, "_")
	if def = r.Lookup(plain); !ok || def == nil {
		return nil, -1
	}
	arg = -1
	for _, rule := range def.Alias.Rules() {
		if k := rule.Kind; (k == op.Same || k == op.Accumulate || k == op.Update) && rule.Result <= 0 {
			if of := max(0, rule.Arg); arg < 0 || of < arg {
				arg = of
			}
		}
	}
	if arg < 0 {
		return nil, -1
	}
	return def, arg
}

func (p *parser) results() []resultText {
	var out []resultText
	if p.next() != '%' && p.peekWord() != "_" && !p.isWrite() {
		return nil
	}
	for p.err == nil && !p.accept("=") {
		if len(out) > 0 {
			p.expect(",")
		}
		r := resultText{at: p.pos()}
		switch {
		case p.acceptWord("_"):
			r.unwanted = true
		case p.isWrite():
			p.acceptWord("write")
			r.writes = p.use()
		default:
			p.expect("%")
			r.name = p.name("the name of a result")
			if p.accept(":") {
				r.typ = p.typ()
			}
		}
		out = append(out, r)
	}
	return out
}

func (p *parser) operand() Operand {
	if p.acceptWord("_") {
		return Operand{}
	}
	donate := p.acceptWord("donate")
	view := p.acceptWord("view")
	return Operand{Value: p.use(), Donate: donate, View: view}
}

// isWrite tells a result that is written into a value from a call of an
// operator of the name write.
func (p *parser) isWrite() bool {
	ahead := p.scanner
	return ahead.acceptWord("write") && (ahead.next() == '%' || ahead.next() == '@')
}

// isAttrs tells "{ axis = 1 }" from a region, whose first word opens a call
// or a result list and is never followed by "=" unless it is "_".
func (p *parser) isAttrs() bool {
	ahead := p.scanner
	ahead.expect("{")
	word := ahead.peekWord()
	if word == "" || word == "_" {
		return false
	}
	ahead.acceptWord(word)
	return ahead.next() == '='
}

func (p *parser) region() *Block {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.pos(), "regions nest more than %d deep", maxDepth)
	}
	b, outer := &Block{}, len(p.given)
	if p.next() == '(' {
		b.Params = p.params(false)
	}
	p.expect("{")
	p.body(b)
	for _, n := range p.given[outer:] {
		n.visible = false
	}
	p.depth--
	return b
}

func (p *parser) attrs(def *op.Def) op.Attrs {
	at := p.pos()
	p.expect("{")
	var attrs []op.Attr
	for p.err == nil && !p.accept("}") {
		if len(attrs) > 0 {
			p.expect(",")
		}
		at := p.pos()
		name := p.word("the name of an attribute")
		kind := op.AttrKind(0)
		for _, d := range def.Attrs {
			if d.Name == name {
				kind = d.Kind
			}
		}
		if kind == 0 {
			p.fail(at, "%s: attribute %q is not declared: %w", def.Name, name, op.ErrUnsupported)
			return nil
		}
		p.expect("=")
		attrs = append(attrs, op.Attr{Name: name, Value: p.attrValue(kind)})
	}
	if p.err != nil {
		return nil
	}
	sorted, err := op.NewAttrs(attrs...)
	if err != nil {
		p.fail(at, "%s: %w", def.Name, err)
	}
	return sorted
}

// define makes the value of the name at the offset.
func (p *parser) define(at int, kind ValueKind, name string) *Value {
	if name == "" {
		p.fail(at, "the name is empty")
	}
	if _, taken := p.names[name]; taken {
		p.fail(at, "the name %s is given twice", quoteName(name))
	}
	v := p.prog.NewValue(kind, name, op.Type{})
	n := &named{v, true}
	p.names[name] = n
	p.given = append(p.given, n)
	return v
}

// use reads a value that is visible here.
func (p *parser) use() *Value {
	at := p.pos()
	weight := p.accept("@")
	if !weight && !p.accept("%") {
		p.want("a value")
		return nil
	}
	name := p.name("the name of a value")
	if p.err != nil {
		return nil
	}
	n := p.names[name]
	switch {
	case n == nil:
		p.fail(at, "%s is not defined before its use", quoteName(name))
	case !n.visible:
		p.fail(at, "%s is defined in a region that has ended", n.value)
	case weight != (n.value.Kind == Weight):
		p.fail(at, "got %s, want %s", fmt.Sprintf("%c%s", p.text[at], quoteName(name)), n.value)
	}
	if p.err != nil {
		return nil
	}
	return n.value
}
