package pass

import (
	"bytes"
	"reflect"

	"github.com/tenure-go/tenure/internal/symbolic"
)

// ends are the first and the last element of a constant whose elements rise,
// where it has any. Its length may depend on sizes.
type ends struct{ first, last *symbolic.Expr }

// refusesShapes reports whether the shape rule of a call refuses its operands
// at all sizes.
func (b *overBox) refusesShapes(v *visit) bool {
	if v.sig.Def.Name == "reshape" {
		return b.callOf(v).leavesAnySize()
	}
	return b.broadcastsNothing(v)
}

// leavesAnySize reports whether a target has -1 beside a size of 0.
func (c *formulaCall) leavesAnySize() bool {
	x, target := c.arg(0), c.ints(1)
	hole, zero := false, false
	for i, e := range target {
		switch {
		case e.IsConst(-1):
			hole = true
		case c.isNumber(e, 0) != yes:
		case c.sig.Int("allowzero") == 1:
			zero = true
		case i < len(x):
			zero = zero || c.isNumber(x[i], 0) == yes // that of the operand
		}
	}
	return hole && zero
}

// broadcastsNothing reports whether two sizes of operands that are to be
// broadcast differ, and neither is 1.
func (b *overBox) broadcastsNothing(v *visit) bool {
	rule := sizeRules[v.sig.Def.Name]
	if rule == nil || reflect.ValueOf(rule).Pointer() != reflect.ValueOf(broadcastSizes).Pointer() {
		return false
	}
	for i, x := range v.args {
		for _, y := range v.args[i+1:] {
			if x == 0 || y == 0 {
				continue
			}
			for n := range min(len(b.dims[x]), len(b.dims[y])) {
				p, q := b.dims[x][len(b.dims[x])-1-n], b.dims[y][len(b.dims[y])-1-n]
				if b.equals(p, q) == no && b.isNumber(p, 1) == no && b.isNumber(q, 1) == no {
					return true
				}
			}
		}
	}
	return false
}

// refusesIndices reports whether the elements that a call gathers are beyond
// its operand at all sizes.
func (b *overBox) refusesIndices(v *visit) bool {
	if v.sig.Def.Name != "gather" || len(v.args) < 2 || b.isEmpty(v.results[0]) != no {
		return false
	}
	e, known := b.ends[v.args[1]]
	x := b.dims[v.args[0]]
	axis := (&formulaCall{Formulas: b.Formulas, visit: v, sig: v.sig}).axis(len(x))
	if !known || axis < 0 || axis >= len(x) {
		return false
	}
	beyond := func(at *symbolic.Expr) bool { return at != nil && b.atLeast(at.Sub(x[axis]), 0) }
	return beyond(e.first) || beyond(e.last)
}

// followEnds notes the ends of the constants that a call makes.
func (b *overBox) followEnds(v *visit) {
	if len(v.made) == 0 || v.made[0] == 0 {
		return
	}
	c := b.callOf(v)
	switch v.sig.Def.Name {
	case "range":
		start, step := c.ints(0), c.ints(2)
		if size := b.dims[v.results[0]]; len(start) == 1 && len(step) == 1 && step[0].IsConst(1) && len(size) == 1 {
			last := start[0].Add(size[0]).Sub(symbolic.Const(1))
			if b.fits(last, b.first[v.results[0]].DType) {
				b.ends[v.made[0]] = ends{start[0], last}
			}
		}
	case "identity", "copy", "reshape", "squeeze", "unsqueeze", "flatten":
		if e, ok := b.ends[v.args[0]]; ok {
			b.ends[v.made[0]] = e
		}
	}
}

// hasBytes reports whether a constant has the bytes of a guard at all sizes.
func (b *overBox) hasBytes(g valueGuard) bool {
	var data []byte
	for _, e := range b.contents[g.id] {
		n, ok := e.Value()
		if !ok {
			return false
		}
		if data, ok = appendInteger(data, b.first[g.id].DType, n); !ok {
			return false
		}
	}
	return b.contents[g.id] != nil && bytes.Equal(data, g.data)
}
