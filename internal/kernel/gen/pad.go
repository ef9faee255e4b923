package main

import "fmt"

// Where the fields of a call that copies rows are.
const (
	padSrc = 8 * iota
	padSrcStep
	padDst
	padDstStep
	padRows
	padN
	padLeft
	padWidth
	padDst1
	padLeft1
	padFill
	padScale = padFill + 4
	padShift = padFill + 8
	padFloor = padFill + 12
)

// padArgs reads what all copies of rows have in common.
func (a *assembler) padArgs(name, doc string) {
	call := param{"call", "*kernel.PadCall"}
	a.function(name, doc, []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{padSrc, "SI"}, {padSrcStep, "R8"}, {padDst, "DI"}, {padDstStep, "R9"}, {padRows, "R10"}, {padN, "R11"}, {padLeft, "R12"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	a.op("VBROADCASTSS %d(AX), %s", padFill, a.v(padFillVector))
}

// fillUpTo stores whole vectors of fill from BX on while it is below limit.
func (a *assembler) fillUpTo(limit, name string) {
	a.label(name)
	a.op("CMPQ BX, %s", limit)
	a.op("JGE %sEnd", name)
	a.op("VMOVUPS %s, (BX)", a.v(padFillVector))
	a.op("ADDQ $%d, BX", a.bytes())
	a.op("JMP %s", name)
	a.label(name + "End")
}

// padPlain copies rows. Stores are whole vectors: each row is written after the
// end of the one before, the last one beyond its end.
func (a *assembler) padPlain(name, doc string, affine bool) {
	a.padArgs(name, doc)
	if affine {
		a.op("VBROADCASTSS %d(AX), %s", padScale, a.v(padScaleVector))
		a.op("VBROADCASTSS %d(AX), %s", padShift, a.v(padShiftVector))
		a.op("VBROADCASTSS %d(AX), %s", padFloor, a.v(padFloorVector))
	}
	a.op("MOVQ R11, CX")
	a.op("ANDQ $%d, CX", a.lanes-1)
	a.padMask("K1", padMask0)
	change := func() {
		if affine {
			a.op("VFMADD213PS %s, %s, %s", a.v(padShiftVector), a.v(padScaleVector), a.v(0))
			a.op("VMAXPS %s, %s, %s", a.v(0), a.v(padFloorVector), a.v(0))
		}
	}
	a.label("row")
	a.op("LEAQ (DI)(R12*4), R13")
	a.op("MOVQ DI, BX")
	a.fillUpTo("R13", "left")
	a.op("MOVQ SI, DX")
	a.op("MOVQ R11, CX")
	a.label("vectors")
	a.op("CMPQ CX, $%d", a.lanes)
	a.op("JLT rest")
	a.op("VMOVUPS (DX), %s", a.v(0))
	change()
	a.op("VMOVUPS %s, (R13)", a.v(0))
	a.op("ADDQ $%d, DX", a.bytes())
	a.op("ADDQ $%d, R13", a.bytes())
	a.op("SUBQ $%d, CX", a.lanes)
	a.op("JMP vectors")
	a.label("rest")
	a.op("TESTQ CX, CX")
	a.op("JZ right")
	if a.masks {
		a.op("VMOVUPS.Z (DX), K1, %s", a.v(0))
		change()
		a.op("VBLENDMPS %s, %s, K1, %s", a.v(0), a.v(padFillVector), a.v(0))
	} else {
		a.op("VMASKMOVPS (DX), %s, %s", a.v(padMask0), a.v(0))
		change()
		a.op("VBLENDVPS %s, %s, %s, %s", a.v(padMask0), a.v(0), a.v(padFillVector), a.v(0))
	}
	a.op("VMOVUPS %s, (R13)", a.v(0))
	a.op("ADDQ $%d, R13", a.bytes())
	a.label("right")
	a.op("MOVQ %d(AX), CX", padWidth)
	a.op("LEAQ (DI)(CX*4), CX")
	a.op("MOVQ R13, BX")
	a.fillUpTo("CX", "behind")
	a.op("ADDQ R8, SI")
	a.op("ADDQ R9, DI")
	a.op("DECQ R10")
	a.op("JNZ row")
	a.ret()
}

// padMask makes the mask of the first CX lanes, of a vector at most.
func (a *assembler) padMask(mask string, vector int) {
	if a.masks {
		a.op("MOVL $1, BX")
		a.op("SHLL CX, BX")
		a.op("DECL BX")
		a.op("KMOVW BX, %s", mask)
		return
	}
	a.op("LEAQ lanes%s<>+%d(SB), BX", a.suffix, 8*a.lanes)
	a.op("NEGQ CX")
	a.op("VMOVUPS (BX)(CX*4), %s", a.v(vector))
}

// splitPairs stores the elements of even number of two vectors at R13, the
// others at R15.
func (a *assembler) splitPairs() {
	if a.masks {
		a.op("VMOVAPS %s, %s", a.v(0), a.v(padSpare))
		a.op("VPERMT2PS %s, %s, %s", a.v(1), a.v(padEvenVector), a.v(0))
		a.op("VPERMT2PS %s, %s, %s", a.v(1), a.v(padOddVector), a.v(padSpare))
	} else {
		a.op("VSHUFPS $0xdd, %s, %s, %s", a.v(1), a.v(0), a.v(padSpare))
		a.op("VSHUFPS $0x88, %s, %s, %s", a.v(1), a.v(0), a.v(0))
		a.op("VPERMPD $0xd8, %s, %s", a.v(0), a.v(0))
		a.op("VPERMPD $0xd8, %s, %s", a.v(padSpare), a.v(padSpare))
	}
	a.op("VMOVUPS %s, (R13)", a.v(0))
	a.op("VMOVUPS %s, (R15)", a.v(padSpare))
	a.op("ADDQ $%d, R13", a.bytes())
	a.op("ADDQ $%d, R15", a.bytes())
}

// padPairs takes rows apart into elements of even and of odd number, which go
// to two places.
func (a *assembler) padPairs() {
	a.padArgs("padPairs", "is padRows of every second element from the first on, and of every second from the second on, to dst1 behind left1 fills.")
	if a.masks {
		a.op("VMOVUPS pairs%s<>+0(SB), %s", a.suffix, a.v(padEvenVector))
		a.op("VMOVUPS pairs%s<>+%d(SB), %s", a.suffix, a.bytes(), a.v(padOddVector))
	}
	a.op("MOVQ R11, DX")
	a.op("ANDQ $%d, DX", 2*a.lanes-1)
	for half, mask := range []string{"K1", "K2"} {
		// min(max(DX - half*lanes, 0), lanes)
		a.op("LEAQ %d(DX), CX", -half*a.lanes)
		a.op("XORQ BX, BX")
		a.op("TESTQ CX, CX")
		a.op("CMOVQLT BX, CX")
		a.op("MOVQ $%d, BX", a.lanes)
		a.op("CMPQ CX, BX")
		a.op("CMOVQGT BX, CX")
		a.padMask(mask, []int{padMask0, padMask1}[half])
	}
	a.label("row")
	a.op("MOVQ %d(AX), R15", padDst1)
	a.op("MOVQ %d(AX), CX", padLeft1)
	a.op("LEAQ (R15)(CX*4), CX")
	a.op("MOVQ R15, BX")
	a.fillUpTo("CX", "leftOdd")
	a.op("MOVQ CX, R15")
	a.op("LEAQ (DI)(R12*4), R13")
	a.op("MOVQ DI, BX")
	a.fillUpTo("R13", "left")
	a.op("MOVQ SI, DX")
	a.op("MOVQ R11, CX")
	a.label("vectors")
	a.op("CMPQ CX, $%d", 2*a.lanes)
	a.op("JLT rest")
	a.op("VMOVUPS (DX), %s", a.v(0))
	a.op("VMOVUPS %d(DX), %s", a.bytes(), a.v(1))
	a.splitPairs()
	a.op("ADDQ $%d, DX", 2*a.bytes())
	a.op("SUBQ $%d, CX", 2*a.lanes)
	a.op("JMP vectors")
	a.label("rest")
	a.op("TESTQ CX, CX")
	a.op("JZ right")
	for half, mask := range []string{"K1", "K2"} {
		at := fmt.Sprintf("%d(DX)", half*a.bytes())
		if a.masks {
			a.op("VMOVAPS %s, %s", a.v(padFillVector), a.v(half))
			a.op("VMOVUPS %s, %s, %s", at, mask, a.v(half))
			continue
		}
		m := a.v([]int{padMask0, padMask1}[half])
		a.op("VMASKMOVPS %s, %s, %s", at, m, a.v(half))
		a.op("VBLENDVPS %s, %s, %s, %s", m, a.v(half), a.v(padFillVector), a.v(half))
	}
	a.splitPairs()
	a.label("right")
	a.op("MOVQ %d(AX), CX", padWidth)
	a.op("LEAQ (DI)(CX*4), DX")
	a.op("MOVQ R13, BX")
	a.fillUpTo("DX", "behind")
	a.op("MOVQ %d(AX), DX", padDst1)
	a.op("LEAQ (DX)(CX*4), DX")
	a.op("MOVQ R15, BX")
	a.fillUpTo("DX", "behindOdd")
	a.op("ADDQ R8, SI")
	a.op("ADDQ R9, DI")
	a.op("ADDQ R9, %d(AX)", padDst1)
	a.op("DECQ R10")
	a.op("JNZ row")
	a.ret()
	a.pairsTable()
}

// pairsTable holds which elements of two vectors are of even number, and which
// are not.
func (a *assembler) pairsTable() {
	if !a.masks {
		return
	}
	fmt.Fprintf(&a.text, "\n")
	for i := range 2 * a.lanes {
		fmt.Fprintf(&a.text, "DATA pairs%s<>+%d(SB)/4, $%d\n", a.suffix, 4*i, 2*(i%a.lanes)+i/a.lanes)
	}
	fmt.Fprintf(&a.text, "GLOBL pairs%s<>(SB), RODATA|NOPTR, $%d\n", a.suffix, 2*a.bytes())
}
