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
//   - a cap of the scores, c * tanh(x/c);
//   - up to two addends of the scores, and one choice between them and a
//     constant, in any order;
//   - softmax, or exp(x-max(x)) / sum(exp(x-max(x))), and a choice of zero
//     where that is NaN;
//   - reshapes between these that make two axes of the first one, and one of
//     the two (windows of a batch, heads of a batch), and casts of 16 bits to
//     float32 and back;
//   - transposes of q, k, v and the result that leave rows contiguous, before
//     reshapes that merge samples and heads, too, and heads of k and v that are
//     repeated for neighbours of q by Expand, Tile or Concat.
//
// Requires: static types, fold (scalars and the shapes of repetitions are
// constants), dce (a dead reader would hide the pattern). Guarantees: only
// values with a single reader disappear. The call stands where the last call of
// the pattern stood, so that q, k and v live until there. Results differ by
// rounding.
//
// Scores and weights of 16-bit types are not rounded to these: results are
// those of float32, rounded once.
//
// Left to other passes: k or v that are constants, which products read in
// panels.
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

// attended are the element types that fused_attention computes.
var attended = []dtype.DType{dtype.F32, dtype.F16, dtype.BF16, dtype.F64}

// attentionParts are what was found of a pattern, from its end to its
// beginning.
type attentionParts struct {
	last      *ir.Call // the product with v
	typ       dtype.DType
	q, k, v   source
	scale     float64
	scaled    bool // what comes before is scaled, too
	softcap   float64
	addends   [2]*ir.Value // the last one first
	added     int
	mask      *ir.Value
	behind    int // addends behind the mask
	fill      float64
	hides     bool // the mask is true where the constant is chosen
	nanToZero bool

	isSplit bool      // the scores have their first axis as two here
	split   *ir.Value // scores that have
}

// computes reports whether a part of the pattern may have an element type.
func (a *attentionParts) computes(dt dtype.DType) bool {
	return dt == a.typ || dt == dtype.F32 && (a.typ == dtype.F16 || a.typ == dtype.BF16)
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
	a := &attentionParts{last: c, scale: 1, typ: c.Results[0].Type.DType}
	one := 1.0
	weights, v, ok := m.product(c, &one)
	if !ok || one != 1 || !slices.Contains(attended, a.typ) {
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
	if a.q.value.Type.DType != a.typ || a.k.value.Type.DType != a.typ {
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

// replace puts the call in place of the last of the pattern: of the product
// with v, of a reshape that splits its first axis, or of a transpose after
// these.
func (m *attentionFinder) replace(a *attentionParts) {
	last := a.last
	if split := m.unmerge(a); split != nil {
		last = split
	}
	attrs := a.attrs()
	if next := m.only(last.Results[0], "transpose"); next != nil && m.blocks[next] == m.blocks[last] {
		perm := attrsOf(next).Ints("perm")
		if n := len(perm); n == len(a.q.perm) && int(perm[n-1]) == n-1 {
			last, attrs = next, attrs.With("y_perm", perm)
		}
	}
	args := []*ir.Value{a.q.value, a.k.value, a.v.value, nil, a.mask, nil}
	for i := range a.added {
		args[3+2*i] = a.addends[a.added-1-i]
	}
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

// attrs returns the attributes of the call, but for orders of axes.
func (a *attentionParts) attrs() (attrs op.Attrs) {
	if a.scale != 1 {
		attrs = attrs.With("scale", a.scale)
	}
	if a.softcap != 0 {
		attrs = attrs.With("softcap", a.softcap)
	}
	if a.mask != nil {
		attrs = attrs.With("fill", a.fill)
		if n := a.added - a.behind; n > 0 {
			attrs = attrs.With("mask_after", int64(n))
		}
	}
	if a.hides {
		attrs = attrs.With("mask_hides", int64(1))
	}
	if a.nanToZero {
		attrs = attrs.With("nan_to_zero", int64(1))
	}
	return attrs
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
