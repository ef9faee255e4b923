package symbolic

import (
	"maps"
	"slices"
	"strconv"
)

// Range is the sizes from Lo to Hi, both included.
type Range struct{ Lo, Hi int64 }

// Box is a range for each symbol by name. No range may be empty.
type Box map[string]Range

// Bounds returns numbers between which the expression lies at every point of
// the box. They are values of the expression where it is monotone in each
// symbol. ok is false where no bounds are known: for an unknown expression, a
// symbol without a range, and numbers beyond int64.
func (e *Expr) Bounds(box Box) (lo, hi int64, ok bool) {
	return newProof().bounds(e, box)
}

// proof keeps what was found of the parts of an expression: a part is met again
// for the bounds and for the direction of every part around it.
type proof struct {
	ranges     map[string]bounded
	directions map[string]direction
}

type bounded struct {
	Range
	ok bool
}

func newProof() *proof {
	return &proof{ranges: map[string]bounded{}, directions: map[string]direction{}}
}

// keyOf returns a text that is the same for equal expressions over the same
// ranges of their symbols.
func keyOf(e *Expr, symbols []string, box Box) string {
	key := []byte(e.key)
	for _, name := range symbols {
		key = strconv.AppendInt(append(key, '|'), box[name].Lo, 10)
		key = strconv.AppendInt(append(key, ':'), box[name].Hi, 10)
	}
	return string(key)
}

// bounds is [Expr.Bounds].
func (p *proof) bounds(e *Expr, box Box) (lo, hi int64, ok bool) {
	if e == nil {
		return 0, 0, false
	}
	if n, ok := e.Value(); ok {
		return n, n, true
	}
	symbols := e.Symbols()
	for _, name := range symbols {
		if _, known := box[name]; !known {
			return 0, 0, false
		}
	}
	key := keyOf(e, symbols, box)
	if b, known := p.ranges[key]; known {
		return b.Lo, b.Hi, b.ok
	}
	low, high := maps.Clone(box), maps.Clone(box)
	for _, name := range symbols {
		r := box[name]
		switch p.direction(e, name, box) {
		case up:
			low[name], high[name] = Range{r.Lo, r.Lo}, Range{r.Hi, r.Hi}
		case down:
			low[name], high[name] = Range{r.Hi, r.Hi}, Range{r.Lo, r.Lo}
		}
	}
	below, okBelow := p.interval(e, low)
	above, okAbove := p.interval(e, high)
	ok = okBelow && okAbove
	p.ranges[key] = bounded{Range{below.Lo, above.Hi}, ok}
	return below.Lo, above.Hi, ok
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
	p := newProof()
	for _, name := range e.Symbols() {
		if _, known := box[name]; !known || p.direction(e, name, box) != up {
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
func (p *proof) direction(e *Expr, name string, box Box) direction {
	symbols := e.Symbols()
	if !slices.Contains(symbols, name) {
		return level
	}
	key := name + "|" + keyOf(e, symbols, box)
	d, known := p.directions[key]
	if !known {
		d = p.directionOf(e, name, box)
		p.directions[key] = d
	}
	return d
}

func (p *proof) directionOf(e *Expr, name string, box Box) direction {
	all := level
	for _, t := range e.terms {
		all = all.and(p.directionOfTerm(t, name, box))
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
	switch d, ok := p.interval(difference, steps); {
	case ok && d.Lo >= 0:
		return up
	case ok && d.Hi <= 0:
		return down
	}
	return mixed
}

// directionOfTerm is that of a product: of factors that are not negative, each
// of which never decreases, it never decreases.
func (p *proof) directionOfTerm(t term, name string, box Box) direction {
	all := level
	for _, x := range t.powers {
		d := p.directionOfAtom(x.atom, name, box)
		if d == mixed {
			return mixed
		}
		all = all.and(d)
	}
	if all == level || all == mixed {
		return all
	}
	for _, x := range t.powers {
		if r, ok := p.intervalOfAtom(x.atom, box); !ok || r.Lo < 0 {
			return mixed
		}
	}
	if t.coef < 0 {
		return all.negated()
	}
	return all
}

func (p *proof) directionOfAtom(a *atom, name string, box Box) direction {
	if a.kind == symbolKind {
		if a.name == name {
			return up
		}
		return level
	}
	all := level
	for _, x := range a.args {
		all = all.and(p.direction(x, name, box))
	}
	return all
}

// interval computes with ranges, term by term.
func (p *proof) interval(e *Expr, box Box) (Range, bool) {
	if e == nil {
		return Range{}, false
	}
	sum := Range{}
	for _, t := range e.terms {
		product, ok := Range{t.coef, t.coef}, true
		for _, f := range t.powers {
			x, known := p.intervalOfAtom(f.atom, box)
			if !known {
				return Range{}, false
			}
			if product, ok = product.times(x.power(f.n)); !ok {
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

func (p *proof) intervalOfAtom(a *atom, box Box) (Range, bool) {
	if a.kind == symbolKind {
		r, ok := box[a.name]
		return r, ok
	}
	lo, hi, ok := p.bounds(a.args[0], box)
	if !ok {
		return Range{}, false
	}
	if a.kind == quotient {
		lo, _ = floorDiv(lo, a.den)
		hi, _ = floorDiv(hi, a.den)
		return Range{lo, hi}, true
	}
	lo2, hi2, ok := p.bounds(a.args[1], box)
	if a.kind == maximum {
		return Range{max(lo, lo2), max(hi, hi2)}, ok
	}
	return Range{min(lo, lo2), min(hi, hi2)}, ok
}
