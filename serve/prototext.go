package serve

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// prototext reads the text form of a message of protocol buffers, such as a
// config.pbtxt, as the JSON of the same message.
type prototext struct {
	text string
	line int
}

// repeated are the fields of configurations that are lists, and keyed those
// whose entries have a key and a value.
var (
	repeated = []string{"input", "output", "dims", "instance_group", "preferred_batch_size", "versions", "model_warmup"}
	keyed    = []string{"parameters", "inputs", "priority_queue_policy"}
)

// token matches the next part of the text: a string, a word or number, or a
// sign. Blanks and comments are skipped before.
var (
	skipped = regexp.MustCompile(`^(?:[ \t\r\n]|#[^\n]*)+`)
	token   = regexp.MustCompile(`^(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[-+\w.]+|[{}<>\[\]:,;])`)
)

// jsonOfProtoText returns the JSON of a configuration in text form.
func jsonOfProtoText(text []byte) ([]byte, error) {
	p := &prototext{text: string(text), line: 1}
	m, err := p.message("", 0)
	if err == nil {
		if t := p.peek(); t != "" || p.text != "" {
			err = p.unexpected("a field")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrConfig)
	}
	return json.Marshal(m)
}

// peek returns the next token, "" at the end or where there is none.
func (p *prototext) peek() string {
	blank := skipped.FindString(p.text)
	p.line += strings.Count(blank, "\n")
	p.text = p.text[len(blank):]
	return token.FindString(p.text)
}

func (p *prototext) next() string {
	t := p.peek()
	p.text = p.text[len(t):]
	return t
}

func (p *prototext) unexpected(want string) error {
	got, _, _ := strings.Cut(p.text, "\n")
	if got == "" {
		return fmt.Errorf("line %d: got the end, want %s", p.line, want)
	}
	return fmt.Errorf("line %d: got %.20q, want %s", p.line, got, want)
}

// message reads fields up to the token end, which stays.
func (p *prototext) message(end string, depth int) (map[string]any, error) {
	m := map[string]any{}
	for {
		name := p.peek()
		if name == end {
			return m, nil
		}
		if name == "" || strings.ContainsAny(name[:1], `"'{}<>[]:,;`) || depth > 32 {
			return nil, p.unexpected("the name of a field")
		}
		p.next()
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		if t := p.peek(); t == "," || t == ";" {
			p.next()
		}
		if err := add(m, name, v); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
}

// add sets a field of a message, or adds to it.
func add(m map[string]any, name string, v any) error {
	list, isList := v.([]any)
	switch {
	case slices.Contains(repeated, name):
		if !isList {
			list = []any{v}
		}
		have, _ := m[name].([]any)
		m[name] = append(have, list...)
	case slices.Contains(keyed, name):
		if !isList {
			list = []any{v}
		}
		have, _ := m[name].(map[string]any)
		if have == nil {
			have = map[string]any{}
		}
		for _, e := range list {
			entry, _ := e.(map[string]any)
			key, ok := entry["key"]
			if !ok || entry["value"] == nil {
				return fmt.Errorf("%s: got %v, want entries with key and value", name, e)
			}
			have[fmt.Sprint(key)] = entry["value"]
		}
		m[name] = have
	case m[name] != nil:
		return fmt.Errorf("got %s twice, want it once", name)
	case isList:
		return fmt.Errorf("%s: got a list, want one value", name)
	default:
		m[name] = v
	}
	return nil
}

// value reads what follows the name of a field.
func (p *prototext) value(depth int) (any, error) {
	t := p.peek()
	if t == ":" {
		p.next()
		t = p.peek()
	} else if t != "{" && t != "<" && t != "[" {
		return nil, p.unexpected(`":" or "{"`)
	}
	switch {
	case t == "{" || t == "<":
		p.next()
		end := map[string]string{"{": "}", "<": ">"}[t]
		m, err := p.message(end, depth+1)
		if err != nil {
			return nil, err
		}
		p.next()
		return m, nil
	case t == "[":
		p.next()
		list := []any{}
		for p.peek() != "]" {
			if len(list) > 0 && p.next() != "," {
				return nil, p.unexpected(`"," or "]"`)
			}
			p.text = ":" + p.text // an element is read as the value of a field
			v, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		p.next()
		return list, nil
	}
	return p.scalar()
}

var number = regexp.MustCompile(`^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$`)

// scalar reads a number, a word or strings, which are joined.
func (p *prototext) scalar() (any, error) {
	t := p.peek()
	switch {
	case t == "" || strings.ContainsAny(t[:1], "{}<>[]:,;"):
		return nil, p.unexpected("a value")
	case t == "true" || t == "false":
		p.next()
		return t == "true", nil
	case number.MatchString(t):
		p.next()
		if n, err := strconv.ParseInt(t, 10, 64); err == nil {
			return n, nil
		}
		return strconv.ParseFloat(t, 64)
	case t[0] != '"' && t[0] != '\'':
		return p.next(), nil // the name of a value, such as TYPE_FP32
	}
	var text string
	for t := p.peek(); t != "" && (t[0] == '"' || t[0] == '\''); t = p.peek() {
		quoted := t
		if t[0] == '\'' {
			quoted = `"` + strings.ReplaceAll(strings.ReplaceAll(t[1:len(t)-1], `\'`, `'`), `"`, `\"`) + `"`
		}
		part, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, p.unexpected("a string with escapes of Go")
		}
		p.next()
		text += part
	}
	return text, nil
}
