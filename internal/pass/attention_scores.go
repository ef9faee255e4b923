package pass

import (
	"math"

	"github.com/tenure-go/tenure/ir"
)

// softmax returns the scores of which v is softmax along the last axis.
func (m *attentionFinder) softmax(a *attentionParts, v *ir.Value) *ir.Value {
	for x := m.through(a, v, 1); x != nil; x = m.through(a, v, 1) {
		v = x
	}
	if pick := m.within(a, v, "where"); pick != nil {
		test := m.within(a, pick.Args[0].Value, "is_nan")
		zero, ok := m.ctx.scalar(pick.Args[1].Value)
		if test == nil || !ok || zero != 0 || test.Args[0].Value != pick.Args[2].Value {
			return nil
		}
		a.nanToZero = true
		return m.plainSoftmax(a, pick.Args[2].Value, 2)
	}
	return m.plainSoftmax(a, v, 1)
}

// plainSoftmax is softmax for a value that the pattern reads a number of times.
func (m *attentionFinder) plainSoftmax(a *attentionParts, v *ir.Value, times int) *ir.Value {
	last := rank(v) - 1
	if c := m.read(a, v, "softmax", times); c != nil {
		if axis := int(attrsOf(c).Int("axis")); (axis == -1 || axis == last) && m.uses[c.Args[0].Value] == 1 {
			return c.Args[0].Value
		}
		return nil
	}
	quotient := m.read(a, v, "div", times)
	if quotient == nil {
		return nil
	}
	e := quotient.Args[0].Value
	sum, power := m.within(a, quotient.Args[1].Value, "reduce_sum"), m.read(a, e, "exp", 2)
	if sum == nil || power == nil || sum.Args[0].Value != e || !m.alongLast(sum, e) {
		return nil
	}
	diff := m.within(a, power.Args[0].Value, "sub")
	if diff == nil {
		return nil
	}
	x := diff.Args[0].Value
	peak := m.within(a, diff.Args[1].Value, "reduce_max")
	if peak == nil || peak.Args[0].Value != x || !m.alongLast(peak, x) || m.uses[x] != 2 {
		return nil
	}
	return x
}

// alongLast reports whether a reduction of x is along the last axis alone, and
// keeps it.
func (m *attentionFinder) alongLast(c *ir.Call, x *ir.Value) bool {
	axis, ok := m.lastAxes(c, x)
	return ok && axis == rank(x)-1
}

// through returns the operand of the cast or the reshape that defines v, if it
// leaves scores or weights what they are. The pattern reads v a number of
// times.
func (m *attentionFinder) through(a *attentionParts, v *ir.Value, times int) *ir.Value {
	if c := m.read(a, v, "cast", times); c != nil {
		if x := c.Args[0].Value; a.computes(x.Type.DType) && isStatic(x) {
			return x
		}
		return nil
	}
	c := m.read(a, v, "reshape", times)
	if c == nil {
		return nil
	}
	x := c.Args[0].Value
	if !isStatic(x) {
		return nil
	}
	long, short := x, v
	if a.isSplit {
		long, short = v, x
	}
	n := rank(short)
	if rank(long) != n+1 || n < 3 || n > 7 {
		return nil
	}
	for axis := 1; axis < n; axis++ {
		if !m.ctx.is(sameSize, long, short, axis+1, axis) {
			return nil
		}
	}
	if a.split != nil && (!m.ctx.is(sameSize, a.split, long, 0, 0) || !m.ctx.is(sameSize, a.split, long, 1, 1)) {
		return nil
	}
	a.isSplit, a.split = !a.isSplit, long
	return x
}

// scores reads v as the product of q and k with what is done to it before
// softmax.
func (m *attentionFinder) scores(a *attentionParts, v *ir.Value) bool {
	if v.Def == nil || m.blocks[v.Def] != m.blocks[a.last] {
		return false
	}
	c := v.Def
	if left, right, ok := m.product(c, &a.scale); ok {
		swapLast(right.perm)
		a.q, a.k = left, right
		return !a.isSplit
	}
	tried := *a
	if x := m.through(&tried, v, m.uses[v]); x != nil && m.uses[x] == 1 && m.scores(&tried, x) {
		*a = tried
		return true
	}
	for i, operand := range c.Args {
		if operand.Donate {
			return false
		}
		x := operand.Value
		if x == nil || m.uses[x] != 1 || x.Def == nil || !m.keepsType(c, i) {
			continue
		}
		if tried := *a; m.takes(&tried, c, i) && m.scores(&tried, x) {
			*a = tried
			return true
		}
	}
	return false
}

// takes adds a call of which operand i has the scores.
func (m *attentionFinder) takes(a *attentionParts, c *ir.Call, i int) bool {
	if len(c.Results) != 1 || !a.computes(c.Results[0].Type.DType) {
		return false
	}
	switch c.Op.Name {
	case "mul", "div":
		x, k, ok := m.times(c.Results[0])
		a.scale, a.scaled = a.scale*k, true
		return ok && x == c.Args[i].Value
	case "tanh":
		free := a.softcap == 0
		a.softcap, a.scaled = a.scale, true
		return free && a.scale != 0 && !math.IsInf(a.scale, 0) && !math.IsNaN(a.scale)
	case "add":
		x := c.Args[1-i].Value
		if a.added == len(a.addends) || a.scaled || x == c.Args[i].Value || !a.computes(x.Type.DType) || !m.fits(a, x) {
			return false
		}
		a.addends[a.added] = x
		a.added++
		return true
	case "where":
		if i == 0 || a.mask != nil || a.scaled || !m.fits(a, c.Args[0].Value) {
			return false
		}
		fill, ok := m.ctx.scalar(c.Args[3-i].Value)
		a.mask, a.behind, a.fill, a.hides = c.Args[0].Value, a.added, fill, i == 2
		return ok
	}
	return false
}

// fits reports whether an operand that broadcasts to the scores can be one of
// the call. Where the scores have their first axis as two, one with as many
// axes as the call's scores would meet the first of these.
func (m *attentionFinder) fits(a *attentionParts, x *ir.Value) bool {
	return isStatic(x) && (!a.isSplit || rank(x) != rank(a.split)-1)
}
