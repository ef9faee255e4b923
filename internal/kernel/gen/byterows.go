package main

// Loops over rows of bytes in vectors of 32, on either machine.

func (a *assembler) byteRows() {
	for _, k := range []struct{ field, name, max string }{{"MaxU8", "maxU8x", "VPMAXUB"}, {"MaxI8", "maxI8x", "VPMAXSB"}} {
		a.maxBytes(k.name, k.max)
		a.set(k.field, k.name+a.suffix)
	}
	a.evenRows()
	a.set("EvenRows", "evenRows"+a.suffix)
	if !a.masks {
		a.widenBytes()
		a.set("Widen", "widenBytes"+a.suffix)
	}
}

func (a *assembler) maxBytes(name, op string) {
	in := []param{{"n", "int"}, {"dst", "*byte"}, {"x", "*byte"}, {"y", "*byte"}}
	a.function(name, "is max(x[i], y[i]) for n times 32 bytes; n is not 0.", in, nil)
	for i, reg := range []string{"CX", "DI", "SI", "R8"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.op("XORQ BX, BX")
	a.label("vectors")
	a.op("VMOVDQU (SI)(BX*1), Y0")
	a.op("%s (R8)(BX*1), Y0, Y0", op)
	a.op("VMOVDQU Y0, (DI)(BX*1)")
	a.op("ADDQ $32, BX")
	a.op("DECQ CX")
	a.op("JNZ vectors")
	a.ret()
}

// widenBytes makes bytes numbers of 16 bits, and adds them up.
func (a *assembler) widenBytes() {
	in := []param{{"n", "int"}, {"dst", "*byte"}, {"x", "*byte"}, {"flip", "uint64"}}
	sum := param{"sum", "int"}
	a.function("widenBytes", "widens n times 16 bytes, with flip, eight of a kind, taken, and returns their sum; n is not 0.", in, []param{sum})
	for i, reg := range []string{"CX", "DI", "SI"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.op("VPBROADCASTQ %s, X8", a.arg(in[3]))
	a.op("VPXOR X9, X9, X9")
	a.op("VPXOR X10, X10, X10")
	a.label("vectors")
	a.op("VPXOR (SI), X8, X0")
	a.op("VPMOVZXBW X0, Y1")
	a.op("VMOVDQU Y1, (DI)")
	a.op("VPSADBW X9, X0, X0")
	a.op("VPADDQ X0, X10, X10")
	a.op("ADDQ $16, SI")
	a.op("ADDQ $32, DI")
	a.op("DECQ CX")
	a.op("JNZ vectors")
	a.op("VPSHUFD $0x4e, X10, X0")
	a.op("VPADDQ X0, X10, X10")
	a.op("VMOVQ X10, %s", a.result(sum))
	a.ret()
}

// evenRows copies every second byte of rows, 16 at a time, the last 16 of a row
// again.
func (a *assembler) evenRows() {
	in := []param{{"rows", "int"}, {"n", "int"}, {"dst", "*byte"}, {"dstRow", "int"}, {"src", "*byte"}, {"srcRow", "int"}}
	a.function("evenRows", "sets rows of n bytes, at least 16, to every second one of 2n bytes; rows is not 0.", in, nil)
	for i, reg := range []string{"R8", "BX", "R9", "R10", "R11", "R12"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.op("VMOVUPS %s, X2", a.constant(0x00ff00ff00ff00ff))
	a.op("SUBQ $16, BX")
	sixteen := func() {
		a.op("VPAND (R11)(DX*2), X2, X0")
		a.op("VPAND 16(R11)(DX*2), X2, X1")
		a.op("VPACKUSWB X1, X0, X0")
		a.op("VMOVDQU X0, (R9)(DX*1)")
	}
	a.label("rows")
	a.op("XORQ DX, DX")
	a.op("CMPQ BX, $0")
	a.op("JE last")
	a.label("pieces")
	sixteen()
	a.op("ADDQ $16, DX")
	a.op("CMPQ DX, BX")
	a.op("JLT pieces")
	a.label("last")
	a.op("MOVQ BX, DX")
	sixteen()
	a.op("ADDQ R10, R9")
	a.op("ADDQ R12, R11")
	a.op("DECQ R8")
	a.op("JNZ rows")
	a.ret()
}
