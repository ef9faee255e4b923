package jinja

import (
	"cmp"
	"strings"
	"unicode"
)

type test = func(r *renderer, v any, a *arguments) bool

// compared makes a test of a comparison.
func compared(op string) test {
	return func(r *renderer, v any, a *arguments) bool {
		if len(a.list) != 1 {
			fail(r.line, "got a test of %d values, want one to compare with", len(a.list))
		}
		return truth(comparison{constant{v}, []string{op}, []expr{constant{a.list[0]}}, r.line}.eval(r))
	}
}

// remainder makes a test of what is left of a number by division.
func remainder(by any, want int64) test {
	return func(r *renderer, v any, a *arguments) bool {
		a.check(r, "test", 1, "num")
		divisor := by
		if by == nil {
			divisor = a.take(0, "num", nil)
		}
		if _, ok := number(v); !ok {
			fail(r.line, "got a test of %s, want a number", typeName(v))
		}
		return r.equal(binary{"%", constant{v}, constant{divisor}, r.line}.eval(r), want)
	}
}

var tests map[string]test

func init() {
	is := func(f func(v any) bool) test {
		return func(r *renderer, v any, a *arguments) bool {
			a.check(r, "test", 0)
			return f(v)
		}
	}
	tests = map[string]test{
		"defined":     is(func(v any) bool { _, none := v.(undefined); return !none }),
		"undefined":   is(func(v any) bool { _, none := v.(undefined); return none }),
		"none":        is(func(v any) bool { return v == nil }),
		"true":        is(func(v any) bool { return v == true }),
		"false":       is(func(v any) bool { return v == false }),
		"boolean":     is(func(v any) bool { _, ok := v.(bool); return ok }),
		"integer":     is(func(v any) bool { _, ok := v.(int64); return ok }),
		"float":       is(func(v any) bool { _, ok := v.(float64); return ok }),
		"number":      is(func(v any) bool { _, ok := number(v); return ok }),
		"string":      is(func(v any) bool { _, ok := v.(string); return ok }),
		"mapping":     is(func(v any) bool { _, ok := v.(*Map); return ok }),
		"callable":    is(func(v any) bool { _, ok := v.(*function); return ok }),
		"iterable":    is(hasElements),
		"sequence":    is(hasElements),
		"odd":         remainder(int64(2), 1),
		"even":        remainder(int64(2), 0),
		"divisibleby": remainder(nil, 0),
		"lower":       func(r *renderer, v any, _ *arguments) bool { return cased(r.text(v), unicode.IsLower, unicode.IsUpper) },
		"upper":       func(r *renderer, v any, _ *arguments) bool { return cased(r.text(v), unicode.IsUpper, unicode.IsLower) },
		"in": func(r *renderer, v any, a *arguments) bool {
			return r.contains(v, a.take(0, "seq", nil))
		},
		"sameas": func(r *renderer, v any, a *arguments) bool {
			o := a.take(0, "other", nil)
			return cmp.Compare(typeName(v), typeName(o)) == 0 && r.equal(v, o)
		},
	}
	for op, names := range map[string][]string{"==": {"eq", "equalto"}, "!=": {"ne"}, "<": {"lt", "lessthan"}, "<=": {"le"}, ">": {"gt", "greaterthan"}, ">=": {"ge"}} {
		for _, n := range names {
			tests[n] = compared(op)
		}
	}
}

func hasElements(v any) bool {
	switch v.(type) {
	case string, *List, *Map, undefined:
		return true
	}
	return false
}

// cased reports whether all letters with a case have one of two, and there are
// some.
func cased(s string, is, other func(rune) bool) bool {
	return strings.ContainsFunc(s, is) && !strings.ContainsFunc(s, other)
}
