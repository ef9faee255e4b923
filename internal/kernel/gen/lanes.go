package main

import (
	"fmt"
	"strings"
)

// Lanes are loops over whole groups of elements of any type, all of one signature: what is left of a row goes element by element in Go. A
// table names them by what they do, the element types, and which operands are vectors (v) or one element (s).

// laneType is an element type of lanes.
type laneType struct {
	name   string
	size   int
	float  bool
	signed bool
}

var (
	laneF32   = laneType{"f32", 4, true, true}
	laneF64   = laneType{"f64", 8, true, true}
	laneBool  = laneType{"bool", 1, false, false}
	laneInts  = []laneType{{"i8", 1, false, true}, {"u8", 1, false, false}, {"i16", 2, false, true}, {"u16", 2, false, false}, {"i32", 4, false, true}, {"u32", 4, false, false}, {"i64", 8, false, true}, {"u64", 8, false, false}}
	laneTypes = append([]laneType{laneF32, laneF64}, laneInts...)
)

// letter is the end of an integer instruction's name, for the size of its elements.
func (t laneType) letter() string { return map[int]string{1: "B", 2: "W", 4: "D", 8: "Q"}[t.size] }

func (t laneType) count(a *laneWriter) int { return a.bytes() / t.size }

// Vectors of lanes: those of a body, and the operands that are one element.
const (
	laneScalar = 8 // and the two behind it
	laneOnes   = 11
	laneZero   = 12
)

var lanePointers = []string{"DI", "SI", "DX", "R8"}

// lane emits one function. steps are the bytes by which a group moves dst and the operands on, 0 for those that are one element or are
// not there; start comes before the loop. at gives the place in turn behind a pointer.
func (a *laneWriter) lane(name string, elements, unroll int, steps []int, start func(), body func(at func(operand, offset int) string)) {
	words := strings.Fields(name)
	symbol := words[0]
	for _, w := range words[1:] {
		symbol += strings.ToUpper(w[:1]) + w[1:]
	}
	in := []param{argN, {"dst", "*byte"}, {"x", "*byte"}, {"y", "*byte"}, {"z", "*byte"}}
	a.function(symbol, "", in, nil)
	a.entries = append(a.entries, fmt.Sprintf("%q: {step: %d, run: %s},", name, elements, symbol+a.suffix))
	a.op("MOVQ %s, CX", a.arg(in[0]))
	for i, p := range lanePointers {
		at := a.arg(in[1+i])
		if i < len(steps) {
			a.op("MOVQ %s, %s", at, p)
		}
	}
	start()
	turns := func(n int, label string) {
		a.label(label)
		for u := range n {
			body(func(operand, offset int) string {
				return fmt.Sprintf("%d(%s)", u*steps[operand]+offset, lanePointers[operand])
			})
		}
		for i, s := range steps {
			if s != 0 {
				a.op("ADDQ $%d, %s", n*s, lanePointers[i])
			}
		}
	}
	if unroll > 1 {
		a.op("CMPQ CX, $%d", unroll)
		a.op("JLT few")
		turns(unroll, "several")
		a.op("SUBQ $%d, CX", unroll)
		a.op("CMPQ CX, $%d", unroll)
		a.op("JGE several")
		a.label("few")
		a.op("TESTQ CX, CX")
		a.op("JZ done")
	}
	turns(1, "one")
	a.op("DECQ CX")
	a.op("JNZ one")
	a.label("done")
	if a.leave != nil {
		a.leave()
	}
	a.ret()
}

// broadcast fills a vector with the element behind a pointer.
func (a *laneWriter) broadcast(t laneType, pointer string, to int) {
	a.op("VPBROADCAST%s (%s), %s", t.letter(), pointer, a.v(to))
}

// forms of an operation of two operands.
var laneForms = []string{"vv", "vs", "sv"}

// laneBinary emits the forms of an operation of two operands, whose code leaves x op y in vector to. x is a register; y one or a place.
func (a *laneWriter) laneBinary(name string, t laneType, forms []string, code func(x, y string, to int)) {
	unroll := 2
	if t.size >= 4 { // the common ones
		unroll = 4
	}
	for _, form := range forms {
		steps := []int{a.bytes(), a.bytes(), a.bytes()}
		start := func() {}
		for i := range 2 {
			if form[i] == 's' {
				steps[1+i] = 0
				start = func() { a.broadcast(t, lanePointers[1+i], laneScalar) }
			}
		}
		a.lane(name+" "+t.name+" "+form, t.count(a), unroll, steps, start, func(at func(operand, offset int) string) {
			x, y := a.v(0), at(2, 0)
			if form[0] == 's' {
				x = a.v(laneScalar)
			} else {
				a.op("VMOVUPS %s, %s", at(1, 0), x)
			}
			if form[1] == 's' {
				y = a.v(laneScalar)
			}
			code(x, y, 1)
			a.op("VMOVUPS %s, %s", a.v(1), at(0, 0))
		})
	}
}

// laneWriter collects the entries of the table of lanes.
type laneWriter struct {
	*assembler
	entries []string
	leave   func() // comes behind the loop, if it is there
}

func (a *assembler) laneKernels() {
	w := &laneWriter{assembler: a}
	w.laneArithmetic()
	w.laneUnary()
	w.laneCompare()
	w.laneLogic()
	w.laneSelect()
	w.laneCasts()
	w.laneTotals()
	w.laneMoves()
	w.laneFunctions()
	fmt.Fprintf(&a.stubs, "\n// lanes%s says what each function computes, for groups of how many elements; n counts groups, and is not 0.\n", a.suffix)
	fmt.Fprintf(&a.stubs, "var lanes%s = map[string]lane{\n%s\n}\n", a.suffix, strings.Join(w.entries, "\n"))
}

func (a *laneWriter) laneArithmetic() {
	both := []string{"vv", "vs"}
	for _, k := range []struct {
		name, instruction string
		forms             []string
	}{{"add", "VADDPD", both}, {"sub", "VSUBPD", laneForms}, {"mul", "VMULPD", both}, {"div", "VDIVPD", laneForms}} {
		a.laneBinary(k.name, laneF64, k.forms, func(x, y string, to int) { a.op("%s %s, %s, %s", k.instruction, y, x, a.v(to)) })
	}
	for _, k := range []struct{ name, instruction string }{{"min", "VMINPD"}, {"max", "VMAXPD"}} {
		a.laneBinary(k.name, laneF64, both, func(x, y string, to int) {
			a.op("%s %s, %s, %s", k.instruction, y, x, a.v(to)) // y where one is NaN
			a.choose("PD", unordered, x, x, x, a.v(to))
		})
	}
	for _, t := range laneInts {
		if t.signed { // the same for those without a sign
			a.laneBinary("add", t, both, func(x, y string, to int) { a.op("VPADD%s %s, %s, %s", t.letter(), y, x, a.v(to)) })
			a.laneBinary("sub", t, laneForms, func(x, y string, to int) { a.op("VPSUB%s %s, %s, %s", t.letter(), y, x, a.v(to)) })
			if t.size > 1 {
				a.laneBinary("mul", t, both, func(x, y string, to int) { a.laneProduct(t, x, y, to) })
			}
		}
		for _, most := range []bool{false, true} {
			name := map[bool]string{false: "min", true: "max"}[most]
			a.laneBinary(name, t, both, func(x, y string, to int) { a.laneExtreme(t, most, x, y, to) })
		}
	}
	bytes := laneType{name: "bits", size: 1}
	for _, k := range []struct{ name, instruction string }{{"and", "VANDPS"}, {"or", "VORPS"}, {"xor", "VXORPS"}} {
		a.laneBinary(k.name, bytes, []string{"vv"}, func(x, y string, to int) { a.op("%s %s, %s, %s", k.instruction, y, x, a.v(to)) })
	}
}

// laneProduct multiplies integers. Without an instruction for 64 bits the product is put together from those of halves.
func (a *laneWriter) laneProduct(t laneType, x, y string, to int) {
	if t.size < 8 || a.masks {
		a.op("VPMULL%s %s, %s, %s", t.letter(), y, x, a.v(to))
		return
	}
	a.op("VPSHUFD $0xb1, %s, %s", y, a.v(2)) // y's halves changed round
	a.op("VPMULLD %s, %s, %s", x, a.v(2), a.v(2))
	a.op("VPSRLQ $32, %s, %s", a.v(2), a.v(3))
	a.op("VPADDD %s, %s, %s", a.v(3), a.v(2), a.v(2))
	a.op("VPSLLQ $32, %s, %s", a.v(2), a.v(2))
	a.op("VPMULUDQ %s, %s, %s", y, x, a.v(to))
	a.op("VPADDQ %s, %s, %s", a.v(2), a.v(to), a.v(to))
}

func (a *laneWriter) laneExtreme(t laneType, most bool, x, y string, to int) {
	if t.size < 8 || a.masks {
		sign := map[bool]string{true: "S", false: "U"}[t.signed]
		a.op("VP%s%s%s %s, %s, %s", map[bool]string{false: "MIN", true: "MAX"}[most], sign, t.letter(), y, x, a.v(to))
		return
	}
	a.op("VMOVUPS %s, %s", y, a.v(to))
	p, q := x, a.v(to)
	if !t.signed {
		p, q = a.v(2), a.v(3)
		a.op("VPXOR %s, %s, %s", a.constant(1<<63), x, p)
		a.op("VPXOR %s, %s, %s", a.constant(1<<63), a.v(to), q)
	}
	if most {
		a.op("VPCMPGTQ %s, %s, %s", q, p, a.v(4)) // x > y
	} else {
		a.op("VPCMPGTQ %s, %s, %s", p, q, a.v(4))
	}
	a.op("VPBLENDVB %s, %s, %s, %s", a.v(4), x, a.v(to), a.v(to))
}

// laneUnary has the functions of one operand, and of limits.
func (a *laneWriter) laneUnary() {
	unary := func(name string, t laneType, code func(x string)) {
		a.lane(name+" "+t.name, t.count(a), 2, []int{a.bytes(), a.bytes()}, func() {}, func(at func(operand, offset int) string) {
			a.op("VMOVUPS %s, %s", at(1, 0), a.v(0))
			code(a.v(0))
			a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
		})
	}
	unary("abs", laneF64, func(x string) { a.op("VANDPD %s, %s, %s", a.constant(1<<63-1), x, x) })
	unary("neg", laneF64, func(x string) { a.op("VXORPD %s, %s, %s", a.constant(1<<63), x, x) })
	unary("sqrt", laneF64, func(x string) { a.op("VSQRTPD %s, %s", x, x) })
	for mode, name := range []string{"round", "floor", "ceil"} {
		unary(name, laneF64, func(x string) {
			a.op("%s $%d, %s, %s", map[bool]string{true: "VRNDSCALEPD", false: "VROUNDPD"}[a.masks], 8+mode, x, x)
		})
	}
	for _, t := range laneInts {
		if !t.signed {
			continue
		}
		unary("neg", t, func(x string) {
			a.op("VPXOR%s %s, %s, %s", a.wide(), a.v(1), a.v(1), a.v(1))
			a.op("VPSUB%s %s, %s, %s", t.letter(), x, a.v(1), x)
		})
		unary("abs", t, func(x string) {
			if t.size < 8 || a.masks {
				a.op("VPABS%s %s, %s", t.letter(), x, x)
				return
			}
			a.op("VPXOR %s, %s, %s", a.v(1), a.v(1), a.v(1))
			a.op("VPCMPGTQ %s, %s, %s", x, a.v(1), a.v(1))
			a.op("VPXOR %s, %s, %s", a.v(1), x, x)
			a.op("VPSUBQ %s, %s, %s", a.v(1), x, x)
		})
	}
	for _, t := range append([]laneType{laneF64}, laneInts...) {
		a.lane("clamp "+t.name, t.count(a), 2, []int{a.bytes(), a.bytes(), 0, 0}, func() {
			a.broadcast(t, "DX", laneScalar)
			a.broadcast(t, "R8", laneScalar+1)
		}, func(at func(operand, offset int) string) {
			a.op("VMOVUPS %s, %s", at(1, 0), a.v(0))
			if t.float { // the first operand as written here where it is NaN
				a.op("VMAXPD %s, %s, %s", a.v(0), a.v(laneScalar), a.v(0))
				a.op("VMINPD %s, %s, %s", a.v(0), a.v(laneScalar+1), a.v(1))
			} else {
				a.laneExtreme(t, true, a.v(0), a.v(laneScalar), 5)
				a.laneExtreme(t, false, a.v(5), a.v(laneScalar+1), 1)
			}
			a.op("VMOVUPS %s, %s", a.v(1), at(0, 0))
		})
	}
}

// wide ends the names of integer instructions on bits, which have a size with mask registers.
func (a *laneWriter) wide() string {
	if a.masks {
		return "Q"
	}
	return ""
}
