package symbolic

import "maps"

// Range is the sizes from Lo to Hi, both included.
type Range struct{ Lo, Hi int64 }

// Box is a range for each symbol by name. No range may be empty.
type Box map[string]Range

// Bounds returns numbers between which the expression lies at every point of
// the box. They are values of the expression where it is monotone in each
// symbol. ok is false where no bounds are known: for an unknown expression, a
// symbol without a range, and numbers beyond int64.
func (e *Expr) Bounds(box Box) (lo, hi int64, ok bool) {
	if e == nil {
		return 0, 0, false
	}
	low, high := maps.Clone(box), maps.Clone(box)
	for _, name := range e.Symbols() {
		r, known := box[name]
		if !known {
			return 0, 0, false
		}
		switch e.direction(name, box) {
		case up:
			low[name], high[name] = Range{r.Lo, r.Lo}, Range{r.Hi, r.Hi}
		case down:
			low[name], high[name] = Range{r.Hi, r.Hi}, Range{r.Lo, r.Lo}
		}
	}
	below, okBelow := e.interval(low)
	above, okAbove := e.interval(high)
	return below.Lo, above.Hi, okBelow && okAbove
}

// AtMost reports whether e <= f is proved at every point of the box.
func (e *Expr) AtMost(f *Expr, box Box) bool {
	_, hi, ok := e.Sub(f).Bounds(box)
	return ok && hi <= 0
}

// Grows reports whether the expression is proved never to decrease where a size
// of the box increases.
func (e *Expr) Grows(box Box) bool {
	if e == nil {
		return false
	}
	for _, name := range e.Symbols() {
		if _, known := box[name]; !known || e.direction(name, box) != up {
			return false
		}
	}
	return true
}

// direction says how an expression changes along a symbol over a box.
type direction uint8

const (
	mixed direction = iota // nothing is proved
	up                     // it never decreases
	down                   // it never increases
	level                  // it does not change
)

func (d direction) negated() direction {
	switch d {
	case up:
		return down
	case down:
		return up
	}
	return d
}

// and returns the direction of a sum.
func (d direction) and(o direction) direction {
	switch {
	case d == level:
		return o
	case o == level || d == o:
		return d
	}
	return mixed
}

// direction proves how e changes along a symbol, term by term, and where that
// is not enough by the difference of neighbours.
func (e *Expr) direction(name string, box Box) direction {
	all := level
	for _, t := range e.terms {
		all = all.and(t.direction(name, box))
	}
	if all != mixed {
		return all
	}
	r := box[name]
	if r.Lo == r.Hi {
		return level
	}
	steps := maps.Clone(box)
	steps[name] = Range{r.Lo, r.Hi - 1}
	difference := e.With(name, Symbol(name).Add(Const(1))).Sub(e)
	if difference == nil {
		return mixed
	}
	switch d, ok := difference.interval(steps); {
	case ok && d.Lo >= 0:
		return up
	case ok && d.Hi <= 0:
		return down
	}
	return mixed
}

// direction of a term: a product of factors that are not negative, each of
// which never decreases, never decreases.
func (t term) direction(name string, box Box) direction {
	all := level
	for _, p := range t.powers {
		d := p.atom.direction(name, box)
		if d == mixed {
			return mixed
		}
		all = all.and(d)
	}
	if all == level || all == mixed {
		return all
	}
	for _, p := range t.powers {
		if r, ok := p.atom.interval(box); !ok || r.Lo < 0 {
			return mixed
		}
	}
	if t.coef < 0 {
		return all.negated()
	}
	return all
}

func (a *atom) direction(name string, box Box) direction {
	if a.kind == symbolKind {
		if a.name == name {
			return up
		}
		return level
	}
	all := level
	for _, x := range a.args {
		all = all.and(x.direction(name, box))
	}
	return all
}

// interval computes with ranges, term by term.
func (e *Expr) interval(box Box) (Range, bool) {
	if e == nil {
		return Range{}, false
	}
	sum := Range{}
	for _, t := range e.terms {
		product, ok := Range{t.coef, t.coef}, true
		for _, p := range t.powers {
			x, known := p.atom.interval(box)
			if !known {
				return Range{}, false
			}
			if product, ok = product.times(x.power(p.n)); !ok {
				return Range{}, false
			}
		}
		lo, okLo := add(sum.Lo, product.Lo)
		hi, okHi := add(sum.Hi, product.Hi)
		if !okLo || !okHi {
			return Range{}, false
		}
		sum = Range{lo, hi}
	}
	return sum, true
}

// power returns the range of the n-th power, n at least 1, and false beyond
// int64.
func (r Range) power(n int) (Range, bool) {
	all, ok := r, true
	for i := 1; i < n && ok; i++ {
		all, ok = all.times(r, true)
	}
	return all, ok
}

// times returns the range of products.
func (r Range) times(o Range, known bool) (Range, bool) {
	if !known {
		return Range{}, false
	}
	var all Range
	for i, pair := range [4][2]int64{{r.Lo, o.Lo}, {r.Lo, o.Hi}, {r.Hi, o.Lo}, {r.Hi, o.Hi}} {
		n, ok := mul(pair[0], pair[1])
		if !ok {
			return Range{}, false
		}
		if i == 0 {
			all = Range{n, n}
		}
		all = Range{min(all.Lo, n), max(all.Hi, n)}
	}
	return all, true
}

func (a *atom) interval(box Box) (Range, bool) {
	if a.kind == symbolKind {
		r, ok := box[a.name]
		return r, ok
	}
	lo, hi, ok := a.args[0].Bounds(box)
	if !ok {
		return Range{}, false
	}
	if a.kind == quotient {
		lo, _ = floorDiv(lo, a.den)
		hi, _ = floorDiv(hi, a.den)
		return Range{lo, hi}, true
	}
	lo2, hi2, ok := a.args[1].Bounds(box)
	if a.kind == maximum {
		return Range{max(lo, lo2), max(hi, hi2)}, ok
	}
	return Range{min(lo, lo2), min(hi, hi2)}, ok
}
