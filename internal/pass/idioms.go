package pass

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// Idioms finds operators that exporters spell out and puts one call in their
// place:
//
//   - layer and root-mean-square normalisation over the last axes:
//     (x-mean(x)) / sqrt(mean((x-mean(x))^2) + epsilon) * scale + bias;
//   - gelu by erf or tanh, and x*sigmoid(alpha*x).
//
// Requires: fold (scalars are constants), cse (a difference that is written
// twice is one value), dce (a dead reader hides an idiom). Guarantees: the call
// that defined the last value of an idiom computes it by one operator; its
// former operands are left for dce if there is no other reader. Results differ
// by rounding.
//
// Left to other passes: types other than f32 and the 16-bit floats, and idioms
// whose sizes are not known yet (they are tried again when the program is
// specialised).
var Idioms = Pass{Name: "idioms", Doc: "find normalisations and activations that are spelled out", Run: idioms}

func idioms(ctx *Context) error {
	m := newIdiomFinder(ctx)
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		if len(c.Results) != 1 || !isFused(c.Results[0].Type.DType) {
			return
		}
		m.tolerance = toleranceOf(c.Results[0].Type.DType)
		switch c.Op.Name {
		case "sqrt":
			m.norm(c)
		case "erf", "tanh":
			m.gelu(c)
		case "sigmoid":
			m.swish(c)
		}
	})
	for _, name := range []string{"layer_normalization", "rms_normalization", "gelu", "swish"} {
		if n := m.found[name]; n > 0 {
			ctx.Notes = append(ctx.Notes, fmt.Sprintf("%s: computed by one kernel where nodes spell it out, %d times", name, n))
		}
	}
	return nil
}

type idiomFinder struct {
	ctx     *Context
	uses    map[*ir.Value]int
	readers map[*ir.Value][]*ir.Call
	found   map[string]int

	tolerance float64 // of constants, relative
}

// toleranceOf is how far constants of a type may be from the numbers that they
// stand for: a ten-thousandth, or what the type's rounding makes of it.
func toleranceOf(dt dtype.DType) float64 {
	switch dt {
	case dtype.F16:
		return 0x1p-10
	case dtype.BF16:
		return 0x1p-7
	}
	return 1e-4
}

func newIdiomFinder(ctx *Context) *idiomFinder {
	m := &idiomFinder{ctx: ctx, uses: countUses(ctx.Program), readers: map[*ir.Value][]*ir.Call{}, found: map[string]int{}}
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		for _, a := range c.Args {
			if a.Value != nil {
				m.readers[a.Value] = append(m.readers[a.Value], c)
			}
		}
	})
	return m
}

// put makes a call that defines the last value of an idiom one of another
// operator.
func (m *idiomFinder) put(last *ir.Call, name string, attrs op.Attrs, args ...*ir.Value) {
	last.Op, last.Attrs, last.Args = op.Builtin().Lookup(name), attrs, make([]ir.Operand, len(args))
	for i, v := range args {
		last.Args[i] = ir.Operand{Value: v}
	}
	m.found[name]++
}

// def returns the call of the named operator that defines v, nil if another one
// does. A call with a donated operand is none: what replaces it would read
// bytes that are gone.
func def(v *ir.Value, name string) *ir.Call {
	if v == nil || v.Def == nil || v.Def.Op.Name != name {
		return nil
	}
	for _, a := range v.Def.Args {
		if a.Donate {
			return nil
		}
	}
	return v.Def
}

// only returns the single reader of v if it is a call of one of the named
// operators.
func (m *idiomFinder) only(v *ir.Value, names ...string) *ir.Call {
	if m.uses[v] != 1 || len(m.readers[v]) != 1 {
		return nil
	}
	c := m.readers[v][0]
	for _, n := range names {
		if def(c.Results[0], n) != nil {
			return c
		}
	}
	return nil
}

// other returns the operand of a call with two that is not v.
func other(c *ir.Call, v *ir.Value) *ir.Value {
	switch {
	case len(c.Args) != 2:
		return nil
	case c.Args[0].Value == v:
		return c.Args[1].Value
	case c.Args[1].Value == v:
		return c.Args[0].Value
	}
	return nil
}

// isScalar tells whether v is a constant of one element that stands for want.
func (m *idiomFinder) isScalar(v *ir.Value, want float64) bool {
	x, ok := m.ctx.scalar(v)
	return ok && m.near(x, want)
}

// times reads v as a product with a scalar, or a quotient by one, and returns
// the other operand and the factor.
func (m *idiomFinder) times(v *ir.Value) (*ir.Value, float64, bool) {
	if c := def(v, "mul"); c != nil {
		for i := range 2 {
			if k, ok := m.ctx.scalar(c.Args[1-i].Value); ok && m.keepsType(c, i) {
				return c.Args[i].Value, k, true
			}
		}
	}
	if c := def(v, "div"); c != nil {
		if k, ok := m.ctx.scalar(c.Args[1].Value); ok && m.keepsType(c, 0) {
			return c.Args[0].Value, 1 / k, true
		}
	}
	return nil, 0, false
}

// keepsType tells whether the result has the type of an operand: a scalar of
// rank 5 would add axes.
func (m *idiomFinder) keepsType(c *ir.Call, arg int) bool {
	return m.ctx.sameType(c.Args[arg].Value, c.Results[0])
}

func (m *idiomFinder) near(got, want float64) bool {
	return math.Abs(got-want) <= m.tolerance*math.Abs(want)
}

// gelu starts at the middle of x/2 * (1 + erf(x/sqrt(2))), or of
// x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715*x^3))).
func (m *idiomFinder) gelu(c *ir.Call) {
	x, attrs := m.geluArgument(c)
	if x == nil {
		return
	}
	plus := m.only(c.Results[0], "add")
	if plus == nil || !m.isScalar(other(plus, c.Results[0]), 1) || !m.keepsType(plus, argOf(plus, c.Results[0])) {
		return
	}
	if last := m.halfProduct(plus.Results[0], x); last != nil {
		m.put(last, "gelu", attrs, x)
	}
}

func argOf(c *ir.Call, v *ir.Value) int {
	for i, a := range c.Args {
		if a.Value == v {
			return i
		}
	}
	return 0
}

// geluArgument returns x, and the attributes that say which gelu it is.
func (m *idiomFinder) geluArgument(c *ir.Call) (*ir.Value, op.Attrs) {
	inner, k, ok := m.times(c.Args[0].Value)
	if !ok || c.Args[0].Donate {
		return nil, nil
	}
	if c.Op.Name == "erf" {
		if m.near(k, 1/math.Sqrt2) {
			return inner, nil
		}
		return nil, nil
	}
	sum := def(inner, "add")
	if sum == nil || !m.near(k, math.Sqrt(2/math.Pi)) {
		return nil, nil
	}
	for i := range 2 {
		x := sum.Args[i].Value
		cube, k, ok := m.times(sum.Args[1-i].Value)
		if ok && m.near(k, 0.044715) && m.isCube(cube, x) {
			return x, op.Attrs(nil).With("approximate", "tanh")
		}
	}
	return nil, nil
}

// isCube tells whether v is x^3.
func (m *idiomFinder) isCube(v, x *ir.Value) bool {
	if c := def(v, "pow"); c != nil {
		return c.Args[0].Value == x && m.isScalar(c.Args[1].Value, 3) && m.keepsType(c, 0)
	}
	c := def(v, "mul")
	return c != nil && m.isSquare(other(c, x), x)
}

// isSquare tells whether v is x^2.
func (m *idiomFinder) isSquare(v, x *ir.Value) bool {
	if c := def(v, "pow"); c != nil {
		return c.Args[0].Value == x && m.isScalar(c.Args[1].Value, 2) && m.keepsType(c, 0)
	}
	c := def(v, "mul")
	return c != nil && c.Args[0].Value == x && c.Args[1].Value == x
}

// halfProduct returns the call that computes v*x/2, in any order.
func (m *idiomFinder) halfProduct(v, x *ir.Value) *ir.Call {
	first := m.only(v, "mul")
	if first == nil {
		return nil
	}
	y := other(first, v)
	if of, k, ok := m.times(y); ok && of == x && m.near(k, 0.5) {
		return first
	}
	want := 0.5 // the factor of the second product
	if _, ok := m.ctx.scalar(y); ok {
		if !m.isScalar(y, 0.5) || !m.keepsType(first, argOf(first, v)) {
			return nil
		}
		want = 0
	} else if y != x {
		return nil
	}
	second := m.only(first.Results[0], "mul")
	if second == nil {
		return nil
	}
	z := other(second, first.Results[0])
	if want == 0 && z == x || want != 0 && m.isScalar(z, want) && m.keepsType(second, argOf(second, first.Results[0])) {
		return second
	}
	return nil
}

// swish starts at the sigmoid of x*sigmoid(alpha*x).
func (m *idiomFinder) swish(c *ir.Call) {
	s := c.Results[0]
	last := m.only(s, "mul")
	if last == nil || c.Args[0].Donate {
		return
	}
	x, alpha := other(last, s), 1.0
	if x == s || c.Args[0].Value != x {
		of, k, ok := m.times(c.Args[0].Value)
		if !ok || of != x {
			return
		}
		alpha = k
	}
	m.put(last, "swish", op.Attrs(nil).With("alpha", alpha), x)
}
