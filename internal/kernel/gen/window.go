package main

import "fmt"

// Kernels of windows that stay in one channel: depthwise convolutions and
// pools. Rows of the input are copied first, with padding around them, and
// taken apart by the stride, so that every tap reads neighbours; then all taps
// of an output are summed, or the largest is taken.
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

// byKind declares what calls the loop of a kind, of which the last is for all
// others.
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

// windowRowGroup walks over the columns of a few rows. DX counts bytes along
// them, CX the columns that are left.
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

// takeMax keeps an earlier NaN and takes a new one: VMAXPS returns its first
// operand here, the new one, where either is NaN.
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
