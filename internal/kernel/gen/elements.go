package main

import (
	"fmt"
	"strings"
)

// Loops over whole groups of elements of any type, all of one signature: the
// rest of a row goes element by element in Go. They are named by their
// operation, the element types, and which operands are vectors (v) or one
// element (s).

// elementType is an element type of these loops.
type elementType struct {
	name   string
	size   int
	float  bool
	signed bool
}

var (
	typeF32  = elementType{"f32", 4, true, true}
	typeF64  = elementType{"f64", 8, true, true}
	typeBool = elementType{"bool", 1, false, false}
	intTypes = []elementType{{"i8", 1, false, true}, {"u8", 1, false, false}, {"i16", 2, false, true}, {"u16", 2, false, false}, {"i32", 4, false, true}, {"u32", 4, false, false}, {"i64", 8, false, true}, {"u64", 8, false, false}}
	allTypes = append([]elementType{typeF32, typeF64}, intTypes...)
)

// letter is the end of an integer instruction's name, for the size of its
// elements.
func (t elementType) letter() string { return map[int]string{1: "B", 2: "W", 4: "D", 8: "Q"}[t.size] }

func (t elementType) count(a *elementWriter) int { return a.bytes() / t.size }

// Vectors of a loop: those of a body, and the operands that are one element.
const (
	scalarVector = 8 // and the two behind it
	onesVector   = 11
	zeroVector   = 12
)

var elementPointers = []string{"DI", "SI", "DX", "R8"}

// emit writes one function. steps are the bytes by which a group advances dst
// and the operands, 0 for absent operands and those of one element; start comes
// before the loop. at returns the current place behind a pointer.
func (a *elementWriter) emit(name string, elements, unroll int, steps []int, start func(), body func(at func(operand, offset int) string)) {
	words := strings.Fields(name)
	symbol := words[0]
	for _, w := range words[1:] {
		symbol += strings.ToUpper(w[:1]) + w[1:]
	}
	in := []param{argN, {"dst", "*byte"}, {"x", "*byte"}, {"y", "*byte"}, {"z", "*byte"}}
	a.function(symbol, "", in, nil)
	a.loops[name] = elementLoop{elements, symbol + a.suffix}
	a.op("MOVQ %s, CX", a.arg(in[0]))
	for i, p := range elementPointers {
		at := a.arg(in[1+i])
		if i < len(steps) {
			a.op("MOVQ %s, %s", at, p)
		}
	}
	start()
	iterations := func(n int, label string) {
		a.label(label)
		for u := range n {
			body(func(operand, offset int) string {
				return fmt.Sprintf("%d(%s)", u*steps[operand]+offset, elementPointers[operand])
			})
		}
		for i, s := range steps {
			if s != 0 {
				a.op("ADDQ $%d, %s", n*s, elementPointers[i])
			}
		}
	}
	if unroll > 1 {
		a.op("CMPQ CX, $%d", unroll)
		a.op("JLT few")
		iterations(unroll, "several")
		a.op("SUBQ $%d, CX", unroll)
		a.op("CMPQ CX, $%d", unroll)
		a.op("JGE several")
		a.label("few")
		a.op("TESTQ CX, CX")
		a.op("JZ done")
	}
	iterations(1, "one")
	a.op("DECQ CX")
	a.op("JNZ one")
	a.label("done")
	if a.leave != nil {
		a.leave()
	}
	a.ret()
}

// broadcast fills a vector with the element behind a pointer.
func (a *elementWriter) broadcast(t elementType, pointer string, to int) {
	a.op("VPBROADCAST%s (%s), %s", t.letter(), pointer, a.v(to))
}

// forms of an operation of two operands.
var elementForms = []string{"vv", "vs", "sv"}

// binary emits the forms of an operation of two operands, whose code leaves x
// op y in vector to. x is a register; y one or a place.
func (a *elementWriter) binary(name string, t elementType, forms []string, code func(x, y string, to int)) {
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
				start = func() { a.broadcast(t, elementPointers[1+i], scalarVector) }
			}
		}
		a.emit(name+" "+t.name+" "+form, t.count(a), unroll, steps, start, func(at func(operand, offset int) string) {
			x, y := a.v(0), at(2, 0)
			if form[0] == 's' {
				x = a.v(scalarVector)
			} else {
				a.op("VMOVUPS %s, %s", at(1, 0), x)
			}
			if form[1] == 's' {
				y = a.v(scalarVector)
			}
			code(x, y, 1)
			a.op("VMOVUPS %s, %s", a.v(1), at(0, 0))
		})
	}
}

// elementWriter writes the loops of a machine.
type elementWriter struct {
	*assembler
	loops map[string]elementLoop
	leave func() // comes behind the loop, if it is there
}

func (a *assembler) elementKernels() {
	w := &elementWriter{assembler: a, loops: map[string]elementLoop{}}
	w.arithmetic()
	w.unary()
	w.compare()
	w.logic()
	w.selects()
	w.casts()
	w.totals()
	w.moves()
	w.functions()
	a.transposeWords()
	a.set("TransposeWords", "transposeWords"+a.suffix)
	w.table()
	a.group.loops = w.loops
}

func (a *elementWriter) arithmetic() {
	both := []string{"vv", "vs"}
	for _, k := range []struct {
		name, instruction string
		forms             []string
	}{{"add", "VADDPD", both}, {"sub", "VSUBPD", elementForms}, {"mul", "VMULPD", both}, {"div", "VDIVPD", elementForms}} {
		a.binary(k.name, typeF64, k.forms, func(x, y string, to int) { a.op("%s %s, %s, %s", k.instruction, y, x, a.v(to)) })
	}
	for _, k := range []struct{ name, instruction string }{{"min", "VMINPD"}, {"max", "VMAXPD"}} {
		a.binary(k.name, typeF64, both, func(x, y string, to int) {
			a.op("%s %s, %s, %s", k.instruction, y, x, a.v(to)) // y where one is NaN
			a.choose("PD", unordered, x, x, x, a.v(to))
		})
	}
	for _, t := range intTypes {
		if t.signed { // the same for those without a sign
			a.binary("add", t, both, func(x, y string, to int) { a.op("VPADD%s %s, %s, %s", t.letter(), y, x, a.v(to)) })
			a.binary("sub", t, elementForms, func(x, y string, to int) { a.op("VPSUB%s %s, %s, %s", t.letter(), y, x, a.v(to)) })
			if t.size > 1 {
				a.binary("mul", t, both, func(x, y string, to int) { a.product(t, x, y, to) })
			}
		}
		for _, most := range []bool{false, true} {
			name := map[bool]string{false: "min", true: "max"}[most]
			a.binary(name, t, both, func(x, y string, to int) { a.extreme(t, most, x, y, to) })
		}
	}
	bytes := elementType{name: "bits", size: 1}
	for _, k := range []struct{ name, instruction string }{{"and", "VANDPS"}, {"or", "VORPS"}, {"xor", "VXORPS"}} {
		a.binary(k.name, bytes, []string{"vv"}, func(x, y string, to int) { a.op("%s %s, %s, %s", k.instruction, y, x, a.v(to)) })
	}
}

// product multiplies integers. Without an instruction for 64 bits the product
// is put together from those of halves.
func (a *elementWriter) product(t elementType, x, y string, to int) {
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

func (a *elementWriter) extreme(t elementType, most bool, x, y string, to int) {
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

// unary has the functions of one operand, and of limits.
func (a *elementWriter) unary() {
	unary := func(name string, t elementType, code func(x string)) {
		a.emit(name+" "+t.name, t.count(a), 2, []int{a.bytes(), a.bytes()}, func() {}, func(at func(operand, offset int) string) {
			a.op("VMOVUPS %s, %s", at(1, 0), a.v(0))
			code(a.v(0))
			a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
		})
	}
	unary("abs", typeF64, func(x string) { a.op("VANDPD %s, %s, %s", a.constant(1<<63-1), x, x) })
	unary("neg", typeF64, func(x string) { a.op("VXORPD %s, %s, %s", a.constant(1<<63), x, x) })
	unary("sqrt", typeF64, func(x string) { a.op("VSQRTPD %s, %s", x, x) })
	for mode, name := range []string{"round", "floor", "ceil"} {
		unary(name, typeF64, func(x string) {
			a.op("%s $%d, %s, %s", map[bool]string{true: "VRNDSCALEPD", false: "VROUNDPD"}[a.masks], 8+mode, x, x)
		})
	}
	for _, t := range intTypes {
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
	for _, t := range append([]elementType{typeF64}, intTypes...) {
		a.emit("clamp "+t.name, t.count(a), 2, []int{a.bytes(), a.bytes(), 0, 0}, func() {
			a.broadcast(t, "DX", scalarVector)
			a.broadcast(t, "R8", scalarVector+1)
		}, func(at func(operand, offset int) string) {
			a.op("VMOVUPS %s, %s", at(1, 0), a.v(0))
			if t.float { // the first operand as written here where it is NaN
				a.op("VMAXPD %s, %s, %s", a.v(0), a.v(scalarVector), a.v(0))
				a.op("VMINPD %s, %s, %s", a.v(0), a.v(scalarVector+1), a.v(1))
			} else {
				a.extreme(t, true, a.v(0), a.v(scalarVector), 5)
				a.extreme(t, false, a.v(5), a.v(scalarVector+1), 1)
			}
			a.op("VMOVUPS %s, %s", a.v(1), at(0, 0))
		})
	}
}

// wide ends the names of integer instructions on bits, which have a size with
// mask registers.
func (a *elementWriter) wide() string {
	if a.masks {
		return "Q"
	}
	return ""
}
