package main

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Arguments come in structs, whose fields are read at these offsets.
const (
	splitSrc = 8 * iota
	splitSrcStep
	splitDst
	splitDstStep
	splitPart
	splitRows
	splitVectors
)

const (
	winogradSrc = 8 * iota
	winogradSrcStep
	winogradSrcPart
	winogradDst
	winogradDstStep
	winogradDstPart
	winogradCount
	winogradScratch
)

// winograds writes the loops of the algorithms with fewer multiplications.
func (a *assembler) winograds() {
	for i, w := range kernel.Winograds {
		a.winogradSplit(w)
		a.winogradInput(w)
		a.winogradOutput(w)
		text := ""
		for _, k := range []struct{ name, call string }{{"Split", "WinogradSplit"}, {"Input", "WinogradTransform"}, {"Output", "WinogradTransform"}} {
			// A call by name keeps its argument on the stack.
			fmt.Fprintf(&a.stubs, "\nfunc winograd%[1]s%[2]dBy%[3]s(call kernel.%[4]s) { winograd%[1]s%[2]dx%[3]s(&call) }\n", k.name, w.Outputs, a.suffix, k.call)
			text += fmt.Sprintf("%[1]s: winograd%[1]s%[2]dBy%[3]s, ", k.name, w.Outputs, a.suffix)
		}
		a.put("Winograd", "WinogradTable", "{"+text+"}", fmt.Sprint(i))
	}
}

func (a *assembler) fields(call param, list ...any) {
	a.op("MOVQ %s, AX", a.arg(call))
	for i := 0; i < len(list); i += 2 {
		a.op("MOVQ %d(AX), %s", list[i], list[i+1])
	}
}

// winogradSplit takes rows apart into as many parts as a tile has outputs in a
// row.
func (a *assembler) winogradSplit(w *kernel.Winograd) {
	call := param{"call", "*kernel.WinogradSplit"}
	name := fmt.Sprintf("winogradSplit%d", w.Outputs)
	table := name + "order" + a.suffix
	for i := range a.lanes {
		fmt.Fprintf(&a.text, "DATA %s<>+%d(SB)/4, $%d\n", table, 4*i, splitOrder(w.Outputs, a.lanes, i))
	}
	fmt.Fprintf(&a.text, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", table, a.bytes())
	a.function(name+"x", fmt.Sprintf("takes rows apart into %d parts.", w.Outputs), []param{call}, nil)
	a.fields(call, splitSrc, "SI", splitSrcStep, "R8", splitDst, "DI", splitDstStep, "R9", splitPart, "R10", splitRows, "R11", splitVectors, "R12")
	order := a.v(8)
	a.op("VMOVUPS %s<>+0(SB), %s", table, order)
	a.label("row")
	a.op("MOVQ SI, BX")
	a.op("MOVQ DI, DX")
	a.op("MOVQ R12, CX")
	a.label("vector")
	for i := range w.Outputs {
		a.op("VMOVUPS %d(BX), %s", i*a.bytes(), a.v(i))
	}
	a.op("ADDQ $%d, BX", w.Outputs*a.bytes())
	from := 0 // where the parts are
	for n := w.Outputs; n > 1; n /= 2 {
		// Neighbours are taken apart into elements of even and of odd number:
		// those of a quarter of a vector stay in it.
		for i := 0; i < w.Outputs; i += n {
			for k := range n / 2 {
				lo, hi := a.v(from+i+2*k), a.v(from+i+2*k+1)
				a.op("VSHUFPS $0x88, %s, %s, %s", hi, lo, a.v(4-from+i+k))
				a.op("VSHUFPS $0xdd, %s, %s, %s", hi, lo, a.v(4-from+i+n/2+k))
			}
		}
		from = 4 - from
	}
	a.op("MOVQ DX, R13")
	for p := range w.Outputs {
		at := p
		if w.Outputs == 4 { // elements 0 and 2 modulo 4 are the even ones
			at = []int{0, 2, 1, 3}[p]
		}
		a.op("VPERMPS %s, %s, %s", a.v(from+at), order, a.v(from+at))
		a.op("VMOVUPS %s, (R13)", a.v(from+at))
		if p < w.Outputs-1 {
			a.op("ADDQ R10, R13")
		}
	}
	a.op("ADDQ $%d, DX", a.bytes())
	a.op("DECQ CX")
	a.op("JNZ vector")
	a.op("ADDQ R8, SI")
	a.op("ADDQ R9, DI")
	a.op("DECQ R11")
	a.op("JNZ row")
	a.ret()
}

// splitOrder is the lane that holds element i of a part: quarters of a vector
// hold elements of each of the vectors that were taken apart, one behind the
// other.
func splitOrder(parts, lanes, i int) int {
	each := lanes / parts // elements from one vector
	vector, k := i/each, i%each
	inQuarter := 4 / parts
	return k/inQuarter*4 + vector*inQuarter + k%inQuarter
}

// winogradInput transforms vectors of tiles: columns first, which are kept in
// scratch, and then rows.
func (a *assembler) winogradInput(w *kernel.Winograd) {
	call := param{"call", "*kernel.WinogradTransform"}
	size, m := w.Size(), w.Outputs
	a.function(fmt.Sprintf("winogradInput%dx", m), fmt.Sprintf("transforms tiles of %d by %d elements.", size, size), []param{call}, nil)
	a.fields(call, winogradSrc, "SI", winogradSrcStep, "R8", winogradSrcPart, "R9", winogradDst, "DI", winogradDstPart, "R10", winogradCount, "R11", winogradScratch, "R12")
	a.op("MOVQ R9, R13")
	a.op("SHLQ $%d, R13", map[int]int{2: 1, 4: 2}[m]) // parts of a row
	a.label("vector")
	for j := range size {
		if j%m == 0 {
			a.op("MOVQ SI, CX")
		} else {
			a.op("ADDQ R9, CX")
		}
		a.op("MOVQ CX, BX")
		for i := range size {
			switch {
			case i == m:
				a.op("LEAQ (CX)(R8*1), BX")
			case i > 0:
				a.op("ADDQ R13, BX")
			}
			a.op("VMOVUPS %d(BX), %s", j/m*4, a.v(i))
		}
		a.combine(w.Input, func(i int, from string) { a.op("VMOVUPS %s, %d(R12)", from, (i*size+j)*a.bytes()) })
	}
	a.op("MOVQ DI, DX")
	for i := range size {
		for j := range size {
			a.op("VMOVUPS %d(R12), %s", (i*size+j)*a.bytes(), a.v(j))
		}
		a.combine(w.Input, func(_ int, from string) {
			a.op("VMOVUPS %s, (DX)", from)
			a.op("ADDQ R10, DX")
		})
	}
	a.op("ADDQ $%d, SI", a.bytes())
	a.op("ADDQ $%d, DI", a.bytes())
	a.op("DECQ R11")
	a.op("JNZ vector")
	a.ret()
}

// winogradOutput transforms the sums of tiles, of a vector of channels, into
// results.
func (a *assembler) winogradOutput(w *kernel.Winograd) {
	call := param{"call", "*kernel.WinogradTransform"}
	size, m := w.Size(), w.Outputs
	a.function(fmt.Sprintf("winogradOutput%dx", m), fmt.Sprintf("transforms sums into tiles of %d by %d results.", m, m), []param{call}, nil)
	a.fields(call, winogradSrc, "SI", winogradSrcStep, "R8", winogradSrcPart, "R9", winogradDst, "DI", winogradDstStep, "R13", winogradDstPart, "R10", winogradCount, "R11", winogradScratch, "R12")
	a.op("IMUL3Q $%d, R9, R15", size) // from row to row of a tile
	a.label("tile")
	a.op("MOVQ SI, CX")
	for j := range size {
		a.op("MOVQ CX, BX")
		for i := range size {
			a.op("VMOVUPS (BX), %s", a.v(i))
			if i < size-1 {
				a.op("ADDQ R15, BX")
			}
		}
		a.combine(w.Output, func(i int, from string) { a.op("VMOVUPS %s, %d(R12)", from, (i*size+j)*a.bytes()) })
		a.op("ADDQ R9, CX")
	}
	a.op("MOVQ DI, DX")
	for i := range m {
		for j := range size {
			a.op("VMOVUPS %d(R12), %s", (i*size+j)*a.bytes(), a.v(j))
		}
		a.op("MOVQ DX, BX")
		a.combine(w.Output, func(_ int, from string) {
			a.op("VMOVUPS %s, (BX)", from)
			a.op("ADDQ R10, BX")
		})
		a.op("ADDQ R13, DX")
	}
	a.op("ADDQ R8, SI")
	a.op("IMUL3Q $%d, R10, BX", m)
	a.op("ADDQ BX, DI")
	a.op("DECQ R11")
	a.op("JNZ tile")
	a.ret()
}

// combine multiplies the vectors from 0 on with a matrix, and passes on each
// result as soon as it is there.
func (a *assembler) combine(matrix [][]float64, result func(i int, from string)) {
	for i, row := range matrix {
		sum := a.v(len(row) + i%2)
		a.combination(row, sum)
		result(i, sum)
	}
}

// combination sets sum to a combination of the vectors from 0 on: to the sum or
// difference of two of them where their factors allow it, and then one after
// the other.
func (a *assembler) combination(row []float64, sum string) {
	used := make([]bool, len(row))
	take := func(ok func(v float64) bool) int {
		for i, v := range row {
			if v != 0 && !used[i] && ok(v) {
				used[i] = true
				return i
			}
		}
		return -1
	}
	first := take(func(v float64) bool { return v == 1 })
	if first < 0 {
		panic(fmt.Sprintf("BUG: got no factor 1 in %v, want one", row))
	}
	switch second := take(func(v float64) bool { return v == 1 || v == -1 }); {
	case second >= 0 && row[second] == 1:
		a.op("VADDPS %s, %s, %s", a.v(second), a.v(first), sum)
	case second >= 0:
		a.op("VSUBPS %s, %s, %s", a.v(second), a.v(first), sum)
	default:
		second = take(func(float64) bool { return true })
		a.op("VMULPS %s, %s, %s", a.f32(float32(row[second])), a.v(second), sum)
		a.op("VADDPS %s, %s, %s", a.v(first), sum, sum)
	}
	for i, v := range row {
		switch {
		case v == 0 || used[i]:
		case v == 1:
			a.op("VADDPS %s, %s, %s", a.v(i), sum, sum)
		case v == -1:
			a.op("VSUBPS %s, %s, %s", a.v(i), sum, sum)
		default:
			a.op("VFMADD231PS %s, %s, %s", a.f32(float32(v)), a.v(i), sum)
		}
	}
}
