package symbolic

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// String returns the expression with common symbols in front: "4·seq·(past +
// seq)", "64·⌈seq/16⌉", "max(seq, 4)". An unknown one is "?".
func (e *Expr) String() string {
	switch {
	case e == nil:
		return "?"
	case len(e.terms) == 0:
		return "0"
	case len(e.terms) == 1:
		return e.terms[0].String()
	}
	common := e.content()
	if len(common.powers) == 0 {
		return e.sum()
	}
	rest := make([]term, len(e.terms))
	for i, t := range e.terms {
		rest[i], _ = divided(t, common)
	}
	front := common.String()
	return front + "·(" + normal(rest).sum() + ")"
}

// content returns the greatest common divisor of the terms, above 0.
func (e *Expr) content() term {
	all := term{coef: 0, powers: e.terms[0].powers}
	for _, t := range e.terms {
		all.coef = gcd(all.coef, t.coef)
		var both []power
		for _, p := range all.powers {
			for _, q := range t.powers {
				if p.atom.key == q.atom.key {
					both = append(both, power{p.atom, min(p.n, q.n)})
				}
			}
		}
		all.powers = both
	}
	return all
}

// sum writes the terms one after the other, the largest degree first.
func (e *Expr) sum() string {
	terms := slices.Clone(e.terms)
	slices.SortStableFunc(terms, func(x, y term) int { return cmp.Compare(y.degree(), x.degree()) })
	// A sum that begins with a minus reads badly.
	if first := slices.IndexFunc(terms, func(t term) bool { return t.coef > 0 }); first > 0 && terms[0].coef < 0 {
		t := terms[first]
		terms = slices.Insert(slices.Delete(terms, first, first+1), 0, t)
	}
	var b strings.Builder
	for i, t := range terms {
		switch {
		case i > 0 && t.coef < 0:
			b.WriteString(" - ")
			t.coef = -t.coef
		case i > 0:
			b.WriteString(" + ")
		}
		b.WriteString(t.String())
	}
	return b.String()
}

func (t term) degree() (n int) {
	for _, p := range t.powers {
		n += p.n
	}
	return n
}

func (t term) String() string {
	var words []string
	if t.coef != 1 && t.coef != -1 || len(t.powers) == 0 {
		words = append(words, strconv.FormatInt(t.coef, 10))
	}
	for _, p := range t.powers {
		words = append(words, p.String())
	}
	text := strings.Join(words, "·")
	if t.coef == -1 && len(t.powers) > 0 {
		text = "-" + text
	}
	return text
}

func (p power) String() string {
	text := p.atom.String()
	switch p.n {
	case 1:
		return text
	case 2:
		return text + "²"
	case 3:
		return text + "³"
	}
	return text + "^" + strconv.Itoa(p.n)
}

func (a *atom) String() string {
	switch a.kind {
	case symbolKind:
		if strings.ContainsAny(a.name, " +-*/()") {
			return "(" + a.name + ")"
		}
		return a.name
	case quotient:
		if up := a.args[0].Sub(Const(a.den - 1)); up != nil && constantOf(up) == 0 {
			return "⌈" + up.grouped() + "/" + strconv.FormatInt(a.den, 10) + "⌉"
		}
		return "⌊" + a.args[0].grouped() + "/" + strconv.FormatInt(a.den, 10) + "⌋"
	case maximum:
		return "max(" + a.args[0].String() + ", " + a.args[1].String() + ")"
	}
	return "min(" + a.args[0].String() + ", " + a.args[1].String() + ")"
}

func constantOf(e *Expr) int64 {
	for _, t := range e.terms {
		if len(t.powers) == 0 {
			return t.coef
		}
	}
	return 0
}

// grouped is String in parentheses where it is a sum.
func (e *Expr) grouped() string {
	if len(e.terms) > 1 {
		return "(" + e.sum() + ")"
	}
	return e.String()
}
