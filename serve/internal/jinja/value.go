package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// List is a list, or a tuple.
type List struct {
	Items []any
	tuple bool
}

// Map has keys in the order in which they came.
type Map struct {
	keys   []any
	values map[any]any
}

// NewMap returns an empty one.
func NewMap() *Map { return &Map{values: map[any]any{}} }

// Set sets the value of a key: a string, a number, a bool, or nil.
func (m *Map) Set(key, value any) {
	key = hashed(key)
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.values[key] = value
}

// Get returns the value of a key.
func (m *Map) Get(key any) (any, bool) {
	v, ok := m.values[hashed(key)]
	return v, ok
}

// Len returns the number of keys.
func (m *Map) Len() int { return len(m.keys) }

// hashed makes one key of numbers that are equal.
func hashed(key any) any {
	if f, ok := key.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return key
}

// hashable reports whether a value may be a key here.
func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}

// undefined is the value of a name that is not there. It writes nothing.
type undefined struct{ why string }

// namespace is a value with fields that a template may set.
type namespace struct{ fields *Map }

// function is something that can be called.
type function struct {
	name string
	call func(r *renderer, args *arguments) any
}

// typeName is what messages call a value.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case undefined:
		return "an undefined value (" + v.why + ")"
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case *List:
		if v.tuple {
			return "a tuple"
		}
		return "a list"
	case *Map:
		return "a mapping"
	}
	return "an object"
}

// truth is whether a value counts as true.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Map:
		return v.Len() > 0
	}
	return true
}

// text is what a value is written as.
func (r *renderer) text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	var b strings.Builder
	r.repr(&b, v, 0)
	return b.String()
}

// repr writes a value as Python's repr does.
func (r *renderer) repr(b *strings.Builder, v any, depth int) {
	r.step()
	if depth > mostDepth || b.Len() > mostText {
		fail(r.line, "got a value that is too large to be written")
	}
	list := func(open, closing string, n int, one func(i int)) {
		b.WriteString(open)
		for i := range n {
			if i > 0 {
				b.WriteString(", ")
			}
			one(i)
		}
		b.WriteString(closing)
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case undefined:
		b.WriteString("Undefined")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatText(v))
	case string:
		b.WriteString(quoted(v))
	case *List:
		open, closing := "[", "]"
		if v.tuple {
			if open, closing = "(", ")"; len(v.Items) == 1 {
				closing = ",)"
			}
		}
		list(open, closing, len(v.Items), func(i int) { r.repr(b, v.Items[i], depth+1) })
	case *Map:
		list("{", "}", v.Len(), func(i int) {
			r.repr(b, v.keys[i], depth+1)
			b.WriteString(": ")
			r.repr(b, v.values[v.keys[i]], depth+1)
		})
	default:
		fail(r.line, "got %s, want a value that can be written", typeName(v))
	}
}

// floatText writes a number as Python does: the shortest text that is the same
// number again.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quoted writes a string as Python does.
func quoted(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == '\\' || c == rune(quote):
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f || c > 0x7f && c < 0x100 && !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\x%02x`, c)
		case c >= 0x100 && !unicode.IsPrint(c) && c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		case c >= 0x10000 && !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\U%08x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte(quote)
	return b.String()
}

// number returns a number as a float.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// whole returns a whole number, of a bool too.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// equal compares as == does.
func (r *renderer) equal(a, b any) bool {
	r.step()
	if x, ok := number(a); ok {
		if i, ok := whole(a); ok {
			if j, ok := whole(b); ok {
				return i == j
			}
		}
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		s, ok := b.(string)
		return ok && a == s
	case *List:
		l, ok := b.(*List)
		if !ok || l.tuple != a.tuple || len(l.Items) != len(a.Items) {
			return false
		}
		for i := range a.Items {
			if !r.equal(a.Items[i], l.Items[i]) {
				return false
			}
		}
		return true
	case *Map:
		m, ok := b.(*Map)
		if !ok || m.Len() != a.Len() {
			return false
		}
		for _, k := range a.keys {
			v, ok := m.Get(k)
			if !ok || !r.equal(a.values[k], v) {
				return false
			}
		}
		return true
	}
	return a == b // by identity
}

// less compares as < does.
func (r *renderer) less(a, b any) bool {
	r.step()
	x, ok1 := number(a)
	y, ok2 := number(b)
	if ok1 && ok2 {
		return x < y
	}
	s, ok1 := a.(string)
	t, ok2 := b.(string)
	if ok1 && ok2 {
		return s < t // code points in UTF-8 are in order
	}
	l, ok1 := a.(*List)
	m, ok2 := b.(*List)
	if !ok1 || !ok2 || l.tuple != m.tuple {
		fail(r.line, "got the order of %s and %s, want two of one kind", typeName(a), typeName(b))
	}
	for i := range min(len(l.Items), len(m.Items)) {
		if !r.equal(l.Items[i], m.Items[i]) {
			return r.less(l.Items[i], m.Items[i])
		}
	}
	return len(l.Items) < len(m.Items)
}

// items returns what a loop over a value sees.
func (r *renderer) items(v any) []any {
	var list []any
	switch v := v.(type) {
	case *List:
		return v.Items
	case *Map:
		return v.keys
	case undefined:
		return nil
	case string:
		r.size(utf8.RuneCountInString(v))
		for _, c := range v {
			list = append(list, string(c))
		}
		return list
	}
	fail(r.line, "got %s, want something with elements", typeName(v))
	return nil
}

// contains is a in b.
func (r *renderer) contains(a, b any) bool {
	switch b := b.(type) {
	case string:
		s, ok := a.(string)
		if !ok {
			fail(r.line, "got %s in a text, want a text", typeName(a))
		}
		return strings.Contains(b, s)
	case *Map:
		if !hashable(a) {
			fail(r.line, "got %s as a key", typeName(a))
		}
		_, ok := b.Get(a)
		return ok
	}
	for _, v := range r.items(b) {
		if r.equal(a, v) {
			return true
		}
	}
	return false
}
