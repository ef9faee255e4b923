package pass

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
)

func swapLast(perm []int) {
	n := len(perm)
	perm[n-2], perm[n-1] = perm[n-1], perm[n-2]
}

// follow follows the operands to where their rows come from, and reports
// whether their axes meet as those of the products did: weights are those that
// v is multiplied with.
func (m *attentionFinder) follow(a *attentionParts, weights *ir.Value) bool {
	n := len(a.q.perm)
	for axis := range n - 2 {
		if !m.ctx.is(sameSize, a.last.Results[0], weights, axis, axis) {
			return false
		}
	}
	m.trace(a, &a.q, &a.scale)
	m.trace(a, &a.k, &a.scale)
	m.trace(a, &a.v, nil)
	if !m.standsLast(&a.q, 1) || !m.standsLast(&a.v, 1) || !m.standsLast(&a.k, 1) && !m.standsLast(&a.k, 2) {
		return false // a product with a transposed left operand, or with v as it lies
	}
	if n > 2 {
		if !m.ctx.is(sameSize, a.q.value, weights, a.q.axis(3), n-3) {
			return false
		}
		m.unrepeat(a)
		if a.split != nil && n == 3 && !m.ctx.is(sameSize, a.q.value, a.k.value, a.q.axis(3), a.k.axis(3)) {
			return false
		}
		if !m.ctx.is(sameSize, a.k.value, a.v.value, a.k.axis(3), a.v.axis(3)) {
			return false
		}
	}
	return a.k.value.Kind != ir.Weight && a.v.value.Kind != ir.Weight
}

// standsLast reports whether axis i of an operand, from the end, is the last of
// its value.
func (m *attentionFinder) standsLast(s *source, i int) bool { return s.axis(i) == len(s.perm)-1 }

// trace goes from an operand back through transposes, and through factors and
// casts to float32 where there is a scale.
func (m *attentionFinder) trace(a *attentionParts, s *source, scale *float64) {
	for {
		if c := m.within(a, s.value, "transpose"); c != nil {
			order := attrsOf(c).Ints("perm")
			if len(order) != len(s.perm) {
				return
			}
			next := source{c.Args[0].Value, make([]int, len(order))}
			for i, axis := range s.perm {
				next.perm[i] = int(order[axis])
			}
			if !m.standsLast(&next, 1) && (s != &a.k || !m.standsLast(&next, 2)) {
				return
			}
			*s = next
			continue
		}
		if c := m.within(a, s.value, "cast"); c != nil && scale != nil && c.Args[0].Value.Type.DType == a.typ && s.value.Type.DType == dtype.F32 {
			s.value = c.Args[0].Value // exactly
			continue
		}
		x, k, ok := m.times(s.value)
		if scale == nil || !ok || m.within(a, s.value, "mul") == nil && m.within(a, s.value, "div") == nil {
			return
		}
		s.value, *scale = x, *scale*k
	}
}

// unrepeat replaces k and v by what they repeat for neighbours of q, if both
// do.
func (m *attentionFinder) unrepeat(a *attentionParts) {
	if a.split != nil && len(a.q.perm) == 3 {
		return // an axis of heads that is two is that of all operands
	}
	tried := *a
	k, v := m.repeated(a, &a.k), m.repeated(a, &a.v)
	if k == nil || v == nil {
		return
	}
	tried.k.value, tried.v.value = k, v
	m.trace(&tried, &tried.k, &tried.scale)
	m.trace(&tried, &tried.v, nil)
	if m.ctx.is(sameSize, tried.k.value, tried.v.value, tried.k.axis(3), tried.v.axis(3)) {
		*a = tried
	}
}

// repeated returns the value whose elements along the axis of heads an operand
// repeats, each some times in turn: nil if there is none.
func (m *attentionFinder) repeated(a *attentionParts, s *source) *ir.Value {
	axis := s.axis(3)
	if x := m.copies(a, s.value, axis); x != nil {
		return x // of one head
	}
	merged := m.within(a, s.value, "reshape")
	if merged == nil {
		return nil
	}
	many := merged.Args[0].Value
	if rank(many) != len(s.perm)+1 {
		return nil // asked of no axis that there is not
	}
	one := m.copies(a, many, axis+1)
	if one == nil || !m.dropsAxis(many, s.value, axis+1, axis) {
		return nil
	}
	if m.ctx.size(many, axis)*m.ctx.size(many, axis+1) != m.ctx.size(s.value, axis) {
		return nil
	}
	c := m.within(a, one, "unsqueeze")
	if c == nil {
		c = m.within(a, one, "reshape")
	}
	if c == nil || rank(c.Args[0].Value) != len(s.perm) || !m.dropsAxis(one, c.Args[0].Value, axis+1, -1) {
		return nil
	}
	return c.Args[0].Value
}

// dropsAxis reports whether the axes of y are those of x without one; axis but
// of y may have another size.
func (m *attentionFinder) dropsAxis(x, y *ir.Value, without, but int) bool {
	for i := range rank(y) {
		at := i
		if i >= without {
			at++
		}
		if i != but && !m.ctx.is(sameSize, x, y, at, i) {
			return false
		}
	}
	return true
}

// copies returns the value of size 1 along an axis of which v is copies along
// that axis: nil if there is none.
func (m *attentionFinder) copies(a *attentionParts, v *ir.Value, axis int) *ir.Value {
	if v.Def == nil || len(v.Def.Args) == 0 {
		return nil
	}
	name := v.Def.Op.Name
	c := m.read(a, v, name, 1)
	if c == nil || name != "expand" && name != "tile" && name != "concat" {
		return nil
	}
	x := c.Args[0].Value
	if rank(x) != rank(v) || !isStatic(x) || m.ctx.size(x, axis) != 1 {
		return nil
	}
	for i := range rank(v) {
		if i != axis && !m.ctx.is(sameSize, x, v, i, i) {
			return nil
		}
	}
	if name == "concat" && slices.ContainsFunc(c.Args, func(o ir.Operand) bool { return o.Value != x }) {
		return nil
	}
	return x
}
