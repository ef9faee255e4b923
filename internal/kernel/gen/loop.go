package main

import "fmt"

// rowLoop runs body over a row of CX elements: a few vectors at a time, then one by one, then the rest through a mask. at gives the place
// of the vector in turn behind a pointer; the loop moves the pointers on.
func (a *assembler) rowLoop(pointers []string, unroll int, body func(at func(string) string, tail bool)) {
	a.loop(pointers, unroll, a.lanes, body)
}

func (a *assembler) loop(pointers []string, unroll, lanes int, body func(at func(string) string, tail bool)) {
	// The labels of a function's first loop are bare, those of others numbered.
	a.loops++
	label := func(name string) string {
		if a.loops > 1 {
			name += fmt.Sprint(a.loops)
		}
		return name
	}
	turns := func(n int, this, next string) {
		this, next = label(this), label(next)
		a.op("CMPQ CX, $%d", n*lanes)
		a.op("JLT %s", next)
		a.label(this)
		for u := range n {
			body(func(p string) string { return fmt.Sprintf("%d(%s)", 4*u*lanes, p) }, false)
		}
		for _, p := range pointers {
			a.op("ADDQ $%d, %s", 4*n*lanes, p)
		}
		a.op("SUBQ $%d, CX", n*lanes)
		a.op("CMPQ CX, $%d", n*lanes)
		a.op("JGE %s", this)
		a.label(next)
	}
	if unroll > 1 {
		turns(unroll, "blocks", "few")
	}
	turns(1, "vectors", "rest")
	a.op("TESTQ CX, CX")
	a.op("JZ %s", label("done"))
	a.tail()
	body(func(p string) string { return "(" + p + ")" }, true)
	a.label(label("done"))
}

var (
	argN   = param{"n", "int"}
	argDst = param{"dst", "*float32"}
	argX   = param{"x", "*float32"}
	argY   = param{"y", "*float32"}
	argS   = param{"s", "float32"}
	argT   = param{"t", "float32"}
)
