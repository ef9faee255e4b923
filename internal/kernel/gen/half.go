package main

import "fmt"

// halfKernels convert between float32 and the 16-bit floats, eight at a time:
// as fast as memory with AVX2 already.
func (a *assembler) halfKernels() {
	if a.masks {
		return
	}
	half := func(name string) param { return param{name, "*uint16"} }
	for _, k := range []struct {
		name, doc string
		dst, src  param
		body      func(x, y int) // from x bytes behind SI to y bytes behind DI
		in, out   int            // bytes of eight elements
	}{
		{"widenF16", "converts n times eight f16.", argDst, half("x"), func(x, y int) { a.op("VCVTPH2PS %d(SI), Y0", x); a.op("VMOVUPS Y0, %d(DI)", y) }, 16, 32},
		{"widenBF16", "converts n times eight bf16.", argDst, half("x"), func(x, y int) {
			a.op("VPMOVZXWD %d(SI), Y0", x)
			a.op("VPSLLD $16, Y0, Y0")
			a.op("VMOVUPS Y0, %d(DI)", y)
		}, 16, 32},
		{"narrowF16", "rounds n times eight numbers to f16.", half("dst"), argX, func(x, y int) { a.op("VMOVUPS %d(SI), Y0", x); a.op("VCVTPS2PH $0, Y0, %d(DI)", y) }, 32, 16},
		{"narrowBF16", "rounds n times eight numbers to bf16.", half("dst"), argX, a.narrowBF16, 32, 16},
	} {
		a.function(k.name, k.doc, []param{argN, k.dst, k.src}, nil)
		a.op("MOVQ %s, CX", a.arg(argN))
		a.op("MOVQ %s, DI", a.arg(k.dst))
		a.op("MOVQ %s, SI", a.arg(k.src))
		for _, n := range []int{4, 1} {
			a.label(fmt.Sprint("eights", n))
			a.op("CMPQ CX, $%d", n)
			a.op("JLT less%d", n)
			for i := range n {
				k.body(i*k.in, i*k.out)
			}
			a.op("ADDQ $%d, SI", n*k.in)
			a.op("ADDQ $%d, DI", n*k.out)
			a.op("SUBQ $%d, CX", n)
			a.op("JMP eights%d", n)
			a.label(fmt.Sprint("less", n))
		}
		a.ret()
	}
}

// narrowBF16 adds half a unit less one and the last bit that is kept, so that
// the carry rounds to even. A NaN keeps its upper bits, and is quiet.
func (a *assembler) narrowBF16(x, y int) {
	words := func(w uint64) string { return a.constant(w<<32 | w) }
	a.op("VMOVUPS %d(SI), Y0", x)
	a.op("VPSRLD $16, Y0, Y1")
	a.op("VPOR %s, Y1, Y2", words(0x40))
	a.op("VPAND %s, Y1, Y1", words(1))
	a.op("VPADDD %s, Y1, Y1", words(0x7fff))
	a.op("VPADDD Y1, Y0, Y1")
	a.op("VPSRLD $16, Y1, Y1")
	a.choose("PS", unordered, "Y0", "Y0", "Y2", "Y1")
	a.op("VPACKUSDW Y1, Y1, Y1")
	a.op("VPERMQ $0x08, Y1, Y1")
	a.op("VMOVUPS X1, %d(DI)", y)
}
