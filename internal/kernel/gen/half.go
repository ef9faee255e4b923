package main

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
		body      func()
		in, out   int // bytes of eight elements
	}{
		{"widenF16", "converts n times eight f16.", argDst, half("x"), func() { a.op("VCVTPH2PS (SI), Y0"); a.op("VMOVUPS Y0, (DI)") }, 16, 32},
		{"widenBF16", "converts n times eight bf16.", argDst, half("x"), func() {
			a.op("VPMOVZXWD (SI), Y0")
			a.op("VPSLLD $16, Y0, Y0")
			a.op("VMOVUPS Y0, (DI)")
		}, 16, 32},
		{"narrowF16", "rounds n times eight numbers to f16.", half("dst"), argX, func() { a.op("VMOVUPS (SI), Y0"); a.op("VCVTPS2PH $0, Y0, (DI)") }, 32, 16},
		{"narrowBF16", "rounds n times eight numbers to bf16.", half("dst"), argX, a.narrowBF16, 32, 16},
	} {
		a.function(k.name, k.doc, []param{argN, k.dst, k.src}, nil)
		a.op("MOVQ %s, CX", a.arg(argN))
		a.op("MOVQ %s, DI", a.arg(k.dst))
		a.op("MOVQ %s, SI", a.arg(k.src))
		a.label("eight")
		k.body()
		a.op("ADDQ $%d, SI", k.in)
		a.op("ADDQ $%d, DI", k.out)
		a.op("DECQ CX")
		a.op("JNZ eight")
		a.ret()
	}
}

// narrowBF16 adds half a unit less one and the last bit that is kept, so that
// the carry rounds to even. A NaN keeps its upper bits, and is quiet.
func (a *assembler) narrowBF16() {
	words := func(w uint64) string { return a.constant(w<<32 | w) }
	a.op("VMOVUPS (SI), Y0")
	a.op("VPSRLD $16, Y0, Y1")
	a.op("VPOR %s, Y1, Y2", words(0x40))
	a.op("VPAND %s, Y1, Y1", words(1))
	a.op("VPADDD %s, Y1, Y1", words(0x7fff))
	a.op("VPADDD Y1, Y0, Y1")
	a.op("VPSRLD $16, Y1, Y1")
	a.choose("PS", unordered, "Y0", "Y0", "Y2", "Y1")
	a.op("VPACKUSDW Y1, Y1, Y1")
	a.op("VPERMQ $0x08, Y1, Y1")
	a.op("VMOVUPS X1, (DI)")
}
