package pass

import "github.com/tenure-go/tenure/internal/symbolic"

// truth is the answer to a question about sizes over a box: it holds at all
// sizes of the box, at none, or this is not proved.
type truth uint8

const (
	undecided truth = iota
	no
	yes
)

func truthOf(holds bool) truth {
	if holds {
		return yes
	}
	return no
}

func (t truth) and(o truth) truth {
	switch {
	case t == no || o == no:
		return no
	case t == yes && o == yes:
		return yes
	}
	return undecided
}

func (t truth) or(o truth) truth { return t.not().and(o.not()).not() }

func (t truth) not() truth {
	switch t {
	case no:
		return yes
	case yes:
		return no
	}
	return undecided
}

// equals reports whether two numbers are the same.
func (f *Formulas) equals(x, y *symbolic.Expr) truth {
	if x.Equal(y) {
		return yes
	}
	lo, hi, ok := x.Sub(y).Bounds(f.box)
	switch {
	case !ok:
		return undecided
	case lo == 0 && hi == 0:
		return yes
	case lo > 0 || hi < 0:
		return no
	}
	return undecided
}

// isNumber reports whether e is n.
func (f *Formulas) isNumber(e *symbolic.Expr, n int64) truth { return f.equals(e, symbolic.Const(n)) }

// isAtMost reports whether e <= n.
func (f *Formulas) isAtMost(e *symbolic.Expr, n int64) truth {
	lo, hi, ok := e.Bounds(f.box)
	switch {
	case ok && hi <= n:
		return yes
	case ok && lo > n:
		return no
	}
	return undecided
}

// isEmpty reports whether a value has no elements.
func (f *Formulas) isEmpty(id int) truth {
	if f.dims[id] == nil {
		return undecided
	}
	empty := no
	for _, d := range f.dims[id] {
		empty = empty.or(f.isNumber(d, 0))
	}
	return empty
}

// haveSameShape reports whether the dimensions of two values are the same.
func (f *Formulas) haveSameShape(a, b int) truth {
	x, y := f.dims[a], f.dims[b]
	if x == nil || y == nil {
		return undecided
	}
	if len(x) != len(y) {
		return no
	}
	same := yes
	for i := range x {
		same = same.and(f.equals(x[i], y[i]))
	}
	return same
}

// haveSameType reports whether two values have the same element type and the
// same dimensions.
func (f *Formulas) haveSameType(a, b int) truth {
	if f.first[a].DType != f.first[b].DType {
		return no
	}
	return f.haveSameShape(a, b)
}

// answerOver is [question.answer] over a box, 0 or 1 or a size. It is false
// where the answer is not proved to be the same at all sizes.
func (f *Formulas) answerOver(g guard) (answer int, ok bool) {
	a, b := f.dims[g.a], []*symbolic.Expr(nil)
	if g.b != 0 {
		if b = f.dims[g.b]; b == nil {
			return 0, false
		}
	}
	if a == nil {
		return 0, false
	}
	t := undecided
	switch g.question {
	case sameType:
		t = f.haveSameType(g.a, g.b)
	case sameSize:
		t = f.equals(a[g.x], b[g.y])
	case sizeOf:
		n, ok := a[g.x].Value()
		return int(n), ok
	case atMost:
		t = f.isAtMost(f.Elements(g.a), int64(g.x))
	case fewRows:
		t = f.isAtMost(rowsOver(a, len(b)), int64(g.x))
	case inBlocks:
		t = f.isInBlocks(a, b)
	case alongRow:
		t = f.isAlongRow(a, b, g.x)
	case perChannel:
		t = f.isPerChannel(a, b)
	case spelledOut:
		t = f.isSpelledOut(g.a, b)
	}
	return int(t) - int(no), t != undecided
}

// rowsOver is rowsOf for expressions.
func rowsOver(left []*symbolic.Expr, rightRank int) *symbolic.Expr {
	if rightRank > 2 {
		left = left[len(left)-2:]
	}
	return symbolic.Product(left[:len(left)-1]...)
}

// isInBlocks is [op.BlockOf] for expressions.
func (f *Formulas) isInBlocks(arg, result []*symbolic.Expr) truth {
	lead := len(result) - len(arg)
	if lead < 0 {
		return no
	}
	const before, inside, behind = 1, 2, 4
	places, fails := before, false // where it may be, at some size or other
	for i := len(result) - 1; i >= 0; i-- {
		size, n := symbolic.Const(1), result[i]
		if i >= lead {
			size = arg[i-lead]
		}
		isOne, same := f.isNumber(size, 1), f.equals(size, n)
		next := 0
		for _, place := range []int{before, inside, behind} {
			if places&place == 0 {
				continue
			}
			if same != no && isOne != no {
				next |= place
			}
			if same != no && isOne != yes && place != behind {
				next |= inside
			}
			if same != yes && isOne != no && place == before {
				next |= before
			}
			if (same != yes || place == behind) && isOne != no && place != before {
				next |= behind
			}
			fails = fails || isOne != yes && (same != yes || place == behind)
		}
		places = next
	}
	switch {
	case places == 0:
		return no
	case fails:
		return undecided
	}
	return yes
}

// isAlongRow is the function of that name for expressions.
func (f *Formulas) isAlongRow(a, b []*symbolic.Expr, axis int) truth {
	if len(a) == 0 || len(a) > len(b)-axis {
		return no
	}
	along, lead := yes, len(b)-len(a)
	for i, n := range a {
		along = along.and(f.equals(n, b[lead+i]).or(f.isNumber(n, 1)))
	}
	return along
}

// isPerChannel is the function of that name for expressions.
func (f *Formulas) isPerChannel(a, b []*symbolic.Expr) truth {
	axis := 1 - (len(b) - len(a))
	if len(b) < 3 || axis < 0 || axis > 1 || axis >= len(a) {
		return no
	}
	return f.equals(symbolic.Product(a...), b[1]).and(f.equals(a[axis], b[1]))
}

// isSpelledOut is the function of that name for the contents of a constant.
func (f *Formulas) isSpelledOut(target int, b []*symbolic.Expr) truth {
	list := f.integers(target)
	if list == nil {
		return undecided
	}
	if len(list) != len(b) {
		return no
	}
	spelled := yes
	for i, e := range list {
		spelled = spelled.and(f.equals(e, b[i])).and(f.isNumber(b[i], 0).not())
	}
	return spelled
}
