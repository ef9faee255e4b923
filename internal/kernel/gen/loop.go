package main

import (
	"fmt"
	"strings"
)

// rowLoop runs body over a row of CX elements: a few vectors at a time, then
// one by one, then the rest through a mask. at returns the place of the current
// vector behind a pointer; the loop advances the pointers.
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
	iterations := func(n int, this, next string) {
		this, next = label(this), label(next)
		a.op("CMPQ CX, $%d", n*lanes)
		a.op("JLT %s", next)
		a.label(this)
		iteration := func(u int) {
			body(func(p string) string { return fmt.Sprintf("%d(%s)", 4*u*lanes, p) }, false)
		}
		for u := 0; u < n; u += a.sides {
			a.sideBySide(min(a.sides, n), func(side int) { iteration(u + side) })
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
		iterations(unroll, "blocks", "few")
	}
	iterations(1, "vectors", "rest")
	a.op("TESTQ CX, CX")
	a.op("JZ %s", label("done"))
	a.tail()
	body(func(p string) string { return "(" + p + ")" }, true)
	a.label(label("done"))
}

// sideBySide emits iterations whose instructions alternate. Each waits for its
// own results only, and the processor looks just so far ahead.
func (a *assembler) sideBySide(n int, body func(side int)) {
	before := a.text.String()
	sides := make([][]string, n)
	for i := range sides {
		a.text.Reset()
		a.shift = i * sideStep
		body(i)
		sides[i] = strings.SplitAfter(a.text.String(), "\n")
	}
	a.shift = 0
	a.text.Reset()
	a.text.WriteString(before)
	for line := range sides[0] { // the first may have more than the others: its prefetches
		for _, s := range sides {
			if line < len(s) {
				a.text.WriteString(s[line])
			}
		}
	}
}

// twoPages is the distance at which loops over long rows prefetch: the
// processor's own prefetching ends with a page. It sets a register for
// fetchAhead.
func (a *assembler) twoPages() (ahead string) {
	a.op("MOVQ $8192, R11")
	return "R11"
}

// fetchAhead prefetches at the distance in bytes that is in a register, if one
// is named.
func (a *assembler) fetchAhead(at, ahead string, iteration int, tail bool) {
	a.fetch("PREFETCHT0", at, ahead, iteration, tail)
}

// fetchFar is fetchAhead for data that is not needed soon, and not for long.
func (a *assembler) fetchFar(at, ahead string, iteration int, tail bool) {
	a.fetch("PREFETCHNTA", at, ahead, iteration, tail)
}

func (a *assembler) fetch(instruction, at, ahead string, iteration int, tail bool) {
	const line = 64
	if ahead != "" && !tail && iteration*a.bytes()%line == 0 {
		a.op("%s %s(%s*1)", instruction, at, ahead)
	}
}

var (
	argN   = param{"n", "int"}
	argDst = param{"dst", "*float32"}
	argX   = param{"x", "*float32"}
	argY   = param{"y", "*float32"}
	argS   = param{"s", "float32"}
	argT   = param{"t", "float32"}
)
