package pass

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// Attention finds the product of softmax(q * k^T) with v that is spelled out,
// and puts one fused_attention in its place, so that the scores never exist as
// a value:
//
//   - a factor or quotient by a constant at the product, at q or at k;
//   - one addend of the scores, and one choice between them and a constant, in
//     any order;
//   - softmax, or exp(x-max(x)) / sum(exp(x-max(x))), and a choice of zero
//     where that is NaN;
//   - transposes of q, k, v and the result that leave rows contiguous, and
//     heads of k and v that are repeated for neighbours of q by Expand, Tile or
//     Concat.
//
// Requires: static types, fold (scalars and the shapes of repetitions are
// constants), dce (a dead reader would hide the pattern). Guarantees: only
// values with a single reader disappear. The call stands where the last call of
// the pattern stood, so that q, k and v live until there. Results differ by
// rounding.
//
// Left to other passes: types other than f32, and k or v that are constants,
// which products read in panels.
var Attention = Pass{Name: "attention", Doc: "find attention that is spelled out", Run: attention}

func attention(ctx *Context) error {
	m := &attentionFinder{idiomFinder: newIdiomFinder(ctx), blocks: map[*ir.Call]*ir.Block{}}
	ctx.Program.Walk(func(b *ir.Block, c *ir.Call) { m.blocks[c] = b })
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		if c.Op.Name == "matmul" || c.Op.Name == "gemm" {
			m.find(c)
		}
	})
	if n := m.found["fused_attention"]; n > 0 {
		ctx.Notes = append(ctx.Notes, fmt.Sprintf("attention: computed by one kernel where nodes spell it out, %d times", n))
	}
	return nil
}

type attentionFinder struct {
	*idiomFinder
	blocks map[*ir.Call]*ir.Block
}

// attentionParts are what was found of a pattern, from its end to its
// beginning.
type attentionParts struct {
	last       *ir.Call // the product with v
	q, k, v    source
	bias, mask *ir.Value
	scale      float64
	scaled     bool // what comes before is scaled, too
	fill       float64
	biasFirst  bool
	hides      bool // the mask is true where the constant is chosen
	nanToZero  bool
}

// source is an operand: its axis i is axis perm[i] of the value.
type source struct {
	value *ir.Value
	perm  []int
}

func sourceOf(v *ir.Value) source {
	s := source{v, make([]int, rank(v))}
	for i := range s.perm {
		s.perm[i] = i
	}
	return s
}

// axis returns which axis of the value is axis i from the end, 1 or more, of
// the operand.
func (s *source) axis(i int) int { return s.perm[len(s.perm)-i] }

// find starts at the product with v.
func (m *attentionFinder) find(c *ir.Call) {
	a := &attentionParts{last: c, scale: 1}
	one := 1.0
	weights, v, ok := m.product(c, &one)
	if !ok || one != 1 || c.Results[0].Type.DType != dtype.F32 {
		return
	}
	for _, x := range []*ir.Value{c.Results[0], weights.value, v.value} {
		if !isStatic(x) || rank(x) != rank(c.Results[0]) || rank(x) > 8 {
			return
		}
	}
	scores := m.softmax(a, weights.value)
	if scores == nil || !m.scores(a, scores) || len(a.q.perm) != len(v.perm) {
		return
	}
	a.v = v
	if !isStatic(a.q.value) || !isStatic(a.k.value) || !m.follow(a, weights.value) {
		return
	}
	m.replace(a)
}

// product reads a call as a product of matrices without an addend, multiplies
// scale with its factor, and returns its operands.
func (m *attentionFinder) product(c *ir.Call, scale *float64) (left, right source, ok bool) {
	if c.Op.Name != "matmul" && c.Op.Name != "gemm" || c.Args[0].Donate || c.Args[1].Donate {
		return left, right, false
	}
	x, y := c.Args[0].Value, c.Args[1].Value
	if rank(x) < 2 || rank(x) != rank(y) {
		return left, right, false
	}
	left, right = sourceOf(x), sourceOf(y)
	if c.Op.Name == "matmul" {
		return left, right, true
	}
	sig := attrsOf(c)
	if sig.Int("transA") != 0 || len(c.Args) > 2 && c.Args[2].Value != nil {
		return left, right, false
	}
	*scale *= sig.Float("alpha")
	if sig.Int("transB") != 0 {
		swapLast(right.perm)
	}
	return left, right, true
}

// within returns the call of the named operator that defines v, whose only
// reader is in the pattern: nil if there is another reader, or the call stands
// in another block.
func (m *attentionFinder) within(a *attentionParts, v *ir.Value, name string) *ir.Call {
	return m.read(a, v, name, 1)
}

// read is within for a value that the pattern reads a number of times.
func (m *attentionFinder) read(a *attentionParts, v *ir.Value, name string, times int) *ir.Call {
	c := def(v, name)
	if c == nil || m.uses[v] != times || m.blocks[c] != m.blocks[a.last] || len(c.Results) != 1 {
		return nil
	}
	return c
}

// softmax returns the scores of which v is softmax along the last axis.
func (m *attentionFinder) softmax(a *attentionParts, v *ir.Value) *ir.Value {
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
	if len(c.Results) != 1 || c.Results[0].Type.DType != dtype.F32 {
		return false
	}
	switch c.Op.Name {
	case "mul", "div":
		x, k, ok := m.times(c.Results[0])
		a.scale, a.scaled = a.scale*k, true
		return ok && x == c.Args[i].Value
	case "add":
		// Found from the end: with a mask before it, the bias is added first.
		a.biasFirst = a.mask != nil
		free := a.bias == nil && !a.scaled
		a.bias = c.Args[1-i].Value
		return free && a.bias != c.Args[i].Value && a.bias.Type.DType == dtype.F32 && isStatic(a.bias)
	case "where":
		if i == 0 || a.mask != nil || a.scaled || !isStatic(c.Args[0].Value) {
			return false
		}
		fill, ok := m.ctx.scalar(c.Args[3-i].Value)
		a.mask, a.fill, a.hides = c.Args[0].Value, fill, i == 2
		return ok
	}
	return false
}

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
		if !m.ctx.is(sameSize, a.k.value, a.v.value, a.k.axis(3), a.v.axis(3)) {
			return false
		}
	}
	return a.k.value.Kind != ir.Weight && a.v.value.Kind != ir.Weight
}

// standsLast reports whether axis i of an operand, from the end, is the last of
// its value.
func (m *attentionFinder) standsLast(s *source, i int) bool { return s.axis(i) == len(s.perm)-1 }

// trace goes from an operand back through transposes, and through a factor
// where there is a scale to multiply with it.
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

// replace puts the call in place of the last of the pattern: of the product
// with v, or of a transpose of its result.
func (m *attentionFinder) replace(a *attentionParts) {
	attrs := op.Attrs(nil)
	if a.scale != 1 {
		attrs = attrs.With("scale", a.scale)
	}
	if a.mask != nil {
		attrs = attrs.With("fill", a.fill)
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"mask_after", a.biasFirst}, {"mask_hides", a.hides}, {"nan_to_zero", a.nanToZero}} {
		if flag.set {
			attrs = attrs.With(flag.name, int64(1))
		}
	}
	last := a.last
	if next := m.only(last.Results[0], "transpose"); next != nil && m.blocks[next] == m.blocks[last] {
		perm := attrsOf(next).Ints("perm")
		if n := len(perm); n == len(a.q.perm) && int(perm[n-1]) == n-1 {
			last, attrs = next, attrs.With("y_perm", perm)
		}
	}
	args := []*ir.Value{a.q.value, a.k.value, a.v.value, a.bias, a.mask}
	for i, s := range []source{a.q, a.k, a.v} {
		if order := ints64(s.perm); !isIdentity(order) {
			attrs = attrs.With([]string{"q_perm", "k_perm", "v_perm"}[i], order)
		}
	}
	for args[len(args)-1] == nil {
		args = args[:len(args)-1]
	}
	m.put(last, "fused_attention", attrs, args...)
}

func ints64(list []int) []int64 {
	out := make([]int64, len(list))
	for i, n := range list {
		out[i] = int64(n)
	}
	return out
}

func isIdentity(perm []int64) bool {
	for i, axis := range perm {
		if int(axis) != i {
			return false
		}
	}
	return true
}
