package main

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// body computes an expression in the vectors of a loop. It walks the steps in
// order. A value has a vector from the step that makes it to the last one that
// takes it; constants have none, but are operands in memory or pinned.
type body struct {
	*assembler
	*elementwise.Expression
	uses     []int                     // of each value, still to come
	vector   []int                     // of each value, or none
	fixed    map[elementwise.Value]int // vectors of values that are the same in all iterations
	operands []elementwise.Value       // of the step that is written
	busy     [16]bool                  // vectors
	most     int                       // how many vectors iterations need
	wanted   []uint64                  // constants that are loaded into a vector
	missing  []elementwise.Op          // steps without a vector form
}

const none = -1

// topVector is the first of the vectors that iterations do not use: from it
// down are a function's parameters and the other values that no iteration
// changes.
const topVector = 13

// emit writes an iteration, whose operand is in vector 0, and returns the
// vector of its result.
func (b *body) emit() int {
	b.start()
	for v := range b.Nodes {
		n := &b.Nodes[v]
		switch {
		case b.vector[v] != none || n.Op == elementwise.Constant:
		case n.Op == elementwise.X:
			b.vector[v] = b.take()
		default:
			b.vector[v] = b.step(n)
		}
	}
	if b.vector[b.Result] == none {
		b.operands = nil
		return b.owned(b.Result)
	}
	return b.vector[b.Result]
}

func (b *body) start() {
	b.uses = b.Uses()
	b.vector = slices.Repeat([]int{none}, len(b.Nodes))
	b.busy = [16]bool{}
	for v, at := range b.fixed {
		b.vector[v], b.busy[at] = at, true
	}
}

// fix computes the values that are the same in all iterations, from the
// parameters at places in memory.
func (b *body) fix(params []string) {
	b.fixed = map[elementwise.Value]int{}
	b.start()
	same := b.Invariant()
	for v := range b.Nodes {
		n := &b.Nodes[v]
		if !same[v] || n.Op == elementwise.Constant {
			continue
		}
		to := topVector - len(b.fixed)
		if n.Op == elementwise.Parameter {
			b.op("VBROADCASTSS %s, %s", params[n.Index], b.v(to))
		} else {
			b.op("VMOVAPS %s, %s", b.v(b.step(n)), b.v(to))
		}
		b.fixed[elementwise.Value(v)] = to
		b.start()
	}
	b.most = 0
}

// take returns a vector that is free.
func (b *body) take() int {
	at := slices.Index(b.busy[:], false)
	if at < 0 || at > topVector {
		panic(fmt.Sprintf("BUG: gen: a formula needs more vectors than there are: %v", b.Nodes))
	}
	b.busy[at] = true
	b.most = max(b.most, at+1)
	return at
}

func (b *body) drop(vectors ...int) {
	for _, at := range vectors {
		if at != none {
			b.busy[at] = false
		}
	}
}

// step writes a step, and returns the vector of its result.
func (b *body) step(n *elementwise.Node) int {
	b.operands = n.Operands()
	for _, v := range b.operands {
		b.uses[v]--
	}
	form := vectorForms[n.Op]
	if form == nil {
		b.missing = append(b.missing, n.Op)
		form = func(b *body, _ *elementwise.Node) int { return b.result() }
	}
	to := form(b, n)
	b.dropOperands()
	b.busy[to] = true
	return to
}

// dies tells whether a value is not needed after the step that is written: its
// vector may be overwritten.
func (b *body) dies(v elementwise.Value) bool {
	_, fixed := b.fixed[v]
	return b.uses[v] == 0 && b.vector[v] != none && !fixed
}

func (b *body) dropOperands() {
	for _, v := range b.operands {
		if b.dies(v) {
			b.drop(b.vector[v])
		}
	}
}

// result returns a vector for the result of the step's last instruction, which
// may be that of an operand.
func (b *body) result() int {
	b.dropOperands()
	return b.take()
}

// owned returns a vector that holds an operand and may be overwritten.
func (b *body) owned(v elementwise.Value) int {
	if b.dies(v) {
		return b.vector[v]
	}
	at := b.take()
	if b.isConstant(v) {
		b.want(repeated(b.number(v)))
		b.op("VMOVUPS %s, %s", b.operand(v), b.v(at))
	} else {
		b.op("VMOVAPS %s, %s", b.operand(v), b.v(at))
	}
	return at
}

// register names a vector that holds an operand, and returns its number too if
// it was taken for that.
func (b *body) register(v elementwise.Value) (name string, taken int) {
	if !b.isConstant(v) {
		return b.v(b.vector[v]), none
	}
	return b.inVector(b.number(v))
}

// inVector is register for a number.
func (b *body) inVector(c float32) (name string, taken int) {
	b.want(repeated(c))
	if b.isPinned(c) {
		return b.f32(c), none
	}
	at := b.take()
	b.constantTo(c, at)
	return b.v(at), at
}

// want notes a constant that had better be in a vector all the time.
func (b *body) want(word uint64) {
	if !slices.Contains(b.wanted, word) {
		b.wanted = append(b.wanted, word)
	}
}

// operand is the place of a value: its vector, or memory for a constant that is
// not pinned.
func (b *body) operand(v elementwise.Value) string {
	if b.isConstant(v) {
		return b.f32(b.number(v))
	}
	return b.v(b.vector[v])
}

func (b *body) isConstant(v elementwise.Value) bool { return b.Nodes[v].Op == elementwise.Constant }

func (b *body) number(v elementwise.Value) float32 { return float32(b.Nodes[v].Number) }

func (b *body) isZero(v elementwise.Value) bool {
	return b.isConstant(v) && repeated(b.number(v)) == 0
}
