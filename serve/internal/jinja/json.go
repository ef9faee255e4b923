package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// FromJSON returns the value of a JSON text.
func FromJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("got text behind the value")
	}
	return v, nil
}

func readValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth > mostDepth {
		return nil, fmt.Errorf("got more than %d levels", mostDepth)
	}
	switch t := t.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(t), 10, 64); err == nil {
			return n, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			l := &List{}
			for d.More() {
				v, err := readValue(d, depth+1)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, v)
			}
			_, err := d.Token()
			return l, err
		}
		m := NewMap()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			m.Set(key, v)
		}
		_, err := d.Token()
		return m, err
	}
	return t, nil
}

// tojson is the filter of chat templates, which is that of json.dumps.
func tojson(r *renderer, v any, a *arguments) any {
	a.check(r, "tojson", 4, "ensure_ascii", "indent", "separators", "sort_keys")
	w := jsonWriter{r: r, item: ", ", key: ": ", ascii: truth(a.take(0, "ensure_ascii", false)), sort: truth(a.take(3, "sort_keys", false))}
	switch i := a.take(1, "indent", nil).(type) {
	case nil:
	case string:
		w.indent, w.lines = i, true
	default:
		n, ok := whole(i)
		if !ok {
			fail(r.line, "tojson: got %s for indent, want a number", typeName(i))
		}
		w.indent, w.lines = strings.Repeat(" ", int(max(0, min(n, 100)))), true
	}
	if w.lines {
		w.item = ","
	}
	if s, ok := a.take(2, "separators", nil).(*List); ok && len(s.Items) == 2 {
		w.item, w.key = r.text(s.Items[0]), r.text(s.Items[1])
	}
	w.write(v, 0)
	return w.b.String()
}

type jsonWriter struct {
	r           *renderer
	b           strings.Builder
	item, key   string // between elements, and behind keys
	indent      string
	lines       bool
	ascii, sort bool
}

func (w *jsonWriter) line(depth int) {
	if w.lines {
		w.b.WriteByte('\n')
		for range depth {
			w.b.WriteString(w.indent)
		}
	}
}

func (w *jsonWriter) write(v any, depth int) {
	w.r.step()
	if depth > mostDepth || w.b.Len() > mostText {
		fail(w.r.line, "tojson: got a value that is too large")
	}
	switch v := v.(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		w.b.WriteString(strconv.FormatBool(v))
	case int64:
		w.b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		w.b.WriteString(jsonFloat(v))
	case string:
		w.quote(v)
	case *List:
		w.list('[', ']', len(v.Items), depth, func(i int) { w.write(v.Items[i], depth+1) })
	case *Map:
		keys := v.keys
		if w.sort {
			keys = slices.Clone(keys)
			slices.SortFunc(keys, func(a, b any) int {
				if w.r.less(a, b) {
					return -1
				}
				return 1
			})
		}
		w.list('{', '}', len(keys), depth, func(i int) {
			switch k := keys[i].(type) {
			case string:
				w.quote(k)
			case nil:
				w.b.WriteString(`"null"`)
			case bool:
				w.b.WriteString(`"` + strconv.FormatBool(k) + `"`)
			case float64:
				w.b.WriteString(`"` + jsonFloat(k) + `"`)
			default:
				w.b.WriteString(`"` + w.r.text(k) + `"`)
			}
			w.b.WriteString(w.key)
			w.write(v.values[keys[i]], depth+1)
		})
	default:
		fail(w.r.line, "tojson: got %s, want a value of JSON", typeName(v))
	}
}

func (w *jsonWriter) list(open, closing byte, n, depth int, one func(i int)) {
	w.b.WriteByte(open)
	for i := range n {
		if i > 0 {
			w.b.WriteString(w.item)
		}
		w.line(depth + 1)
		one(i)
	}
	if n > 0 {
		w.line(depth)
	}
	w.b.WriteByte(closing)
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatText(f)
}

func (w *jsonWriter) quote(s string) {
	w.b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(c)
		case c == '\n':
			w.b.WriteString(`\n`)
		case c == '\r':
			w.b.WriteString(`\r`)
		case c == '\t':
			w.b.WriteString(`\t`)
		case c == '\b':
			w.b.WriteString(`\b`)
		case c == '\f':
			w.b.WriteString(`\f`)
		case c < ' ' || w.ascii && c >= 0x7f && c < 0x10000 && c != 0x7f:
			fmt.Fprintf(&w.b, `\u%04x`, c)
		case w.ascii && c >= 0x10000:
			c -= 0x10000
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			w.b.WriteRune(c)
		}
	}
	w.b.WriteByte('"')
}
