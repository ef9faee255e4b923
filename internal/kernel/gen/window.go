package main

import "fmt"

// Kernels of windows that stay in one channel: depthwise convolutions and pools. Rows of the input are copied first, with what stands for
// padding around them, and taken apart by the stride, so that every tap reads neighbours; then all taps of an output are summed, or the
// largest is taken.
//
// Arguments come in structs, whose fields are read at these offsets.
const (
	windowSrc = 8 * iota
	windowRowStep
	windowOffsets
	windowTaps
	windowWeights
	windowOut
	windowOutStep
	windowRows
	windowCols
	windowResidual
	windowResidualStep
	windowScale
	windowBias
	windowHigh = windowBias + 8
	windowLow  = windowBias + 4
)

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

const windowGroup = 4 // rows that are computed together

func (a *assembler) windowKernels() {
	a.window("windowSum", "sums weighted taps: out = min(max(bias + sum + residual, low), high).")
	a.window("windowMax", "takes the largest tap, NaN if any is.")
	a.window("windowMean", "sums taps, times a factor for each column.")
	a.padPlain("padRows", "copies rows with fill before, behind and up to width.", false)
	a.padPlain("padAffine", "is padRows of max(x*scale + shift, floor).", true)
	a.padPairs()
	a.byKind("windows", "Window", "windowSum", "windowMax", "windowMean")
	a.byKind("pads", "Pad", "padRows", "padAffine", "padPairs")
}

// byKind declares what calls the loop of a kind, of which the last is for all others.
func (a *assembler) byKind(name, typ string, loops ...string) {
	kinds := map[string]string{"windowSum": "WindowSum", "windowMax": "WindowMax", "padRows": "PadPlain", "padAffine": "PadAffine"}
	fmt.Fprintf(&a.stubs, "\nfunc %s%s(kind kernel.%sKind, call kernel.%[3]sCall) {\n\tswitch kind {\n", name, a.suffix, typ)
	for _, l := range loops {
		label := "default"
		if kinds[l] != "" {
			label = "case kernel." + kinds[l]
		}
		fmt.Fprintf(&a.stubs, "\t%s:\n\t\t%s%s(&call)\n", label, l, a.suffix)
	}
	a.stubs.WriteString("\t}\n}\n")
	a.set(capital(name), name+a.suffix)
}

// window writes rows of outputs. Vectors of the source are read whole.
func (a *assembler) window(name, doc string) {
	call := param{"call", "*kernel.WindowCall"}
	a.function(name, doc, []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	a.op("MOVQ %d(AX), SI", windowSrc)
	a.op("MOVQ %d(AX), R8", windowRowStep)
	a.op("LEAQ (R8)(R8*2), R9")
	a.op("MOVQ %d(AX), DI", windowOut)
	a.op("MOVQ %d(AX), R15", windowResidual)
	const first, weight, spare = windowGroup, windowGroup + 1, windowGroup + 2
	low, high := a.v(windowGroup+3), a.v(windowGroup+4)
	switch name {
	case "windowSum":
		a.op("VBROADCASTSS %d(AX), %s", windowBias, a.v(first))
		a.op("VBROADCASTSS %d(AX), %s", windowLow, low)
		a.op("VBROADCASTSS %d(AX), %s", windowHigh, high)
	case "windowMax":
		a.op("VMOVUPS %s, %s", a.constant(0xff800000ff800000), a.v(first))
	default:
		a.op("VXORPS %s, %s, %s", a.v(first), a.v(first), a.v(first))
	}
	a.label("group")
	for rows := windowGroup; rows >= 1; rows-- {
		if rows > 1 {
			a.op("CMPQ %d(AX), $%d", windowRows, rows)
			a.op("JLT fewer%d", rows-1)
		}
		a.windowRowGroup(name, rows, first, weight, spare, low, high)
		a.op("LEAQ (SI)(R8*%d), SI", map[int]int{4: 4, 3: 2, 2: 2, 1: 1}[rows])
		if rows == 3 {
			a.op("ADDQ R8, SI")
		}
		for _, p := range []struct {
			field int
			reg   string
		}{{windowOutStep, "DI"}, {windowResidualStep, "R15"}} {
			a.op("MOVQ %d(AX), BX", p.field)
			for range rows {
				a.op("ADDQ BX, %s", p.reg)
			}
		}
		a.op("SUBQ $%d, %d(AX)", rows, windowRows)
		a.op("JNZ group")
		a.ret()
		if rows > 1 {
			a.label(fmt.Sprintf("fewer%d", rows-1))
		}
	}
}

// windowRowGroup walks over the columns of a few rows. DX counts bytes along them, CX the columns that are left.
func (a *assembler) windowRowGroup(name string, rows, first, weight, spare int, low, high string) {
	l := func(s string) string { return fmt.Sprint(s, rows) }
	rowAt := [...]string{"(BX)", "(BX)(R8*1)", "(BX)(R8*2)", "(BX)(R9*1)"}
	a.op("XORQ DX, DX")
	a.op("MOVQ %d(AX), CX", windowCols)
	a.label(l("columns"))
	for i := range rows {
		a.op("VMOVAPS %s, %s", a.v(first), a.v(i))
	}
	a.op("MOVQ %d(AX), R10", windowOffsets)
	a.op("MOVQ %d(AX), R11", windowWeights)
	a.op("MOVQ %d(AX), R12", windowTaps)
	a.op("LEAQ (SI)(DX*1), R13")
	a.label(l("tap"))
	a.op("MOVLQSX (R10), BX")
	a.op("ADDQ R13, BX")
	if name == "windowSum" {
		a.op("VBROADCASTSS (R11), %s", a.v(weight))
		a.op("ADDQ $4, R11")
	}
	for i := range rows {
		switch name {
		case "windowSum":
			a.op("VFMADD231PS %s, %s, %s", rowAt[i], a.v(weight), a.v(i))
		case "windowMean":
			a.op("VADDPS %s, %s, %s", rowAt[i], a.v(i), a.v(i))
		default:
			a.takeMax(rowAt[i], i, weight, spare)
		}
	}
	a.op("ADDQ $4, R10")
	a.op("DECQ R12")
	a.op("JNZ %s", l("tap"))
	a.op("CMPQ CX, $%d", a.lanes)
	a.op("JLT %s", l("some"))
	a.windowStore(name, rows, spare, low, high, "", l("whole"))
	a.op("ADDQ $%d, DX", a.bytes())
	a.op("SUBQ $%d, CX", a.lanes)
	a.op("JNZ %s", l("columns"))
	a.op("JMP %s", l("next"))
	a.label(l("some"))
	mask := tailMask
	if a.masks {
		a.op("MOVL $1, BX")
		a.op("SHLL CX, BX")
		a.op("DECL BX")
		a.op("KMOVW BX, %s", tailMask)
	} else {
		mask = a.v(tailVector)
		a.op("LEAQ lanes%s<>+%d(SB), BX", a.suffix, 8*a.lanes)
		a.op("NEGQ CX")
		a.op("VMOVUPS (BX)(CX*4), %s", mask)
	}
	a.windowStore(name, rows, spare, low, high, mask, l("part"))
	a.label(l("next"))
}

// takeMax keeps a NaN that is there and takes one that comes: VMAXPS gives its first operand here, the new one, where either is NaN.
func (a *assembler) takeMax(at string, sum, x, spare int) {
	s := a.v(sum)
	if a.masks {
		a.op("VCMPPS $7, %s, %s, %s", s, s, testMask) // ordered
		a.op("VMAXPS %s, %s, %s, %s", at, s, testMask, s)
		return
	}
	a.op("VCMPPS $3, %s, %s, %s", s, s, a.v(spare)) // unordered
	a.op("VMAXPS %s, %s, %s", at, s, a.v(x))
	a.op("VBLENDVPS %s, %s, %s, %s", a.v(spare), s, a.v(x), s)
}

func (a *assembler) windowStore(name string, rows, spare int, low, high, mask, label string) {
	read, write := "VMOVUPS %s, %s", "VMOVUPS %s, %s"
	if mask != "" {
		read, write = "VMASKMOVPS %s, "+mask+", %s", "VMASKMOVPS %s, "+mask+", %s"
		if a.masks {
			read, write = "VMOVUPS.Z %s, "+mask+", %s", "VMOVUPS %s, "+mask+", %s"
		}
	}
	if name == "windowSum" {
		a.op("CMPQ %d(AX), $0", windowResidual)
		a.op("JE %salone", label)
		a.op("LEAQ (R15)(DX*1), BX")
		a.op("MOVQ %d(AX), R13", windowResidualStep)
		for i := range rows {
			a.op(read, "(BX)", a.v(spare))
			a.op("VADDPS %s, %s, %s", a.v(spare), a.v(i), a.v(i))
			a.op("ADDQ R13, BX")
		}
		a.label(label + "alone")
		for i := range rows {
			a.op("VMAXPS %s, %s, %s", a.v(i), low, a.v(i))
			a.op("VMINPS %s, %s, %s", a.v(i), high, a.v(i))
		}
	}
	if name == "windowMean" {
		a.op("MOVQ %d(AX), BX", windowScale)
		a.op("ADDQ DX, BX")
		a.op(read, "(BX)", a.v(spare))
		for i := range rows {
			a.op("VMULPS %s, %s, %s", a.v(spare), a.v(i), a.v(i))
		}
	}
	a.op("LEAQ (DI)(DX*1), BX")
	a.op("MOVQ %d(AX), R13", windowOutStep)
	for i := range rows {
		a.op(write, a.v(i), "(BX)")
		if i+1 < rows {
			a.op("ADDQ R13, BX")
		}
	}
}

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

// Vectors of the copies.
const (
	padFillVector = 2 + iota
	padScaleVector
	padShiftVector
	padFloorVector
	padEvenVector
	padOddVector
	padSpare
	padMask1 = 14
	padMask0 = 15
)

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

// padPlain copies rows. Stores are whole vectors: each row is written after the end of the one before, the last one beyond its end.
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

// splitPairs stores the elements of even number of two vectors at R13, the others at R15.
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

// padPairs takes rows apart into elements of even and of odd number, which go to two places.
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

// pairsTable holds which elements of two vectors are of even number, and which are not.
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
