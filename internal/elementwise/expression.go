package elementwise

import (
	"fmt"
	"math"
)

// Expression is a recorded formula: its steps, each after those that it takes,
// of which every one is needed for the result. It never changes.
type Expression struct {
	Nodes  []Node
	Result Value
	Params int
}

// Expression records the formula of f.
func (f *Function) Expression() *Expression { return Record(f.Formula, len(f.Params)) }

// Expression records the formula of f, in which y is parameter 0. It returns
// nil if f has no formula.
func (f *Binary) Expression() *Expression {
	if f.Formula == nil {
		return nil
	}
	return Record(func(b *Builder, x Value, p []Value) Value { return f.Formula(b, x, p[0]) }, 1)
}

// Record evaluates a formula symbolically.
func Record(f Formula, params int) *Expression {
	b := &Builder{}
	x := b.step(X)
	p := make([]Value, params)
	for i := range p {
		p[i] = b.add(Node{Op: Parameter, Index: i})
	}
	result := f(b, x, p)
	if result < 0 || int(result) >= len(b.nodes) {
		panic(fmt.Sprintf("BUG: elementwise: a formula returned value %d of %d", result, len(b.nodes)))
	}
	return prune(b.nodes, result, params)
}

// prune drops the steps that the result does not need.
func prune(nodes []Node, result Value, params int) *Expression {
	needed := make([]bool, len(nodes))
	needed[result] = true
	for v := len(nodes) - 1; v >= 0; v-- {
		if needed[v] {
			for _, arg := range nodes[v].Operands() {
				needed[arg] = true
			}
		}
	}
	e := &Expression{Params: params}
	to := make([]Value, len(nodes))
	for v, n := range nodes {
		if !needed[v] {
			continue
		}
		for i, arg := range n.Operands() {
			n.Args[i] = to[arg]
		}
		to[v] = Value(len(e.Nodes))
		e.Nodes = append(e.Nodes, n)
	}
	e.Result = to[result]
	return e
}

// Eval computes the function of x in float64, to its full accuracy.
func (e *Expression) Eval(x float64, params ...float64) float64 {
	values := make([]float64, len(e.Nodes))
	for v := range e.Nodes {
		n := &e.Nodes[v]
		var args [4]float64
		for i, arg := range n.Operands() {
			args[i] = values[arg]
		}
		switch n.Op {
		case X:
			values[v] = x
		case Parameter:
			values[v] = params[n.Index]
		case Constant:
			values[v] = n.Number
		case Select:
			values[v] = args[3]
			if n.Relation == Less && args[0] < args[1] || n.Relation == Equal && args[0] == args[1] {
				values[v] = args[2]
			}
		default:
			values[v] = primitives[n.Op].eval(args[0], args[1], args[2])
		}
	}
	return values[e.Result]
}

// Uses returns how often each value is taken; the result is taken once more.
func (e *Expression) Uses() []int {
	uses := make([]int, len(e.Nodes))
	for v := range e.Nodes {
		for _, arg := range e.Nodes[v].Operands() {
			uses[arg]++
		}
	}
	uses[e.Result]++
	return uses
}

// Invariant tells of each value whether it is the same for all x.
func (e *Expression) Invariant() []bool {
	same := make([]bool, len(e.Nodes))
	for v := range e.Nodes {
		same[v] = e.Nodes[v].Op != X
		for _, arg := range e.Nodes[v].Operands() {
			same[v] = same[v] && same[arg]
		}
	}
	return same
}

// IsArithmetic tells whether all steps are a few instructions.
func (e *Expression) IsArithmetic() bool {
	for v := range e.Nodes {
		if !e.Nodes[v].Op.IsArithmetic() {
			return false
		}
	}
	return true
}

// Has tells whether there is a step of one of the kinds.
func (e *Expression) Has(ops ...Op) bool {
	for v := range e.Nodes {
		for _, op := range ops {
			if e.Nodes[v].Op == op {
				return true
			}
		}
	}
	return false
}

// Range returns bounds of a value: all that it can be but NaN.
func (e *Expression) Range(v Value) (lo, hi float64) {
	n := &e.Nodes[v]
	at := func(i int) (lo, hi float64) { return e.Range(n.Args[i]) }
	switch n.Op {
	case Constant:
		return n.Number, n.Number
	case Min, Max:
		lo, hi = at(0)
		lo2, hi2 := at(1)
		if n.Op == Min {
			return min(lo, lo2), min(hi, hi2)
		}
		return max(lo, lo2), max(hi, hi2)
	case Relu:
		lo, hi = at(0)
		return max(lo, 0), max(hi, 0)
	case Neg:
		lo, hi = at(0)
		return -hi, -lo
	case Abs:
		lo, hi = at(0)
		if lo >= 0 {
			return lo, hi
		}
		return max(0, -hi), max(-lo, hi)
	case Exp, Softplus, Sqrt:
		return 0, math.Inf(1)
	case Sigmoid:
		return 0, 1
	}
	return math.Inf(-1), math.Inf(1)
}
