package elementwise

import "math"

// Formula computes a function from values by the methods of b. It is called
// once per target, with symbolic values, and must not depend on anything else.
type Formula func(b *Builder, x Value, params []Value) Value

// BinaryFormula is the Formula of a function of two operands.
type BinaryFormula func(b *Builder, x, y Value) Value

// step is the formula of a function that is a primitive itself.
func step(f func(b *Builder, x Value) Value) Formula {
	return func(b *Builder, x Value, _ []Value) Value { return f(b, x) }
}

// Value is a number of a formula under construction. Values belong to the
// Builder that returned them.
type Value int

// Builder records the steps of a formula; equal steps are recorded once. The
// primitives are meant as exact: each target rounds the result of a step once,
// or states its error. NaN comes out of every step that an operand NaN goes
// into, but for Select.
type Builder struct {
	nodes []Node
	known map[Node]Value
}

// Node is a step: an operation and the values that it takes, as many as
// Op.Arity says; values that are not taken are 0.
type Node struct {
	Op       Op
	Args     [4]Value
	Relation Relation // of Select
	Number   float64  // of Constant
	Index    int      // of Parameter
}

// Operands returns the values that a step takes.
func (n *Node) Operands() []Value { return n.Args[:n.Op.Arity()] }

// Condition is the comparison of two values.
type Condition struct {
	relation Relation
	x, y     Value
}

// Relation is how the values of a Condition compare. Both are false of NaN.
type Relation uint8

// The relations.
const (
	Less  Relation = iota // x < y
	Equal                 // x == y
)

func (b *Builder) add(n Node) Value {
	if v, ok := b.known[n]; ok {
		return v
	}
	if b.known == nil {
		b.known = map[Node]Value{}
	}
	v := Value(len(b.nodes))
	b.nodes = append(b.nodes, n)
	b.known[n] = v
	return v
}

func (b *Builder) step(op Op, args ...Value) Value {
	n := Node{Op: op}
	copy(n.Args[:], args)
	return b.add(n)
}

// Const is a number, which may not be NaN. Float32 kernels round it.
func (b *Builder) Const(c float64) Value {
	if math.IsNaN(c) {
		panic("BUG: elementwise: a constant is NaN")
	}
	return b.add(Node{Op: Constant, Number: c})
}

// Add is x + y.
func (b *Builder) Add(x, y Value) Value { return b.step(Add, x, y) }

// Sub is x - y.
func (b *Builder) Sub(x, y Value) Value { return b.step(Sub, x, y) }

// Mul is x * y.
func (b *Builder) Mul(x, y Value) Value { return b.step(Mul, x, y) }

// Div is x / y.
func (b *Builder) Div(x, y Value) Value { return b.step(Div, x, y) }

// MulAdd is x*y + z. A target may round the product.
func (b *Builder) MulAdd(x, y, z Value) Value { return b.step(MulAdd, x, y, z) }

// FMA is x*y + z, rounded once in float32. In float64 the product may be
// rounded.
func (b *Builder) FMA(x, y, z Value) Value { return b.step(FMA, x, y, z) }

// Min is the smaller of x and y; of two zeros it is either.
func (b *Builder) Min(x, y Value) Value { return b.step(Min, x, y) }

// Max is the larger of x and y; of two zeros it is either.
func (b *Builder) Max(x, y Value) Value { return b.step(Max, x, y) }

// Relu is the larger of x and 0, and never -0.
func (b *Builder) Relu(x Value) Value { return b.step(Relu, x) }

// Neg is -x.
func (b *Builder) Neg(x Value) Value { return b.step(Neg, x) }

// Abs is |x|.
func (b *Builder) Abs(x Value) Value { return b.step(Abs, x) }

// CopySign is |x| with the sign of y.
func (b *Builder) CopySign(x, y Value) Value { return b.step(CopySign, x, y) }

// Sqrt is the square root of x.
func (b *Builder) Sqrt(x Value) Value { return b.step(Sqrt, x) }

// Floor is the largest integer that is not above x.
func (b *Builder) Floor(x Value) Value { return b.step(Floor, x) }

// Ceil is the smallest integer that is not below x.
func (b *Builder) Ceil(x Value) Value { return b.step(Ceil, x) }

// Round is the nearest integer to x, and the even one of two.
func (b *Builder) Round(x Value) Value { return b.step(Round, x) }

// Less says whether x < y. It is false where either is NaN.
func (b *Builder) Less(x, y Value) Condition { return Condition{Less, x, y} }

// Equal says whether x == y. It is false where either is NaN.
func (b *Builder) Equal(x, y Value) Condition { return Condition{Equal, x, y} }

// Select is then where c is true and otherwise where it is false; the other of
// the two may have any value, NaN too.
func (b *Builder) Select(c Condition, then, otherwise Value) Value {
	return b.add(Node{Op: Select, Relation: c.relation, Args: [4]Value{c.x, c.y, then, otherwise}})
}

// Exp is e^x.
func (b *Builder) Exp(x Value) Value { return b.step(Exp, x) }

// Expm1 is e^x - 1 without cancellation near 0.
func (b *Builder) Expm1(x Value) Value { return b.step(Expm1, x) }

// Log is the natural logarithm of x.
func (b *Builder) Log(x Value) Value { return b.step(Log, x) }

// Log1p is the natural logarithm of 1+x without cancellation near 0. It has no
// vector form.
func (b *Builder) Log1p(x Value) Value { return b.step(Log1p, x) }

// Tanh is the hyperbolic tangent of x.
func (b *Builder) Tanh(x Value) Value { return b.step(Tanh, x) }

// Erf is the error function of x.
func (b *Builder) Erf(x Value) Value { return b.step(Erf, x) }

// Sigmoid is 1/(1+e^-x).
func (b *Builder) Sigmoid(x Value) Value { return b.step(Sigmoid, x) }

// Softplus is log(1+e^x).
func (b *Builder) Softplus(x Value) Value { return b.step(Softplus, x) }

// TimesPhi is x*Phi(x), with the distribution function Phi of the normal
// distribution. At -Inf it is its limit, 0.
func (b *Builder) TimesPhi(x Value) Value { return b.step(TimesPhi, x) }

// Pow is x^y. It has no vector form.
func (b *Builder) Pow(x, y Value) Value { return b.step(Pow, x, y) }

// Trigonometric and hyperbolic functions have no vector form.

// Sin is the sine of x.
func (b *Builder) Sin(x Value) Value { return b.step(Sin, x) }

// Cos is the cosine of x.
func (b *Builder) Cos(x Value) Value { return b.step(Cos, x) }

// Tan is the tangent of x.
func (b *Builder) Tan(x Value) Value { return b.step(Tan, x) }

// Asin is the inverse sine of x.
func (b *Builder) Asin(x Value) Value { return b.step(Asin, x) }

// Acos is the inverse cosine of x.
func (b *Builder) Acos(x Value) Value { return b.step(Acos, x) }

// Atan is the inverse tangent of x.
func (b *Builder) Atan(x Value) Value { return b.step(Atan, x) }

// Sinh is the hyperbolic sine of x.
func (b *Builder) Sinh(x Value) Value { return b.step(Sinh, x) }

// Cosh is the hyperbolic cosine of x.
func (b *Builder) Cosh(x Value) Value { return b.step(Cosh, x) }

// Asinh is the inverse hyperbolic sine of x.
func (b *Builder) Asinh(x Value) Value { return b.step(Asinh, x) }

// Acosh is the inverse hyperbolic cosine of x.
func (b *Builder) Acosh(x Value) Value { return b.step(Acosh, x) }

// Atanh is the inverse hyperbolic tangent of x.
func (b *Builder) Atanh(x Value) Value { return b.step(Atanh, x) }
