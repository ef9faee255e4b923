package main

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// rowFunctions writes the loops of the functions of one operand, and their
// places in the table. Those whose formulas have a step without a vector form,
// or are the operand itself, have no loop.
func (a *assembler) rowFunctions() {
	for _, f := range a.functions {
		e := f.Expression()
		if !hasVectorForm(e) {
			continue
		}
		name := camel(f.Name)
		in := []param{argS, argT}[:e.Params]
		doc := fmt.Sprintf("computes %s of x[i].", f.Name)
		a.rowFunction(name, doc, in, e, false)
		kind := [...]string{"", "S", "ST"}[e.Params]
		form := a.short
		if e.IsArithmetic() && !e.Has(elementwise.Div, elementwise.Sqrt) {
			form = a.shortAndLong
		}
		a.put("Unary"+kind, "UnaryRows"+kind, form(name), "kernel."+capital(name))
		if e.IsArithmetic() || e.Params > 0 {
			continue
		}
		a.rowFunction(name+"Stream", doc, in, e, true)
		a.put("UnaryStream", "UnaryStreams", name+"Stream"+a.suffix, "kernel."+capital(name))
	}
}

// hasVectorForm tells whether loops over vectors can compute an expression.
func hasVectorForm(e *elementwise.Expression) bool {
	same := e.Invariant()
	for v := range e.Nodes {
		op := e.Nodes[v].Op
		if isInput := op == elementwise.X || op == elementwise.Parameter || op == elementwise.Constant; !isInput && vectorForms[op] == nil {
			return false
		}
	}
	return len(e.Nodes) > 1 && !same[e.Result]
}

// rowFunction is a function of one operand over a row. With stream set the
// result is written past the caches.
func (a *assembler) rowFunction(name, doc string, in []param, e *elementwise.Expression, stream bool) {
	in = append([]param{argN, argDst, argX}, in...)
	a.function(name, doc, in, nil)
	a.op("MOVQ %s, CX", a.arg(argN))
	a.op("MOVQ %s, DI", a.arg(argDst))
	a.op("MOVQ %s, SI", a.arg(argX))
	var params []string
	for _, p := range in[3:] {
		params = append(params, a.arg(p))
	}
	b := &body{assembler: a, Expression: e}
	b.fix(params)
	b.plan()
	ahead, unroll := "", 2
	if e.IsArithmetic() {
		unroll = 4
	}
	if !a.masks || !e.IsArithmetic() { // with masks this is the code for short rows
		ahead = a.twoPages()
	}
	iteration := 0
	a.rowLoop([]string{"DI", "SI"}, unroll, func(at func(string) string, tail bool) {
		a.fetchAhead(at("SI"), ahead, iteration, tail)
		iteration++
		a.load(at("SI"), fnX, false, tail)
		a.storeTo(stream, b.emit(), at("DI"), tail)
	})
	a.ret()
}

// plan pins constants, and decides whether the instructions of two iterations
// alternate: for functions of many instructions, if the vectors suffice. The
// result of a comparison has one place only, and that of a function of few the
// processor sees far enough ahead.
func (b *body) plan() {
	compares := b.dry(func() { b.emit() }).compares
	limit := b.most
	if !b.IsArithmetic() && !compares && b.most <= sideStep {
		b.sides = 2
		limit = 2 * sideStep
	}
	if b.masks {
		b.pin(func() { b.emit() })
		return
	}
	// There are no vectors beyond these sixteen: those that are left over have
	// the constants that instructions do not take from memory.
	b.pins = map[uint64]int{}
	for _, w := range b.wanted {
		at := topVector - len(b.fixed) - len(b.pins)
		if at < limit {
			break
		}
		b.op("VMOVUPS %s, %s", b.constant(w), b.v(at))
		b.pins[w] = at
	}
}

// camel is a function's name as Go has it.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = capital(w)
	}
	return strings.Join(words, "")
}
