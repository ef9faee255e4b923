package protobuf

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var token = regexp.MustCompile(`//[^\n]*|[A-Za-z_][A-Za-z0-9_.]*|-?[0-9]+|"[^"\n]*"|[{}()<>=;,]|\S`)

// parser reads the tokens of a file.
type parser struct {
	file   *File
	tokens []string
	err    error
}

// Parse reads a .proto file.
func Parse(name, text string) (*File, error) {
	p := &parser{file: &File{Name: name, all: map[string]*Message{}, allEnums: map[string]*enum{}}}
	for _, t := range token.FindAllString(text, -1) {
		if !strings.HasPrefix(t, "//") {
			p.tokens = append(p.tokens, t)
		}
	}
	for p.err == nil && len(p.tokens) > 0 {
		switch t := p.next(); t {
		case "syntax":
			p.want("=")
			p.want(`"proto3"`)
			p.want(";")
		case "package":
			p.file.Package = p.next()
			p.want(";")
		case "message":
			p.file.messages = append(p.file.messages, p.message(""))
		case "enum":
			p.file.enums = append(p.file.enums, p.enum(""))
		case "service":
			p.service()
		default:
			p.fail(t, "message, enum or service")
		}
	}
	if p.err == nil {
		p.err = p.file.resolve()
	}
	return p.file, p.err
}

func (p *parser) fail(got, want string) {
	if p.err == nil {
		p.err = fmt.Errorf("%s: got %q, want %s", p.file.Name, got, want)
	}
}

// next returns the next token, "" at the end and after an error.
func (p *parser) next() string {
	if len(p.tokens) == 0 || p.err != nil {
		p.fail("the end", "more")
		return ""
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *parser) want(t string) {
	if got := p.next(); got != t {
		p.fail(got, t)
	}
}

// at reports whether the next token is t, and skips it then.
func (p *parser) at(t string) bool {
	if p.err != nil || len(p.tokens) == 0 || p.tokens[0] != t {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *parser) number() int {
	t := p.next()
	n, err := strconv.Atoi(t)
	if err != nil {
		p.fail(t, "a number")
	}
	return n
}

func (p *parser) message(scope string) *Message {
	m := &Message{Name: strings.TrimPrefix(scope+"."+p.next(), ".")}
	p.file.all[m.Name] = m
	p.want("{")
	for p.err == nil && !p.at("}") {
		switch {
		case p.at("message"):
			m.messages = append(m.messages, p.message(m.Name))
		case p.at("enum"):
			m.enums = append(m.enums, p.enum(m.Name))
		case p.at("oneof"):
			m.oneofs = append(m.oneofs, p.next())
			p.want("{")
			for p.err == nil && !p.at("}") {
				p.field(m, len(m.oneofs)-1)
			}
		default:
			p.field(m, -1)
		}
	}
	return m
}

func (p *parser) field(m *Message, oneof int) {
	x := &field{oneof: oneof, repeated: p.at("repeated")}
	if p.at("map") {
		x.repeated, x.kind = true, kindMessage
		p.want("<")
		key := &field{name: "key", number: 1, oneof: -1, kind: kinds[p.next()]}
		p.want(",")
		value := &field{name: "value", number: 2, oneof: -1, typeName: p.next()}
		value.kind = kinds[value.typeName]
		p.want(">")
		x.name = p.next()
		x.message = &Message{Name: m.Name + "." + camel(x.name) + "Entry", fields: []*field{key, value}, entry: true}
		m.messages = append(m.messages, x.message)
		p.file.all[x.message.Name] = x.message
	} else {
		x.typeName = p.next()
		x.kind = kinds[x.typeName]
		x.name = p.next()
	}
	p.want("=")
	x.number = p.number()
	p.want(";")
	m.fields = append(m.fields, x)
}

// camel is the name of a field in the name of its map's element.
func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

func (p *parser) enum(scope string) *enum {
	e := &enum{name: strings.TrimPrefix(scope+"."+p.next(), ".")}
	p.file.allEnums[e.name] = e
	p.want("{")
	for p.err == nil && !p.at("}") {
		e.names = append(e.names, p.next())
		p.want("=")
		e.numbers = append(e.numbers, p.number())
		p.want(";")
	}
	return e
}

func (p *parser) service() {
	s := &Service{Name: p.file.Package + "." + p.next()}
	p.file.Services = append(p.file.Services, s)
	p.want("{")
	for p.err == nil && !p.at("}") {
		m := &Method{}
		p.want("rpc")
		m.Name = p.next()
		p.want("(")
		m.ClientStream = p.at("stream")
		m.inputName = p.next()
		p.want(")")
		p.want("returns")
		p.want("(")
		m.ServerStream = p.at("stream")
		m.outputName = p.next()
		p.want(")")
		if p.at("{") {
			p.want("}")
		} else {
			p.want(";")
		}
		s.Methods = append(s.Methods, m)
	}
}
