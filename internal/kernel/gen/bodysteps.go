package main

import "github.com/tenure-go/tenure/internal/elementwise"

// vectorForms write a step, and return the vector of its result. Steps without
// one have no vector form.
var vectorForms map[elementwise.Op]func(b *body, n *elementwise.Node) int

func init() { // the forms of some steps are written with those of others
	type forms = map[elementwise.Op]func(b *body, n *elementwise.Node) int
	vectorForms = forms{
		elementwise.Add:      commutative("VADDPS"),
		elementwise.Sub:      binary("VSUBPS"),
		elementwise.Mul:      commutative("VMULPS"),
		elementwise.Div:      binary("VDIVPS"),
		elementwise.MulAdd:   (*body).mulAdd,
		elementwise.FMA:      (*body).mulAdd,
		elementwise.Min:      limit("VMINPS"),
		elementwise.Max:      limit("VMAXPS"),
		elementwise.Select:   (*body).selection,
		elementwise.Relu:     unary((*body).relu),
		elementwise.Neg:      unary(inOne((*assembler).negated)),
		elementwise.Abs:      unary(inOne((*assembler).magnitude)),
		elementwise.CopySign: (*body).copySign,
		elementwise.Sqrt:     unary(inOne(func(a *assembler, x, to int) { a.op("VSQRTPS %s, %s", a.v(x), a.v(to)) })),
		elementwise.Round:    rounding(0),
		elementwise.Floor:    rounding(1),
		elementwise.Ceil:     rounding(2),
		elementwise.Exp:      unary((*body).expOf),
		elementwise.Expm1:    unary((*body).expm1),
		elementwise.Log:      unary((*body).log),
		elementwise.Tanh:     unary((*body).tanh),
		elementwise.Erf:      unary((*body).erf),
		elementwise.Sigmoid:  unary((*body).sigmoid),
		elementwise.Softplus: unary((*body).softplus),
		elementwise.TimesPhi: unary((*body).timesPhi),
	}
}

// unary is the form of a step with one operand.
func unary(f func(b *body, x elementwise.Value) int) func(b *body, n *elementwise.Node) int {
	return func(b *body, n *elementwise.Node) int { return f(b, n.Args[0]) }
}

// inOne is the form of a step that is one instruction, or several that write
// only the result.
func inOne(f func(a *assembler, x, to int)) func(b *body, x elementwise.Value) int {
	return func(b *body, x elementwise.Value) int {
		from := b.vector[x]
		to := b.result()
		f(b.assembler, from, to)
		return to
	}
}

func rounding(mode int) func(b *body, n *elementwise.Node) int {
	return unary(inOne(func(a *assembler, x, to int) {
		instruction := "VROUNDPS"
		if a.masks {
			instruction = "VRNDSCALEPS"
		}
		a.op("%s $%d, %s, %s", instruction, 8+mode, a.v(x), a.v(to))
	}))
}

// binary is x op y. The instructions take y, the first as written here, from
// memory, if it is there.
func binary(instruction string) func(b *body, n *elementwise.Node) int {
	return func(b *body, n *elementwise.Node) int {
		x, taken := b.register(n.Args[0])
		y := b.operand(n.Args[1])
		b.drop(taken)
		to := b.result()
		b.op("%s %s, %s, %s", instruction, y, x, b.v(to))
		return to
	}
}

func commutative(instruction string) func(b *body, n *elementwise.Node) int {
	write := binary(instruction)
	return func(b *body, n *elementwise.Node) int {
		turned := *n
		if b.isConstant(n.Args[0]) {
			turned.Args = [4]elementwise.Value{n.Args[1], n.Args[0]}
		}
		return write(b, &turned)
	}
}

// mulAdd is x*y + z. One of the three is overwritten, and one may be in memory.
func (b *body) mulAdd(n *elementwise.Node) int {
	x, y, z := n.Args[0], n.Args[1], n.Args[2]
	if b.isConstant(x) || !b.isConstant(y) && b.dies(y) && !b.dies(x) {
		x, y = y, x
	}
	form, to, second, last := "213", x, y, z // to = to*second + last
	switch {
	case b.isConstant(y) && b.isConstant(z):
		if !b.isPinned(b.number(y)) {
			to, second = y, x
		}
	case b.dies(z) && !b.dies(x):
		form, to, second, last = "231", z, x, y // to = second*last + to
	case b.isConstant(y):
		form, second, last = "132", z, y // to = to*last + second
	}
	own := b.owned(to)
	b.op("VFMADD%sPS %s, %s, %s", form, b.operand(last), b.operand(second), b.v(own))
	return own
}

// limit is the smaller or larger of x and y, and NaN where either is. Of NaN
// the instructions give their last operand, the first as written here: if only
// that can be NaN, they are all it takes.
func limit(instruction string) func(b *body, n *elementwise.Node) int {
	return func(b *body, n *elementwise.Node) int {
		x, y := n.Args[0], n.Args[1]
		isNumber := func(v elementwise.Value) bool { return b.isConstant(v) || b.Nodes[v].Op == elementwise.Parameter }
		if isNumber(x) {
			x, y = y, x
		}
		if isNumber(y) {
			bound, taken := b.register(y)
			from := b.operand(x)
			b.drop(taken)
			to := b.result()
			b.op("%s %s, %s, %s", instruction, from, bound, b.v(to))
			return to
		}
		to, from := b.take(), b.operand(x)
		b.op("%s %s, %s, %s", instruction, b.operand(y), from, b.v(to))
		b.choose("PS", unordered, from, from, from, b.v(to))
		return to
	}
}

// relu adds 0 to the larger of x and 0: -0 becomes 0.
func (b *body) relu(x elementwise.Value) int {
	zero, taken := b.inVector(0)
	from := b.operand(x)
	to := b.result()
	b.op("VMAXPS %s, %s, %s", from, zero, b.v(to))
	b.op("VADDPS %s, %s, %s", zero, b.v(to), b.v(to))
	b.drop(taken)
	return to
}

// selection is one of two values by the relation of two others.
func (b *body) selection(n *elementwise.Node) int {
	x, y, then, otherwise := n.Args[0], n.Args[1], n.Args[2], n.Args[3]
	relation := map[elementwise.Relation]int{elementwise.Less: less, elementwise.Equal: equal}[n.Relation]
	if b.isConstant(x) { // only the second may be in memory
		x, y = y, x
		if relation == less {
			relation = greater
		}
	}
	if b.isConstant(x) {
		panic("BUG: gen: a formula compares constants")
	}
	if b.isZero(then) || !b.isZero(otherwise) && !b.dies(otherwise) && b.dies(then) {
		then, otherwise = otherwise, then
		relation = opposites[relation]
	}
	compared, with := b.operand(x), b.operand(y)
	if b.isZero(otherwise) {
		from, taken := b.register(then)
		b.drop(taken)
		to := b.result()
		b.chooseOrZero(relation, compared, with, from, b.v(to))
		return to
	}
	to := b.owned(otherwise)
	b.choose("PS", relation, compared, with, b.operand(then), b.v(to))
	return to
}

// copySign is |x| with the sign of y.
func (b *body) copySign(n *elementwise.Node) int {
	sign := b.take()
	y, taken := b.register(n.Args[1])
	b.op("VANDPS %s, %s, %s", b.f32(minusZero), y, b.v(sign))
	b.drop(taken)
	to := b.owned(n.Args[0])
	b.magnitude(to, to)
	b.ps("VORPS", sign, to, to)
	b.drop(sign)
	return to
}
