package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// method returns a method of a value, bound to it; nil if there is none.
func method(of any, name string) any {
	var f func(r *renderer, a *arguments) any
	switch v := of.(type) {
	case string:
		if m := textMethods[name]; m != nil {
			f = func(r *renderer, a *arguments) any { return m(r, v, a) }
		}
	case *Map:
		if m := mapMethods[name]; m != nil {
			f = func(r *renderer, a *arguments) any { return m(r, v, a) }
		}
	case *List:
		if m := listMethods[name]; m != nil {
			f = func(r *renderer, a *arguments) any { return m(r, v, a) }
		}
	}
	if f == nil {
		return nil
	}
	return &function{name, f}
}

var mapMethods = map[string]func(r *renderer, m *Map, a *arguments) any{
	"items": func(r *renderer, m *Map, a *arguments) any { return pairs(r, m) },
	"keys":  func(r *renderer, m *Map, a *arguments) any { return &List{Items: m.keys} },
	"values": func(r *renderer, m *Map, a *arguments) any {
		l := &List{}
		for _, k := range m.keys {
			l.Items = append(l.Items, m.values[k])
		}
		return l
	},
	"get": func(r *renderer, m *Map, a *arguments) any {
		a.check(r, "get", 2)
		if len(a.list) == 0 || !hashable(a.list[0]) {
			fail(r.line, "get: got no key")
		}
		if v, ok := m.Get(a.list[0]); ok {
			return v
		}
		return a.take(1, "", nil)
	},
	"copy": func(r *renderer, m *Map, a *arguments) any {
		c := NewMap()
		for _, k := range m.keys {
			c.Set(k, m.values[k])
		}
		return c
	},
	"pop": refused[*Map], "popitem": refused[*Map], "clear": refused[*Map], "update": refused[*Map], "setdefault": refused[*Map],
}

var listMethods = map[string]func(r *renderer, l *List, a *arguments) any{
	"index": func(r *renderer, l *List, a *arguments) any {
		for i, v := range l.Items {
			if r.equal(v, a.take(0, "", nil)) {
				return int64(i)
			}
		}
		fail(r.line, "index: the value is not in the list")
		return nil
	},
	"count": func(r *renderer, l *List, a *arguments) any {
		n := int64(0)
		for _, v := range l.Items {
			if r.equal(v, a.take(0, "", nil)) {
				n++
			}
		}
		return n
	},
	"append": refused[*List], "extend": refused[*List], "insert": refused[*List], "remove": refused[*List], "pop": refused[*List], "sort": refused[*List], "reverse": refused[*List], "clear": refused[*List],
}

// refused is a method that would change a value.
func refused[T any](r *renderer, _ T, _ *arguments) any {
	fail(r.line, "got a method that changes a value, which templates must not")
	return nil
}

// stripped takes characters off the ends of a text, white space without any.
func stripped(r *renderer, s string, chars any, left, right bool) string {
	in := isSpace
	if c, ok := chars.(string); ok {
		in = func(x rune) bool { return strings.ContainsRune(c, x) }
	} else if chars != nil {
		fail(r.line, "strip: got %s, want a text", typeName(chars))
	}
	if left {
		s = strings.TrimLeftFunc(s, in)
	}
	if right {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

// isSpace is white space as Python has it: some control characters, too.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

func strip(left, right bool) func(*renderer, string, *arguments) any {
	return func(r *renderer, s string, a *arguments) any {
		a.check(r, "strip", 1)
		return stripped(r, s, a.take(0, "", nil), left, right)
	}
}

// texts makes a list of texts.
func texts(list []string) *List {
	l := &List{}
	for _, s := range list {
		l.Items = append(l.Items, s)
	}
	return l
}

// split cuts a text at a separator, or at white space; at most so many times,
// from the front or from the back.
func split(back bool) func(*renderer, string, *arguments) any {
	return func(r *renderer, s string, a *arguments) any {
		a.check(r, "split", 2, "sep", "maxsplit")
		most := int(max(-1, min(a.whole(r, "split", 1, "maxsplit", -1), mostText)))
		sep, given := a.take(0, "sep", nil).(string)
		if given && sep == "" {
			fail(r.line, "split: got an empty separator")
		}
		r.fits(len(s))
		var list []string
		if !given {
			return texts(splitSpace(s, most, back))
		}
		if !back || most < 0 {
			n := -1
			if most >= 0 {
				n = most + 1
			}
			list = strings.SplitN(s, sep, n)
		} else {
			for ; most > 0; most-- {
				i := strings.LastIndex(s, sep)
				if i < 0 {
					break
				}
				list = append([]string{s[i+len(sep):]}, list...)
				s = s[:i]
			}
			list = append([]string{s}, list...)
		}
		r.size(len(list))
		return texts(list)
	}
}

// splitSpace cuts a text at runs of white space.
func splitSpace(s string, most int, back bool) (list []string) {
	if back && most >= 0 {
		s = strings.TrimRightFunc(s, isSpace)
		for ; most > 0 && s != ""; most-- {
			i := strings.LastIndexFunc(s, isSpace)
			if i < 0 {
				break
			}
			list = append([]string{s[i+len(string([]rune(s[i:])[0])):]}, list...)
			s = strings.TrimRightFunc(s[:i], isSpace)
		}
		if s != "" {
			list = append([]string{s}, list...)
		}
		return list
	}
	s = strings.TrimLeftFunc(s, isSpace)
	for ; most != 0 && s != ""; most-- {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 {
			break
		}
		list = append(list, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	if s != "" {
		list = append(list, s)
	}
	return list
}

// hasEnd tests for a beginning or an end, or one of several.
func hasEnd(f func(s, part string) bool) func(*renderer, string, *arguments) any {
	return func(r *renderer, s string, a *arguments) any {
		a.check(r, "startswith and endswith", 1)
		v := a.take(0, "", nil)
		if l, ok := v.(*List); ok && l.tuple {
			for _, x := range l.Items {
				if p, ok := x.(string); ok && f(s, p) {
					return true
				}
			}
			return false
		}
		return f(s, a.text(r, "startswith and endswith", 0, ""))
	}
}

// charsFound makes a method of a search, whose result counts characters.
func charsFound(f func(s, part string) int, must bool) func(*renderer, string, *arguments) any {
	return func(r *renderer, s string, a *arguments) any {
		a.check(r, "find", 1)
		i := f(s, a.text(r, "find", 0, ""))
		if i < 0 && must {
			fail(r.line, "index: the part is not in the text")
		}
		if i < 0 {
			return int64(-1)
		}
		return int64(len([]rune(s[:i])))
	}
}

func onMethod(f func(string) string) func(*renderer, string, *arguments) any {
	return func(r *renderer, s string, a *arguments) any {
		a.check(r, "method", 0)
		r.fits(2 * len(s))
		return f(s)
	}
}

// allChars makes a method that tests all characters.
func allChars(f func(rune) bool) func(*renderer, string, *arguments) any {
	return func(r *renderer, s string, a *arguments) any {
		return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !f(c) })
	}
}

var textMethods map[string]func(r *renderer, s string, a *arguments) any

func init() {
	textMethods = map[string]func(r *renderer, s string, a *arguments) any{
		"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"split": split(false), "rsplit": split(true),
		"startswith": hasEnd(strings.HasPrefix), "endswith": hasEnd(strings.HasSuffix),
		"find": charsFound(strings.Index, false), "rfind": charsFound(strings.LastIndex, false), "index": charsFound(strings.Index, true),
		"upper": onMethod(upper), "lower": onMethod(lower), "capitalize": onMethod(capitalize), "title": onMethod(title),
		"isspace": allChars(isSpace), "isdigit": allChars(unicode.IsDigit), "isnumeric": allChars(unicode.IsNumber), "isalpha": allChars(unicode.IsLetter),
		"isalnum": allChars(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isupper": func(r *renderer, s string, a *arguments) any { return cased(s, unicode.IsUpper, unicode.IsLower) },
		"islower": func(r *renderer, s string, a *arguments) any { return cased(s, unicode.IsLower, unicode.IsUpper) },
		"count": func(r *renderer, s string, a *arguments) any {
			return int64(strings.Count(s, a.text(r, "count", 0, "")))
		},
		"replace": func(r *renderer, s string, a *arguments) any {
			a.check(r, "replace", 3)
			return replace(r, s, a.text(r, "replace", 0, ""), a.text(r, "replace", 1, ""), a.take(2, "count", nil))
		},
		"join": func(r *renderer, s string, a *arguments) any {
			for _, v := range r.items(a.take(0, "", nil)) {
				if _, ok := v.(string); !ok {
					fail(r.line, "join: got %s, want texts", typeName(v))
				}
			}
			return join(r, a.take(0, "", nil), &arguments{[]any{s}, NewMap()})
		},
		"splitlines": func(r *renderer, s string, a *arguments) any {
			a.check(r, "splitlines", 0)
			r.fits(len(s))
			s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\x1c", "\n", "\x1d", "\n", "\x1e", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s)
			if s == "" {
				return &List{}
			}
			return texts(strings.Split(strings.TrimSuffix(s, "\n"), "\n"))
		},
		"removeprefix": func(r *renderer, s string, a *arguments) any {
			return strings.TrimPrefix(s, a.text(r, "removeprefix", 0, ""))
		},
		"removesuffix": func(r *renderer, s string, a *arguments) any {
			return strings.TrimSuffix(s, a.text(r, "removesuffix", 0, ""))
		},
		"partition": func(r *renderer, s string, a *arguments) any {
			sep := a.text(r, "partition", 0, "")
			before, after, found := strings.Cut(s, sep)
			if !found {
				sep = ""
			}
			return &List{tuple: true, Items: []any{before, sep, after}}
		},
	}
}

// title begins a word behind anything but a letter.
func title(s string) string {
	var b strings.Builder
	begin := true
	for _, c := range s {
		if begin {
			b.WriteRune(unicode.ToTitle(c))
		} else {
			b.WriteRune(unicode.ToLower(c))
		}
		begin = !unicode.IsLetter(c)
	}
	return b.String()
}

// percent formats as the operator % of texts does. A single value with elements
// may have more than the format takes.
func (r *renderer) percent(format string, args []any, more bool) string {
	var b strings.Builder
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		j := i + 1
		for j < len(format) && strings.IndexByte("0123456789.-+ ", format[j]) >= 0 {
			j++
		}
		if j == len(format) || j > i+8 {
			fail(r.line, "got the format %q, want %%s, %%d, %%f, %%x, %%r or %%%%", format)
		}
		spec := format[i+1 : j]
		if format[j] == '%' {
			b.WriteByte('%')
			i = j
			continue
		}
		if next >= len(args) {
			fail(r.line, "got %d values for the format %q, want more", len(args), format)
		}
		v := args[next]
		next++
		switch c := format[j]; c {
		case 's':
			fmt.Fprintf(&b, "%"+spec+"s", r.text(v))
		case 'r':
			var one strings.Builder
			r.repr(&one, v, 0)
			fmt.Fprintf(&b, "%"+spec+"s", one.String())
		case 'd', 'i', 'x', 'X', 'o':
			n, ok := whole(v)
			if f, is := v.(float64); is && c != 'x' && c != 'X' && c != 'o' {
				n, ok = int64(f), true
			}
			if !ok {
				fail(r.line, "got %s for %%%c, want a whole number", typeName(v), c)
			}
			fmt.Fprintf(&b, "%"+spec+map[byte]string{'i': "d"}[c]+strings.TrimPrefix(string(c), "i"), n)
		case 'f', 'F', 'e', 'g':
			f, ok := number(v)
			if !ok {
				fail(r.line, "got %s for %%%c, want a number", typeName(v), c)
			}
			fmt.Fprintf(&b, "%"+spec+string(c), f)
		default:
			fail(r.line, "got the format %q, want %%s, %%d, %%f, %%x, %%r or %%%%", format)
		}
		i = j
		r.fits(b.Len())
	}
	if next < len(args) && !more {
		fail(r.line, "got more values than the format %q takes", format)
	}
	return b.String()
}

// functions are those that every template has.
var functions = map[string]any{
	"range":     &function{"range", rangeOf},
	"dict":      &function{"dict", func(r *renderer, a *arguments) any { return mappingOf(r, "dict", a) }},
	"namespace": &function{"namespace", func(r *renderer, a *arguments) any { return &namespace{mappingOf(r, "namespace", a)} }},
	"raise_exception": &function{"raise_exception", func(r *renderer, a *arguments) any {
		panic(&Error{Line: r.line, Message: r.text(a.take(0, "message", "")), Raised: true})
	}},
	"strftime_now": &function{"strftime_now", func(r *renderer, a *arguments) any {
		return strftime(r, a.text(r, "strftime_now", 0, "format"), r.now)
	}},
}

func rangeOf(r *renderer, a *arguments) any {
	a.check(r, "range", 3)
	from, to, step := int64(0), int64(0), int64(1)
	switch len(a.list) {
	case 1:
		to = a.whole(r, "range", 0, "", 0)
	case 2, 3:
		from, to, step = a.whole(r, "range", 0, "", 0), a.whole(r, "range", 1, "", 0), a.whole(r, "range", 2, "", 1)
	default:
		fail(r.line, "range: got no arguments, want one to three")
	}
	if step == 0 {
		fail(r.line, "range: got a step of 0")
	}
	l := &List{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		r.size(len(l.Items) + 1)
		r.steps -= len(l.Items)
		l.Items = append(l.Items, i)
	}
	return l
}

// mappingOf makes a mapping of one that is given, and of named values.
func mappingOf(r *renderer, of string, a *arguments) *Map {
	m := NewMap()
	for _, v := range a.list {
		given, ok := v.(*Map)
		if !ok {
			fail(r.line, "%s: got %s, want a mapping or names", of, typeName(v))
		}
		for _, k := range given.keys {
			m.Set(k, given.values[k])
		}
	}
	for _, k := range a.named.keys {
		m.Set(k, a.named.values[k])
	}
	return m
}

// strftime writes a time as Python's function of that name does.
func strftime(r *renderer, format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := true
		if format[i] == '-' && i+1 < len(format) {
			pad = false
			i++
		}
		num := func(n, width int) {
			s := strconv.Itoa(n)
			for pad && len(s) < width {
				s = "0" + s
			}
			b.WriteString(s)
		}
		switch c := format[i]; c {
		case 'd':
			num(t.Day(), 2)
		case 'm':
			num(int(t.Month()), 2)
		case 'Y':
			num(t.Year(), 4)
		case 'y':
			num(t.Year()%100, 2)
		case 'H':
			num(t.Hour(), 2)
		case 'I':
			num((t.Hour()+11)%12+1, 2)
		case 'M':
			num(t.Minute(), 2)
		case 'S':
			num(t.Second(), 2)
		case 'j':
			num(t.YearDay(), 3)
		case 'B', 'b', 'A', 'a', 'p':
			b.WriteString(t.Format(map[byte]string{'B': "January", 'b': "Jan", 'A': "Monday", 'a': "Mon", 'p': "PM"}[c]))
		case '%':
			b.WriteByte('%')
		default:
			fail(r.line, "strftime_now: got %%%c, which is not supported", c)
		}
	}
	return b.String()
}
