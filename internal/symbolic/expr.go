package symbolic

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Expr is an integer expression. The zero Expr is 0; nil is unknown.
type Expr struct {
	terms []term // by key, without coefficients of 0
	key   string // the same for equal expressions alone
}

// term is a product of a number and of powers of atoms.
type term struct {
	coef   int64
	powers []power // by key of the atom
	key    string
}

type power struct {
	atom *atom
	n    int
}

// atom is a variable of the polynomial.
type atom struct {
	key  string
	kind kind
	name string  // of a symbol
	args []*Expr // of a quotient the dividend
	den  int64   // of a quotient
}

type kind uint8

const (
	symbolKind kind = iota
	quotient        // floor(args[0] / den)
	maximum
	minimum
)

// mostTerms bounds the terms of an expression: beyond it no reader learns
// anything.
const mostTerms = 256

// mostText bounds the bytes of an atom's key: the time for the bounds of an
// expression grows with the parts in it.
const mostText = 1 << 12

// Const returns the expression that is n everywhere.
func Const(n int64) *Expr {
	if n == 0 {
		return &Expr{key: "0"}
	}
	return normal([]term{{coef: n}})
}

// Symbol returns the expression that is the size called name.
func Symbol(name string) *Expr {
	return ofAtom(&atom{key: strconv.Quote(name), kind: symbolKind, name: name})
}

func ofAtom(a *atom) *Expr { return normal([]term{{coef: 1, powers: []power{{a, 1}}}}) }

// normal makes an expression of terms, whose powers are in order.
func normal(terms []term) *Expr {
	for i := range terms {
		var b strings.Builder
		for _, p := range terms[i].powers {
			b.WriteString(p.atom.key)
			b.WriteByte('^')
			b.WriteString(strconv.Itoa(p.n))
			b.WriteByte('*')
		}
		terms[i].key = b.String()
	}
	slices.SortStableFunc(terms, func(x, y term) int { return cmp.Compare(x.key, y.key) })
	kept := terms[:0]
	for _, t := range terms {
		if n := len(kept); n > 0 && kept[n-1].key == t.key {
			sum, ok := add(kept[n-1].coef, t.coef)
			if !ok {
				return nil
			}
			kept[n-1].coef = sum
			continue
		}
		kept = append(kept, t)
	}
	kept = slices.DeleteFunc(kept, func(t term) bool { return t.coef == 0 })
	if len(kept) > mostTerms {
		return nil
	}
	e := &Expr{terms: kept}
	var b strings.Builder
	for _, t := range kept {
		b.WriteString(strconv.FormatInt(t.coef, 10))
		b.WriteByte('*')
		b.WriteString(t.key)
		b.WriteByte('+')
	}
	if e.key = b.String(); e.key == "" {
		e.key = "0"
	}
	return e
}

// Key returns a text that two expressions have in common only if they are
// equal. That of an unknown one is empty.
func (e *Expr) Key() string {
	if e == nil {
		return ""
	}
	return e.key
}

// Equal reports whether two known expressions are the same function. False
// means that their normal forms differ: they may still agree on some sizes.
func (e *Expr) Equal(f *Expr) bool { return e != nil && f != nil && e.key == f.key }

// Value returns the number that a constant expression is.
func (e *Expr) Value() (n int64, ok bool) {
	switch {
	case e == nil:
		return 0, false
	case len(e.terms) == 0:
		return 0, true
	case len(e.terms) == 1 && len(e.terms[0].powers) == 0:
		return e.terms[0].coef, true
	}
	return 0, false
}

// IsConst reports whether the expression is the number n.
func (e *Expr) IsConst(n int64) bool {
	m, ok := e.Value()
	return ok && m == n
}

// Add returns e + f.
func (e *Expr) Add(f *Expr) *Expr {
	if e == nil || f == nil {
		return nil
	}
	return normal(append(slices.Clone(e.terms), f.terms...))
}

// Sub returns e - f.
func (e *Expr) Sub(f *Expr) *Expr { return e.Add(f.Mul(Const(-1))) }

// Mul returns e · f.
func (e *Expr) Mul(f *Expr) *Expr {
	if e == nil || f == nil || len(e.terms)*len(f.terms) > mostTerms*mostTerms {
		return nil
	}
	var terms []term
	for _, x := range e.terms {
		for _, y := range f.terms {
			coef, ok := mul(x.coef, y.coef)
			if !ok {
				return nil
			}
			terms = append(terms, term{coef: coef, powers: multiplied(x.powers, y.powers)})
		}
	}
	return normal(terms)
}

func multiplied(x, y []power) []power {
	var all []power
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].atom.key < y[0].atom.key:
			all, x = append(all, x[0]), x[1:]
		case len(x) == 0 || y[0].atom.key < x[0].atom.key:
			all, y = append(all, y[0]), y[1:]
		default:
			all, x, y = append(all, power{x[0].atom, x[0].n + y[0].n}), x[1:], y[1:]
		}
	}
	return all
}

// Product returns the product of expressions, 1 of none.
func Product(list ...*Expr) *Expr {
	p := Const(1)
	for _, e := range list {
		p = p.Mul(e)
	}
	return p
}

// Floor returns floor(e / d) for a constant d above 0.
func (e *Expr) Floor(d int64) *Expr {
	if e == nil || d <= 0 {
		return nil
	}
	// floor((d·q + r) / d) = q + floor(r / d)
	var whole, rest []term
	constant, common := int64(0), d
	for _, t := range e.terms {
		q, r := floorDiv(t.coef, d)
		if len(t.powers) == 0 {
			whole, constant = append(whole, term{coef: q}), r
			continue
		}
		if r == 0 {
			whole = append(whole, term{coef: q, powers: t.powers})
			continue
		}
		rest = append(rest, t)
		common = gcd(common, t.coef)
	}
	if len(rest) == 0 {
		return normal(whole) // constant is below d
	}
	// floor((g·x + c) / (g·d)) = floor((x + floor(c / g)) / d)
	dividend := make([]term, 0, len(rest)+1)
	for _, t := range rest {
		dividend = append(dividend, term{coef: t.coef / common, powers: t.powers})
	}
	c, _ := floorDiv(constant, common)
	dividend = append(dividend, term{coef: c})
	q := &atom{kind: quotient, args: []*Expr{normal(dividend)}, den: d / common}
	if q.args[0] == nil {
		return nil
	}
	if q.den == 1 {
		return normal(whole).Add(q.args[0])
	}
	q.key = "floor(" + q.args[0].key + "/" + strconv.FormatInt(q.den, 10) + ")"
	if len(q.key) > mostText {
		return nil
	}
	return normal(whole).Add(ofAtom(q))
}

// Ceil returns e / d rounded up, for a constant d above 0.
func (e *Expr) Ceil(d int64) *Expr { return e.Add(Const(d - 1)).Floor(d) }

// RoundUp returns the smallest multiple of align that is at least e.
func (e *Expr) RoundUp(align int64) *Expr { return e.Ceil(align).Mul(Const(align)) }

// Max returns the larger of two expressions.
func Max(e, f *Expr) *Expr { return extreme(maximum, e, f) }

// Min returns the smaller of two expressions.
func Min(e, f *Expr) *Expr { return extreme(minimum, e, f) }

func extreme(k kind, e, f *Expr) *Expr {
	if e == nil || f == nil {
		return nil
	}
	if d, ok := e.Sub(f).Value(); ok {
		if (d >= 0) == (k == maximum) {
			return e
		}
		return f
	}
	// max(x, min(x, y)) = x, and the other way round.
	switch {
	case f.isExtremeOf(maximum+minimum-k, e):
		return e
	case e.isExtremeOf(maximum+minimum-k, f):
		return f
	}
	if f.key < e.key {
		e, f = f, e
	}
	name := "max("
	if k == minimum {
		name = "min("
	}
	key := name + e.key + "," + f.key + ")"
	if len(key) > mostText {
		return nil
	}
	return ofAtom(&atom{key: key, kind: k, args: []*Expr{e, f}})
}

// isExtremeOf reports whether e is the maximum or the minimum of f and another
// expression.
func (e *Expr) isExtremeOf(k kind, f *Expr) bool {
	if len(e.terms) != 1 || e.terms[0].coef != 1 || len(e.terms[0].powers) != 1 || e.terms[0].powers[0].n != 1 {
		return false
	}
	a := e.terms[0].powers[0].atom
	return a.kind == k && slices.ContainsFunc(a.args, f.Equal)
}

// Over returns e / f where f divides e as a polynomial, nil where it does not:
// the quotient then is e / f wherever f is not 0.
func (e *Expr) Over(f *Expr) *Expr {
	if e == nil || f == nil || len(f.terms) == 0 {
		return nil
	}
	lead, rest, whole := leading(f), e, Const(0)
	for range mostTerms {
		if len(rest.terms) == 0 {
			return whole
		}
		t, ok := divided(leading(rest), lead)
		if !ok {
			return nil
		}
		part := normal([]term{t})
		whole = whole.Add(part)
		if rest = rest.Sub(part.Mul(f)); rest == nil || whole == nil {
			return nil
		}
	}
	return nil
}

// leading returns the term of an expression, which is not 0, that comes first
// in the lexicographic order of monomials.
func leading(e *Expr) term {
	best := e.terms[0]
	for _, t := range e.terms[1:] {
		if precedes(t.powers, best.powers) {
			best = t
		}
	}
	return best
}

func precedes(x, y []power) bool {
	for i := 0; ; i++ {
		switch {
		case i == len(x):
			return false
		case i == len(y):
			return true
		case x[i].atom.key != y[i].atom.key:
			return x[i].atom.key < y[i].atom.key
		case x[i].n != y[i].n:
			return x[i].n > y[i].n
		}
	}
}

func divided(x, y term) (term, bool) {
	if x.coef%y.coef != 0 {
		return term{}, false
	}
	out := term{coef: x.coef / y.coef}
	left := y.powers
	for _, p := range x.powers {
		if len(left) > 0 && left[0].atom.key == p.atom.key {
			if p.n < left[0].n {
				return term{}, false
			}
			p.n -= left[0].n
			left = left[1:]
		}
		if p.n > 0 {
			out.powers = append(out.powers, p)
		}
	}
	return out, len(left) == 0
}

// Symbols returns the names of the symbols in the expression, in order.
func (e *Expr) Symbols() []string {
	var list []string
	e.symbols(&list)
	slices.Sort(list)
	return slices.Compact(list)
}

func (e *Expr) symbols(list *[]string) {
	if e == nil {
		return
	}
	for _, t := range e.terms {
		for _, p := range t.powers {
			if p.atom.kind == symbolKind {
				*list = append(*list, p.atom.name)
			}
			for _, a := range p.atom.args {
				a.symbols(list)
			}
		}
	}
}

// Modulus returns a number such that all quotients with the symbol called name
// in the expression have the same rest for sizes that leave the same rest when
// they are divided by it: 1 if there are no quotients, 0 if it is beyond int64.
func (e *Expr) Modulus(name string) int64 {
	all := int64(1)
	if e == nil {
		return all
	}
	for _, t := range e.terms {
		for _, p := range t.powers {
			for _, x := range p.atom.args {
				inner, ok := x.Modulus(name), true
				if p.atom.kind == quotient && slices.Contains(x.Symbols(), name) {
					inner, ok = mul(inner, p.atom.den)
				}
				if !ok {
					return 0
				}
				all = multiple(all, inner)
			}
		}
	}
	return all
}

// multiple returns the least common multiple, 0 beyond int64.
func multiple(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	n, ok := mul(a/gcd(a, b), b)
	if !ok {
		return 0
	}
	return n
}

// With returns the expression with f in the place of the symbol called name.
func (e *Expr) With(name string, f *Expr) *Expr {
	if e == nil || !slices.Contains(e.Symbols(), name) {
		return e
	}
	sum := Const(0)
	for _, t := range e.terms {
		product := Const(t.coef)
		for _, p := range t.powers {
			x := p.atom.with(name, f)
			for range p.n {
				product = product.Mul(x)
			}
		}
		sum = sum.Add(product)
	}
	return sum
}

func (a *atom) with(name string, f *Expr) *Expr {
	switch a.kind {
	case symbolKind:
		if a.name == name {
			return f
		}
		return ofAtom(a)
	case quotient:
		return a.args[0].With(name, f).Floor(a.den)
	}
	return extreme(a.kind, a.args[0].With(name, f), a.args[1].With(name, f))
}

// Eval returns the value of the expression for sizes by name. It is false for
// an unknown expression, a symbol without a size, and a value beyond int64.
func (e *Expr) Eval(sizes map[string]int64) (int64, bool) {
	if e == nil {
		return 0, false
	}
	sum, ok := int64(0), true
	for _, t := range e.terms {
		product := t.coef
		for _, p := range t.powers {
			x, known := p.atom.eval(sizes)
			if !known {
				return 0, false
			}
			for range p.n {
				if product, ok = mul(product, x); !ok {
					return 0, false
				}
			}
		}
		if sum, ok = add(sum, product); !ok {
			return 0, false
		}
	}
	return sum, true
}

func (a *atom) eval(sizes map[string]int64) (int64, bool) {
	if a.kind == symbolKind {
		n, ok := sizes[a.name]
		return n, ok
	}
	x, ok := a.args[0].Eval(sizes)
	if !ok {
		return 0, false
	}
	if a.kind == quotient {
		q, _ := floorDiv(x, a.den)
		return q, true
	}
	y, ok := a.args[1].Eval(sizes)
	if a.kind == maximum {
		return max(x, y), ok
	}
	return min(x, y), ok
}

func floorDiv(a, d int64) (q, r int64) {
	if q, r = a/d, a%d; r < 0 {
		q, r = q-1, r+d
	}
	return q, r
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

func add(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}

func mul(a, b int64) (int64, bool) {
	if a == math.MinInt64 || b == math.MinInt64 {
		return 0, a == 0 || b == 0
	}
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), true
	}
	return int64(lo), true
}
