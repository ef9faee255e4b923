package wiretest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"text/scanner"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
)

// Tests write models as text, which looks like that of package ir:
//
//	opset 13
//	opset acme 1
//	input x f32[2,n]
//	init w f32[2] 1 2
//	sparse s [3] f32[1] 7 i64[1] 1           // sizes, values and indices
//	y, _ = Dropout(x, _, w) {seed = 1, list = [1,2], t = f32[1] 5, to = @to, body = graph} as "name"
//	output y f32[2,n]
//	value t f32[2]                           // declared types
//	graph body ... end                       // a nested graph, before it is used
//	func acme::F(x) -> (y) {a, b = 1} ... end

// ModelText returns the file that the text describes.
func ModelText(t testing.TB, text string) []byte {
	t.Helper()
	return EncodeModel(ParseText(t, text))
}

// ParseText returns the messages of the model that the text describes.
func ParseText(t testing.TB, text string) *wire.Model {
	t.Helper()
	p := &textParser{graphs: map[string]*wire.Graph{}}
	p.Init(strings.NewReader(text))
	p.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanFloats | scanner.ScanStrings | scanner.ScanComments | scanner.SkipComments
	p.Error = func(_ *scanner.Scanner, msg string) { p.fail("%s", msg) }
	m := &wire.Model{IRVersion: 8, Graph: &wire.Graph{Name: "test"}}
	func() {
		defer func() {
			if e := recover(); e != nil && e != p {
				panic(e)
			}
		}()
		p.advance()
		p.statements(m, m.Graph, scanner.EOF)
	}()
	if p.err != nil {
		t.Fatalf("model text: %v", p.err)
	}
	return m
}

type textParser struct {
	scanner.Scanner
	tok    rune
	graphs map[string]*wire.Graph
	err    error
}

func (p *textParser) fail(format string, args ...any) {
	p.err = fmt.Errorf("%s: %s", p.Position, fmt.Sprintf(format, args...))
	panic(p)
}

func (p *textParser) advance() { p.tok = p.Scan() }

func (p *textParser) accept(tok rune) bool {
	if p.tok != tok {
		return false
	}
	p.advance()
	return true
}

func (p *textParser) want(tok rune) {
	if !p.accept(tok) {
		p.fail("got %q, want %s", p.TokenText(), scanner.TokenString(tok))
	}
}

// name is an identifier or a string.
func (p *textParser) name() string {
	text := p.TokenText()
	switch p.tok {
	case scanner.String:
		text = p.str()
	case scanner.Ident:
		p.advance()
	default:
		p.fail("got %q, want a name", text)
	}
	return text
}

func (p *textParser) str() string {
	s, err := strconv.Unquote(p.TokenText())
	if err != nil {
		p.fail("got %s, want a string", p.TokenText())
	}
	p.advance()
	return s
}

func (p *textParser) statements(m *wire.Model, g *wire.Graph, end rune) {
	for p.tok != end && !(p.tok == scanner.Ident && p.TokenText() == "end") {
		word := p.TokenText()
		if p.tok != scanner.Ident {
			word = ""
		}
		switch word {
		case "ir":
			p.advance()
			m.IRVersion = p.integer()
		case "opset":
			p.advance()
			domain := ""
			if p.tok != scanner.Int && p.tok != '-' {
				domain = p.name()
			}
			m.Opsets = append(m.Opsets, wire.Opset{Domain: domain, Version: p.integer()})
		case "input":
			p.advance()
			g.Inputs = append(g.Inputs, p.value())
		case "output":
			p.advance()
			g.Outputs = append(g.Outputs, p.value())
		case "value":
			p.advance()
			g.Values = append(g.Values, p.value())
		case "init":
			p.advance()
			name := p.name()
			t := p.tensor()
			t.Name = name
			g.Initializers = append(g.Initializers, t)
		case "sparse":
			p.advance()
			name := p.name()
			t := p.sparse()
			t.Values.Name = name
			g.Sparse = append(g.Sparse, t)
		case "graph":
			p.advance()
			name := p.name()
			inner := &wire.Graph{Name: name}
			p.statements(m, inner, scanner.EOF)
			p.graphs[name] = inner
			p.advance()
		case "func":
			p.advance()
			m.Functions = append(m.Functions, p.function(m))
		default:
			g.Nodes = append(g.Nodes, p.node())
		}
	}
}

func (p *textParser) function(m *wire.Model) wire.Function {
	f := wire.Function{Domain: p.name()}
	p.want(':')
	p.want(':')
	f.Name = p.name()
	p.want('(')
	f.Inputs = p.names(')')
	p.want('-')
	p.want('>')
	p.want('(')
	f.Outputs = p.names(')')
	if p.accept('{') {
		for !p.accept('}') {
			name := p.name()
			if p.accept('=') {
				f.Defaults = append(f.Defaults, wire.Attribute{Name: name, Value: p.attr()})
			} else {
				f.Attrs = append(f.Attrs, name)
			}
			p.accept(',')
		}
	}
	body := &wire.Graph{}
	inner := &wire.Model{}
	p.statements(inner, body, scanner.EOF)
	p.advance()
	f.Nodes, f.Opsets = body.Nodes, inner.Opsets
	if f.Opsets == nil {
		f.Opsets = m.Opsets
	}
	return f
}

func (p *textParser) names(end rune) []string {
	var names []string
	for !p.accept(end) {
		name := p.name()
		if name == "_" {
			name = ""
		}
		names = append(names, name)
		p.accept(',')
	}
	return names
}

func (p *textParser) node() wire.Node {
	n := wire.Node{Outputs: p.names('=')}
	n.OpType = p.name()
	if p.accept(':') {
		p.want(':')
		n.Domain, n.OpType = n.OpType, p.name()
	}
	p.want('(')
	n.Inputs = p.names(')')
	if p.accept('{') {
		for !p.accept('}') {
			name := p.name()
			p.want('=')
			if p.accept('@') {
				n.Attrs = append(n.Attrs, wire.Attribute{Name: name, Ref: p.name()})
			} else {
				n.Attrs = append(n.Attrs, wire.Attribute{Name: name, Value: p.attr()})
			}
			p.accept(',')
		}
	}
	if p.tok == scanner.Ident && p.TokenText() == "as" {
		p.advance()
		n.Name = p.name()
	}
	return n
}

// attr is a number, a string, a list, a tensor or the name of a graph.
func (p *textParser) attr() any {
	if p.accept('[') {
		return p.list()
	}
	if p.tok != scanner.Ident || p.isNumber() {
		return p.scalar()
	}
	if g := p.graphs[p.TokenText()]; g != nil {
		p.advance()
		return g
	}
	if p.TokenText() == "sparse" {
		p.advance()
		t := p.sparse()
		return &t
	}
	t := p.tensor()
	return &t
}

func (p *textParser) sparse() wire.Sparse {
	p.want('[')
	dims, _ := p.list().([]int64)
	return wire.Sparse{Dims: dims, Values: p.tensor(), Indices: p.tensor()}
}

// scalar returns an int64, a float32 or a string.
func (p *textParser) scalar() any {
	if p.tok == scanner.String {
		return p.str()
	}
	sign := ""
	if p.accept('-') {
		sign = "-"
	}
	text := sign + p.TokenText()
	if p.tok == scanner.Int {
		if v, err := strconv.ParseInt(text, 0, 64); err == nil {
			p.advance()
			return v
		}
	}
	v, err := strconv.ParseFloat(text, 32)
	if err != nil {
		p.fail("got %q, want a number", text)
	}
	p.advance()
	return float32(v)
}

func (p *textParser) isNumber() bool {
	text := p.TokenText()
	return p.tok == scanner.Int || p.tok == scanner.Float || p.tok == '-' || text == "inf" || text == "nan"
}

func (p *textParser) integer() int64 {
	v, ok := p.scalar().(int64)
	if !ok {
		p.fail("want an integer")
	}
	return v
}

func (p *textParser) list() any {
	ints, floats, texts := []int64{}, []float32{}, []string{}
	for !p.accept(']') {
		switch v := p.scalar().(type) {
		case int64:
			ints = append(ints, v)
		case float32:
			floats = append(floats, v)
		case string:
			texts = append(texts, v)
		}
		p.accept(',')
	}
	switch {
	case len(floats) > 0:
		return floats
	case len(texts) > 0:
		return texts
	}
	return ints
}

// typ is an element type with or without dims, sequence(TYPE), optional(TYPE)
// or map(KEY, TYPE); another word is a kind of type that is not of tensors.
func (p *textParser) typ() wire.Type {
	word := p.name()
	dt, err := dtype.Parse(word)
	if err != nil {
		t := wire.Type{Kind: word}
		if !p.accept('(') {
			return t
		}
		if word == "map" {
			key := p.typ()
			t.Key = key.ElemType
			p.want(',')
		}
		elem := p.typ()
		t.Elem = &elem
		p.want(')')
		return t
	}
	t := wire.Type{Kind: "tensor", ElemType: dt.ONNX()}
	if !p.accept('[') {
		return t
	}
	t.HasShape = true
	for !p.accept(']') {
		switch {
		case p.isNumber():
			t.Dims = append(t.Dims, wire.Dim{Size: p.integer(), Sized: true})
		case p.accept('?'):
			t.Dims = append(t.Dims, wire.Dim{})
		default:
			t.Dims = append(t.Dims, wire.Dim{Symbol: p.name()})
		}
		p.accept(',')
	}
	return t
}

func (p *textParser) value() wire.Value {
	v := wire.Value{Name: p.name()}
	if p.tok == '_' || p.tok == scanner.Ident && p.TokenText() == "_" {
		p.advance()
		return v
	}
	v.Type = p.typ()
	return v
}

// tensor is a type and its elements, which go into raw_data unless they are
// strings.
func (p *textParser) tensor() wire.Tensor {
	typ := p.typ()
	dt, err := dtype.FromONNX(typ.ElemType)
	if err != nil {
		p.fail("%v", err)
	}
	t := wire.Tensor{DataType: typ.ElemType, Raw: []byte{}}
	for _, d := range typ.Dims {
		t.Dims = append(t.Dims, d.Size)
	}
	if dt == dtype.String {
		var w Writer
		for p.tok == scanner.String {
			w.Bytes(wire.StringData, []byte(p.str()))
		}
		t.Raw, t.Body = nil, w
		return t
	}
	for p.isNumber() {
		var v float64
		switch x := p.scalar().(type) {
		case int64:
			if dt.IsInt() {
				t.Raw = append(t.Raw, binary.LittleEndian.AppendUint64(nil, uint64(x))[:dt.Size()]...)
				continue
			}
			v = float64(x)
		case float32:
			v = float64(x)
		}
		t.Raw = append(t.Raw, floatBytes(dt, v)...)
	}
	return t
}

func floatBytes(dt dtype.DType, v float64) []byte {
	switch dt {
	case dtype.F64:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case dtype.F16:
		return binary.LittleEndian.AppendUint16(nil, uint16(dtype.Float16FromFloat32(float32(v))))
	case dtype.BF16:
		return binary.LittleEndian.AppendUint16(nil, uint16(dtype.BFloat16FromFloat32(float32(v))))
	case dtype.Bool:
		return []byte{byte(v)}
	}
	return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
}
