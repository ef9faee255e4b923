package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// take returns an argument by its place or its name, or a standard.
func (a *arguments) take(i int, name string, standard any) any {
	if i < len(a.list) {
		return a.list[i]
	}
	if v, ok := a.named.Get(name); ok {
		return v
	}
	return standard
}

// at most so many arguments by place, and by name only these.
func (a *arguments) check(r *renderer, of string, most int, names ...string) {
	if len(a.list) > most {
		fail(r.line, "%s: got %d arguments, want at most %d", of, len(a.list), most)
	}
	for _, k := range a.named.keys {
		if !slices.Contains(names, k.(string)) {
			fail(r.line, "%s: got an argument %s, which is not supported", of, k)
		}
	}
}

func (a *arguments) text(r *renderer, of string, i int, name string) string {
	v := a.take(i, name, nil)
	s, ok := v.(string)
	if !ok {
		fail(r.line, "%s: got %s, want a text", of, typeName(v))
	}
	return s
}

func (a *arguments) whole(r *renderer, of string, i int, name string, standard int64) int64 {
	v := a.take(i, name, standard)
	n, ok := whole(v)
	if !ok {
		fail(r.line, "%s: got %s, want a whole number", of, typeName(v))
	}
	return n
}

type filter = func(r *renderer, v any, a *arguments) any

// filters are set by init: some call others.
var filters map[string]filter

// onText makes a filter of a function of a text.
func onText(f func(string) string) filter {
	return func(r *renderer, v any, a *arguments) any {
		a.check(r, "filter", 0)
		s := f(r.text(v))
		r.fits(len(s))
		return s
	}
}

func init() {
	filters = map[string]filter{
		"upper":      onText(upper),
		"lower":      onText(lower),
		"capitalize": onText(capitalize),
		"title":      onText(filterTitle),
		"string":     onText(func(s string) string { return s }),
		"trim": func(r *renderer, v any, a *arguments) any {
			a.check(r, "trim", 1, "chars")
			return stripped(r, r.text(v), a.take(0, "chars", nil), true, true)
		},
		"length":  length,
		"count":   length,
		"default": standard, "d": standard,
		"first": func(r *renderer, v any, a *arguments) any { return edge(r, v, 0) },
		"last":  func(r *renderer, v any, a *arguments) any { return edge(r, v, -1) },
		"list": func(r *renderer, v any, a *arguments) any {
			return &List{Items: slices.Clone(r.items(v))}
		},
		"reverse": reverse,
		"join":    join,
		"replace": func(r *renderer, v any, a *arguments) any {
			a.check(r, "replace", 3, "old", "new", "count")
			return replace(r, r.text(v), a.text(r, "replace", 0, "old"), a.text(r, "replace", 1, "new"), a.take(2, "count", nil))
		},
		"items": func(r *renderer, v any, a *arguments) any {
			if _, ok := v.(undefined); ok {
				return &List{}
			}
			m, ok := v.(*Map)
			if !ok {
				fail(r.line, "items: got %s, want a mapping", typeName(v))
			}
			return pairs(r, m)
		},
		"dictsort": dictsort,
		"sort":     sorted,
		"unique":   unique,
		"map":      mapped,
		"select":   func(r *renderer, v any, a *arguments) any { return selected(r, v, a, false, true) },
		"reject":   func(r *renderer, v any, a *arguments) any { return selected(r, v, a, false, false) },
		"selectattr": func(r *renderer, v any, a *arguments) any {
			return selected(r, v, a, true, true)
		},
		"rejectattr": func(r *renderer, v any, a *arguments) any {
			return selected(r, v, a, true, false)
		},
		"attr": func(r *renderer, v any, a *arguments) any {
			if m, ok := v.(*Map); ok { // attributes alone, not keys
				if f := method(m, a.text(r, "attr", 0, "name")); f != nil {
					return f
				}
				return undefined{"a mapping has no such attribute"}
			}
			return r.attribute(v, a.text(r, "attr", 0, "name"))
		},
		"abs":    absolute,
		"int":    toInt,
		"float":  toFloat,
		"round":  round,
		"sum":    sum,
		"min":    func(r *renderer, v any, a *arguments) any { return extreme(r, v, a, -1) },
		"max":    func(r *renderer, v any, a *arguments) any { return extreme(r, v, a, 1) },
		"tojson": tojson,
		"indent": indent,
		"format": func(r *renderer, v any, a *arguments) any {
			a.check(r, "format", len(a.list))
			return r.percent(r.text(v), a.list, false)
		},
		"wordcount": func(r *renderer, v any, a *arguments) any {
			return int64(len(strings.FieldsFunc(r.text(v), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' })))
		},
	}
}

// upper and lower change the case of a text by all of Unicode's rules: one
// character may become two.
func upper(s string) string { return cases.Upper(language.Und).String(s) }
func lower(s string) string { return cases.Lower(language.Und).String(s) }

func capitalize(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToTitle(c)) + lower(s[n:])
}

// filterTitle is the filter, which begins words behind white space, hyphens and
// brackets; the method of a text does it behind anything but a letter.
func filterTitle(s string) string {
	var b strings.Builder
	begin := true
	for _, c := range s {
		if begin {
			b.WriteRune(unicode.ToTitle(c))
		} else {
			b.WriteRune(unicode.ToLower(c))
		}
		begin = unicode.IsSpace(c) || strings.ContainsRune("-({[<", c)
	}
	return b.String()
}

func length(r *renderer, v any, a *arguments) any {
	switch v := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(v))
	case *List:
		return int64(len(v.Items))
	case *Map:
		return int64(v.Len())
	case undefined:
		return int64(0)
	}
	fail(r.line, "length: got %s, want something with elements", typeName(v))
	return nil
}

func standard(r *renderer, v any, a *arguments) any {
	a.check(r, "default", 2, "default_value", "boolean")
	if _, ok := v.(undefined); ok || truth(a.take(1, "boolean", false)) && !truth(v) {
		return a.take(0, "default_value", "")
	}
	return v
}

// edge returns the first or last element.
func edge(r *renderer, v any, i int) any {
	list := r.items(v)
	if len(list) == 0 {
		return undefined{"there is no element"}
	}
	if i < 0 {
		i = len(list) - 1
	}
	return list[i]
}

func reverse(r *renderer, v any, a *arguments) any {
	if s, ok := v.(string); ok {
		list := []rune(s)
		slices.Reverse(list)
		return string(list)
	}
	list := slices.Clone(r.items(v))
	slices.Reverse(list)
	return &List{Items: list}
}

// field returns an attribute of an element, such as "function.name".
func field(r *renderer, v any, path any) any {
	if n, ok := whole(path); ok {
		return r.item(v, n)
	}
	s, ok := path.(string)
	if !ok {
		return v
	}
	for _, part := range strings.Split(s, ".") {
		var key any = part
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			key = n
		}
		v = r.item(v, key)
	}
	return v
}

func join(r *renderer, v any, a *arguments) any {
	a.check(r, "join", 2, "d", "attribute")
	d := r.text(a.take(0, "d", ""))
	by := a.take(1, "attribute", nil)
	var b strings.Builder
	for i, x := range r.items(v) {
		if i > 0 {
			b.WriteString(d)
		}
		if by != nil {
			x = field(r, x, by)
		}
		b.WriteString(r.text(x))
		r.fits(b.Len())
		r.steps -= b.Len() / 64
	}
	return b.String()
}

// replace replaces the first parts of a text, all without a count.
func replace(r *renderer, s, old, with string, count any) string {
	n := -1
	if c, ok := whole(count); ok {
		n = int(max(c, -1))
	}
	times := strings.Count(s, old)
	if n >= 0 {
		times = min(times, n)
	}
	r.fits(len(s) + times*max(0, len(with)-len(old)))
	return strings.Replace(s, old, with, n)
}

func pairs(r *renderer, m *Map) *List {
	r.size(m.Len())
	l := &List{}
	for _, k := range m.keys {
		l.Items = append(l.Items, &List{tuple: true, Items: []any{k, m.values[k]}})
	}
	return l
}

// folded makes texts equal that differ in case, unless that counts.
func folded(v any, exact bool) any {
	if s, ok := v.(string); ok && !exact {
		return lower(s)
	}
	return v
}

// order sorts by keys.
func order(r *renderer, list []any, key func(any) any, down bool) []any {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y any) int {
		a, b := key(x), key(y)
		if down {
			a, b = b, a
		}
		switch {
		case r.less(a, b):
			return -1
		case r.less(b, a):
			return 1
		}
		return 0
	})
	return list
}

func dictsort(r *renderer, v any, a *arguments) any {
	a.check(r, "dictsort", 3, "case_sensitive", "by", "reverse")
	m, ok := v.(*Map)
	if !ok {
		fail(r.line, "dictsort: got %s, want a mapping", typeName(v))
	}
	at := 0
	if a.take(1, "by", "key") == "value" {
		at = 1
	}
	exact := truth(a.take(0, "case_sensitive", false))
	return &List{Items: order(r, pairs(r, m).Items, func(x any) any { return folded(x.(*List).Items[at], exact) }, truth(a.take(2, "reverse", false)))}
}

func sorted(r *renderer, v any, a *arguments) any {
	a.check(r, "sort", 3, "reverse", "case_sensitive", "attribute")
	exact, by := truth(a.take(1, "case_sensitive", false)), a.take(2, "attribute", nil)
	key := func(x any) any {
		s, ok := by.(string)
		if !ok {
			return folded(field(r, x, by), exact)
		}
		l := &List{}
		for _, part := range strings.Split(s, ",") {
			l.Items = append(l.Items, folded(field(r, x, part), exact))
		}
		return l
	}
	return &List{Items: order(r, r.items(v), key, truth(a.take(0, "reverse", false)))}
}

func unique(r *renderer, v any, a *arguments) any {
	a.check(r, "unique", 2, "case_sensitive", "attribute")
	exact, by := truth(a.take(0, "case_sensitive", false)), a.take(1, "attribute", nil)
	l := &List{}
	var seen []any
	for _, x := range r.items(v) {
		k := folded(field(r, x, by), exact)
		if !hashable(k) {
			fail(r.line, "unique: got %s, want values that can be keys", typeName(k))
		}
		if !r.contains(k, &List{Items: seen}) {
			seen = append(seen, k)
			l.Items = append(l.Items, x)
		}
	}
	return l
}

// some returns the elements of a value, none of one that counts as false.
func (r *renderer) some(v any) []any {
	if !truth(v) {
		return nil
	}
	return r.items(v)
}

// mapped calls a filter for each element, or takes an attribute of it.
func mapped(r *renderer, v any, a *arguments) any {
	l := &List{}
	by, isField := a.named.Get("attribute")
	if isField {
		a.check(r, "map", 0, "attribute", "default")
	} else {
		if len(a.list) == 0 {
			fail(r.line, "map: got no filter and no attribute")
		}
	}
	otherwise, hasDefault := a.named.Get("default")
	for _, x := range r.some(v) {
		r.step()
		if isField {
			y := field(r, x, by)
			if _, none := y.(undefined); none && hasDefault {
				y = otherwise
			}
			l.Items = append(l.Items, y)
			continue
		}
		f := filters[r.text(a.list[0])]
		if f == nil {
			fail(r.line, "map: got the filter %s, which is not supported", r.text(a.list[0]))
		}
		l.Items = append(l.Items, f(r, x, &arguments{a.list[1:], a.named}))
	}
	return l
}

// selected keeps the elements that pass a test, or the others.
func selected(r *renderer, v any, a *arguments, byField, want bool) any {
	args := a.list
	var by any
	if byField {
		if len(args) == 0 {
			fail(r.line, "selectattr: got no attribute")
		}
		by, args = args[0], args[1:]
	}
	t := func(r *renderer, v any, _ *arguments) bool { return truth(v) }
	if len(args) > 0 {
		if t = tests[r.text(args[0])]; t == nil {
			fail(r.line, "got the test %s, which is not supported", r.text(args[0]))
		}
		args = args[1:]
	}
	l := &List{}
	for _, x := range r.some(v) {
		r.step()
		y := x
		if byField {
			y = field(r, x, by)
		}
		if t(r, y, &arguments{args, a.named}) == want {
			l.Items = append(l.Items, x)
		}
	}
	return l
}

func absolute(r *renderer, v any, a *arguments) any {
	if n, ok := whole(v); ok {
		return max(n, -n)
	}
	if f, ok := v.(float64); ok {
		return math.Abs(f)
	}
	fail(r.line, "abs: got %s, want a number", typeName(v))
	return nil
}

func toInt(r *renderer, v any, a *arguments) any {
	a.check(r, "int", 2, "default", "base")
	base := int(a.whole(r, "int", 1, "base", 10))
	switch v := v.(type) {
	case string:
		s := strings.ReplaceAll(strings.TrimSpace(v), "_", "")
		if n, err := strconv.ParseInt(s, base, 64); err == nil && base >= 2 && base <= 36 {
			return n
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<62 {
			return int64(f)
		}
	case float64:
		if math.Abs(v) < 1<<62 {
			return int64(v)
		}
	case undefined:
		fail(r.line, "int: got an undefined value: %s", v.why)
	}
	if n, ok := whole(v); ok {
		return n
	}
	return a.take(0, "default", int64(0))
}

func toFloat(r *renderer, v any, a *arguments) any {
	a.check(r, "float", 1, "default")
	switch v := v.(type) {
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f
		}
	case undefined:
		fail(r.line, "float: got an undefined value: %s", v.why)
	}
	if f, ok := number(v); ok {
		return f
	}
	return a.take(0, "default", 0.0)
}

func round(r *renderer, v any, a *arguments) any {
	a.check(r, "round", 2, "precision", "method")
	f, ok := number(v)
	p := a.whole(r, "round", 0, "precision", 0)
	if !ok || p < -15 || p > 15 {
		fail(r.line, "round: got %s, want a number and a precision of -15 to 15", typeName(v))
	}
	scale := math.Pow(10, float64(p))
	switch a.take(1, "method", "common") {
	case "ceil":
		f = math.Ceil(f*scale) / scale
	case "floor":
		f = math.Floor(f*scale) / scale
	default:
		if p >= 0 { // of the decimal text: 2.675 is less than it looks
			f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(p), 64), 64)
		} else {
			f = math.RoundToEven(f*scale) / scale
		}
	}
	if n, ok := whole(v); ok && p >= 0 && a.take(1, "method", "common") == "common" {
		return n
	}
	return f
}

func sum(r *renderer, v any, a *arguments) any {
	a.check(r, "sum", 2, "attribute", "start")
	by, total := a.take(0, "attribute", nil), a.take(1, "start", int64(0))
	for _, x := range r.items(v) {
		if by != nil {
			x = field(r, x, by)
		}
		total = binary{"+", constant{total}, constant{x}, r.line}.eval(r)
	}
	return total
}

// extreme returns the least or the largest element.
func extreme(r *renderer, v any, a *arguments, sign int) any {
	a.check(r, "min and max", 2, "case_sensitive", "attribute")
	exact, by := truth(a.take(0, "case_sensitive", false)), a.take(1, "attribute", nil)
	var best any = undefined{"there is no element"}
	for i, x := range r.items(v) {
		k, b := folded(field(r, x, by), exact), folded(best, exact)
		if i > 0 {
			b = folded(field(r, best, by), exact)
		}
		if i == 0 || sign < 0 && r.less(k, b) || sign > 0 && r.less(b, k) {
			best = x
		}
	}
	return best
}

func indent(r *renderer, v any, a *arguments) any {
	a.check(r, "indent", 3, "width", "first", "blank")
	width := a.take(0, "width", int64(4))
	by, ok := width.(string)
	if n, is := whole(width); is {
		by, ok = strings.Repeat(" ", int(max(0, min(n, 1000)))), true
	}
	if !ok {
		fail(r.line, "indent: got %s, want a number or a text", typeName(width))
	}
	s, ok := v.(string)
	if !ok {
		fail(r.line, "indent: got %s, want a text", typeName(v))
	}
	r.fits(len(s) + len(by)*(strings.Count(s, "\n")+1))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if i == 0 && !truth(a.take(1, "first", false)) || i > 0 && line == "" && !truth(a.take(2, "blank", false)) {
			continue
		}
		lines[i] = by + line
	}
	return strings.Join(lines, "\n")
}
