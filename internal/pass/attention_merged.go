package pass

import "github.com/tenure-go/tenure/ir"

// unmerge reads the products of matrices whose first axis is two that reshapes
// have merged, as decoders write the heads of a batch, with both axes: the
// transposes before the reshapes are orders of the call's operands then. It
// does so if q, k and v are merged alike, and the result is split like them. It
// returns the reshape that splits the result, nil without one.
func (m *attentionFinder) unmerge(a *attentionParts) *ir.Call {
	if len(a.q.perm) != 3 {
		return nil
	}
	y := a.last.Results[0]
	next := m.only(y, "reshape")
	if next == nil || m.blocks[next] != m.blocks[a.last] || next.Args[0].Value != y || rank(next.Results[0]) != 4 || !isStatic(next.Results[0]) {
		return nil
	}
	tried := *a
	for _, s := range []*source{&tried.q, &tried.k, &tried.v} {
		if !m.unmergeOne(&tried, s) {
			return nil
		}
	}
	y = next.Results[0]
	for axis := range 2 {
		for _, x := range []*ir.Value{tried.k.value, tried.v.value, y} {
			if !m.ctx.is(sameSize, tried.q.value, x, axis, axis) {
				return nil
			}
		}
		if a.split != nil && !m.ctx.is(sameSize, tried.q.value, a.split, axis, axis) {
			return nil
		}
		if !m.ctx.is(sameSize, a.last.Results[0], y, 1+axis, 2+axis) {
			return nil
		}
	}
	// A mask with the merged axis meets that of the heads, if there is one
	// sample.
	for _, x := range []*ir.Value{tried.mask, tried.addends[0], tried.addends[1]} {
		if x != nil && rank(x) == 3 && m.ctx.size(x, 0) != 1 && m.ctx.size(tried.q.value, 0) != 1 {
			return nil
		}
	}
	m.trace(&tried, &tried.q, &tried.scale)
	m.trace(&tried, &tried.k, &tried.scale)
	m.trace(&tried, &tried.v, nil)
	m.unrepeat(&tried)
	if tried.k.value.Kind == ir.Weight || tried.v.value.Kind == ir.Weight {
		return nil
	}
	*a = tried
	return next
}

// unmergeOne replaces an operand by the value whose first two axes a reshape
// merges into its first one.
func (m *attentionFinder) unmergeOne(a *attentionParts, s *source) bool {
	c := m.within(a, s.value, "reshape")
	if c == nil || s.perm[0] != 0 {
		return false
	}
	x := c.Args[0].Value
	if rank(x) != 4 || !isStatic(x) || !m.ctx.is(sameSize, x, s.value, 2, 1) || !m.ctx.is(sameSize, x, s.value, 3, 2) {
		return false
	}
	*s = source{x, []int{0, 1, s.perm[1] + 1, s.perm[2] + 1}}
	return true
}
