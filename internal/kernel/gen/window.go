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

	windowSourceStep = windowBias + 16
)

const windowGroup = 4 // rows that are computed together

func (a *assembler) windowKernels() {
	a.window(window{name: "windowSum"}, "sums weighted taps: out = min(max(bias + sum + residual, low), high).")
	a.window(window{name: "windowMax"}, "takes the largest tap, NaN if any is.")
	a.window(window{name: "windowMean"}, "sums taps, times a factor for each column.")
	a.tallWindows()
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

// window is a loop over the taps of windows.
type window struct {
	name string

	// Of columns of so many taps, rows of the source are read once for all
	// outputs of a group: 0 if offsets say where each tap is.
	height, stride int
}

func (w window) sums() bool { return w.name == "windowSum" || w.height > 0 }

// windowHeights are those of columns with loops of their own, and windowStrides
// the distances of the windows of neighbouring rows.
var (
	windowHeights = []int{3, 5, 7}
	windowStrides = []int{1, 2}
)

// tallWindows are windowSum for taps in columns.
func (a *assembler) tallWindows() {
	fmt.Fprintf(&a.stubs, "\nfunc tallWindows%s(height, stride int, call kernel.WindowCall) bool {\n\tswitch [2]int{height, stride} {\n", a.suffix)
	var loops []window
	for _, h := range windowHeights {
		for _, s := range windowStrides {
			w := window{name: fmt.Sprintf("windowSum%dBy%d", h, s), height: h, stride: s}
			loops = append(loops, w)
			fmt.Fprintf(&a.stubs, "\tcase [2]int{%d, %d}:\n\t\t%s%s(&call)\n", h, s, w.name, a.suffix)
		}
	}
	a.stubs.WriteString("\tdefault:\n\t\treturn false\n\t}\n\treturn true\n}\n")
	a.set("TallWindows", "tallWindows"+a.suffix)
	for _, w := range loops {
		a.window(w, fmt.Sprintf("is windowSum for columns of %d taps of rows that are next to each other, and rows of outputs whose windows are %d rows apart. Offsets and weights are those of the first taps, and taps is the number of columns.", w.height, w.stride))
	}
}

// window writes rows of outputs. Vectors of the source are read whole.
func (a *assembler) window(w window, doc string) {
	call := param{"call", "*kernel.WindowCall"}
	a.function(w.name, doc, []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	a.op("MOVQ %d(AX), SI", windowSrc)
	a.op("MOVQ %d(AX), R8", windowRowStep)
	if w.height > 0 {
		a.op("MOVQ %d(AX), R9", windowSourceStep)
		a.op("MOVQ %d(AX), R14", windowTaps)
		a.op("SHLQ $2, R14")
	} else {
		a.op("LEAQ (R8)(R8*2), R9")
	}
	a.op("MOVQ %d(AX), DI", windowOut)
	a.op("MOVQ %d(AX), R15", windowResidual)
	const first = windowGroup
	weight := first + 1
	spare := weight + max(1, w.height)
	low, high := a.v(spare+1), a.v(spare+2)
	switch {
	case w.sums():
		a.op("VBROADCASTSS %d(AX), %s", windowBias, a.v(first))
		a.op("VBROADCASTSS %d(AX), %s", windowLow, low)
		a.op("VBROADCASTSS %d(AX), %s", windowHigh, high)
	case w.name == "windowMax":
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
		a.windowRowGroup(w, rows, first, weight, spare, low, high)
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
func (a *assembler) windowRowGroup(w window, rows, first, weight, spare int, low, high string) {
	l := func(s string) string { return fmt.Sprint(s, rows) }
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
	if w.height > 0 {
		a.columnOfTaps(w, rows, weight, spare)
	} else {
		a.op("MOVLQSX (R10), BX")
		a.op("ADDQ R13, BX")
		a.tap(w, rows, weight, spare)
	}
	a.op("ADDQ $4, R10")
	a.op("DECQ R12")
	a.op("JNZ %s", l("tap"))
	a.op("CMPQ CX, $%d", a.lanes)
	a.op("JLT %s", l("some"))
	a.windowStore(w, rows, spare, low, high, "", l("whole"))
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
	a.windowStore(w, rows, spare, low, high, mask, l("part"))
	a.label(l("next"))
}

// tap adds the elements at BX to the outputs of a group.
func (a *assembler) tap(w window, rows, weight, spare int) {
	rowAt := [...]string{"(BX)", "(BX)(R8*1)", "(BX)(R8*2)", "(BX)(R9*1)"}
	if w.sums() {
		a.op("VBROADCASTSS (R11), %s", a.v(weight))
		a.op("ADDQ $4, R11")
	}
	for i := range rows {
		switch {
		case w.sums():
			a.op("VFMADD231PS %s, %s, %s", rowAt[i], a.v(weight), a.v(i))
		case w.name == "windowMean":
			a.op("VADDPS %s, %s, %s", rowAt[i], a.v(i), a.v(i))
		default:
			a.takeMax(rowAt[i], i, weight, spare)
		}
	}
}

// columnOfTaps adds the taps of a column, whose offset is at R10.
func (a *assembler) columnOfTaps(w window, rows, weight, x int) {
	a.op("VBROADCASTSS (R11), %s", a.v(weight))
	a.op("LEAQ (R11)(R14*1), BX")
	for k := 1; k < w.height; k++ {
		a.op("VBROADCASTSS (BX), %s", a.v(weight+k))
		if k+1 < w.height {
			a.op("ADDQ R14, BX")
		}
	}
	a.op("ADDQ $4, R11")
	a.op("MOVLQSX (R10), BX")
	a.op("ADDQ R13, BX")
	last := (rows-1)*w.stride + w.height - 1
	for row := 0; row <= last; row++ {
		a.op("VMOVUPS (BX), %s", a.v(x))
		for i := range rows {
			if k := row - i*w.stride; k >= 0 && k < w.height {
				a.op("VFMADD231PS %s, %s, %s", a.v(x), a.v(weight+k), a.v(i))
			}
		}
		if row < last {
			a.op("ADDQ R9, BX")
		}
	}
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

func (a *assembler) windowStore(w window, rows, spare int, low, high, mask, label string) {
	read, write := "VMOVUPS %s, %s", "VMOVUPS %s, %s"
	if mask != "" {
		read, write = "VMASKMOVPS %s, "+mask+", %s", "VMASKMOVPS %s, "+mask+", %s"
		if a.masks {
			read, write = "VMOVUPS.Z %s, "+mask+", %s", "VMOVUPS %s, "+mask+", %s"
		}
	}
	if w.sums() {
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
	if w.name == "windowMean" {
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
