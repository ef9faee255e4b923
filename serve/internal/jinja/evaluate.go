package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

func (e constant) eval(*renderer) any   { return e.v }
func (e variable) eval(r *renderer) any { return r.scope.get(e.name) }

func (e listExpr) eval(r *renderer) any {
	r.step()
	l := &List{tuple: e.tuple, Items: make([]any, len(e.items))}
	for i, x := range e.items {
		l.Items[i] = x.eval(r)
	}
	return l
}

func (e mapExpr) eval(r *renderer) any {
	r.step()
	m := NewMap()
	for i, k := range e.keys {
		key := k.eval(r)
		if !hashable(key) {
			fail(r.line, "got %s as a key", typeName(key))
		}
		m.Set(key, e.values[i].eval(r))
	}
	return m
}

func (e attribute) eval(r *renderer) any {
	of := e.of.eval(r)
	r.line = e.line
	return r.attribute(of, e.name)
}

// attribute returns what of.name is: a method, or an element.
func (r *renderer) attribute(of any, name string) any {
	r.step()
	switch v := of.(type) {
	case undefined:
		fail(r.line, "got .%s of an undefined value: %s", name, v.why)
	case *namespace:
		if x, ok := v.fields.Get(name); ok {
			return x
		}
	case *loop:
		return v.field(name)
	case *Map:
		if m := method(of, name); m != nil {
			return m
		}
		if x, ok := v.Get(name); ok {
			return x
		}
	default:
		if m := method(of, name); m != nil {
			return m
		}
	}
	return undefined{typeName(of) + " has no " + name}
}

func (e item) eval(r *renderer) any {
	of, key := e.of.eval(r), e.key.eval(r)
	r.line = e.line
	return r.item(of, key)
}

// item returns of[key].
func (r *renderer) item(of, key any) any {
	r.step()
	none := undefined{typeName(of) + " has no element of that key"}
	switch v := of.(type) {
	case undefined:
		fail(r.line, "got an element of an undefined value: %s", v.why)
	case *Map:
		if !hashable(key) {
			return none
		}
		if x, ok := v.Get(key); ok {
			return x
		}
	case *List:
		if i, ok := whole(key); ok {
			if i < 0 {
				i += int64(len(v.Items))
			}
			if i >= 0 && i < int64(len(v.Items)) {
				return v.Items[i]
			}
			return none
		}
	case string:
		if i, ok := whole(key); ok {
			n := int64(utf8.RuneCountInString(v))
			r.fits(len(v))
			if i < 0 {
				i += n
			}
			if i < 0 || i >= n {
				return none
			}
			for _, c := range v {
				if i == 0 {
					return string(c)
				}
				i--
			}
		}
	case *namespace, *loop:
		if s, ok := key.(string); ok {
			return r.attribute(of, s)
		}
	}
	if s, ok := key.(string); ok {
		if m := method(of, s); m != nil {
			return m
		}
	}
	return none
}

func (e slicing) eval(r *renderer) any {
	of := e.of.eval(r)
	bound := func(x expr) *int64 {
		if x == nil {
			return nil
		}
		v := x.eval(r)
		if v == nil {
			return nil
		}
		n, ok := whole(v)
		if !ok {
			fail(e.line, "got %s as a bound of a slice, want a whole number", typeName(v))
		}
		return &n
	}
	from, to, step := bound(e.from), bound(e.to), bound(e.step)
	r.line = e.line
	switch v := of.(type) {
	case *List:
		return &List{tuple: v.tuple, Items: sliced(r, v.Items, from, to, step)}
	case string:
		return string(sliced(r, []rune(v), from, to, step))
	case undefined:
		fail(e.line, "got a slice of an undefined value: %s", v.why)
	}
	fail(e.line, "got a slice of %s, want that of a list or a text", typeName(of))
	return nil
}

// sliced returns list[from:to:step] by Python's rules.
func sliced[T any](r *renderer, list []T, from, to, step *int64) (out []T) {
	n, by := int64(len(list)), int64(1)
	if step != nil {
		by = *step
	}
	if by == 0 {
		fail(r.line, "got a slice of step 0")
	}
	clamp := func(p *int64, standard, least, most int64) int64 {
		if p == nil {
			return standard
		}
		v := *p
		if v < 0 {
			v += n
		}
		return max(least, min(v, most))
	}
	r.size(len(list))
	if by > 0 {
		for i := clamp(from, 0, 0, n); i < clamp(to, n, 0, n); i += by {
			out = append(out, list[i])
			if by > n {
				break
			}
		}
		return out
	}
	for i := clamp(from, n-1, -1, n-1); i > clamp(to, -1, -1, n-1); i += by {
		out = append(out, list[i])
		if -by > n {
			break
		}
	}
	return out
}

// arguments are those of a call.
type arguments struct {
	list  []any
	named *Map
}

func (r *renderer) arguments(args []argument) *arguments {
	a := &arguments{named: NewMap()}
	for _, arg := range args {
		v := arg.value.eval(r)
		switch {
		case arg.stars == 1:
			a.list = append(a.list, r.items(v)...)
		case arg.stars == 2:
			m, ok := v.(*Map)
			if !ok {
				fail(r.line, "got ** with %s, want a mapping", typeName(v))
			}
			for _, k := range m.keys {
				a.named.Set(k, m.values[k])
			}
		case arg.name != "":
			a.named.Set(arg.name, v)
		default:
			a.list = append(a.list, v)
		}
	}
	return a
}

func (e call) eval(r *renderer) any {
	f := e.f.eval(r)
	a := r.arguments(e.args)
	r.line = e.line
	return r.invoke(f, a)
}

func (r *renderer) invoke(f any, a *arguments) any {
	r.step()
	switch f := f.(type) {
	case *function:
		return f.call(r, a)
	case *loop:
		if f.again != nil && len(a.list) == 1 {
			return f.again(a.list[0])
		}
	case undefined:
		fail(r.line, "got a call of an undefined value: %s", f.why)
	}
	fail(r.line, "got a call of %s, which cannot be called", typeName(f))
	return nil
}

func (e filtered) eval(r *renderer) any {
	v := e.of.eval(r)
	a := r.arguments(e.args)
	r.line = e.line
	r.step()
	return filters[e.name](r, v, a)
}

func (e tested) eval(r *renderer) any {
	v := e.of.eval(r)
	a := r.arguments(e.args)
	r.line = e.line
	return tests[e.name](r, v, a) != e.negate
}

func (e logical) eval(r *renderer) any {
	v := e.left.eval(r)
	if truth(v) != e.and {
		return v
	}
	return e.right.eval(r)
}

func (e choice) eval(r *renderer) any {
	if truth(e.test.eval(r)) {
		return e.then.eval(r)
	}
	return e.other.eval(r)
}

func (e joinedText) eval(r *renderer) any {
	var b strings.Builder
	for _, p := range e.parts {
		s := r.text(p.eval(r))
		r.fits(b.Len() + len(s))
		b.WriteString(s)
	}
	return b.String()
}

func (e comparison) eval(r *renderer) any {
	left := e.first.eval(r)
	for i, op := range e.ops {
		right := e.rest[i].eval(r)
		r.line = e.line
		for _, v := range []any{left, right} {
			if u, ok := v.(undefined); ok && strings.ContainsAny(op, "<>") {
				fail(e.line, "got %s with an undefined value: %s", op, u.why)
			}
		}
		var ok bool
		switch op {
		case "==":
			ok = r.equal(left, right)
		case "!=":
			ok = !r.equal(left, right)
		case "<":
			ok = r.less(left, right)
		case ">":
			ok = r.less(right, left)
		case "<=":
			ok = r.less(left, right) || r.equal(left, right)
		case ">=":
			ok = r.less(right, left) || r.equal(left, right)
		case "in":
			ok = r.contains(left, right)
		case "not in":
			ok = !r.contains(left, right)
		}
		if !ok {
			return false
		}
		left = right
	}
	return true
}

func (e unary) eval(r *renderer) any {
	v := e.of.eval(r)
	if e.op == "not" {
		return !truth(v)
	}
	sign := int64(1)
	if e.op == "-" {
		sign = -1
	}
	if n, ok := whole(v); ok {
		return sign * n
	}
	if f, ok := v.(float64); ok {
		return float64(sign) * f
	}
	fail(e.line, "got %s in front of %s, want a number", e.op, typeName(v))
	return nil
}

func (e binary) eval(r *renderer) any {
	a, b := e.left.eval(r), e.right.eval(r)
	r.line = e.line
	r.step()
	if s, ok := a.(string); ok && e.op == "%" {
		args := []any{b}
		if l, ok := b.(*List); ok && l.tuple {
			args = l.Items
		}
		_, text := b.(string)
		return r.percent(s, args, hasElements(b) && !text)
	}
	if e.op == "+" || e.op == "*" {
		if v, ok := r.compose(e.op, a, b); ok {
			return v
		}
	}
	i, ok1 := whole(a)
	j, ok2 := whole(b)
	if ok1 && ok2 {
		return r.wholes(e.op, i, j)
	}
	x, ok1 := number(a)
	y, ok2 := number(b)
	if !ok1 || !ok2 {
		fail(e.line, "got %s %s %s, want two numbers, or for + two texts or two lists", typeName(a), e.op, typeName(b))
	}
	return r.floats(e.op, x, y)
}

// compose joins and repeats texts and lists.
func (r *renderer) compose(op string, a, b any) (any, bool) {
	if op == "*" {
		if _, ok := whole(a); ok {
			a, b = b, a
		}
		n, ok := whole(b)
		if !ok {
			return nil, false
		}
		n = max(n, 0)
		switch a := a.(type) {
		case string:
			if len(a) > 0 && n > int64(mostText/len(a)) {
				fail(r.line, "got a text %d times, which is too long", n)
			}
			r.fits(len(a) * int(n))
			return strings.Repeat(a, int(n)), true
		case *List:
			if len(a.Items) > 0 && n > int64(mostItems/len(a.Items)) {
				fail(r.line, "got a list %d times, which is too long", n)
			}
			l := &List{tuple: a.tuple}
			for range n {
				r.size(len(a.Items))
				l.Items = append(l.Items, a.Items...)
			}
			return l, true
		}
		return nil, false
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			r.fits(len(a) + len(b))
			return a + b, true
		}
	case *List:
		if b, ok := b.(*List); ok && b.tuple == a.tuple {
			r.size(len(a.Items) + len(b.Items))
			return &List{tuple: a.tuple, Items: append(a.Items[:len(a.Items):len(a.Items)], b.Items...)}, true
		}
	}
	return nil, false
}

// wholes computes with whole numbers. Those of more than 64 bits are refused.
func (r *renderer) wholes(op string, a, b int64) any {
	large := func(f float64) {
		if math.Abs(f) >= 1<<62 {
			fail(r.line, "got a number of more than 62 bits")
		}
	}
	x, y := float64(a), float64(b)
	if (op == "/" || op == "//" || op == "%") && b == 0 {
		fail(r.line, "got a division by zero")
	}
	switch op {
	case "+":
		large(x + y)
		return a + b
	case "-":
		large(x - y)
		return a - b
	case "*":
		large(x * y)
		return a * b
	case "//":
		q := a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			q--
		}
		return q
	case "%":
		m := a % b
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m
	case "**":
		if b < 0 {
			return r.floats(op, x, y)
		}
		large(math.Pow(x, y))
		p := int64(1)
		if a >= -1 && a <= 1 {
			b = min(b, 2-b%2) // as many as decide the result
		}
		for range b {
			p *= a
		}
		return p
	}
	return r.floats(op, x, y)
}

func (r *renderer) floats(op string, a, b float64) any {
	if b == 0 && (op == "/" || op == "//" || op == "%") || op == "**" && a == 0 && b < 0 {
		fail(r.line, "got a division by zero")
	}
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	case "%":
		m := math.Mod(a, b)
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m
	}
	f := math.Pow(a, b)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		fail(r.line, "got a power that is no number")
	}
	return f
}
